# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Errors that a client sees: a gRPC status code, its HTTP status, and what to do about it."""

import logging

import grpc
import tensorflow as tf

_LONGEST_MESSAGE = 2000
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
        message = message[:_LONGEST_MESSAGE]  # a client may have made it long, by a name
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status or _HTTP.get(code, 500)


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

    TensorFlow's errors keep their code and text. Of other errors, which are faults of the server, a
    client is told the kind; the log has the rest.
    """
    if isinstance(error, ServingError):
        return error
    if isinstance(error, tf.errors.OpError):
        code = _CODES.get(error.error_code, grpc.StatusCode.UNKNOWN)
        return ServingError(code, str(error.message))
    logging.error("a call failed", exc_info=error)
    return ServingError(
        grpc.StatusCode.INTERNAL, f"the server failed with {type(error).__name__}; see its log"
    )
