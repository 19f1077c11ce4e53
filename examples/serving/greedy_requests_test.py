# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A request that would take much memory is refused, and a large one delays no others."""

import asyncio
import gc
import http.client
import json
import pathlib
import re
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import grpc
import numpy as np
import pytest
import tensorflow as tf
from call_queue import CallQueue
from grpc_guard import RefuseBrokenMessages
from predict_calls import Calls
from request_memory import RequestMemory
from server_metrics import ServerMetrics
from serving_error import ServingError, invalid
from serving_kit import MOST_MB, PREDICT, REST_PREDICT, Saved, Server, failure, request
from tensorflow.core.framework import tensor_pb2

MOST: int = MOST_MB << 20
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
ABOVE = f"take more than {MOST} bytes (--max-request-mb)"
# What the server may take more than before: a few times the limit, for copies of the bytes.
MOST_GROWTH_MB = 20 * MOST_MB


@pytest.fixture(params=["", "front"])
def greedy_server(greedy_server: Server, front_greedy_server: Server, request: Any) -> Server:
    """The servers without and with --front."""
    return front_greedy_server if request.param else greedy_server


def filled(pattern: bytes, end: bytes = b"") -> bytes:
    """As many patterns as fit in a request."""
    return pattern * ((MOST - 4096) // len(pattern)) + end


def length(number: int) -> bytes:
    """A number as protobuf writes it."""
    found = b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


def field(number: int, inner: bytes) -> bytes:
    return bytes([number << 3 | 2]) + length(len(inner)) + inner


def tensor_with(inner: bytes) -> bytes:
    """A PredictRequest with one input, of these fields."""
    return field(2, field(1, b"x") + field(2, inner))


def strings(value: bytes, count: int) -> bytes:
    """A PredictRequest with `count` strings, of which the proto has one."""
    proto = tensor_pb2.TensorProto(dtype=tf.string.as_datatype_enum, string_val=[value])
    proto.tensor_shape.dim.add(size=count)
    asked = request(signature="text")
    asked.inputs["s"].CopyFrom(proto)
    return asked.SerializeToString()  # type: ignore[no-any-return]


BODIES = {
    "empty lists": b'{"instances": [' + filled(b"[],", b"[]]}"),
    "empty strings": b'{"instances": [' + filled(b'"",', b'""]}'),
    "numbers": b'{"instances": [' + filled(b"1,", b"1]}"),
    "names": b'{"inputs": {' + filled(b'"":1,', b'"":1}}'),
    "lists in lists": b'{"instances": [' + filled(b"[[[[1]]]],", b"1]}"),
    "lists after a string": b'{"inputs": "\\"[", "instances": [' + filled(b"[],", b"[]]}"),
}
UNKNOWN = filled(b"\xf8\x01\x00")
MESSAGES = {  # the message, the error's code and a part of its text
    "inputs": (filled(b"\x12\x00"), EXHAUSTED, ABOVE),
    "dimensions": (tensor_with(field(2, filled(b"\x12\x00"))), EXHAUSTED, ABOVE),
    "strings": (tensor_with(b"\x08\x07" + filled(b"\x42\x00")), EXHAUSTED, ABOVE),
    "numbers": (tensor_with(b"\x08\x09" + field(10, filled(b"\x01"))), EXHAUSTED, ABOVE),
    "fields that are unknown": (UNKNOWN, EXHAUSTED, ABOVE),
    "types": (tensor_with(filled(b"\x08\x01")[:-1]), EXHAUSTED, ""),
    "resources": (tensor_with(b"\x08\x14" + filled(field(14, b""))), INVALID, ""),
    "no number": (b"\x80" * 100_000, INVALID, "the request is not a message."),
    "no tensor": (field(2, b"\xff" * 100_000), INVALID, ""),
    # A few bytes that stand for many strings.
    "copies of a short string": (strings(b"a", 105_000), EXHAUSTED, "--max-request-mb"),
    "copies of a long string": (strings(b"a" * 100_000, 100), EXHAUSTED, "--max-request-mb"),
    "empty strings": (strings(b"", 1 << 40), EXHAUSTED, "--max-request-mb"),
}


def check(server: Server, saved: Saved, before_mb: int) -> None:
    saved.check(server, 1)
    assert peak_mb(server) - before_mb < MOST_GROWTH_MB


def peak_mb(server: Server) -> int:
    """The most memory that the server has had, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{server.pid}/status").read_text())
    assert found
    return int(found[1]) >> 10


@pytest.mark.parametrize("name", BODIES)
def test_body_of_many_values_is_refused(greedy_server: Server, saved: Saved, name: str) -> None:
    before = peak_mb(greedy_server)
    status, answer = greedy_server.rest(REST_PREDICT, BODIES[name])
    assert status == 413 and ABOVE in answer["error"]
    check(greedy_server, saved, before)


@pytest.mark.parametrize("name", MESSAGES)
def test_message_of_much_is_refused(greedy_server: Server, saved: Saved, name: str) -> None:
    before = peak_mb(greedy_server)
    data, expected, says = MESSAGES[name]
    call = greedy_server.channel.unary_unary(PREDICT)
    code, text = failure(lambda: call(data, timeout=60))
    assert code == expected and says in text
    check(greedy_server, saved, before)


def test_only_calls_of_models_take_large_messages(greedy_server: Server) -> None:
    service = "/tensorflow.serving.PredictionService"
    for path, says in (
        (f"{service}/GetModelMetadata", "above 65536"),
        ("/grpc.health.v1.Health/Check", "above 65536"),
        (f"{service}/Classify", "--max-request-mb"),
    ):
        call = greedy_server.channel.unary_unary(path)
        code, text = failure(lambda call=call: call(UNKNOWN, timeout=60))
        assert code == EXHAUSTED and says in text


def test_call_that_fails_leaves_no_garbage() -> None:
    """Its arrays would stay until garbage is collected, which may be never."""
    models: Any = []
    queue = CallQueue(1, 1)
    calls = Calls(models, queue, ServerMetrics(queue, models), 10)
    left: list[Any] = []

    def fail() -> None:
        array = np.ones([8])
        left.append(weakref.ref(array))
        raise invalid("no such thing")

    async def call() -> None:
        with pytest.raises(ServingError), calls.counted("toy", "Predict"):
            await queue.run(fail, time.monotonic() + 60)
        assert await queue.close(60)

    gc.disable()
    try:
        asyncio.run(call())
        assert left[0]() is None
    finally:
        gc.enable()


def test_call_that_is_not_run_leaves_no_request() -> None:
    """Its request would stay until a thread is free."""
    queue, free = CallQueue(1, 1), threading.Event()
    left: list[Any] = []

    def work() -> Callable[[], Any]:
        array = np.ones([8])
        left.append(weakref.ref(array))
        return lambda: array

    async def call() -> None:
        busy = asyncio.ensure_future(queue.run(free.wait, time.monotonic() + 60))
        await asyncio.sleep(0)
        with pytest.raises(ServingError, match="it was not run"):
            await queue.run(work(), time.monotonic() + 0.01)
        cancelled = asyncio.ensure_future(queue.run(work(), time.monotonic() + 60))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        del cancelled
        gc.collect()
        assert [found() is None for found in left] == [True, True]
        free.set()
        await busy

    try:
        asyncio.run(call())
    finally:
        free.set()


def test_large_message_of_a_call_that_is_cancelled_is_not_kept() -> None:
    """Nor while all threads that walk through such messages are busy."""
    guard = RefuseBrokenMessages(lambda method, status: None, MOST, RequestMemory(MOST))
    method = grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    async def found(_: Any) -> Any:
        return method

    async def call(free: threading.Event) -> None:
        details, context = mock.Mock(method=PREDICT), mock.Mock()
        answer = (await guard.intercept_service(found, details)).unary_unary
        busy = [guard._threads.submit(free.wait) for _ in range(2)]
        data = np.zeros([1 << 17], np.uint8)
        left = weakref.ref(data)
        cancelled = asyncio.ensure_future(answer(data, context))
        await asyncio.sleep(0)
        del data
        cancelled.cancel()
        await asyncio.wait({cancelled})
        del cancelled
        gc.collect()
        assert left() is None
        assert not any(thread.done() for thread in busy)

    free = threading.Event()
    try:
        asyncio.run(call(free))
    finally:
        free.set()


def test_others_are_answered_while_a_large_request_is_handled(
    greedy_server: Server, saved: Saved
) -> None:
    """Rows that are just below the limit, as JSON and as strings of gRPC."""
    body = json.dumps({"instances": [[1.0] * 8] * 15_000})
    strings = request(signature="text", s=[b"ab"] * 90_000)
    answered, end = 0, threading.Event()

    def call_others() -> None:
        nonlocal answered
        while not end.is_set():
            saved.check(greedy_server, 1)
            answered += 1

    others = threading.Thread(target=call_others)
    others.start()
    connection = http.client.HTTPConnection("127.0.0.1", greedy_server.rest_port, timeout=60)
    between = []
    try:
        for _ in range(3):
            before = answered
            connection.request("POST", REST_PREDICT, body)
            predictions = json.loads(connection.getresponse().read())["predictions"]
            between.append(answered - before)
            assert len(predictions) == 15_000
            before = answered
            response = greedy_server.predictions.Predict(strings, timeout=60)
            between.append(answered - before)
            assert tf.make_ndarray(response.outputs["upper"]).tolist() == [b"AB"] * 90_000
    finally:
        end.set()
        others.join()
    assert min(between) >= 2
