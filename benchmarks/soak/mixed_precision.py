# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training in half precision with a loss scale, where some batches make gradients infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from models import GPU, WIDTH, Place, Results
from training import Training

# These steps have infinite gradients: they are skipped, and the scale is halved.
INFINITE = (3, 6)


class MixedPrecision(Training):
    """Keras's LossScaleOptimizer around momentum; scale and slots are compared, too."""

    name = "mixed_precision"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        with tf.device(GPU):
            self.batches = [
                tf.constant(self.x * np.float32("inf") if i in INFINITE else self.x)
                for i in range(max(INFINITE) + 2)
            ]

    def make(self) -> None:
        """Makes layers, optimizer and function."""
        with tf.device(GPU):
            layers = [tf.Variable(w) for w in self.start[0]]
            optimizer = tf.keras.optimizers.LossScaleOptimizer(
                tf.keras.optimizers.SGD(0.1, momentum=0.9),
                initial_scale=1024.0,
                dynamic_growth_steps=2,
            )
            optimizer.build(layers)
        self.variables = [*layers, *(v.value for v in optimizer.variables)]
        self.first = [v.numpy() for v in self.variables]

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def step(x: Any) -> Any:
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    y = tf.cast(x, tf.float16)
                    for w in layers:
                        y = tf.tanh(tf.matmul(y, tf.cast(w, tf.float16)))
                    # An infinite input spreads through a product; tanh would hide it.
                    loss = tf.reduce_mean(tf.square(tf.cast(y, tf.float32)))
                    loss += 0.0 * tf.reduce_mean(x) * tf.reduce_mean(layers[0])
                    scaled = optimizer.scale_loss(loss)
                optimizer.apply_gradients(zip(tape.gradient(scaled, layers), layers, strict=True))
                return loss

        self.function = step

    def restart(self) -> None:
        """Assigns, op by op."""
        self.steps = 0
        with tf.device(GPU):
            for variable, value in zip(self.variables, self.first, strict=True):
                variable.assign(value)

    def train(self) -> np.ndarray:
        """Trains on the next batch; the loss of one that is infinite counts as 0."""
        loss = self.function(self.batches[self.steps]).numpy()
        self.steps += 1
        return np.asarray(np.nan_to_num(loss))

    def weights(self) -> list[np.ndarray]:
        """Layers, slots, scale, and how many steps counted."""
        return [v.numpy() for v in self.variables]
