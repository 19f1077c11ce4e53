# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras's fit on NumPy arrays under tf.device: the data set that fit makes has ops on the GPU."""

from multistream.testing import kit

FIT = """
import keras
import numpy as np
import tensorflow as tf
keras.utils.set_random_seed(3)
x = np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32)
ids = np.arange(256, dtype=np.int32) % 100
with tf.device("/GPU:0"):
    numbers, words = keras.Input((8,)), keras.Input((), dtype="int32")
    table = keras.layers.Embedding(100, 4)(words)
    towers = [keras.layers.Dense(8, activation="relu")(numbers) for _ in range(3)]
    y = keras.layers.Dense(1)(keras.layers.Concatenate()([table, *towers]))
    model = keras.Model([numbers, words], y)
    model.compile("adam", "mse", jit_compile=False)
    losses = model.fit([x, ids], x[:, :1], batch_size=32, epochs=2, verbose=0).history["loss"]
print(losses)
"""


def test_a_model_is_fitted_to_arrays_as_on_one_stream() -> None:
    expected = kit.ok(FIT, **kit.environment(1))
    assert kit.ok(FIT, **kit.environment(4)) == expected
    assert kit.ok(FIT, **kit.environment(4, TF_NODE_LEVEL_MULTISTREAM="true")) == expected
