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
"""What do the parts of a step on a stream group cost, beside stock TensorFlow's?

Runs the C++ benchmarks of tensorflow/core/common_runtime/multistream/testing/, which use Google
Benchmark (Debian's libbenchmark-dev) and emulated GPUs, in rounds, and prints a row for each part:
its time in nanoseconds (median, lowest and highest round), that of what stock TensorFlow does in
its place, if it does anything, and the ratio of the two within each round.

    bazel build //tensorflow/core/common_runtime/multistream/testing:{part,step}_benchmarks
    python benchmarks/micro_benchmarks.py --json new.json --compare old.json

With --compare also how each ratio has changed: "slower" if it is higher in every round than in all
of the older run, "faster" if it is lower, or else "within noise".

Exit status: 0; 1 if a part is slower, or a benchmark fails; 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from option_types import whole
from rounds import HIGHER, LOWER, NOISE, verdict

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARIES = ROOT / "bazel-bin/tensorflow/core/common_runtime/multistream/testing"
GROUPS = {"TF_MULTI_STREAM_EMULATED_GPUS": "1", "TF_GPU_STREAM_GROUP_COUNT": "4"}
# A process each: the program, its variables, and the benchmarks that it runs.
PROCESSES: dict[str, tuple[str, dict[str, str], str]] = {
    "parts": ("part_benchmarks", {}, "."),
    "graph level": (
        "step_benchmarks",
        {**GROUPS, "TF_NODE_LEVEL_MULTISTREAM": "false", "TF_MULTI_STREAM_CAPTURE": "off"},
        "^Step(Stock)?/",
    ),
    "captured": (
        "step_benchmarks",
        {**GROUPS, "TF_NODE_LEVEL_MULTISTREAM": "false", "TF_MULTI_STREAM_CAPTURE": "auto"},
        "^Step(Stock)?/",
    ),
    "node level": (
        "step_benchmarks",
        {**GROUPS, "TF_NODE_LEVEL_MULTISTREAM": "true", "TF_MULTI_STREAM_CAPTURE": "off"},
        ".",
    ),
}


@dataclasses.dataclass(frozen=True)
class Part:
    """A row.

    Args:
        name: what it is.
        process: of PROCESSES, that measures it.
        ours: its benchmark.
        stock: that of what stock TensorFlow does in its place, in the same process; none if that
            does nothing.
    """

    name: str
    process: str
    ours: str
    stock: str | None = None


def _steps(name: str, process: str, ours: str) -> list[Part]:
    return [
        Part(
            f"{name} of {'one op' if ops == 1 else f'{ops} ops'}, {threads}",
            process,
            f"{ours}/{ops}/real_time/threads:{threads[0]}",
            f"StepStock/{ops}/real_time/threads:{threads[0]}",
        )
        for ops in (1, 300)
        for threads in ("1 thread", "4 threads")
    ]


def _locks(name: str, ours: str, stock: str | None) -> list[Part]:
    return [
        Part(
            f"{name}, {threads}",
            "parts",
            f"{ours}/real_time/threads:{threads[0]}",
            stock and f"{stock}/real_time/threads:{threads[0]}",
        )
        for threads in ("1 thread", "4 threads")
    ]


PARTS = [
    *_locks("choosing a group, and the step's end", "GroupChoice", None),
    Part(
        "a tensor through a wrapped rendezvous",
        "parts",
        "RendezvousOfGroup/real_time",
        "RendezvousStock/real_time",
    ),
    Part("a wait for another group", "parts", "WaitThatIsNeeded/real_time"),
    Part("a wait that is known, left out", "parts", "WaitThatIsKnown/real_time"),
    Part("a hold, beside a reference", "parts", "Hold/real_time", "HoldStock/real_time"),
    *_locks("reading a variable: its lock", "ReadLock", "ReadLockStock"),
    *_locks("changing a variable: its lock", "WriteLock", "WriteLockStock"),
    *_steps("a graph-level step", "graph level", "Step"),
    *_steps("a replayed step", "captured", "Step"),
    *_steps("a node-level step without scopes", "node level", "Step"),
    *_steps("a node-level step in a scope", "node level", "StepInScope"),
    *_steps("a node-level step, two groups taking turns", "node level", "StepOfTwoGroups"),
]


@dataclasses.dataclass
class Figures:
    """What a part took.

    Args:
        ours: nanoseconds of each round.
        stock: likewise of what stock TensorFlow does; empty if it does nothing.
    """

    ours: list[float] = dataclasses.field(default_factory=list)
    stock: list[float] = dataclasses.field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Of each round, to stock TensorFlow; nanoseconds, if that does nothing."""
        if not self.stock:
            return self.ours
        return [ours / stock for ours, stock in zip(self.ours, self.stock, strict=True)]


