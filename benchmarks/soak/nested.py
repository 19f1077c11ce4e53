# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Functions whose NumPy code calls other functions on the GPU: calls that block a thread meanwhile.

Each of them needs a thread that launches the inner call's ops while its own is blocked.
"""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf
from models import CASES, GPU, WIDTH, Place, Results, Work, cases_of, matrix, random_of
from tally import Tally


class NestedCalls(Work):
    """A layer, NumPy code that calls a function of another layer, and a third layer."""

    name = "nested_calls"

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.cases = cases_of(place, self.name)
        draw = random_of(place, self.name)
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

    def call(self, case: int) -> np.ndarray:
        """Calls the outer function."""
        return np.asarray(self.function(tf.constant(self.cases[case])))

    def results(self) -> Results:
        """The output for each input."""
        return {str(case): self.call(case) for case in range(CASES)}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls it with an input and compares."""
        case = draw.randrange(CASES)
        tally.step()
        tally.verify(self.call(case), self.reference[str(case)], f"nested calls, input {case}")
