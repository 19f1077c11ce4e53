# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions that XLA compiles, in scopes and with scopes in them, give what one stream gives.

On an emulated GPU, XLA compiles for the CPU.

A test names a job, which runs in a process of its own. What a job builds without scopes runs on
group 0 of each GPU and is the reference for the same thing with scopes.
"""

from typing import Any

import pytest
import tensorflow as tf

from multistream.testing.gpus import leaders, numbers, run, used
from multistream.testing.kit import on, same

tf1 = tf.compat.v1


def compiled_results(scoped: bool) -> list[Any]:
    """Results of XLA functions that other functions, sessions and eager code call."""
    x = tf.constant(numbers(0, 6, 6))

    def plain(x: Any) -> Any:
        return tf.matmul(tf.tanh(x), x) + tf.reduce_sum(tf.exp(x), 0)

    compiled = tf.function(plain, jit_compile=True)

    @tf.function(jit_compile=True)
    def scopes_inside(x: Any) -> Any:
        with on(1, scoped):
            a = tf.tanh(x)
        with on(2, scoped):
            return a * tf.sin(x)

    @tf.function
    def forward(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with on(1, scoped):
                a = compiled(x)
            with on(2, scoped):
                b = scopes_inside(a) + tf.sin(x)
            with tf.device("/GPU:1"), on(2, scoped):
                c = compiled(a * b)
            return tf.reduce_sum(b + c)

    @tf.function
    def backward(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with tf.GradientTape() as tape:
                tape.watch(x)
                with on(1, scoped):
                    a = compiled(x)
                with on(2, scoped):
                    b = tf.sin(scopes_inside(x))
                loss = tf.reduce_sum(a * b)
            return loss, tape.gradient(loss, x), tf.gradients(tf.reduce_sum(compiled(b)), x)

    with tf.device("/GPU:0"):
        v = tf.Variable(numbers(1, 6, 6))

    @tf.function(jit_compile=True)
    def add(x: Any) -> Any:
        v.assign_add(x)
        return v * 2.0

    @tf.function
    def change(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with on(1, scoped):
                a = add(x)
            with on(2, scoped):
                for _ in tf.range(3):
                    a = tf.sin(compiled(a)) + v
            return tf.cond(tf.reduce_sum(a) > 0.0, lambda: compiled(a), lambda: add(x) - a)

    results = [*tf.nest.flatten([[forward(x), backward(x), change(x)] for _ in range(3)]), v]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scopes_inside(forward(x) * x)
    results += [y, tape.gradient(y, x)]

    return [result.numpy() for result in results]


def compiled_in_session(scoped: bool) -> list[Any]:
    """Results of a session whose graph calls an XLA function."""
    compiled = tf.function(lambda x: tf.matmul(tf.tanh(x), x), jit_compile=True)
    with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
        x = tf1.placeholder(tf.float32, [6, 6])
        with on(1, scoped):
            a = compiled(x)
        with on(2, scoped):
            b = tf.sin(a)
        fetches = [b, tf.gradients(b, x)[0]]
    with tf1.Session(graph=graph) as session:
        return [y for i in range(3) for y in session.run(fetches, {x: numbers(i, 6, 6)})]


def compiled_functions() -> None:
    """Runs without scopes, then with them; an op that XLA cannot compile is named by an error."""
    models = (compiled_results, compiled_in_session)
    expected = [model(False) for model in models]
    assert used() == leaders(), used()
    assert all(same(model(True), results) for model, results in zip(models, expected, strict=True))
    assert used() >= {(0, 0), (0, 1), (0, 2), (1, 2)}, used()

    @tf.function(jit_compile=True)
    def text(x: Any) -> Any:
        return tf.strings.to_number(tf.strings.as_string(x))

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), on(1):
            return text(tf.sin(x))

    x, wanted = tf.constant([1.0]), r"unsupported operation.*AsString"
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
            function(x)


def test_compiled_functions() -> None:
    """Functions with jit_compile=True in scopes, and scopes in them, with gradients."""
    run(compiled_functions, TF_GPU_STREAM_GROUP_COUNT="3")
