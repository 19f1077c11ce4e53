# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""An HTTP request of a model from its body to its answer, the same for both REST APIs."""

import argparse
import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from predict_calls import Call, Calls, Origin, version_number
from request_memory import RequestMemory
from serving_error import ServingError, too_large
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

_Handler = Callable[[Request], Awaitable[Response]]
Work = Callable[[bytes, int, Call], Response]


class RestCalls:
    """Answers requests that have a body, within `memory` and the options' limits."""

    def __init__(self, calls: Calls, memory: RequestMemory, options: argparse.Namespace) -> None:
        self.calls = calls
        self._memory = memory
        self._most_bytes = options.most_bytes
        self._read_seconds = options.read_timeout

    async def infer(self, request: Request, method: str, work: Work) -> Response:
        """Answers by `work` with the body, the most bytes of its values, and the call."""
        with self._memory.of_request() as read:
            name, version = request.path_params["name"], version_of(request)
            try:
                body = await asyncio.wait_for(self._body_of(request, read), self._read_seconds)
            except asyncio.TimeoutError:
                return error_response(
                    408, f"the body was not sent within {self._read_seconds} s (--read-timeout)."
                )

            done = functools.partial(work, body, self._most_bytes)
            call = asyncio.ensure_future(
                self.calls.predict(name, version, done, method=method, origin=self._origin(request))
            )
            gone = asyncio.ensure_future(_until_gone(request))
            try:
                await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not call.done():
                    raise ClientDisconnect
                return await call
            finally:
                gone.cancel()
                call.cancel()

    def _origin(self, request: Request) -> Origin:
        route = request.scope["route"].path
        attributes = {
            "http.request.method": request.method,
            "http.route": route,
            "url.path": request.url.path,
        }
        return self.calls.origin(f"{request.method} {route}", attributes, request.headers)

    async def _body_of(self, request: Request, read: Callable[[int], None]) -> bytes:
        coding = request.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise ServingError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"the body has Content-Encoding {coding[:50]!r}; send it without compression.",
                http_status=415,
            )
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


def version_of(request: Request) -> int | str | None:
    """The version that a path names, or its label; None for the newest."""
    label: str | None = request.path_params.get("label")
    return label or version_number(request.path_params.get("version", ""))


def answered(handler: _Handler) -> _Handler:
    """A handler that answers errors as the APIs do, with an object that has `error`."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ServingError as error:
            return error_response(error.http_status, error.message)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it

    return answer


def error_response(code: int, message: str) -> Response:
    """The answer that tells an error."""
    response = json_response({"error": message})
    response.status_code = code
    if code in (408, 413, 415, 429, 503):  # the rest of the body is not read; the server stops
        response.headers["connection"] = "close"
    return response


def json_response(fields: Any) -> Response:
    """The answer that is JSON."""
    return Response(json.dumps(fields, indent=1), media_type="application/json")
