# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.serving_callable` takes strings, as TensorFlow has them."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream.serving import serving_arrays

from multistream.testing.served import bits, bound, noted_long_ways

Spec = tf.TensorSpec


def test_strings() -> None:
    """Strings of each length and kind arrive as TensorFlow has them, beside numbers."""

    @tf.function(input_signature=[Spec([None], tf.string, "s"), Spec([], tf.int32, "n")])
    def lengths(s: Any, n: Any) -> Any:
        in_bytes = tf.strings.length(s) + n
        return (
            in_bytes,
            tf.strings.to_hash_bucket_fast(s, 1 << 30),
            tf.strings.unicode_decode(s, "UTF-8").row_lengths(),
        )

    serve = tf.cuda.serving_callable(lengths)
    long = "x" * 100_000
    n = np.int32(3)
    for strings in (
        np.array(["", "a", "äöü", "東京", long]),
        np.array([b"ab", b"", b"c" * 30]),
        np.array(["mixed", b"bytes\0\0", "\0"], object),
        np.array([], object),
        np.array(["a", "bb", "ccc", "dddd"])[::-2],
        ["a", "list"],
    ):
        expected = lengths(tf.constant(np.asarray(strings), tf.string), tf.constant(n))
        for _ in range(3):
            assert bits(serve(strings, n)) == bits(expected)
    scalar = tf.cuda.serving_callable(
        tf.function(tf.strings.length, input_signature=[Spec([], tf.string)])
    )
    assert scalar("four") == 4

    for wrong, says in (
        (np.ones(2, np.float32), "s of .*float32, and must be of str or bytes"),
        (np.array(["a", 1], object), "s of .* an element that is not a string"),
        (np.array(["\udc80"], object), "s of .* an element that is not a string"),
    ):
        with pytest.raises(TypeError, match=says):
            serve(wrong, n)


def test_strings_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """C++ reads str and bytes from any array; elements that are neither have Python's error."""
    function, serve = bound(
        lambda s, x: (tf.strings.to_hash_bucket_fast(s, 1 << 30), x * 2.0),
        Spec([None, None], tf.string, "s"),
        Spec([None]),
    )
    ways = noted_long_ways(serve, monkeypatch)
    texts = [["", "a", "äöü"], ["東京", "\0", "x" * 100_000]]
    kinds = [
        np.array(texts),
        np.array(texts, object),
        np.array([[x.encode() for x in row] for row in texts], object),
        np.array([[b"a", "b", b""], ["c", b"d\0", "e"]], object),
        np.array([[b"ab", b"c", b""], [b"", b"d", b"e"]]),
        np.array(texts)[::-1, ::-1],
        np.array(texts).astype(">U100000"),
    ]
    x = np.ones(2, np.float32)
    serve(kinds[0], x)  # a new shape
    assert ways.pop() == "long"
    for s in kinds:
        for given in (s, s[:0], s):
            expected = function(tf.constant(np.asarray(given, object), tf.string), tf.constant(x))
            assert bits(serve(given, x)) == bits(expected)
    assert ways == ["long"]  # no rows are a new shape, once
    ways.clear()
    for wrong in (1, None, "\udc80", np.bytes_(b"a")):
        s = np.array([["a", wrong, "b"], ["c", "d", "e"]], object)
        if isinstance(wrong, bytes):  # of another type: in Python
            serve(s, x)
        else:
            with pytest.raises(TypeError, match="s of .* an element that is not a string"):
                serve(s, x)
        assert ways.pop() == "long"
    assert bits(serve(kinds[1], x)) == bits(function(tf.constant(texts), tf.constant(x)))
    assert not ways


def test_strings_that_another_thread_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If C++ finds fewer strings than the array has by then, Python reads them."""
    with monkeypatch.context() as context:
        context.setattr(serving_arrays, "flat_list", lambda x: x.reshape(-1).tolist()[1:])
        function, serve = bound(tf.strings.length, Spec([None], tf.string))
    texts = np.array(["a", "bb", "ccc"])
    for _ in range(3):
        assert bits(serve(texts)) == bits(function(tf.constant(texts)))
