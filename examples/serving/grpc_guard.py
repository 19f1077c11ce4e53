# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Keeps gRPC messages that are broken, or take too much when they are parsed, from the services.

A message of two bytes for each of 30 million tensors or strings is below the limit of bytes, and
would take gigabytes and seconds of Python's lock. A large message is walked through first, on a
thread of its own, whose every step lets other threads run.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from request_memory import RequestMemory
from serving_error import ServingError, invalid, too_large
from tensor_protos import OF_STRING

_SMALL = 1 << 16
_THREADS = 2
# What a parsed field takes beside its bytes, at most about.
_OF_NUMBER, _OF_MESSAGE = 32, 128

# Of requests: the fields that are messages, and those of numbers that grow by being parsed.
_TENSOR = {
    2: {2: {}},  # tensor_shape, its dim
    7: 4,  # int_val
    10: 8,  # int64_val
    13: 4,  # half_val
    16: 4,  # uint32_val
    17: 8,  # uint64_val
}
# Of a tf.Example: features, its map's entries, their bytes, floats and integers.
_EXAMPLE = {1: {1: {2: {1: {1: 1}, 2: {1: 1}, 3: {1: 8}}}}}
_INPUT = {1: {1: _EXAMPLE}, 2: {1: _EXAMPLE, 2: _EXAMPLE}}
# Of the Open Inference Protocol: a map's entries, their values; an input's shape and contents.
_PARAMETERS: Any = {2: {}}
_KSERVE_INPUT = {3: 8, 4: _PARAMETERS, 5: {2: 4, 3: 8, 4: 4, 5: 8}}
_REQUESTS: Any = {
    "Predict": {1: {2: {}}, 2: {2: _TENSOR}},
    "Classify": {1: {2: {}}, 2: _INPUT},
    "Regress": {1: {2: {}}, 2: _INPUT},
    "MultiInference": {1: {1: {2: {}}}, 2: _INPUT},
    "ModelInfer": {4: _PARAMETERS, 5: _KSERVE_INPUT, 6: {2: _PARAMETERS}},
}
_REFUSED_OF_TENSOR = {14: "resource_handle_val", 15: "variant_val"}


class _Walk:
    """Adds up what the message `data` takes when it is parsed: at most `most_bytes`."""

    def __init__(self, data: bytes, most_bytes: int) -> None:
        self._data = data
        self._most = self._left = most_bytes

    def through(self, at: int, end: int, fields: Any) -> None:
        """Walks through a message between two places; `fields` is of the form of _REQUESTS."""
        while at < end:
            tag, at = self._number(at)
            field, kind = tag >> 3, tag & 7
            if kind == 2:
                length, at = self._number(at)
                inner = fields.get(field)
                if fields is _TENSOR and field in _REFUSED_OF_TENSOR:
                    raise invalid(f"a tensor has {_REFUSED_OF_TENSOR[field]}: no input takes it.")
                if isinstance(inner, dict):
                    self._take(_OF_MESSAGE)
                    self.through(at, min(end, at + length), inner)
                else:
                    self._take(OF_STRING + length * (inner or 0))
                at += length
                continue
            self._take(_OF_NUMBER)
            if kind == 0:
                _, at = self._number(at)
            else:
                at += {1: 8, 5: 4}.get(kind, 0)

    def _number(self, at: int) -> tuple[int, int]:
        number = shift = 0
        while True:
            if at >= len(self._data) or shift > 63:
                raise invalid("the request is not a message.")
            byte = self._data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number, at
            shift += 7

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise too_large(
                f"the fields of the request take more than {self._most} bytes (--max-request-mb): "
                f"a tensor or a dimension counts as {_OF_MESSAGE} bytes, a string as {OF_STRING}."
            )


class RefuseBrokenMessages(grpc.aio.ServerInterceptor):
    """Answers an error to a request that is not a message, or takes too much when it is parsed.

    It also tells clients of a ServingError that a method raises.

    `open` has an object for each call whose answer has not been sent. `refused` is called with the
    names of the method and the status, to count it; `memory` bounds the bytes of all messages.
    """

    def __init__(
        self, refused: Callable[[str, str], None], most_bytes: int, memory: RequestMemory
    ) -> None:
        self.open: set[object] = set()
        self._refused = refused
        self._most_bytes = most_bytes
        self._memory = memory
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "large-requests")

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wraps the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        method = handler_call_details.method.rpartition("/")[2]
        behavior = handler.unary_unary or handler.unary_stream

        def parsed(data: bytes) -> Any:
            try:
                return handler.request_deserializer(data)
            except DecodeError:
                raise invalid(f"the request of {method} is not a message.") from None

        def parsed_large(held: list[bytes]) -> Any:
            data = held.pop()
            _Walk(data, self._most_bytes).through(0, len(data), _REQUESTS[method])
            return parsed(data)

        async def request_of(data: bytes) -> Any:
            if len(data) <= _SMALL:
                return parsed(data)
            if method not in _REQUESTS:
                raise too_large(f"the request of {method} has {len(data)} bytes, above {_SMALL}.")
            # The executor keeps what it is given until a thread is free (call_queue.py).
            held = [data]
            future = self._threads.submit(parsed_large, held)
            try:
                return await asyncio.wrap_future(future)
            finally:
                if future.cancel():
                    held.clear()

        async def answer(data: bytes, context: Any) -> Any:
            call = object()
            self.open.add(call)
            context.add_done_callback(lambda _: self.open.discard(call))
            with self._memory.of_request() as read:
                try:
                    read(len(data))
                    request = await request_of(data)
                except ServingError as error:
                    self._refused(method, error.code.name)
                    return await context.abort(error.code, error.message)
                try:
                    return await behavior(request, context)
                except ServingError as error:
                    return await context.abort(error.code, error.message)

        kind = "unary_unary" if handler.unary_unary else "unary_stream"
        return handler._replace(**{kind: answer, "request_deserializer": None})
