# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Deadlines and cancellation reach the step that runs; limits are kept, and named."""

from __future__ import annotations

import asyncio
import functools
import http.client
import json
import pathlib
import socket
import time
from collections.abc import Callable

import grpc
import numpy as np
import tensorflow as tf
from conftest import Saved
from http_guard import HttpServer
from serving_kit import Server, failure, request, serving, slow, until
from tensorflow_serving.apis import prediction_service_pb2_grpc

DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
FOREVER = 2_000_000_000


def idle(server: Server) -> bool:
    """Whether nothing runs in the server, on the device neither."""
    figures = ("calls_running", "calls_waiting", "calls_in_flight", "group_steps_running")
    return not any(server.total(f"model_server_{name}") for name in figures)


def running(server: Server) -> bool:
    return bool(server.total("model_server_calls_running") == 1)


def at_most_running(server: Server, count: int) -> bool:
    return bool(server.total("model_server_calls_running") <= count)


def test_deadline_ends_the_step_that_runs(server: Server) -> None:
    before = server.total("model_server_group_steps_failed_total")
    code, _ = failure(lambda: server.predictions.Predict(slow(FOREVER), timeout=0.7))
    assert code == DEADLINE
    until(lambda: idle(server))
    assert server.total("model_server_group_steps_failed_total") == before + 1
    until(lambda: server.calls("Predict", "DEADLINE_EXCEEDED") >= 1)


def test_cancelled_call_ends_its_step_and_no_other(server: Server, saved: Saved) -> None:
    calls = [server.predictions.Predict.future(slow(FOREVER)) for _ in range(3)]
    until(lambda: server.total("model_server_calls_running") == 3)
    other = server.predictions.Predict.future(slow(2000), timeout=30)
    for left, call in zip((3, 2, 1), calls, strict=True):
        assert call.cancel()
        until(functools.partial(at_most_running, server, left))
    assert other.result().outputs["y"]
    until(lambda: idle(server))
    assert server.calls("Predict", "CANCELLED") >= 3
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y2"].tobytes()


def test_closed_http_connection_cancels_its_call(server: Server) -> None:
    before = server.calls("Predict", "CANCELLED")
    body = json.dumps({"inputs": FOREVER, "signature_name": "slow"})
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
    connection.request("POST", "/v1/models/toy:predict", body)
    until(lambda: server.total("model_server_calls_running"))
    connection.close()
    until(lambda: idle(server))
    assert server.calls("Predict", "CANCELLED") == before + 1


def test_call_whose_deadline_is_up_in_the_queue_is_not_run(small_server: Server) -> None:
    server = small_server
    before = server.total("model_server_group_steps_started_total")
    first = server.predictions.Predict.future(slow(FOREVER))
    until(lambda: running(server))
    code, _ = failure(lambda: server.predictions.Predict(slow(1), timeout=0.2))
    assert code == DEADLINE
    until(lambda: not server.total("model_server_calls_waiting"))
    first.cancel()
    until(lambda: idle(server))
    assert server.total("model_server_group_steps_started_total") == before + 1


def test_full_queue_is_said_at_once(small_server: Server, saved: Saved) -> None:
    server = small_server
    first = server.predictions.Predict.future(slow(FOREVER))
    until(lambda: running(server))
    second = server.predictions.Predict.future(request(x=saved.answers["x"]), timeout=30)
    until(lambda: server.total("model_server_calls_waiting") == 1)
    code, text = failure(lambda: server.predict(saved.answers["x"]))
    assert code == EXHAUSTED
    assert "1 calls run (--threads) and 1 may wait (--queue)" in text
    status, answer = server.rest("/v1/models/toy:predict", {"inputs": [[0] * 8]})
    assert status == 429
    assert "--queue" in answer["error"]
    first.cancel()
    assert second.result().outputs["y"]


