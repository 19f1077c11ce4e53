# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""A gRPC server that no path of a request can end.

The loop in which grpc.aio accepts calls decodes the path of each call of a method that is not
registered. A path that is not UTF-8 ends that loop, and with it the port. Here all methods are
registered, so that gRPC's core matches their paths byte for byte. The loop gets each other call
under one fixed name that no service has, and never sees a path that a client made up.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
from grpc._cython import cygrpc

# No client can guess it: gRPC's core would keep a call of it waiting.
_UNKNOWN = f"/unknown-{secrets.token_hex(16)}"


_PLACES = ("_make_request_call_future", "_request_call")
_PLAIN: Any = getattr(cygrpc, "AioServer", object)


class _Server(_PLAIN):
    """Accepts calls of methods that are not registered under the name _UNKNOWN."""

    unknown: Callable[[], None] = staticmethod(lambda: None)
    calls_unknown = 0
    renames = False
    decodes_no_path = False

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Future[Any]:
        """The next call: of a registered method, or (None) of any other."""
        if method is None:
            self.decodes_no_path = True
            return asyncio.get_running_loop().create_future()  # never done
        if method == _UNKNOWN.encode():
            self.renames = True
            return asyncio.ensure_future(self._next_unknown())
        return super()._make_request_call_future(method)  # type: ignore[no-any-return]

    async def _next_unknown(self) -> Any:
        state = await self._request_call()
        self.calls_unknown += 1
        if self.calls_unknown & (self.calls_unknown - 1) == 0:  # few lines for many calls
            logging.warning(
                "gRPC: refused a call whose path is that of no method, perhaps not UTF-8 "
                "(%d so far)",
                self.calls_unknown,
            )
        self.unknown()
        return state


def _for_the_log(record: logging.LogRecord) -> bool:
    """Keeps clients from filling the log with what gRPC says of them, which is no fault of ours.

    gRPC logs each header that is not UTF-8, and each answer whose client is gone, if the answer is
    sent before gRPC has told the event loop so: as when a deadline ends here and there at once.
    """
    text = str(record.msg)
    if text.startswith("Invalid encoding"):
        record.exc_info = None
    return not text.startswith("ExecuteBatchError raised in core")


def _unfit() -> OSError:
    return OSError(
        f"grpcio {grpc.__version__} does not accept calls by {' and '.join(_PLACES)} of AioServer, "
        "with which this server keeps a path that is not UTF-8 from ending it. Install the grpcio "
        "that examples/serving/requirements.txt names."
    )


def path_proof_server(unknown: Callable[[], None], **options: Any) -> grpc.aio.Server:
    """A server of grpc.aio that no path of a request can end, for `add_service` and `start`.

    `unknown` is called for each call of a method that is not there; the options are those of
    `grpc.aio.server`. Raises OSError if the installed grpcio accepts calls in another way.
    """
    if not all(hasattr(_PLAIN, place) for place in _PLACES):
        raise _unfit()
    cygrpc.AioServer = _Server
    try:
        server = grpc.aio.server(**options)
    finally:
        cygrpc.AioServer = _PLAIN
    core = getattr(server, "_server", None)
    if not isinstance(core, _Server):
        raise _unfit()
    core.unknown = unknown
    core.add_registered_method_handlers({_UNKNOWN: None})
    logging.getLogger("grpc._cython.cygrpc").addFilter(_for_the_log)
    return server


async def start(server: grpc.aio.Server) -> None:
    """Starts a server of `path_proof_server`; OSError as there."""
    await server.start()
    core: _Server = server._server
    if not core.renames or not core.decodes_no_path:
        await server.stop(0)
        raise _unfit()


class _Details(NamedTuple):
    method: str
    invocation_metadata: tuple[Any, ...] = ()


class _Handlers(list[Any]):
    """Stands for a server in the generated functions that add a service to one."""

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        self.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Older generated code does not call it, so that it is not relied on."""


def add_service(server: grpc.aio.Server, add: Callable[[Any, Any], None], servicer: Any) -> None:
    """Adds a service by its generated function, so that its methods are registered."""
    handlers = _Handlers()
    add(servicer, handlers)
    for handler in handlers:
        service = handler.service_name()
        found = {name: handler.service(_Details(f"/{service}/{name}")) for name in dir(servicer)}
        server.add_registered_method_handlers(service, {n: m for n, m in found.items() if m})
