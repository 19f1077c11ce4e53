# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""shape_storm.py compares captured calls of many lengths with others, and finds what is wrong."""

from __future__ import annotations

import json
import sys

import pytest
from emulated_process import CAPTURED, FOLDER, run_captured, run_python

SMALL = ["--minutes", "0.02", "--slice-seconds", "0.5", "--lengths", "12", "--threads", "3"]
SPOILED = f"""
import shape_storm, sys
import numpy as np
draw = shape_storm.run_checked
def spoiled(call, inputs, *rest):
    return draw(lambda x: -call(x), inputs, *rest)
shape_storm.run_checked = spoiled
sys.exit(shape_storm.main({SMALL}))
"""


def test_calls_of_many_lengths_are_right() -> None:
    done = run_python([str(FOLDER / "shape_storm.py"), *SMALL], CAPTURED)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == 0
    assert min(found["calls"].values()) > 0
    assert 0 < found["replayed"] <= found["calls"]["auto"]
    assert found["recordings"] <= found["recordings_made"]
    assert found["memory"]["heap_mib"]["max"] > 0


def test_wrong_results_are_found() -> None:
    done = run_captured(SPOILED)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "results were wrong" in done.stderr


@pytest.mark.parametrize("option", ["--minutes", "--lengths", "--threads", "--exponent"])
def test_bad_arguments_are_named(option: str) -> None:
    done = run_python([str(FOLDER / "shape_storm.py"), option, "-1"], CAPTURED)
    assert done.returncode == 2
    assert option in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
