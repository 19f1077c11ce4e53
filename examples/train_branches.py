# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a model whose branches run side by side, each on a stream group of its own.

    python examples/train_branches.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/train_branches.py    # without a GPU

Gradients follow the branch that they are of. The model is trained twice from the same
weights, on one stream and with branches on groups: the losses must be the same bits.
"""

import contextlib
import os

# Read when TensorFlow is imported.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "4")
os.environ.setdefault("TF_NODE_LEVEL_MULTISTREAM", "true")

import tensorflow as tf

BRANCHES = 4
LAYERS = 6
STEPS = 20

tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()  # so that bits can be compared
x = tf.random.normal([32, 64])
target = tf.sin(x)
first_weights = [[tf.random.normal([64, 64]) / 8 for _ in range(LAYERS)] for _ in range(BRANCHES)]


def train(on_groups: bool) -> list[float]:
    """Trains from the first weights; returns the loss of each step."""
    with tf.device("/GPU:0"):
        branches = [[tf.Variable(kernel) for kernel in branch] for branch in first_weights]
    variables = [kernel for branch in branches for kernel in branch]

    @tf.function
    def step() -> tf.Tensor:
        with tf.device("/GPU:0"):
            with tf.GradientTape() as tape:
                outputs = []
                for branch in branches:
                    # The next group, round robin; tf.cuda.get_stream(i) is one of your choice.
                    with tf.cuda.stream_scope() if on_groups else contextlib.nullcontext():
                        y = x
                        for kernel in branch:
                            y = tf.tanh(y @ kernel)
                        outputs.append(y)
                loss = tf.reduce_mean((tf.add_n(outputs) - target) ** 2)
            gradients = tape.gradient(loss, variables)
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(0.5 * gradient)
            return loss

    # tf.cuda.stream_groups_of(step.get_concrete_function()) lists each node's group, and why.
    return [float(step()) for _ in range(STEPS)]


one_stream = train(on_groups=False)
groups = train(on_groups=True)
used = [stats.group for stats in tf.cuda.stream_stats() if stats.peak_bytes_in_use]
print(f"groups used: {used}; loss {groups[0]:.6f} -> {groups[-1]:.6f}")
print("the losses are those of one stream:", groups == one_stream)
assert groups == one_stream
