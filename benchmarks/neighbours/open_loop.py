# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls that come at random times, whether or not earlier ones have ended.

Threads take the arrivals in turn: one sleeps until its arrival is due, calls, and takes the next. A
latency counts from when the arrival was due, also if no thread was free then: what waits because
the server is slow is what a client would have seen. There is no thread that hands calls on: in
Python it would cost each call another thread's wake-up and turn for the GIL.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LEAD_SECONDS = 0.05  # for the threads to start


@dataclasses.dataclass
class OpenLoop:
    """What happened to the arrivals."""

    # From when it was due until its result; of those that were never begun, until the end.
    milliseconds: np.ndarray
    # How late a call of a thread that slept until it was due began: the timer and the GIL, which
    # are the measurement's own.
    late_ms: np.ndarray
    unserved: int  # were not begun
    errors: Sequence[str]  # of calls that failed, which have no latency

    def figures(self) -> dict[str, float]:
        """Latency and lateness, and how many calls there were; of `no_thread`, none was free."""
        names = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
        found = np.percentile(self.milliseconds, [50, 99, 99.9, 100]) if self.calls else [0.0] * 4
        figures = {name: float(value) for name, value in zip(names, found, strict=True)}
        late = float(np.percentile(self.late_ms, 99)) if len(self.late_ms) else 0.0
        no_thread = self.calls + len(self.errors) - len(self.late_ms)
        return {
            "calls": self.calls,
            **figures,
            "late_p99_ms": late,
            "no_thread": no_thread,
            "unserved": self.unserved,
            "errors": len(self.errors),
        }

    @property
    def calls(self) -> int:
        return len(self.milliseconds)


def poisson(rate: float, seconds: float, seed: int) -> np.ndarray:
    """Draws when calls are due, in seconds from the start: `rate` a second, one at least."""
    random = np.random.default_rng(seed)
    due = np.cumsum(random.exponential(1 / rate, int(rate * seconds * 2) + 20))
    return due[: max(1, int(np.searchsorted(due, seconds)))]


def run_open_loop(
    call: Callable[[int, int], Any],
    due: np.ndarray,
    threads: int,
    most_seconds: float,
    done: Callable[[int, int, Any], None] = lambda thread, number, result: None,
    around: Callable[[int], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> OpenLoop:
    """Makes the calls, and before them one of each thread that does not count.

    Args:
        call: what to time; it is given the thread's number and the arrival's.
        due: when each is to come, in seconds from the start.
        threads: how many; more than calls that run at once.
        most_seconds: so long after the start none is begun.
        done: is given thread, arrival and result after each call; its time does not count.
        around: makes the context of the thread of a number.
    """
    count = len(due)
    ended, late = [np.nan] * count, [np.nan] * count
    errors: list[str] = []
    arrivals = iter(range(count))
    ready = threading.Barrier(threads + 1, timeout=60)
    start = 0.0

    def client(thread: int) -> None:
        with around(thread):
            with contextlib.suppress(Exception):
                call(thread, 0)  # the first one of a thread takes longer
            ready.wait()  # for all threads
            ready.wait()  # for the start
            for i in arrivals:  # which the threads share
                at = start + due_at[i]
                wait = at - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                    late[i] = time.perf_counter() - at
                elif -wait > most_seconds - due_at[i]:
                    return
                try:
                    result = call(thread, i)
                except Exception as error:
                    errors.append(f"{type(error).__name__}: {error}")
                    ended[i] = -1.0
                    continue
                ended[i] = time.perf_counter() - at
                done(thread, i, result)

    due_at = due.tolist()
    clients = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(threads)]
    for each in clients:
        each.start()
    ready.wait()
    start = time.perf_counter() + LEAD_SECONDS
    ready.wait()
    for each in clients:
        each.join()
    took = np.array(ended)
    unserved = np.isnan(took)
    took[unserved] = time.perf_counter() - start - due[unserved]
    slept = np.array(late)
    return OpenLoop(
        1e3 * took[took >= 0], 1e3 * slept[~np.isnan(slept)], int(unserved.sum()), errors
    )
