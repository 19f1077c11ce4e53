# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Test cases that are built without scopes and with them, and must give the same results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing.gpus import numbers

tf1 = tf.compat.v1


Results = list[Any]
CASES: dict[str, Callable[[bool], Results]] = {}


def case(build: Callable[[bool], Results]) -> Callable[[bool], Results]:
    """Registers a case: a function that builds ops, with scopes if told so, and returns results."""
    CASES[build.__name__] = build
    return build


def calls(scoped: bool, body: Callable[[Any], Any]) -> Results:
    """Results of three calls of a function, some of whose nodes are in groups 1 and 2."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"):
            return body(x)

    results = [tf.nest.flatten(function(tf.constant(numbers(i, 8, 6)))) for i in range(3)]
    groups = {row.group for row in tf.cuda.stream_groups_of(function)}
    assert not scoped or {1, 2} <= groups, groups
    return [x for call in results for x in call]


def runs(fetches: Any, others: Any, placeholder: Any) -> Results:
    """Results of five runs of a session."""
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=placeholder.graph, config=config) as session:
        feeds = [{placeholder: numbers(i, 8, 6)} for i in range(5)]
        results = [session.run([fetches, others], feed)[0] for feed in feeds]
    return [x for call in results for x in tf.nest.flatten(call)]


def plain(x: Any) -> Any:
    """An array; strings become bytes of a fixed length instead of pointers to Python objects."""
    array = np.asarray(x)
    return np.array(array.tolist(), "S") if array.dtype == object else array
