# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What clients are told of errors: texts that gRPC can send, and of ops what they say."""

import urllib.parse
from collections.abc import Callable

import grpc
import pytest
import tensorflow as tf
from serving_error import ServingError, error_of, invalid

# What gRPC writes as it is.
PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def told(call: Callable[[], object]) -> ServingError:
    """What a client is told of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return error_of(error)
    raise AssertionError("no error")


@pytest.mark.parametrize(
    ("character", "most"),
    [
        ("x", 2000),
        ("%", 2000),
        ("\n", 2000),
        ("\u00e9", 1000),
        ("\u5b57", 666),
        ("\U0001f600", 500),
    ],
)
def test_texts_are_cut_to_what_grpc_can_send(character: str, most: int) -> None:
    assert invalid(character * 60_000).message == character * most
    message = invalid("xy" + character * 60_000).message
    assert len(message) <= 2000
    assert len(urllib.parse.quote(message, safe=PLAIN)) <= 6000
    assert invalid(message).message == message == ("xy" + character * 2000)[: len(message)]


def test_text_with_half_a_character_is_cut() -> None:
    assert len(invalid("\ud800" * 60_000).message) == 666


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def numbers_of(text: tf.Tensor) -> tf.Tensor:
    """An op whose errors quote its input."""
    return tf.strings.to_number(text)


def test_error_of_an_op_that_quotes_bytes_is_told(caplog: pytest.LogCaptureFixture) -> None:
    error = told(lambda: numbers_of(tf.constant([b"ab"])))
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    error = told(lambda: numbers_of(tf.constant([b"\xffb"])))
    assert error.code == grpc.StatusCode.UNKNOWN and "string: \ufffdb" in error.message
    assert not caplog.records


def test_fault_of_the_server_is_in_its_log_only(caplog: pytest.LogCaptureFixture) -> None:
    error = told(b"secret \xff".decode)
    assert error.code == grpc.StatusCode.INTERNAL and "secret" not in error.message
    assert "Traceback" in caplog.text and "UnicodeDecodeError" in caplog.text
