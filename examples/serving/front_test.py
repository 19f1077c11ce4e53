# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The front and the server live and end together, and count each call once."""

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import socket
import struct
import threading
import time
from typing import Any

import grpc
import numpy as np
import pytest
import server_options
from broken_clients_test import BEGIN, DATA, HEADERS, RESET, frame, headers, send
from grpc_front import Front
from grpc_health.v1 import health_pb2, health_pb2_grpc
from serving_kit import (
    FRONT,
    OF_BATCHES,
    PREDICT,
    REST_PREDICT,
    Saved,
    Server,
    failure,
    request,
    slow,
    until,
)
from tensorflow.python.multistream.serving.served_models import ServedModels


def front_of(server: Server) -> int:
    """The process that has the ports."""
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    (front,) = (pid for pid in children if "front" in pathlib.Path(f"/proc/{pid}/comm").read_text())
    return int(front)


def test_server_ends_with_its_front(saved: Saved, serve: Any) -> None:
    with serve(f"--front={FRONT}") as server:
        saved.check(server, 1)
        os.kill(front_of(server), signal.SIGKILL)
        assert server.status() == 1
        assert "gRPC failed, and its port is closed" in server.text()


def test_front_ends_with_its_server_and_no_signal_ends_it(saved: Saved, serve: Any) -> None:
    with serve(f"--front={FRONT}") as server:
        front = front_of(server)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            os.kill(front, number)
        saved.check(server, 1)
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: is_closed(server.port))


def is_closed(port: int) -> bool:
    """Whether nobody listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionError:
        return True
    return False


def test_port_that_is_taken_is_named(front_server: Server, saved: Saved) -> None:
    port = front_server.port
    options = server_options.parse([f"--model=toy={saved.folder}", f"--port={port}"])
    options.front = str(FRONT)
    with pytest.raises(OSError, match="Address already in use"):
        Front(
            options,
            "nowhere",
            ServedModels(),
            ["toy"],
            dict.fromkeys(("read-timeout-ms", "most-streams", "idle-ms"), 1000),
        )
    options.host = "no such host"
    with pytest.raises(OSError, match="known"):
        Front(options, "nowhere", ServedModels(), [], {})


def test_calls_that_wait_are_bounded_and_end_by_their_deadline(saved: Saved, serve: Any) -> None:
    limits = ("--threads=1", "--queue=1", "--call-timeout=1.5")
    with serve(f"--front={FRONT}", *limits) as server:
        saved.check(server, 1)
        first = server.predictions.Predict.future(slow(500_000))
        until(server.running)
        code, text = failure(lambda: server.predictions.Predict(slow(1), timeout=0.2))
        assert code == grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: not server.total("model_server_calls_waiting"))
        second = server.predictions.Predict.future(request(x=saved.x))
        until(lambda: server.total("model_server_calls_waiting") == 1)
        code, text = failure(lambda: server.predict(saved.x))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "1 calls run (--threads) and 1 may wait (--queue)" in text
        assert first.code() == second.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert "was running" in first.details() and "it was not run" in second.details()
        until(server.idle, 60)
        saved.check(server, 1)
        by_status = {
            s: server.calls("Predict", s)
            for s in ("OK", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED")
        }
        assert by_status == {
            "OK": 2,
            "DEADLINE_EXCEEDED": 3,
            "RESOURCE_EXHAUSTED": 1,
            "CANCELLED": 0,
        }
        assert sum('model="toy"' in labels for labels in server.metric("model_server_calls_total"))


def test_each_call_is_counted_once_wherever_it_is_answered(
    front_server: Server, saved: Saved
) -> None:
    server = front_server

    def count(what: str) -> float:
        return float(server.total(f"model_server_call{what}"))

    calls, seconds = count("s_total"), count("_seconds_count")
    filtered = request(x=saved.x)
    filtered.output_filter.append("y")  # which Python answers
    for asked in (request(x=saved.x), filtered, request(x=saved.x), filtered):
        server.predictions.Predict(asked, timeout=20)
    failure(lambda: server.predictions.Predict(request("nobody"), timeout=20))
    failure(lambda: server.predictions.Predict(request(x=saved.x[:, :3]), timeout=20))
    assert count("s_total") == calls + 6
    assert count("_seconds_count") == seconds + 6


def test_compressed_and_large_requests(front_server: Server, saved: Saved) -> None:
    server = front_server
    assert saved.right(2, server.predict(saved.x, compression=grpc.Compression.Gzip))
    code, text = failure(lambda: server.predict(saved.x, compression=grpc.Compression.Deflate))
    assert code == grpc.StatusCode.UNIMPLEMENTED and "deflate" in text
    rows = np.tile(saved.x, (10_000, 1))  # 5 MB
    answer = server.predict(rows)
    assert answer.shape == (160_000, 4)
    alone = server.predict(saved.x)
    assert np.allclose(answer.reshape(10_000, 16, 4), alone, rtol=0, atol=OF_BATCHES)


def most_memory_of(process: int) -> int:
    """The most bytes of memory that a process has had."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def test_what_is_compressed_is_bounded_before_it_is_there(front_server: Server) -> None:
    server, zeros = front_server, bytes(300 << 20)
    before = most_memory_of(front_of(server))
    method = server.channel.unary_unary(PREDICT)
    code, text = failure(lambda: method(zeros, timeout=60, compression=grpc.Compression.Gzip))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max-request-mb" in text
    assert most_memory_of(front_of(server)) < before + (200 << 20)


