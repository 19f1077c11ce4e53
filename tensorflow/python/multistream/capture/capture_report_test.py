# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""capture_report: which steps are replayed, and why others are not."""

import pytest
import tensorflow as tf

from multistream.testing.kit import run_captured

FUNCTIONS = """
with tf.device(GPU):
    w = tf.Variable(tf.zeros([8, 4]))

@tf.function(autograph=False)
def product(x, scale=1.0):
    with tf.device(GPU):
        return tf.identity(x @ w, name="scores") * scale

@tf.function(autograph=False)
def noise(x):
    with tf.device(GPU):
        return x + tf.cast(tf.random.uniform([4], 0, 9, tf.int64, name="noise"), tf.float32)

@tf.function(autograph=False)
def change(x):
    with tf.device(GPU):
        return w.assign_add(x)

def ends(report):
    return {count.end: count.steps for count in report.counts}
"""


def test_replays_and_reasons() -> None:
    run_captured(
        FUNCTIONS,
        """
first = "it is one of the first of its shapes on its stream group"
report = tf.cuda.capture_report(product, tf.ones([2, 8]))
check(ends(report) == {first: 2, "replayed": 4}, "a function that is captured")
check((report.steps, report.replayed) == (6, 4), "sums")
text = str(report).splitlines()
check(text[0] == "4 of 6 steps were replayed, and 67% of all launches", "text")
check(" ops that give '" in text[1] and text[2:] == [f"{2:10} {first}", f"{4:10} replayed"], "rows")
report = tf.cuda.capture_report(product, tf.ones([2, 8]), scale=2.0)
check(report.replayed == 4, "another trace, a named argument")
check(tf.cuda.capture_report(product, tf.ones([2, 8])).replayed == 6, "one that is recorded")
report = tf.cuda.capture_report(product, tf.ones([3, 8]))
check(ends(report) == {first: 2, "replayed": 4}, "another shape")

(count,) = tf.cuda.capture_report(noise, tf.ones([4])).counts
check(count.steps == 6 and count.end.startswith("RandomUniformInt 'noise'"), f"{count.end}")
report = tf.cuda.capture_report(change, tf.ones([8, 4]))
check(ends(report) == {first: 2, "replayed": 4}, f"a change: {report}")

# A variable whose old memory somebody keeps, from where the recording reads it.
with tf.cuda.stream_group(0):
    product(tf.ones([2, 8]))
kept = w.read_value()
with tf.device(GPU):
    w.assign(tf.ones([8, 4]))
report = tf.cuda.capture_report(product, tf.ones([2, 8]))
check(ends(report) == {"a variable's memory is still in use": 6}, "a variable")

everything = tf.cuda.capture_report()
check(everything.replayed == replayed(), "all replays")
check(everything.steps <= total("steps_started"), "all steps")
check(everything.steps == 43, f"{everything}")
check(sorted(everything.counts) == list(everything.counts), "sorted")
fails(TypeError, lambda: tf.cuda.capture_report(3), "tf.cuda.capture_report(")
""",
    )


def test_sessions_and_recordings_dropped_for_others() -> None:
    run_captured(
        """
with tf.Graph().as_default(), tf.device(GPU):
    x = tf1.placeholder(tf.float32, [None, 128], name="x")
    y = tf.tanh(x, name="y")
    with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
        for _ in range(2):
            for rows in (700, 800, 900):
                value = np.ones([rows, 128], np.float32)
                report = tf.cuda.capture_report(lambda: session.run(y, {x: value}))
names = {count.graph for count in tf.cuda.capture_report().counts}
check(len(names) == 1 and "'edge_" in names.pop(), f"{names}")
dropped = [c for c in tf.cuda.capture_report().counts if "TF_MULTI_STREAM_CAPTURE_MB" in c.end]
check(len(dropped) == 1 and dropped[0].end.endswith("is 1"), f"{dropped}")
""",
        TF_MULTI_STREAM_CAPTURE_MB="1",
    )


def test_without_captured_steps_the_error_names_the_variable() -> None:
    with pytest.raises(RuntimeError, match="TF_MULTI_STREAM_CAPTURE=auto"):
        tf.cuda.capture_report()
