# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Errors that a client sees: a gRPC status code, its HTTP status, and what to do about it."""

import itertools
import logging
import traceback

import grpc
import tensorflow as tf

_MOST_CHARACTERS = 2000
# gRPC refuses an answer whose metadata have more than 8 KiB, of which the message is a part.
_MOST_BYTES = 6000
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_HTTP = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class ServingError(Exception):
    """A call that is answered with an error, by REST with the HTTP status of its code."""

    def __init__(self, code: grpc.StatusCode, message: str, http_status: int | None = None) -> None:
        message = _cut(message)  # a client may have made it long, by a name
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status or _HTTP.get(code, 500)


def _cut(message: str) -> str:
    """The beginning of a message that gRPC's metadata have place for."""
    message = message[:_MOST_CHARACTERS]
    ends = itertools.accumulate(map(_bytes_of, message))
    return message[: sum(end <= _MOST_BYTES for end in ends)]


def _bytes_of(character: str) -> int:
    """The bytes that gRPC writes for a character: of most it writes each byte as %XX."""
    if " " <= character <= "~" and character != "%":
        return 1
    return 3 * len(character.encode(errors="surrogatepass"))


def invalid(message: str) -> ServingError:
    """The error for a request that no retry makes right."""
    return ServingError(grpc.StatusCode.INVALID_ARGUMENT, message)


def not_found(message: str) -> ServingError:
    """The error for a model, version or signature that is not there."""
    return ServingError(grpc.StatusCode.NOT_FOUND, message)


def too_large(message: str) -> ServingError:
    """The error for a request that is above a limit of the server."""
    return ServingError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, http_status=413)


def error_of(error: BaseException) -> ServingError:
    """What a client is told about any exception.

    TensorFlow's errors keep their code and text, but for those whose text is not UTF-8, of which
    TensorFlow's eager layer loses the code. Of other errors, which are faults of the server, a
    client is told the kind; the log has the rest.
    """
    if isinstance(error, ServingError):
        return error
    if isinstance(error, tf.errors.OpError):
        code = _CODES.get(error.error_code, grpc.StatusCode.UNKNOWN)
        return ServingError(code, str(error.message))
    if isinstance(error, UnicodeDecodeError) and _is_of_eager_layer(error):
        return ServingError(grpc.StatusCode.UNKNOWN, error.object.decode(errors="replace"))
    logging.error("a call failed", exc_info=error)
    return ServingError(
        grpc.StatusCode.INTERNAL, f"the server failed with {type(error).__name__}; see its log"
    )


def _is_of_eager_layer(error: BaseException) -> bool:
    """Whether TensorFlow's eager layer itself has raised an error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_globals["__name__"].startswith("tensorflow.python.eager.")
