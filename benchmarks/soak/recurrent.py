# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers with masks; on a GPU those of cuDNN, which copies memory of the host."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf
from models import CASES, GPU, Place, Results, Work, layer_scope, random_of
from tally import Tally, distance

TIMES, FEATURES, UNITS = 12, 16, 32
# cuDNN may choose another algorithm in another process.
TOLERANCE = 1e-3


class Recurrent(Work):
    """Two layers side by side, on sequences of different lengths that are padded at the end."""

    name = "recurrent"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        draw = random_of(place, self.name)
        self.cases = []
        for case in range(CASES):
            x = draw.normal(0, 1, (4 + case, TIMES, FEATURES)).astype(np.float32)
            lengths = draw.integers(1, TIMES + 1, len(x))
            self.cases.append((x, np.arange(TIMES) < lengths[:, None]))
        # An emulated GPU has no cuDNN.
        cudnn = place.gpu and "auto"
        with tf.device(GPU):
            layers = [
                tf.keras.layers.LSTM(UNITS, use_cudnn=cudnn),
                tf.keras.layers.GRU(UNITS, use_cudnn=cudnn),
            ]
            for layer in layers:
                layer.build((None, TIMES, FEATURES))
                layer.set_weights(
                    [draw.normal(0, 0.3, w.shape).astype(np.float32) for w in layer.weights]
                )

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, TIMES, FEATURES]),
                tf.TensorSpec([None, TIMES], tf.bool),
            ]
        )
        def model(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                outputs = []
                for i, layer in enumerate(layers):
                    with layer_scope(place, i, 0):
                        outputs.append(layer(x, mask=mask))
                return outputs[0] + outputs[1]

        self.function = model

    def call(self, case: int) -> np.ndarray:
        """Calls the layers."""
        with tf.device(GPU):
            return np.asarray(self.function(*map(tf.constant, self.cases[case])))

    def results(self) -> Results:
        """The output for each input."""
        if not self.reference:
            return {str(case): self.call(case) for case in range(CASES)}
        return {}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls the layers with an input, and compares."""
        case = draw.randrange(CASES)
        tally.step()
        problem = distance(self.call(case), self.reference[str(case)], TOLERANCE)
        tally.check(problem, f"recurrent layers, input {case}")
