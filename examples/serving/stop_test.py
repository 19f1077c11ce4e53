# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server starts with clear errors, ends in order, and starts again after a crash."""

from __future__ import annotations

import asyncio
import collections
import pathlib
import re
import shutil
import ssl
import subprocess
import threading
import time
import urllib.request
from typing import Any

import grpc
import pytest
import server_options
import tensorflow as tf
from conftest import Saved
from grpc_api import GrpcServer
from grpc_health.v1 import health_pb2
from http_guard import HttpServer
from serving_kit import Server, request, serving, slow, until
from tensorflow_serving.apis import prediction_service_pb2_grpc

THREADS = 4


class Load:
    """Threads that call until the server takes no more calls."""

    def __init__(self, server: Server, saved: Saved) -> None:
        self.right = 0
        self.wrong: list[str] = []
        self.refused: list[grpc.StatusCode] = []
        self._lock = threading.Lock()
        self._args = (server, saved.answers["x"], saved.answers["y1"].tobytes())
        self._threads = [threading.Thread(target=self._call) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)

    def _call(self) -> None:
        server, x, expected = self._args
        while True:
            try:
                answer = server.predict(x).tobytes()
            except grpc.RpcError as error:
                with self._lock:
                    self.refused.append(error.code())
                return
            with self._lock:
                if answer == expected:
                    self.right += 1
                else:
                    self.wrong.append("another answer")


def test_stop_under_load_answers_every_accepted_call(saved: Saved, tmp_path: pathlib.Path) -> None:
    toy = saved.copy(tmp_path / "toy", 1)
    with serving(f"--model=toy={toy}", "--grace=20", log=tmp_path / "log") as server:
        watch = server.health.Watch(health_pb2.HealthCheckRequest())
        health = iter(watch)
        assert next(health).status == health_pb2.HealthCheckResponse.SERVING
        long = server.predictions.Predict.future(slow(10_000))
        rest: list[int] = []
        body = {"inputs": 10_000, "signature_name": "slow"}
        by_rest = threading.Thread(
            target=lambda: rest.append(server.rest("/v1/models/toy:predict", body)[0])
        )
        by_rest.start()
        until(lambda: server.total("model_server_calls_running") == 2)
        load = Load(server, saved)
        until(lambda: load.right > 20)
        assert server.stop() == 0
        load.join()
        by_rest.join()
        assert next(health).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert long.result().outputs["y"]
        assert rest == [200]
        assert load.wrong == []
        assert load.refused == [grpc.StatusCode.UNAVAILABLE] * THREADS
        # As many as the server has answered: none was lost on the way.
        said = re.search(r"calls answered: OK (\d+)(, UNAVAILABLE \d+)?\n", server.text())
        assert said and int(said[1]) == load.right + 2
        assert "Traceback" not in server.text()


def test_calls_that_outlast_the_grace_are_cancelled(saved: Saved, tmp_path: pathlib.Path) -> None:
    toy = saved.copy(tmp_path / "toy", 1)
    with serving(f"--model=toy={toy}", "--grace=0.3", log=tmp_path / "log") as server:
        call = server.predictions.Predict.future(slow(2_000_000_000))
        until(lambda: server.total("model_server_calls_running"))
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 15
        assert call.code() == grpc.StatusCode.UNAVAILABLE
        assert "shutting down" in call.details()
        assert "calls answered: UNAVAILABLE 1\n" in server.text()


