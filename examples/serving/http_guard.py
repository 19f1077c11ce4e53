# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The HTTP server, with limits on connections and on clients that send their requests slowly."""

import argparse
import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from server_options import host_of
from uvicorn.protocols.http import h11_impl

_KEEP_ALIVE_SECONDS = 30
# Bytes of a connection that are parsed before others have their turn. A chunk of one byte takes as
# long as thousands of bytes without chunks; what follows a head may be chunks, too.
_PIECE, _PIECE_OF_CHUNKS = 1 << 16, 1 << 12


def _protocol(most_connections: int, slow_seconds: float) -> type[asyncio.Protocol]:
    class Guarded(h11_impl.H11Protocol):
        """A connection that is closed when its client is too slow, or others need its place.

        Its client has a time for the head of a request, and for each part of an answer.
        """

        late: asyncio.TimerHandle | None = None
        stuck: asyncio.TimerHandle | None = None
        idle_since = 0.0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.received = bytearray()
            self.idle_since = self.loop.time()
            if len(self.connections) > most_connections:
                others = [x for x in self.connections if x is not self and x.is_idle()]
                longest = min(others, key=lambda x: x.idle_since, default=self)
                longest.transport.abort()
                if longest is self:
                    return
            self._expect_a_head()

        def data_received(self, data: bytes) -> None:
            waits = bool(self.received)
            self.received += data
            if not waits:
                self._take_a_piece()

        def _take_a_piece(self) -> None:
            if self.transport.is_closing():
                self.received.clear()
                return
            size = _PIECE
            if self.is_idle() or any(name == b"transfer-encoding" for name, _ in self.headers):
                size = _PIECE_OF_CHUNKS
            piece = bytes(self.received[:size])
            del self.received[:size]
            self._expect_a_head()
            super().data_received(piece)
            if not self.is_idle():
                self._has_a_head()
            if self.received:
                self.transport.pause_reading()
                self.loop.call_soon(self._take_a_piece)
            elif not self.flow.read_paused:
                self.transport.resume_reading()

        def on_response_complete(self) -> None:
            self.idle_since = self.loop.time()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._has_a_head()
            self.resume_writing()
            super().connection_lost(exc)

        def is_idle(self) -> bool:
            """Whether it has no request that is not answered."""
            return self.cycle is None or bool(self.cycle.response_complete)

        def _expect_a_head(self) -> None:
            if self.late is None and self.is_idle():
                self.late = self.loop.call_later(slow_seconds, self.transport.abort)

        def _has_a_head(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._expect_less(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.stuck is not None:
                self.stuck.cancel()
                self.stuck = None

        def _expect_less(self, size: int) -> None:
            def check() -> None:
                left = self.transport.get_write_buffer_size()
                if left < size:
                    self._expect_less(left)
                else:
                    self.transport.abort()

            self.stuck = self.loop.call_later(slow_seconds, check)

    return Guarded


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the program."""
        yield


def url_of(options: argparse.Namespace, port: int) -> str:
    """The URL at which a port answers by HTTP."""
    scheme = "https" if options.tls_key else "http"
    return f"{scheme}://{host_of(options)}:{port}"


def _listener(options: argparse.Namespace) -> socket.socket:
    address = (options.host, options.rest_port)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # Only of sockets that name TCP does asyncio send all data at once. Otherwise a body waits, some
    # 40 ms, for the client to acknowledge the head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OSError(f"REST cannot listen on {address[0]}:{address[1]}: {error}") from error
    return listener


class HttpServer:
    """The HTTP server, on its port; raises OSError if it cannot listen there.

    With a `file` it listens on that socket file instead; a front has the port, and the limit.

    Of the options it takes `--host`, `--rest-port`, `--tls-key`, `--tls-certificate`,
    `--read-timeout`, and `--max-connections`: for one more the one is closed that has had no
    request for longest, or the new one if all have one.
    """

    def __init__(self, application: Any, options: argparse.Namespace, file: str = "") -> None:
        if file:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(file)
            tls, most_connections = (None, None), sys.maxsize
        else:
            self._socket = _listener(options)
            self.url = url_of(options, self._socket.getsockname()[1])
            tls, most_connections = (
                (options.tls_key, options.tls_certificate),
                options.max_connections,
            )
        self._server = _Server(
            uvicorn.Config(
                application,
                http=_protocol(most_connections, options.read_timeout),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                ssl_keyfile=tls[0],
                ssl_certfile=tls[1],
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
        """Takes no more connections; cancels requests left at `until`, by time.monotonic()."""
        self._server.config.timeout_graceful_shutdown = max(0.1, until - time.monotonic())
        self._server.should_exit = True
        if self._task is not None:
            await self._task
