# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Answers gRPC requests that are no messages of the API, which gRPC would log as its own fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError


class RefuseBrokenMessages(grpc.aio.ServerInterceptor):
    """Answers INVALID_ARGUMENT to a request whose bytes are not a message.

    Args:
      refused: is called with the name of the method, to count it.
    """

    def __init__(self, refused: Callable[[str], None]) -> None:
        self._refused = refused

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wraps the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        method = handler_call_details.method.rpartition("/")[2]

        def parse(data: bytes) -> Any:
            try:
                return handler.request_deserializer(data)
            except DecodeError as error:
                return error

        async def answer(request: Any, context: Any) -> Any:
            if isinstance(request, DecodeError):
                self._refused(method)
                return await context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT, f"the request of {method} is not a message."
                )
            return await handler.unary_unary(request, context)

        return handler._replace(unary_unary=answer, request_deserializer=parse)
