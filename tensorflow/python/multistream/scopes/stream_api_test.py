# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops go where tf.stream and streams themselves say."""

import threading
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream.scopes import scope_stack

from multistream.testing.graphs import GROUP, X, group_of, groups_by_type, traced
from multistream.testing.kit import ok

tf1 = tf.compat.v1


# tf.stream.


def test_stream_has_a_name_everywhere() -> None:
    assert tf.stream is tf1.stream is tf.compat.v2.stream
    assert tf1.cuda.synchronize is tf.compat.v2.cuda.synchronize is tf.cuda.synchronize


def test_stream_is_stream_scope() -> None:
    """By number or Stream, nested in each other in any order; the innermost counts."""

    def f(x: Any) -> Any:
        with tf.stream(1) as s:
            assert s == tf.cuda.Stream(1)
            x = tf.sin(x)
            with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
                x = tf.cos(x)
                with tf.stream(tf.cuda.get_stream(0)):
                    x = tf.tan(x)
                x = tf.exp(x)
            x = tf.tanh(x)
        return tf.sinh(x)

    graph = traced(f, X)
    assert groups_by_type(graph, "Sin", "Cos", "Tan", "Exp", "Tanh", "Sinh") == [
        ("Sin", 1),
        ("Cos", 2),
        ("Tan", 0),
        ("Exp", 2),
        ("Tanh", 1),
        ("Sinh", None),
    ]


@tf.stream(2)
def decorated(x: Any) -> Any:
    """Has code that AutoGraph must convert."""
    if x[0] > 0:
        x = tf.sin(x)
    return tf.cos(x)


def test_stream_is_a_decorator() -> None:
    graph = traced(decorated, X)
    assert groups_by_type(graph, "StatelessIf", "Cos") == [("StatelessIf", 2), ("Cos", 2)]


def test_bodies_and_called_functions_have_their_own_streams() -> None:
    """Cond, while and call ops have the enclosing group; ops in bodies that of inner streams."""

    @tf.function
    def inner(x: Any) -> Any:
        with tf.stream(3):
            y = tf.sin(x)
        return tf.cos(y)

    def f(x: Any) -> Any:
        with tf.stream(1):
            x = tf.cond(x[0] > 0, lambda: inner(x), lambda: tf.cos(x))
            return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, inner(x)), [0, x])[1]

    graph = traced(f, X)
    assert groups_by_type(graph, "StatelessIf", "StatelessWhile") == [
        ("StatelessIf", 1),
        ("StatelessWhile", 1),
    ]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    found = {node.op: node.attr[GROUP].i for node in nodes if GROUP in node.attr}
    assert found == {"Sin": 3}


@pytest.mark.parametrize("tape", [True, False])
@pytest.mark.parametrize("include_grad", [True, False])
def test_gradients_follow_streams(tape: bool, include_grad: bool) -> None:
    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with tf.stream(2, include_grad=include_grad):
                y = tf.tanh(x)
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    assert groups_by_type(traced(f, X), "TanhGrad") == [("TanhGrad", 2 if include_grad else None)]


def test_streams_of_other_threads_do_not_count() -> None:
    """Two threads that build one graph on streams of their own, and one on none."""
    graph = tf.Graph()
    entered, built = threading.Barrier(3), threading.Barrier(3)
    found: dict[int | None, int | None] = {}

    def build(group: int | None) -> None:
        if group is not None:
            with graph.as_default(), tf.stream(group):
                entered.wait()
                found[group] = group_of(tf.constant(1.0).op)
                built.wait()
            return
        with graph.as_default():
            entered.wait()
            found[group] = group_of(tf.constant(1.0).op)
            built.wait()

    threads = [threading.Thread(target=build, args=(group,)) for group in (None, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {None: None, 1: 1, 2: 2}


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (5, ValueError, r"^tf.stream\(5\): .* group 5: .*has 4.*TF_GPU_STREAM_GROUP_COUNT=6"),
        (-1, ValueError, r"^tf.stream\(-1\): .*from 0 to 3"),
        (64, ValueError, r"^tf.stream\(64\): .*at most 64"),
        (tf.cuda.Stream(4), ValueError, r"^tf.stream\(Stream\(group=4\)\): .*group 4"),
        (True, TypeError, r"^tf.stream\(True\): x must be an int"),
        (1.0, TypeError, r"^tf.stream\(1.0\): x must be an int"),
        ("1", TypeError, r"^tf.stream\('1'\): x must be an int"),
        (None, TypeError, r"^tf.stream\(None\): .*next group in turn: tf.cuda.stream_scope\(\)"),
        (tf.cuda.LeastLoadedStreamSetter, TypeError, "instance of LeastLoadedStreamSetter"),
        (tf.cuda.stream_scope(), TypeError, "x must be an int"),
    ],
)
def test_a_wrong_stream_is_named(
    four_groups: None, x: Any, error: type[Exception], message: str
) -> None:
    """The error names what was passed and says what to pass."""
    with pytest.raises(error, match=message):
        tf.stream(x)


