# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""TensorFlow Serving's gRPC services: PredictionService and ModelService.

A method raises ServingError for its client, whom the guard tells (grpc_guard.py).
"""

import argparse
import asyncio
import concurrent.futures
import logging
import pathlib
import time
from collections.abc import Callable
from typing import Any

import example_calls
import grpc
import kserve_grpc
import tensorflow as tf
from front_models import FrontModels
from google.protobuf import wrappers_pb2
from grpc_front import Front
from grpc_guard import RefuseBrokenMessages
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_paths import add_service, path_proof_server, start
from kserve_messages import SERVICE
from model_config import configs_of
from model_versions import Model
from predict_calls import Call, Calls
from request_memory import RequestMemory
from server_options import host_of
from serving_error import ServingError, invalid
from tensor_protos import array_of
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

_SERVICE = "tensorflow.serving.PredictionService"
_MOST_STREAMS = 1024
# A connection without calls gives up its place; clients open another when they need it.
_IDLE_SECONDS = 300


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers PredictionService's calls; an input of Predict may take `most_bytes`."""

    def __init__(self, calls: Calls, most_bytes: int) -> None:
        self._calls = calls
        self._most_bytes = most_bytes

    async def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Calls a signature."""
        spec = request.model_spec

        def work(call: Call) -> Any:
            signature = call.loaded.signature(spec.signature_name)
            signature.check_names(set(request.inputs))
            arrays = {n: array_of(x, n, self._most_bytes) for n, x in request.inputs.items()}
            results = call.step(signature, arrays)
            chosen = signature.chosen(results, request.output_filter, "output_filter")
            response = predict_pb2.PredictResponse()
            example_calls.name_model(response.model_spec, spec.name, call, spec.signature_name)
            for name, array in chosen.items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(array))
            call.log("predict_log", lambda _: (request, response))
            return response

        return await self._predict("Predict", spec, work, context)

    async def _predict(
        self, method: str, spec: Any, work: Callable[[Call], Any], context: Any
    ) -> Any:
        seconds = context.time_remaining()
        origin = self._calls.grpc_origin(context, _SERVICE, method)
        name, version = spec.name, version_of(spec)
        return await self._calls.predict(name, version, work, seconds, method, origin)

    async def Classify(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Classifies tf.Examples."""
        response = classification_pb2.ClassificationResponse()
        return await self._of_examples("Classify", request, response, context)

    async def Regress(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Gives a number for each of some tf.Examples."""
        response = regression_pb2.RegressionResponse()
        return await self._of_examples("Regress", request, response, context)

    async def _of_examples(self, method: str, request: Any, response: Any, context: Any) -> Any:
        spec = request.model_spec
        result = example_calls.classify if method == "Classify" else example_calls.regress

        def work(call: Call) -> Any:
            examples = example_calls.serialized(request.input)
            response.result.CopyFrom(result(call, spec.signature_name, examples))
            example_calls.name_model(response.model_spec, spec.name, call, spec.signature_name)
            call.log(f"{method.lower()}_log", lambda _: (request, response))
            return response

        return await self._predict(method, spec, work, context)

    async def MultiInference(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Classifies tf.Examples and gives numbers for them, by signatures of one model."""
        specs = [task.model_spec for task in request.tasks]
        if not specs:
            raise invalid("the request has no tasks.")
        name, version = specs[0].name, version_of(specs[0])
        if any(spec.name != name or version_of(spec) != version for spec in specs):
            raise invalid("the tasks are not all of one model and one version.")

        def work(call: Call) -> Any:
            examples = example_calls.serialized(request.input)
            response = example_calls.infer(call, request.tasks, examples)
            call.log("multi_inference_log", lambda _: (request, response))
            return response

        return await self._predict("MultiInference", specs[0], work, context)

    async def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Says which signatures a model has."""
        spec = request.model_spec
        with self._calls.counted(spec.name, "GetModelMetadata"):
            for field in request.metadata_field:
                if field != "signature_def":
                    raise invalid(f"metadata_field {field!r} is not signature_def.")
            if not request.metadata_field:
                raise invalid("metadata_field is empty; it may be signature_def.")
            return metadata(self._calls.models.model(spec.name), version_of(spec))


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """Answers ModelService's calls; `versions` are served of a model without a policy."""

    def __init__(self, calls: Calls, versions: int) -> None:
        self._calls = calls
        self._versions = versions
        # One after another. One whose client is gone before it begins is not begun.
        self._reloads = concurrent.futures.ThreadPoolExecutor(1, "reload")

    async def GetModelStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Says which versions a model has."""
        spec = request.model_spec
        with self._calls.counted(spec.name, "GetModelStatus"):
            return status(self._calls.models.known(spec.name), version_of(spec))

    async def HandleReloadConfigRequest(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Serves other models; answers when they are available."""
        with self._calls.counted("", "HandleReloadConfigRequest"):
            self._calls.refuse_if_draining()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._reloads, self._reload, request.config)
        response = model_management_pb2.ReloadConfigResponse()
        response.status.SetInParent()  # OK
        return response

    def _reload(self, config: Any) -> None:
        try:
            self._calls.models.change(configs_of(config, self._versions))
        except ServingError as error:  # also for clients that have given up
            logging.error("a reload changed nothing: %s", error.message)
            raise


