# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A setter says the group of each op, and gradients follow it."""

from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.multistream.scopes import scope_stack

from multistream.testing.graphs import GROUP, NO_GRAD, X, group_of, groups_by_type, traced

tf1 = tf.compat.v1


class ByType(tf.cuda.StreamSetter):
    """Says the group of an op's type."""

    def __init__(self, **groups: Any) -> None:
        self.groups = groups
        self.asked: list[str] = []

    def __call__(self, op: Any) -> Any:
        self.asked.append(op.type)
        return self.groups.get(op.type)


# Any setter.


def test_a_function_says_the_group_of_each_op() -> None:
    """A setter returns a number or a stream; None leaves the op to the enclosing scope, if any."""
    setter = {"Sin": 1, "Cos": tf.cuda.Stream(2), "Tan": None}

    def f(x: Any) -> Any:
        with tf.stream(lambda op: setter[op.type]):
            x = tf.tan(tf.cos(tf.sin(x)))
            with tf.stream(3):
                x = tf.sin(x)
        with tf.stream(0), tf.stream(lambda op: setter[op.type]):
            return tf.tan(tf.cos(x))

    assert groups_by_type(traced(f, X), "Sin", "Cos", "Tan") == [
        ("Sin", 1),
        ("Cos", 2),
        ("Tan", None),
        ("Sin", 3),
        ("Cos", 2),
        ("Tan", 0),
    ]


def test_a_setter_object_works_in_both_scopes() -> None:
    """`as` gives the setter; decorators work; other threads and graphs are not affected."""
    setter = ByType(Sin=1)

    @tf.stream(setter)
    def branch(x: Any) -> Any:
        return tf.sin(x)

    def f(x: Any) -> Any:
        with tf.cuda.stream_scope(setter) as s:
            assert s is setter
            x = tf.cond(x[0] > 0, lambda: tf.sin(x), lambda: x)
        return branch(x)

    graph = traced(f, X)
    assert groups_by_type(graph, "Sin", "StatelessIf") == [("StatelessIf", None), ("Sin", 1)]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    assert [GROUP in node.attr for node in nodes if node.op == "Sin"] == [False]


def test_ops_with_a_group_keep_it(graph: Any) -> None:
    """The setter is only called for ops without a group."""
    with tf.stream(3):
        tf.constant(1.0, name="a")
    tf.tan(tf.constant(1.0, name="b"), name="c")
    setter = ByType(Const=1)
    with tf.Graph().as_default() as again, tf.stream(setter):
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert [group_of(again.get_operation_by_name(name)) for name in "abc"] == [3, 1, None]
    assert setter.asked == ["Const", "Tan"]


def test_a_setter_may_build_ops(graph: Any) -> None:
    """Ops that a setter builds are in no scope, so the setter is not called for them."""

    def setter(op: Any) -> int:
        setters.append(tf.constant(1.0).op)
        return 1

    setters: list[Any] = []
    with tf.stream(0), tf.stream(setter):
        x = tf.constant(2.0)
    assert group_of(x.op) == 1 and [group_of(op) for op in setters] == [None]


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ("1", TypeError, r"^tf.stream: the setter <.* said '1' for op 'a' \(Const\)\. It must say"),
        (1.5, TypeError, r"said 1.5 for op 'a'.* It must say"),
        (True, TypeError, r"said True for op 'a'.* It must say"),
        (tf.cuda.Stream("b"), TypeError, r"said Stream\(group='b'\) for op 'a'.* It must say"),
        (4, ValueError, r"said 4 for op 'a' \(Const\): there is no stream group 4.*COUNT=5"),
        (tf.cuda.Stream(-1), ValueError, r"said Stream\(group=-1\) for op 'a'.*from 0 to 3"),
    ],
)
def test_what_a_setter_must_not_say_is_named(
    graph: Any, four_groups: None, said: Any, error: type[Exception], message: str
) -> None:
    """The error names the op; the scope ends, and outer scopes count again."""
    with pytest.raises(error, match=message), tf.stream(lambda op: said):
        tf.constant(1.0, name="a")
    assert not scope_stack.active.entries
    with tf.stream(lambda op: 2):
        assert group_of(tf.constant(1.0).op) == 2


