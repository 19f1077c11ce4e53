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
"""Measures multistream_inference over numbers of threads and of stream groups.

Each configuration is a process of its own. The rounds interleave the configurations,
so that a machine that slows down slows all of them down, and the table holds the
median of the rounds. Every result is compared, bit by bit, with those of one thread
of the stock program. Needs Python only.

With TF_MULTI_STREAM_EMULATED_GPUS set there is no stock row, and the reference is one
group's: stock TensorFlow has no emulated GPU, and on the CPU it fuses ops that a GPU
runs one by one, which rounds in another way.

    bazel build //tensorflow/examples/multistream:all
    python benchmarks/benchmark_inference.py --threads 8,16 --groups 1,2,4,8,16 --rounds 3

Exit status: 0, 1 if a run failed or a result was wrong, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tensorflow" / "examples" / "multistream"
PROGRAMS = ROOT / "bazel-bin" / "tensorflow" / "examples" / "multistream"

# Of each thread: the time limit ends a run, not this.
ITERS = 500_000

# Beyond the measured time: loading the model and the device, and the reference.
START_UP_SECONDS = 120

# Taken out of the environment before a run sets its own.
EMULATION = "TF_MULTI_STREAM_EMULATED_GPUS"
GROUP_VARIABLES = ("TF_GPU_STREAM_GROUP_COUNT", "TF_NODE_LEVEL_MULTISTREAM")

POLL_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One row of the table.

    Args:
        threads: client threads.
        groups: stream groups; 0 is the stock program.
    """

    threads: int
    groups: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        if self.groups == 0:
            return "stock"
        return f"{self.groups} group{'s' if self.groups > 1 else ''}"


@dataclasses.dataclass
class Runs:
    """What the rounds of one configuration gave.

    Args:
        figures: the program's own figures, one of each round that ended well.
        memory_mib: GPU memory of the process, the most seen in each round; empty
            without nvidia-smi.
        failures: the last words of each round that failed.
    """

    figures: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    memory_mib: list[float] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)

    def median(self, name: str) -> float:
        """Median of a figure over the rounds."""
        return float(statistics.median(figures[name] for figures in self.figures))

    def total(self, name: str) -> int:
        """Sum of a figure over the rounds."""
        return sum(figures[name] for figures in self.figures)