def test_request_that_is_too_large_is_refused_with_the_limit(
    small_server: Server, saved: Saved
) -> None:
    server = small_server
    limit = int(0.05 * (1 << 20))
    code, text = failure(lambda: server.predict(np.zeros([4096, 8], np.float32)))
    assert code == EXHAUSTED
    assert str(limit) in text
    status, answer = server.rest("/v1/models/toy:predict", b" " * (limit + 1))
    assert status == 413
    assert f"limit of {limit} bytes (--max-request-mb)" in answer["error"]
    # By chunks, whose sum is said nowhere.
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20)
    chunks = (b" " * 1000 for _ in range(limit // 1000 + 1))
    connection.request("POST", "/v1/models/toy:predict", chunks, encode_chunked=True)
    assert connection.getresponse().status == 413
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y1"].tobytes()


def test_slow_clients_are_closed_and_delay_nobody(small_server: Server, saved: Saved) -> None:
    server = small_server
    head = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    clients = {
        "head": (server.rest_port, head),
        "body": (server.rest_port, head + b"\r\n" + b" " * 100),
        "HTTP/2": (server.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    }
    connections = {}
    for name, (port, data) in clients.items():
        connections[name] = socket.create_connection(("127.0.0.1", port))
        if name == "body":
            connections[name].sendall(data[:-100])
    closed: set[str] = set()
    end = time.monotonic() + 15
    for i in range(100_000):
        for name in clients.keys() - closed:
            data = clients[name][1]
            connections[name].setblocking(False)
            try:
                connections[name].send(data[i : i + 1] if i < 20 else b"")
                if connections[name].recv(4096) == b"":
                    closed.add(name)
            except BlockingIOError:
                pass
            except OSError:
                closed.add(name)
        if closed == clients.keys() or time.monotonic() > end:
            break
        answer = server.predict(saved.answers["x"])
        assert answer.tobytes() == saved.answers["y1"].tobytes()
        time.sleep(0.02)
    assert closed == clients.keys()


def call_by_grpc(server: Server, saved: Saved) -> Callable[[], None]:
    """A call on a new connection; returns what closes that. ConnectionError if the server did."""
    options = [("grpc.use_local_subchannel_pool", 1)]  # or it would share one that there is
    channel = grpc.insecure_channel(server.address, options)
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    try:
        response = stub.Predict(request(x=saved.answers["x"]), timeout=20)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        channel.close()
        raise ConnectionError(error.details()) from error
    assert tf.make_ndarray(response.outputs["y"]).tobytes() == saved.answers["y1"].tobytes()
    return channel.close  # type: ignore[no-any-return]


def call_by_rest(server: Server, saved: Saved) -> Callable[[], None]:
    """The same by HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20)
    body = json.dumps({"inputs": saved.answers["x"].tolist()})
    connection.request("POST", "/v1/models/toy:predict", body)
    answer = json.loads(connection.getresponse().read())
    assert np.float32(answer["outputs"]).tobytes() == saved.answers["y1"].tobytes()
    return connection.close


def test_connections_above_the_limit_are_closed(saved: Saved, tmp_path: pathlib.Path) -> None:
    def has_place_by_grpc() -> bool:
        try:
            close = call_by_grpc(server, saved)
        except ConnectionError:
            return False
        close()
        return True

    def has_place_by_rest() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20)
        try:
            connection.request("GET", "/v1/models/toy")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()

    def is_full() -> bool:
        try:
            server.predict(saved.answers["x"])
        except grpc.RpcError as error:
            assert error.code() == EXHAUSTED
            return True
        return False

    toy = saved.copy(tmp_path / "toy", 1)
    options = (f"--model=toy={toy}", "--max-connections=2", "--threads=2", "--queue=0")
    with serving(*options, log=tmp_path / "log") as server:
        close_one, close_other = call_by_grpc(server, saved), call_by_grpc(server, saved)
        assert not has_place_by_grpc()
        close_one()
        until(has_place_by_grpc)
        close_other()
        # By REST the place of a connection without a request is free.
        body = json.dumps({"inputs": FOREVER, "signature_name": "slow"})
        busy, idle_ones = [], []
        for _ in range(2):
            idle_ones.append(call_by_rest(server, saved))
            busy.append(http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20))
            busy[-1].request("POST", "/v1/models/toy:predict", body)
        until(is_full)
        assert not has_place_by_rest()
        busy[0].close()
        until(has_place_by_rest)
        for close in (busy[1].close, *idle_ones):
            close()
        assert "Traceback" not in server.text()


def test_answers_by_http_do_not_wait_for_acknowledgements() -> None:
    """With Nagle's algorithm the body of each would wait until the client has its head."""

    async def nodelay() -> int:
        http_server = HttpServer(None, "127.0.0.1", 0, 10, 10, None, None)
        await http_server.start()
        _, writer = await asyncio.open_connection("127.0.0.1", http_server.port)
        connections = http_server._server.server_state.connections
        while not connections:
            await asyncio.sleep(0.01)
        (connection,) = connections
        ours = connection.transport.get_extra_info("socket")
        option: int = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await http_server.stop(0)
        return option

    assert asyncio.run(nodelay()) == 1
