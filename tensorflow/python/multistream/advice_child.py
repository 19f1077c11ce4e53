# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""The process in which `tf.cuda.advise` measures one setting: it serves a SavedModel to threads.

    python -m tensorflow.python.multistream.advice_child FOLDER FD

`advice_process.py` starts it, with the setting's variables. FOLDER has `job.pickle`, the model and
its queries. The first processes, which are stock TensorFlow, put the results that count as right
into `expected.pickle`. This one answers each line of its input, a request, by a line to FD.
"""

import contextlib
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow.python.framework import config, constant_op, ops
from tensorflow.python.multistream import capture_report, captured, cuda, loader, serving
from tensorflow.python.multistream.advice_process import (
    EMULATED,
    NOT_CAPTURED,
    SERVING,
    SIGNATURE,
    TOLERANCE,
    TOLERANCE_OF_HALVES,
    gpus_are_emulated,
)
from tensorflow.python.saved_model import load

GPU = "/GPU:0"

# Before timing, for so many seconds at most: calls of each query, after which a step is recorded;
# and those after which a policy has chosen its plan.
_FIRST_CALLS = 4
_POLICY_CALLS = 110
_FIRST_SECONDS = 10.0
# Recordings are made while threads call; that goes on for a while, but not for ever.
_SETTLING_SECONDS = 0.2
_MOST_SETTLING = 20

Arrays = dict[str, np.ndarray]
Call = Callable[[Arrays], Arrays]


def differs(result: Arrays, expected: Arrays) -> bool:
    """Whether a result has a bit that stock TensorFlow's has not."""
    same = result.keys() == expected.keys() and all(
        _same(x, expected[name]) for name, x in result.items()
    )
    return not same


def is_close(result: Arrays, expected: Arrays) -> bool:
    """Whether a result is stock TensorFlow's within the tolerance; its numbers, not integers."""
    return result.keys() == expected.keys() and all(
        _same(x, expected[name]) or _close(x, expected[name]) for name, x in result.items()
    )


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype == object:  # strings
        return bool(left.tolist() == right.tolist())
    return bool(left.tobytes() == right.tobytes())


