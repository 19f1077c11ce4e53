# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The front's HTTP port: it gives Python's answers, and keeps to HTTP/1.1."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import resource
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from broken_clients_test import EFFORT, mutated_bytes, mutated_json
from limits_test import post
from serving_kit import FRONT, REST_PREDICT, Saved, Server, request, serving, slow, until

STATUS = "/v1/models/toy"
ROW = [1, -2.5, 3e-5, 4, 5, 6, 7, 8]
BODIES: tuple[Any, ...] = (
    {"instances": [ROW, ROW]},
    {"instances": [{"x": ROW}]},
    {"inputs": [ROW]},
    {"inputs": {"x": [ROW]}, "signature_name": "serving_default"},
    {"inputs": {"a": [[1, 2]], "b": [3]}, "signature_name": "pair"},
    {"instances": [{"a": [1, 2], "b": 3}, {"b": 4, "a": [1e30, 2]}], "signature_name": "pair"},
    {"instances": ["a", {"b64": "aaaa"}], "signature_name": "text"},
    {"inputs": 3, "signature_name": "slow"},
    {"inputs": [[1e39] * 8]},
    {"instances": [ROW, ROW], "signature_name": "total"},
)
PATHS = (
    *(f"/v1/models/{path}:predict" for path in ("toy", "other", "nobody", "toy/versions/1")),
    *(f"/v1/models/{path}:predict" for path in ("toy/versions/3", "toy/versions/x", "t%6fy")),
    *(f"/v1/models/{path}:predict" for path in ("toy/versions/-1", "toy/versions/01", "toy/")),
    *(f"/v1/models/{path}:predict" for path in ("toy/labels/x", "", "toy/versions/1/", "a:b")),
    *(f"/v1/models/toy:predict{more}" for more in ("?a=b", "/", "#x", "%20")),
    *("/v1/models/toy:classify", "/v1/models/toy", "/v2/models/toy/infer", "/", "/v1/models"),
)