class MemoryWatch:
    """The most GPU memory that a process held while this was entered, in MiB.

    Where nvidia-smi does not see the process (in a container, say), it is what all
    GPUs together held more than at the start.
    """

    def __init__(self, run: Callable[[list[str]], str] | None = None) -> None:
        self._run = run or self._run_nvidia_smi
        self.available = run is not None or shutil.which("nvidia-smi") is not None
        self.most = 0.0
        self._pid = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._before = self._all_in_use() if self.available else 0.0

    def start(self, pid: int) -> None:
        """Starts watching process `pid`."""
        self._pid = pid
        if self.available:
            self._thread.start()

    def stop(self) -> None:
        """Ends watching."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self.most = max(self.most, self._in_use())

    def _in_use(self) -> float:
        rows = self._run(["--query-compute-apps=pid,used_memory"])
        own = [row.split(",") for row in rows.splitlines() if "," in row]
        numbers = [_number(memory) for pid, memory in own if pid.strip() == str(self._pid)]
        return sum(numbers) or self._all_in_use() - self._before

    def _all_in_use(self) -> float:
        return sum(_number(row) for row in self._run(["--query-gpu=memory.used"]).splitlines())

    @staticmethod
    def _run_nvidia_smi(arguments: list[str]) -> str:
        command = ["nvidia-smi", *arguments, "--format=csv,noheader,nounits"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # nvidia-smi writes [N/A]
        return 0.0


def environment_of(configuration: Configuration, environment: Mapping[str, str]) -> dict[str, str]:
    """Makes the environment of a run.

    Args:
        configuration: what is run.
        environment: variables to start from; others than those of the number of groups
            stay as they are.

    Returns:
        The variables.
    """
    result = {name: value for name, value in environment.items() if name not in GROUP_VARIABLES}
    if configuration.groups > 0:
        result["TF_GPU_STREAM_GROUP_COUNT"] = str(configuration.groups)
        result["TF_NODE_LEVEL_MULTISTREAM"] = "false"
    result.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return result


def first_setup() -> int:
    """Returns what the reference is made with: 0, stock, or 1 group of an emulated GPU."""
    return 1 if os.environ.get(EMULATION) else 0


def order_of_round(configurations: Sequence[Configuration], number: int) -> list[Configuration]:
    """Orders the configurations of a round: each round starts at another one."""
    start = (number * max(1, len(configurations) // 3)) % len(configurations)
    return [*configurations[start:], *configurations[:start]]


class Benchmark:
    """Runs configurations and collects what they print."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self._options = options
        self._folder = folder
        self._reference = folder / "reference"

    def make_reference(self) -> str:
        """Makes the results that all others are compared with.

        Returns:
            What went wrong; empty if nothing did.
        """
        configuration = Configuration(threads=1, groups=first_setup())
        command = [
            *self._command(configuration, iters=1),
            f"--save-reference={self._reference}",
        ]
        return self._run(command, configuration, seconds=0)[0]

    def measure(self, configuration: Configuration, runs: Runs) -> None:
        """Runs a configuration once and adds what came out to `runs`."""
        options = self._options
        figures = self._folder / "figures.json"
        figures.unlink(missing_ok=True)
        command = [
            *self._command(configuration, iters=options.iters),
            f"--max-seconds={options.seconds}",
            f"--warmup={options.warmup}",
            f"--reference={self._reference}",
            f"--tolerance={options.tolerance}",
            f"--json={figures}",
        ]
        failure, memory = self._run(command, configuration, options.seconds)
        # A run with wrong results fails and has its figures all the same.
        if figures.exists():
            runs.figures.append(json.loads(figures.read_text()))
            if memory is not None:
                runs.memory_mib.append(memory)
        else:
            runs.failures.append(failure or "no figures were written")

    def _command(self, configuration: Configuration, iters: int) -> list[str]:
        options = self._options
        stock = configuration.groups == 0 and options.stock is not None
        return [
            str(options.stock if stock else options.program),
            str(options.model),
            *("1", options.input, "1", options.output),
            *(str(options.batch), str(iters), str(configuration.threads)),
            str(options.config),
        ]

    def _run(
        self, command: list[str], configuration: Configuration, seconds: float
    ) -> tuple[str, float | None]:
        watch = MemoryWatch()
        environment = environment_of(configuration, os.environ)
        try:
            with subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process:
                watch.start(process.pid)
                try:
                    output, _ = process.communicate(timeout=START_UP_SECONDS + 2 * seconds)
                except subprocess.TimeoutExpired:
                    process.kill()
                    output, _ = process.communicate()
                    output += f"\nkilled after {START_UP_SECONDS + 2 * seconds:g} s"
        except OSError as error:
            return f"{command[0]}: {error.strerror}", None
        finally:
            watch.stop()
        memory = watch.most if watch.available else None
        if process.returncode == 0:
            return "", memory
        lines = output.strip().splitlines() or [f"{command[0]} wrote nothing"]
        return f"exit status {process.returncode}: {lines[-1]}", memory


def table(results: Mapping[Configuration, Runs]) -> str:
    """Makes the Markdown table.

    Args:
        results: what each configuration gave; the ratio is to the first one of the
            same number of threads.

    Returns:
        The table, a line for each configuration.
    """
    lines = [
        "| threads | setup | queries/s | lowest to highest | ratio | p50 ms | p95 ms | p99 ms"
        " | GPU memory MiB | groups' peak MiB | verified | wrong |",
        "|" + " --- |" * 12,
    ]
    first: dict[int, float] = {}
    for configuration, runs in results.items():
        start = f"| {configuration.threads} | {configuration.name} |"
        if not runs.figures:
            first.setdefault(configuration.threads, 0.0)
            lines.append(f"{start} failed |" + " |" * 9)
            continue
        rate = runs.median("queries_per_second")
        base = first.setdefault(configuration.threads, rate)
        rates = [figures["queries_per_second"] for figures in runs.figures]
        peak = max(
            sum(group["peak_bytes_in_use"] for group in figures["groups"])
            for figures in runs.figures
        )
        cells = [
            f"{rate:,.0f}",
            f"{min(rates):,.0f} to {max(rates):,.0f}",
            f"{rate / base:.2f}" if base else "",
            *(f"{runs.median(name):.3f}" for name in ("p50_ms", "p95_ms", "p99_ms")),
            f"{max(runs.memory_mib):,.0f}" if runs.memory_mib else "",
            f"{peak / 2**20:,.1f}" if peak else "",
            f"{runs.total('verified'):,}",
            f"{runs.total('wrong'):,}",
        ]
        lines.append(f"{start} {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(low: int, high: int) -> Callable[[str], list[int]]:
    def parse(text: str) -> list[int]:
        try:
            values = [int(part) for part in text.split(",")]
        except ValueError:
            values = []
        if not values or not all(low <= value <= high for value in values):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not whole numbers from {low} to {high} with commas between them"
            )
        return list(dict.fromkeys(values))

    return parse


