# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What broken and hostile clients send ends their connections, and nobody else's."""

import asyncio
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import struct
from collections.abc import Iterable
from typing import Any

import grpc
import grpc_paths
import numpy as np
import pytest
from serving_kit import PREDICT, REST_PREDICT, Saved, Server, failure, request, slow, until

# As many as are to be opened and dropped; by hand, 10000.
CONNECTIONS = int(os.environ.get("SERVING_TEST_CONNECTIONS", "300"))
AT_ONCE = 500
# By hand, more, for more requests of the tests that draw them.
EFFORT = int(os.environ.get("SERVING_TEST_EFFORT", "1"))

DATA, HEADERS, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
CHECK = b"/grpc.health.v1.Health/Check"
UNIMPLEMENTED = b"grpc-status\x0212"  # as HTTP/2 has it in the trailers of an answer


@pytest.fixture
def server(either_server: Server) -> Server:
    """The servers without and with --front."""
    return either_server


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """A frame of HTTP/2, also with a length that is a lie."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(
    path: bytes, authority: bytes = b"x", more: tuple[tuple[bytes, bytes], ...] = ()
) -> bytes:
    """The headers of a gRPC call."""
    named = [(b":path", path), (b":authority", authority)]
    named += [(b"content-type", b"application/grpc"), (b"te", b"trailers"), *more]
    literals = (b"\x00%c%b%c%b" % (len(n), n, len(x), x) for n, x in named)
    return b"\x83\x86" + b"".join(literals)


def call(path: bytes = CHECK, **more: Any) -> bytes:
    """The bytes of a call with an empty message."""
    return BEGIN + frame(HEADERS, 4, 1, headers(path, **more)) + frame(DATA, 1, 1, bytes(5))


def post(more: bytes, path: bytes = b"toy") -> bytes:
    return b"POST /v1/models/%b:predict HTTP/1.1\r\nHost: x\r\n%b" % (path, more)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BEGIN = PREFACE + frame(SETTINGS, 0, 0, b"")
PREDICT_HEADERS = headers(PREDICT.encode())
CALL = BEGIN + frame(HEADERS, 4, 1, PREDICT_HEADERS)
MESSAGE = b"\x00" + struct.pack(">I", 4)
TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
FRAMES = {
    "no preface": frame(SETTINGS, 0, 0, b""),
    "length of 16 MiB": BEGIN + frame(DATA, 0, 1, b"x", 0xFFFFFF),
    "headers of no stream": BEGIN + frame(HEADERS, 4, 0, PREDICT_HEADERS),
    "data of an idle stream": BEGIN + frame(DATA, 0, 7, b"x" * 100),
    "no such kind": BEGIN + frame(0x77, 0xFF, 3, b"x" * 100),
    "settings of odd size": BEGIN + frame(SETTINGS, 0, 0, b"12345"),
    "window that overflows": BEGIN + frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3,
    "window of zero": BEGIN + frame(WINDOW, 0, 0, bytes(4)),
    "continuation of nothing": BEGIN + frame(CONTINUATION, 4, 1, PREDICT_HEADERS),
    "headers that do not end": BEGIN
    + frame(HEADERS, 0, 1, PREDICT_HEADERS)
    + frame(PING, 0, 0, bytes(8)),
    "compression that is none": BEGIN + frame(HEADERS, 4, 1, b"\xff" * 200),
    "a name of 16 MiB": BEGIN + frame(HEADERS, 4, 1, b"\x00\x7f\xff\xff\xff\x07"),
    "many pings": BEGIN + frame(PING, 0, 0, bytes(8)) * 5000,
    "a message that is none": CALL + frame(DATA, 1, 1, MESSAGE + b"\xff\xff\xff\xff"),
    "a message that is cut": CALL + frame(DATA, 1, 1, MESSAGE + b"\x0a"),
    "a message of 4 GiB": CALL + frame(DATA, 0, 1, b"\x00\xff\xff\xff\xff" + b"x" * 64),
    "calls that are reset at once": BEGIN
    + b"".join(
        frame(HEADERS, 4, i, PREDICT_HEADERS) + frame(RESET, 0, i, bytes(4))
        for i in range(1, 2001, 2)
    ),
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": TLS,
}
REQUESTS = {
    "no HTTP": b"\x00\x01\x02\x03\r\n\r\n",
    "HTTP/2": BEGIN,
    "a head of 1 MiB": b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20),
    "many headers": b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 50_000,
    "no host": b"GET /v1/models/toy HTTP/1.1\r\n\r\n",
    "two lengths": post(b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "a negative length": post(b"Content-Length: -1\r\n\r\n"),
    "a chunk that is none": post(b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "a chunk whose head does not end": post(
        b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * (1 << 20)
    ),
    "length and chunks": post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "bytes that are no UTF-8": post(b"Content-Length: 2\r\n\r\n\xff\xfe", b"%ff%fe"),
    "a path upward": b"GET /v1/models/../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    "an upgrade": b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\n"
    b"Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "TLS": TLS,
}
# What is sent, and whether it is answered as a method that is not there.
CALLS = {
    "path that is not UTF-8": (call(b"/\xae/x"), True),
    "path that is cut within a character": (call(CHECK + b"\xe2\x82"), True),
    "path with a surrogate": (call(b"/\xed\xa0\x80/x"), True),
    "path with a NUL": (call(b"/\0/x"), True),
    "path without a slash": (call(b"x"), True),
    "empty path": (call(b""), True),
    "long path": (call(b"/" + b"\xff" * 120), True),
    "method that is not there": (call(b"/tensorflow.serving.PredictionService/No"), True),
    "authority": (call(authority=b"\xae"), False),
    "header": (call(more=((b"x-a", b"\xae\xff"),)), False),
    "binary header": (call(more=((b"x-a-bin", b"!!!\xff"),)), False),
    "user agent": (call(more=((b"user-agent", b"\xae\xff"),)), False),
    "timeout": (call(more=((b"grpc-timeout", b"\xae\xff"),)), False),
    "encoding": (call(more=((b"grpc-encoding", b"\xae\xff"),)), False),
}


def send(port: int, data: bytes, end: bytes = b"", seconds: float = 0.1) -> bytes:
    """What the server sends until `end`, or until it says nothing for a moment."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
            if not end:
                connection.settimeout(seconds)
            while (not end or end not in found) and (more := connection.recv(1 << 16)):
                found += more
        except OSError:
            pass
    return found


