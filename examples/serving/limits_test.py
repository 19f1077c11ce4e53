# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Deadlines and cancellation reach the step that runs; limits are kept, and named."""

import functools
import http.client
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from greedy_requests_test import length
from serving_kit import (
    FOREVER,
    FRONT,
    PREDICT,
    REST_PREDICT,
    Saved,
    Server,
    failure,
    request,
    slow,
    until,
)
from tensorflow_serving.apis import get_model_metadata_pb2, prediction_service_pb2_grpc

DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
SLOW_BODY = json.dumps({"inputs": FOREVER, "signature_name": "slow"})


def post(server: Server, body: Any, **options: Any) -> http.client.HTTPConnection:
    """A connection that has sent a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20)
    connection.request("POST", REST_PREDICT, body, **options)
    return connection


def test_deadline_ends_the_step_that_runs(server: Server) -> None:
    before = server.total("model_server_group_steps_failed_total")
    code, _ = failure(lambda: server.predictions.Predict(slow(FOREVER), timeout=0.7))
    assert code == DEADLINE
    until(server.idle)
    assert server.total("model_server_group_steps_failed_total") == before + 1
    until(lambda: server.calls("Predict", "DEADLINE_EXCEEDED") >= 1)


def test_cancelled_call_ends_its_step_and_no_other(server: Server, saved: Saved) -> None:
    calls = [server.predictions.Predict.future(slow(FOREVER)) for _ in range(3)]
    until(lambda: server.running() == 3)
    other = server.predictions.Predict.future(slow(2000), timeout=30)
    for left, call in zip((3, 2, 1), calls, strict=True):
        assert call.cancel()
        until(lambda left=left: server.running() <= left)
    assert other.result().outputs["y"]
    until(server.idle)
    assert server.calls("Predict", "CANCELLED") >= 3
    saved.check(server, 2)


def test_closed_http_connection_cancels_its_call(server: Server) -> None:
    before = server.calls("Predict", "CANCELLED")
    connection = post(server, SLOW_BODY)
    until(server.running)
    connection.close()
    until(server.idle)
    assert server.calls("Predict", "CANCELLED") == before + 1


def test_call_whose_deadline_is_up_in_the_queue_is_not_run(small_server: Server) -> None:
    server = small_server
    before = server.total("model_server_group_steps_started_total")
    first = server.predictions.Predict.future(slow(FOREVER))
    until(server.running)
    code, _ = failure(lambda: server.predictions.Predict(slow(1), timeout=0.2))
    assert code == DEADLINE
    until(lambda: not server.total("model_server_calls_waiting"))
    first.cancel()
    until(server.idle)
    assert server.total("model_server_group_steps_started_total") == before + 1


def test_full_queue_is_said_at_once(small_server: Server, saved: Saved) -> None:
    server = small_server
    first = server.predictions.Predict.future(slow(FOREVER))
    until(server.running)
    second = server.predictions.Predict.future(request(x=saved.x), timeout=30)
    until(lambda: server.total("model_server_calls_waiting") == 1)
    code, text = failure(lambda: server.predict(saved.x))
    assert code == EXHAUSTED
    assert "1 calls run (--threads) and 1 may wait (--queue)" in text
    status, answer = server.rest(REST_PREDICT, {"inputs": [[0] * 8]})
    assert status == 429 and "--queue" in answer["error"]
    first.cancel()
    assert second.result().outputs["y"]


def test_request_that_is_too_large_is_refused_with_the_limit(
    small_server: Server, saved: Saved
) -> None:
    server = small_server
    limit = int(0.05 * (1 << 20))
    code, text = failure(lambda: server.predict(np.zeros([4096, 8], np.float32)))
    assert code == EXHAUSTED and str(limit) in text
    status, answer = server.rest(REST_PREDICT, b" " * (limit + 1))
    assert status == 413
    assert f"limit of {limit} bytes (--max-request-mb)" in answer["error"]
    # By chunks, whose sum is said nowhere.
    chunks = (b" " * 1000 for _ in range(limit // 1000 + 1))
    assert post(server, chunks, encode_chunked=True).getresponse().status == 413
    saved.check(server, 1)


@pytest.mark.parametrize("front", [False, True])
def test_slow_clients_are_closed_and_delay_nobody(
    small_server: Server, front_small_server: Server, saved: Saved, front: bool
) -> None:
    server = front_small_server if front else small_server
    head = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    clients = {  # what each sends at once, and then byte by byte
        "head": (server.rest_port, b"", head),
        "body": (server.rest_port, head + b"\r\n", b" " * 20),
        "HTTP/2": (server.port, b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    }
    connections = {}
    for name, (port, at_once, _) in clients.items():
        connections[name] = socket.create_connection(("127.0.0.1", port))
        connections[name].sendall(at_once)
        connections[name].setblocking(False)
    end, i = time.monotonic() + 15, 0
    while connections:
        assert time.monotonic() < end, connections.keys()
        for name, connection in list(connections.items()):
            try:
                connection.send(clients[name][2][i : i + 1])
                closed = connection.recv(4096) == b""
            except BlockingIOError:
                closed = False
            except OSError:
                closed = True
            if closed:
                connections.pop(name).close()
        saved.check(server, 1)
        time.sleep(0.02)
        i += 1


def call_by_grpc(server: Server, saved: Saved) -> Callable[[], None]:
    """A call on a new connection; returns what closes that. ConnectionError if the server did."""
    options = [("grpc.use_local_subchannel_pool", 1)]  # or it would share one that there is
    channel = grpc.insecure_channel(server.address, options)
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    try:
        stub.Predict(request(x=saved.x), timeout=20)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        channel.close()
        raise ConnectionError(error.details()) from error
    return channel.close  # type: ignore[no-any-return]


def call_by_rest(server: Server, saved: Saved) -> Callable[[], None]:
    """The same by HTTP; any answer is one."""
    connection = post(server, json.dumps({"inputs": saved.x.tolist()}))
    connection.getresponse().read()
    return connection.close


def has_place(call: Callable[..., Callable[[], None]], *arguments: Any) -> bool:
    """Whether the server takes one more connection."""
    try:
        call(*arguments)()
    except ConnectionError:
        return False
    return True


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_connections_above_the_limit_are_closed(
    saved: Saved, serve: Any, options: tuple[str, ...]
) -> None:
    with serve("--max-connections=2", "--threads=3", *options) as server:
        by_grpc = functools.partial(has_place, call_by_grpc, server, saved)
        by_rest = functools.partial(has_place, call_by_rest, server, saved)
        close_one, close_other = call_by_grpc(server, saved), call_by_grpc(server, saved)
        assert not by_grpc()
        close_one()
        until(by_grpc)
        # By REST the place of a connection without a request is free.
        busy, idle_ones = [], []
        for _ in range(2):
            idle_ones.append(call_by_rest(server, saved))
            busy.append(post(server, SLOW_BODY))
        # A call that is not refused has the third thread.
        until(lambda: not by_rest())
        busy[0].close()
        until(by_rest)
        for close in (busy[1].close, close_other, *idle_ones):
            close()


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_requests_that_are_handled_are_bounded_together(
    saved: Saved, serve: Any, options: tuple[str, ...]
) -> None:
    most = 1 << 19
    head = f"POST {REST_PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {most}\r\n\r\n"
    unknown = b"\xfa\x06" + length(500_000) + bytes(500_000)
    data = slow(FOREVER).SerializeToString() + unknown
    limits = (f"--max-request-mb={most / (1 << 20)}", "--read-timeout=300")
    with serve(*limits, *options) as server:
        # Python answers calls with an unknown field, and counts them itself.
        by_grpc, bodies = 0 if options else 6, []
        for _ in range(16 - by_grpc):
            bodies.append(socket.create_connection(("127.0.0.1", server.rest_port)))
            bodies[-1].sendall(head.encode() + b" " * (most - 1))
        method = server.channel.unary_unary(PREDICT)
        calls = [method.future(data) for _ in range(by_grpc)]
        until(lambda: server.running() == by_grpc)

        def is_refused() -> bool:
            status, answer = server.rest(REST_PREDICT, b" " * (most - 1))
            assert status == 400 or "16 times --max-request-mb" in answer["error"]
            return bool(status == 429)

        until(is_refused)
        code, text = failure(lambda: method(data, timeout=20))
        assert code == EXHAUSTED and "16 times --max-request-mb" in text
        # Small requests have their place.
        saved.check(server, 1)
        assert server.rest(REST_PREDICT, {"inputs": saved.x.tolist()})[0] == 200
        for connection in bodies:
            connection.close()
        for call in calls:
            call.cancel()
        until(lambda: not is_refused())


@pytest.mark.parametrize("character", ["x", "\u5b57"])  # gRPC writes 9 bytes for the other one
def test_long_names_make_no_long_answers(either_server: Server, character: str) -> None:
    server, name = either_server, character * 20_000
    codes = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    filtered = request(x=np.zeros([1, 8], np.float32))
    filtered.output_filter.append(name)
    wanted = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=[name])
    stub = server.predictions
    for method, asked in (
        (stub.Predict, request(name, x=[1.0])),
        (stub.Predict, request(signature=name, x=[1.0])),
        (stub.Predict, request(**{name: [1.0]})),
        (stub.Predict, filtered),
        (stub.GetModelMetadata, wanted),
    ):
        code, text = failure(functools.partial(method, asked, timeout=20))
        assert code in codes and len(text) <= 2000
    body = {"inputs": {name: 1}}
    assert len(server.rest(REST_PREDICT, body)[1]["error"]) <= 2000