def answer(server: Server, path: str, body: bytes, **headers: str) -> tuple[int, str | None, bytes]:
    """Status, type and body of what a server answers."""
    asked = urllib.request.Request(server.url + path, body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as found:
            return found.status, found.headers["content-type"], found.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def check_same(server: Server, front_server: Server, path: str, body: bytes) -> int:
    """Both servers give the same answer, byte by byte; its status."""
    expected, found = (answer(x, path, body) for x in (server, front_server))
    assert found == expected, (path, body)
    return expected[0]


def test_answers_are_those_of_python(server: Server, front_server: Server) -> None:
    draw = random.Random(1)
    statuses = set()
    for path in PATHS:
        body = json.dumps(BODIES[0]).encode()
        statuses.add(check_same(server, front_server, path, body))
    for _ in range(150 * EFFORT):
        body = draw.choice(BODIES)
        text = json.dumps(mutated_json(draw, body) if draw.random() < 0.5 else body).encode()
        if draw.random() < 0.5:
            text = mutated_bytes(draw, text)
        statuses.add(check_same(server, front_server, REST_PREDICT, text))
    assert statuses >= {200, 400, 404}


@pytest.fixture(scope="module")
def without_python(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose Python fails in each call of :predict; calls share steps of up to 8 rows."""
    folder = tmp_path_factory.mktemp("without")
    toy = saved.copy(folder / "toy", 1, 2)
    fails = (
        "import rest_api, serving_error\n"
        "def fail(*arguments): raise serving_error.not_found('by Python')\n"
        "rest_api._WORK[':predict'] = fail"
    )
    options = (f"--model=toy={toy}", "--versions=2", f"--front={FRONT}", "--max-batch=8")
    with serving(*options, "--read-timeout=1", log=folder / "log", before=fails) as server:
        yield server


def test_plain_calls_do_not_go_through_python(without_python: Server, saved: Saved) -> None:
    server = without_python
    for version, path in ((2, REST_PREDICT), (1, "/v1/models/toy/versions/1:predict")):
        _, found = server.rest(path, {"instances": saved.x.tolist()})
        assert saved.right(version, found["predictions"])
    for body in BODIES[:6]:
        status, found = server.rest(REST_PREDICT, body)
        assert status == 200, found
    status, found = server.rest(REST_PREDICT, {"inputs": [ROW[:7]]})  # Python has the error
    assert (status, found["error"]) == (404, "by Python")


def test_calls_share_steps_with_those_by_grpc(without_python: Server) -> None:
    server, body = without_python, json.dumps({"instances": [ROW]})
    # More steps than run at once, so that calls wait for each other.
    long = [server.predictions.Predict.future(slow(20_000)) for _ in range(16)]
    until(lambda: server.running() == 16)
    names = ("batches", "batched_calls")
    before = [server.total(f"model_server_{name}_total") for name in names]
    connections = [post(server, body) for _ in range(12)]
    futures = [server.predictions.Predict.future(request(x=[ROW])) for _ in range(12)]
    until(lambda: server.total("model_server_calls_waiting") == 24)
    answers = [json.loads(x.getresponse().read())["predictions"] for x in connections]
    answers += [tf.make_ndarray(x.result().outputs["y"]).tolist() for x in futures]
    assert all(np.allclose(x, answers[0]) for x in answers)
    after = [server.total(f"model_server_{name}_total") for name in names]
    assert (after[0] - before[0], after[1] - before[1]) == (3, 24)
    for call in long:
        assert call.result().outputs["y"]


def connect(server: Server) -> socket.socket:
    """A connection."""
    return socket.create_connection(("127.0.0.1", server.rest_port), timeout=20)


def read(connection: socket.socket, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    """The next answer of a connection."""
    found = http.client.HTTPResponse(connection, method=method)
    found.begin()
    return found, found.read()


def test_requests_wait_where_python_takes_no_more_connections(front_server: Server) -> None:
    """As of TCP, whose clients try again. Of Python's socket file 2048 connections wait at most."""
    count = 2200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * count)), hard))
    with contextlib.ExitStack() as stack:
        os.kill(front_server.pid, signal.SIGSTOP)
        try:
            connections = [stack.enter_context(connect(front_server)) for _ in range(count)]
            for connection in connections:
                connection.sendall(b"GET /v1/models/toy HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(1)
        finally:
            os.kill(front_server.pid, signal.SIGCONT)
        statuses = collections.Counter(read(connection)[0].status for connection in connections)
    assert statuses == {200: count}


def posted(body: bytes, more: str = "") -> bytes:
    """A request."""
    head = f"POST {REST_PREDICT} HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_requests_that_come_together_are_answered_in_order(
    front_server: Server, saved: Saved
) -> None:
    plain = posted(json.dumps({"inputs": saved.x.tolist()}).encode())
    other = f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    wrong = posted(b"{")
    with connect(front_server) as connection:
        connection.sendall(b"".join((other, plain, wrong, plain, other)) * 20)
        # Responses are read from one file: a buffer of its own would take the next one's bytes.
        file = connection.makefile("rb")
        for _ in range(20):
            for expected in (b"AVAILABLE", b"outputs", b"error", b"outputs", b"AVAILABLE"):
                assert expected in next_body(file)


def test_next_request_may_come_while_the_server_ends_the_last_one(front_server: Server) -> None:
    """A client has the answer before the server's own thread goes on."""
    body = json.dumps({"inputs": [ROW]}).encode()
    head, _, _ = posted(body).partition(body)

    def call_on(_: int) -> None:
        with connect(front_server) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            file = connection.makefile("rb")
            for _ in range(200):
                connection.sendall(head)
                connection.sendall(body)
                assert b"outputs" in next_body(file)

    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        list(clients.map(call_on, range(16)))


def next_body(file: Any) -> bytes:
    """The body of the next answer, which has its length."""
    length = 0
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body: bytes = file.read(length)
    return body