def send_all(port: int, sent: Iterable[bytes]) -> list[bytes]:
    """What the server sends to clients that come together."""
    with concurrent.futures.ThreadPoolExecutor(20) as clients:
        return list(clients.map(lambda data: send(port, data), sent))


def check(server: Server, saved: Saved) -> None:
    """The server answers others as before, and keeps nothing of what was sent."""
    assert not server.has_ended(), server.text()[-2000:]
    saved.check(server, 2)
    until(lambda: server.total("model_server_calls_in_flight") == 0)
    assert server.rest("/v1/models/toy")[0] == 200


def test_broken_frames_and_requests(server: Server, saved: Saved) -> None:
    send_all(server.port, FRAMES.values())
    check(server, saved)
    answers = send_all(server.rest_port, REQUESTS.values())
    for name, answer in zip(REQUESTS, answers, strict=True):
        assert b" 500 " not in answer.partition(b"\r\n")[0], name
        assert b"root:" not in answer, name
    check(server, saved)


ODD: tuple[Any, ...] = (
    *(None, True, [], {}, "x", 1e400, -1, 1 << 70),
    *([[]], {"b64": "!"}, {"b64": 1}, "\ud800"),
)


def mutated_bytes(draw: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them changed, left out or added."""
    found = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(found) + 1)
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


def test_mutated_requests_are_never_a_fault_of_the_server(server: Server, saved: Saved) -> None:
    draw = random.Random(0)
    call = server.channel.unary_unary(PREDICT)
    pair = request(signature="pair", a=np.ones([2, 2], np.float32), b=np.int32([1, 2]))
    requests = (request(x=np.ones([2, 8], np.float32)), pair, request(signature="text", s=[b"a"]))
    refused = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}
    for _ in range(500 * EFFORT):
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
    for _ in range(300 * EFFORT):
        body = mutated_json(draw, draw.choice(bodies))
        status, answer = server.rest(REST_PREDICT, json.dumps(body).encode())
        assert status in (200, 400, 404, 413), (body, answer)
    check(server, saved)


def descriptors(server: Server) -> int:
    """How many files and connections the server has open, with its front."""
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    processes = (server.pid, *children.split())
    return sum(len(os.listdir(f"/proc/{process}/fd")) for process in processes)


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


def test_path_or_header_ends_neither_the_server_nor_calls_of_others(
    server: Server, saved: Saved
) -> None:
    before = server.calls("unknown", "UNIMPLEMENTED")
    running = server.predictions.Predict.future(slow(20_000), timeout=60)
    until(server.running)
    ends = [UNIMPLEMENTED * is_unknown for _, is_unknown in CALLS.values()]
    with concurrent.futures.ThreadPoolExecutor(20) as clients:
        sent = [data for data, _ in CALLS.values()]
        found = clients.map(lambda data, end: send(server.port, data, end, 1), sent, ends)
        assert {kind: UNIMPLEMENTED in x for kind, x in zip(CALLS, found, strict=True)} == {
            kind: is_unknown for kind, (_, is_unknown) in CALLS.items()
        }
    check(server, saved)
    assert running.result().outputs["y"]
    assert server.calls("unknown", "UNIMPLEMENTED") == before + sum(map(bool, ends))
    assert "refused a call whose path is that of no method" in server.text()


def test_many_paths_at_once_cost_few_lines_of_the_log(server: Server, saved: Saved) -> None:
    before = server.calls("unknown", "UNIMPLEMENTED")
    data = b"".join(frame(HEADERS, 5, 1 + 2 * i, headers(b"/\xae/x")) for i in range(200))
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(BEGIN + data)
        until(lambda: server.calls("unknown", "UNIMPLEMENTED") == before + 200)
    check(server, saved)
    assert server.text().count("refused a call whose path") < 40


def test_grpcio_that_accepts_calls_in_another_way_is_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def make() -> None:
        await grpc_paths.start(grpc_paths.path_proof_server(lambda: None))

    monkeypatch.setattr(grpc.aio, "server", lambda **options: object())
    with pytest.raises(OSError, match=f"grpcio {grpc.__version__} does not accept calls by"):
        asyncio.run(make())


def test_client_that_is_gone_when_its_answer_is_sent_costs_no_line_of_the_log(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    """What is raised here gRPC raises now and then, if a deadline ends here and there at once."""
    gone = (
        "import grpc_api\n"
        "from grpc._cython import cygrpc\n"
        "def answer(spec): raise cygrpc.ExecuteBatchError('the answer was not sent')\n"
        "grpc_api.version_of = answer\n"
    )
    toy = saved.copy(tmp_path / "toy", 1)
    options = (f"--model=toy={toy}", "--port=0", "--rest-port=0")
    started = Server(*options, log=tmp_path / "log", before=gone).wait()
    code, _ = failure(lambda: started.predictions.Predict(request(x=saved.x), timeout=1))
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert started.rest(REST_PREDICT, {"inputs": saved.x.tolist()})[0] == 200
    assert started.stop() == 0
    assert "ExecuteBatchError" not in started.text()


def test_process_ends_if_grpc_fails_all_the_same(saved: Saved, tmp_path: pathlib.Path) -> None:
    """A supervisor starts a process that has ended, and not one whose port is closed."""
    unguarded = (
        "import grpc, grpc_api\n"
        "grpc_api.path_proof_server = lambda unknown, **options: grpc.aio.server(**options)\n"
        "grpc_api.start = lambda server: server.start()\n"
    )
    started = Server(
        *(f"--model=toy={saved.copy(tmp_path / 'toy', 1)}", "--port=0", "--rest-port=0"),
        log=tmp_path / "log",
        before=unguarded,
    ).wait()
    send(started.port, call(b"/\xae/x"), seconds=1)
    assert started.status() == 1
    assert "gRPC failed, and its port is closed" in started.text()
