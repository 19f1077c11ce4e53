# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops built on a stream, by a scope or by the stream itself, carry its group; no other op does."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import (
    NO_GRAD,
    X,
    group_of,
    groups,
    groups_in_functions,
    marked,
    nodes_of_functions,
    traced,
)
from multistream.testing.kit import ok, on, run_threads

tf1 = tf.compat.v1


def test_ops_in_the_scope_carry_the_group_and_others_do_not() -> None:
    """In a v1 graph, and in a function, whose arguments and captures belong to no scope."""
    v = tf.Variable([1.0, 2.0, 3.0])

    def f(x: Any, weights: Any) -> Any:
        with on(2):
            y = tf.sin(x + weights)
        return tf.cos(y)

    with tf.Graph().as_default() as graph:
        f(tf1.placeholder(tf.float32, [3]), 1.0)
    for built in (graph, traced(lambda x: f(x, v))):
        assert groups(built, "AddV2 Sin Cos") == [2, 2, None]
        assert set(groups(built, "Placeholder")) == {None}


def test_no_scope_leaves_no_trace() -> None:
    """Without scopes, graphs, functions and gradients have no attribute of ours."""
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: tf.tanh(x) * v)

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cond(x[0] > 0, lambda: inner(x), lambda: x * v)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * v), [0, y])[1]
        return tape.gradient(y, v), tf.gradients(y, x)

    assert marked(traced(f)) == []


def test_the_innermost_scope_counts() -> None:
    """By number, Stream or the stream itself, in any order; after the inner scope, the outer."""

    def f(x: Any) -> Any:
        with tf.stream(1) as s:
            assert s == tf.cuda.Stream(1)
            x = tf.sin(x)
            with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
                x = tf.cos(x)
                with on(3), tf.stream(tf.cuda.get_stream(0)):
                    x = tf.tan(x)
                with tf.cuda.get_stream(3):
                    x = tf.sinh(x)
                x = tf.exp(x)
            x = tf.tanh(x)
        return tf.cosh(x)

    assert groups(traced(f), "Sin Cos Tan Sinh Exp Tanh Cosh") == [1, 2, 0, 3, 2, 1, None]


@pytest.mark.parametrize("scope", [on(2), tf.cuda.get_stream(2)])
def test_a_scope_is_reusable_and_reentrant(scope: Any) -> None:
    """One object is entered again inside itself and in another function, but left only once."""

    def f(x: Any) -> Any:
        with scope as entered, on(1), scope:
            x = tf.sin(x)
        assert entered == tf.cuda.Stream(2)
        with scope:
            with scope:
                x = tf.exp(x)
            x = tf.cos(x)
        return tf.tan(x)

    for _ in range(2):
        assert groups(traced(f), "Sin Exp Cos Tan") == [2, 2, 2, None]
    with pytest.raises(RuntimeError, match="has not entered it"):
        scope.__exit__(None, None, None)


def with_a_branch(x: Any) -> Any:
    """Has code that AutoGraph must convert."""
    if x[0] > 0:
        x = tf.sin(x)
    return tf.cos(x)


@pytest.mark.parametrize("scope", [on(2), tf.stream(2)])
def test_a_decorator_enters_the_scope_in_each_call(scope: Any) -> None:
    """Below tf.function, on what it calls, and on methods; names and AutoGraph still work."""
    decorated = scope(with_a_branch)

    class Model:
        @scope
        def call(self, x: Any) -> Any:
            return tf.tan(x)

    def f(x: Any) -> Any:
        return decorated(Model().call(tf.exp(x)))

    assert groups(traced(f), "Exp Tan StatelessIf Cos") == [None, 2, 2, 2]
    assert groups(traced(decorated), "StatelessIf Cos") == [2, 2]
    assert groups(traced(Model().call, autograph=False), "Tan") == [2]
    assert decorated.__name__ == "with_a_branch"


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

    assert groups(traced(f), "PartitionedCall") == [1, 2, None]
    assert groups(inner.get_concrete_function(X).graph, "Sin Cos") == [3, None]


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

    graph = traced(f)
    assert groups(graph, "StatelessIf StatelessWhile") == [1, 1, 1]
    assert groups_in_functions(graph, "Sin") == {3}
    others = {node.op for node in nodes_of_functions(graph)} - {"Sin"}
    assert all(groups_in_functions(graph, op) == {None} for op in others)


