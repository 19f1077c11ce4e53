# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one workload with one program in a process of its own, and measures what it is told to.

    python -m bench.worker SPEC     # in benchmarks/; started by fleet.py

SPEC is JSON, the fields of `program.Spec`. Each line of standard input is a command, a JSON object,
of which `do` is the name of a method of `Worker` and the rest its arguments; each is answered by a
line of JSON, `{"error": ...}` if it failed. All else that is printed goes to standard error. Idle
between commands, so that many workers can take turns.
"""

import functools
import importlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from client_threads import run_clients

from .program import Program, Spec
from .workloads import INPUTS, WORKLOADS

# The model is warm when, for so long, no query took more than so many times the median one.
WARM_SECONDS, WARM_RATIO = 0.25, 20.0
# Queries of a client that warm it up at least: a step is recorded when it has come three times.
WARM_QUERIES = 4 * INPUTS
# Characters of an error's text that are kept.
MOST_OF_ERROR = 300
# Different right results of one input that are remembered; beyond them each is compared anew.
REMEMBERED = 64


class Judge:
    """Compares results with the expected ones.

    Most results have the bits of one that was compared before, so that a comparison takes a
    microsecond of Python's lock: clients are measured, not this. The tolerance is a part of the
    largest expected number; with 0 only the same bits are right.
    """

    def __init__(self, expected: Sequence[np.ndarray], tolerance: float) -> None:
        self._expected = expected
        self._allowed = [tolerance * float(np.abs(e).max()) if tolerance else 0.0 for e in expected]
        self._right = [{e.tobytes()} for e in expected]

    def is_right(self, i: int, result: np.ndarray) -> bool:
        data = result.tobytes()
        if result.shape != self._expected[i].shape:
            return False
        if data in self._right[i] or not self._allowed[i]:
            return data in self._right[i]
        # Not a number is above nothing and below nothing.
        right = bool(np.abs(result - self._expected[i]).max() <= self._allowed[i])
        if right and len(self._right[i]) < REMEMBERED:
            self._right[i].add(data)
        return right


class Worker:
    """The commands."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._workload = WORKLOADS[spec.workload]
        self._module = importlib.import_module(f"{__package__}.{spec.program}")
        self._program: Program
        self._threads: list[ThreadPoolExecutor] = []  # each client has its own

    def make(self) -> dict[str, Any]:
        """Makes the model, which is the first command; returns the framework's `version`."""
        self._program = self._module.make(self._workload, self._spec)
        return {"version": self._program.version()}

    def reference(self, path: str) -> dict[str, Any]:
        """Writes the results of all inputs of all batches, as arrays `BATCH_INPUT` of a .npz."""
        results = {}
        for batch in self._workload.batches:
            inputs = self._inputs(batch)
            self._program.prepare(inputs, 1, "function")
            with self._program.around(0):
                if self._workload.training:
                    self._program.rewind()
                for i, x in enumerate(inputs):
                    results[f"{batch}_{i}"] = self._program.query(0, x)
        np.savez(path, **results)
        return {}

    def warm(self, batch: int, clients: int, call: str, at_most: float) -> dict[str, Any]:
        """Prepares clients, and lets them query until they are warm; returns the `seconds`."""
        began = time.monotonic()
        inputs = self._prepare(batch, clients, call)
        queries = 0
        while time.monotonic() - began < at_most:
            times = self._load(inputs, clients, min(WARM_SECONDS, at_most))["milliseconds"]
            queries += len(times)
            slow = times.max() > WARM_RATIO * np.median(times)
            if queries >= WARM_QUERIES * clients and not slow:
                break
        return {"seconds": time.monotonic() - began}

    def measure(
        self,
        batch: int,
        clients: int,
        call: str,
        expected: str,
        tolerance: float,
        at: float,
        seconds: float,
        latencies: str,
    ) -> dict[str, Any]:
        """Lets clients query for a while; before `at`, of `time.monotonic()`, nothing counts.

        `expected` is the file of `reference`; `latencies` gets the milliseconds of each query.
        Returns `queries`, `seconds`, `cpu_seconds`, `wrong`, and what the framework counted.
        """
        inputs = self._prepare(batch, clients, call)
        judge = _judge(expected, batch, tolerance)
        done = self._load(inputs, clients, seconds, at, judge.is_right)
        times = done.pop("milliseconds")
        np.save(latencies, times)
        return {"queries": len(times), **done}

    @functools.cache  # noqa: B019 (there is one worker, which lives as long as its process)
    def _inputs(self, batch: int) -> list[np.ndarray]:
        return self._workload.inputs(self._spec.size, batch)

    def _prepare(self, batch: int, clients: int, call: str) -> list[np.ndarray]:
        inputs = self._inputs(batch)
        self._program.prepare(inputs, clients, call)
        while len(self._threads) < clients:
            self._threads.append(ThreadPoolExecutor(1))
        for client in range(clients):
            self._threads[client].submit(self._program.prepare_thread, client).result()
        return inputs

    def _load(
        self,
        inputs: list[np.ndarray],
        clients: int,
        seconds: float,
        at: float = 0.0,
        is_right: Callable[[int, np.ndarray], bool] = lambda i, result: True,
    ) -> dict[str, Any]:
        """Runs clients, always in the same threads: some libraries warm up in each.

        Queries count from `at` of `time.monotonic()` on. Returns their times as an array,
        `milliseconds`, and the rest as `measure`.
        """
        program, training = self._program, self._workload.training
        at = max(at, time.monotonic())
        times: list[list[float]] = [[] for _ in range(clients)]
        wrong = [0] * clients
        # CPU time and counters when the first query that counts begins.
        starts: list[tuple[float, dict[str, float]]] = []
        starting = threading.Lock()

        def query(client: int, count: int) -> None:
            i = count % INPUTS if training else (client + count) % INPUTS
            if training and i == 0:
                program.rewind()
            if not starts and time.monotonic() >= at and starting.acquire(blocking=False):
                starts.append((time.process_time(), program.counters()))
            began = time.monotonic()
            result = program.query(client, inputs[i])
            took = time.monotonic() - began
            if began >= at:
                times[client].append(took)
                wrong[client] += not is_right(i, result)

        until = at - time.monotonic() + seconds
        run_clients(query, clients, until, program.around, self._threads)
        if not starts:  # a query takes longer than all of this: now the first ones count
            return self._load(inputs, clients, seconds, 0.0, is_right)
        measured = np.concatenate(times)
        (cpu, before), after = starts[0], program.counters()
        return {
            "milliseconds": 1e3 * measured,
            # A training's time is without rewinding.
            "seconds": float(measured.sum()) if training else time.monotonic() - at,
            "cpu_seconds": time.process_time() - cpu,
            "wrong": sum(wrong),
            "replays": after.get("replays", 0) - before.get("replays", 0),
            "peak_mib": after.get("peak_mib"),
        }


@functools.cache
def _judge(path: str, batch: int, tolerance: float) -> Judge:
    with np.load(path) as results:
        return Judge([results[f"{batch}_{i}"] for i in range(INPUTS)], tolerance)


def answer_commands(start: Callable[[], object]) -> None:
    """Answers commands, with the methods of what `start` makes, until there are no more."""
    # What frameworks print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker: object = None

    def answer(run: Any) -> None:
        try:
            print(json.dumps(run()), file=answers)
        except Exception as error:
            traceback.print_exc()
            message = str(error).strip().splitlines() or [""]
            # Some frameworks add their code and the machine's name at the end.
            said = f"{type(error).__name__}: {message[0]}"[:MOST_OF_ERROR]
            print(json.dumps({"error": said}), file=answers)

    def begin() -> dict[str, Any]:
        nonlocal worker
        worker = start()
        return {}

    answer(begin)
    if worker is None:
        return
    for line in sys.stdin:
        command = json.loads(line)
        answer(functools.partial(getattr(worker, command.pop("do")), **command))
    # The framework's own threads may wait for ever for what is not freed.
    os._exit(0)


if __name__ == "__main__":
    answer_commands(lambda: Worker(Spec(**json.loads(sys.argv[1]))))
