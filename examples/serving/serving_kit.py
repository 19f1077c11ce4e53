# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the model server share: models, a server in a process, clients of it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from grpc_health.v1 import health_pb2_grpc
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

FOLDER = pathlib.Path(__file__).resolve().parent
GROUPS = 4
_START_SECONDS = 60

# Saves versions 1 and 2 of a model, and what they answer, called directly on one stream.
MAKE_MODELS = """
import sys
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
features = tf.TensorSpec([None, 8], tf.float32)
pairs = [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int32)]


class Model(tf.Module):
    def __init__(self, seed):
        super().__init__()
        shapes = [[8, 64], [64, 64], [64, 64], [64, 4]]
        self.weights = [
            tf.Variable(tf.random.stateless_normal(shape, [seed, i]) / 8)
            for i, shape in enumerate(shapes)
        ]

    @tf.function(input_signature=[features])
    def serve(self, x):
        for weights in self.weights:
            x = tf.tanh(x @ weights)
        return {"y": x}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def slow(self, n):
        more = lambda i, x: (i + 1, tf.tanh(x @ self.weights[1]))
        return {"y": tf.while_loop(lambda i, x: i < n, more, (0, tf.ones([1, 64])))[1]}

    @tf.function(input_signature=pairs)
    def pair(self, a, b):
        return {"sum": tf.reduce_sum(a, 1) + tf.cast(b, tf.float32), "twice": 2 * b}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def text(self, s):
        return {"upper": tf.strings.upper(s)}


x = np.random.default_rng(1).normal(size=[16, 8]).astype(np.float32)
answers = {"x": x}
for version in (1, 2):
    model = Model(version)
    signatures = {"serving_default": model.serve}
    signatures |= {"slow": model.slow, "pair": model.pair, "text": model.text}
    with tf.device("/GPU:0"):
        tf.saved_model.save(model, f"{folder}/{version}", signatures=signatures)
        loaded = tf.saved_model.load(f"{folder}/{version}")
        answers[f"y{version}"] = loaded.signatures["serving_default"](x=tf.constant(x))["y"].numpy()
np.savez(f"{folder}/answers.npz", **answers)
"""


def environment(**more: str) -> dict[str, str]:
    """The environment of a process with emulated GPUs, and no other variable of TensorFlow."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    emulated = {"TF_MULTI_STREAM_EMULATED_GPUS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    return {**clean, **emulated, **more}


def make_models(folder: pathlib.Path) -> dict[str, Any]:
    """Saves the models in folder/1 and folder/2; says what they answer."""
    subprocess.run(
        [sys.executable, "-c", MAKE_MODELS, str(folder)],
        env=environment(TF_GPU_STREAM_GROUP_COUNT="1"),
        check=True,
        timeout=_START_SECONDS,
    )
    return dict(np.load(folder / "answers.npz"))


class Server:
    """A model server in a process of its own, and clients of it."""

    def __init__(
        self,
        *options: str,
        log: pathlib.Path,
        program: pathlib.Path = FOLDER / "model_server.py",
        **variables: str,
    ) -> None:
        self.log = log
        self.options = options
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, str(program), *options],
                env=environment(TF_GPU_STREAM_GROUP_COUNT=str(GROUPS), **variables),
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> Server:
        """Waits until it is ready."""
        until(lambda: "ready: " in self.text() or self.process.poll() is not None, _START_SECONDS)
        found = re.search(r"ready: gRPC on (\S+), REST on (\S+)", self.text())
        assert found, self.text()
        self.address, self.url = found[1], found[2]
        self.port, self.rest_port = (int(x.rpartition(":")[2]) for x in found.groups())
        self.channel = grpc.insecure_channel(self.address)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        return self

    def text(self) -> str:
        """What it has said."""
        return self.log.read_text()

    def predict(self, x: Any, **options: Any) -> Any:
        """The answer to a call of the default signature."""
        response = self.predictions.Predict(request(x=x), timeout=20, **options)
        return tf.make_ndarray(response.outputs["y"])

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

    def stop(self) -> int:
        """Ends it by SIGTERM; its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.process.kill()
        self.process.wait(30)


@contextlib.contextmanager
def serving(*options: str, log: pathlib.Path, **more: Any) -> Iterator[Server]:
    """A server that is ready, on ports that the system chose."""
    server = Server(*options, "--port=0", "--rest-port=0", log=log, **more)
    try:
        yield server.wait()
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
