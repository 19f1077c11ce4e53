# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the model server share: models, a server in a process, clients of it."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import grpc
import numpy as np
import tensorflow as tf
from grpc_health.v1 import health_pb2_grpc
from multistream.testing import kit
from tensorflow.python.multistream.serving.served_models import ServedModels
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

FOLDER = pathlib.Path(__file__).resolve().parent
# scripts/build_front.sh builds it.
FRONT = FOLDER.parents[1] / "dist/front"
GROUPS = 4
MOST_MB = 8  # of a request to the server that greedy_requests_test.py calls
FOREVER = 2_000_000_000
PREDICT = "/tensorflow.serving.PredictionService/Predict"
REST_PREDICT = "/v1/models/toy:predict"
# Dtypes of the inputs of the signature `echo`.
ECHOED = (
    *(tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    *(tf.float16, tf.float32, tf.float64, tf.bfloat16, tf.string),
)
_START_SECONDS = 60
# The most that an answer differs from one of another batch: a GPU may compute products in TF32.
OF_BATCHES = 2e-3 if kit.ON_GPU else 1e-5
# Of the variables of Model.
VARIABLE_BYTES = 4 * (8 * 64 + 64 * 64 + 64 * 64 + 64 * 4)


class Model(tf.Module):
    """The model that the tests serve: its signatures."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        shapes = [[8, 64], [64, 64], [64, 64], [64, 4]]
        self.weights = [
            tf.Variable(tf.random.stateless_normal(shape, [seed, i]) / 8)
            for i, shape in enumerate(shapes)
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
    def serving_default(self, x: Any) -> Any:
        """Four layers."""
        for weights in self.weights:
            x = tf.tanh(x @ weights)
        return {"y": x}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def slow(self, n: Any) -> Any:
        """Multiplies n times."""

        def more(i: Any, x: Any) -> Any:
            return i + 1, tf.tanh(x @ self.weights[1])

        return {"y": tf.while_loop(lambda i, x: i < n, more, (0, tf.ones([1, 64])))[1]}

    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int32)]
    )
    def pair(self, a: Any, b: Any) -> Any:
        """Takes and gives two tensors."""
        return {"sum": tf.reduce_sum(a, 1) + tf.cast(b, tf.float32), "twice": 2 * b}

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32)])
    def total(self, x: Any) -> Any:
        """Gives sums of rows, and one that is of no row."""
        return {"rows": tf.reduce_sum(x, 1), "all": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def text(self, s: Any) -> Any:
        """Takes and gives strings."""
        return {"upper": tf.strings.upper(s)}

    @tf.function
    def echo(self, **given: Any) -> Any:
        """Gives what it takes: a vector of each dtype of ECHOED."""
        return {name: tf.identity(x) for name, x in given.items()}


def save_models(folder: str) -> None:
    """Saves versions 1 and 2, and what they answer, called directly on one stream."""
    x = np.random.default_rng(1).normal(size=[16, 8]).astype(np.float32)
    answers = {"x": x}
    for version in (1, 2):
        model = Model(version)
        names = ("serving_default", "slow", "pair", "total", "text")
        with tf.device("/GPU:0"):
            signatures = {name: getattr(model, name) for name in names}
            specs = {x.name: tf.TensorSpec([None], x) for x in ECHOED}
            signatures["echo"] = model.echo.get_concrete_function(**specs)
            del specs["float16"], specs["bfloat16"]  # the Open Inference Protocol has no types
            signatures["echo_typed"] = model.echo.get_concrete_function(**specs)
            tf.saved_model.save(model, f"{folder}/{version}", signatures=signatures)
            function = tf.saved_model.load(f"{folder}/{version}").signatures["serving_default"]
            answers[f"y{version}"] = function(x=tf.constant(x))["y"].numpy()
    np.savez(f"{folder}/answers.npz", **answers)


def environment(**more: str) -> dict[str, str]:
    """The environment of a process with emulated GPUs, and no other variable of TensorFlow.

    With kit.ON_GPU the GPU is that of the machine.
    """
    emulated = {} if kit.ON_GPU else {"TF_MULTI_STREAM_EMULATED_GPUS": "1"}
    return {**kit.inherited(), **emulated, **more}


def run_here(code: str, timeout: float, **variables: str) -> Any:
    """Runs code with this folder's modules in such an environment."""
    paths = [str(FOLDER), str(pathlib.Path(kit.__file__).parents[2])]
    code = f"import sys\nsys.path[:0] = {paths!r}\n{code}"
    return kit.python(["-c", code], environment(**variables), timeout)


class Saved(NamedTuple):
    """The test's model: `folder` has versions 1 and 2, `answers` what they answer to `x`."""

    folder: pathlib.Path
    answers: dict[str, Any]

    @property
    def x(self) -> Any:
        """The request."""
        return self.answers["x"]

    def right(self, version: int, answer: Any) -> bool:
        """Whether an answer to `x` is that of a version, bit by bit."""
        return bool(np.float32(answer).tobytes() == self.answers[f"y{version}"].tobytes())

    def check(self, server: "Server", version: int) -> None:
        """A server answers `x` as a version does."""
        assert self.right(version, server.predict(self.x)), server.text()[-2000:]

    def copy(self, folder: pathlib.Path, *versions: int, first: int | None = None) -> pathlib.Path:
        """Copies versions as a deployment does, by a move; the first one as number `first`."""
        folder.mkdir(exist_ok=True)
        for version in versions:
            part = folder / f"{version}.part"
            shutil.copytree(self.folder / str(version), part)
            part.rename(folder / str(first or version))
        return folder


def make_models(folder: pathlib.Path) -> Saved:
    """Saves the models in a process of their own."""
    code = f"import serving_kit\nserving_kit.save_models({str(folder)!r})"
    done = run_here(code, _START_SECONDS, TF_GPU_STREAM_GROUP_COUNT="1")
    assert done.returncode == 0, done.stderr
    return Saved(folder, dict(np.load(folder / "answers.npz")))


class Server:
    """A model server in a process, after the code `before`, and clients of it."""

    def __init__(
        self, *options: str, log: pathlib.Path, before: str = "", **variables: str
    ) -> None:
        self.log = log
        self.options = options
        log.touch()
        started = log.with_suffix(".pid")
        code = f"""
import faulthandler, os, pathlib, signal
faulthandler.register(signal.SIGUSR1)
file = os.open({str(log)!r}, os.O_WRONLY | os.O_APPEND)
os.dup2(file, 1), os.dup2(file, 2)
pathlib.Path({str(started)!r}).write_text(f"{{os.getpid()}}.")
sys.argv[1:] = {list(options)!r}
import model_server
{before}
model_server.main()
"""
        given = {"TF_GPU_STREAM_GROUP_COUNT": str(GROUPS), **variables}
        thread = concurrent.futures.ThreadPoolExecutor(1)
        self._process = thread.submit(run_here, code, 3600, **given)
        thread.shutdown(wait=False)
        until(lambda: started.exists() and "." in started.read_text(), _START_SECONDS)
        self.pid = int(started.read_text()[:-1])

    def wait(self) -> "Server":
        """Waits until it is ready."""
        until(lambda: "ready: " in self.text() or self.has_ended(), _START_SECONDS)
        found = re.search(r"ready: gRPC on (\S+), REST on (\S+)", self.text())
        assert found, self.text()
        self.address, self.url = found[1], found[2]
        self.port, self.rest_port = (int(x.rpartition(":")[2]) for x in found.groups())
        self.channel = grpc.insecure_channel(self.address)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        return self

    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self._process.done()

    def status(self) -> int:
        """Its exit status, once it has ended."""
        return int(self._process.result(60).returncode)

    def text(self) -> str:
        """What it has said."""
        return self.log.read_text()

    def predict(self, x: Any, **options: Any) -> Any:
        """The answer to a call of the default signature."""
        before = self._cpu_seconds()
        try:
            response = self.predictions.Predict(request(x=x), timeout=20, **options)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED or self.has_ended():
                raise
            used = self._cpu_seconds() - before
            os.kill(self.pid, signal.SIGUSR1)
            until(lambda: "most recent call first" in self.text())
            raise AssertionError(
                f"no answer in 20 s; the server used {used:.1f} s of CPU time: {self.text()}"
            ) from error
        return tf.make_ndarray(response.outputs["y"])

    def _cpu_seconds(self) -> float:
        try:
            stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:  # A test may call the next server by this one's channel.
            return 0.0
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rest(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of a request by HTTP."""
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(self.url + path, data, timeout=20) as response:
                return response.status, _parsed(response.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())

    def metric(self, name: str) -> dict[str, float]:
        """The figures of a metric, by their labels as Prometheus has them."""
        _, text = self.rest("/metrics")
        rows = re.findall(rf"^{name}({{.*?}})? (\S+)$", text, re.MULTILINE)
        return {labels: float(figure) for labels, figure in rows}

    def total(self, name: str) -> float:
        """The sum of a metric's figures."""
        return sum(self.metric(name).values())

    def calls(self, method: str, status: str) -> float:
        """How many calls had a status."""
        figures = self.metric("model_server_calls_total").items()
        return sum(
            n for labels, n in figures if f'"{method}"' in labels and f'"{status}"' in labels
        )

    def by_version(self, name: str, model: str = "toy") -> dict[int, float]:
        """The figures of a metric, `model_server_version_` and a name, of a model's versions."""
        figures = self.metric(f"model_server_version_{name}").items()
        of_model = f'{{model="{model}",version="'
        return {
            int(labels[len(of_model) : -2]): figure
            for labels, figure in figures
            if labels.startswith(of_model)
        }

    def running(self) -> float:
        """How many calls have a thread."""
        return self.total("model_server_calls_running")

    def idle(self) -> bool:
        """Whether nothing runs, on the device neither."""
        figures = ("calls_running", "calls_waiting", "calls_in_flight", "group_steps_running")
        return not any(self.total(f"model_server_{name}") for name in figures)

    def stop(self) -> int:
        """Ends it by SIGTERM; its status."""
        os.kill(self.pid, signal.SIGTERM)
        return self.status()

    def kill(self) -> None:
        """Ends it as a crash does."""
        if not self.has_ended():
            # It may end here; `has_ended` says so a little later.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.status()


class FakeFront:
    """A program that stands for a front; it writes down what it is told.

    It answers no calls by gRPC, and has Python answer all by REST.

    `program` is for --front. `said` has the lines after the server's start, without questions.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.program = folder / "front"
        self._heard = folder / "heard"
        self.program.write_text(f"""#!{sys.executable}
import socket, sys, threading
options = dict(option[2:].split("=", 1) for option in sys.argv[1:])
control = socket.socket(fileno=int(options["control"]))
listener = socket.create_server(("127.0.0.1", 0))

def pass_on(one, other):
    while data := one.recv(1 << 16):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)

def accept():
    while True:
        client, python = listener.accept()[0], socket.socket(socket.AF_UNIX)
        python.connect(options["python-rest"])
        for ends in ((client, python), (python, client)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()

threading.Thread(target=accept, daemon=True).start()
with open({str(self._heard)!r}, "w", buffering=1) as heard:
    print(options["python"], file=heard)
    port = listener.getsockname()[1]
    control.sendall(f"listening 1 {{port}} {ServedModels().frames()}\\n".encode())
    for line in control.makefile():
        if line == "stats\\n":
            control.sendall(b'{{"answers": [], "unsent": 0}}\\n')
        else:
            print(line, end="", file=heard)
""")
        self.program.chmod(0o755)

    def said(self) -> list[str]:
        """What it was told, line by line, but for the dtypes of versions."""
        lines = self._heard.read_text().splitlines()[1:]
        return [line for line in lines if not line.startswith("version ")]

    def channel(self) -> Any:
        """A channel to the server in Python, as a front has it."""
        return grpc.insecure_channel(self._heard.read_text().splitlines()[0])


@contextlib.contextmanager
def serving(*options: str, log: pathlib.Path, **more: Any) -> Iterator[Server]:
    """A server that is ready, on ports that the system chose."""
    server = Server(*options, "--port=0", "--rest-port=0", log=log, **more)
    try:
        yield server.wait()
        text = server.text()
        assert "Traceback" not in text, text
    finally:
        server.kill()


def request(model: str = "toy", signature: str = "", **inputs: Any) -> Any:
    """A request of Predict."""
    found = predict_pb2.PredictRequest()
    found.model_spec.name = model
    found.model_spec.signature_name = signature
    for name, value in inputs.items():
        found.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return found


def slow(n: int) -> Any:
    """A request that takes some 0.01 ms for each unit of n, or more."""
    return request(signature="slow", n=np.int32(n))


def failure(call: Callable[[], Any]) -> tuple[Any, str]:
    """Code and text of the error that a call gives."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError("the call did not fail")


def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
