# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps tenants apart: the calls of each run on stream groups of its own.

    python examples/pin_tenants.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/pin_tenants.py    # without a GPU

A tenant whose calls are many or slow then takes no other tenant's streams. Group 3 has a
higher priority: its kernels begin before those that wait on the streams of other groups.
All answers are compared with those of a single thread, bit by bit.
"""

import concurrent.futures
import os

# Read when TensorFlow is imported.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "4")
os.environ.setdefault("TF_GPU_STREAM_GROUP_PRIORITIES", "0,0,0,-1")

import tensorflow as tf

CALLS = 50
GROUP_OF = {"batch jobs": 1, "visitors": 2, "in a hurry": 3}

with tf.device("/GPU:0"):
    weights = tf.Variable(tf.random.normal([64, 64]) / 8)


@tf.function
def model(x: tf.Tensor) -> tf.Tensor:
    """One model, one copy of its weights, for all tenants."""
    with tf.device("/GPU:0"):
        for _ in range(8):
            x = tf.tanh(x @ weights)
        return x


queries = [tf.random.normal([16, 64]) for _ in range(CALLS)]
expected = [model(x).numpy().tobytes() for x in queries]
before = [stats.steps_started for stats in tf.cuda.stream_stats()]


def serve(tenant: str) -> list[bytes]:
    """What a thread that serves a tenant does."""
    with tf.cuda.stream_group(GROUP_OF[tenant]):  # also a decorator
        return [model(x).numpy().tobytes() for x in queries]


with concurrent.futures.ThreadPoolExecutor(len(GROUP_OF)) as threads:
    answers = dict(zip(GROUP_OF, threads.map(serve, GROUP_OF), strict=True))
steps = [s.steps_started - n for s, n in zip(tf.cuda.stream_stats(), before, strict=True)]
for tenant, group in GROUP_OF.items():
    print(f"{tenant}: {steps[group]} steps on group {group}, for {CALLS} calls")
    assert answers[tenant] == expected
    assert steps[group] == CALLS
print("all answers are those of one thread")
