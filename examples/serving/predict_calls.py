# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""A call from its arrival to its answer, the same for gRPC and REST."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import grpc
from call_queue import CallQueue
from loaded_model import Arrays, LoadedModel, Signature
from model_config import MOST_VERSION, LogConfig, ModelConfig
from model_versions import Version
from models import Models
from request_log import Entry, Messages, RequestLog, size_of
from server_metrics import ServerMetrics
from serving_error import ServingError, error_of, not_found

if TYPE_CHECKING:  # its packages are optional
    from tracing import CallSpan, Traces

_T = TypeVar("_T")
# gRPC cancels a call when its deadline is up by gRPC's clock, which can be a moment before ours.
_CLOCKS_DIFFER = 0.1
_DRAIN_SECONDS = 0.5  # at least, for clients to hear that the server stops


class Origin(NamedTuple):
    """How a call has come.

    `sampled` says whether a front has drawn the call (Front.sample), None that no front has drawn.
    `headers` are the client's, and the span of the call has the `name` and the `attributes`.
    """

    name: str
    attributes: Mapping[str, str]
    headers: Mapping[str, str]
    sampled: bool | None = None


_SAMPLED = "x-sampled"
_NOWHERE = Origin("", {}, {})


class Call:
    """A call that runs: the version that it holds, and what its log and its span tell of it."""

    def __init__(
        self, model: str, version: Version, log: LogConfig | None, span: "CallSpan | None"
    ) -> None:
        self.entry: Entry | None = None
        self.computed = False  # whether a function of the version was called
        self._model = model
        self._version = version
        self._log = log
        self._span = span
        self._signature = ""  # the first one that was called
        self._bytes = 0

    @property
    def loaded(self) -> LoadedModel:
        """The model that the version has loaded."""
        loaded: LoadedModel = self._version.loaded
        return loaded

    @property
    def number(self) -> int:
        """The version's number."""
        number: int = self._version.number
        return number

    def run(self, work: Callable[["Call"], _T]) -> _T:
        """Makes the answer by `work`, on a thread of the call's."""
        if self._span is not None:
            self._span.runs()
        return work(self)

    def step(self, signature: Signature, arrays: Arrays) -> Arrays:
        """Calls a signature of the model; ServingError if the arrays do not fit."""
        self._signature = self._signature or signature.name
        with contextlib.nullcontext() if self._span is None else self._span.step(signature.name):
            signature.check(arrays)
            self.computed = True
            results = signature(arrays)
        if self._log is not None:
            self._bytes += size_of(arrays) + size_of(results)
        return results

    def log(self, kind: str, messages: Messages) -> None:
        """Says what is logged of the call if it is sampled: a field of PredictionLog, its messages.

        The messages must not hold the model, which may be dropped before they are made.
        """
        if self._log is not None:
            of_model = (self._model, self.number, self._signature)
            self.entry = Entry(*of_model, self._log, kind, self._bytes, messages, time.time())