def _at_least(low: float, kind: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = low - 1
        if not low <= value < float("inf"):
            name = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {name} of {low} or more")
        return value

    return parse


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--threads", type=_numbers(1, 1024), default=[8, 16], help="[8,16]")
    add("--groups", type=_numbers(1, 64), default=[1, 2, 4, 8, 16], help="[1,2,4,8,16]")
    add("--rounds", type=_at_least(1, int), default=3, help="[3]")
    add("--seconds", type=_at_least(0.01, float), default=5.0, help="measured, a run [5]")
    add("--warmup", type=_at_least(0, int), default=50, help="queries of each thread [50]")
    add("--iters", type=_at_least(1, int), default=None, help="at most, of each thread")
    add("--batch", type=_at_least(1, int), default=16, help="[16]")
    add("--tolerance", type=_at_least(0, float), default=0.0, help="[0: same bits]")
    add("--program", type=pathlib.Path, default=PROGRAMS / "multistream_inference")
    add(
        "--stock",
        type=pathlib.Path,
        help="the same program without the runtime [beside --program; if there is none,"
        " --program with no variable set]",
    )
    add("--model", type=pathlib.Path, default=SOURCES / "data" / "model_test.pbtxt")
    add("--input", default="input0")
    add("--output", default="output")
    add("--config", type=pathlib.Path, default=SOURCES / "data" / "config_proto")
    add("--json", type=pathlib.Path, help="also write all figures of all rounds there")
    options = parser.parse_args(arguments)
    for name in ("program", "stock", "model", "config"):
        path = getattr(options, name)
        if path is not None and not path.is_file():
            parser.error(f"--{name} {path}: there is no such file")
    if options.stock is None:
        beside = options.program.with_name("multistream_inference_stock")
        options.stock = beside if beside.is_file() else None
    if options.iters is None:
        options.iters = min(ITERS, 500_000_000 // max(options.threads))
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    results = {
        Configuration(threads, groups): Runs()
        for threads in options.threads
        for groups in dict.fromkeys([first_setup(), *options.groups])
    }
    with tempfile.TemporaryDirectory() as name:
        benchmark = Benchmark(options, pathlib.Path(name))
        if failure := benchmark.make_reference():
            print(f"benchmark_inference: no reference: {failure}", file=sys.stderr)
            return 1
        for number in range(options.rounds):
            for configuration in order_of_round(list(results), number):
                print(
                    f"round {number + 1} of {options.rounds}: {configuration.threads} threads,"
                    f" {configuration.name}",
                    file=sys.stderr,
                    flush=True,
                )
                benchmark.measure(configuration, results[configuration])
    print(table(results), flush=True)
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr, flush=True)
    if options.json is not None:
        everything = [
            {**dataclasses.asdict(configuration), **dataclasses.asdict(runs)}
            for configuration, runs in results.items()
        ]
        options.json.write_text(json.dumps(everything, indent=1))
    failed = False
    for configuration, runs in results.items():
        for failure in runs.failures:
            print(
                f"benchmark_inference: {configuration.threads} threads,"
                f" {configuration.name}: {failure}",
                file=sys.stderr,
            )
        failed = failed or bool(runs.failures) or runs.total("wrong") > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
