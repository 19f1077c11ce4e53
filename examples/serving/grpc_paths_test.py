# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""No path and no header of a gRPC request ends the server, or a call of another client."""

from __future__ import annotations

import asyncio
import pathlib
import socket
from typing import Any

import grpc
import grpc_paths
import pytest
from broken_clients_test import BEGIN, DATA, HEADERS, frame
from conftest import Saved
from serving_kit import Server, failure, serving, slow, until

CHECK = b"/grpc.health.v1.Health/Check"
UNIMPLEMENTED = b"grpc-status\x0212"  # as HTTP/2 has it in the trailers of an answer


def literal(name: bytes, value: bytes) -> bytes:
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call(
    path: bytes = CHECK, authority: bytes = b"x", name: bytes = b"", value: bytes = b""
) -> bytes:
    """The bytes of a call with an empty message, and one more header."""
    headers = b"\x83\x86" + literal(b":path", path) + literal(b":authority", authority)
    headers += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    if name:
        headers += literal(name, value)
    return b"".join((BEGIN, frame(HEADERS, 4, 1, headers), frame(DATA, 1, 1, bytes(5))))


# What is sent, and whether it is answered as a method that is not there.
CALLS = {
    "path that is not UTF-8": (call(b"/\xae/x"), True),
    "path that is cut within a character": (call(CHECK + b"\xe2\x82"), True),
    "path with a surrogate": (call(b"/\xed\xa0\x80/x"), True),
    "path with a NUL": (call(b"/\0/x"), True),
    "path without a slash": (call(b"x"), True),
    "empty path": (call(b""), True),
    "long path": (call(b"/" + b"\xff" * 120), True),
    "authority": (call(authority=b"\xae"), False),
    "header": (call(name=b"x-a", value=b"\xae\xff"), False),
    "binary header": (call(name=b"x-a-bin", value=b"!!!\xff"), False),
    "user agent": (call(name=b"user-agent", value=b"\xae\xff"), False),
    "timeout": (call(name=b"grpc-timeout", value=b"\xae\xff"), False),
    "encoding": (call(name=b"grpc-encoding", value=b"\xae\xff"), False),
}


def answer(port: int, data: bytes, end: bytes) -> bytes:
    """What the server sends until `end`, or until it says nothing for a second."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        if not end:
            connection.settimeout(1)
        try:
            while not end or end not in found:
                more = connection.recv(4096)
                if not more:
                    break
                found += more
        except TimeoutError:
            pass
    return found


@pytest.mark.parametrize("kind", CALLS)
def test_path_or_header_ends_neither_the_server_nor_calls_of_others(
    server: Server, saved: Saved, kind: str
) -> None:
    data, is_unknown = CALLS[kind]
    before = server.calls("unknown", "UNIMPLEMENTED")
    running = server.predictions.Predict.future(slow(5_000), timeout=60)
    until(lambda: server.total("model_server_calls_running"))
    found = answer(server.port, data, UNIMPLEMENTED if is_unknown else b"")
    assert (UNIMPLEMENTED in found) == is_unknown
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y2"].tobytes()
    assert running.result().outputs["y"]
    socket.create_connection(("127.0.0.1", server.port), timeout=20).close()
    assert server.calls("unknown", "UNIMPLEMENTED") == before + is_unknown
    if is_unknown:
        assert "refused a call whose path is that of no method" in server.text()


def test_method_that_is_not_there_is_unimplemented(server: Server) -> None:
    for path in ("/tensorflow.serving.PredictionService/Nothing", "/nothing", "/é/x"):
        method = server.channel.unary_unary(path)
        code, _ = failure(lambda method=method: method(b"", timeout=20))
        assert code == grpc.StatusCode.UNIMPLEMENTED


def test_many_paths_at_once_cost_few_lines_of_the_log(server: Server, saved: Saved) -> None:
    headers = b"\x83\x86" + literal(b":path", b"/\xae/x") + literal(b":authority", b"x")
    headers += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    before = server.calls("unknown", "UNIMPLEMENTED")
    data = b"".join(frame(HEADERS, 5, 1 + 2 * i, headers) for i in range(200))
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(BEGIN + data)
        until(lambda: server.calls("unknown", "UNIMPLEMENTED") == before + 200)
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers["y2"].tobytes()
    assert server.text().count("refused a call whose path") < 40


class OtherServer:
    """Stands for the AioServer of a grpcio that accepts calls in another way."""

    renames = decodes_no_path = False

    def __init__(self, *args: Any) -> None: ...

    def add_registered_method_handlers(self, handlers: Any) -> None: ...

    def is_running(self) -> bool:
        return False

    async def start(self) -> None: ...

    async def shutdown(self, grace: float) -> None: ...


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (grpc_paths, "_PLAIN", OtherServer),  # without the functions that are replaced
        (grpc_paths, "_Server", OtherServer),  # has them, and calls them not
        (grpc.aio, "server", lambda **options: object()),  # is made elsewhere
    ],
)
def test_grpcio_that_accepts_calls_in_another_way_is_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, value: Any
) -> None:
    async def make() -> None:
        await grpc_paths.start(grpc_paths.path_proof_server(lambda: None))

    monkeypatch.setattr(where, name, value)
    with pytest.raises(OSError, match=f"grpcio {grpc.__version__} does not accept calls by"):
        asyncio.run(make())


def test_process_ends_if_grpc_fails_all_the_same(saved: Saved, tmp_path: pathlib.Path) -> None:
    """A supervisor starts a process that has ended, and not one whose port is closed."""
    program = tmp_path / "unguarded.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(pathlib.Path(grpc_paths.__file__).parent)!r})\n"
        "import grpc, grpc_api, model_server\n"
        "grpc_api.path_proof_server = lambda unknown, **options: grpc.aio.server(**options)\n"
        "grpc_api.start = lambda server: server.start()\n"
        "model_server.main()\n"
    )
    toy = saved.copy(tmp_path / "toy", 1)
    with serving(f"--model=toy={toy}", log=tmp_path / "log", program=program) as server:
        answer(server.port, CALLS["path that is not UTF-8"][0], b"")
        assert server.process.wait(60) == 1
        assert "gRPC failed, and its port is closed" in server.text()
