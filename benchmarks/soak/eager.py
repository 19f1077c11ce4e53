# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Single ops from many threads, compared with NumPy.

Numbers are whole and so small that floats hold every sum and product exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from models import GPU, Work
from tally import Tally

ROWS = (1, 7, 32, 100)
COLUMNS = 24
APART = 1024  # argmax of equal numbers is the first one
# Each op on a matrix of whole floats, in TensorFlow and in NumPy.
OPS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "add": (lambda x: x + 3.0, lambda x: x + np.float32(3)),
    "multiply": (lambda x: x * x, lambda x: x * x),
    "negative": (tf.negative, np.negative),
    "relu": (tf.nn.relu, lambda x: np.maximum(x, 0)),
    "sum": (
        lambda x: tf.reduce_sum(x, axis=0, keepdims=True),
        lambda x: x.sum(axis=0, keepdims=True),
    ),
    "maximum": (
        lambda x: tf.reduce_max(x, axis=1, keepdims=True),
        lambda x: x.max(axis=1, keepdims=True),
    ),
    "transpose": (tf.transpose, lambda x: np.ascontiguousarray(x.T)),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), lambda x: x @ x.T),
    "reverse": (lambda x: tf.reverse(x, [0]), lambda x: x[::-1]),
    "concat": (lambda x: tf.concat([x, -x], axis=1), lambda x: np.concatenate([x, -x], axis=1)),
    "slice": (lambda x: x[::2, 1:] + 0.0, lambda x: x[::2, 1:]),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), lambda x: np.pad(x, [[1, 0], [0, 2]])),
    "tile": (lambda x: tf.tile(x, [2, 1]), lambda x: np.tile(x, [2, 1])),
    "where": (lambda x: tf.where(x > 0, x, -2.0 * x), lambda x: np.where(x > 0, x, -2 * x)),
    "gather": (
        lambda x: tf.gather(x, np.arange(len(x), dtype=np.int64)[::-1] // 2),
        lambda x: x[np.arange(len(x))[::-1] // 2],
    ),
    "cumsum": (lambda x: tf.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1)),
    "argmax": (
        lambda x: tf.cast(tf.argmax(x * APART - tf.range(0.0, x.shape[1]), axis=1), tf.float32)[
            :, None
        ],
        lambda x: (x * APART - np.arange(x.shape[1])).argmax(axis=1)[:, None],
    ),
    "double": (
        lambda x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32),
        lambda x: x * 2,
    ),
    "split": (lambda x: tf.add_n(tf.split(tf.tile(x, [1, 2]), 2, axis=1)), lambda x: x + x),
}
# With more ops, numbers could become too large.
CHAIN = 2


class EagerOps(Work):
    """A few ops one after another, on a matrix that is drawn."""

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Runs the ops, and compares."""
        names = draw.choices(list(OPS), k=CHAIN)
        x = np.random.default_rng(draw.randrange(2**31)).integers(
            -4, 5, [draw.choice(ROWS), COLUMNS]
        )
        expected = x.astype(np.float32)
        with tf.device(GPU):
            found = tf.constant(expected)
            for name in names:
                in_tensorflow, in_numpy = OPS[name]
                tally.step()
                found = in_tensorflow(found)
                expected = np.asarray(in_numpy(expected), np.float32)
        # TensorFlow and NumPy may differ in the sign of zero.
        tally.verify(found.numpy() + 0.0, expected + np.float32(0), " of ".join(names[::-1]))
