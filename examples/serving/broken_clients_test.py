# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What broken and hostile clients send ends their connections, and nobody else's."""

from __future__ import annotations

import json
import os
import pathlib
import random
import socket
import struct
from typing import Any

import grpc
import numpy as np
import pytest
from conftest import Saved
from serving_kit import Server, failure, request, until

# As many as are to be opened and dropped; by hand, 10000.
CONNECTIONS = int(os.environ.get("SERVING_TEST_CONNECTIONS", "300"))
AT_ONCE = 500
# By hand, more, for more requests of the tests that draw them.
EFFORT = int(os.environ.get("SERVING_TEST_EFFORT", "1"))

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
GRPC_HEADERS = b"".join(
    b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/tensorflow.serving.PredictionService/Predict"),
        (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """A frame of HTTP/2, also with a length that is a lie."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


BEGIN = PREFACE + frame(SETTINGS, 0, 0, b"")
CALL = frame(HEADERS, 4, 1, GRPC_HEADERS)
MESSAGE = b"\x00" + struct.pack(">I", 4)
FRAMES = {
    "no preface": frame(SETTINGS, 0, 0, b""),
    "length of 16 MiB": BEGIN + frame(DATA, 0, 1, b"x", 0xFFFFFF),
    "headers of no stream": BEGIN + frame(HEADERS, 4, 0, GRPC_HEADERS),
    "data of an idle stream": BEGIN + frame(DATA, 0, 7, b"x" * 100),
    "no such kind": BEGIN + frame(0x77, 0xFF, 3, b"x" * 100),
    "settings of odd size": BEGIN + frame(SETTINGS, 0, 0, b"12345"),
    "window that overflows": BEGIN + frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3,
    "window of zero": BEGIN + frame(WINDOW, 0, 0, bytes(4)),
    "continuation of nothing": BEGIN + frame(CONTINUATION, 4, 1, GRPC_HEADERS),
    "headers that do not end": BEGIN
    + frame(HEADERS, 0, 1, GRPC_HEADERS)
    + frame(PING, 0, 0, bytes(8)),
    "compression that is none": BEGIN + frame(HEADERS, 4, 1, b"\xff" * 200),
    "a name of 16 MiB": BEGIN + frame(HEADERS, 4, 1, b"\x00\x7f\xff\xff\xff\x07"),
    "many pings": BEGIN + frame(PING, 0, 0, bytes(8)) * 5000,
    "a message that is none": BEGIN + CALL + frame(DATA, 1, 1, MESSAGE + b"\xff\xff\xff\xff"),
    "a message that is cut": BEGIN + CALL + frame(DATA, 1, 1, MESSAGE + b"\x0a"),
    "a message of 4 GiB": BEGIN + CALL + frame(DATA, 0, 1, b"\x00\xff\xff\xff\xff" + b"x" * 64),
    "calls that are reset at once": BEGIN
    + b"".join(
        frame(HEADERS, 4, i, GRPC_HEADERS) + frame(RESET, 0, i, bytes(4)) for i in range(1, 2001, 2)
    ),
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
}
REQUESTS = {
    "no HTTP": b"\x00\x01\x02\x03\r\n\r\n",
    "HTTP/2": BEGIN,
    "a head of 1 MiB": b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20),
    "many headers": b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 50_000,
    "no host": b"GET /v1/models/toy HTTP/1.1\r\n\r\n",
    "two lengths": b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a negative length": b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: -1\r\n\r\n",
    "a chunk that is none": b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "length and chunks": b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bytes that are no UTF-8": b"POST /v1/models/%ff%fe:predict HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: 2\r\n\r\n\xff\xfe",
    "a path upward": b"GET /v1/models/../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    "an upgrade": b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\n"
    b"Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "TLS": FRAMES["TLS"],
}


def send(port: int, data: bytes) -> bytes:
    """Sends bytes, reads what comes within a moment, and drops the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(0.1)
            return connection.recv(1 << 16)
        except OSError:
            return b""


def check(server: Server, saved: Saved) -> None:
    """The server answers others as before, and keeps nothing of what was sent."""
    x, expected = saved.answers["x"], saved.answers["y2"].tobytes()
    assert server.process.poll() is None, server.text()[-2000:]
    assert server.predict(x).tobytes() == expected
    until(lambda: server.total("model_server_calls_in_flight") == 0)
    assert server.rest("/v1/models/toy")[0] == 200


@pytest.mark.parametrize("name", FRAMES)
def test_broken_frames(server: Server, saved: Saved, name: str) -> None:
    send(server.port, FRAMES[name])
    check(server, saved)


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x0a", b"\x0a\x7f", b"\x12\x02\xff\xff"])
def test_request_that_is_no_message(server: Server, saved: Saved, data: bytes) -> None:
    call = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    assert failure(lambda: call(data, timeout=20))[0] == grpc.StatusCode.INVALID_ARGUMENT
    check(server, saved)


@pytest.mark.parametrize("name", REQUESTS)
def test_broken_requests(server: Server, saved: Saved, name: str) -> None:
    answer = send(server.rest_port, REQUESTS[name])
    assert b" 500 " not in answer.partition(b"\r\n")[0]
    assert b"root:" not in answer
    check(server, saved)


@pytest.mark.parametrize("seed", range(5))
def test_garbage(server: Server, saved: Saved, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        garbage = draw.randbytes(draw.randrange(1, 5000))
        send(server.rest_port, garbage)
        send(server.rest_port, b"POST /v1/models/toy:predict HTTP/1.1\r\n" + garbage)
        send(server.port, garbage)
        send(server.port, BEGIN + garbage)
    check(server, saved)


ODD: tuple[Any, ...] = (
    *(None, True, [], {}, "x", 1e400, -1, 1 << 70),
    *([[]], {"b64": "!"}, {"b64": 1}, "\ud800"),
)


def mutated_bytes(draw: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them changed, left out or added."""
    found = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(found))
        count = draw.randrange(3)
        found[at : at + count] = draw.randbytes(draw.randrange(3))
    return bytes(found)


def mutated_json(draw: random.Random, value: Any) -> Any:
    """The value with some of its parts replaced."""
    if draw.random() < 0.2:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {k: mutated_json(draw, x) for k, x in value.items() if draw.random() < 0.95}
    return [mutated_json(draw, x) for x in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(2))
def test_mutated_requests_are_never_a_fault_of_the_server(
    server: Server, saved: Saved, seed: int
) -> None:
    draw = random.Random(seed)
    call = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    pair = request(signature="pair", a=np.ones([2, 2], np.float32), b=np.int32([1, 2]))
    requests = (request(x=np.ones([2, 8], np.float32)), pair, request(signature="text", s=[b"a"]))
    refused = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}
    for _ in range(300 * EFFORT):
        data = mutated_bytes(draw, draw.choice(requests).SerializeToString())
        try:
            call(data, timeout=20)
        except grpc.RpcError as error:
            assert error.code().name in refused, (data, error.details())
    bodies: tuple[Any, ...] = (
        {"instances": [[1, 2, 3, 4, 5, 6, 7, 8]]},
        {"inputs": {"a": [[1, 2]], "b": [3]}, "signature_name": "pair"},
        {"instances": ["a", {"b64": "aaaa"}], "signature_name": "text"},
    )
    for _ in range(200 * EFFORT):
        body = mutated_json(draw, draw.choice(bodies))
        status, answer = server.rest("/v1/models/toy:predict", json.dumps(body).encode())
        assert status in (200, 400, 404, 413), (body, answer)
    check(server, saved)


def descriptors(server: Server) -> int:
    """How many files and connections the server has open."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").exists(), reason="needs /proc")
def test_connections_that_are_opened_and_dropped(server: Server, saved: Saved) -> None:
    check(server, saved)
    before = descriptors(server)
    left = CONNECTIONS
    while left > 0:
        count = min(left, AT_ONCE)
        ports = [(server.port, server.rest_port)[i % 2] for i in range(count)]
        opened = [socket.create_connection(("127.0.0.1", port), timeout=20) for port in ports]
        check(server, saved)
        for i, connection in enumerate(opened):
            if i % 3 == 0:  # by a reset
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
        left -= count
    until(lambda: descriptors(server) <= before + 20)
    check(server, saved)
