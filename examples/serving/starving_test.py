# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""One client that is slow, or sends much or many small things, takes no place from others."""

from __future__ import annotations

import asyncio
import http.client
import json
import pathlib
import queue
import socket
import time
import types
from collections.abc import Callable
from typing import Any

import grpc
import grpc_api
import h11
import pytest
from conftest import Saved
from greedy_requests_test import length
from http_guard import HttpServer
from request_memory import RequestMemory
from serving_error import ServingError
from serving_kit import Server, failure, request, serving, slow, until
from tensorflow_serving.apis import get_model_metadata_pb2

MOST = 1 << 19
FOREVER = 2_000_000_000


async def serve_http(
    application: Any, use: Callable[[int, set[Any]], None], slow_seconds: float = 60
) -> None:
    """Lets a thread use a server, by its port, and see its connections."""
    server = HttpServer(application, "127.0.0.1", 0, 10, slow_seconds, None, None)
    await server.start()
    await asyncio.to_thread(use, server.port, server._server.server_state.connections)
    await server.stop(0)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the body of the request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("size", [1, 3000])
def test_chunks_are_parsed_in_small_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Or a body of chunks of one byte would keep the event loop for a second at a time."""
    sizes = []
    receive_data = h11.Connection.receive_data

    def spied(self: Any, data: bytes) -> None:
        sizes.append(len(data))
        receive_data(self, data)

    monkeypatch.setattr(h11.Connection, "receive_data", spied)
    sent = bytes(range(256)) * 400

    def use(port: int, connections: set[Any]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        chunks = [sent[i : i + size] for i in range(0, len(sent), size)]
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        connection.connect()
        connection.sock.sendall(head + body + b"0\r\n\r\n")
        response = http.client.HTTPResponse(connection.sock)
        response.begin()
        assert response.read() == sent
        connection.request("POST", "/", sent)  # the connection goes on, in larger pieces
        assert connection.getresponse().read() == sent

    asyncio.run(serve_http(echo, use))
    assert max(sizes[:-10]) <= 4096
    assert max(sizes) > 4096


def test_client_that_does_not_read_its_answer_is_closed() -> None:
    big = bytes(64 << 20)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": big})

    def use(port: int, connections: set[Any]) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as stuck,
            socket.create_connection(("127.0.0.1", port), timeout=60) as slow,
        ):
            stuck.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            size = 0
            while len(connections) == 2:  # reads a part now and then
                size += len(slow.recv(1 << 16))
                time.sleep(0.01)
            while data := slow.recv(1 << 20):
                size += len(data)
            assert size > len(big)
            until(lambda: not connections)

    asyncio.run(serve_http(answer, use, slow_seconds=2))


def test_large_requests_leave_room_for_small_ones() -> None:
    memory = RequestMemory(1 << 20)
    with memory.of_request() as read:
        for _ in range(16):
            read(1 << 20)
        with memory.of_request() as other:
            other(60_000)
            with pytest.raises(ServingError, match="16 times --max-request-mb"):
                other(60_000)
    assert memory.used == 0


def test_requests_that_are_handled_are_bounded_together(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    toy = saved.copy(tmp_path / "toy", 1)
    options = (f"--model=toy={toy}", f"--max-request-mb={MOST / (1 << 20)}", "--read-timeout=300")
    head = f"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {MOST}\r\n\r\n"
    unknown = b"\xfa\x06" + length(500_000) + bytes(500_000)
    data = slow(FOREVER).SerializeToString() + unknown
    with serving(*options, log=tmp_path / "log") as server:
        bodies = []
        for _ in range(10):
            bodies.append(socket.create_connection(("127.0.0.1", server.rest_port)))
            bodies[-1].sendall(head.encode() + b" " * (MOST - 1))
        method = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        calls = [method.future(data) for _ in range(6)]
        until(lambda: server.total("model_server_calls_running") == 6)

        def is_refused() -> bool:
            status, answer = server.rest("/v1/models/toy:predict", b" " * (MOST - 1))
            assert status == 400 or "16 times --max-request-mb" in answer["error"]
            return bool(status == 429)

        until(is_refused)
        code, text = failure(lambda: method(data, timeout=20))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "16 times --max-request-mb" in text
        # Small requests have their place.
        assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y1"].tobytes()
        body = {"inputs": saved.answers["x"].tolist()}
        assert server.rest("/v1/models/toy:predict", body)[0] == 200
        for connection in bodies:
            connection.close()
        for call in calls:
            call.cancel()
        until(lambda: not is_refused())


def test_grpc_connection_without_calls_gives_up_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_api, "_IDLE_SECONDS", 1)

    def connect_and_wait(port: int) -> None:
        states = queue.Queue[grpc.ChannelConnectivity]()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            channel.subscribe(states.put, try_to_connect=True)
            while states.get(timeout=60) is not grpc.ChannelConnectivity.READY:
                pass
            assert states.get(timeout=60) is grpc.ChannelConnectivity.IDLE

    async def serve() -> None:
        unused: Any = None
        server = grpc_api.GrpcServer(unused, unused, "127.0.0.1:0", 1000, 10, 600, None)
        await server.start()
        await asyncio.to_thread(connect_and_wait, server.port)
        await server._server.stop(0)

    asyncio.run(serve())


def test_output_that_is_asked_for_many_times_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    proto_of = grpc_api.proto_of

    def spied(array: Any) -> Any:
        made.append(array)
        return proto_of(array)

    monkeypatch.setattr(grpc_api, "proto_of", spied)

    async def predict(*args: Any, **kwargs: Any) -> Any:
        signature: Any = types.SimpleNamespace(name="s")
        return args[4](signature, {"y": 1.0, "z": 2.0}, 1)

    calls: Any = types.SimpleNamespace(predict=predict)
    context: Any = types.SimpleNamespace(time_remaining=lambda: None)
    asked = request(x=[1.0])
    asked.output_filter.extend(["y"] * 1000)
    service = grpc_api.PredictionService(calls, MOST)
    assert list(asyncio.run(service.Predict(asked, context)).outputs) == ["y"]
    assert len(made) == 1


def test_long_names_make_no_long_answers(server: Server) -> None:
    name = "x" * 60_000
    codes = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    asked = request(name, x=[1.0])
    for change in (
        lambda: None,
        lambda: setattr(asked.model_spec, "name", "toy"),
        lambda: setattr(asked.model_spec, "signature_name", name),
        lambda: asked.output_filter.append(name),
    ):
        change()
        code, text = failure(lambda: server.predictions.Predict(asked, timeout=20))
        assert code in codes and len(text) <= 2000
    wanted = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=[name])
    code, text = failure(lambda: server.predictions.GetModelMetadata(wanted, timeout=20))
    assert code in codes and len(text) <= 2000
    body = json.dumps({"inputs": {name: 1}}).encode()
    assert len(server.rest("/v1/models/toy:predict", body)[1]["error"]) <= 2000