def test_a_scope_without_setter_object_keeps_its_hints() -> None:
    """tf.cuda.stream_scope takes a function for a decorator's; a class is no setter."""
    with pytest.raises(TypeError, match=r"@tf.cuda.stream_scope\(\), with parentheses"):
        tf.cuda.stream_scope(lambda op: 1)
    for scope in (tf.stream, tf.cuda.stream_scope):
        with pytest.raises(TypeError, match="ass an instance of ByType"):
            scope(ByType)
    with pytest.raises(TypeError, match="abstract"):
        tf.cuda.StreamSetter()


# Gradients.

SETTER = {"Tanh": 1, "Sigmoid": 2, "PartitionedCall": 3, "StatelessIf": 1, "StatelessWhile": 2}


def by_type(op: Any) -> int | None:
    """Says where the forward ops of the tests below go, and of no gradient."""
    return SETTER.get(op.type)


@pytest.mark.parametrize("how", ["tape", "persistent", "symbolic"])
@pytest.mark.parametrize("include_grad", [True, False])
def test_gradients_follow_each_op(how: str, include_grad: bool) -> None:
    """A gradient goes to the group of its op; gradients of ops without a group go to none."""

    @tf.function
    def inner(x: Any) -> Any:
        return tf.sqrt(x)

    def f(x: Any) -> Any:
        with tf.GradientTape(persistent=how == "persistent") as tape:
            tape.watch(x)
            with tf.stream(by_type, include_grad=include_grad):
                y = tf.nn.relu(inner(tf.sigmoid(tf.tanh(x))))
        return tf.gradients(y, x) if how == "symbolic" else tape.gradient(y, x)

    graph = traced(f, X)
    (tanh,) = [op for op in graph.get_operations() if op.type == "Tanh"]
    assert group_of(tanh) == 1 and (NO_GRAD in tanh.node_def.attr) == (not include_grad)
    groups = (1, 2, 3) if include_grad else (None, None, None)
    assert dict(groups_by_type(graph, "TanhGrad", "SigmoidGrad", "ReluGrad")) == {
        "TanhGrad": groups[0],
        "SigmoidGrad": groups[1],
        "ReluGrad": None,
    }
    assert [group for _, group in groups_by_type(graph, "PartitionedCall")] == [3, groups[2]]


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_of_control_flow_follow(tape: bool) -> None:
    """The backward cond and while ops have the group that the setter said for the forward ones."""

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with tf.stream(by_type):
                y = tf.cond(x[0] > 0, lambda: tf.tanh(x), lambda: tf.cos(x))
                y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.cos(y)), [0, y])[1]
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    graph = traced(f, X)
    # If the gradient needs more outputs, TensorFlow rebuilds the forward op with another type.
    conditions = groups_by_type(graph, "If", "StatelessIf")
    loops = groups_by_type(graph, "While", "StatelessWhile")
    assert {group for _, group in conditions[-1:]} == {1} and len(conditions) == 2
    assert {group for _, group in loops[-1:]} == {2} and len(loops) == 2


@pytest.mark.parametrize("tape", [True, False])
def test_custom_gradients_follow(tape: bool) -> None:
    """A gradient that the user wrote is in the group of the op's result."""

    @tf.custom_gradient
    def custom(x: Any) -> Any:
        return tf.sin(x), tf.asinh

    def setter(op: Any) -> int | None:
        return 2 if op.type in ("Sin", "Identity", "IdentityN") else None

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with tf.stream(setter):
                y = custom(x)
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    assert groups_by_type(traced(f, X), "Sin", "Asinh") == [("Sin", 2), ("Asinh", 2)]


def test_gradients_that_are_asked_for_in_the_scope_follow_their_ops() -> None:
    """The setter is called for gradient ops that follow no op, such as a sum over two groups."""
    setter = ByType(Tanh=1, Sigmoid=2, AddN=3, TanhGrad=0)

    def f(x: Any) -> Any:
        with tf.stream(setter), tf.GradientTape() as tape:
            tape.watch(x)
            return tape.gradient(tf.tanh(x) + tf.sigmoid(x), x)

    found = dict(groups_by_type(traced(f, X), "TanhGrad", "SigmoidGrad", "AddN"))
    assert found == {"TanhGrad": 1, "SigmoidGrad": 2, "AddN": 3}
    assert "TanhGrad" not in setter.asked
