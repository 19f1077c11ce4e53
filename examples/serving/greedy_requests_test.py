# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A request that would take much memory is refused, and a large one delays no others."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import pathlib
import re
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from call_queue import CallQueue
from conftest import Saved
from predict_calls import Calls
from server_metrics import ServerMetrics
from serving_error import ServingError, invalid
from serving_kit import Server, request, serving
from tensor_protos import array_of
from tensorflow.core.framework import tensor_pb2

PREDICT = "/tensorflow.serving.PredictionService/Predict"
MOST_MB = 8
MOST = MOST_MB << 20
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
# What the server may take more than before: a few times the limit, for copies of the bytes.
MOST_GROWTH_MB = 20 * MOST_MB


@pytest.fixture(scope="module")
def greedy_server(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose limit is small enough for tests, and large enough to be above all slices."""
    folder = tmp_path_factory.mktemp("greedy")
    toy = saved.copy(folder / "toy", 1)
    options = (f"--model=toy={toy}", f"--max-request-mb={MOST_MB}")
    with serving(*options, log=folder / "log") as started:
        yield started
        assert "Traceback" not in started.text()


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


BODIES = {
    "empty lists": b'{"instances": [' + filled(b"[],", b"[]]}"),
    "empty objects": b'{"instances": [' + filled(b"{},", b"{}]}"),
    "empty strings": b'{"instances": [' + filled(b'"",', b'""]}'),
    "numbers": b'{"instances": [' + filled(b"1,", b"1]}"),
    "one row of numbers": b'{"instances": [[' + filled(b"1,", b"1]]}"),
    "names": b'{"inputs": {' + filled(b'"":1,', b'"":1}}'),
    "lists in lists": b'{"instances": [' + filled(b"[[[[1]]]],", b"1]}"),
    "lists after a string": b'{"inputs": "\\"[", "instances": [' + filled(b"[],", b"[]]}"),
}
MESSAGES = {
    "inputs": filled(b"\x12\x00"),
    "dimensions": tensor_with(field(2, filled(b"\x12\x00"))),
    "strings": tensor_with(b"\x08\x07" + filled(b"\x42\x00")),
    "filters": filled(b"\x1a\x00"),
    "numbers": tensor_with(b"\x08\x09" + field(10, filled(b"\x01"))),
    "fields that are unknown": filled(b"\xf8\x01\x00"),
    "versions": filled(b"\x0a\x02\x12\x00"),
}


def peak_mb(server: Server) -> int:
    """The most memory that the server has had, in MiB."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) >> 10


def check(server: Server, saved: Saved, before_mb: int) -> None:
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y1"].tobytes()
    assert peak_mb(server) - before_mb < MOST_GROWTH_MB


@pytest.mark.parametrize("name", BODIES)
def test_body_of_many_values_is_refused(greedy_server: Server, saved: Saved, name: str) -> None:
    before = peak_mb(greedy_server)
    status, answer = greedy_server.rest("/v1/models/toy:predict", BODIES[name])
    assert status == 413
    assert f"take more than {MOST} bytes (--max-request-mb)" in answer["error"]
    check(greedy_server, saved, before)


@pytest.mark.parametrize("name", MESSAGES)
def test_message_of_many_fields_is_refused(greedy_server: Server, saved: Saved, name: str) -> None:
    before = peak_mb(greedy_server)
    code, text = failed(greedy_server, PREDICT, MESSAGES[name])
    assert code == EXHAUSTED
    assert f"take more than {MOST} bytes (--max-request-mb)" in text
    check(greedy_server, saved, before)


def failed(server: Server, path: str, data: bytes) -> tuple[Any, str]:
    """Code and text of the error that a message gets."""
    with grpc.insecure_channel(server.address) as channel:
        try:
            channel.unary_unary(path)(data, timeout=60)
        except grpc.RpcError as error:
            return error.code(), error.details()
    raise AssertionError("the call did not fail")


def test_large_message_that_no_input_takes_is_refused(greedy_server: Server) -> None:
    for number in (14, 15):
        data = tensor_with(b"\x08\x14" + filled(field(number, b"")))
        assert failed(greedy_server, PREDICT, data)[0] == INVALID
    code, text = failed(greedy_server, PREDICT, tensor_with(filled(b"\x08\x01")[:-1]))
    assert code == EXHAUSTED
    code, text = failed(greedy_server, PREDICT, b"\x80" * 100_000)
    assert (code, text) == (INVALID, "the request is not a message.")
    code, text = failed(greedy_server, PREDICT, field(2, b"\xff" * 100_000))
    assert code == INVALID
    for path in ("/tensorflow.serving.PredictionService/Classify", "/grpc.health.v1.Health/Check"):
        code, text = failed(greedy_server, path, filled(b"\xf8\x01\x00"))
        assert code == EXHAUSTED and "above 65536" in text


@pytest.mark.parametrize(
    ("value", "count"), [(b"a", 8_000_000), (b"a", 105_000), (b"a" * 100_000, 100), (b"", 1 << 40)]
)
def test_few_bytes_that_stand_for_many_strings_are_refused(
    greedy_server: Server, saved: Saved, value: bytes, count: int
) -> None:
    before = peak_mb(greedy_server)
    proto = tensor_pb2.TensorProto(dtype=tf.string.as_datatype_enum, string_val=[value])
    proto.tensor_shape.dim.add(size=count)
    asked = request(signature="text")
    asked.inputs["s"].CopyFrom(proto)
    code, text = failed(greedy_server, PREDICT, asked.SerializeToString())
    assert code == EXHAUSTED and "--max-request-mb" in text
    check(greedy_server, saved, before)


def test_shape_of_many_dimensions_is_refused() -> None:
    proto = tensor_pb2.TensorProto(dtype=tf.float32.as_datatype_enum, float_val=[1])
    for _ in range(254):
        proto.tensor_shape.dim.add(size=1 << 62)
    with pytest.raises(ServingError, match=f"takes {1 << 63} bytes or more, above the limit"):
        array_of(proto, "x", MOST)
    proto.tensor_shape.dim.add(size=1)
    with pytest.raises(ServingError, match="'x' has 255 dimensions; 254 is the most"):
        array_of(proto, "x", MOST)


def test_call_that_fails_leaves_no_garbage() -> None:
    """Its arrays would stay until garbage is collected, which may be never."""
    unknown: Any = None
    metrics = ServerMetrics(lambda: 0, lambda: 0, list)
    calls = Calls([], unknown, metrics, 10)
    queue = CallQueue(1, 1)
    left: list[Any] = []

    def fail() -> None:
        array = np.ones([8])
        left.append(weakref.ref(array))
        raise invalid("no such thing")

    async def call() -> None:
        try:
            with calls.counted("toy", "Predict"):
                await queue.run(fail, time.monotonic() + 60)
        except ServingError:
            pass

    gc.disable()
    try:
        asyncio.run(call())
        assert queue.close(60)
        assert left[0]() is None
    finally:
        gc.enable()


def test_others_are_answered_while_a_large_request_is_handled(
    greedy_server: Server, saved: Saved
) -> None:
    """Rows that are just below the limit, as JSON and as strings of gRPC."""
    rows = np.ones([15_000, 8], np.float32)
    body = json.dumps({"instances": rows.tolist()})
    strings = request(signature="text", s=[b"ab"] * 90_000)
    answered, end = 0, threading.Event()

    def call_others() -> None:
        nonlocal answered
        while not end.is_set():
            assert greedy_server.predict(saved.answers["x"]).tobytes() == expected
            answered += 1

    expected = saved.answers["y1"].tobytes()
    others = threading.Thread(target=call_others)
    others.start()
    connection = http.client.HTTPConnection("127.0.0.1", greedy_server.rest_port, timeout=60)
    between = []
    try:
        for _ in range(3):
            before = answered
            connection.request("POST", "/v1/models/toy:predict", body)
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
