# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of the server give each client its turn: the HTTP and gRPC server, and their limits."""

import asyncio
import http.client
import queue
import socket
import time
import types
from collections.abc import Callable
from typing import Any

import grpc
import grpc_api
import h11
import loaded_model
import pytest
import server_options
from http_guard import HttpServer
from serving_kit import request


def options(*arguments: str) -> Any:
    """Options of a server on any port."""
    return server_options.parse(["--model=toy=.", "--port=0", "--rest-port=0", *arguments])


def serve_http(application: Any, use: Callable[[int, set[Any]], None], *arguments: str) -> None:
    """Lets a thread use a server, by its port, and see its connections."""

    async def serve() -> None:
        server = HttpServer(application, options(*arguments))
        await server.start()
        port = int(server.url.rpartition(":")[2])
        await asyncio.to_thread(use, port, server._server.server_state.connections)
        await server.stop(0)

    asyncio.run(serve())


async def answer(send: Any, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the body of the request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await answer(send, body)


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

    serve_http(echo, use)
    assert max(sizes[:-10]) <= 4096
    assert max(sizes) > 4096


def test_client_that_does_not_read_its_answer_is_closed() -> None:
    big = bytes(64 << 20)

    async def answer_big(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, big)

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
            while connections:
                time.sleep(0.02)

    serve_http(answer_big, use, "--read-timeout=2")


def test_answers_by_http_do_not_wait_for_acknowledgements() -> None:
    """With Nagle's algorithm the body of each would wait until the client has its head."""

    def use(port: int, connections: set[Any]) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            while not connections:
                time.sleep(0.01)
            ours = next(iter(connections)).transport.get_extra_info("socket")
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1

    serve_http(echo, use)


def test_grpc_connection_without_calls_gives_up_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_api, "_IDLE_SECONDS", 1)

    def connect_and_wait(address: str) -> None:
        states = queue.Queue[grpc.ChannelConnectivity]()
        with grpc.insecure_channel(address) as channel:
            channel.subscribe(states.put, try_to_connect=True)
            while states.get(timeout=60) is not grpc.ChannelConnectivity.READY:
                pass
            assert states.get(timeout=60) is grpc.ChannelConnectivity.IDLE

    async def serve() -> None:
        unused: Any = None
        server = grpc_api.GrpcServer(unused, unused, options())
        await server.start()
        await asyncio.to_thread(connect_and_wait, server.address)
        await server._server.stop(0)

    asyncio.run(serve())


def test_output_that_is_asked_for_many_times_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    make = grpc_api.tf.make_tensor_proto
    asked = request(x=[1.0])
    asked.output_filter.extend(["y"] * 1000)

    class Signature(loaded_model.Signature):
        def __init__(self) -> None:
            self.name = "s"

        def check_names(self, names: Any) -> None: ...

        def __call__(self, arrays: Any) -> Any:
            return {"y": 1.0, "z": 2.0}

    async def predict(name: str, version: Any, work: Any, *more: Any, **named: Any) -> Any:
        loaded = types.SimpleNamespace(signature=lambda name: Signature())
        call = types.SimpleNamespace(loaded=loaded, number=1, log=lambda *_: None)
        call.step = lambda signature, arrays: signature(arrays)
        return work(call)

    def spied(array: Any) -> Any:
        made.append(array)
        return make(array)

    monkeypatch.setattr(grpc_api.tf, "make_tensor_proto", spied)
    calls: Any = types.SimpleNamespace(predict=predict, grpc_origin=lambda *_: None)
    context: Any = types.SimpleNamespace(time_remaining=lambda: None)
    service = grpc_api.PredictionService(calls, 1 << 19)
    assert list(asyncio.run(service.Predict(asked, context)).outputs) == ["y"]
    assert made == [1.0]
