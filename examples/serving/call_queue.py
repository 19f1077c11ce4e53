# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs calls on a bounded number of threads, and stops those whose caller is gone.

handler (event loop)                         worker threads
run(work, deadline)  -> waits in the queue -> work(), under a cancellation manager
deadline, cancelled  -> taken out, or ------> manager.start_cancel(): the step ends
"""

import asyncio
import concurrent.futures
import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from serving_error import ServingError
from tensorflow.python.eager import cancellation

_T = TypeVar("_T")

# TensorFlow keeps the manager of the call that runs in a global of the process: with several
# threads a call would be cancelled by another's manager, or by none. Here each thread has its own.
_of_thread = threading.local()
_of_process = cancellation.context
cancellation.context = lambda: getattr(_of_thread, "manager", None) or _of_process()


def _deadline_is_up(when: str) -> ServingError:
    return ServingError(grpc.StatusCode.DEADLINE_EXCEEDED, f"the deadline was up while {when}")


def _shutting_down() -> ServingError:
    return ServingError(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")


def _wake(waits: asyncio.Future[None]) -> None:
    if not waits.done():
        waits.set_result(None)


class CallQueue:
    """A bounded queue before a fixed number of threads; for one event loop."""

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._threads = threads
        self._most_waiting = most_waiting
        self._executor = concurrent.futures.ThreadPoolExecutor(threads, "call")
        self._calls: dict[Any, asyncio.Future[None]] = {}  # by manager: done when `run` is to go on
        self._running: set[Any] = set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return len(self._calls) - len(self._running)

    @property
    def running(self) -> int:
        """How many calls have a thread, cancelled calls that have not yet ended included."""
        return len(self._running)

    async def run(
        self, work: Callable[[], _T], deadline: float, ended: Callable[[], None] = lambda: None
    ) -> _T:
        """Runs a call; ServingError if the queue is full or closed, or the deadline is up.

        Args:
          work: the call. Steps that it runs are cancelled when the deadline is up, and when the
            coroutine is cancelled.
          deadline: by time.monotonic().
          ended: is called once when the call is no more: run to its end, or never to be run. That
            can be after this coroutine has ended, as a step takes time to be cancelled.
        """
        try:
            self._check_for_room()
        except ServingError:
            ended()
            raise
        loop = asyncio.get_running_loop()
        manager = cancellation.CancellationManager()
        wake = self._calls[manager] = loop.create_future()

        def end(_: Any) -> None:
            del self._calls[manager]
            ended()
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
                loop.call_soon_threadsafe(_wake, wake)

        # The executor keeps what it is given until a thread is free, also of a call that is
        # cancelled. The work has the request: it is taken out before.
        held = [work]
        future = self._executor.submit(self._work, held, manager, deadline)
        future.add_done_callback(end)
        try:
            await asyncio.wait({wake}, timeout=deadline - time.monotonic())
            if future.done():
                return future.result()
            if self._closed:
                raise _shutting_down()
            if future.running():
                raise _deadline_is_up("the call was running: its step was cancelled")
            raise _deadline_is_up("the call was waiting for a thread: it was not run")
        finally:
            if future.cancel():
                held.clear()
            elif not future.done():
                manager.start_cancel()

    async def close(self, patience: float) -> bool:
        """Cancels all calls; returns whether their steps have ended within `patience` seconds."""
        self._closed = True
        for wake in list(self._calls.values()):
            _wake(wake)
        until = time.monotonic() + patience
        while self._calls and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return not self._calls

    def _check_for_room(self) -> None:
        if self._closed:
            raise _shutting_down()
        if len(self._calls) >= self._threads + self._most_waiting:
            raise ServingError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"the server is full: {self._threads} calls run (--threads) and "
                f"{self._most_waiting} may wait (--queue). Try again later.",
            )

    def _work(self, held: list[Callable[[], _T]], manager: Any, deadline: float) -> _T:
        self._running.add(manager)
        _of_thread.manager = manager
        try:
            if time.monotonic() >= deadline:
                raise _deadline_is_up("the call was waiting for a thread: it was not run")
            return held.pop()()
        except BaseException as error:
            # Or the frames that the error went through would keep the arrays of the call.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            _of_thread.manager = None
            self._running.discard(manager)
