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

"""The HTTP server, with limits on connections and on clients that send their requests slowly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http import h11_impl

_KEEP_ALIVE_SECONDS = 30


def _protocol(most_connections: int, head_seconds: float) -> type[asyncio.Protocol]:
    class Guarded(h11_impl.H11Protocol):
        """A connection that is closed when the head of a request takes too long to come."""

        late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most_connections:
                transport.abort()
                return
            self._expect_a_head()

        def data_received(self, data: bytes) -> None:
            self._expect_a_head()
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._has_a_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._has_a_head()
            super().connection_lost(exc)

        def _expect_a_head(self) -> None:
            idle = self.cycle is None or self.cycle.response_complete
            if self.late is None and idle:
                self.late = self.loop.call_later(head_seconds, self.transport.abort)

        def _has_a_head(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

    return Guarded


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the program."""
        yield


class HttpServer:
    """The HTTP server, on its port.

    Args:
      application: answers the requests.
      host: to listen on.
      port: to listen on; 0 for any.
      most_connections: that are open at once; more are closed at once.
      head_seconds: the longest that a client may take to send the head of a request.
      key: file with the key for TLS; None for none.
      certificate: file with the certificate for TLS.

    Raises:
      OSError: it cannot listen on the port.
    """

    def __init__(
        self,
        application: Any,
        host: str,
        port: int,
        most_connections: int,
        head_seconds: float,
        key: str | None,
        certificate: str | None,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Only of sockets that name TCP does asyncio send all data at once. Otherwise a body waits,
        # some 40 ms, for the client to acknowledge the head.
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OSError(f"REST cannot listen on {host}:{port}: {error}") from error
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                application,
                http=_protocol(most_connections, head_seconds),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                ssl_keyfile=key,
                ssl_certfile=certificate,
            )
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to answer."""
        self._task = asyncio.ensure_future(self._server.serve([self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise OSError("REST has ended before it began to answer")
            await asyncio.sleep(0.01)

    async def ended(self) -> None:
        """Returns when the server accepts no more requests, whether told to or failed."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self, until: float) -> None:
        """Takes no more connections, and lets the requests in flight end.

        Args:
          until: when those that are left are cancelled, by time.monotonic().
        """
        self._server.config.timeout_graceful_shutdown = max(0.1, until - time.monotonic())
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def check_certificate(key: str, certificate: str) -> None:
    """Checks that a key and a certificate belong together.

    Raises:
      OSError: a file cannot be read, or is not one.
    """
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
