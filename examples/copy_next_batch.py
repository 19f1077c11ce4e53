# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Double buffering: the next batch is copied to the GPU while the model trains on this one.

    python examples/copy_next_batch.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/copy_next_batch.py    # without a GPU

    group 1   copy 0 | copy 1 | copy 2          | copy 3
    group 0          | train 0         | train 1         | train 2

A second thread calls `copy` on group 1; steps that change variables run on group 0. The
losses must be the bits of copying and training one after the other.
"""

import concurrent.futures
import os

# Read when TensorFlow is imported.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "2")

import tensorflow as tf

BATCHES = 12
LAYERS = 4
COPY_GROUP = 1

tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()  # so that bits can be compared
with tf.device("/CPU:0"):
    batches = [tf.random.normal([2048, 64]) for _ in range(BATCHES)]
first_weights = [tf.random.normal([64, 64]) / 8 for _ in range(LAYERS)]
with tf.device("/GPU:0"):
    kernels = [tf.Variable(weights) for weights in first_weights]


@tf.function
def copy(batch: tf.Tensor) -> tf.Tensor:
    """Copies a batch to the GPU."""
    with tf.device("/GPU:0"):
        return tf.identity(batch)


@tf.function
def train(x: tf.Tensor) -> tf.Tensor:
    """Trains on a batch that is on the GPU; returns the loss."""
    with tf.device("/GPU:0"):
        with tf.GradientTape() as tape:
            y = x
            for kernel in kernels:
                y = tf.tanh(y @ kernel)
            loss = tf.reduce_mean((y - tf.sin(x)) ** 2)
        for kernel, gradient in zip(kernels, tape.gradient(loss, kernels), strict=True):
            kernel.assign_sub(0.5 * gradient)
        return loss


def copied(number: int) -> tf.Tensor:
    """Copies a batch on the group for copies, whichever thread calls."""
    with tf.cuda.stream_group(COPY_GROUP):
        return copy(batches[number])


def double_buffered() -> list[float]:
    """Trains on each batch while a second thread copies the next; returns the losses."""
    losses = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as copier:
        coming = copier.submit(copied, 0)
        for number in range(BATCHES):
            x = coming.result()
            if number + 1 < BATCHES:
                coming = copier.submit(copied, number + 1)
            # float() waits for the loss: no more than two batches are on the GPU.
            losses.append(float(train(x)))
    return losses


expected = [float(train(copied(number))) for number in range(BATCHES)]
for kernel, weights in zip(kernels, first_weights, strict=True):
    kernel.assign(weights)
losses = double_buffered()
for stats in tf.cuda.stream_stats():
    print(f"group {stats.group}: {stats.steps_started} steps")
print(f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")
print("the losses are those of one batch after the other:", losses == expected)
assert losses == expected