def version_of(spec: Any) -> int | str | None:
    """The version that a ModelSpec asks for: a number, a label, or None for the newest."""
    if spec.WhichOneof("version_choice") == "version_label":
        return str(spec.version_label)
    return spec.version.value if spec.HasField("version") else None


def metadata(model: Model, version: int | str | None) -> Any:
    """The answer of GetModelMetadata; ServingError if there is no such version."""
    held = model.acquire(version)
    try:
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in held.loaded.signature_defs.items():
            signatures.signature_def[name].CopyFrom(definition)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = model.name
        response.model_spec.version.CopyFrom(wrappers_pb2.Int64Value(value=held.number))
        response.metadata["signature_def"].Pack(signatures)
        return response
    finally:
        model.release(held)


def status(model: Model, asked: int | str | None) -> Any:
    """The answer of GetModelStatus; ServingError if there is no such version."""
    version = model.number_of(asked)
    known = [v for v in model.statuses() if version is None or v.number == version]
    if version is not None and not known:
        raise ServingError(
            grpc.StatusCode.NOT_FOUND, f"model {model.name!r} has no version {version}."
        )
    response = get_model_status_pb2.GetModelStatusResponse()
    for found in known:
        code = grpc.StatusCode.UNKNOWN.value[0] if found.error else 0
        said = response.model_version_status.add(version=found.number, state=int(found.state))
        said.status.error_code = code
        said.status.error_message = found.error
    return response


