# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server starts with clear errors, ends in order, and starts again after a crash."""

import asyncio
import collections
import pathlib
import re
import shutil
import ssl
import subprocess
import threading
import urllib.request
from typing import Any

import grpc
import pytest
import server_options
import tensorflow as tf
from grpc_api import GrpcServer
from grpc_health.v1 import health_pb2
from http_guard import HttpServer
from serving_kit import FOREVER, FRONT, REST_PREDICT, Saved, Server, request, slow, until
from tensorflow_serving.apis import prediction_service_pb2_grpc

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_stop_under_load_answers_every_accepted_call(
    saved: Saved, serve: Any, options: tuple[str, ...]
) -> None:
    """Clients call on, each on a connection of its own, until the process has ended."""
    statuses: collections.Counter[str] = collections.Counter()
    rest: list[int] = []
    lock = threading.Lock()

    def call_on() -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        with grpc.insecure_channel(server.address, options) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            asked = request(x=saved.x)
            while not server.has_ended():
                try:
                    answer = tf.make_ndarray(stub.Predict(asked, timeout=60).outputs["y"])
                    status = "right" if saved.right(1, answer) else "wrong"
                except grpc.RpcError as error:
                    status = error.code().name
                with lock:
                    statuses[status] += 1

    def call_by_rest() -> None:
        body = {"inputs": 10_000, "signature_name": "slow"}
        rest.append(server.rest(REST_PREDICT, body)[0])

    with serve("--grace=20", *options) as server:
        health = iter(server.health.Watch(health_pb2.HealthCheckRequest()))
        assert next(health).status == health_pb2.HealthCheckResponse.SERVING
        long = server.predictions.Predict.future(slow(10_000))
        threads = [threading.Thread(target=call_by_rest)]
        threads[0].start()
        until(lambda: server.running() == 2)
        threads += [threading.Thread(target=call_on) for _ in range(8)]
        for thread in threads[1:]:
            thread.start()
        until(lambda: statuses["right"] > 20)
        assert server.stop() == 0
        for thread in threads:
            thread.join()
        assert next(health).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert long.result().outputs["y"]
        assert rest == [200]
        assert statuses.keys() == {"right", "UNAVAILABLE"}
        # As many as the server has answered: none was lost on the way.
        said = re.search(r"calls answered: OK (\d+), UNAVAILABLE \d+\n", server.text())
        assert said and int(said[1]) == statuses["right"] + 2


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_killed_server_starts_again_on_its_ports_and_grace_ends_calls(
    saved: Saved, serve: Any, tmp_path: pathlib.Path, options: tuple[str, ...]
) -> None:
    with serve(*options) as server:
        call = server.predictions.Predict.future(slow(FOREVER))
        saved.check(server, 1)
        server.kill()
        assert call.code() == UNAVAILABLE
        ports = (f"--port={server.port}", f"--rest-port={server.rest_port}")
        again = Server(server.options[0], *options, *ports, "--grace=0.3", log=tmp_path / "log2")
        try:
            again.wait()
            # The channel of before finds the new server by itself.
            assert saved.right(1, server.predict(saved.x, wait_for_ready=True))
            call = again.predictions.Predict.future(slow(FOREVER))
            until(again.running)
            assert again.stop() == 0
            assert call.code() == UNAVAILABLE and "shutting down" in call.details()
            assert "calls answered: OK 1, UNAVAILABLE 1\n" in again.text()
        finally:
            again.kill()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_tls_on_both_ports(
    saved: Saved, serve: Any, tmp_path: pathlib.Path, options: tuple[str, ...]
) -> None:
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
    with serve(f"--tls-key={key}", f"--tls-certificate={certificate}", *options) as server:
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
        with grpc.secure_channel(server.address, credentials) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            response = stub.Predict(request(x=saved.x), timeout=20)
        assert saved.right(1, tf.make_ndarray(response.outputs["y"]))
        assert server.url.startswith("https://")
        trusts = ssl.create_default_context(cafile=str(certificate))
        url = server.url + "/v1/models/toy"
        with urllib.request.urlopen(url, context=trusts, timeout=20) as found:
            assert found.status == 200
        with pytest.raises(OSError):
            urllib.request.urlopen(url.replace("https", "http"), timeout=20)
        with pytest.raises(grpc.RpcError):
            server.predict(saved.x)  # without TLS


def test_model_without_a_version_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"nothing")
    options = [f"--model={name}={tmp_path / name}" for name in ("empty", "broken")]
    started = Server(*options, log=tmp_path / "log")
    assert started.status() == 1
    text = started.text()
    assert "Traceback" not in text
    assert f"--model empty={tmp_path / 'empty'}: it has no version" in text
    assert f"--model broken={tmp_path / 'broken'}: version 1: " in text


def test_port_that_is_taken_is_named(server: Server) -> None:
    unused: Any = None
    ports = (f"--port={server.port}", f"--rest-port={server.rest_port}")
    options = server_options.parse(["--model=toy=.", *ports])

    async def start() -> None:
        with pytest.raises(OSError, match=f"gRPC cannot listen on 127.0.0.1:{server.port}"):
            GrpcServer(unused, unused, options)
        with pytest.raises(OSError, match=f"REST cannot listen on 127.0.0.1:{server.rest_port}"):
            HttpServer(unused, options)

    asyncio.run(start())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "--model"),
        ("--model=toy", "'toy' is not NAME=FOLDER"),
        ("--model=toy=. --model=toy=.", "a name is given twice"),
        ("--model=toy=. --threads=0", "'0' is not a number from 1"),
        ("--model=toy=. --front=x", "x is not a program; scripts/build_front.sh builds it"),
        ("--model=toy=. --request-log=/none/x", "'/none/x' is not in a folder of the server's ma"),
        ("--model=toy=. --request-log-rate=2", "'2' is not a number from 0 to 1"),
        ("--model=toy=. --tls-key=x", "have to be given together"),
        ("--model=toy=. --tls-key=x --tls-certificate=y", "No such file"),
    ],
)
def test_wrong_option_is_named(options: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        server_options.parse(options.split())
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_the_front_is_that_of_the_installed_package_unless_told(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model=toy=."]
    assert server_options.parse(arguments).front is None
    package = tmp_path / "tensorflow_multistream_front"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit):  # a package without its program
        server_options.parse(arguments)
    assert f"{package}/front is not a program" in capsys.readouterr().err
    (package / "front").symlink_to("/bin/true")
    options = server_options.parse(arguments)
    assert options.front == str(package / "front")
    assert options.lock_free
    assert server_options.parse([*arguments, "--front=none"]).front is None
    assert server_options.parse([*arguments, "--front=/bin/false"]).front == "/bin/false"


def test_it_listens_on_this_machine_only_unless_told() -> None:
    assert server_options.parse(["--model=toy=."]).host == "127.0.0.1"
