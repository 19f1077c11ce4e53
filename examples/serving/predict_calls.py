# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""A call from its arrival to its answer, the same for gRPC and REST."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import grpc
from call_queue import CallQueue
from model_versions import Version
from models import Models
from server_metrics import ServerMetrics
from serving_error import ServingError, error_of, not_found

_T = TypeVar("_T")
# gRPC cancels a call when its deadline is up by gRPC's clock, which can be a moment before ours.
_CLOCKS_DIFFER = 0.1
_DRAIN_SECONDS = 0.5  # at least, for clients to hear that the server stops


class Calls:
    """Answers calls of models, none of which takes longer than `most_seconds`."""

    def __init__(
        self, models: Models, queue: CallQueue, metrics: ServerMetrics, most_seconds: float
    ) -> None:
        self.models = models
        self.metrics = metrics
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

    async def predict(
        self,
        name: str,
        version: int | str | None,
        work: Callable[[Version], _T],
        seconds: float | None = None,
        method: str = "Predict",
    ) -> _T:
        """Makes the answer by `work` with a version (Model.acquire), within `seconds`."""
        seconds = self._most_seconds if seconds is None else min(seconds, self._most_seconds)
        deadline = time.monotonic() + seconds
        with self.counted(name, method, deadline):
            self.refuse_if_draining()
            model = self.models.model(name)
            held = model.acquire(version)
            done: _T = await self._queue.run(
                lambda: work(held), deadline, lambda: model.release(held)
            )
            return done


def version_number(text: str) -> int | None:
    """The version that a text names, None for none; ServingError if it is not a number."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise not_found(f"version {text[:50]!r} is not a number.")
    return int(text)
