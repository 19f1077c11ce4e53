# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""TensorFlow Serving's REST paths, and /metrics."""

import argparse
import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import prometheus_client
from example_calls import JsonExamples, classify, json_of, regress
from google.protobuf import json_format
from grpc_api import metadata, status
from model_versions import Version
from predict_calls import Calls
from request_memory import RequestMemory
from rest_json import PredictRequest, answer
from serving_error import ServingError, not_found, too_large
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from tensorflow_serving.apis import get_model_metadata_pb2

_Handler = Callable[[Request], Awaitable[Response]]


def _predict(body: bytes, most_bytes: int, held: Version) -> bytes:
    asked = PredictRequest(body, most_bytes)
    signature = held.loaded.signature(asked.signature)
    return bytes(answer(asked, signature(asked.arrays(signature))))


def _classify(body: bytes, most_bytes: int, held: Version) -> bytes:
    asked = JsonExamples.of(body, most_bytes)
    return bytes(json_of(classify(held, asked.signature, asked.examples)))


def _regress(body: bytes, most_bytes: int, held: Version) -> bytes:
    asked = JsonExamples.of(body, most_bytes)
    return bytes(json_of(regress(held, asked.signature, asked.examples)))


_Work = Callable[[bytes, int, Version], bytes]
_WORK: dict[str, _Work] = {":predict": _predict, ":classify": _classify, ":regress": _regress}


class RestApi:
    """The application that answers HTTP requests, within `memory` and the options' limits."""

    def __init__(self, calls: Calls, memory: RequestMemory, options: argparse.Namespace) -> None:
        self._calls = calls
        self._memory = memory
        self._most_bytes = options.most_bytes
        self._read_seconds = options.read_timeout
        model = "/v1/models/{name}"
        by_version = (model + "/versions/{version}", model + "/labels/{label}")
        routes = [Route("/metrics", self._metrics, methods=["GET"])]
        for path in (*by_version, model):
            for verb, work in _WORK.items():
                handler = _answered(functools.partial(self._infer, work))
                routes.append(Route(path + verb, handler, methods=["POST"]))
            routes.append(Route(f"{path}/metadata", _answered(self._metadata), methods=["GET"]))
            routes.append(Route(path, _answered(self._status), methods=["GET"]))
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
            found = status(self._calls.models.known(name), _version_of(request))
            fields = json_format.MessageToDict(
                found, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            return _json(fields)

    async def _metadata(self, request: Request) -> Response:
        name = request.path_params["name"]
        with self._calls.counted(name, "GetModelMetadata"):
            found = metadata(self._calls.models.model(name), _version_of(request))
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
            return _json({"model_spec": spec, "metadata": {"signature_def": described}})

    async def _infer(self, work: _Work, request: Request) -> Response:
        with self._memory.of_request() as read:
            name, version = request.path_params["name"], _version_of(request)
            try:
                body = await asyncio.wait_for(self._body_of(request, read), self._read_seconds)
            except asyncio.TimeoutError:
                return _error_response(
                    408, f"the body was not sent within {self._read_seconds} s (--read-timeout)."
                )

            method = request.url.path.rpartition(":")[2].capitalize()
            done = functools.partial(work, body, self._most_bytes)
            call = asyncio.ensure_future(self._calls.predict(name, version, done, method=method))
            gone = asyncio.ensure_future(_until_gone(request))
            try:
                await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not call.done():
                    raise ClientDisconnect
                return Response(await call, media_type="application/json")
            finally:
                gone.cancel()
                call.cancel()

    async def _body_of(self, request: Request, read: Callable[[int], None]) -> bytes:
        says = f"above the limit of {self._most_bytes} bytes (--max-request-mb)."
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most_bytes:
            raise too_large(f"the body has {length} bytes, {says}")
        chunks, size = [], 0
        async for chunk in request.stream():
            size += len(chunk)
            read(len(chunk))
            if size > self._most_bytes:
                raise too_large(f"the body is {says}")
            chunks.append(chunk)
        return b"".join(chunks)


async def _until_gone(request: Request) -> None:
    """Returns when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _version_of(request: Request) -> int | str | None:
    given = request.path_params.get("version")
    if given is None:
        label: str | None = request.path_params.get("label")
        return label
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise not_found(f"version {given[:50]!r} is not a number.")
    return int(given)


def _answered(handler: Callable[[Request], Awaitable[Response]]) -> _Handler:
    """A handler that answers errors as TensorFlow Serving does."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except ServingError as error:
            return _error_response(error.http_status, error.message)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it

    return answered


async def _other_error(request: Request, error: Any) -> Response:
    what = f"{request.method} {request.url.path[:200]}"
    response = _error_response(error.status_code, f"{what}: {error.detail}")
    response.headers.update(error.headers or {})
    return response


def _error_response(code: int, message: str) -> Response:
    response = _json({"error": message})
    response.status_code = code
    if code in (408, 413, 429, 503):  # the rest of the body is not read; the server stops
        response.headers["connection"] = "close"
    return response


def _json(fields: Any) -> Response:
    return Response(json.dumps(fields, indent=1), media_type="application/json")
