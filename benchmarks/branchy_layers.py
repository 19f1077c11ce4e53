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
"""Layers of the models of many branches, whose weights are drawn from a seed.

`branchy_models.py` makes the models of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class Weights:
    """Draws the weights of a model; the same seed gives the same ones.

    Args:
        seed: of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def kernel(self, *shape: int, inputs: int, gain: float = 2.0) -> Any:
        """Draws a variable whose products with `inputs` numbers have `gain` times their variance.

        Args:
            *shape: of the variable.
            inputs: numbers that a result is a sum over.
            gain: 2 makes up for a relu.

        Returns:
            The variable.
        """
        values = self._random.normal(0, np.sqrt(gain / inputs), shape)
        return tf.Variable(values.astype(np.float32))

    def bias(self, width: int) -> Any:
        """Makes a variable of zeros."""
        return tf.Variable(np.zeros([width], np.float32))


class Dense(tf.Module):
    """A dense layer.

    Args:
        weights: draws its weights.
        inputs: numbers of a row.
        width: numbers of a row of the output.
        activation: after it.
    """

    def __init__(
        self, weights: Weights, inputs: int, width: int, activation: Any = tf.nn.relu
    ) -> None:
        super().__init__()
        self._kernel = weights.kernel(inputs, width, inputs=inputs)
        self._bias = weights.bias(width)
        self._activation = activation

    def __call__(self, x: Any) -> Any:
        """Returns the output for rows [batch, inputs]."""
        return self._activation(tf.nn.bias_add(tf.matmul(x, self._kernel), self._bias))


class Convolution(tf.Module):
    """A convolution with a relu after it.

    Args:
        weights: draws its weights.
        size: height and width of the filter.
        inputs: channels.
        channels: of the output.
        stride: of height and width.
        gain: of variance, before the relu.
    """

    def __init__(
        self,
        weights: Weights,
        size: int,
        inputs: int,
        channels: int,
        stride: int = 1,
        gain: float = 2.0,
    ) -> None:
        super().__init__()
        self._kernel = weights.kernel(
            size, size, inputs, channels, inputs=size * size * inputs, gain=gain
        )
        self._bias = weights.bias(channels)
        self._stride = stride

    def __call__(self, x: Any) -> Any:
        """Returns the output for images [batch, height, width, inputs]."""
        x = tf.nn.conv2d(x, self._kernel, self._stride, "SAME")
        return tf.nn.relu(tf.nn.bias_add(x, self._bias))


class Separable(tf.Module):
    """A relu, a filter for each channel, and a convolution of size 1.

    Args:
        weights: draws its weights.
        size: height and width of the filters.
        channels: of input and output.
    """

    def __init__(self, weights: Weights, size: int, channels: int) -> None:
        super().__init__()
        self._filters = weights.kernel(size, size, channels, 1, inputs=size * size)
        self._kernel = weights.kernel(1, 1, channels, channels, inputs=channels, gain=1.0)
        self._bias = weights.bias(channels)

    def __call__(self, x: Any) -> Any:
        """Returns the output for images [batch, height, width, channels]."""
        x = tf.nn.depthwise_conv2d(tf.nn.relu(x), self._filters, [1, 1, 1, 1], "SAME")
        return tf.nn.bias_add(tf.nn.conv2d(x, self._kernel, 1, "SAME"), self._bias)


def average_pool(x: Any) -> Any:
    """Means of windows of 3 x 3."""
    return tf.nn.avg_pool2d(x, 3, 1, "SAME")


def max_pool(x: Any) -> Any:
    """Largest values of windows of 3 x 3."""
    return tf.nn.max_pool2d(x, 3, 1, "SAME")


def in_turn(layers: Sequence[Callable[[Any], Any]], x: Any) -> Any:
    """Calls layers one after another."""
    for layer in layers:
        x = layer(x)
    return x