def test_errors_name_the_function_that_was_used() -> None:
    """Eager code and wrong decorators, of tf.stream and of a stream itself."""
    with pytest.raises(RuntimeError, match=r"^tf.stream was entered in eager code"):
        tf.stream(1).__enter__()
    with pytest.raises(RuntimeError, match=r"^tf.cuda.get_stream\(1\) was entered in eager code"):
        tf.cuda.get_stream(1).run(tf.sin, 1.0)
    with pytest.raises(TypeError, match=r"^tf.stream decorates functions, which 3 is not"):
        tf.stream(1)(3)

    @tf.stream
    def no_parentheses(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=r"tf.stream takes a stream: @tf.stream\(1\)"):
        no_parentheses(tf.constant(1.0))
    assert not scope_stack.active.entries


# A stream by itself.


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
    for built in (graph, traced(f, X)):
        assert groups_by_type(built, "Sin", "Cos", "MatMul", "Tan") == [
            ("Sin", 1),
            ("Cos", 2),
            ("MatMul", 1),
            ("Tan", 2),
        ]


@pytest.mark.parametrize("autograph", [True, False])
def test_run_converts_what_autograph_would(autograph: bool) -> None:
    """AutoGraph converts a function that is called by run if it would convert a direct call."""

    def branch(x: Any) -> Any:
        if x[0] > 0:
            x = tf.sin(x)
        return x

    def f(x: Any) -> Any:
        return tf.cuda.get_stream(1).run(branch, x)

    function = tf.function(f, autograph=autograph)
    if autograph:
        graph = function.get_concrete_function(X).graph
        assert groups_by_type(graph, "StatelessIf") == [("StatelessIf", 1)]
    else:
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
            function.get_concrete_function(X)


def test_run_calls_functions_layers_and_classes() -> None:
    """Whatever can be called."""
    inner = tf.function(tf.sin)
    layer = keras.layers.Dense(2)
    layer.build([1, 3])

    def f(x: Any) -> Any:
        s = tf.cuda.get_stream(1)
        return s.run(inner, x), s.run(layer, x[None]), s.run(dict, a=s.run(x.__add__, 1.0))

    graph = traced(f, X)
    assert groups_by_type(graph, "PartitionedCall", "MatMul", "AddV2") == [
        ("PartitionedCall", 1),
        ("MatMul", 1),
        ("AddV2", 1),
    ]


def test_run_of_what_is_no_function_is_an_error() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(TypeError, match=r"get_stream\(1\).run: fn=.*run\(tf.matmul, x, w\)"):
            tf.cuda.get_stream(1).run(x)


def test_a_stream_is_a_context_manager() -> None:
    """A stream may be entered again inside itself, and `as` gives the stream."""
    s = tf.cuda.get_stream(1)
    with tf.Graph().as_default():
        with s as entered:
            with tf.cuda.get_stream(2):
                with s:
                    first = tf.constant(1.0)
                second = tf.constant(1.0)
            third = tf.constant(1.0)
        fourth = tf.constant(1.0)
    assert entered is s
    assert [group_of(t.op) for t in (first, second, third, fourth)] == [1, 2, 1, None]
    with pytest.raises(RuntimeError, match="has not entered it"):
        s.__exit__(None, None, None)


def test_a_stream_without_group_is_named(four_groups: None) -> None:
    """A stream without group, made earlier or by hand, is an error when it is used."""
    gone = tf.cuda.Stream(4)
    uses: list[Callable[[], Any]] = [gone.__enter__, lambda: gone.run(tf.sin, 1.0)]
    with tf.Graph().as_default():
        for use in uses:
            with pytest.raises(ValueError, match=r"Stream\(group=4\).*there is no stream group 4"):
                use()
    with pytest.raises(ValueError, match=r"get_stream\(4\).synchronize\(\): .*stream group 4"):
        gone.synchronize()


# The process.


def test_with_real_groups_streams_give_the_same_results() -> None:
    """Each node is where the program says, and the host can wait for it."""
    code = """
        import numpy as np
        import tensorflow as tf

        @tf.function
        def f(x):
            with tf.stream(1):
                a = tf.tanh(x)
            b = tf.cuda.get_stream(2).run(tf.sigmoid, x)
            return a + b

        x = tf.constant(np.linspace(-1, 1, 1000, dtype=np.float32))
        with tf.device("/GPU:0"):
            for _ in range(20):
                y = f(x)
        tf.cuda.get_stream(2).synchronize()
        tf.cuda.synchronize()
        print(y.numpy().tobytes().hex())
        rows = {r.op: r.group for r in tf.cuda.stream_groups_of(f)}
        print(rows["Tanh"], rows["Sigmoid"])
    """
    groups = {"TF_MULTI_STREAM_EMULATED_GPUS": "1", "TF_GPU_STREAM_GROUP_COUNT": "3"}
    several = ok(code, **groups, TF_NODE_LEVEL_MULTISTREAM="true").splitlines()
    one = ok(code, **groups).splitlines()
    assert several[1] == "1 2"
    np.testing.assert_array_equal(several[0], one[0])
