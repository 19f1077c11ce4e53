# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets a policy find what can run side by side in a function, where nobody marked branches.

    python examples/split_by_policy.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/split_by_policy.py    # without a GPU

The first calls are measured: on one stream, then with the plans that the policy makes. If
none is faster, the function stays on one stream; with always=True nothing is measured.
The results must be the same bits as without a policy.
"""

import os

# Read when TensorFlow is imported.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "4")
os.environ.setdefault("TF_NODE_LEVEL_MULTISTREAM", "true")

import tensorflow as tf

CALLS = 60  # more than the policy measures


def model(x: tf.Tensor) -> tf.Tensor:
    """Four chains, which have nothing to do with each other before their sum."""
    with tf.device("/GPU:0"):
        chains = [x, tf.sin(x), tf.cos(x), tf.tanh(x)]
        for _ in range(8):
            chains = [tf.tanh(chain @ chain) for chain in chains]
        return tf.add_n(chains)


plain = tf.function(model)
split = tf.cuda.auto_stream("cost")(tf.function(model))  # also a decorator
always = tf.cuda.auto_stream("full_graph", always=True)(tf.function(model))

inputs = [tf.random.normal([64, 64]) for _ in range(CALLS)]
expected = [plain(x).numpy().tobytes() for x in inputs]
for name, function in (("cost", split), ("full_graph, always", always)):
    before = sum(group.waits for group in tf.cuda.stream_stats())
    results = [function(x).numpy().tobytes() for x in inputs]
    waits = sum(group.waits for group in tf.cuda.stream_stats()) - before
    same = sum(result == bits for result, bits in zip(results, expected, strict=True))
    print(f"{name}: {same} of {CALLS} results are those of one stream, {waits} waits of groups")
    assert same == CALLS
