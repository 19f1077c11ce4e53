# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The least loaded setter spreads chains over the streams and keeps each whole."""

import gc
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import GROUP, X, group_of, groups_by_type, least_loaded, traced
from multistream.testing.kit import ok

tf1 = tf.compat.v1


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
    types = ("Sin", "Cos", "Tan", "Sinh", "Exp", "Asinh")
    assert [group for _, group in groups_by_type(graph, *types)] == [2, 2, 0, 3, 3, 0]
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

    types = ("Sin", "Cos", "StridedSlice", "Tan", "Sub", "AddV2")
    assert groups_by_type(traced(f, X), *types) == [
        ("Sin", 0),
        ("Cos", 1),
        ("StridedSlice", 0),
        ("Tan", 0),
        ("Sub", 1),
        ("AddV2", 1),
    ]


def test_branches_of_one_input_are_chains_of_their_own(graph: Any) -> None:
    """Feeds and constants do not join branches; each is on the stream of its first user."""
    x = tf1.placeholder(tf.float32, [3])
    with tf.stream(least_loaded()):
        y = tf1.placeholder(tf.float32, [3])
        c = tf.constant([1.0, 2.0, 3.0])
        branches = [tf.tanh(x * c), tf.tanh(y * c), tf.tanh(y + 1.0), tf.tanh(2.0 - x)]
    assert [group_of(branch.op) for branch in branches] == [1, 0, 0, 1]
    assert [group_of(branch.op.inputs[0].op) for branch in branches] == [1, 0, 0, 1]
    assert [group_of(t.op) for t in (c, y)] == [1, 0]
    for branch in branches[2:]:  # the constants 1.0 and 2.0
        consts = [t.op for t in branch.op.inputs[0].op.inputs if t.op.type == "Const"]
        assert [group_of(op) for op in consts] == [group_of(branch.op)]


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
        assert {group_of(t.op) for t in op.inputs if t.op.type != "Placeholder"} == {group_of(op)}


def test_a_source_moves_with_its_load() -> None:
    """A source's load counts for the stream where it is built, then for its user's stream."""
    setter = least_loaded(load=lambda op: {"Sin": 5, "Const": 3}.get(op.type, 1))
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [])
        with tf.stream(setter):
            a = tf.sin(x)
            c = tf.constant(1.0)
            assert (group_of(a.op), group_of(c.op)) == (0, 1)
            assert setter.loads() == {0: 5, 1: 3}
            b = tf.multiply(c, a)
            assert (group_of(b.op), group_of(c.op)) == (0, 0)
            assert setter.loads() == {0: 9, 1: 0}
            tf.add(c, x)  # c now has a user, and no longer moves
            assert group_of(c.op) == 0 and setter.loads() == {0: 9, 1: 1}
            d = tf.identity(tf.constant(2.0))  # a source and its own source
            assert group_of(d.op) == 1 and setter.loads() == {0: 9, 1: 5}
            tf.multiply(b, d)
            assert [group_of(op) for op in (d.op, d.op.inputs[0].op)] == [0, 0]
            assert setter.loads() == {0: 14, 1: 1}


def test_op_types_say_what_starts_a_chain() -> None:
    """Ops of other types follow, with their sources, or are in the enclosing scope."""

    def f(x: Any) -> Any:
        with tf.stream(3), tf.stream(least_loaded(op_types=["MatMul"])):
            for _ in range(2):
                h = tf.linalg.matmul(tf.sin(x), tf.ones([3, 3]))
                tf.cos(h * 2.0)

    graph = traced(f, tf.TensorSpec([3, 3], tf.float32))
    chain = [("Sin", 3), ("MatMul", 0), ("Mul", 0), ("Cos", 0)]
    other = [("Sin", 3), ("MatMul", 1), ("Mul", 1), ("Cos", 1)]
    assert groups_by_type(graph, "Sin", "MatMul", "Mul", "Cos") == chain + other
    factors = [op.inputs[1].op for op in graph.get_operations() if op.type == "Mul"]
    assert [group_of(op) for op in factors] == [0, 1]


def test_variables_can_be_spread_by_size(graph: Any) -> None:
    """In the manner of a device setter: listed, variables start chains, and their users follow."""
    setter = least_loaded(op_types=["VarHandleOp"])
    with tf.stream(setter):
        for name, rows in (("large", 8), ("small", 1), ("medium", 4)):
            v = tf1.get_variable(name, [rows, 2], initializer=tf1.zeros_initializer())
            tf.sin(v, name=f"{name}_sin")
    found = [group_of(graph.get_operation_by_name(f"{n}_sin")) for n in ("large", "small")]
    assert found == [0, 1]
    handles = groups_by_type(graph, "VarHandleOp")
    assert [group for _, group in handles] == [0, 1, 1]