class _Health(health.aio.HealthServicer):
    """Health whose watchers do not keep the server from stopping."""

    def __init__(self) -> None:
        super().__init__()
        self._stops = asyncio.Event()

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802
        """Says the status at each change, until the server stops."""
        watch = asyncio.ensure_future(super().Watch(request, context))
        stops = asyncio.ensure_future(self._stops.wait())
        try:
            await asyncio.wait({watch, stops}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({watch}, timeout=0.2)  # to say NOT_SERVING
        finally:
            watch.cancel()
            stops.cancel()

    async def not_serving(self) -> None:
        """Says NOT_SERVING, also to those who watch, and ends watching."""
        await self.enter_graceful_shutdown()
        self._stops.set()


class GrpcServer:
    """The gRPC server, on its port; raises OSError if it cannot listen there.

    With a front (grpc_front.py) the port is the front's, as is the one of REST, and this server has
    a socket file in the folder `sockets`.
    """

    def __init__(
        self,
        calls: Calls,
        memory: RequestMemory,
        options: argparse.Namespace,
        served: FrontModels | None = None,
        sockets: str = "",
    ) -> None:
        self._calls = calls
        self._sockets = sockets
        self._options = options
        self._served = served
        self._front: Front | None = None
        self._guard = RefuseBrokenMessages(
            lambda method, status: calls.metrics.answered("", method, status, 0),
            options.most_bytes,
            memory,
        )
        of_clients = (
            # The longest that a client may take to begin HTTP/2.
            ("grpc.server_handshake_timeout_ms", int(options.read_timeout * 1000)),
            ("grpc.max_allowed_incoming_connections", options.max_connections),
            ("grpc.max_concurrent_streams", _MOST_STREAMS),  # of a connection
            ("grpc.max_connection_idle_ms", int(_IDLE_SECONDS * 1000)),
        )
        self._server = path_proof_server(
            lambda: calls.metrics.answered("", "unknown", "UNIMPLEMENTED", 0),
            interceptors=[self._guard],
            options=(
                # With it a port that another process has would be shared with it.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", options.most_bytes),
                ("grpc.max_send_message_length", -1),
                # A front has these limits for each client, and one connection for all of them.
                *(of_clients if served is None else ()),
            ),
        )
        self.health = _Health()
        predictions = PredictionService(calls, options.most_bytes)
        add = prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server
        add_service(self._server, add, predictions)
        add = model_service_pb2_grpc.add_ModelServiceServicer_to_server
        add_service(self._server, add, ModelService(calls, options.versions))
        add_service(self._server, health_pb2_grpc.add_HealthServicer_to_server, self.health)
        kserve_grpc.add_to(self._server, calls, options.most_bytes)
        if served is None:
            self.address = self._listen(options)
        else:
            self.address = f"unix:{sockets}/grpc"
            try:
                self._server.add_insecure_port(self.address)
            except RuntimeError as error:
                raise OSError(f"gRPC cannot listen on {self.address}: {error}") from error

    def _listen(self, options: argparse.Namespace) -> str:
        host = host_of(options)
        address = f"{host}:{options.port}"
        try:
            if options.tls_key is None:
                port = self._server.add_insecure_port(address)
            else:
                files = (options.tls_key, options.tls_certificate)
                pair = tuple(pathlib.Path(file).read_bytes() for file in files)
                credentials = grpc.ssl_server_credentials([pair])
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {address}: {error}") from error
        if port == 0:
            raise OSError(f"gRPC cannot listen on {address}")
        return f"{host}:{port}"

    async def start(self) -> None:
        """Begins to answer; OSError if the installed grpcio does not fit."""
        for service in (_SERVICE, "tensorflow.serving.ModelService", SERVICE):
            await self.health.set(service, health_pb2.HealthCheckResponse.SERVING)
        await start(self._server)
        if self._served is not None:
            self._start_front(self._served)

    def _start_front(self, served: FrontModels) -> None:
        options, models = self._options, self._calls.models
        arguments = {
            "read-timeout-ms": int(options.read_timeout * 1000),
            "most-streams": _MOST_STREAMS,
            "idle-ms": int(_IDLE_SECONDS * 1000),
        }
        self._front = Front(options, self._sockets, served, models.names, arguments)
        self._calls.metrics.front = self._front
        served.tell(self._front)
        for name, share in options.share.items():
            self._front.share(name, share)
        models.tell_names = self._front.name_models
        if self._calls.traces is not None:
            self._front.trace()
        models.tell_change = self._share_calls
        self._share_calls()
        self.address = f"{host_of(options)}:{self._front.port}"
        self.rest_port = self._front.rest_port
        logging.info("%s has the ports", options.front)

    def _share_calls(self) -> None:
        """Tells the front which share of each model's calls Python has to see."""
        if self._front is not None:
            models = self._calls.models
            for name in models.names:
                self._front.sample(name, self._calls.share(models.config(name)))

    async def ended(self) -> None:
        """Returns when the server accepts no more calls, whether it was told to or has failed."""
        ends = [asyncio.ensure_future(self._server.wait_for_termination())]
        if self._front is not None:
            ends.append(asyncio.ensure_future(self._front.ended()))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)

    async def not_serving(self) -> None:
        """Says so to those who ask for the health, and refuses new calls of Predict."""
        await self.health.not_serving()
        if self._front is not None:
            self._front.drain()

    async def close(self, patience: float) -> bool:
        """Ends the calls that the front has; whether their steps end within `patience` seconds."""
        if self._front is None:
            return True
        self._front.close()
        until = time.monotonic() + patience
        while self._front.figures().running and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return not self._front.figures().running

    async def sent(self, until: float) -> None:
        """Waits until the answers of all open calls have been sent; `until`, by time.monotonic().

        The server is then ended by the end of the process: clients whose calls are on their way
        see that the connection is closed, which is UNAVAILABLE. To stop it would tell them
        CANCELLED, as if they had cancelled the call themselves.
        """
        calls = set(self._guard.open)
        while time.monotonic() < until and (
            calls & self._guard.open or (self._front is not None and self._front.figures().unsent)
        ):
            await asyncio.sleep(0.02)
