# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions that XLA compiles, in scopes and with scopes in them, give what one stream gives.

On an emulated GPU, XLA compiles for the CPU. What is built without scopes runs on group 0 of each
GPU and is the reference for the same thing with scopes.
"""

from typing import Any

import pytest
import tensorflow as tf

from multistream.testing.gpus import leaders, numbers, run, used
from multistream.testing.kit import in_process, on, same

tf1 = tf.compat.v1


def compiled_results(scoped: bool) -> list[Any]:
    x = tf.constant(numbers(0, 6, 6))

    @tf.function(jit_compile=True)
    def compiled(x: Any) -> Any:
        return tf.matmul(tf.tanh(x), x) + tf.reduce_sum(tf.exp(x), 0)

    @tf.function(jit_compile=True)
    def scopes_inside(x: Any) -> Any:
        with on(1, scoped):
            a = tf.tanh(x)
        with on(2, scoped):
            return a * tf.sin(x)

    with tf.device("/GPU:0"):
        v = tf.Variable(numbers(1, 6, 6))

    @tf.function(jit_compile=True)
    def add(x: Any) -> Any:
        v.assign_add(x)
        return v * 2.0

    @tf.function
    def step(x: Any) -> Any:
        with tf.device("/GPU:0"):
            with tf.GradientTape() as tape:
                tape.watch(x)
                with on(1, scoped):
                    a = compiled(x)
                with on(2, scoped):
                    b = scopes_inside(a) + tf.sin(x)
                with tf.device("/GPU:1"), on(2, scoped):
                    c = compiled(a * b)
                loss = tf.reduce_sum(b + c)
            with on(1, scoped):
                d = add(x)
            with on(2, scoped):
                for _ in tf.range(3):
                    d = tf.sin(compiled(d)) + v
            d = tf.cond(tf.reduce_sum(d) > 0.0, lambda: compiled(d), lambda: add(x) - d)
            return loss, d, tape.gradient(loss, x), tf.gradients(tf.reduce_sum(compiled(b)), x)

    results = [*tf.nest.flatten([step(x) for _ in range(3)]), v]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scopes_inside(step(x)[0] * x)
    results += [y, tape.gradient(y, x)]
    return [result.numpy() for result in results]


def compiled_in_session(scoped: bool) -> list[Any]:
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


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="3")
def test_compiled_functions() -> None:
    """Functions with jit_compile=True in scopes, and scopes in them, with gradients."""
    models = (compiled_results, compiled_in_session)
    expected = [model(False) for model in models]
    assert used() == leaders(), used()
    assert all(same(model(True), results) for model, results in zip(models, expected, strict=True))
    assert used() >= {(0, 0), (0, 1), (0, 2), (1, 2)}, used()

    text = tf.function(lambda x: tf.strings.to_number(tf.strings.as_string(x)), jit_compile=True)

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), on(1):
            return text(tf.sin(x))

    for _ in range(2):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"unsupported operation.*AsString"
        ):
            function(tf.constant([1.0]))
