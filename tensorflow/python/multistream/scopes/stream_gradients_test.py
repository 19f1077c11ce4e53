# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of ops built in a stream scope carry its group; no other gradient does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import NO_GRAD, groups, groups_in_functions, traced
from multistream.testing.kit import on

Groups = list[int | None]


def tanh_in_3(x: Any) -> Any:
    with on(3):
        x = tf.tanh(x)
    return tf.sigmoid(x)


def simple(x: Any) -> Any:
    """Includes gradients that need neither inputs nor outputs, and sums of gradients."""
    with on(1):
        y = tf.tanh(tf.identity(x))
        y = tf.sigmoid(y) * tf.sqrt(y) - tf.negative(y)
    return tf.nn.relu(y)


def call(x: Any) -> Any:
    inner = tf.function(tanh_in_3)
    with on(1):
        y = inner(x)
    return inner(y)


def control_flow(x: Any) -> Any:
    with on(1):
        y = tf.cond(x[0] > 0, lambda: tanh_in_3(x), lambda: tf.cos(x))
    with on(2):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tanh_in_3(y)), [0, y])[1]


@tf.custom_gradient
def custom(x: Any) -> Any:
    return tf.sin(x), tf.asinh


def custom_gradient(x: Any) -> Any:
    with on(2):
        return custom(x)


def two_branches(x: Any) -> Any:
    """The gradient of what two branches share is for the runtime to place."""
    with on(1):
        y = tf.tanh(x)
    with on(2):
        z = tf.sigmoid(x)
    return y + z


def without_gradients(x: Any) -> Any:
    with on(1, include_grad=False):
        y = tf.function(tf.sqrt)(tf.tanh(x))
        with on(2):
            return tf.sigmoid(y)


SETTER = {"Tanh": 1, "Sigmoid": 2, "PartitionedCall": 3}


def set_by_type(x: Any) -> Any:
    with tf.stream(lambda op: SETTER.get(op.type)):
        return tf.nn.relu(tf.function(tf.sqrt)(tf.sigmoid(tf.tanh(x))))


# A function, the groups of ops with its gradient by type, and those in functions.
CASES: list[tuple[Callable[[Any], Any], dict[str, Groups], dict[str, int | None]]] = [
    (simple, {"TanhGrad SigmoidGrad SqrtGrad AddN": [1] * 4, "ReluGrad": [None]}, {}),
    # The backward call has the forward call's group.
    (
        call,
        {"PartitionedCall": [1, None, None, 1]},
        {"Tanh": 3, "TanhGrad": 3, "Sigmoid": None, "SigmoidGrad": None},
    ),
    (
        control_flow,
        {"If StatelessIf": [1, 1], "While StatelessWhile": [2, 2]},
        {"TanhGrad": 3, "SigmoidGrad": None},
    ),
    (custom_gradient, {"Sin Asinh": [2, 2]}, {}),
    (two_branches, {"TanhGrad SigmoidGrad AddN": [1, 2, None]}, {}),
    (
        without_gradients,
        {"Tanh Sigmoid TanhGrad SigmoidGrad": [1, 2, None, 2], "PartitionedCall": [1, None]},
        {},
    ),
    (
        set_by_type,
        {"Tanh TanhGrad SigmoidGrad ReluGrad": [1, 1, 2, None], "PartitionedCall": [3, 3]},
        {},
    ),
]


@pytest.mark.parametrize("how", ["tape", "symbolic"])
@pytest.mark.parametrize("case", CASES, ids=[case[0].__name__ for case in CASES])
def test_gradients_follow(case: Any, how: str) -> None:
    """Gradients have the groups of their ops; ops in bodies have those of inner scopes."""
    build, expected, in_functions = case

    def f(x: Any) -> Any:
        with tf.GradientTape(persistent=build is not control_flow) as tape:
            tape.watch(x)
            y = build(x)
        dx = tf.gradients(y, x)[0] if how == "symbolic" else tape.gradient(y, x)
        return tf.exp(dx)

    graph = traced(f)
    assert {types: groups(graph, types) for types in expected} == expected
    found = {op: groups_in_functions(graph, op) for op in in_functions}
    assert found == {op: {group} for op, group in in_functions.items()}
    assert groups(graph, "Exp") == [None]
    tanh = [op for op in graph.get_operations() if op.type == "Tanh"]
    assert all((NO_GRAD in op.node_def.attr) == (build is without_gradients) for op in tanh)


