# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions whose NumPy code calls other functions on the GPU, blocking a thread meanwhile.

Each outer call needs another thread that launches the inner call's ops.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from models import GPU, WIDTH, matrix, random_of
from serving import Serving


class NestedCalls(Serving):
    """A layer, NumPy code that calls a function of another layer, and a third layer."""

    name = "nested_calls"

    def make(self) -> None:
        """Makes the functions."""
        draw = random_of(self.place, self.name)
        with tf.device(GPU):
            first, second, third = (tf.Variable(matrix(draw, WIDTH, WIDTH)) for _ in range(3))

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def inner(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                return tf.tanh(tf.matmul(x, second))

        def in_numpy(x: np.ndarray) -> np.ndarray:
            return np.asarray(inner(tf.constant(x)))

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def outer(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                hidden = tf.numpy_function(in_numpy, [tf.matmul(x, first)], tf.float32)
                return tf.matmul(tf.ensure_shape(hidden, [None, WIDTH]), third)

        self.function = outer

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the outer function."""
        return np.asarray(self.function(tf.constant(x)))
