# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which stream a scope gets: the one named or the next; one that is not there is an error."""

from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.multistream.scopes import scope_stack

from multistream.testing.graphs import groups, traced
from multistream.testing.kit import on


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
        assert groups(traced(f, autograph=False), "Sin") == [0, 1, 2, 3, 0]
    assert seen == [[0, 1, 2]] * 2


def test_turns_are_counted_for_the_outermost_graph(four_groups: None) -> None:
    """Functions and branches go on where their caller is; v1 graphs count by themselves."""
    taken: list[int] = []

    def f(x: Any) -> Any:
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            return tf.sin(x)

    inner = tf.function(f)
    traced(lambda x: tf.cond(x[0] > 0, lambda: inner(inner(f(x)) + f(x)), lambda: x))
    assert taken == [0, 1, 2]
    taken.clear()
    for _ in range(2):
        with tf.Graph().as_default():
            f(f(1.0))
    assert taken == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("wrong_use", "message"),
    [
        (lambda: on(1).__enter__(), r"^tf.cuda.stream_scope was .* a tf.function or a tf.compat"),
        (lambda: on(1)(tf.sin)(1.0), r"^tf.cuda.stream_scope was entered in eager code"),
        (lambda: tf.stream(1).__enter__(), r"^tf.stream was entered in eager code"),
        (lambda: tf.cuda.get_stream(1).run(tf.sin, 1), r"^tf.cuda.get_stream\(1\) was entered in"),
    ],
)
def test_eager_code_is_an_error(wrong_use: Any, message: str) -> None:
    """The error names the function that was used, and says where scopes work."""
    with pytest.raises(RuntimeError, match=message):
        wrong_use()
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


class Setter(tf.cuda.StreamSetter):
    """Is passed as a class, which is wrong."""


GONE = r"\(group=4\).* group 4: .*has 4.*TF_GPU_STREAM_GROUP_COUNT=5"


@pytest.mark.parametrize(
    ("function", "stream", "error", "message"),
    [
        ("cuda.stream_scope", 1, TypeError, r"stream=1 is not .* tf.cuda.get_stream\(1\)"),
        ("cuda.stream_scope", tf.identity, TypeError, r"@tf.cuda.stream_scope\(\), with parenth"),
        ("cuda.stream_scope", Setter, TypeError, "pass an instance of Setter"),
        ("cuda.stream_scope", tf.cuda.Stream(4), ValueError, GONE),
        ("cuda.stream_scope", tf.cuda.Stream("a"), TypeError, r"Stream\(group='a'\)"),
        ("cuda.get_stream", 4, ValueError, r"\(4\): .* group 4: .*has 4.*GROUP_COUNT=5"),
        ("cuda.get_stream", -1, ValueError, r"get_stream\(-1\).*from 0 to 3"),
        ("cuda.get_stream", True, TypeError, r"get_stream\(True\).*int"),
        ("stream", 5, ValueError, r"^tf.stream\(5\): .* group 5: .*has 4.*GROUP_COUNT=6"),
        ("stream", True, TypeError, r"^tf.stream\(True\): x must be an int"),
        ("stream", None, TypeError, r"^tf.stream\(None\): .*in turn: tf.cuda.stream_scope\(\)"),
        ("stream", tf.cuda.stream_scope(), TypeError, "x must be an int"),
    ],
)
def test_a_wrong_stream_is_named(
    four_groups: None, function: str, stream: Any, error: type[Exception], message: str
) -> None:
    module = tf.cuda if function.startswith("cuda.") else tf
    with pytest.raises(error, match=message):
        getattr(module, function.removeprefix("cuda."))(stream)


def test_one_stream_takes_every_group() -> None:
    """Without multi-stream, groups that some machine could have are accepted, and no others."""
    assert [tf.cuda.get_stream(i).group for i in (0, 63)] == [0, 63]
    with pytest.raises(ValueError, match=r"get_stream\(64\).*from 0 to 63"):
        tf.cuda.get_stream(64)


def generate() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("wrong_use", "message"),
    [
        # The scope would not reach the bodies of classes and generators.
        (lambda x: on(1)(Setter), "decorate"),
        (lambda x: on(1)(generate), "decorate"),
        (lambda x: tf.stream(1)(3), r"^tf.stream decorates functions, which 3 is not"),
        (tf.stream(generate), r"tf.stream takes a stream: @tf.stream\(1\)"),
        (lambda x: tf.cuda.get_stream(1).run(x), r"get_stream\(1\).run: fn=.*run\(tf.matmul, x, w"),
        (lambda x: tf.cuda.StreamSetter(), "abstract"),
    ],
)
def test_what_is_no_function_is_an_error(graph: Any, wrong_use: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        wrong_use(tf.constant(1.0))
