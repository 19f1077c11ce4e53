# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""model_reloads.py loads a model again under load, and finds what is wrong."""

from __future__ import annotations

import json
import sys

import pytest
from emulated_process import CAPTURED, FOLDER, run_captured, run_python

SMALL = ["--reloads", "3", "--pause", "0.1", "--quiet", "0.3", "--threads", "4"]
SPOILED = f"""
import model_reloads, sys
reload = model_reloads.Served.reload
def forgets(self):
    reload(self)
    self._done = self._begun = 0  # as if it were the first version still
model_reloads.Served.reload = forgets
sys.exit(model_reloads.main({SMALL}))
"""


def test_results_are_those_of_the_version_that_is_current() -> None:
    done = run_python([str(FOLDER / "model_reloads.py"), *SMALL], CAPTURED)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["reloads"], found["wrong"]) == (3, 0)
    assert found["calls"] > 0
    assert found["recordings_made"] >= 3
    assert found["replayed"] > 0


def test_a_version_that_is_not_current_is_found() -> None:
    done = run_captured(SPOILED)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "results were wrong" in done.stderr


@pytest.mark.parametrize("option", ["--reloads", "--pause", "--quiet", "--threads"])
def test_bad_arguments_are_named(option: str) -> None:
    done = run_python([str(FOLDER / "model_reloads.py"), option, "-1"], CAPTURED)
    assert done.returncode == 2
    assert option in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
