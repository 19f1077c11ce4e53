# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads that call something again and again, and how long each call took."""

import concurrent.futures
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np


@dataclasses.dataclass(frozen=True)
class Load:
    """What client threads have measured."""

    seconds: float  # how long they ran
    cpu_seconds: float  # what the process used of its CPUs meanwhile
    milliseconds: np.ndarray  # of each call

    @property
    def calls(self) -> int:
        return len(self.milliseconds)

    @property
    def calls_per_second(self) -> float:
        return self.calls / self.seconds

    @property
    def percentiles(self) -> tuple[float, float, float]:
        """The median, the 99th percentile and the longest call, in milliseconds."""
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        return float(p50), float(p99), float(self.milliseconds.max())


def run_clients(
    call: Callable[[int, int], None],
    threads: int,
    until: float | threading.Event,
    around: Callable[[int], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    executors: Sequence[concurrent.futures.Executor] = (),
) -> Load:
    """Runs client threads for a while; raises what a call raised, once all have ended.

    Args:
        call: what to time; it is given the thread's number and how often it has called before.
        threads: how many.
        until: after how many seconds none begins another call, or what is set then.
        around: makes the context of the thread of a number.
        executors: of one thread each, to be the client threads; none for new threads.
    """
    times: list[list[float]] = [[] for _ in range(threads)]
    ended = threading.Event()

    def client(number: int) -> None:
        mine = times[number]
        try:
            with around(number):
                while not ended.is_set():
                    start = time.perf_counter()
                    call(number, len(mine))
                    mine.append(time.perf_counter() - start)
        finally:
            ended.set()  # a call that fails ends all clients

    with contextlib.ExitStack() as stack:
        if not executors:
            executors = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(threads)]
        start, cpu = time.perf_counter(), time.process_time()
        clients = [executors[i].submit(client, i) for i in range(threads)]
        if isinstance(until, threading.Event):
            while not ended.is_set() and not until.wait(0.01):
                pass
        else:
            ended.wait(until)
        ended.set()
        concurrent.futures.wait(clients)
        for each in clients:
            each.result()
    return Load(time.perf_counter() - start, time.process_time() - cpu, np.concatenate(times) * 1e3)


def run_checked(
    call: Callable[[np.ndarray], np.ndarray],
    inputs: Sequence[np.ndarray],
    expected: Sequence[bytes],
    threads: int,
    seconds: float,
    around: Callable[[int], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> tuple[Load, int]:
    """Runs client threads that compare each result, bit by bit; also returns how many were wrong.

    Each thread takes the inputs in turn, and begins with another one. `expected` has the bytes of
    the result of each input; the rest is as for `run_clients`.
    """
    wrong = [0] * threads

    def client(number: int, count: int) -> None:
        i = (number + count) % len(inputs)
        wrong[number] += not _has_bits(call(inputs[i]), expected[i])

    return run_clients(client, threads, seconds, around), sum(wrong)


def _has_bits(result: np.ndarray, expected: bytes) -> bool:
    # Bytes of small arrays are compared in 1 us. NumPy releases the GIL for large ones.
    if result.nbytes < 1 << 16:
        same: bool = result.tobytes() == expected
    else:
        bits = np.ascontiguousarray(result).view(np.uint8).ravel()
        same = np.array_equal(bits, np.frombuffer(expected, np.uint8))
    return same