def test_old_and_new_http_keep_connections_as_they_say(front_server: Server) -> None:
    body = json.dumps({"inputs": [ROW]}).encode()
    for version, says, stays in (
        ("1.0", "", False),
        ("1.0", "Connection: keep-alive\r\n", True),
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
    ):
        for data in (
            posted(body, says),
            f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n{says}\r\n".encode(),
        ):
            with connect(front_server) as connection:
                connection.sendall(data.replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
                found, _ = read(connection)
                assert found.status == 200
                said = (found.getheader("connection") or "").lower()
                assert said == ("close" if not stays else "keep-alive" if version == "1.0" else "")
                connection.settimeout(0.3 if stays else 20)
                try:
                    assert connection.recv(1) == b"" and not stays
                except TimeoutError:
                    assert stays


def test_head_has_no_body_and_the_length_of_one(front_server: Server) -> None:
    with connect(front_server) as connection:
        connection.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        for _ in range(2):
            found, body = read(connection, "HEAD")
            assert found.status == 200 and body == b""
            assert int(found.getheader("content-length") or 0) > 100
            assert (found.getheader("content-type") or "").startswith("text/plain")


def test_body_is_asked_for_and_may_come_in_chunks(front_server: Server) -> None:
    body = json.dumps({"inputs": [ROW]}).encode()
    with connect(front_server) as connection:
        connection.sendall(posted(body, "Expect: 100-continue\r\n")[: -len(body)])
        assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read(connection)[0].status == 200
    for size in (1, 7, 1000):
        chunks = (body[i : i + size] for i in range(0, len(body), size))
        assert post(front_server, chunks, encode_chunked=True).getresponse().status == 200
    with connect(front_server) as connection:  # byte by byte
        for byte in posted(body):
            connection.sendall(bytes([byte]))
        assert read(connection)[0].status == 200


def test_client_that_does_not_read_its_answer_is_closed(without_python: Server) -> None:
    body = json.dumps({"inputs": [[1] * 8] * 100_000}).encode()
    with connect(without_python) as stuck, connect(without_python) as slow:
        for connection in (stuck, slow):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.sendall(posted(body, "Connection: close\r\n"))
        until(lambda: without_python.total("model_server_calls_in_flight") == 0)
        size, end = 0, time.monotonic() + 3  # longer than --read-timeout
        while time.monotonic() < end:
            size += len(slow.recv(1 << 14))
            time.sleep(0.02)
        while data := slow.recv(1 << 20):
            size += len(data)
            last = data[-10:]
        assert last.endswith(b"]]}")
        assert size > 5_000_000
        with pytest.raises(OSError):
            while True:
                stuck.sendall(b" ")
                time.sleep(0.01)


def test_client_that_goes_cancels_its_call(front_server: Server) -> None:
    before = front_server.calls("Predict", "CANCELLED")
    body = json.dumps({"inputs": 20_000, "signature_name": "slow"})
    connection = post(front_server, body)
    until(front_server.running)
    connection.close()
    until(lambda: front_server.calls("Predict", "CANCELLED") == before + 1)
    until(front_server.idle)


def test_answer_that_json_cannot_have_counts_as_an_error(without_python: Server) -> None:
    server, statuses = without_python, ("OK", "INVALID_ARGUMENT")
    before = [server.calls("Predict", status) for status in statuses]
    body = {"instances": [ROW], "signature_name": "total"}
    status, found = server.rest(REST_PREDICT, body)
    assert status == 400 and "no rows in common" in found["error"]
    body = {"inputs": [ROW], "signature_name": "total"}
    assert server.rest(REST_PREDICT, body)[0] == 200
    after = [server.calls("Predict", status) for status in statuses]
    assert after == [n + 1 for n in before]


def test_only_the_front_says_which_calls_are_logged(
    saved: Saved, serve: Any, tmp_path: Any
) -> None:
    log = ("--request-log", str(tmp_path / "requests"), "--request-log-rate", "1e-9")
    x = {"name": "x", "datatype": "FP32", "shape": [1, 8], "data": ROW}
    body = json.dumps({"inputs": [x]}).encode()
    with serve(f"--front={FRONT}", *log) as server:
        for value in ("1", "0"):
            found = answer(server, "/v2/models/toy/infer", body, **{"X-Sampled": value})
            assert found[0] == 200, found
        assert server.total("model_server_requests_logged_total") == 0


def test_part_that_does_not_end_is_refused(front_server: Server) -> None:
    head = f"POST {REST_PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    with connect(front_server) as connection:
        connection.sendall(head.encode() + b"a" * 150_000)
        assert read(connection)[0].status == 400
