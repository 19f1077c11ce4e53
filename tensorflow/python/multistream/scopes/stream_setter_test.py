# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A setter says the group of each op; the least loaded setter spreads chains over the groups.

stream_gradients_test.py has the gradients of ops with setters.
"""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream.scopes import scope_stack

from multistream.testing.graphs import (
    GROUP,
    group_of,
    groups,
    groups_in_functions,
    least_loaded,
    traced,
)
from multistream.testing.kit import run_threads

tf1 = tf.compat.v1


class ByType(tf.cuda.StreamSetter):
    def __init__(self, **groups: Any) -> None:
        self.groups = groups
        self.asked: list[str] = []

    def __call__(self, op: Any) -> Any:
        self.asked.append(op.type)
        return self.groups.get(op.type)


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

    assert groups(traced(f), "Sin Cos Tan") == [1, 3, 2, 2, None, 0]


def test_a_setter_object_works_in_both_scopes() -> None:
    """`as` gives the setter; decorators work; graphs of branches are not affected."""
    setter = ByType(Sin=1)

    @tf.stream(setter)
    def branch(x: Any) -> Any:
        return tf.sin(x)

    def f(x: Any) -> Any:
        with tf.cuda.stream_scope(setter) as s:
            assert s is setter
            x = tf.cond(x[0] > 0, lambda: tf.sin(x), lambda: x)
        return branch(x)

    graph = traced(f)
    assert groups(graph, "StatelessIf Sin") == [None, 1]
    assert groups_in_functions(graph, "Sin") == {None}


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
        setters.append(tf.constant(1.0))
        return 1

    setters: list[Any] = []
    with tf.stream(0), tf.stream(setter):
        x = tf.constant(2.0)
    assert group_of(x) == 1 and [group_of(op) for op in setters] == [None]


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ("1", TypeError, r"^tf.stream: the setter <.* said '1' for op 'a' \(Const\)\. It must say"),
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
        assert group_of(tf.constant(1.0)) == 2


def test_chains_stay_together_and_go_where_least_is() -> None:
    """Each chain starts on the stream with the fewest bytes, the first of equal ones."""
    setter = least_loaded(2, 0, 3)

    def f(a: Any, b: Any) -> Any:
        with tf.stream(setter):
            first = tf.cos(tf.sin(a))  # 2 x 40 bytes, on group 2
            second = tf.tan(b)  # 4 bytes, on group 0
            third = tf.exp(tf.sinh(b))  # 2 x 4 bytes, on group 3
            fourth = tf.asinh(a)  # 40 bytes, on group 0, which has 4
        return first, second, third, fourth

    graph = traced(f, tf.TensorSpec([10], tf.float32), tf.TensorSpec([], tf.float32))
    assert groups(graph, "Sin Cos Tan Sinh Exp Asinh") == [2, 2, 0, 3, 3, 0]
    assert setter.loads() == {2: 80, 0: 44, 3: 8} and list(setter.loads()) == [2, 0, 3]


def test_where_chains_meet_the_first_counts() -> None:
    """The first input decides; control inputs do not count."""

    def f(x: Any) -> Any:
        with tf.stream(least_loaded(0, 1)):
            a = tf.sin(x)
            b = tf.cos(x)
            with tf.control_dependencies([a]):
                c = tf.tan(x[0])
            return tf.subtract(b, a) + c

    assert groups(traced(f), "Sin Cos StridedSlice Tan Sub AddV2") == [0, 1, 0, 0, 1, 1]


def test_branches_of_one_input_are_chains_of_their_own(graph: Any) -> None:
    """Feeds and constants do not join branches; each is on the stream of its first user."""
    x = tf1.placeholder(tf.float32, [3])
    with tf.stream(least_loaded()):
        y = tf1.placeholder(tf.float32, [3])
        c = tf.constant([1.0, 2.0, 3.0])
        branches = [tf.tanh(x * c), tf.tanh(y * c), tf.tanh(y + 1.0), tf.tanh(2.0 - x)]
    assert [group_of(branch) for branch in branches] == [1, 0, 0, 1]
    assert [group_of(branch.op.inputs[0].op) for branch in branches] == [1, 0, 0, 1]
    assert [group_of(t) for t in (c, y)] == [1, 0]
    for branch in branches[2:]:  # the constants 1.0 and 2.0
        consts = [t for t in branch.op.inputs[0].op.inputs if t.op.type == "Const"]
        assert [group_of(t) for t in consts] == [group_of(branch)]


@pytest.mark.parametrize("kind", ["eager", "resource", "reference"])
def test_a_variable_is_read_where_it_is_used(kind: str) -> None:
    """No stream waits for another stream to read its weights."""
    eager = [tf.Variable(tf.ones([4, 4])) for _ in range(4)] if kind == "eager" else []

    def variable(i: int) -> Any:
        if kind == "eager":
            return eager[i]
        return tf1.get_variable(f"v{i}", [4, 4], use_resource=kind == "resource")

    def f(x: Any) -> Any:
        with tf.stream(least_loaded()):
            y = tf.linalg.matmul(x, variable(0)) + variable(1)
            z = tf.linalg.matmul(x, variable(2)) + variable(3)
        return y, z

    if kind == "eager":
        graph = traced(f, tf.TensorSpec([4, 4], tf.float32))
    else:
        with tf.Graph().as_default() as graph:
            f(tf1.placeholder(tf.float32, [4, 4]))
    users = [op for op in graph.get_operations() if op.type in ("MatMul", "AddV2")]
    users = [op for op in users if not op.name.startswith("v")]
    assert len(users) == 4
    if kind == "eager":  # the other graphs also have initial values, which count
        assert [group_of(op) for op in users] == [0, 0, 1, 1]
    for op in users:
        assert {group_of(t) for t in op.inputs if t.op.type != "Placeholder"} == {group_of(op)}


def test_a_source_moves_with_its_load(graph: Any) -> None:
    """A source's load counts for the stream where it is built, then for its user's stream."""
    setter = least_loaded(load=lambda op: {"Sin": 5, "Const": 3}.get(op.type, 1))
    x = tf1.placeholder(tf.float32, [])
    with tf.stream(setter):
        a = tf.sin(x)
        c = tf.constant(1.0)
        assert (group_of(a), group_of(c)) == (0, 1)
        assert setter.loads() == {0: 5, 1: 3}
        b = tf.multiply(c, a)
        assert (group_of(b), group_of(c)) == (0, 0)
        assert setter.loads() == {0: 9, 1: 0}
        tf.add(c, x)  # c now has a user, and no longer moves
        assert group_of(c) == 0 and setter.loads() == {0: 9, 1: 1}
        d = tf.identity(tf.constant(2.0))  # a source and its own source
        assert group_of(d) == 1 and setter.loads() == {0: 9, 1: 5}
        tf.multiply(b, d)
        assert [group_of(t) for t in (d, d.op.inputs[0])] == [0, 0]
        assert setter.loads() == {0: 14, 1: 1}


def test_op_types_say_what_starts_a_chain() -> None:
    """Ops of other types follow, with their sources, or are in the enclosing scope."""

    def f(x: Any) -> Any:
        with tf.stream(3), tf.stream(least_loaded(op_types=["MatMul"])):
            for _ in range(2):
                h = tf.linalg.matmul(tf.sin(x), tf.ones([3, 3]))
                tf.cos(h * 2.0)

    graph = traced(f, tf.TensorSpec([3, 3], tf.float32))
    assert groups(graph, "Sin MatMul Mul Cos") == [3, 3, 0, 1, 0, 1, 0, 1]
    factors = [op.inputs[1] for op in graph.get_operations() if op.type == "Mul"]
    assert [group_of(t) for t in factors] == [0, 1]


def test_loads_are_counted_anew_for_each_graph() -> None:
    """A function traced again has the same groups; functions traced in it go on counting."""
    setter = least_loaded()

    def f(x: Any) -> Any:
        @tf.function
        def inner(x: Any) -> Any:
            with tf.stream(setter):
                return tf.tan(x)

        first = x[0]
        with tf.stream(setter):
            a = tf.sin(x)
            b = tf.cos(first)
        return a, b, inner(first)

    for _ in range(2):
        graph = traced(f)
        assert groups(graph, "Sin Cos") == [0, 1]
        assert groups_in_functions(graph, "Tan") == {1}
        assert setter.loads() == {0: 12, 1: 8}


def test_threads_share_a_setter_for_graphs_of_their_own() -> None:
    """Each graph has the groups that it has when built alone."""
    setter = least_loaded(0, 1, 2)

    def build() -> list[int | None]:
        with tf.Graph().as_default(), tf.stream(setter):
            x = tf1.placeholder(tf.float32, [7])
            return [group_of(tf.sin(tf.cos(x[: i % 5]))) for i in range(60)]

    expected = build()
    found: list[list[int | None]] = []
    run_threads([lambda: found.append(build())] * 4)
    assert found == [expected] * 4 and set(expected) == {0, 1, 2}


def test_a_setter_keeps_no_graph_alive() -> None:
    setter = least_loaded()
    for _ in range(2):
        with tf.Graph().as_default() as graph, tf.stream(setter):
            tf.sin(tf.constant(1.0))
    gc.collect()
    assert list(setter._placed) == [graph] == list(setter._loads)


def test_loops_of_v1_graphs_run(old_control_flow: None, graph: Any) -> None:
    """Their ops are in one graph, back edges included, built or imported in the scope."""
    with tf.stream(least_loaded()):
        x = tf1.placeholder(tf.float32, [3], name="x")
        y = tf1.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x))
        y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [0, y])[1]
        tf.identity(tf1.gradients(y, x)[0], name="dx")
    stripped = graph.as_graph_def()
    for node in stripped.node:
        node.attr.pop(GROUP, None)
    with tf.Graph().as_default() as again, tf.stream(least_loaded()):
        tf.import_graph_def(stripped, name="")
    for built in (graph, again):
        assert all(group_of(op) is not None for op in built.get_operations())
        with tf1.Session(graph=built) as session:
            assert np.isfinite(session.run("dx:0", {"x:0": [1.0, 2.0, 3.0]})).all()


def test_all_groups_are_used_by_default(four_groups: None) -> None:
    """Every group has load 0 before the first op."""
    setter = tf.cuda.LeastLoadedStreamSetter()
    assert setter.loads() == {0: 0, 1: 0, 2: 0, 3: 0}
    mixed = tf.cuda.LeastLoadedStreamSetter([tf.cuda.get_stream(3), 1], "cost", {"MatMul", "Add"})
    assert list(mixed.loads()) == [3, 1]
    shown = "tf.cuda.LeastLoadedStreamSetter(streams=[3, 1], load='cost', op_types=['Add', 'MatMul'"
    assert repr(mixed) == f"{shown}])"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"streams": []}, ValueError, r"\(streams=\[\]\): there must be a stream"),
        ({"streams": [0, 4]}, ValueError, r"streams=\[0, 4\].*no stream group 4"),
        ({"streams": [1, tf.cuda.Stream(1)]}, ValueError, "names group 1 twice"),
        ({"load": "time"}, ValueError, "load='time' must be 'bytes', 'cost' or a function"),
        ({"op_types": "MatMul"}, TypeError, r"op_types='MatMul' must be a list.*\['MatMul'\]"),
        ({"op_types": ["matmul"]}, ValueError, "TensorFlow has no op 'matmul'"),
    ],
)
def test_wrong_arguments_are_named(
    four_groups: None, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tf.cuda.LeastLoadedStreamSetter(**arguments)


def load_of(build: Callable[[], Any], load: Any) -> float:
    setter = least_loaded(0, load=load)
    with tf.stream(setter):
        op = build().op
    return float(setter._placed[op.graph][op.name].load)


def images(*shape: int | None) -> Any:
    return tf1.placeholder(tf.float32, shape)


@pytest.mark.parametrize(
    ("load", "build", "expected"),
    [
        # The bytes of all outputs: an unknown dimension counts as 1, a handle as its variable.
        ("bytes", lambda: tf.sin(images(3, 5)), 60),
        ("bytes", lambda: tf.sin(images(None, 5)), 20),
        ("bytes", lambda: tf.unique(tf1.placeholder(tf.float64, [6])).idx, 8 + 24),
        ("bytes", lambda: tf.strings.as_string(images(6)), 0),
        ("bytes", lambda: tf1.get_variable("v", [6, 2], use_resource=True).handle, 48),
        ("bytes", lambda: tf1.get_variable("v", [6, 2], use_resource=False)._ref(), 48),
        # What TensorFlow's statistics say.
        ("cost", lambda: images(3, 5) @ images(5, 7), 2 * 3 * 5 * 7),
        ("cost", lambda: tf.nn.conv2d(images(1, 8, 8, 2), images(3, 3, 2, 4), 1, "SAME"), 9216),
        # An operation for 4 bytes: of unknown rank, in NCHW, and of a type without statistics.
        ("cost", lambda: tf1.placeholder(tf.float32) @ images(5, 7), 1),
        ("cost", lambda: tf.nn.avg_pool2d(images(1, 2, 8, 8), 2, 2, "SAME", "NCHW"), 32),
        ("cost", lambda: tf.cumsum(images(3, 5)), 15),
        ("cost", lambda: tf.cast(images(3, 5), tf.float64), 30),
    ],
)
def test_a_load_is_the_bytes_or_the_cost(
    graph: Any, load: str, build: Any, expected: float
) -> None:
    assert load_of(build, load) == expected


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ("3", TypeError, r"load=<.* said '3' for op 'a' \(Const\), and must say a number"),
        (float("nan"), ValueError, "said nan for op 'a'.* finite"),
    ],
)
def test_a_load_that_is_none_is_named(
    graph: Any, said: Any, error: type[Exception], message: str
) -> None:
    setter = least_loaded(load=lambda op: said)
    with pytest.raises(error, match=message), tf.stream(setter):
        tf.constant(1.0, name="a")
    assert setter.loads() == {0: 0, 1: 0}
