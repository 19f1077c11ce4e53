# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured steps beside profilers, timeouts, and models that are loaded and dropped.

switches_test.py has the combinations with other variables.
"""

import pytest

from multistream.testing.kit import ON_GPU, run_captured

HELPERS = """
import tempfile

spec = [tf.TensorSpec([None, 8], tf.float32, name="x")]
w = floats(8, 4)

def body(x, w):
    return tf.nn.softmax(tf.tanh(tf.matmul(x, w)) + 1.0)

def wanted(x, w):
    e = np.exp(np.tanh(x @ w) + 1.0)
    return e / e.sum(axis=1, keepdims=True)

def near(result, x, w, what):
    check(np.allclose(np.asarray(result), wanted(x, w), rtol=1e-2, atol=1e-3), what)

def on(gpu):
    @tf.function(input_signature=spec)
    def function(x):
        with tf.device(gpu):
            return body(x, w)
    return function
"""


def test_a_profiler_sees_replays_and_changes_nothing() -> None:
    run_captured(
        HELPERS,
        """
function = on(GPU)
for turn in range(3):
    before = replayed()
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        for _ in range(10):
            x = floats(3, 8)
            near(function(x), x, w, f"profiled {turn}")
        tf.profiler.experimental.stop()
    check(replayed() > before, f"no replay, turn {turn}")
""",
    )


def test_a_step_that_times_out_leaves_the_next_ones_right() -> None:
    """The step waits for a value of the host that never comes."""
    run_captured(
        HELPERS,
        """
with tf.Graph().as_default():
    with tf.device("/CPU:0"):
        queue = tf.queue.FIFOQueue(100, tf.float32, [[3, 8]])
        given = tf1.placeholder(tf.float32, [3, 8])
        put = queue.enqueue(given)
        taken = queue.dequeue()
    x = tf1.placeholder(tf.float32, [None, 8])
    with tf.device(GPU):
        late = body(taken, w)
        plain = body(x, w)
    with tf1.Session() as session:
        for turn in range(12):
            value = floats(3, 8)
            near(session.run(plain, {x: value}), value, w, "plain")
            options = tf1.RunOptions(timeout_in_ms=30)
            fails(tf.errors.DeadlineExceededError, lambda: session.run(late, options=options))
            session.run(put, {given: value})
            near(session.run(late), value, w, f"late {turn}")
check(replayed() > 0, str(tf.cuda.capture_report()))
""",
    )


def test_models_that_come_and_go_under_load_are_never_mixed_up() -> None:
    """Each model has its own weights, and may get the memory of a dropped model."""
    run_captured(
        HELPERS,
        """
folders = []
values = [floats(8, 4) for _ in range(3)]

class Model(tf.Module):
    def __init__(self, value):
        super().__init__()
        with tf.device(GPU):
            self.w = tf.Variable(tf.identity(value) + 0.0)

    @tf.function(input_signature=spec)
    def serve(self, x):
        with tf.device(GPU):
            return {"y": body(x, self.w)}

for value in values:
    model = Model(value)
    folders.append(tempfile.mkdtemp())
    tf.saved_model.save(model, folders[-1], signatures={"serve": model.serve})

def client(number):
    mine = np.random.default_rng(number)
    for turn in range(6):
        i = int(mine.integers(3))
        with tf.device(GPU):
            loaded = tf.saved_model.load(folders[i])
        serve = tf.cuda.serving_callable(loaded.signatures["serve"])
        for _ in range(20):
            x = mine.normal(0, 1, (int(mine.integers(1, 4)), 8)).astype(np.float32)
            near(serve(x=x)["y"], x, values[i], f"model {i}")

run_threads([lambda i=i: client(i) for i in range(4)])
check(replayed() > 20, str(tf.cuda.capture_report()))
""",
        TF_MULTI_STREAM_CAPTURE_MB="1",
    )


@pytest.mark.skipif(ON_GPU, reason="needs two GPUs")
def test_each_of_two_gpus_has_recordings_of_its_own() -> None:
    """A step on both GPUs is not captured, because its parts wait for each other."""
    run_captured(
        HELPERS,
        """
@tf.function(input_signature=spec)
def both(x):
    with tf.device("/GPU:0"):
        half = x * 0.5
    with tf.device("/GPU:1"):
        return body(half * 2.0, w)

functions = [on("/GPU:0"), on("/GPU:1")]
for _ in range(12):
    for function in (*functions, both):
        x = floats(3, 8)
        near(function(x), x, w, "result")
stats = tf.cuda.stream_stats()
for gpu in (0, 1):
    count = sum(group.steps_replayed for group in stats if group.gpu == gpu)
    check(count >= 6, f"GPU {gpu}: {count}")
text = str(tf.cuda.capture_report())
check("has another device at its other end" in text, text)
""",
        TF_MULTI_STREAM_EMULATED_GPUS="2",
    )
