# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that look up strings: tables on the host in the middle of a step for the GPU."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from models import CASES, GPU, WIDTH, matrix, random_of
from serving import Serving

WORDS = 200


class Strings(Serving):
    """A static hash table and Keras's StringLookup, rows of an embedding, and a layer."""

    name = "strings"

    def make(self) -> None:
        """Makes the tables and the model."""
        draw = random_of(self.place, self.name)
        words = [f"word {i}" for i in range(WORDS)]
        # A fourth of the strings are in no table.
        self.cases = [
            np.array([f"word {i}" for i in draw.integers(0, WORDS * 4 // 3, 8 + 4 * case)])
            for case in range(CASES)
        ]
        ids = tf.lookup.KeyValueTensorInitializer(words, tf.range(WORDS, dtype=tf.int64))
        self.table = tf.lookup.StaticHashTable(ids, default_value=WORDS)
        self.lookup = tf.keras.layers.StringLookup(vocabulary=words)
        with tf.device(GPU):
            rows = tf.Variable(matrix(draw, WORDS + 1, WIDTH))
            weights = tf.Variable(matrix(draw, WIDTH, WIDTH))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def model(text: tf.Tensor) -> tf.Tensor:
            with tf.device("/CPU:0"):
                first, second = self.table.lookup(text), self.lookup(text)
            with tf.device(GPU):
                return tf.matmul(tf.gather(rows, first) - tf.gather(rows, second), weights)

        self.function = model

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the model."""
        return np.asarray(self.function(tf.constant(x)))
