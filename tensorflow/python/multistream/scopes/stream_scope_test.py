# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops built in a stream scope carry its group; no other op does."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import GROUP, X, group_of, groups_by_type, marked, traced
from multistream.testing.kit import on

tf1 = tf.compat.v1


@pytest.fixture
def old_control_flow() -> Iterator[None]:
    """tf.cond and tf.while_loop of v1 graphs, which build ops in the same graph."""
    tf1.disable_control_flow_v2()
    yield
    tf1.enable_control_flow_v2()


def test_ops_of_a_v1_graph_carry_the_group() -> None:
    """In the scope all ops have it, and outside none."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3])
        before = tf.tanh(x)
        with on(2):
            inside = tf.sin(before)
        after = tf.cos(inside)
    assert [group_of(t.op) for t in (x, before, inside, after)] == [None, None, 2, None]
    assert marked(graph) == [inside.op.name]


def test_ops_of_a_function_carry_the_group() -> None:
    """The same in a tf.function, whose arguments and captures belong to no scope."""
    v = tf.Variable([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        with on(2):
            y = tf.sin(x + v)
        return tf.cos(y)

    graph = traced(f, X)
    assert groups_by_type(graph, "AddV2", "Sin", "Cos") == [("AddV2", 2), ("Sin", 2), ("Cos", None)]
    assert {group for _, group in groups_by_type(graph, "Placeholder")} == {None}


def test_no_scope_leaves_no_trace() -> None:
    """Without scopes, graphs, functions and gradients have no attribute of ours."""
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: tf.tanh(x) * v)

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cond(x[0] > 0, lambda: inner(x), lambda: x * v)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * v), [0, y])[1]
        return tape.gradient(y, v), tf.gradients(y, x)

    assert marked(traced(f, X)) == []


def test_innermost_scope_counts() -> None:
    """Nested scopes, and the outer one again after the inner."""

    def f(x: Any) -> Any:
        with on(1):
            x = tf.sin(x)
            with on(3), on(2):
                x = tf.cos(x)
            return tf.tan(x)

    assert groups_by_type(traced(f, X), "Sin", "Cos", "Tan") == [("Sin", 1), ("Cos", 2), ("Tan", 1)]


def test_an_error_leaves_the_scope() -> None:
    """After an exception in a scope, ops are outside it."""

    def f(x: Any) -> Any:
        try:
            with on(1):
                raise KeyError
        except KeyError:
            return tf.sin(x)

    assert marked(tf.function(f, autograph=False).get_concrete_function(X).graph) == []


def test_a_scope_is_reusable_and_reentrant() -> None:
    """One scope object is entered again inside itself and in another function."""
    scope = on(2)

    def f(x: Any) -> Any:
        with scope:
            with scope:
                x = tf.sin(x)
            x = tf.cos(x)
        return tf.tan(x)

    for _ in range(2):
        assert groups_by_type(traced(f, X), "Sin", "Cos", "Tan") == [
            ("Sin", 2),
            ("Cos", 2),
            ("Tan", None),
        ]


@on(2)
def decorated_branch(x: Any) -> Any:
    """Has code that AutoGraph must convert."""
    if x[0] > 0:
        x = tf.sin(x)
    return tf.cos(x)


@pytest.mark.parametrize("autograph", [True, False])
def test_decorator_enters_the_scope_in_each_call(autograph: bool) -> None:
    """Below tf.function, on what it calls, and on methods; names and AutoGraph still work."""

    class Model:
        @on(3)
        def call(self, x: Any) -> Any:
            return tf.tan(x)

    def f(x: Any) -> Any:
        x = Model().call(tf.exp(x))
        return decorated_branch(x) if autograph else x

    graph = tf.function(f, autograph=autograph).get_concrete_function(X).graph
    assert groups_by_type(graph, "Exp", "Tan") == [("Exp", None), ("Tan", 3)]
    if autograph:
        assert groups_by_type(graph, "StatelessIf", "Cos") == [("StatelessIf", 2), ("Cos", 2)]
    below = tf.function(decorated_branch).get_concrete_function(X).graph
    assert groups_by_type(below, "StatelessIf", "Cos") == [("StatelessIf", 2), ("Cos", 2)]
    assert decorated_branch.__name__ == "decorated_branch"


def test_a_traced_function_is_not_bound_to_a_scope() -> None:
    """The calls of one function in two scopes have two groups; its body has none but its own."""

    @tf.function
    def inner(x: Any) -> Any:
        with on(3):
            y = tf.sin(x)
        return tf.cos(y)

    def f(x: Any) -> Any:
        with on(1):
            a = inner(x)
        with on(2):
            b = inner(x)
        return a + b + inner(x)

    assert groups_by_type(traced(f, X), "PartitionedCall") == [
        ("PartitionedCall", 1),
        ("PartitionedCall", 2),
        ("PartitionedCall", None),
    ]
    body = inner.get_concrete_function(X).graph
    assert groups_by_type(body, "Sin", "Cos") == [("Sin", 3), ("Cos", None)]


def test_control_flow_ops_carry_the_group() -> None:
    """Cond, while and map_fn ops have the group; ops in bodies only have that of inner scopes."""

    def in_body(x: Any) -> Any:
        with on(3):
            return tf.sin(x)

    def f(x: Any) -> Any:
        with on(1):
            x = tf.cond(x[0] > 0, lambda: in_body(x), lambda: tf.cos(x))
            x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.cos(x)), [0, x])[1]
            return tf.map_fn(tf.tan, x)

    graph = traced(f, X)
    assert groups_by_type(graph, "StatelessIf", "StatelessWhile") == [
        ("StatelessIf", 1),
        ("StatelessWhile", 1),
        ("StatelessWhile", 1),
    ]
    library = graph.as_graph_def().library
    bodies = [(n.op, n.attr[GROUP].i) for f in library.function for n in f.node_def if n.attr]
    assert [(op, group) for op, group in bodies if group] == [("Sin", 3)]


def test_v1_control_flow_builds_marked_ops(old_control_flow: None) -> None:
    """Its bodies are in the same graph, so their ops carry the group; so do their gradients."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3])
        with on(1):
            y = tf1.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x))
            y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [0, y])[1]
        forward = set(graph.get_operations())
        (dx,) = tf1.gradients(y, x)
        tail = tf.exp(dx)
    assert all(group_of(op) == 1 for op in forward - {x.op})
    gradients = [op for op in graph.get_operations() if op.type == "TanhGrad"]
    assert gradients and all(group_of(op) == 1 for op in gradients)
    assert group_of(tail.op) is None
    with tf1.Session(graph=graph) as session:
        assert np.isfinite(session.run(dx, {x: [1.0, 2.0, 3.0]})).all()


def test_other_threads_are_not_in_the_scope() -> None:
    """Two threads that build one graph, in scopes of their own and in none."""
    graph = tf.Graph()
    entered, built = threading.Barrier(3), threading.Barrier(3)
    ops: dict[int | None, Any] = {}

    def build(group: int | None) -> None:
        with graph.as_default():
            if group is None:
                entered.wait()
                ops[group] = tf.constant(1.0).op
                built.wait()
                return
            with on(group):
                entered.wait()
                ops[group] = tf.constant(1.0).op
                built.wait()

    threads = [threading.Thread(target=build, args=(group,)) for group in (None, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {group: group_of(op) for group, op in ops.items()} == {None: None, 1: 1, 2: 2}


def test_imported_nodes_keep_their_group() -> None:
    """import_graph_def in a scope groups only the nodes that have no group."""
    with tf.Graph().as_default() as graph:
        with on(3):
            tf.constant(1.0, name="a")
        tf.constant(1.0, name="b")
    with tf.Graph().as_default() as again, on(1):
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert [group_of(again.get_operation_by_name(name)) for name in "ab"] == [3, 1]
