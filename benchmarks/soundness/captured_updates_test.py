# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""captured_updates.py finds nothing wrong, and would find lost updates, stale reads, other bits."""

from __future__ import annotations

import json
import sys

import pytest
from emulated_process import CAPTURED, FOLDER, run_python

SMALL = ["--steps", "1200", "--round-steps", "600", "--seed", "7"]
ENVIRONMENT = {**CAPTURED, "TF_MULTI_STREAM_CAPTURE_MB": "1", "TF_MULTI_STREAM_SANITIZER": "abort"}
SPOILED = """
import captured_updates, sys
import tensorflow as tf
import updated_variables, updates_in_order, updating_threads
{spoil}
sys.exit(captured_updates.main({arguments}))
"""
LOSES_AN_UPDATE = """
exact = updated_variables.Variables.exact
def loses(self, *arguments):
    with tf.device("/GPU:0"):
        self.count.assign_sub(tf.ones([32]))
    return exact(self, *arguments)
updated_variables.Variables.exact = loses
"""
READS_WHAT_WAS = """
look = updated_variables.Variables._look
def stale(self):
    count, count64 = look(self)
    return tf.zeros_like(count), count64
updated_variables.Variables._look = stale
"""
TEARS = """
look = updated_variables.Variables._look
def torn(self):
    count, count64 = look(self)
    return count + tf.concat([tf.zeros([63]), tf.ones([1])], axis=0), count64
updated_variables.Variables._look = torn
"""
DOES_A_STEP_TWICE = """
in_turn = updates_in_order.in_turn
def twice(actions, *rest):
    step = next(i for i, action in enumerate(actions) if action[0] == "step")
    rest[-1](actions[step])
    rest[-1].__self__.results.clear()
    return in_turn(actions, *rest)
updates_in_order.in_turn = twice
"""


def test_no_update_is_lost() -> None:
    done = run_python([str(FOLDER / "captured_updates.py"), *SMALL], ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["steps"] >= 1200
    assert (found["rounds"], found["lost"], found["wrong"]) == (2, 0, 0)
    assert found["steps_in_order"] >= 100
    assert found["replayed_training_at_least"] > 100
    assert found["recordings_made"] > 10


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (LOSES_AN_UPDATE, "count is off by [-1.0]"),
        (READS_WHAT_WAS, "the count that is read is 0.0, and has to be from"),
        (TEARS, "the variable that is assigned is torn"),
        (DOES_A_STEP_TWICE, "another result"),
    ],
)
def test_what_is_wrong_is_found(spoil: str, message: str) -> None:
    code = SPOILED.format(spoil=spoil, arguments=SMALL)
    done = run_python(["-c", code], ENVIRONMENT)
    assert done.returncode == 1, done.stderr[-3000:]
    assert message in done.stderr


def test_bad_arguments_are_named() -> None:
    done = run_python([str(FOLDER / "captured_updates.py"), "--steps", "0"], ENVIRONMENT)
    assert done.returncode == 2
    assert "--steps" in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
