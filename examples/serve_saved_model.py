# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves a SavedModel from threads: each call runs on the stream group with the least to do.

Nothing in the program is about streams; the variable below is all that it takes.

    python examples/serve_saved_model.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/serve_saved_model.py    # without a GPU

At the end all answers are compared with those of one thread, bit by bit.
"""

import concurrent.futures
import os
import tempfile

# Read when TensorFlow is imported.
os.environ.setdefault("TF_GPU_STREAM_GROUP_COUNT", "4")

import tensorflow as tf

THREADS = 8
QUERIES = 200


class Model(tf.Module):
    """Stands for your model: dense layers, one small kernel after another."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = [tf.Variable(tf.random.normal([64, 64]) / 8) for _ in range(12)]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="features")])
    def serve(self, features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns a probability for each row and class."""
        y = features
        for kernel in self.kernels:
            y = tf.nn.relu(y @ kernel)
        return {"probabilities": tf.nn.softmax(y)}


with tempfile.TemporaryDirectory() as folder:
    model = Model()
    tf.saved_model.save(model, folder, signatures={"serving_default": model.serve})
    with tf.device("/GPU:0"):  # a real GPU is chosen without it, an emulated one is not
        signature = tf.saved_model.load(folder).signatures["serving_default"]


def answer(features: tf.Tensor) -> bytes:
    """What a thread of your server does with a query."""
    with tf.device("/GPU:0"):
        return bytes(signature(features=features)["probabilities"].numpy())


queries = [tf.random.normal([16, 64]) for _ in range(QUERIES)]
expected = [answer(features) for features in queries]
with concurrent.futures.ThreadPoolExecutor(THREADS) as clients:
    answers = list(clients.map(answer, queries))

for group in tf.cuda.stream_stats():
    print(f"group {group.group}: {group.steps_started} steps")
wrong = sum(a != b for a, b in zip(answers, expected, strict=True))
print(f"{wrong} of {QUERIES} answers differ from those of one thread")
assert wrong == 0
