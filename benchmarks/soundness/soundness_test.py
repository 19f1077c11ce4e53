# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder find nothing wrong, and find what is spoiled on purpose.

Each runs in a process of its own, on an emulated GPU; calls of CUDA need a real one.
"""

import json
import pathlib
import subprocess
from typing import Any

import pytest
from multistream.testing import kit

FOLDER = pathlib.Path(__file__).resolve().parent
CAPTURED = {
    "TF_MULTI_STREAM_EMULATED_GPUS": "1",
    "TF_GPU_STREAM_GROUP_COUNT": "2",
    "TF_MULTI_STREAM_CAPTURE": "auto",
}
SMALL = {
    "captured_updates": ["--steps", "1200", "--round-steps", "600", "--seed", "7"],
    "foreign_calls": ["--seconds", "1", "--threads", "2"],
    "model_reloads": ["--reloads", "3", "--pause", "0.1", "--quiet", "0.3", "--threads", "4"],
    "shape_storm": [
        *("--minutes", "0.02", "--slice-seconds", "0.5"),
        *("--lengths", "4", "--threads", "3"),
    ],
}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in this folder, with captured steps."""
    done: subprocess.CompletedProcess[str] = kit.run_program(
        list(arguments), FOLDER, **CAPTURED, **more
    )
    return done


def sanitized(program: str) -> dict[str, str]:
    """More variables of the program that trains: it evicts recordings, and may have no race."""
    if program != "captured_updates":
        return {}
    return {"TF_MULTI_STREAM_CAPTURE_MB": "1", "TF_MULTI_STREAM_SANITIZER": "abort"}


def found_by(program: str) -> dict[str, Any]:
    """What a small run of a program finds, which is nothing wrong."""
    done = run(f"{program}.py", *SMALL[program], **sanitized(program))
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert line["wrong"] == line.get("lost", 0) == 0
    found: dict[str, Any] = line
    return found


def test_no_update_is_lost() -> None:
    found = found_by("captured_updates")
    assert found["steps"] >= 1200
    assert found["rounds"] == 2
    assert found["steps_in_order"] >= 100
    assert found["replayed_training_at_least"] > 100
    assert found["recordings_made"] > 10


def test_captured_steps_are_right_beside_no_calls() -> None:
    found = found_by("foreign_calls")
    assert found["kind"] == "none"
    assert min(found["inferences"], found["trained"], found["replayed"]) > 0
    assert found["recordings_made"] > 0


def test_results_are_those_of_the_version_that_is_current() -> None:
    found = found_by("model_reloads")
    assert found["reloads"] == 3
    assert found["calls"] > 0
    assert found["recordings_made"] >= 3
    assert found["replayed"] > 0


def test_calls_of_many_lengths_are_right() -> None:
    found = found_by("shape_storm")
    assert min(found["calls"].values()) > 0
    assert 0 < found["replayed"] <= found["calls"]["auto"]
    assert found["recordings"] <= found["recordings_made"]
    assert found["memory"]["heap_mib"]["max"] > 0


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
in_turn = updating_threads.in_turn
def twice(actions, *rest):
    step = next(i for i, action in enumerate(actions) if action[0] == "step")
    rest[-1](actions[step])
    rest[-1].__self__.results.clear()
    return in_turn(actions, *rest)
updating_threads.in_turn = twice
"""
GIVES_OTHER_RESULTS = """
foreign_calls.ROWS = 4
infer = foreign_calls.Bench._inference
foreign_calls.Bench._inference = lambda self, mode: (
    infer(self, mode) if mode == "off" else lambda x: -infer(self, "off")(x))
"""
FORGETS_RELOADS = """
reload = model_reloads.Served.reload
def forgets(self):
    reload(self)
    self._done = self._begun = 0  # as if it were the first version still
model_reloads.Served.reload = forgets
"""
NEGATES_RESULTS = """
draw = shape_storm.run_checked
shape_storm.run_checked = lambda call, *rest: draw(lambda x: -call(x), *rest)
"""


@pytest.mark.parametrize(
    ("program", "spoil", "message"),
    [
        ("captured_updates", LOSES_AN_UPDATE, "count is off by [-1.0]"),
        ("captured_updates", READS_WHAT_WAS, "the count that is read is 0.0, and has to be from"),
        ("captured_updates", TEARS, "the variable that is assigned is torn"),
        ("captured_updates", DOES_A_STEP_TWICE, "another result"),
        ("foreign_calls", GIVES_OTHER_RESULTS, "WRONG: none: "),
        ("model_reloads", FORGETS_RELOADS, "results were wrong"),
        ("shape_storm", NEGATES_RESULTS, "results were wrong"),
    ],
)
def test_what_is_wrong_is_found(program: str, spoil: str, message: str) -> None:
    training = ", updated_variables, updating_threads" if program == "captured_updates" else ""
    code = f"import sys, {program}\nimport tensorflow as tf{training}\n{spoil}"
    few = ["--steps", "200", "--round-steps", "200"] if program == "captured_updates" else []
    code += f"sys.exit({program}.main({SMALL[program] + few}))"
    done = run("-c", code, **sanitized(program))
    assert done.returncode == 1, done.stderr[-3000:]
    assert message in done.stderr


JUDGED = """
import foreign_calls, programs, served
from watcher import Sample
for value in (lambda i: 1000.0 + 5 * i, lambda i: 10.0 * min(i, 40), lambda i: 1000.0 + i % 20):
    samples = [Sample(float(i), value(i), value(i), 1, 1, 1.0) for i in range(120)]
    print(served.memory_report(samples)["grown"])
foreign_calls.gpus_are_emulated = programs.gpus_are_emulated = lambda: False
found = {"kind": "copies", "wrong": 0, "lost": 0, "errors": []}
for codes, recorded in (({"cudaMemcpy: 0": 3}, 1), ({"cudaMemcpy: 900": 3}, 1), ({}, 0)):
    print(foreign_calls.problems_of(found | {"recordings_made": recorded}, codes, False))
print(foreign_calls.problems_of(found, {"cudaMemcpy: 900": 3}, pass_gate=True))
for grown, slow in (("", ""), ("heap_mib grew", ""), ("", "slow")):
    print(programs.verdict_of({"wrong": 0, "grown": grown}, slow))
"""


def test_growth_slowness_and_calls_that_fail_are_found_on_a_gpu() -> None:
    done = run("-c", JUDGED)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    assert lines == [
        *("heap_mib grew by 240", "", ""),
        *("[]", "['copies: cudaMemcpy: 900 (3 times)']", "['copies: nothing was recorded']", "[]"),
        *("0", "1", "1"),
    ]
