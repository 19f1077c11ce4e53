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
"""captured_pieces.py captures the halves alone, and finds wrong results."""

from __future__ import annotations

import csv
import sys

import pytest
from emulated_process import run_captured

BENCHMARK = """
import captured_pieces, sys
if {spoiled}:
    exact = captured_pieces.ways
    def spoiled():
        return {{name: drifting(call) for name, call in exact().items()}}
    def drifting(call):
        calls = []
        def wrapped(x):
            calls.append(x)
            return call(x) + (len(calls) > 40)
        return wrapped
    captured_pieces.ways = spoiled
sys.exit(captured_pieces.main(["--threads", "2", "--seconds", "0.4"]))
"""


def test_the_halves_alone_are_replayed() -> None:
    done = run_captured(BENCHMARK.format(spoiled=False))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["way"]: row for row in csv.DictReader(done.stdout.splitlines())}
    assert [float(row["replayed_a_call"]) for row in rows.values()] == [0, 2, 1], done.stdout
    assert [float(row["steps_a_call"]) for row in rows.values()] == [1, 3, 1], done.stdout
    assert all(row["wrong"] == "0" and int(row["results"]) > 0 for row in rows.values())


def test_a_wrong_result_is_found() -> None:
    done = run_captured(BENCHMARK.format(spoiled=True))
    assert done.returncode == 1, done.stdout + done.stderr
    assert all(row["wrong"] != "0" for row in csv.DictReader(done.stdout.splitlines()))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
