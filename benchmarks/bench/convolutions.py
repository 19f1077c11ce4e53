# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow models of convolutions in branches, whose weights are drawn from a seed.

    inception  blocks of four branches of convolutions, concatenated
    nasnet     cells of five pairs of small branches; each cell has the outputs of the
               two cells before as its inputs, and adds the two branches of a pair

A model can have hand marks: each branch is then in the scope of a stream group, one after another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .models import SEED

CLASSES = 10


def on_group(group: int, scoped: bool) -> Any:
    """A scope of a stream group.

    Args:
        group: any number; groups are counted round.
        scoped: False gives a context that does nothing.

    Returns:
        The context manager.
    """
    if not scoped:
        return contextlib.nullcontext()
    return tf.cuda.stream_scope(tf.cuda.get_stream(group % tf.cuda.stream_group_count()))


class Weights:
    """Draws the weights of a model: always the same ones."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)

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
    """

    def __init__(self, weights: Weights, inputs: int, width: int) -> None:
        super().__init__()
        self._kernel = weights.kernel(inputs, width, inputs=inputs)
        self._bias = weights.bias(width)

    def __call__(self, x: Any) -> Any:
        """Returns the output for rows [batch, inputs]."""
        return tf.nn.bias_add(tf.matmul(x, self._kernel), self._bias)


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


class InceptionBlock(tf.Module):
    """Four branches of convolutions, each with `channels` at its end, concatenated.

    Args:
        weights: draws its weights.
        inputs: channels.
        channels: of each branch.
        first_group: stream group of the first branch; the others follow.
        marks: whether the branches are in scopes of stream groups.
    """

    def __init__(
        self, weights: Weights, inputs: int, channels: int, first_group: int, marks: bool
    ) -> None:
        super().__init__()

        def convolutions(*sizes: int) -> list[Any]:
            wide = [inputs, channels, channels]
            return [Convolution(weights, size, wide[i], channels) for i, size in enumerate(sizes)]

        self._branches = [
            convolutions(1),
            convolutions(1, 3),
            convolutions(1, 3, 3),
            [average_pool, *convolutions(1)],
        ]
        self._first_group = first_group
        self._marks = marks

    def __call__(self, x: Any) -> Any:
        """Returns the output for images [batch, height, width, inputs]."""
        outputs = []
        for group, branch in enumerate(self._branches, self._first_group):
            with on_group(group, self._marks):
                outputs.append(in_turn(branch, x))
        return tf.concat(outputs, 3)


class Inception(tf.Module):
    """A stem, blocks of four branches, the mean over the image, a dense layer.

    Args:
        sizes: `channels` of each branch, and `blocks`.
        marks: whether the branches are in scopes of stream groups.
    """

    def __init__(self, sizes: Mapping[str, int], marks: bool) -> None:
        super().__init__()
        weights = Weights()
        channels = sizes["channels"]
        self._stem = Convolution(weights, 3, 3, channels, stride=2)
        wide = [channels, *[4 * channels] * sizes["blocks"]]
        self._blocks = [
            InceptionBlock(weights, wide[block], channels, 4 * block, marks)
            for block in range(sizes["blocks"])
        ]
        self._dense = Dense(weights, wide[-1], CLASSES)

    def __call__(self, images: Any) -> Any:
        """Returns the outputs for images [batch, image, image, 3]."""
        x = in_turn([self._stem, *self._blocks], images)
        return self._dense(tf.reduce_mean(x, [1, 2]))


class NasnetCell(tf.Module):
    """Pairs of branches on the outputs of two cells before; the sums are concatenated.

    Args:
        weights: draws its weights.
        inputs: channels of the outputs of the last cell but one, and of the last.
        channels: of each branch.
        first_group: stream group of the first pair; the others follow.
        marks: whether the pairs are in scopes of stream groups.
    """

    PAIRS = 5

    def __init__(
        self, weights: Weights, inputs: Sequence[int], channels: int, first_group: int, marks: bool
    ) -> None:
        super().__init__()
        # The sums of a cell have twice the variance of its inputs: no gain makes up for it.
        self._squeeze = [Convolution(weights, 1, wide, channels, gain=1.0) for wide in inputs]
        before, last = 0, 1

        def separable(size: int) -> Any:
            return Separable(weights, size, channels)

        # Each branch: what it does, and with which of the two inputs.
        self._pairs = [
            ((separable(3), last), (tf.identity, last)),
            ((separable(3), before), (separable(5), last)),
            ((average_pool, last), (tf.identity, before)),
            ((average_pool, before), (max_pool, before)),
            ((separable(5), before), (separable(3), before)),
        ]
        self._first_group = first_group
        self._marks = marks

    def __call__(self, before: Any, last: Any) -> Any:
        """Returns the output for the outputs of the last cell but one, and of the last."""
        inputs = [squeeze(x) for squeeze, x in zip(self._squeeze, (before, last), strict=True)]
        sums = []
        for group, ((left, x), (right, y)) in enumerate(self._pairs, self._first_group):
            with on_group(group, self._marks):
                sums.append(left(inputs[x]) + right(inputs[y]))
        return tf.concat(sums, 3)


class Nasnet(tf.Module):
    """A stem, cells of pairs of branches, the mean over the image, a dense layer.

    Args:
        sizes: `channels` of each branch, and `cells`.
        marks: whether the pairs are in scopes of stream groups.
    """

    def __init__(self, sizes: Mapping[str, int], marks: bool) -> None:
        super().__init__()
        weights = Weights()
        channels, pairs = sizes["channels"], NasnetCell.PAIRS
        self._stem = Convolution(weights, 3, 3, channels, stride=2)
        wide = [channels, channels, *[pairs * channels] * sizes["cells"]]
        self._cells = [
            NasnetCell(weights, wide[cell : cell + 2], channels, pairs * cell, marks)
            for cell in range(sizes["cells"])
        ]
        self._dense = Dense(weights, wide[-1], CLASSES)

    def __call__(self, images: Any) -> Any:
        """Returns the outputs for images [batch, image, image, 3]."""
        before = last = self._stem(images)
        for cell in self._cells:
            before, last = last, cell(before, last)
        return self._dense(tf.reduce_mean(tf.nn.relu(last), [1, 2]))


MODELS: dict[str, Any] = {"inception": Inception, "nasnet": Nasnet}
