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
r"""What do threads of Python gain by asking for Python's lock in turn?

Starts a process for each number of threads that look for their turn (docs/serving.md), in which
client threads call `tf.cuda.serving_callable` of one layer, and measures them in turn, in an order
that is reversed each round. Between calls a client works in Python, with its lock, for `--work`
microseconds. Another thread, which makes no calls, sleeps for a millisecond at a time: how late it
goes on is how long it waits for the lock. Every result is compared.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/python_turns.py --turns 0,1,2 --threads 8,16,64 --work 0,30

Prints a row for each: the median of the rounds with the lowest and the highest; times of a call,
with the work after it, and how late the other thread is, in milliseconds; CPU time of a call in
microseconds. The longest are of all rounds. Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of
which times mean nothing.

Exit status: 0; 1 if a result is wrong or a process fails; 2 if the command line is not understood.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import whole, wholes
from worker_process import WorkerError, WorkerProcess

TURNS = "TF_MULTI_STREAM_PYTHON_TURNS"
WARM_THREADS, WARM_SECONDS = 16, 1.0
COLUMNS = (
    "turns,threads,work_us,calls_per_second,lowest,highest,p50_ms,p99_ms,longest_ms,cpu_us,"
    "other_thread_late_p99_ms,other_thread_late_longest_ms,wrong"
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--turns", type=wholes(0, 64), default=[0, 1], help=f"{TURNS} [0,1]")
    add("--threads", type=wholes(1, 256), default=[8, 16, 64], help="clients [8,16,64]")
    add("--work", type=wholes(0, 100_000), default=[0], help="microseconds after a call [0]")
    add("--rounds", type=whole(1, 100), default=4, help="measurements of each [4]")
    add("--milliseconds", type=whole(10, 600_000), default=400, help="of a measurement [400]")
    add("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def serve() -> None:
    """Measures what standard input asks for, a line of JSON each, and answers in such lines."""
    # Only the processes that measure take the time to import TensorFlow.
    import numpy as np  # noqa: PLC0415
    import serving_callable  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415
    from client_threads import run_checked  # noqa: PLC0415

    model = serving_callable.Model()
    _keep, signature = serving_callable.save_and_load(model, model.serve)
    function = tf.cuda.serving_callable(signature)
    inputs = list(np.random.default_rng(0).normal(size=(8, 16, 64)).astype(np.float32))

    def measure(threads: int, work_us: int, seconds: float) -> list[float]:
        def call(x: np.ndarray) -> np.ndarray:
            result: np.ndarray = function(x=x)["y"]
            end = time.perf_counter() + work_us * 1e-6
            while time.perf_counter() < end:
                pass
            return result

        with serving_callable.another_thread() as late:
            load, wrong = run_checked(
                call, inputs, expected, threads, seconds, lambda _: tf.device("/GPU:0")
            )
        late_p99 = float(np.percentile(late, 99))
        rest = [load.cpu_micros, late_p99, max(late), wrong]
        return [load.calls_per_second, *load.percentiles, *rest]

    with tf.device("/GPU:0"):
        expected = [function(x=x)["y"].tobytes() for x in inputs]
    measure(WARM_THREADS, 0, WARM_SECONDS)
    print("{}", flush=True)  # it is ready
    for line in sys.stdin:
        print(json.dumps({"figures": measure(**json.loads(line))}), flush=True)


class Server:
    """A process that measures, with so many threads that look for their turn."""

    def __init__(self, turns: int, folder: str) -> None:
        self._turns = turns
        self._process = WorkerProcess(
            [sys.executable, __file__, "--serve"],
            # The processes share a GPU.
            {"TF_FORCE_GPU_ALLOW_GROWTH": "true", **os.environ, TURNS: str(turns)},
            pathlib.Path(folder, f"{turns}.log"),
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def wait_until_ready(self) -> None:
        """Waits until it has started."""
        with self._naming("has ended"):
            self._process.answer()

    def measure(self, threads: int, work_us: int, seconds: float) -> list[float]:
        """Returns what `serve` measures."""
        self._process.tell(threads=threads, work_us=work_us, seconds=seconds)
        with self._naming("has ended"):
            figures: list[float] = self._process.answer(seconds)["figures"]
        return figures

    def end(self) -> None:
        """Lets it end.

        Raises:
            WorkerError: it fails; as of all methods here.
        """
        with self._naming("has failed"):
            self._process.end()

    @contextlib.contextmanager
    def _naming(self, what: str) -> Iterator[None]:
        try:
            yield
        except WorkerError as error:
            raise WorkerError(f"the process with {TURNS}={self._turns} {what}: {error}") from error


def row(setting: Sequence[int], rounds: Sequence[Sequence[float]]) -> tuple[str, int]:
    """Returns what to print of the rounds of a setting, and how many results were wrong."""
    rates, p50, p99, longest, cpu, late_p99, late_longest, wrong = zip(*rounds, strict=True)
    median: Any = statistics.median
    cells = [
        *setting,
        *(f"{rate:.0f}" for rate in (median(rates), min(rates), max(rates))),
        *(f"{ms:.3f}" for ms in (median(p50), median(p99), max(longest))),
        f"{median(cpu):.0f}",
        *(f"{ms:.3f}" for ms in (median(late_p99), max(late_longest))),
        sum(wrong),
    ]
    return ",".join(str(cell) for cell in cells), sum(wrong)


def compare(options: argparse.Namespace) -> int:
    """Prints the table; returns how many results were wrong."""
    rounds: dict[tuple[int, int, int], list[list[float]]] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {
            turns: stack.enter_context(Server(turns, folder))
            for turns in dict.fromkeys(options.turns)
        }
        for server in servers.values():
            server.wait_until_ready()
        order = list(servers)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for threads in options.threads:
                for work in options.work:
                    for turns in order:
                        figures = servers[turns].measure(threads, work, options.milliseconds / 1e3)
                        rounds.setdefault((turns, threads, work), []).append(figures)
            order.reverse()
        for server in servers.values():
            server.end()
    print(COLUMNS)
    total = 0
    for setting in sorted(rounds, key=lambda setting: (setting[1:], setting)):
        text, wrong = row(setting, rounds[setting])
        print(text, flush=True)
        total += wrong
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    if options.serve:
        serve()
        return 0
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    try:
        wrong = compare(options)
    except WorkerError as error:
        print(error, file=sys.stderr)
        return 1
    if wrong:
        print(f"{wrong} results were wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