@pytest.mark.parametrize("build", [simple, without_gradients])
def test_gradients_that_follow_no_op_are_in_the_scope_that_asks_for_them(build: Any) -> None:
    def f(x: Any) -> Any:
        y = build(x)
        with on(3):
            return tf.gradients(y, x)

    followed = {simple: "TanhGrad SigmoidGrad SqrtGrad AddN", without_gradients: "SigmoidGrad"}
    asked = {simple: "ReluGrad", without_gradients: "TanhGrad"}
    graph = traced(f)
    assert set(groups(graph, followed[build])) == ({1} if build is simple else {2})
    assert groups(graph, asked[build]) == [3]


def test_gradients_that_are_asked_for_in_a_setters_scope_follow_their_ops() -> None:
    """The setter is called for gradient ops that follow no op, such as a sum over two groups."""
    asked = []

    def setter(op: Any) -> int | None:
        asked.append(op.type)
        return {"Tanh": 1, "Sigmoid": 2, "AddN": 3, "TanhGrad": 0}.get(op.type)

    def f(x: Any) -> Any:
        with tf.stream(setter), tf.GradientTape() as tape:
            tape.watch(x)
            return tape.gradient(tf.tanh(x) + tf.sigmoid(x), x)

    assert groups(traced(f), "TanhGrad SigmoidGrad AddN") == [1, 2, 3]
    assert "TanhGrad" not in asked


def test_forward_mode_works_in_scopes() -> None:
    """A forward accumulator reads the same records of ops as a tape."""

    @tf.function
    def f(x: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
            with tf.GradientTape() as tape, on(1):
                tape.watch(x)
                y = tf.tanh(x)
            return forward.jvp(y), tape.gradient(y, x)

    np.testing.assert_allclose(*f(tf.constant([1.0, 2.0, 3.0])), atol=1e-6)


def test_eager_gradient_of_a_function_follows() -> None:
    """A tape in eager code: the backward function has the groups of the forward one."""
    f = tf.function(tanh_in_3)
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)
    functions = f.get_concrete_function(x)._first_order_tape_functions.values()
    backward = [groups(function._backward.graph, "TanhGrad") for function in functions]
    assert backward == [[3]]


def test_recomputed_gradients_follow() -> None:
    """recompute_grad runs the forward ops again in the group of the first time."""
    v = tf.Variable(2.0)

    @tf.recompute_grad
    def block(x: Any) -> Any:
        return tf.tanh(x * v)

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with on(2):
                y = block(x)
        return tape.gradient(y, x)

    found = groups(traced(f), "Tanh TanhGrad")
    assert len(found) >= 2 and set(found) == {2}


@pytest.mark.parametrize("tape", [True, False])
def test_second_order_gradients_follow(tape: bool) -> None:
    def f(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                with on(2):
                    y = tf.tanh(x)
            if tape:
                return outer.gradient(inner.gradient(y, x), x)
            return tf.gradients(tf.gradients(y, x), x)

    found = groups(traced(f), "Tanh TanhGrad Mul")
    assert len(found) >= 4 and set(found) == {2}


def test_gradients_of_indexed_slices_follow() -> None:
    """The summed gradient of two lookups in one table."""
    table = tf.Variable(tf.zeros([5, 2]))

    def f(i: Any) -> Any:
        with tf.GradientTape() as tape, on(1):
            y = tf.tanh(tf.gather(table, i)) + tf.gather(table, i + 1)
        return tf.convert_to_tensor(tape.gradient(y, table))

    slices = groups(traced(f, tf.TensorSpec([3], tf.int32)), "ConcatV2")
    assert set(slices) == {1}
