# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that a program colocates with another op go to that op's stream group."""

from typing import Any

import pytest
import tensorflow as tf

from multistream.testing.graphs import GROUP, NO_GRAD, X, group_of, groups_by_type, traced
from multistream.testing.kit import ok

tf1 = tf.compat.v1


@pytest.mark.parametrize("how", ["tensor", "operation", "reference", "resource", "caught"])
def test_colocated_ops_go_to_the_group_of_the_op(how: str) -> None:
    """Colocates with a tensor, an operation or a variable; then the scope counts again."""
    with tf.Graph().as_default():
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
    assert [group_of(t.op) for t in (inside, after, alone, outside)] == [2, 1, 2, None]
    place = v.op.name if how in ("reference", "resource") else "a"
    assert inside.op.colocation_groups() == [f"loc:@{place}".encode()]


def test_colocation_with_an_op_without_group_keeps_the_scope() -> None:
    with tf.Graph().as_default():
        a = tf.constant(1.0)
        with tf.stream(1), tf1.colocate_with(a):
            inside = tf.constant(2.0)
        with tf1.colocate_with(a):
            outside = tf.constant(2.0)
    assert [group_of(t.op) for t in (inside, outside)] == [1, None]


def test_the_innermost_of_stream_and_colocation_counts() -> None:
    with tf.Graph().as_default():
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
    assert [group_of(t.op) for t in (in_stream, in_both, in_first)] == [1, 3, 2]


@pytest.mark.parametrize("include_grad", [True, False])
def test_whether_gradients_follow_is_that_of_the_op(include_grad: bool) -> None:
    with tf.Graph().as_default() as graph:
        with tf.stream(2, include_grad=include_grad):
            a = tf.constant(1.0)
        x = tf.constant(1.0)
        with tf1.colocate_with(a):
            y = tf.tanh(x)
        tf1.gradients(y, x)
    assert (NO_GRAD in y.op.node_def.attr) == (not include_grad)
    assert groups_by_type(graph, "TanhGrad") == [("TanhGrad", 2 if include_grad else None)]


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
    assert [group_of(t.op) for t in (inside, in_stream)] == [2, 1]
    with tf1.colocate_with(tf.Variable(1.0)), tf1.colocate_with(None):
        assert float(tf.constant(2.0)) == 2.0


def test_what_tensorflow_colocates_stays_in_the_scope() -> None:
    """Optimizers put slots and updates on the variable's device, not on its stream."""
    with tf.Graph().as_default() as graph:
        with tf.stream(1):
            v = tf1.get_variable("v", [3], use_resource=False)
            loss = tf.reduce_sum(tf.tanh(v))
        with tf.stream(2):
            tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    assert groups_by_type(graph, "TanhGrad", "ApplyMomentum") == [
        ("TanhGrad", 1),
        ("ApplyMomentum", 2),
    ]
    (slot,) = [op for op in graph.get_operations() if op.name == "v/Momentum"]
    assert group_of(slot) == 2


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

    graph = traced(f, X)
    assert groups_by_type(graph, "Tanh", "TanhGrad", "Cos") == [
        ("Tanh", 1),
        ("Cos", None),
        ("TanhGrad", 1),
    ]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    assert [node.attr[GROUP].i for node in nodes if node.op == "Tan"] == [1]


def test_colocation_decorates() -> None:
    """As a decorator, colocate_with is entered at each call, as in stock TensorFlow."""
    with tf.Graph().as_default():
        with tf.stream(2):
            a = tf.constant(1.0)
        build = tf1.colocate_with(a)(lambda: tf.constant(2.0))
        assert [group_of(build().op) for _ in range(2)] == [2, 2]


def test_a_session_program_with_streams_trains() -> None:
    """Two linear branches on two streams with reference variables, without eager execution."""
    code = """
        import numpy as np
        import tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
        left = np.array([[1.0], [2.0], [4.0]], np.float32)
        right = np.array([[3.0], [1.0], [2.0]], np.float32)
        with tf.stream(0):
            a = tf.placeholder(tf.float32, [None, 1], name="a")
            v = tf.Variable(tf.zeros([1, 1]), name="v")
            c = tf.matmul(a, v, name="c")
            with tf.stream(1):
                b = tf.placeholder(tf.float32, [None, 1], name="b")
                w = tf.Variable(tf.zeros([1, 1]), name="w")
                d = tf.matmul(b, w, name="d")
            e = tf.identity(c, name="e")
        with tf.colocate_with(b):
            f = tf.identity(d, name="f")
        loss = tf.reduce_mean(tf.square(e + f - (2 * left + 3 * right)))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(200):
                session.run(train, {a: left, b: right})
            print(*(round(session.run(x).item()) for x in (v, w)))
            tf.cuda.synchronize()
        for name in ("a", "v", "v/read", "c", "b", "w", "w/read", "d", "e", "f"):
            print(tf.get_default_graph().get_operation_by_name(name).get_attr("_stream_group"))
        products = [op for op in tf.get_default_graph().get_operations()
                    if op.type == "MatMul" and op.name.startswith("gradients/")]
        print(*sorted({(op.name.split("/")[1], op.get_attr("_stream_group")) for op in products}))
    """
    lines = ok(code).splitlines()
    assert lines[0] == "2 3"
    assert "".join(lines[1:11]) == "0000111101"
    assert lines[11] == "('c_grad', 0) ('d_grad', 1)"
