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
"""python_turns.py measures processes with and without turns."""

from __future__ import annotations

import csv
import pathlib

import pytest
from emulated_process import CAPTURED, FOLDER, run_python

PROGRAM = str(FOLDER / "python_turns.py")
SMALL = ["--turns", "0,2", "--threads", "1,4", "--rounds", "2", "--milliseconds", "100"]


def test_each_setting_is_measured() -> None:
    done = run_python([PROGRAM, *SMALL, "--work", "0,300"], CAPTURED)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    settings = [(int(r["turns"]), int(r["threads"]), int(r["work_us"])) for r in rows]
    assert settings == [(k, n, work) for n in (1, 4) for work in (0, 300) for k in (0, 2)]
    assert all(row["wrong"] == "0" for row in rows)
    # Work takes time.
    assert all(float(row["p50_ms"]) > 0.3 for row in rows if row["work_us"] == "300")


def test_a_process_that_fails_is_named() -> None:
    done = run_python([PROGRAM, *SMALL], {**CAPTURED, "TF_GPU_STREAM_GROUP_COUNT": "many"})
    assert done.returncode == 1
    assert "the process with TF_MULTI_STREAM_PYTHON_TURNS=0 has ended" in done.stderr


def test_a_process_that_ends_with_an_error_is_named(tmp_path: pathlib.Path) -> None:
    """After all that it was asked for has been measured."""
    fails = "import atexit, os, sys\nif '--serve' in sys.argv: atexit.register(os._exit, 3)\n"
    (tmp_path / "sitecustomize.py").write_text(fails, encoding="utf-8")
    done = run_python([PROGRAM, *SMALL], {**CAPTURED, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "the process with TF_MULTI_STREAM_PYTHON_TURNS=0 has failed" in done.stderr


@pytest.mark.parametrize("option", ["--turns", "--threads", "--work", "--rounds", "--milliseconds"])
def test_bad_arguments_are_named(option: str) -> None:
    done = run_python([PROGRAM, option, "-1"], CAPTURED)
    assert done.returncode == 2
    assert option in done.stderr