def _close(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind not in "fcV":  # V: bfloat16 and the like
        return False
    tolerance = TOLERANCE if left.dtype.itemsize > 2 else TOLERANCE_OF_HALVES
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    a, b = left.astype(wide), right.astype(wide)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    largest = np.abs(b[finite]).max(initial=0.0)
    return bool((np.abs(a[finite] - b[finite]) <= tolerance * largest).all())


class Server:
    """A signature of a SavedModel, called from threads.

    Args:
      folder: of the job, see above.

    Raises:
      RuntimeError: there is no GPU.
    """

    def __init__(self, folder: Path) -> None:
        job = pickle.loads((folder / "job.pickle").read_bytes())
        self._queries: list[Arrays] = job["queries"]
        self._emulated = gpus_are_emulated()
        if not config.list_physical_devices("GPU"):
            raise RuntimeError(
                "there is no GPU that TensorFlow can use. On a machine without one, "
                f"{EMULATED}=1 emulates one; times mean nothing then."
            )
        with self._device():
            self._loaded = load.load(job["directory"])
            self._signature = self._loaded.signatures[job["signature"]]
            self._calls = {SIGNATURE: _caller(self._signature)}
            results = [self._calls[SIGNATURE](query) for query in self._queries]
            again = [self._calls[SIGNATURE](query) for query in self._queries]
        mine, expected = folder / f"{os.getpid()}.pickle", folder / "expected.pickle"
        mine.write_bytes(pickle.dumps(results))
        with contextlib.suppress(FileExistsError):  # two may start at once
            expected.hardlink_to(mine)
        self._expected: list[Arrays] = pickle.loads(expected.read_bytes())
        self._differing = any(map(differs, again, self._expected))
        self._called: set[str] = set()

    def ready(self) -> dict[str, Any]:
        """What the process says first: the fields of `advice_process.Ready`."""
        return {"emulated": self._emulated, "differing": self._differing}

    def measure(self, call: str, threads: int, seconds: float) -> dict[str, Any]:
        """Calls from threads for a while.

        Args:
          call: how: `SIGNATURE`, `NOT_CAPTURED` or `SERVING`.
          threads: how many.
          seconds: how long.

        Returns:
          The fields of `advice_process.Turn`.

        Raises:
          Exception: what a call raised.
        """
        if call not in self._calls:
            with self._device():
                self._calls[call] = self._make(call)
        if call not in self._called:
            self._first_calls(self._calls[call])
            self._called.add(call)
        self._settle(self._calls[call], threads, min(seconds, _SETTLING_SECONDS))
        before = _steps()
        measured = self._run(self._calls[call], threads, seconds)
        started, replayed = (now - then for now, then in zip(_steps(), before, strict=True))
        measured["replayed"] = replayed / started if started else 0.0
        wanted = call != NOT_CAPTURED and measured["replayed"] < 0.5
        measured["not_replayed"] = _why_not_replayed() if wanted else ""
        measured["peak_bytes"] = _peak_bytes()
        return measured

    def _device(self) -> contextlib.AbstractContextManager[object]:
        # Only on an emulated one does TensorFlow not place ops by itself.
        return ops.device(GPU) if self._emulated else contextlib.nullcontext()

    def _make(self, call: str) -> Call:
        if call == SERVING:
            serve = serving.serving_callable(self._signature)
            return lambda query: serve(**query)
        return _caller(captured.captured(self._signature, mode="off"))

    def _first_calls(self, call: Call) -> None:
        """What the first calls do once: tracing, choosing kernels, measuring plans."""
        of_policy = _POLICY_CALLS if loader.library.TFMS_IsNodeLevel() else 0
        calls = max(of_policy, _FIRST_CALLS * len(self._queries))
        ends = time.perf_counter() + _FIRST_SECONDS
        with self._device():
            for i in range(calls):
                call(self._queries[i % len(self._queries)])
                if i >= len(self._queries) and time.perf_counter() > ends:
                    break

    def _settle(self, call: Call, threads: int, seconds: float) -> None:
        """Calls until no group makes recordings any more."""
        for _ in range(_MOST_SETTLING):
            before = _recordings()
            self._run(call, threads, seconds)
            if _recordings() == before:
                break

    def _run(self, call: Call, threads: int, seconds: float) -> dict[str, Any]:
        times: list[list[float]] = [[] for _ in range(threads)]
        differing, far = [0] * threads, [0] * threads
        errors: list[BaseException] = []
        ended = threading.Event()

        def client(number: int) -> None:
            try:
                with self._device():
                    while not ended.is_set():
                        i = (number + len(times[number])) % len(self._queries)
                        start = time.perf_counter()
                        result = call(self._queries[i])
                        times[number].append(time.perf_counter() - start)
                        if differs(result, self._expected[i]):
                            differing[number] += 1
                            far[number] += not is_close(result, self._expected[i])
            except BaseException as error:
                errors.append(error)
                ended.set()

        clients = [threading.Thread(target=client, args=(i,)) for i in range(threads)]
        start, cpu = time.perf_counter(), time.process_time()
        for thread in clients:
            thread.start()
        ended.wait(seconds)
        ended.set()
        for thread in clients:
            thread.join()
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        if errors:
            raise errors[0]
        milliseconds = np.concatenate(times) * 1e3
        calls = len(milliseconds)
        p50, p99 = np.percentile(milliseconds, [50, 99])
        return {
            "calls": calls,
            "calls_per_second": calls / took,
            "p50_ms": float(p50),
            "p99_ms": float(p99),
            "cpu_ms": cpu / calls * 1e3,
            "differing": sum(differing),
            "far": sum(far),
        }


def _caller(function: Any) -> Call:
    """Calls a signature as programs do."""

    def call(query: Arrays) -> Arrays:
        results = function(**{name: constant_op.constant(x) for name, x in query.items()})
        return {name: x.numpy() for name, x in results.items()}

    return call


def _steps() -> tuple[int, int]:
    """Steps that all groups were given, and those of them that were replayed."""
    stats = cuda.stream_stats()
    return sum(s.steps_started for s in stats), sum(s.steps_replayed for s in stats)


def _recordings() -> int:
    return sum(s.recordings_made for s in cuda.stream_stats())


def _peak_bytes() -> int:
    """The most device memory that was in use at once, by each group's own count, so far."""
    stats = cuda.stream_stats()
    if not stats:
        return int(config.get_memory_info(GPU.strip("/"))["peak"])
    return sum(s.peak_bytes_in_use + s.recording_workspace_bytes for s in stats)


def _why_not_replayed() -> str:
    """Why most steps that were not replayed were not; empty where none can be captured."""
    if not loader.library.TFMS_Captures():
        return ""
    counts = [c for c in capture_report.capture_report().counts if c.end != "replayed"]
    return max(counts, key=lambda count: count.steps).end if counts else ""


def _answer(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return server.measure(**request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main(arguments: Sequence[str]) -> None:
    """Answers requests until there are no more."""
    with os.fdopen(int(arguments[1]), "w") as answers:

        def say(answer: dict[str, Any]) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        try:
            server = Server(Path(arguments[0]))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
            return
        say(server.ready())
        for line in sys.stdin:
            say(_answer(server, json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1:])
