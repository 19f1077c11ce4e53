# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads whose functions and sessions have branches on stream groups do not disturb each other.

A test names a function of this file, a job, which runs in a process of its own with the variables
that the test chooses.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing.kit import GPU, GROUPS, groups_used, on, run_job, run_threads, same

tf1 = tf.compat.v1


def clients_of_functions() -> list[Callable[[], None]]:
    """Threads that compare the results of two functions and a session with those of one thread."""
    with tf.device(GPU):
        w = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]) * 0.1)

    @tf.function
    def towers(x: Any) -> Any:
        with tf.device(GPU):
            found = []
            for i in range(6):
                with on(i % GROUPS):
                    y = tf.tanh(tf.matmul(x, w) + float(i))
                    for _ in tf.range(2):
                        y = tf.nn.relu(tf.matmul(y, w)) - y
                    found.append(tf.reduce_sum(y, 1))
            return tf.add_n(found)

    @tf.function
    def gradients(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                y = tf.tanh(tf.matmul(x, w))
            with on(2):
                z = tf.sin(tf.matmul(x, w))
            return tf.gradients(tf.reduce_sum(y * z), x)[0]

    with tf.Graph().as_default() as graph, tf.device(GPU):
        placeholder = tf1.placeholder(tf.float32, [None, 64])
        with on(1):
            left = tf.tanh(placeholder)
        with on(3):
            right = tf.nn.softmax(placeholder)
        fetch = tf.matmul(left, right, transpose_b=True)
    session = tf1.Session(graph=graph)

    inputs = [np.random.RandomState(i).randn(8 + i, 64).astype(np.float32) for i in range(5)]
    calls: list[Callable[[Any], Any]] = [
        lambda x: towers(tf.constant(x)).numpy(),
        lambda x: gradients(tf.constant(x)).numpy(),
        lambda x: session.run(fetch, {placeholder: x}),
    ]
    expected = [[call(x) for x in inputs] for call in calls]

    def client(k: int) -> None:
        for i in range(60):
            which, j = (k + i) % len(calls), (k * 3 + i) % len(inputs)
            assert same([calls[which](inputs[j])], [expected[which][j]]), (which, j)

    return [partial(client, k) for k in range(4)]


def threads() -> None:
    """Functions and sessions with scopes in several threads, with variables that change."""
    with tf.device(GPU):
        v = tf.Variable(tf.zeros([1024]))
        table = tf.Variable(tf.zeros([64, 16]))

    @tf.function
    def read(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                once = -v.read_value()
            with on(2):
                rows = tf.gather(table, tf.range(0, 64, 3)) * x
            with on(3):
                spread = tf.reduce_max(once) - tf.reduce_min(once)
            with on(None):
                rows = tf.reduce_max(rows) - tf.reduce_min(rows)
            return tf.stack([spread, rows])

    @tf.function
    def change(x: Any) -> None:
        with tf.device(GPU):
            with on(2):
                v.assign_add(tf.fill([1024], x))
            with on(3):
                table.assign(tf.fill([64, 16], x))

    def reader() -> None:
        for _ in range(100):
            assert not read(tf.constant(0.5)).numpy().any()

    def writer() -> None:
        for i in range(100):
            change(tf.constant(float(i)))
            if i % 5 == 0:
                v.assign(tf.fill([1024], 2.0))

    run_threads([*clients_of_functions(), reader, reader, writer])
    assert len(set(v.numpy())) == 1 and (table.numpy() == 99.0).all()
    assert groups_used() == set(range(GROUPS))


def test_threads() -> None:
    """Each result is that of a call by itself, or of a variable before or after a change."""
    run_job(threads)
