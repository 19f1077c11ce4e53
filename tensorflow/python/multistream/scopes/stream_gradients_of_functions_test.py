# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of calls, control flow and the user's own gradients follow the forward ops' groups."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import GROUP, NO_GRAD, X, group_of, groups_by_type, traced
from multistream.testing.kit import on

tf1 = tf.compat.v1


@pytest.mark.parametrize("how", ["tape", "persistent", "symbolic"])
def test_gradients_of_calls_follow(how: str) -> None:
    """The backward call has the forward call's group, and its body only that of inner scopes."""

    @tf.function
    def inner(x: Any) -> Any:
        with on(3):
            x = tf.tanh(x)
        return tf.sigmoid(x)

    def f(x: Any) -> Any:
        with tf.GradientTape(persistent=how == "persistent") as tape:
            tape.watch(x)
            with on(1):
                y = inner(x)
            z = inner(y)
        return tf.gradients(z, x) if how == "symbolic" else tape.gradient(z, x)

    graph = traced(f, X)
    assert [group for _, group in groups_by_type(graph, "PartitionedCall")] == [1, None, None, 1]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    for op, group in (("Tanh", 3), ("TanhGrad", 3), ("Sigmoid", 0), ("SigmoidGrad", 0)):
        assert {node.attr[GROUP].i for node in nodes if node.op == op} == {group}, op


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

    @tf.function
    def f(x: Any) -> Any:
        with on(3):
            return tf.tanh(x)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), 1 - np.tanh(x) ** 2, atol=1e-5)
    functions = f.get_concrete_function(x)._first_order_tape_functions.values()
    backward = [groups_by_type(function._backward.graph, "TanhGrad") for function in functions]
    assert backward == [[("TanhGrad", 3)]]


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_of_control_flow_follow(tape: bool) -> None:
    """Backward cond and while ops have the forward op's group; in bodies inner scopes count."""

    def in_body(x: Any) -> Any:
        with on(3):
            x = tf.tanh(x)
        return tf.sigmoid(x)

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(1):
                y = tf.cond(x[0] > 0, lambda: in_body(x), lambda: tf.cos(x))
            with on(2):
                y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, in_body(y)), [0, y])[1]
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    graph = traced(f, X)
    conditions = groups_by_type(graph, "If", "StatelessIf")
    loops = groups_by_type(graph, "While", "StatelessWhile")
    assert [group for _, group in conditions] == [1, 1]
    assert [group for _, group in loops] == [2, 2]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    for op, group in (("TanhGrad", 3), ("SigmoidGrad", 0)):
        assert {node.attr[GROUP].i for node in nodes if node.op == op} == {group}, op


@pytest.mark.parametrize("tape", [True, False])
def test_custom_gradients_follow(tape: bool) -> None:
    """A gradient that the user wrote goes where the forward ops are."""

    @tf.custom_gradient
    def custom(x: Any) -> Any:
        return tf.sin(x), tf.asinh

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(2):
                y = custom(x)
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    assert groups_by_type(traced(f, X), "Sin", "Asinh") == [("Sin", 2), ("Asinh", 2)]


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

    found = groups_by_type(traced(f, X), "Tanh", "TanhGrad")
    assert len(found) >= 2 and {group for _, group in found} == {2}


@pytest.mark.parametrize("tape", [True, False])
def test_second_order_gradients_follow(tape: bool) -> None:
    """Gradients of gradients, too."""

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

    found = groups_by_type(traced(f, X), "Tanh", "TanhGrad", "Mul")
    assert len(found) >= 4 and {group for _, group in found} == {2}


@pytest.mark.parametrize("tape", [True, False])
@pytest.mark.parametrize("asked_in", [None, 3])
def test_include_grad_false(tape: bool, asked_in: int | None) -> None:
    """Ops carry the flag; gradients go to the scope in which they are computed, or to none."""

    @tf.function
    def inner(x: Any) -> Any:
        return tf.sqrt(x)

    def gradient(t: Any, y: Any, x: Any) -> Any:
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(1, include_grad=False):
                y = tf.tanh(x)
                y = inner(y)
                with on(2):
                    y = tf.sigmoid(y)
        if asked_in is None:
            return gradient(t, y, x)
        with on(asked_in):
            return gradient(t, y, x)

    graph = traced(f, X)
    (tanh,) = [op for op in graph.get_operations() if op.type == "Tanh"]
    assert group_of(tanh) == 1 and tanh.get_attr(NO_GRAD) is True
    (sigmoid,) = [op for op in graph.get_operations() if op.type == "Sigmoid"]
    assert group_of(sigmoid) == 2 and NO_GRAD not in sigmoid.node_def.attr
    assert groups_by_type(graph, "TanhGrad", "SigmoidGrad") == [
        ("SigmoidGrad", 2),
        ("TanhGrad", asked_in),
    ]
    assert [group for _, group in groups_by_type(graph, "PartitionedCall")] == [1, asked_in]
