# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""foreign_calls.py runs captured steps, and finds what is wrong; its CUDA calls need a GPU."""

from __future__ import annotations

import json
import sys

import pytest
from emulated_process import CAPTURED, FOLDER, run_captured, run_python

SMALL = ["--seconds", "1", "--threads", "2"]
PROGRAM = str(FOLDER / "foreign_calls.py")
SPOILED = f"""
import foreign_calls, sys
foreign_calls.ROWS = 4
infer = foreign_calls.Model.inference
foreign_calls.Model.inference = lambda self, mode: (
    infer(self, mode) if mode == "off" else lambda x: -infer(self, "off")(x))
sys.exit(foreign_calls.main({SMALL}))
"""
FAILED_CALL = """
import foreign_calls
foreign_calls.gpus_are_emulated = lambda: False
found = {"kind": "copies", "wrong": 0, "lost": 0, "errors": [], "recordings_made": 1}
for codes, recorded in (({"cudaMemcpy: 0": 3}, 1), ({"cudaMemcpy: 900": 3}, 1), ({}, 0)):
    found["recordings_made"] = recorded
    print(foreign_calls.problems_of(found, codes, pass_gate=False))
print(foreign_calls.problems_of(found, {"cudaMemcpy: 900": 3}, pass_gate=True))
"""


def test_captured_steps_are_right() -> None:
    done = run_python([PROGRAM, *SMALL], CAPTURED)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert line["kind"] == "none"
    assert line["wrong"] == line["lost"] == 0
    assert min(line["inferences"], line["trained"], line["replayed"]) > 0
    assert line["recordings_made"] > 0


def test_wrong_results_are_found() -> None:
    done = run_captured(SPOILED)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "WRONG: none: " in done.stderr


def test_calls_that_fail_are_found() -> None:
    done = run_captured(FAILED_CALL)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-4:] == [
        "[]",
        "['copies: cudaMemcpy: 900 (3 times)']",
        "['copies: nothing was recorded']",
        "[]",
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--seconds", "0"], "--seconds"),
        (["--kinds", "unknown"], "--kinds unknown"),
        (["--pass-gate"], "TF_MULTI_STREAM_TEST_FAULTS"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], names: str) -> None:
    done = run_python([PROGRAM, *arguments], CAPTURED)
    assert done.returncode == 2, done.stderr[-3000:]
    assert names in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
