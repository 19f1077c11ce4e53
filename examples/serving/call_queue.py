# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs calls on a bounded number of threads, and stops those whose caller is gone.

handler (event loop)                         worker threads
run(work, deadline)  -> waits in the queue -> work(manager)
deadline, cancelled  -> taken out, or ------> manager.start_cancel(): the step ends
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import enum
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
from serving_error import ServingError
from tensorflow.python.eager import cancellation

_T = TypeVar("_T")

# TensorFlow keeps the manager of the call that runs in a global of the process: with several
# threads a call would be cancelled by another's manager, or by none. Here each thread has its own.
_of_thread = threading.local()
_of_process = cancellation.context


def _manager_of_thread() -> Any:
    return getattr(_of_thread, "manager", None) or _of_process()


cancellation.context = _manager_of_thread


@contextlib.contextmanager
def cancelled_by(manager: Any) -> Iterator[None]:
    """Lets a manager cancel the steps that this thread starts meanwhile."""
    _of_thread.manager = manager
    try:
        yield
    finally:
        _of_thread.manager = None


class _State(enum.Enum):
    WAITING = 1
    RUNNING = 2
    ENDED = 3


class _Call:
    def __init__(
        self,
        work: Callable[[], Any],
        deadline: float,
        ended: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.work = work
        self.deadline = deadline
        self.ended = ended
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.state = _State.WAITING
        self.manager = cancellation.CancellationManager()

    def answer(self, result: Any, error: BaseException | None) -> None:
        """Called by a worker: gives the handler the result, if it still waits."""

        def deliver() -> None:
            if self.future.done():
                return
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(result)

        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            self.loop.call_soon_threadsafe(deliver)


def _too_late_to_run() -> ServingError:
    return ServingError(
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "the deadline was up while the call was waiting for a thread: it was not run",
    )


class CallQueue:
    """A bounded queue before a fixed number of threads.

    Args:
      threads: how many calls run at once.
      most_waiting: how many more may wait.
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._condition = threading.Condition()
        self._queue: collections.deque[_Call] = collections.deque()
        self._running: set[_Call] = set()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"call-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many calls have a thread, those among them that were cancelled and not yet ended."""
        return len(self._running)

    async def run(
        self, work: Callable[[], _T], deadline: float, ended: Callable[[], None] = lambda: None
    ) -> _T:
        """Runs a call.

        Args:
          work: the call. Steps that it runs are cancelled when the deadline is up, and when the
            coroutine is cancelled.
          deadline: by time.monotonic().
          ended: is called once when the call is no more: run to its end, or never to be run. That
            can be after this coroutine has ended, as a step takes time to be cancelled.

        Returns:
          What the work returns.

        Raises:
          ServingError: the queue is full or closed, or the deadline is up.
        """
        call = _Call(work, deadline, ended, asyncio.get_running_loop())
        try:
            self._put(call)
        except ServingError:
            ended()
            raise
        try:
            done, _ = await asyncio.wait({call.future}, timeout=deadline - time.monotonic())
            if done:
                return await call.future  # type: ignore[no-any-return]
            if call.state is _State.WAITING:
                raise _too_late_to_run()
            raise ServingError(
                grpc.StatusCode.DEADLINE_EXCEEDED,
                "the deadline was up while the call was running: its step was cancelled",
            )
        finally:
            if not call.future.done():
                call.future.cancel()
                self._stop(call)

    def close(self, patience: float) -> bool:
        """Cancels all calls and ends the threads.

        Args:
          patience: seconds to wait for steps to be cancelled.

        Returns:
          Whether all threads have ended.
        """
        with self._condition:
            self._closed = True
            left = [*self._queue, *self._running]
            self._condition.notify_all()
        for call in left:
            self._stop(call)
            call.answer(
                None, ServingError(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
            )
        until = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _put(self, call: _Call) -> None:
        with self._condition:
            if self._closed:
                raise ServingError(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
            most = len(self._threads) + self._most_waiting
            if len(self._queue) + len(self._running) >= most:
                raise ServingError(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"the server is full: {len(self._threads)} calls run (--threads) and "
                    f"{self._most_waiting} may wait (--queue). Try again later.",
                )
            self._queue.append(call)
            self._condition.notify()

    def _stop(self, call: _Call) -> None:
        with self._condition:
            dropped = call.state is _State.WAITING
            if dropped:
                call.state = _State.ENDED
                self._queue.remove(call)
        if dropped:
            call.ended()
        else:
            call.manager.start_cancel()

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._queue and not self._closed:
                    self._condition.wait()
                if not self._queue:
                    return
                call = self._queue.popleft()
                call.state = _State.RUNNING
                self._running.add(call)
            result: Any = None
            error: BaseException | None = None
            try:
                if time.monotonic() < call.deadline:
                    with cancelled_by(call.manager):
                        result = call.work()
                else:
                    error = _too_late_to_run()
            except BaseException as raised:
                error = raised
                # Or the frames that the error went through would keep the arrays of the call.
                traceback.clear_frames(raised.__traceback__)
            with self._condition:
                call.state = _State.ENDED
                self._running.discard(call)
            call.ended()
            call.answer(result, error)
            # Else this thread would keep the last answer, and the model, until its next call.
            del call, result, error