def test_bodies_of_clients_that_are_gone_are_bounded(
    front_greedy_server: Server, saved: Saved
) -> None:
    """Large bodies wait for a thread that reads their JSON, and that takes its time."""
    server = front_greedy_server
    # Just above the middle of two doubles: its last digit decides.
    number = f"1.00000000000000011102230246251565404236316680908203125{0:0900}1"
    row = f"[{','.join([number] * 8)}]"
    body = f'{{"instances": [{",".join([row] * 1000)}]}}'
    head = f"POST {REST_PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    data = f"{head}{body}".encode()
    port, before = ("127.0.0.1", server.rest_port), most_memory_of(front_of(server))

    def send_and_go(_: int) -> None:
        # What is too much is refused, and the connection is closed.
        with contextlib.suppress(OSError), socket.create_connection(port, timeout=20) as client:
            client.sendall(data)

    def is_answered() -> bool:
        with contextlib.suppress(OSError):
            return bool(server.rest(REST_PREDICT, body.encode())[0] == 200)
        return False

    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        list(clients.map(send_and_go, range(300)))  # 2.3 GB
    until(is_answered)  # by now the front has read them
    # Of the bodies 16 times 8 MiB, in buffers of up to twice their bytes.
    assert most_memory_of(front_of(server)) < before + (500 << 20)
    saved.check(server, 1)


def test_streams_of_one_client_keep_nobody_from_python(front_server: Server, saved: Saved) -> None:
    """As many watches as a connection may have, and other clients' calls that Python answers."""
    server = front_server
    watched = health_pb2.HealthCheckRequest()
    with grpc.insecure_channel(server.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watches = [health.Watch(watched) for _ in range(1024)]
        for watch in watches:
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        assert server.health.Check(watched, timeout=20).status == 1
        for watch in watches:
            watch.cancel()
    saved.check(server, 2)


def test_time_that_is_longer_than_clocks_have_is_none(front_server: Server, saved: Saved) -> None:
    for timeout in (b"2562047H", b"99999999H", b"20S"):
        answer = send(
            front_server.port,
            BEGIN
            + frame(HEADERS, 4, 1, headers(PREDICT.encode(), more=((b"grpc-timeout", timeout),)))
            + frame(DATA, 1, 1, message(request(x=saved.x).SerializeToString())),
            b"grpc-status",
        )
        assert b"grpc-status\x010" in answer, (timeout, answer)


def message(data: bytes) -> bytes:
    """A message as gRPC frames it."""
    return b"\0" + struct.pack(">I", len(data)) + data


def test_calls_that_are_reset_at_once_make_no_calls(front_server: Server, saved: Saved) -> None:
    """Python, which would count them, hears of none."""
    server = front_server
    before = server.total("model_server_calls_total")
    reset = b"".join(
        frame(HEADERS, 4, i, headers(b"/none/None")) + frame(RESET, 0, i, bytes(4))
        for i in range(1, 60_001, 2)
    )
    send(server.port, BEGIN + reset, seconds=1)
    until(server.idle)
    assert server.total("model_server_calls_total") == before
    saved.check(server, 2)


def test_calls_that_are_cancelled_leave_nothing_and_get_no_others_answer(
    front_server: Server, saved: Saved
) -> None:
    server, stopped = front_server, threading.Event()
    pairs = [
        request(signature="pair", a=np.full([2, 2], i, np.float32), b=np.int32([i, i]))
        for i in range(50)
    ]

    def call_on(i: int) -> int:
        right = 0
        while not stopped.is_set():
            response = server.predictions.Predict(pairs[i], timeout=20)
            twice = np.frombuffer(response.outputs["twice"].tensor_content, np.int32)
            assert twice.tolist() == [2 * i, 2 * i]
            right += 1
        return right

    def cancel_on(i: int) -> int:
        method = server.channel.unary_unary(PREDICT)
        for k in range(200):
            call = method.future(pairs[(i + k) % 50].SerializeToString())
            if k % 3:
                time.sleep(k % 7 / 2000)
            call.cancel()
        return 1

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        callers = [clients.submit(call_on, i) for i in range(4)]
        cancellers = [clients.submit(cancel_on, i) for i in range(4)]
        assert all(c.result(60) for c in cancellers)
        stopped.set()
        assert all(c.result(60) for c in callers)
    until(server.idle)
    saved.check(server, 2)
