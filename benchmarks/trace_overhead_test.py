# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""trace_overhead.py measures with a trace and without."""

from __future__ import annotations

import csv

import pytest
from emulated_process import run_program

SMALL = ["--threads", "2", "--rounds", "1", "--seconds", "0.2"]


def test_both_are_measured() -> None:
    done = run_program("trace_overhead.py", SMALL, TF_GPU_STREAM_GROUP_COUNT="2")
    assert done.returncode == 0, done.stderr
    *table, _, summary = done.stdout.splitlines()
    rows = list(csv.DictReader(table))
    assert [row["trace"] for row in rows] == ["off", "on"]
    assert all(int(row["lowest"]) > 0 for row in rows)
    # A call has many ops: had the trace been off, there were no events.
    assert int(summary.partition(" events a call")[0]) > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--threads", "0"], "--threads"), (["--seconds", "0"], "--seconds 0.0: above 0")],
)
def test_bad_arguments_are_named(arguments: list[str], message: str) -> None:
    done = run_program("trace_overhead.py", arguments)
    assert done.returncode == 2
    assert message in done.stderr
