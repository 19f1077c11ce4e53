# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a copy of a model on each of two GPUs, with the model's branches on stream groups.

    python examples/two_gpus.py
    TF_MULTI_STREAM_EMULATED_GPUS=2 python examples/two_gpus.py    # without GPUs

Each GPU has stream groups of its own, numbered from 0. The model is trained twice, with one
stream a GPU and with branches on groups: the losses must be the same bits, and so must the
weights of both copies.
"""

import contextlib
import os

# Read when TensorFlow is imported. "4,2": 4 groups on the first GPU, 2 on the second.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "3")
os.environ.setdefault("TF_NODE_LEVEL_MULTISTREAM", "true")

import tensorflow as tf

GPUS = ["/GPU:0", "/GPU:1"]
BRANCHES = 3
STEPS = 20

tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()  # so that bits can be compared
batches = [tf.random.normal([32, 64]) for _ in GPUS]
first_weights = [[tf.random.normal([64, 64]) / 8 for _ in range(4)] for _ in range(BRANCHES)]


def train(on_groups: bool) -> list[float]:
    """Trains from the first weights; returns the loss of each step."""
    copies = []
    for gpu in GPUS:
        with tf.device(gpu):
            copies.append([[tf.Variable(kernel) for kernel in row] for row in first_weights])

    def loss_of(x: tf.Tensor, branches: list[list[tf.Variable]]) -> tf.Tensor:
        outputs = []
        for group, branch in enumerate(branches):
            # The group of that number, of the GPU that the ops are on.
            with tf.stream(group) if on_groups else contextlib.nullcontext():
                y = x
                for kernel in branch:
                    y = tf.tanh(y @ kernel)
                outputs.append(y)
        return tf.reduce_mean((tf.add_n(outputs) - tf.sin(x)) ** 2)

    @tf.function
    def step() -> tf.Tensor:
        losses, gradients = [], []
        for gpu, x, branches in zip(GPUS, batches, copies, strict=True):
            with tf.device(gpu):
                with tf.GradientTape() as tape:
                    losses.append(loss_of(x, branches))
                gradients.append(tape.gradient(losses[-1], tf.nest.flatten(branches)))
        for number, of_copies in enumerate(zip(*gradients, strict=True)):
            with tf.device(GPUS[0]):
                change = 0.5 * tf.add_n(of_copies) / len(GPUS)
            for gpu, branches in zip(GPUS, copies, strict=True):
                with tf.device(gpu):
                    tf.nest.flatten(branches)[number].assign_sub(change)
        return tf.add_n(losses) / len(GPUS)

    losses = [float(step()) for _ in range(STEPS)]
    for variables in zip(*map(tf.nest.flatten, copies), strict=True):
        assert len({variable.numpy().tobytes() for variable in variables}) == 1
    return losses


one_stream = train(on_groups=False)
groups = train(on_groups=True)
for gpu in range(len(GPUS)):
    used = [s.group for s in tf.cuda.stream_stats() if s.gpu == gpu and s.peak_bytes_in_use]
    print(f"GPU {gpu}: groups {used} used")
print(f"loss {groups[0]:.6f} -> {groups[-1]:.6f}")
print("the losses are those of one stream a GPU:", groups == one_stream)
assert groups == one_stream