def test_v1_control_flow_builds_marked_ops(old_control_flow: None, graph: Any) -> None:
    """Its bodies are in the same graph, so their ops carry the group; so do their gradients."""
    x = tf1.placeholder(tf.float32, [3])
    with on(1):
        y = tf1.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x))
        y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [0, y])[1]
    forward = set(graph.get_operations())
    (dx,) = tf1.gradients(y, x)
    tail = tf.exp(dx)
    assert all(group_of(op) == 1 for op in forward - {x.op})
    assert set(groups(graph, "TanhGrad")) == {1}
    assert group_of(tail) is None
    with tf1.Session(graph=graph) as session:
        assert np.isfinite(session.run(dx, {x: [1.0, 2.0, 3.0]})).all()


def test_other_threads_are_not_in_the_scope() -> None:
    """Two threads that build one graph, in scopes of their own and in none."""
    graph = tf.Graph()
    entered, built = threading.Barrier(3), threading.Barrier(3)
    found: dict[int | None, int | None] = {}

    def build(group: int | None) -> None:
        with graph.as_default(), on(group, scoped=group is not None):
            entered.wait()
            found[group] = group_of(tf.constant(1.0))
            built.wait()

    run_threads([partial(build, group) for group in (None, 1, 2)])
    assert found == {None: None, 1: 1, 2: 2}


def test_imported_nodes_keep_their_group(graph: Any) -> None:
    """import_graph_def in a scope groups only the nodes that have no group."""
    with on(3):
        tf.constant(1.0, name="a")
    tf.constant(1.0, name="b")
    with tf.Graph().as_default() as again, on(1):
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert [group_of(again.get_operation_by_name(name)) for name in "ab"] == [3, 1]


