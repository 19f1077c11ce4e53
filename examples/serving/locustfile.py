# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Load on a model server, by Locust: users who call by gRPC and by REST, and check each answer.

    locust -f examples/serving/locustfile.py --headless --users 16 --run-time 30s \
        --host http://127.0.0.1:8501 --grpc 127.0.0.1:8500 --model digits --example digits.npz

An example is a file of np.savez: a request's numbers, `inputs/NAME`, and those that the model gives
for them, `outputs/NAME`. An answer with other bits is a failure. Locust's status is 1 if there is
one. `GrpcUser` or `RestUser` at the end of the command has users of one kind only.
"""

import json
import random
import sys
import time
from typing import Any, NamedTuple

import grpc
import grpc.experimental.gevent
import numpy as np
from locust import FastHttpUser, User, constant, events, task
from tensorflow import make_ndarray, make_tensor_proto
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

grpc.experimental.gevent.init_gevent()  # or a call would stop all users, who share a thread

DEADLINE = 60  # seconds


class Example(NamedTuple):
    """A request in both forms, and what the answer must be."""

    message: Any
    body: bytes
    outputs: dict[str, Any]

    def check(self, answer: dict[str, Any]) -> None:
        """Raises ValueError or KeyError if an answer is not that of the example, bit by bit."""
        for name, right in self.outputs.items():
            dtype = getattr(answer[name], "dtype", right.dtype)  # JSON says none
            found = np.asarray(answer[name], dtype)
            same = found.tobytes() == right.tobytes()
            if not same or (found.dtype, found.shape) != (right.dtype, right.shape):
                raise ValueError(f"output {name} is wrong")


def read(path: str, model: str) -> Example:
    """Reads an example for a model; ends the program if it is none."""
    arrays = dict(np.load(path))
    inputs = {k.removeprefix("inputs/"): x for k, x in arrays.items() if k.startswith("inputs/")}
    outputs = {k.removeprefix("outputs/"): x for k, x in arrays.items() if k.startswith("outputs/")}
    if not inputs or not outputs:
        sys.exit(f"--example {path}: it must have arrays inputs/NAME and outputs/NAME")
    message = predict_pb2.PredictRequest()
    message.model_spec.name = model
    for name, x in inputs.items():
        message.inputs[name].CopyFrom(make_tensor_proto(x))
    body = json.dumps({"inputs": {name: x.tolist() for name, x in inputs.items()}})
    return Example(message, body.encode(), outputs)


examples: list[Example] = []


@events.init_command_line_parser.add_listener
def add_options(parser: Any) -> None:
    """Adds ours to Locust's options."""
    add = parser.add_argument
    add("--grpc", default="127.0.0.1:8500", help="address of the server's gRPC")
    add("--model", required=True, help="its name")
    add("--example", action="append", required=True, help="FILE.npz; may be given several times")


@events.init.add_listener
def read_examples(environment: Any, **_: Any) -> None:
    """Reads all examples before the first user comes."""
    options = environment.parsed_options
    examples.extend(read(path, options.model) for path in options.example)


class GrpcUser(User):
    """Calls Predict, on a connection of its own."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """Connects."""
        options = [("grpc.use_local_subchannel_pool", 1)]  # or users would share a connection
        self.channel = grpc.insecure_channel(self.environment.parsed_options.grpc, options)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)

    def on_stop(self) -> None:
        """Disconnects; what is left when Python ends cannot."""
        self.channel.close()
        del self.predictions, self.channel

    @task
    def predict(self) -> None:
        """Makes one call, and tells Locust how it went."""
        example = random.choice(examples)
        size, error = 0, None
        start = time.perf_counter()
        try:
            response = self.predictions.Predict(example.message, timeout=DEADLINE)
            size = response.ByteSize()
            example.check({name: make_ndarray(x) for name, x in response.outputs.items()})
        except (grpc.RpcError, KeyError, ValueError) as caught:
            error = caught
        self.environment.events.request.fire(
            request_type="gRPC",
            name="Predict",
            response_time=1000 * (time.perf_counter() - start),
            response_length=size,
            exception=error,
            context={},
        )


class RestUser(FastHttpUser):
    """Calls predict, on a connection of its own."""

    wait_time = constant(0)
    network_timeout = connection_timeout = DEADLINE

    @task
    def predict(self) -> None:
        """Makes one call; Locust counts errors of HTTP itself."""
        example = random.choice(examples)
        path = f"/v1/models/{self.environment.parsed_options.model}:predict"
        with self.client.post(path, example.body, catch_response=True) as response:
            if response.status_code == 200:
                try:
                    outputs = json.loads(response.text)["outputs"]
                    # The answer leaves out the name of an only output.
                    named = isinstance(outputs, dict)
                    example.check(outputs if named else dict.fromkeys(example.outputs, outputs))
                except (KeyError, ValueError) as error:
                    response.failure(repr(error))