def times_of(report: str) -> dict[str, float]:
    """Reads the report of Google Benchmark.

    Args:
        report: in JSON.

    Returns:
        The nanoseconds of each benchmark.

    Raises:
        RuntimeError: one of them failed; names it.
    """
    times = {}
    for row in json.loads(report)["benchmarks"]:
        if row.get("error_occurred"):
            raise RuntimeError(f"{row['name']}: {row['error_message']}")
        times[row["name"]] = float(row["real_time"])
    return times


def run(process: str, seconds: float, folder: pathlib.Path = BINARIES) -> dict[str, float]:
    """Runs a process of PROCESSES.

    Args:
        process: its name.
        seconds: that each benchmark runs, at least.
        folder: where the programs are.

    Returns:
        The nanoseconds of each benchmark.

    Raises:
        RuntimeError: it is not built, or it fails.
    """
    program, variables, benchmarks = PROCESSES[process]
    if not (folder / program).exists():
        target = "//tensorflow/core/common_runtime/multistream/testing:" + program
        raise RuntimeError(f"{folder / program} is not there; run: bazel build {target}")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    command = [str(folder / program), "--benchmark_format=json"]
    command += [f"--benchmark_min_time={seconds}", f"--benchmark_filter={benchmarks}"]
    done = subprocess.run(
        command,
        env={**clean, "TF_CPP_MIN_LOG_LEVEL": "2", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{program} failed with status {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return times_of(done.stdout)


def measure(rounds: int, seconds: float) -> dict[str, Figures]:
    """Measures all parts; prints what it does.

    Args:
        rounds: how often every process runs, taking turns.
        seconds: as for `run`.

    Returns:
        The figures of each part, by its name.
    """
    figures = {part.name: Figures() for part in PARTS}
    for i in range(rounds):
        for process in PROCESSES:
            print(f"round {i + 1} of {rounds}: {process}", file=sys.stderr, flush=True)
            times = run(process, seconds)
            for part in PARTS:
                if part.process == process:
                    figures[part.name].ours.append(times[part.ours])
                    if part.stock:
                        figures[part.name].stock.append(times[part.stock])
    return figures


def spread(values: Sequence[float], digits: int) -> str:
    """The median, and the lowest and the highest value."""
    low, middle, high = (
        f"{value:,.{digits}f}" for value in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def table(figures: Mapping[str, Figures]) -> str:
    """All figures, a row for each part, in Markdown."""
    lines = ["| part | ns | stock, ns | ratio |", "| --- | --- | --- | --- |"]
    for name, one in figures.items():
        stock = spread(one.stock, 0) if one.stock else "nothing"
        ratio = spread(one.ratios, 2) if one.stock else ""
        lines.append(f"| {name} | {spread(one.ours, 0)} | {stock} | {ratio} |")
    return "\n".join(lines)


def verdicts(old: Mapping[str, Figures], new: Mapping[str, Figures]) -> dict[str, str]:
    """How the ratios of the parts that both runs have differ beyond noise.

    Args:
        old: the older run.
        new: the newer one.

    Returns:
        "faster", "slower" or "within noise", by the name of the part.
    """
    words = {HIGHER: "slower", LOWER: "faster", NOISE: NOISE}
    return {name: words[verdict(old[name].ratios, new[name].ratios)] for name in new if name in old}


def load(path: pathlib.Path) -> dict[str, Figures]:
    """Reads a run that `--json` wrote.

    Raises:
        RuntimeError: it is none; says why.
    """
    try:
        parts = json.loads(path.read_text())["parts"]
        return {name: Figures(one["ours"], one["stock"]) for name, one in parts.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RuntimeError(f"{path} is no run of micro_benchmarks.py: {error!r}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=whole(1, 100), default=5, help="[5]")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    parser.add_argument("--json", type=pathlib.Path, help="file to write the figures to")
    parser.add_argument("--compare", type=pathlib.Path, help="such a file of an older run")
    options = parser.parse_args(arguments)
    try:
        old = load(options.compare) if options.compare else {}
        figures = measure(1, 0.001) if options.quick else measure(options.rounds, 0.1)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(figures))
    if options.json:
        run_of = {
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "cores": os.cpu_count(),
            "machine": platform.processor() or platform.machine(),
            "parts": {name: dataclasses.asdict(one) for name, one in figures.items()},
        }
        options.json.write_text(json.dumps(run_of, indent=1) + "\n")
    found = verdicts(old, figures)
    for name, change in found.items():
        if change != NOISE:
            print(f"{change}: {name}")
    if options.compare:
        same = list(found.values()).count(NOISE)
        print(f"{len(found)} compared, {same} of them within noise")
    return int("slower" in found.values())


if __name__ == "__main__":
    sys.exit(main())