class Calls:
    """Answers calls of models, none of which takes longer than `most_seconds`.

    Those that are sampled are given to `request_log` and `traces`, if there are such.
    """

    def __init__(
        self,
        models: Models,
        queue: CallQueue,
        metrics: ServerMetrics,
        most_seconds: float,
        request_log: RequestLog | None = None,
        traces: "Traces | None" = None,
    ) -> None:
        self.models = models
        self.metrics = metrics
        self.traces = traces
        self._request_log = request_log
        self._queue = queue
        self._most_seconds = most_seconds
        self._draining = False

    async def drain(self, until: float) -> None:
        """Refuses new calls, and waits for those in flight, `until` a time by time.monotonic().

        A server that is closed at once would leave it to chance what clients are told of calls that
        are on their way: with UNAVAILABLE they know that another server may be asked.
        """
        self._draining = True
        await asyncio.sleep(min(_DRAIN_SECONDS, max(0.0, until - time.monotonic())))
        while self.metrics.in_flight and time.monotonic() < until:
            await asyncio.sleep(0.02)

    def refuse_if_draining(self) -> None:
        """ServingError when the server is about to end."""
        if self._draining:
            raise ServingError(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")

    @contextlib.contextmanager
    def counted(self, model: str, method: str, deadline: float = float("inf")) -> Iterator[None]:
        """Counts a call in the metrics; turns any exception of the call into a ServingError.

        The model's name is as the client gave it. A call that is cancelled after its deadline, by
        time.monotonic(), had no more time.
        """
        began, status = time.monotonic(), "OK"
        known = model if model in self.models else ""
        self.metrics.python_in_flight += 1
        try:
            yield
        except asyncio.CancelledError:
            up = time.monotonic() >= deadline - _CLOCKS_DIFFER
            status = "DEADLINE_EXCEEDED" if up else "CANCELLED"
            raise
        except Exception as error:
            answer = error_of(error)
            status = answer.code.name
            try:
                raise answer from error
            finally:
                # Its traceback has this frame: together they, and the arrays of the call, would
                # stay until garbage is collected.
                del answer
        finally:
            self.metrics.python_in_flight -= 1
            self.metrics.answered(known, method, status, time.monotonic() - began)

    def grpc_origin(self, context: Any, service: str, method: str) -> Origin:
        """How a call has come by gRPC."""
        if self.traces is None and self.metrics.front is None:
            return _NOWHERE
        headers = dict(context.invocation_metadata())
        attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}
        return self.origin(f"{service}/{method}", attributes, headers)

    def origin(
        self, name: str, attributes: Mapping[str, str], headers: Mapping[str, str]
    ) -> Origin:
        """How a call has come, with these headers."""
        # A front takes the header from what clients send; without a front anybody may send it.
        drawn = headers.get(_SAMPLED) if self.metrics.front is not None else None
        return Origin(name, attributes, headers, None if drawn is None else drawn == "1")

    def share(self, config: ModelConfig | None) -> float:
        """The share of a model's calls that Python has to see: the larger of two rates."""
        of_log = config.log.rate if config is not None and config.log is not None else 0.0
        return max(of_log, self.traces.rate if self.traces is not None else 0.0)

    async def predict(
        self,
        name: str,
        version: int | str | None,
        work: Callable[[Call], _T],
        seconds: float | None = None,
        method: str = "Predict",
        origin: Origin = _NOWHERE,
    ) -> _T:
        """Makes the answer by `work` with a version (Model.acquire), within `seconds`."""
        seconds = self._most_seconds if seconds is None else min(seconds, self._most_seconds)
        deadline = time.monotonic() + seconds
        config = self.models.config(name)
        # Of the calls that a front has drawn by the larger of two rates, these are the same shares
        # of all calls.
        drawn_of = self.share(config) if origin.sampled else 1.0
        draw = 1.0 if origin.sampled is False else random.random() * drawn_of
        log = config.log if config is not None else None
        if log is not None and draw >= log.rate:
            log = None
        span = None
        if self.traces is not None:
            span = self.traces.begin(origin, draw, name)
        with span or contextlib.nullcontext(), self.counted(name, method, deadline):
            self.refuse_if_draining()
            model = self.models.model(name)
            held = model.acquire(version)
            call = Call(name, held, log, span)
            if span is not None:
                span.waits(held.number)
            done: _T = await self._queue.run(
                lambda: call.run(work), deadline, lambda: model.release(held, call.computed)
            )
            if self._request_log is not None and call.entry is not None:
                self._request_log.offer(call.entry)
            return done


def version_number(text: str) -> int | None:
    """The version that a text names, None for none; ServingError if it is not a number."""
    if not text:
        return None
    digits = text.lstrip("0") or "0"
    is_number = text.isascii() and text.isdigit() and len(digits) < 20
    if not is_number or int(digits) > MOST_VERSION:
        raise not_found(f"version {text[:50]!r} is not a number. It may be 0 to {MOST_VERSION}.")
    return int(digits)
