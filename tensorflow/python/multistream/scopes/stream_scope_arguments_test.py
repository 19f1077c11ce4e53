# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which stream a scope gets: the one named or the next; one that is not there is an error."""

from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.multistream.scopes import scope_stack

from multistream.testing.graphs import X, groups_by_type, traced
from multistream.testing.kit import ok, on

tf1 = tf.compat.v1


# Round robin.


def test_scopes_without_stream_take_turns(four_groups: None) -> None:
    """Each entry takes the next group; the count starts anew with each traced function."""
    scope = tf.cuda.stream_scope()
    seen = []

    def f(x: Any) -> Any:
        with scope as first:
            x = tf.sin(x)
        with tf.cuda.stream_scope() as second:
            x = tf.sin(x)
            with scope as third:
                x = tf.sin(x)
        for _ in range(2):
            with scope:
                x = tf.sin(x)
        seen.append([first.group, second.group, third.group])
        return x

    for _ in range(2):
        graph = tf.function(f, autograph=False).get_concrete_function(X).graph
        assert [group for _, group in groups_by_type(graph, "Sin")] == [0, 1, 2, 3, 0]
    assert seen == [[0, 1, 2]] * 2


def test_turns_are_counted_for_the_outermost_graph(four_groups: None) -> None:
    """Functions and branches go on where their caller is; v1 graphs count by themselves."""

    @tf.function
    def inner(x: Any) -> Any:
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            return tf.sin(x)

    def f(x: Any) -> Any:
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            x = inner(x)
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            return tf.cond(x[0] > 0, lambda: inner(x + 1.0), lambda: x)

    taken: list[int] = []
    traced(f, X)
    assert taken == [0, 1, 2]
    taken.clear()
    for _ in range(2):
        with tf.Graph().as_default():
            for _ in range(2):
                with tf.cuda.stream_scope() as s:
                    taken.append(s.group)
    assert taken == [0, 1, 0, 1]


# Errors.


def test_eager_code_is_an_error() -> None:
    """The error says where scopes work; a py_function and a decorator give it, too."""
    for enter in (lambda: on(1).__enter__(), lambda: on(1)(tf.sin)(1.0)):
        with pytest.raises(RuntimeError, match=r"works inside a tf.function or a tf.compat.v1 gr"):
            enter()
    assert not scope_stack.active.entries


def test_functions_run_eagerly_ignore_scopes() -> None:
    """Debugging with run_functions_eagerly does not stop at a scope."""
    tf.config.run_functions_eagerly(True)
    try:
        with tf.cuda.stream_scope() as s, on(2):
            assert float(tf.function(lambda x: x + 1.0)(1.0)) == 2.0
        assert s == tf.cuda.Stream(0)
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        (1, TypeError, r"stream=1 is not .* tf.cuda.get_stream\(1\)"),
        ("1", TypeError, "stream='1' is not a tf.cuda.Stream"),
        (True, TypeError, "stream=True is not"),
        (tf.identity, TypeError, r"@tf.cuda.stream_scope\(\), with parentheses"),
        (tf.cuda.Stream(4), ValueError, r"Stream\(group=4\).*TF_GPU_STREAM_GROUP_COUNT=5"),
        (tf.cuda.Stream("a"), TypeError, r"Stream\(group='a'\)"),
    ],
)
def test_a_wrong_stream_is_named(
    four_groups: None, stream: Any, error: type[Exception], message: str
) -> None:
    """The error names what was passed and says what to pass."""
    with pytest.raises(error, match=message):
        tf.cuda.stream_scope(stream)


@pytest.mark.parametrize(
    ("i", "error", "message"),
    [
        (4, ValueError, r"get_stream\(4\): .* group 4.*has 4.*TF_GPU_STREAM_GROUP_COUNT=5"),
        (64, ValueError, r"get_stream\(64\).*at most 64"),
        (-1, ValueError, r"get_stream\(-1\).*from 0 to 3"),
        (True, TypeError, r"get_stream\(True\).*int"),
        ("1", TypeError, r"get_stream\('1'\)"),
        (1.0, TypeError, r"get_stream\(1.0\)"),
        (None, TypeError, r"get_stream\(None\)"),
    ],
)
def test_a_wrong_group_is_named(
    four_groups: None, i: Any, error: type[Exception], message: str
) -> None:
    """The error names the number, the count and the variable."""
    with pytest.raises(error, match=message):
        tf.cuda.get_stream(i)


def test_one_stream_takes_every_group() -> None:
    """Without multi-stream, groups that some machine could have are accepted, and no others."""
    assert [tf.cuda.get_stream(i).group for i in (0, 63)] == [0, 63]
    with pytest.raises(ValueError, match=r"get_stream\(64\).*from 0 to 63"):
        tf.cuda.get_stream(64)


def test_wrong_use_of_the_decorator_is_an_error() -> None:
    """Classes and generators are errors, because the scope would not reach their bodies."""

    class Layer:
        pass

    def generate() -> Iterator[int]:
        yield 1

    for wrong in (Layer, generate, 3):
        with pytest.raises(TypeError, match="decorate"):
            on(1)(wrong)


def test_leaving_a_scope_that_was_not_entered_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="has not entered it"):
        on(1).__exit__(None, None, None)


def test_real_groups_bound_streams_and_scoped_training_runs() -> None:
    """With real groups: their number counts, under every name, and a scoped step gives the same."""
    code = """
        import tensorflow as tf
        tf1 = tf.compat.v1
        assert tf1.cuda.stream_scope is tf.cuda.stream_scope
        assert tf.compat.v2.cuda.get_stream is tf1.cuda.get_stream is tf.cuda.get_stream
        assert tf1.cuda.Stream is tf.cuda.Stream
        assert tf1.cuda.stream_groups_of is tf.cuda.stream_groups_of
        if tf.cuda.multi_stream_is_enabled():
            try:
                tf.cuda.get_stream(3)
            except ValueError as error:
                assert "TF_GPU_STREAM_GROUP_COUNT=4" in str(error)
            else:
                raise AssertionError
        v = tf.Variable([1.0, 2.0, 3.0])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = 0.0
                for _ in range(4):
                    with tf.cuda.stream_scope():
                        loss += tf.reduce_sum(tf.tanh(v * v))
            v.assign_sub(0.1 * tape.gradient(loss, v))

        for _ in range(3):
            step()
        rows = tf.cuda.stream_groups_of(step)
        print([r.group for r in rows if r.op == "Tanh"])
        print([r.group for r in rows if r.op == "TanhGrad"])
        print([round(float(x), 5) for x in v])
    """
    groups = ok(code, TF_MULTI_STREAM_EMULATED_GPUS="1", TF_GPU_STREAM_GROUP_COUNT="3")
    one = ok(code)
    assert groups.splitlines()[:2] == ["[0, 1, 2, 0]", "[0, 2, 1, 0]"]
    assert one.splitlines()[:2] == ["[0, 0, 0, 0]"] * 2
    assert groups.splitlines()[2] == one.splitlines()[2]
