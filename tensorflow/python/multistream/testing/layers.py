# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small model of two branches for tests of sessions, and feeds for it."""

import contextlib
from typing import Any

import tensorflow.compat.v1 as tf

from multistream.testing.cluster import numbers


def stream(number: int, scoped: bool = True) -> Any:
    return tf.stream(number) if scoped else contextlib.nullcontext()


class Layers:
    """Some layers, with the loss and its training step, in a graph of their own."""

    def __init__(self, scoped: bool = False, device: str = "/GPU:0") -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(device):
            self.x = tf.placeholder(tf.float32, [None, 32], "x")
            weights = [
                tf.get_variable(f"w{i}", initializer=numbers(i, 32, 32), use_resource=True)
                for i in range(4)
            ]
            branches = []
            for i in range(2):
                with stream(i + 1, scoped):
                    y = tf.tanh(self.x @ weights[2 * i])
                    branches.append(tf.sin(y @ weights[2 * i + 1]))
            self.y = tf.reduce_sum(branches[0] * branches[1], axis=1)
            self.loss = tf.reduce_mean(tf.square(self.y - 1.0))
            self.train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(self.loss)
            self.start = tf.global_variables_initializer()
            self.weights = weights


FEEDS = [numbers(100 + i, 8 + i, 32) for i in range(8)]
