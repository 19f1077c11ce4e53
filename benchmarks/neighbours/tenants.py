# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tenants: the one in a hurry, and its neighbours. All models are the zoo's, but for `large`.

Each is made for a setting's way to call: by tf.cuda.serving_callable, which hardly holds the GIL,
or by calls of a tf.function.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from zoo import models

INPUTS = 8
# Of `large`, by size: width of the matrices, and products in a call. A product of 8192 x 8192
# matrices in TensorFloat-32 takes 2 to 5 ms on an H200.
_LARGE = {"small": (64, 4), "full": (8192, 4)}
_TRAINED_ROWS = {"small": 32, "full": 512}


class Hurry(NamedTuple):
    """The tenant that is in a hurry.

    Attributes:
      call: calls the model with an input.
      inputs: arrays of each.
      expected: the bytes of each result.
    """

    call: Callable[..., np.ndarray]
    inputs: Sequence[tuple[np.ndarray, ...]]
    expected: Sequence[bytes]


class Neighbour(NamedTuple):
    """A neighbour.

    Attributes:
      clients: how many threads call without a pause.
      call: makes a call, of a thread and how often this has called before.
    """

    clients: int
    call: Callable[[int, int], Any]


def make_hurry(serving: bool) -> Hurry:
    """Keras's DLRM with 26 columns of int32 ids and 13 numbers, 32 rows a call."""
    made = models.make("Keras: DLRM")
    batches = [made.inputs() for _ in range(2 * INPUTS)]  # of 16 rows
    inputs = [
        tuple(np.concatenate(pair) for pair in zip(*batches[i : i + 2], strict=True))
        for i in range(0, 2 * INPUTS, 2)
    ]

    def model(ids: Any, numbers: Any) -> Any:
        return made.call([ids, numbers])

    specs = _specs(inputs[0])
    direct = tf.cuda.captured(tf.function(model, input_signature=specs), mode="off")
    expected = []
    for arrays in inputs:
        # A function of tensors on the GPU may have other last bits than one of the host's.
        with tf.device("/CPU:0") if serving else contextlib.nullcontext():
            tensors = [tf.constant(x) for x in arrays]
        expected.append(direct(*tensors).numpy().tobytes())
    return Hurry(_caller(tf.function(model, input_signature=specs), serving), inputs, expected)


def _small(size: str, serving: bool) -> Neighbour:
    """Small kernels: a Transformer of two layers of 64 units, 32 tokens, 16 rows."""
    made = models.make("Keras: transformer")
    inputs = [(made.inputs(),) for _ in range(INPUTS)]
    call = _caller(tf.function(made.call, input_signature=_specs(inputs[0])), serving)
    return Neighbour(4, lambda client, count: call(*inputs[(client + count) % INPUTS]))


def _training(size: str, serving: bool) -> Neighbour:
    """Training: a DLRM with Adam, 512 rows a step."""
    made = models.make("Keras: DLRM")
    rows = _TRAINED_ROWS[size]
    random = np.random.default_rng(1)
    inputs = [
        (
            random.integers(0, models.ROWS, (rows, 26), np.int32),
            random.random((rows, 13), np.float32),
            random.integers(0, 2, (rows, 1)).astype(np.float32),
        )
        for _ in range(INPUTS)
    ]
    made.keras.compile(tf.keras.optimizers.Adam(1e-3), "mse", jit_compile=False)
    made.keras.optimizer.build(made.keras.trainable_variables)

    @tf.function(input_signature=_specs(inputs[0], rows))
    def step(ids: Any, numbers: Any, labels: Any) -> Any:
        return made.keras.train_step(([ids, numbers], labels))

    call = _caller(step, serving)
    return Neighbour(1, lambda _, count: call(*inputs[count % INPUTS]))


def _large(size: str, serving: bool) -> Neighbour:
    """Large kernels: products of matrices of which each fills the GPU for milliseconds.

    They are not captured: launches are no part of their time, and the recordings of 8 groups would
    take more than TF_MULTI_STREAM_CAPTURE_MB.
    """
    width, products = _LARGE[size]
    weights = tf.Variable(tf.random.stateless_normal([width, width], [1, 2]) / width**0.5)
    inputs = [np.random.default_rng(i).random((width, 1), np.float32) for i in range(INPUTS)]

    @tf.cuda.captured(mode="off")
    @tf.function(input_signature=_specs(inputs[:1]))
    def model(x: Any) -> Any:
        x = x * weights
        for _ in range(products):
            x = x @ weights
        return tf.reduce_mean(x, 1)

    call = _caller(model, serving)
    return Neighbour(2, lambda client, count: call(inputs[(client + count) % INPUTS]))


# Made with a size, and whether by serving_callable.
NEIGHBOURS: dict[str, Callable[[str, bool], Neighbour]] = {
    "small": _small,
    "training": _training,
    "large": _large,
}


def _specs(arrays: Sequence[np.ndarray], rows: int | None = None) -> list[Any]:
    """Of tensors with so many rows; None: with any number, as in a SavedModel's signature."""
    return [tf.TensorSpec([rows, *x.shape[1:]], tf.as_dtype(x.dtype)) for x in arrays]


def _caller(function: Any, serving: bool) -> Callable[..., Any]:
    """How to call a function with arrays; it returns arrays, so the GPU has ended the call."""
    if serving:
        call: Callable[..., Any] = tf.cuda.serving_callable(function)
        return call

    def plain(*arrays: np.ndarray) -> Any:
        return tf.nest.map_structure(lambda x: x.numpy(), function(*map(tf.constant, arrays)))

    return plain
