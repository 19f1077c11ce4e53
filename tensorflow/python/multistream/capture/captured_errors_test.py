# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""An op that fails in a captured step gives the same error as in an uncaptured step.

Only on an emulated GPU does the lookup of a missing row fail; on a GPU it gives zeros.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit

pytestmark = pytest.mark.skipif(kit.ON_GPU, reason="no lookup fails on a GPU")

HELPERS = (
    kit.CAPTURE_HELPERS
    + """
def error(function, rows):
    try:
        function(rows)
    except tf.errors.OpError as e:
        return type(e), "indices[2] = 7 is not in [0, 5)" in str(e)
    return None

def fails_alike(name, make):
    # `make` gives the function; once captured, and once not.
    captured, expected = [tf.cuda.captured(mode=mode)(make()) for mode in ("auto", "off")]
    for _ in range(6):
        check(bits(captured(rows)) == bits(expected(rows)), name)
    check(replayed() > 0, f"{name} was not captured: {tf.cuda.capture_report()}")
    for _ in range(3):
        errors = error(captured, missing), error(expected, missing)
        check(errors[0] == errors[1], f"{name}: {errors}")
        check(errors[1] == (tf.errors.InvalidArgumentError, True), f"{name}: {errors}")
    check(bits(captured(rows)) == bits(expected(rows)), f"{name}, after errors")

with tf.device(GPU):
    table = tf.Variable(tf.ones([5, 4]))

def lookup():
    return on_gpu(lambda ids: tf.gather(table, ids) + 1.0)

rows, missing = np.array([0, 1, 2]), np.array([0, 1, 7])
"""
)


def run(code: str, **more: str) -> None:
    """Runs code after HELPERS, with two groups; functions that it marks are captured."""
    kit.run_checks(HELPERS + code, groups=2, TF_MULTI_STREAM_CAPTURE="marked", **more)


def test_training() -> None:
    run("""
def train():
    with tf.device(GPU):
        sums = tf.Variable(tf.zeros([4]))
    def step(ids):
        rows = tf.gather(table, ids)
        sums.assign_add(tf.reduce_sum(rows, axis=0))
        return tf.reduce_sum(rows), sums
    return on_gpu(step)

fails_alike("training", train)
""")


def test_inference() -> None:
    run('fails_alike("inference", lookup)')


def test_a_padded_batch() -> None:
    run(
        """
def padded():
    return tf.function(lookup(), input_signature=[tf.TensorSpec([None], tf.int64)])

fails_alike("padded", padded)
""",
        TF_MULTI_STREAM_CAPTURE_BATCHES="4,8",
    )
