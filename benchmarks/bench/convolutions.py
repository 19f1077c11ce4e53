# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of convolutions in branches, as those of models.py, but of TensorFlow alone.

    inception  blocks of four branches of convolutions, concatenated
    nasnet     cells of five pairs of small branches; each cell has the outputs of the
               two cells before as its inputs, and adds the two branches of a pair

Images are [batch, height, width, channels].
"""

from typing import Any

import tensorflow as tf

from .models import Weights

CLASSES = 10


def convolution(
    w: Weights, name: str, x: Any, size: int, channels: int, stride: int = 1, gain: float = 2.0
) -> Any:
    """A convolution with filters of `size`, and a relu.

    Its products have `gain` times the input's variance; 2 is for a relu.
    """
    shape = (size, size, x.shape[-1], channels)
    kernel = w.normal(f"{name}/kernel", *shape, inputs=size * size * x.shape[-1] / gain)
    bias = w.uniform(f"{name}/bias", 0, 0, channels)
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, stride, "SAME"), bias))


def separable(w: Weights, name: str, x: Any, size: int) -> Any:
    """A relu, a filter for each channel, and a convolution of size 1."""
    channels = x.shape[-1]
    filters = w.normal(f"{name}/filters", size, size, channels, 1, inputs=size * size / 2)
    kernel = w.normal(f"{name}/kernel", 1, 1, channels, channels, inputs=channels)
    x = tf.nn.depthwise_conv2d(tf.nn.relu(x), filters, [1, 1, 1, 1], "SAME")
    x = tf.nn.conv2d(x, kernel, 1, "SAME")
    return tf.nn.bias_add(x, w.uniform(f"{name}/bias", 0, 0, channels))


def average_pool(x: Any) -> Any:
    """Means of windows of 3 x 3."""
    return tf.nn.avg_pool2d(x, 3, 1, "SAME")


def classes(w: Weights, x: Any) -> Any:
    """A dense layer on the mean of each channel of images."""
    kernel = w.normal("last/kernel", x.shape[-1], CLASSES, inputs=x.shape[-1] / 2)
    product = tf.matmul(tf.reduce_mean(x, [1, 2]), kernel)
    return tf.nn.bias_add(product, w.uniform("last/bias", 0, 0, CLASSES))


def inception(ops: Any, w: Weights, x: Any, channels: int, blocks: int) -> Any:
    """A stem, blocks of four branches, the mean over the image, a dense layer."""
    x = convolution(w, "stem", x, 3, channels, stride=2)
    for block in range(blocks):
        outputs = []
        for branch, sizes in enumerate(((1,), (1, 3), (1, 3, 3), (1,))):
            with ops.branch(4 * block + branch):
                y = average_pool(x) if branch == 3 else x
                for i, size in enumerate(sizes):
                    y = convolution(w, f"block{block}/branch{branch}/{i}", y, size, channels)
                outputs.append(y)
        x = tf.concat(outputs, 3)
    return classes(w, x)


def nasnet_cell(
    ops: Any, w: Weights, at: str, before: Any, last: Any, channels: int, first_group: int
) -> Any:
    """Pairs of branches on the outputs of two cells before; the sums are concatenated."""
    # The sums of a cell have twice the variance of its inputs: no gain makes up for it.
    a, b = (
        convolution(w, f"{at}/squeeze{i}", x, 1, channels, gain=1.0)
        for i, x in enumerate((before, last))
    )

    def small(number: int, x: Any, size: int) -> Any:
        return separable(w, f"{at}/{number}", x, size)

    pairs = (
        lambda: small(0, b, 3) + b,
        lambda: small(1, a, 3) + small(2, b, 5),
        lambda: average_pool(b) + a,
        lambda: average_pool(a) + tf.nn.max_pool2d(a, 3, 1, "SAME"),
        lambda: small(3, a, 5) + small(4, a, 3),
    )
    sums = []
    for group, pair in enumerate(pairs, first_group):
        with ops.branch(group):
            sums.append(pair())
    return tf.concat(sums, 3)


def nasnet(ops: Any, w: Weights, x: Any, channels: int, cells: int) -> Any:
    """A stem, cells of five pairs of branches, the mean over the image, a dense layer."""
    before = last = convolution(w, "stem", x, 3, channels, stride=2)
    for i in range(cells):
        cell = nasnet_cell(ops, w, f"cell{i}", before, last, channels, 5 * i)
        before, last = last, cell
    return classes(w, tf.nn.relu(last))
