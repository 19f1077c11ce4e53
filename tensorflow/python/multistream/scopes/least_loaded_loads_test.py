# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much load an op adds to its stream: bytes, cost or the number that a function returns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import group_of, least_loaded

tf1 = tf.compat.v1


def load_of(build: Callable[[], Any], load: Any) -> float:
    """The load that the last op made by `build` adds to the only stream."""
    setter = least_loaded(0, load=load)
    with tf.stream(setter):
        op = build().op
    return float(setter._placed[op.graph][op.name].load)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: tf.sin(tf1.placeholder(tf.float32, [3, 5])), 60),
        (lambda: tf.sin(tf1.placeholder(tf.float64, [None, 5])), 40),
        (lambda: tf.sin(tf1.placeholder(tf.float64, None)), 8),
        (lambda: tf.sin(tf1.placeholder(tf.float32, [0, 5])), 0),
        (lambda: tf.nn.moments(tf1.placeholder(tf.float32, [6]), 0)[0], 4),
        (lambda: tf.unique(tf1.placeholder(tf.float64, [6])).idx, 8 + 24),
        (lambda: tf.strings.as_string(tf1.placeholder(tf.float32, [6])), 0),
        (lambda: tf1.get_variable("v", [6, 2], tf.float16, use_resource=True).handle, 24),
        (lambda: tf1.get_variable("v", [6, 2], tf.float16, use_resource=False)._ref(), 24),
    ],
)
def test_bytes_are_those_of_all_outputs(graph: Any, build: Any, expected: int) -> None:
    """An unknown dimension counts as 1, a handle as its variable."""
    assert load_of(build, "bytes") == expected


def images(*shape: int | None) -> Any:
    """A placeholder."""
    return tf1.placeholder(tf.float32, shape)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: tf.linalg.matmul(images(3, 5), images(5, 7)), 2 * 3 * 5 * 7),
        (lambda: tf.linalg.matmul(images(None, 5), images(5, 7)), 2 * 1 * 5 * 7),
        (lambda: tf.linalg.matmul(images(5, 3), images(5, 7), transpose_a=True), 2 * 3 * 5 * 7),
        (lambda: images(3, 5) + 1.0, 15),
        (lambda: tf.nn.conv2d(images(1, 8, 8, 2), images(3, 3, 2, 4), 1, "SAME"), 2 * 256 * 18),
        # Ops without statistics: of unknown rank, in NCHW, and of a type that has none.
        (lambda: tf.linalg.matmul(tf1.placeholder(tf.float32), images(5, 7)), 1),
        (lambda: tf.nn.avg_pool2d(images(1, 2, 8, 8), 2, 2, "SAME", "NCHW"), 32),
        (lambda: tf.cumsum(images(3, 5)), 15),
        (lambda: tf.cast(images(3, 5), tf.float64), 30),
    ],
)
def test_cost_is_what_statistics_say_or_an_operation_for_4_bytes(
    graph: Any, build: Any, expected: float
) -> None:
    assert load_of(build, "cost") == expected


def test_cost_spreads_what_bytes_would_not(graph: Any) -> None:
    """A long product and two short ones, all with results of the same size."""
    with tf.stream(least_loaded(load="cost")):
        wide = tf.linalg.matmul(images(2, 100), images(100, 2))
        narrow = [tf.linalg.matmul(images(2, 3), images(3, 2)) for _ in range(3)]
    assert [group_of(t.op) for t in (wide, *narrow)] == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ("3", TypeError, r"load=<.* said '3' for op 'a' \(Const\), and must say a number"),
        (None, TypeError, "said None for op 'a'"),
        (True, TypeError, "said True for op 'a'"),
        (1j, TypeError, "said 1j for op 'a'"),
        (-1, ValueError, "said -1 for op 'a'.* at least 0"),
        (float("nan"), ValueError, "said nan for op 'a'"),
        (float("inf"), ValueError, "said inf for op 'a'.* finite"),
    ],
)
def test_a_load_that_is_none_is_named(
    graph: Any, said: Any, error: type[Exception], message: str
) -> None:
    setter = least_loaded(load=lambda op: said)
    with pytest.raises(error, match=message), tf.stream(setter):
        tf.constant(1.0, name="a")
    assert setter.loads() == {0: 0, 1: 0}


@pytest.mark.parametrize("load", [2, 0.5, np.float32(0.5), np.int64(3), 0])
def test_a_load_is_any_number(graph: Any, load: Any) -> None:
    """A function may look at the loads so far."""

    def measure(op: Any) -> Any:
        seen.append(setter.loads()[0])
        return load

    seen: list[float] = []
    setter = least_loaded(0, load=measure)
    with tf.stream(setter):
        tf.sin(tf.sin(tf.constant(1.0)))
    assert seen == [0, load, 2 * load] and setter.loads() == {0: 3 * load}
