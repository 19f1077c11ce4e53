# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training that is fed by pipelines: a captured step from a data set, and Keras's fit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import tensorflow as tf
from models import GPU, WIDTH, Place, Results, Work, matrix, random_of
from tally import Tally
from training import STEPS, TrainFunction

BATCH, BATCHES = 8, 4
EPOCHS = (1, 2)


class Prefetched(TrainFunction):
    """Batches that a data set puts on the GPU in advance, for a step that is captured."""

    name = "prefetched"

    def make(self) -> None:
        """Makes the data set and the function."""
        super().make()
        self.captured = tf.cuda.captured(self.function)
        scales = np.linspace(0.5, 1.5, STEPS, dtype=np.float32)
        x, target = self.x, self.target
        data = tf.data.Dataset.from_tensor_slices(scales).map(lambda s: (s * x, s * target))
        # TensorFlow cannot run the copying function on an emulated GPU.
        to_gpu = tf.data.experimental.prefetch_to_device(GPU)
        self.data = data.apply(to_gpu) if self.place.gpu else data.prefetch(2)

    def restart(self) -> None:
        """Restarts the data set as well."""
        super().restart()
        self.batches = iter(self.data)

    def train(self) -> np.ndarray:
        """Calls the function."""
        return np.asarray(self.captured(*next(self.batches)))


class KerasFit(Work):
    """Keras's fit of a model with dropout, from the same start and the same seed."""

    name = "keras_fit"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        draw = random_of(place, self.name)
        self.x = draw.normal(0, 1, (BATCH * BATCHES, WIDTH)).astype(np.float32)
        self.y = np.sin(3 * self.x[:, :4]).astype(np.float32)

        class Placed(tf.keras.Model):
            """Trains on the GPU, an emulated one too."""

            def train_step(self, data: Any) -> Any:
                with tf.device(GPU):
                    return super().train_step(data)

        layers = tf.keras.layers
        with tf.device(GPU):
            inputs = tf.keras.Input([WIDTH])
            hidden = layers.Dense(WIDTH, activation="tanh")(inputs)
            hidden = layers.Dropout(0.5, seed=7)(hidden)
            self.model = Placed(inputs, layers.Dense(4)(hidden))
            optimizer = tf.keras.optimizers.Adam(0.01)
            optimizer.build(self.model.trainable_variables)
            self.model.compile(optimizer, "mse", jit_compile=False)
            trained = self.model.trainable_variables
            others = [*self.model.non_trainable_variables, *optimizer.variables]
            self.variables = [*trained, *others]
            self.start = [v.numpy() for v in self.variables]
        for i, variable in enumerate(trained):
            self.start[i] = matrix(draw, *variable.shape)

    def fit(self, epochs: int) -> list[np.ndarray]:
        """Trains from the start; returns all variables."""
        with tf.device(GPU):
            for variable, value in zip(self.variables, self.start, strict=True):
                variable.assign(value)
        self.model.fit(self.x, self.y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0)
        return [v.numpy() for v in self.variables]

    def results(self) -> Results:
        """All variables after each number of epochs."""
        return {f"{n} {i}": v for n in EPOCHS for i, v in enumerate(self.fit(n))}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Trains, and compares."""
        epochs = draw.choice(EPOCHS)
        tally.step()
        for i, found in enumerate(self.fit(epochs)):
            tally.check("" if np.all(np.isfinite(found)) else "not finite", "weights after fit")
            tally.verify(found, self.reference[f"{epochs} {i}"], f"variable {i} after fit")
