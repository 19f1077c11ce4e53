# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow models of convolutions in branches, whose weights are drawn from a seed.

    inception  blocks of four branches of convolutions, concatenated
    nasnet     cells of five pairs of small branches; each cell has the outputs of the
               two cells before as its inputs, and adds the two branches of a pair

A model can have hand marks: each branch is then in the scope of a stream group, one after another.
Images are [batch, height, width, channels].
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .models import SEED

CLASSES = 10
PAIRS = 5  # of a NASNet cell
Layer = Callable[[Any], Any]


def on_group(group: int, scoped: bool) -> Any:
    """A scope of a stream group, counted round; with `scoped` False a context that does nothing."""
    if not scoped:
        return contextlib.nullcontext()
    return tf.cuda.stream_scope(tf.cuda.get_stream(group % tf.cuda.stream_group_count()))


class Layers:
    """Makes layers, whose weights, `variables`, are always the same ones."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)
        self.variables: list[Any] = []

    def _kernel(self, *shape: int, inputs: int, gain: float = 2.0) -> Any:
        """Draws weights whose products have `gain` times the inputs' variance; 2 is for a relu."""
        values = self._random.normal(0, np.sqrt(gain / inputs), shape)
        self.variables.append(tf.Variable(values.astype(np.float32)))
        return self.variables[-1]

    def _bias(self, width: int) -> Any:
        self.variables.append(tf.Variable(np.zeros([width], np.float32)))
        return self.variables[-1]

    def dense(self, inputs: int, width: int) -> Layer:
        """A dense layer on the mean of each channel of images."""
        kernel, bias = self._kernel(inputs, width, inputs=inputs), self._bias(width)
        return lambda x: tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, [1, 2]), kernel), bias)

    def convolution(
        self, size: int, inputs: int, channels: int, stride: int = 1, gain: float = 2.0
    ) -> Layer:
        """A convolution with filters of `size`, from `inputs` to `channels`, and a relu."""
        area = size * size * inputs
        kernel = self._kernel(size, size, inputs, channels, inputs=area, gain=gain)
        bias = self._bias(channels)
        return lambda x: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, stride, "SAME"), bias))

    def separable(self, size: int, channels: int) -> Layer:
        """A relu, a filter for each channel, and a convolution of size 1."""
        filters = self._kernel(size, size, channels, 1, inputs=size * size)
        kernel = self._kernel(1, 1, channels, channels, inputs=channels, gain=1.0)
        bias = self._bias(channels)

        def call(x: Any) -> Any:
            x = tf.nn.depthwise_conv2d(tf.nn.relu(x), filters, [1, 1, 1, 1], "SAME")
            return tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias)

        return call


def average_pool(x: Any) -> Any:
    """Means of windows of 3 x 3."""
    return tf.nn.avg_pool2d(x, 3, 1, "SAME")


def in_turn(layers: Sequence[Layer], x: Any) -> Any:
    """Calls layers one after another."""
    for layer in layers:
        x = layer(x)
    return x


def inception_block(
    layers: Layers, inputs: int, channels: int, first_group: int, marks: bool
) -> Layer:
    """Four branches of convolutions, each with `channels` at its end, concatenated."""

    def convolutions(*sizes: int) -> list[Layer]:
        wide = [inputs, channels, channels]
        return [layers.convolution(size, wide[i], channels) for i, size in enumerate(sizes)]

    branches = [
        convolutions(1),
        convolutions(1, 3),
        convolutions(1, 3, 3),
        [average_pool, *convolutions(1)],
    ]

    def call(x: Any) -> Any:
        outputs = []
        for group, branch in enumerate(branches, first_group):
            with on_group(group, marks):
                outputs.append(in_turn(branch, x))
        return tf.concat(outputs, 3)

    return call


def inception(layers: Layers, sizes: Mapping[str, int], marks: bool) -> Layer:
    """A stem, blocks of four branches, the mean over the image, a dense layer."""
    channels = sizes["channels"]
    wide = [channels, *[4 * channels] * sizes["blocks"]]
    parts = [layers.convolution(3, 3, channels, stride=2)]
    for block in range(sizes["blocks"]):
        parts.append(inception_block(layers, wide[block], channels, 4 * block, marks))
    parts.append(layers.dense(wide[-1], CLASSES))
    return lambda images: in_turn(parts, images)


def nasnet_cell(
    layers: Layers, inputs: Sequence[int], channels: int, first_group: int, marks: bool
) -> Callable[[Any, Any], Any]:
    """Pairs of branches on the outputs of two cells before; the sums are concatenated."""
    # The sums of a cell have twice the variance of its inputs: no gain makes up for it.
    squeezes = [layers.convolution(1, wide, channels, gain=1.0) for wide in inputs]
    before, last = 0, 1

    def separable(size: int) -> Layer:
        return layers.separable(size, channels)

    # Each branch: what it does, and with which of the two inputs.
    pairs: list[tuple[tuple[Layer, int], tuple[Layer, int]]] = [
        ((separable(3), last), (tf.identity, last)),
        ((separable(3), before), (separable(5), last)),
        ((average_pool, last), (tf.identity, before)),
        ((average_pool, before), (lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME"), before)),
        ((separable(5), before), (separable(3), before)),
    ]

    def call(*outputs: Any) -> Any:
        squeezed = [squeeze(x) for squeeze, x in zip(squeezes, outputs, strict=True)]
        sums = []
        for group, ((left, x), (right, y)) in enumerate(pairs, first_group):
            with on_group(group, marks):
                sums.append(left(squeezed[x]) + right(squeezed[y]))
        return tf.concat(sums, 3)

    return call


def nasnet(layers: Layers, sizes: Mapping[str, int], marks: bool) -> Layer:
    """A stem, cells of pairs of branches, the mean over the image, a dense layer."""
    channels = sizes["channels"]
    stem = layers.convolution(3, 3, channels, stride=2)
    wide = [channels, channels, *[PAIRS * channels] * sizes["cells"]]
    cells = [
        nasnet_cell(layers, wide[cell : cell + 2], channels, PAIRS * cell, marks)
        for cell in range(sizes["cells"])
    ]
    dense = layers.dense(wide[-1], CLASSES)

    def call(images: Any) -> Any:
        before = last = stem(images)
        for cell in cells:
            before, last = last, cell(before, last)
        return dense(tf.nn.relu(last))

    return call


MODELS: Mapping[str, Callable[[Layers, Mapping[str, int], bool], Layer]] = {
    "inception": inception,
    "nasnet": nasnet,
}
