# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs tenants of one setting, and measures what it is told to.

    python -m neighbours.worker SPEC     # in benchmarks/; started by command.py

SPEC is JSON, the arguments of `Worker`. How it is told, and answers: bench/worker.py.
"""

import concurrent.futures
import contextlib
import ctypes
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from bench.worker import answer_commands
from client_threads import Load, run_clients

from .open_loop import poisson, run_open_loop
from .settings import SETTINGS
from .tenants import NEIGHBOURS, Hurry, Neighbour, make_hurry

# Of the closed loop that measures the capacity, and of the open loop: more than run at once.
CLIENTS, THREADS = 16, 64
_WARM_SECONDS, _MOST_WARM_SECONDS = 0.3, 8.0
_PR_SET_TIMERSLACK = 29

_Around = Callable[[int], contextlib.AbstractContextManager[object]]


class Worker:
    """The commands."""

    def __init__(self, setting: str, size: str, hurry: bool, neighbours: Sequence[str]) -> None:
        self._setting = SETTINGS[setting]
        self._size = size
        self._names = neighbours
        self._is_hurry = hurry
        self._hurry: Hurry
        self._wrong: list[int] = []  # inputs, to which threads add
        self._neighbours: dict[str, Neighbour] = {}
        self._running: concurrent.futures.Future[Load] | None = None
        # A thread that sleeps wakes at once, rather than within 50 microseconds; threads that are
        # made later inherit it.
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)

    def make(self) -> dict[str, Any]:
        """Makes the tenants."""
        serving = self._setting.serving
        with tf.device("/GPU:0"):  # a real GPU does not need it
            if self._is_hurry:
                self._hurry = make_hurry(serving)
            for name in self._names:
                self._neighbours[name] = NEIGHBOURS[name](self._size, serving)
        return {}

    def warm(self) -> dict[str, Any]:
        """Has the tenants call until nothing is recorded any more."""
        if self._is_hurry:
            self._warm(self._call, CLIENTS, self._around_hurry)
        for each in self._neighbours.values():
            self._warm(each.call, each.clients, self._around_neighbour)
        # Collections of garbage, which hold the GIL, then leave out what was made so far.
        gc.collect()
        gc.freeze()
        return {}

    def capacity(self, seconds: float) -> dict[str, Any]:
        """Has clients call the tenant in a hurry without a pause."""
        self._wrong.clear()

        def call(thread: int, count: int) -> None:
            i = thread + count
            self._check(thread, i, self._call(thread, i))

        load = run_clients(call, CLIENTS, seconds, self._around_hurry)
        return {"per_second": load.calls_per_second, "wrong": len(self._wrong)}

    def load(self, rate: float, seconds: float) -> dict[str, Any]:
        """Has the tenant in a hurry called at random times, so often a second."""
        self._wrong.clear()
        before = _steps()
        done = run_open_loop(
            self._call,
            poisson(rate, seconds, seed=round(rate)),
            THREADS,
            1.5 * seconds,
            self._check,
            self._around_hurry,
        )
        started, replayed = (now - then for now, then in zip(_steps(), before, strict=True))
        return {
            **done.figures(),
            "wrong": len(self._wrong),
            "failure": done.errors[0] if done.errors else "",
            "replayed": replayed / max(1, started),
        }

    def begin(self, neighbour: str) -> dict[str, Any]:
        """Has a neighbour call without a pause from now on."""
        tenant = self._neighbours[neighbour]
        self._counts = [0] * tenant.clients
        self._end = threading.Event()

        def call(client: int, count: int) -> None:
            tenant.call(client, count)
            self._counts[client] += 1

        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._running = self._thread.submit(
            run_clients, call, tenant.clients, self._end, self._around_neighbour
        )
        return {}

    def count(self) -> dict[str, Any]:
        """How often the neighbour has called, the time, and steps of this process so far."""
        if self._running is not None and self._running.done():
            self._running.result()  # raises what a call raised
        started, replayed = _steps()
        return {
            "calls": sum(self._counts),
            "at": time.perf_counter(),
            "started": started,
            "replayed": replayed,
        }

    def end(self) -> dict[str, Any]:
        """Ends the neighbour's calls."""
        self._end.set()
        assert self._running is not None
        self._running.result()
        return {}

    def _call(self, _: int, i: int) -> np.ndarray:
        return self._hurry.call(*self._hurry.inputs[i % len(self._hurry.inputs)])

    def _check(self, _: int, i: int, result: np.ndarray) -> None:
        if result.tobytes() != self._hurry.expected[i % len(self._hurry.inputs)]:
            self._wrong.append(i)

    def _warm(self, call: Callable[[int, int], Any], clients: int, around: _Around) -> None:
        end = time.monotonic() + _MOST_WARM_SECONDS
        made, seconds = -1, _WARM_SECONDS
        while time.monotonic() < end:
            before = sum(group.recordings_made for group in tf.cuda.stream_stats())
            load = run_clients(call, clients, seconds, around)
            if before == made and load.milliseconds.max() < 500 * seconds:
                break
            made = before

    def _around_hurry(self, thread: int) -> contextlib.AbstractContextManager[object]:
        return _around(self._setting.hurry_groups, thread)

    def _around_neighbour(self, thread: int) -> contextlib.AbstractContextManager[object]:
        return _around(self._setting.neighbour_groups, thread)


@contextlib.contextmanager
def _around(groups: Sequence[int], thread: int) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(tf.device("/GPU:0"))
        if groups:
            stack.enter_context(tf.cuda.stream_group(groups[thread % len(groups)]))
        yield


def _steps() -> tuple[int, int]:
    """How many steps were started, and how many of them replayed, in this process."""
    groups = tf.cuda.stream_stats()
    return sum(g.steps_started for g in groups), sum(g.steps_replayed for g in groups)


if __name__ == "__main__":
    answer_commands(lambda: Worker(**json.loads(sys.argv[1])))