def test_calls_at_any_moment_of_a_stop_are_answered_or_unavailable(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    """Clients that go on calling, each on a connection of its own, until the process has ended."""
    toy = saved.copy(tmp_path / "toy", 1)
    expected = saved.answers["y1"].tobytes()
    statuses: collections.Counter[str] = collections.Counter()
    right = 0
    lock = threading.Lock()

    def call_on() -> None:
        nonlocal right
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        with grpc.insecure_channel(server.address, options) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            asked = request(x=saved.answers["x"])
            while server.process.poll() is None:
                try:
                    answer = stub.Predict(asked, timeout=60).outputs["y"]
                    with lock:
                        right += tf.make_ndarray(answer).tobytes() == expected
                    status = "OK"
                except grpc.RpcError as error:
                    status = error.code().name
                with lock:
                    statuses[status] += 1

    with serving(f"--model=toy={toy}", log=tmp_path / "log") as server:
        clients = [threading.Thread(target=call_on) for _ in range(8)]
        for client in clients:
            client.start()
        until(lambda: right > 20)
        assert server.stop() == 0
        for client in clients:
            client.join()
        assert statuses.keys() == {"OK", "UNAVAILABLE"}
        assert right == statuses["OK"]
        said = re.search(r"calls answered: OK (\d+), UNAVAILABLE \d+\n", server.text())
        assert said and int(said[1]) == right  # none was lost on the way


def test_killed_server_starts_again_on_its_ports(saved: Saved, tmp_path: pathlib.Path) -> None:
    toy = saved.copy(tmp_path / "toy", 1)
    x, expected = saved.answers["x"], saved.answers["y1"].tobytes()
    with serving(f"--model=toy={toy}", log=tmp_path / "log") as server:
        call = server.predictions.Predict.future(slow(2_000_000_000))
        assert server.predict(x).tobytes() == expected
        server.kill()
        assert call.code() == grpc.StatusCode.UNAVAILABLE
        ports = (f"--port={server.port}", f"--rest-port={server.rest_port}")
        again = Server(f"--model=toy={toy}", *ports, log=tmp_path / "log2")
        try:
            again.wait()
            # The channel of before finds the new server by itself.
            assert server.predict(x, wait_for_ready=True).tobytes() == expected
            assert again.rest("/v1/models/toy")[0] == 200
        finally:
            again.kill()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_tls_on_both_ports(saved: Saved, tmp_path: pathlib.Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    toy = saved.copy(tmp_path / "toy", 1)
    options = (f"--tls-key={key}", f"--tls-certificate={certificate}")
    with serving(f"--model=toy={toy}", *options, log=tmp_path / "log") as server:
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
        with grpc.secure_channel(server.address, credentials) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            response = stub.Predict(request(x=saved.answers["x"]), timeout=20)
        answer = tf.make_ndarray(response.outputs["y"]).tobytes()
        assert answer == saved.answers["y1"].tobytes()
        assert server.url.startswith("https://")
        trusts = ssl.create_default_context(cafile=str(certificate))
        url = server.url + "/v1/models/toy"
        with urllib.request.urlopen(url, context=trusts, timeout=20) as found:
            assert found.status == 200
        with pytest.raises(OSError):
            urllib.request.urlopen(url.replace("https", "http"), timeout=20)
        with pytest.raises(grpc.RpcError):
            server.predict(saved.answers["x"])  # without TLS


def test_model_without_a_version_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"nothing")
    folders = {name: tmp_path / name for name in ("empty", "broken")}
    options = [f"--model={name}={folder}" for name, folder in folders.items()]
    started = Server(*options, log=tmp_path / "log")
    assert started.process.wait(60) == 1
    *_, first, second = started.text().splitlines()
    assert f"--model empty={folders['empty']}: it has no version" in first
    assert f"--model broken={folders['broken']}: version 1: " in second
    assert "Traceback" not in started.text()


def test_port_that_is_taken_is_named(server: Server) -> None:
    unused: Any = None

    async def start() -> None:
        with pytest.raises(OSError, match=f"gRPC cannot listen on 127.0.0.1:{server.port}"):
            GrpcServer(unused, unused, f"127.0.0.1:{server.port}", 1000, 1, 1, None)
        with pytest.raises(OSError, match=f"REST cannot listen on 127.0.0.1:{server.rest_port}"):
            HttpServer(unused, "127.0.0.1", server.rest_port, 1, 1, None, None)

    asyncio.run(start())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--model"),
        (["--model=toy"], "'toy' is not NAME=FOLDER"),
        (["--model=toy=/no/such/folder"], "/no/such/folder is not a folder"),
        (["--model=a/b=."], "is not NAME=FOLDER"),
        (["--model=toy=.", "--model=toy=."], "a name is given twice"),
        (["--model=toy=.", "--threads=0"], "'0' is not a number from 1"),
        (["--model=toy=.", "--port=70000"], "'70000' is not a number from 0 to 65535"),
        (["--model=toy=.", "--grace=nan"], "'nan' is not a number from 0"),
        (["--model=toy=.", "--tls-key=x"], "have to be given together"),
        (["--model=toy=.", "--tls-key=x", "--tls-certificate=y"], "No such file"),
    ],
)
def test_wrong_option_is_named(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        server_options.parse(options)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_it_listens_on_this_machine_only_unless_told() -> None:
    assert server_options.parse(["--model=toy=."]).host == "127.0.0.1"
