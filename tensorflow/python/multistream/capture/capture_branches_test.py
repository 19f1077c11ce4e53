# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recordings whose ops run side by side: which steps get one, and that results are the same.

An emulated GPU runs the ops one after the other, and counts what a GPU would do. On a machine with
a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit

CODE = """
rng = np.random.default_rng(1)
tables = [rng.normal(0, 1, (40, 16)).astype(np.float32) for _ in range(24)]
square = rng.normal(0, 0.25, (16, 16)).astype(np.float32)

def lookups(ids):
    # No lookup, with what follows it, needs another one. They are made in this order, so that each
    # could be given the memory that the one before has freed, and would have to wait for it.
    parts = []
    for i, table in enumerate(tables):
        with tf.control_dependencies(parts[-1:]):
            part = tf.gather(table, ids[:, i])
        for _ in range(3):
            part = tf.tanh(part * 1.5)
        parts.append(tf.reduce_sum(part, 1))
    return tf.add_n(parts)

def layers(ids):
    x = tf.gather(tables[0], ids[:, 0])
    for _ in range(40):
        x = tf.tanh(x @ square)
    return x

def branches_of(function):
    # Of many replays, those that had branches; all results are the first one's.
    ids = [rng.integers(0, 40, (8, 24)) for _ in range(3)]
    step = on_gpu(function)
    with tf.device(GPU):
        inputs = [tf.constant(i) for i in ids]
    def count(name):
        return sum(getattr(s, name) for s in tf.cuda.stream_stats())
    expected = [bits(step(x)) for x in inputs]
    before = count("steps_replayed"), count("replays_with_branches")
    for i in range(60):
        check(bits(step(inputs[i % 3])) == expected[i % 3], "results")
    replays = count("steps_replayed") - before[0]
    branches = count("replays_with_branches") - before[1]
    check(replays > 30, f"{replays} replays")
    check(branches in (0, replays), f"{branches} of {replays} replays had branches")
    return branches
"""


@pytest.mark.parametrize(("most", "are_there"), [("", True), ("2", True), ("1", False)])
def test_steps_that_gain_have_branches(most: str, are_there: bool) -> None:
    kit.run_checks(
        kit.CAPTURE_HELPERS
        + CODE
        + f"""
check((branches_of(lookups) > 0) == {are_there}, "lookups")
check(branches_of(layers) == 0, "layers")
""",
        groups=2,
        TF_MULTI_STREAM_CAPTURE="auto",
        TF_MULTI_STREAM_CAPTURE_BRANCHES=most,
    )
