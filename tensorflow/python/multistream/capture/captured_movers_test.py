# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured training from several threads loses no update, and leaves other tensors' memory alone.

No other step uses a recording's variables while the recording is made or a launch is enqueued. On a
machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit


@pytest.mark.parametrize("groups", [1, 2])
def test_updates_of_many_batch_sizes_from_three_threads_all_count(groups: int) -> None:
    kit.run_checks(
        kit.CAPTURE_HELPERS
        + """
with tf.device(GPU):
    steps = tf.Variable(tf.zeros([]))
    weights = [tf.Variable(tf.ones([16, 16]) / 16) for _ in range(4)]

@tf.cuda.captured
@on_gpu
def train(x):
    with tf.GradientTape() as tape:
        h = x
        for w in weights:
            h = tf.tanh(h @ w)
        loss = tf.reduce_mean(h * h)
    for w, gradient in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.01 * gradient)
    steps.assign_add(1.0)
    return loss

def client(seed):
    rng = np.random.default_rng(seed)
    def calls():
        with tf.device(GPU):
            for _ in range(100):
                rows = int(rng.choice([8, 16, 24, 32, 48, 64]))
                loss = train(tf.constant(rng.normal(size=(rows, 16)).astype(np.float32)))
                check(np.isfinite(loss), f"the loss is {loss}")
    return calls

run_threads([client(seed) for seed in range(3)])
check(steps.numpy() == 300, f"{steps.numpy()} of 300 updates")
check(replayed() > 100, f"{replayed()} steps were replayed")
""",
        groups=groups,
        TF_MULTI_STREAM_CAPTURE="marked",
    )


def test_a_step_that_is_recorded_loses_no_update_of_another_function() -> None:
    # The recording of `slow` is too large to keep, so each of its steps makes a new one.
    kit.run_checks(
        kit.CAPTURE_HELPERS
        + """
import threading

with tf.device(GPU):
    table = tf.constant(np.full((300, 300), 1 / 300, np.float32))
    zeros = tf.zeros([512])
big = tf.ones([300, 300])

for round in range(4):
    with tf.device(GPU):
        count = tf.Variable(tf.zeros([512]))

    @tf.function
    def fast():
        with tf.device(GPU):
            count.assign_add(tf.ones([512]))

    @on_gpu
    def look(y):
        return count + y

    @tf.function
    def slow(x):
        with tf.device(GPU):
            for _ in range(12):
                x = x @ table
            count.assign_add(tf.ones([512]) + 0.0 * tf.reduce_sum(x))

    made = {"fast": 0, "slow": 0}
    for _ in range(4):
        fast(), look(zeros)
    for _ in range(2):
        slow(big)
    done = threading.Event()

    def many_fast():
        while not done.is_set():
            fast()
            made["fast"] += 1

    def some_slow():
        for _ in range(6):
            slow(big)
            made["slow"] += 1
        done.set()

    run_threads([many_fast, some_slow])
    expected = 6 + made["fast"] + made["slow"]
    check((count.numpy() == expected).all(), f"{count.numpy()[0]} of {expected} updates")

    # The variable's old memory belongs to other tensors by now, if it does not own that.
    with tf.device(GPU):
        count.assign(tf.fill([512], 100.0))
        others = [tf.fill([512], -1.0 - i) for i in range(40)]
    check((look(zeros).numpy() == 100.0).all(), "what is read after an assignment")
    for i, other in enumerate(others):
        check((other.numpy() == -1.0 - i).all(), f"tensor {i} was written over")
""",
        groups=1,
        TF_MULTI_STREAM_CAPTURE="auto",
        TF_MULTI_STREAM_CAPTURE_MB="1",
    )
