# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes of `tf.cuda.advise`: one for each setting, since a process reads variables once.

A process calls the method of `_Server` that each request names, and sends back what the method
returns.
"""

import concurrent.futures
import contextlib
import math
import multiprocessing
import multiprocessing.connection
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tensorflow.python.framework import config, constant_op, ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.advise.model import Query
from tensorflow.python.multistream.capture import capture_report
from tensorflow.python.multistream.groups import stats
from tensorflow.python.multistream.serving import serving_callable
from tensorflow.python.saved_model import load

# How a model is called: by its signature, or by `tf.cuda.serving_callable`.
SIGNATURE = "signature"
SERVING = "serving_callable"

# All of the runtime's variables, except the number of emulated GPUs.
_OURS = re.compile(
    "TF_(MULTI_STREAM_(?!EMULATED_GPUS$)|GPU_STREAM_|GPU_CONTEXT_COUNT$|NODE_LEVEL_MULTISTREAM$"
    "|REDUCE_STREAM_WAIT$|STREAM_FROM_FILE$|BFC_EXTEND_LIMIT_MB$|PER_STREAM_HOST_ALLOCATOR$"
    "|SEGMENT_OWN_CONST$)"
)
_PROGRAM = f"import sys, {__name__} as process; process.main(*sys.argv[1:])"
_MOST_SECONDS = 600.0  # limit for one answer: a model may take minutes to load
# Calls in which TensorFlow traces, chooses kernels, and records the third step.
_FIRST_CALLS = 4


class ChildError(RuntimeError):
    """A process ended or did not answer, or a call in it failed. The message has the reason."""


class Turn(NamedTuple):
    """The measurements of one turn of a process; see `AdviceRow`."""

    calls: int
    calls_per_second: float
    p50_ms: float
    p99_ms: float
    wrong: int
    in_the_way: str


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """A process's environment: of the runtime's variables, only those of the setting."""
    inherited = {name: x for name, x in os.environ.items() if not _OURS.match(name)}
    # Several processes share the GPU.
    return {**inherited, "TF_FORCE_GPU_ALLOW_GROWTH": "true", **variables}


class Child:
    """A process with a setting's variables, which loads the model of the pickled `job`."""

    def __init__(self, job: Path, variables: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(job), str(theirs.fileno())],
                cwd=job.parent,  # Python looks for modules there first
                env=environment(variables),
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
            )

    def ask(self, request: str, *arguments: Any) -> Any:
        """Calls a method of `_Server` in the process; raises ChildError if the call fails."""
        try:
            self._connection.send((request, arguments))
            if not self._connection.poll(_MOST_SECONDS):
                raise ChildError(f"no answer for {_MOST_SECONDS:.0f} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            status = self._process.wait()
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").splitlines()[-12:]
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise ChildError("\n  ".join([f"its process ended, {how}", *lines])) from None
        if isinstance(answer, ChildError):
            raise answer
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._log.close()


def distance(result: Query, expected: Query) -> float:
    """The largest difference of two results: 0 for equal bits, inf for other dtypes or shapes."""
    largest = 0.0
    for name, y in expected.items():
        x = result[name]
        if x.tobytes() == y.tobytes() and x.dtype == y.dtype and x.shape == y.shape:
            continue
        if x.dtype != y.dtype or x.shape != y.shape or x.dtype.kind == "S":
            return math.inf
        a, b = np.nan_to_num(x.astype(np.complex128)), np.nan_to_num(y.astype(np.complex128))
        largest = max(largest, np.finfo(float).tiny, np.abs(a - b).max())
    return float(largest)


class _Server:
    """A signature of a SavedModel, called from threads with each query in turn."""

    def __init__(self, directory: str, signature: str, queries: list[Query]) -> None:
        self._queries = queries
        if not config.list_physical_devices("GPU"):
            raise RuntimeError(
                "there is no GPU that TensorFlow can use. On a machine without one, "
                "TF_MULTI_STREAM_EMULATED_GPUS=1 emulates one, whose times mean nothing."
            )
        self._emulated = bool(loader.library.TFMS_EmulatesGpus())
        with self._device():
            self._loaded = load.load(directory)
            self._signature = self._loaded.signatures[signature]
        self._calls: dict[str, Callable[[Query], Query]] = {SIGNATURE: self._call_signature}

    def results(self) -> tuple[list[list[Query]], bool]:
        """Results of all queries, several times, and whether the GPU is emulated."""
        with self._device():
            found = [[self._call_signature(x) for x in self._queries] for _ in range(_FIRST_CALLS)]
        return found, self._emulated

    def expect(self, results: list[Query], tolerance: float) -> None:
        """Sets the right results of all queries, and the tolerance for later results."""
        self._expected, self._tolerance = results, tolerance

    def measure(self, call: str, threads: int, seconds: float) -> Turn:
        """Calls the model from threads for a while."""
        if call not in self._calls:
            with self._device():
                serve = serving_callable.serving_callable(self._signature)
                self._calls[call] = lambda query: serve(**query)
                for query in self._queries * _FIRST_CALLS:
                    serve(**query)
        started, replayed = _sum("steps_started"), _sum("steps_replayed")
        turn = self._run(self._calls[call], threads, seconds)
        started, replayed = _sum("steps_started") - started, _sum("steps_replayed") - replayed
        if not loader.library.TFMS_Captures() or replayed > started / 2:
            return turn
        found = capture_report.capture_report().counts
        counts = [x for x in found if x.end != "replayed" and not x.is_piece]
        most = max(counts, key=lambda count: count.steps, default=None)
        return turn._replace(in_the_way=most.end if most else "")

    def _device(self) -> contextlib.AbstractContextManager[object]:
        # TensorFlow places ops on an emulated GPU only if a device scope asks for it.
        return ops.device("/GPU:0") if self._emulated else contextlib.nullcontext()

    def _call_signature(self, query: Query) -> Query:
        results = self._signature(**{k: constant_op.constant(x) for k, x in query.items()})
        # Strings as bytes, so that equal results have equal bytes.
        return {
            k: np.asarray(x.numpy(), bytes if x.dtype == "string" else None)
            for k, x in results.items()
        }

    def _run(self, call: Callable[[Query], Query], threads: int, seconds: float) -> Turn:
        times: list[list[float]] = [[] for _ in range(threads)]
        wrong = [0] * threads
        ended = threading.Event()

        def client(number: int) -> None:
            try:
                with self._device():
                    while not ended.is_set():
                        i = (number + len(times[number])) % len(self._queries)
                        start = time.perf_counter()
                        result = call(self._queries[i])
                        times[number].append(time.perf_counter() - start)
                        wrong[number] += distance(result, self._expected[i]) > self._tolerance
            finally:
                ended.set()  # a call that fails ends all clients

        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(threads) as executor:
            clients = [executor.submit(client, i) for i in range(threads)]
            ended.wait(seconds)
            ended.set()
        took = time.perf_counter() - start
        for each in clients:
            each.result()
        calls = np.concatenate(times)
        p50, p99 = map(float, np.percentile(calls, [50, 99]) * 1e3)
        return Turn(len(calls), len(calls) / took, p50, p99, sum(wrong), "")


def _sum(counter: str) -> int:
    return sum(getattr(group, counter) for group in stats.stream_stats())


def main(job: str, descriptor: str) -> None:
    """Answers requests about `job` from the socket `descriptor` until there are no more."""
    connection = multiprocessing.connection.Connection(int(descriptor))
    server = None
    with contextlib.suppress(EOFError):
        while True:
            request, arguments = connection.recv()
            answer: object
            try:
                server = server or _Server(*pickle.loads(Path(job).read_bytes()))
                answer = getattr(server, request)(*arguments)
            except Exception as error:
                answer = ChildError(f"{type(error).__name__}: {error}")
            connection.send(answer)
