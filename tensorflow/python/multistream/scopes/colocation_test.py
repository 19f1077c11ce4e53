# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that a program colocates with another op go to that op's stream group."""

from typing import Any

import pytest
import tensorflow as tf

from multistream.testing.graphs import NO_GRAD, group_of, groups, groups_in_functions, traced

tf1 = tf.compat.v1


@pytest.mark.parametrize("how", ["tensor", "operation", "reference", "resource", "caught"])
def test_colocated_ops_go_to_the_group_of_the_op(how: str, graph: Any) -> None:
    """Colocates with a tensor, an operation or a variable; then the scope counts again."""
    with tf.stream(2):
        a = tf.constant(1.0, name="a")
        v = tf1.get_variable("v", [3], use_resource=how != "reference")
    targets = {"tensor": a, "operation": a.op, "caught": a}
    with tf.stream(1):
        if how == "caught":
            with pytest.raises(KeyError), tf1.colocate_with(a):
                raise KeyError
        with tf1.colocate_with(targets.get(how, v)):
            inside = tf.constant(2.0)
        after = tf.constant(3.0)
    with tf1.colocate_with(a):
        alone = tf.constant(4.0)
    outside = tf.constant(5.0)
    assert [group_of(t) for t in (inside, after, alone, outside)] == [2, 1, 2, None]
    place = v.op.name if how in ("reference", "resource") else "a"
    assert inside.op.colocation_groups() == [f"loc:@{place}".encode()]


def test_the_innermost_of_stream_and_colocation_counts(graph: Any) -> None:
    """Colocation with an op without group keeps the scope; a decorator is entered at each call."""
    ungrouped = tf.constant(1.0)
    with tf.stream(2):
        a = tf.constant(1.0)
    with tf.stream(3):
        b = tf.constant(1.0)
    with tf1.colocate_with(a):
        with tf.stream(1):
            in_stream = tf.constant(2.0)
            with tf1.colocate_with(b, ignore_existing=True):
                in_both = tf.constant(2.0)
        in_first = tf.constant(2.0)
    assert [group_of(t) for t in (in_stream, in_both, in_first)] == [1, 3, 2]
    build = tf1.colocate_with(a)(lambda: tf.constant(2.0))
    assert [group_of(build()) for _ in range(2)] == [2, 2]
    build = tf1.colocate_with(ungrouped)(lambda: tf.constant(2.0))
    with tf.stream(1):
        assert group_of(build()) == 1
    assert group_of(build()) is None


@pytest.mark.parametrize("include_grad", [True, False])
def test_whether_gradients_follow_is_that_of_the_op(include_grad: bool, graph: Any) -> None:
    with tf.stream(2, include_grad=include_grad):
        a = tf.constant(1.0)
    x = tf.constant(1.0)
    with tf1.colocate_with(a):
        y = tf.tanh(x)
    tf1.gradients(y, x)
    assert (NO_GRAD in y.op.node_def.attr) == (not include_grad)
    assert groups(graph, "TanhGrad") == [2 if include_grad else None]


def test_colocation_with_nothing_works_as_ever() -> None:
    """None with ignore_existing ends other colocations, but no stream; eager code has devices."""
    with tf.Graph().as_default():
        with tf.stream(2):
            a = tf.constant(1.0, name="a")
        with tf1.colocate_with(a), tf1.colocate_with(None, ignore_existing=True):
            inside = tf.constant(2.0)
        with tf.stream(1), tf1.colocate_with(None, ignore_existing=True):
            in_stream = tf.constant(2.0)
        with pytest.raises(ValueError, match="ignore_existing"), tf1.colocate_with(None):
            pass
    assert inside.op.colocation_groups() == [b"loc:@" + inside.op.name.encode()]
    assert [group_of(t) for t in (inside, in_stream)] == [2, 1]
    with tf1.colocate_with(tf.Variable(1.0)), tf1.colocate_with(None):
        assert float(tf.constant(2.0)) == 2.0


def test_what_tensorflow_colocates_stays_in_the_scope(graph: Any) -> None:
    """Optimizers put slots and updates on the variable's device, not on its stream."""
    with tf.stream(1):
        v = tf1.get_variable("v", [3], use_resource=False)
        loss = tf.reduce_sum(tf.tanh(v))
    with tf.stream(2):
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    assert groups(graph, "TanhGrad ApplyMomentum") == [1, 2]
    assert group_of(graph.get_operation_by_name("v/Momentum")) == 2


def test_colocation_in_functions() -> None:
    """Colocates with tensors of the function and its caller, and a variable of eager code."""
    v = tf.Variable(1.0)

    def f(x: Any) -> Any:
        with tf.stream(1):
            y = tf.sin(x)

        @tf.function
        def inner(x: Any) -> Any:
            with tf1.colocate_with(y):
                return tf.tan(x) + y

        with tf1.colocate_with(y), tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.tanh(x)
        with tf1.colocate_with(v):
            w = tf.cos(x)
        return w + inner(x), tape.gradient(z, x)

    graph = traced(f)
    assert groups(graph, "Tanh TanhGrad Cos") == [1, 1, None]
    assert groups_in_functions(graph, "Tan") == {1}
