# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recordings that come and go while others are replayed: too many shapes, and models dropped."""

from __future__ import annotations

import gc
import os
import random

import numpy as np
import tensorflow as tf
from models import GPU, WIDTH, Place, Results, Work, matrix, random_of
from tally import Tally

# Numbers of rows; their recordings together are more than a MiB.
SIZES = range(1, 49, 2)
WIDE = 512
OFTEN = 4  # half of the calls use these first few sizes
CALLS = 4  # on each group, the most of a model that is loaded: one is recorded, one replayed


class Evictions(Work):
    """A function that is called with many shapes, some of them often."""

    name = "evictions"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        draw = random_of(place, self.name)
        self.cases = [draw.normal(0, 1, (rows, WIDTH)).astype(np.float32) for rows in SIZES]
        with tf.device(GPU):
            first, second = (
                tf.Variable(matrix(draw, *shape)) for shape in ((WIDTH, WIDE), (WIDE, 8))
            )

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def model(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                hidden = tf.tanh(tf.matmul(x, first))
                return tf.matmul(tf.tanh(hidden * 2.0) + hidden, second)

        self.call = tf.cuda.serving_callable(model)

    def results(self) -> Results:
        """The output for each size."""
        with tf.device(GPU):
            return {str(i): self.call(x) for i, x in enumerate(self.cases)}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls the function with an input, and compares."""
        case = draw.randrange(OFTEN if draw.random() < 0.5 else len(self.cases))
        tally.step()
        with tf.device(GPU):
            found = self.call(self.cases[case])
        tally.verify(found, self.reference[str(case)], f"{len(self.cases[case])} rows")


class ModelsComeAndGo(Work):
    """A SavedModel is loaded, called until it is replayed, and dropped."""

    name = "models_come_and_go"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        draw = random_of(place, self.name)
        self.x = draw.normal(0, 1, (8, WIDTH)).astype(np.float32)
        module = tf.Module()
        module.weights = [tf.Variable(matrix(draw, WIDTH, WIDTH)) for _ in range(3)]

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH], name="x")])
        def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
            for w in module.weights:
                x = tf.tanh(tf.matmul(x, w))
            return {"y": x}

        self.folder = os.path.join(place.folder, self.name)
        tf.saved_model.save(module, self.folder, signatures={"serving_default": serve})

    def outputs(self, calls: int) -> list[np.ndarray]:
        """The results of the model, loaded for these calls only."""
        with tf.device(GPU):
            loaded = tf.saved_model.load(self.folder)
            call = tf.cuda.serving_callable(loaded.signatures["serving_default"])
            return [call(x=self.x)["y"] for _ in range(calls)]

    def results(self) -> Results:
        """The output."""
        return {"y": self.outputs(1)[0]}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Loads, calls and drops one model."""
        tally.step()
        for y in self.outputs(draw.randint(1, CALLS * self.place.groups)):
            tally.verify(y, self.reference["y"], "a model that was just loaded")
        gc.collect()