# One program, one result.


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
        graph = traced(f, X)
        assert groups_by_type(graph, "Sin", "Cos") == [("Sin", 0), ("Cos", 1)]
        nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
        assert [node.attr[GROUP].i for node in nodes if node.op == "Tan"] == [1]
        assert setter.loads() == {0: 12, 1: 8}


def test_threads_share_a_setter_for_graphs_of_their_own() -> None:
    """Each graph has the groups that it has when built alone."""
    setter = least_loaded(0, 1, 2)

    def build() -> list[int | None]:
        with tf.Graph().as_default(), tf.stream(setter):
            x = tf1.placeholder(tf.float32, [7])
            return [group_of(tf.sin(tf.cos(x[: i % 5])).op) for i in range(60)]

    expected = build()
    found: list[list[int | None]] = []
    threads = [threading.Thread(target=lambda: found.append(build())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4 and set(expected) == {0, 1, 2}


def test_a_setter_keeps_no_graph_alive() -> None:
    setter = least_loaded()
    for _ in range(2):
        with tf.Graph().as_default() as graph, tf.stream(setter):
            tf.sin(tf.constant(1.0))
    gc.collect()
    assert list(setter._placed) == [graph] == list(setter._loads)


def test_loops_of_v1_graphs_run() -> None:
    """Their ops are in one graph, back edges included, built or imported in the scope."""
    tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph, tf.stream(least_loaded()):
            x = tf1.placeholder(tf.float32, [3], name="x")
            y = tf1.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x))
            y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [0, y])[1]
            tf.identity(tf1.gradients(y, x)[0], name="dx")
    finally:
        tf1.enable_control_flow_v2()
    with tf.Graph().as_default() as again, tf.stream(least_loaded()):
        stripped = graph.as_graph_def()
        for node in stripped.node:
            node.attr.pop(GROUP, None)
        tf.import_graph_def(stripped, name="")
    for built in (graph, again):
        assert all(group_of(op) is not None for op in built.get_operations())
        with tf1.Session(graph=built) as session:
            assert np.isfinite(session.run("dx:0", {"x:0": [1.0, 2.0, 3.0]})).all()


# Arguments.


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
        ({"streams": 4}, TypeError, r"\(streams=4\): streams must be a list"),
        ({"streams": "01"}, TypeError, "must be a list"),
        ({"streams": []}, ValueError, r"\(streams=\[\]\): there must be a stream"),
        ({"streams": [0, "1"]}, TypeError, r"streams\[1\] must be an int"),
        ({"streams": [0, 4]}, ValueError, r"streams=\[0, 4\].*no stream group 4"),
        ({"streams": [1, tf.cuda.Stream(1)]}, ValueError, "names group 1 twice"),
        ({"load": "time"}, ValueError, "load='time' must be 'bytes', 'cost' or a function"),
        ({"load": 3}, TypeError, "load=3 must be 'bytes'"),
        ({"load": float}, TypeError, "load=<class 'float'> must be"),
        ({"op_types": "MatMul"}, TypeError, r"op_types='MatMul' must be a list.*\['MatMul'\]"),
        ({"op_types": [3]}, TypeError, "3 must be a str"),
        ({"op_types": ["matmul"]}, ValueError, "TensorFlow has no op 'matmul'"),
    ],
)
def test_wrong_arguments_are_named(
    four_groups: None, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tf.cuda.LeastLoadedStreamSetter(**arguments)


# The process.


def test_training_on_real_groups_gives_the_same_results() -> None:
    """Towers that a setter spreads over emulated groups, and one stream."""
    code = """
        import numpy as np
        import tensorflow as tf
        tf.keras.utils.set_random_seed(1)
        towers = [tf.Variable(tf.random.normal([8, 8])) for _ in range(6)]
        setter = tf.cuda.LeastLoadedStreamSetter(load="cost")

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                with tf.stream(setter):
                    outputs = [tf.tanh(x @ w) @ w for w in towers]
                loss = tf.add_n([tf.reduce_sum(y) for y in outputs])
            for w, g in zip(towers, tape.gradient(loss, towers)):
                w.assign_sub(0.01 * g)
            return loss

        with tf.device("/GPU:0"):
            for _ in range(5):
                loss = step(tf.ones([4, 8]))
        print(np.concatenate([w.numpy().ravel() for w in towers]).tobytes().hex(), float(loss))
        rows = tf.cuda.stream_groups_of(step)
        print([r.group for r in rows if r.op == "Tanh"], setter.loads())
    """
    groups = {"TF_MULTI_STREAM_EMULATED_GPUS": "1", "TF_GPU_STREAM_GROUP_COUNT": "3"}
    groups["TF_MULTI_STREAM_SANITIZER"] = "abort"
    several = ok(code, **groups, TF_NODE_LEVEL_MULTISTREAM="true").splitlines()
    one = ok(code, **groups).splitlines()
    assert several[0] == one[0]
    assert several[1].startswith("[0, 1, 2, 0, 1, 2]")
