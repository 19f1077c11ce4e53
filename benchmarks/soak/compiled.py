# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A function that XLA compiles, called from many threads with batches of several sizes."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf
from models import CASES, GPU, WIDTH, Place, Results, Work, branch_weights, cases_of
from tally import Tally, distance

# In another process, and for another stream group of a GPU, XLA may choose other algorithms, whose
# last bits differ.
TOLERANCE = 0.02


class Compiled(Work):
    """A tf.function with `jit_compile`, called by eager code and by another function."""

    name = "compiled"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.cases = cases_of(place, self.name)[:3]
        with tf.device(GPU):
            layers = [tf.Variable(w) for w in branch_weights(place, self.name)[0]]

        @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, WIDTH])])
        def compiled(x: tf.Tensor) -> tf.Tensor:
            for w in layers:
                x = tf.tanh(tf.matmul(x, w))
            return x

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def calls(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                return compiled(x) + 1.0

        self.functions = [compiled, calls]
        # Results of this process; on an emulated GPU all calls of a process give the same bits.
        self.own: Results = {}

    def call(self, function: int, case: int) -> np.ndarray:
        """Calls one of the functions."""
        with tf.device(GPU):
            return np.asarray(self.functions[function](tf.constant(self.cases[case])))

    def results(self) -> Results:
        """Results of both functions, which may differ a little from process to process."""
        for function in range(len(self.functions)):
            for case in range(len(self.cases)):
                self.own[f"{function} {case}"] = self.call(function, case)
        if not self.reference:
            return self.own
        for name, value in self.own.items():
            if problem := distance(value, self.reference[name], TOLERANCE):
                raise ValueError(f"compiled, {name}: {problem}")
        return {}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls one of the functions with an input, and compares."""
        function, case = draw.randrange(len(self.functions)), draw.randrange(CASES) % 3
        tally.step()
        found = self.call(function, case)
        tolerance = TOLERANCE if self.place.gpu else 0.0
        problem = distance(found, self.own[f"{function} {case}"], tolerance)
        tally.check(problem, f"function {function}, input {case}")