def test_a_saved_model_keeps_groups(tmp_path: Path) -> None:
    """Export and import, in functions and signatures; gradients of loaded functions follow."""

    class Module(tf.Module):
        @tf.function(input_signature=[X])
        def call(self, x: Any) -> Any:
            with on(2):
                x = tf.tanh(x)
            with on(1, include_grad=False):
                return tf.sigmoid(x)

    tf.saved_model.save(Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    signature = loaded.signatures["serving_default"]
    for function in (loaded.call, signature):
        concrete = getattr(function, "concrete_functions", [function])[0]
        rows = {r.op: (r.group, r.why) for r in tf.cuda.stream_groups_of(concrete)}
        assert rows["Tanh"] == (2, "scope") and rows["Sigmoid"] == (1, "scope")
    with tf1.Session(graph=tf.Graph()) as session:
        tf1.saved_model.load(session, ["serve"], str(tmp_path))
        assert groups_in_functions(session.graph, "Sigmoid") == {1}
        nodes = nodes_of_functions(session.graph)
        assert all(node.attr[NO_GRAD].b for node in nodes if node.op == "Sigmoid")
    trained = traced(lambda x: tf.gradients(loaded.call(x), x))
    assert groups_in_functions(trained, "TanhGrad") == {2}
    assert groups_in_functions(trained, "SigmoidGrad") == {None}


def test_run_interleaves_branches_line_by_line() -> None:
    """It returns what the function does, in a tf.function and in a v1 graph."""
    s1, s2 = tf.cuda.get_stream(1), tf.cuda.get_stream(2)

    def f(x: Any) -> Any:
        a = s1.run(tf.sin, x)
        b = s2.run(tf.cos, x)
        a = s1.run(tf.matmul, [a], [b], transpose_b=True)
        return s2.run(lambda fn, self: (tf.tan(fn), self), fn=b, self=3), a

    with tf.Graph().as_default() as graph:
        (_, three), _ = f(tf1.placeholder(tf.float32, [3]))
    assert three == 3
    for built in (graph, traced(f)):
        assert groups(built, "Sin Cos MatMul Tan") == [1, 2, 1, 2]


def test_run_converts_what_autograph_would() -> None:
    """AutoGraph converts a function that is called by run if it would convert a direct call."""

    def f(x: Any) -> Any:
        return tf.cuda.get_stream(1).run(with_a_branch, x)

    assert groups(traced(f), "StatelessIf") == [1]
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        traced(f, autograph=False)


def test_a_stream_without_group_is_named(four_groups: None, graph: Any) -> None:
    """A stream without group, made earlier or by hand, is an error when it is used."""
    gone = tf.cuda.Stream(4)
    uses: list[Callable[[], Any]] = [gone.__enter__, lambda: gone.run(tf.sin, 1.0)]
    for use in uses:
        with pytest.raises(ValueError, match=r"Stream\(group=4\).*there is no stream group 4"):
            use()
    with pytest.raises(ValueError, match=r"get_stream\(4\).synchronize\(\): .*stream group 4"):
        gone.synchronize()


def test_with_real_groups_every_kind_of_scope_trains_what_one_stream_trains() -> None:
    """Each node is where the program says; the host can wait for it; all names are there."""
    code = """
        import numpy as np
        import tensorflow as tf
        assert tf.stream is tf.compat.v1.stream is tf.compat.v2.stream
        for name in ("synchronize", "stream_scope", "get_stream", "Stream", "stream_groups_of"):
            apis = (tf.compat.v1.cuda, tf.compat.v2.cuda)
            assert all(getattr(api, name) is getattr(tf.cuda, name) for api in apis), name
        tf.keras.utils.set_random_seed(1)
        with tf.device("/GPU:0"):
            towers = [tf.Variable(tf.random.normal([8, 8])) for _ in range(6)]
        setter = tf.cuda.LeastLoadedStreamSetter(load="cost")

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                with tf.stream(setter):
                    outputs = [tf.tanh(x @ w) @ w for w in towers]
                for w in towers[:4]:
                    with tf.cuda.stream_scope():
                        outputs.append(tf.sin(x @ w))
                with tf.stream(1):
                    outputs.append(tf.exp(x @ towers[0]))
                outputs.append(tf.cuda.get_stream(2).run(tf.sigmoid, x @ towers[1]))
                loss = tf.add_n([tf.reduce_sum(y) for y in outputs])
            for w, g in zip(towers, tape.gradient(loss, towers)):
                w.assign_sub(0.01 * g)
            return loss

        with tf.device("/GPU:0"):
            for _ in range(5):
                loss = step(tf.ones([4, 8]))
        tf.cuda.get_stream(2).synchronize()
        tf.cuda.synchronize()
        print(np.concatenate([w.numpy().ravel() for w in towers]).tobytes().hex(), float(loss))
        rows = tf.cuda.stream_groups_of(step)
        for op in ("Tanh", "Sin", "Exp", "Sigmoid", "TanhGrad"):
            print(op, *sorted(r.group for r in rows if r.op == op))
    """
    environment = {
        "TF_MULTI_STREAM_EMULATED_GPUS": "1",
        "TF_GPU_STREAM_GROUP_COUNT": "3",
        "TF_MULTI_STREAM_SANITIZER": "abort",
    }
    result, *rows = ok(code, **environment, TF_NODE_LEVEL_MULTISTREAM="true").splitlines()
    spread = "0 0 1 1 2 2"
    assert rows == [f"Tanh {spread}", "Sin 0 0 1 2", "Exp 1", "Sigmoid 2", f"TanhGrad {spread}"]
    assert ok(code, **environment).splitlines()[0] == result
    stock, *rows = ok(code).splitlines()  # on the CPU, whose last bits may differ
    assert float(stock.split()[1]) == pytest.approx(float(result.split()[1]), rel=1e-5)
    assert rows[1] == "Sin 0 0 0 0"
