# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""All REST paths: TensorFlow Serving's, those of the Open Inference Protocol, and /metrics."""

import argparse
import functools
from typing import Any

import kserve_rest
import prometheus_client
from example_calls import JsonExamples, classify, json_of, regress
from google.protobuf import json_format
from grpc_api import metadata, status
from predict_calls import Call, Calls
from request_log import examples_messages, predict_messages
from request_memory import RequestMemory
from rest_calls import RestCalls, Work, answered, error_response, json_response, version_of
from rest_json import PredictRequest, answer
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tensorflow_serving.apis import get_model_metadata_pb2


def _predict(body: bytes, most_bytes: int, call: Call) -> Response:
    asked = PredictRequest(body, most_bytes)
    signature = call.loaded.signature(asked.signature)
    arrays = asked.arrays(signature)
    results = call.step(signature, arrays)
    call.log("predict_log", lambda spec: predict_messages(spec, arrays, results))
    return _json(answer(asked, results))


def _classify(body: bytes, most_bytes: int, call: Call) -> Response:
    asked = JsonExamples.of(body, most_bytes)
    result = classify(call, asked.signature, asked.examples)
    call.log("classify_log", lambda spec: examples_messages(spec, asked.examples, result))
    return _json(json_of(result))


def _regress(body: bytes, most_bytes: int, call: Call) -> Response:
    asked = JsonExamples.of(body, most_bytes)
    result = regress(call, asked.signature, asked.examples)
    call.log("regress_log", lambda spec: examples_messages(spec, asked.examples, result))
    return _json(json_of(result))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


_WORK: dict[str, Work] = {":predict": _predict, ":classify": _classify, ":regress": _regress}


class RestApi:
    """The application that answers HTTP requests, within `memory` and the options' limits."""

    def __init__(self, calls: Calls, memory: RequestMemory, options: argparse.Namespace) -> None:
        self._calls = calls
        rest_calls = RestCalls(calls, memory, options)
        model = "/v1/models/{name}"
        by_version = (model + "/versions/{version}", model + "/labels/{label}")
        routes = [Route("/metrics", self._metrics, methods=["GET"])]
        for path in (*by_version, model):
            for verb, work in _WORK.items():
                method = verb[1:].capitalize()
                handler = functools.partial(rest_calls.infer, method=method, work=work)
                routes.append(Route(path + verb, answered(handler), methods=["POST"]))
            routes.append(Route(f"{path}/metadata", answered(self._metadata), methods=["GET"]))
            routes.append(Route(path, answered(self._status), methods=["GET"]))
        routes += kserve_rest.routes(rest_calls)
        self.application = Starlette(
            routes=routes, exception_handlers={HTTPException: _other_error}
        )

    async def _metrics(self, request: Request) -> Response:
        return Response(
            self._calls.metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST
        )

    async def _status(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.url.path.endswith(tuple(_WORK)):
            raise HTTPException(405, "it is asked by POST", {"allow": "POST"})
        with self._calls.counted(name, "GetModelStatus"):
            found = status(self._calls.models.known(name), version_of(request))
            fields = json_format.MessageToDict(
                found, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            return json_response(fields)

    async def _metadata(self, request: Request) -> Response:
        name = request.path_params["name"]
        with self._calls.counted(name, "GetModelMetadata"):
            found = metadata(self._calls.models.model(name), version_of(request))
            signatures = get_model_metadata_pb2.SignatureDefMap()
            found.metadata["signature_def"].Unpack(signatures)
            spec = {
                "name": name,
                "signature_name": "",
                "version": str(found.model_spec.version.value),
            }
            described = json_format.MessageToDict(
                signatures,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            return json_response({"model_spec": spec, "metadata": {"signature_def": described}})


async def _other_error(request: Request, error: Any) -> Response:
    what = f"{request.method} {request.url.path[:200]}"
    response = error_response(error.status_code, f"{what}: {error.detail}")
    response.headers.update(error.headers or {})
    return response
