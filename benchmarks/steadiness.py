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
"""Is a server's worst second as good as its usual one?

Runs multistream_inference with all combinations of stream groups, clients, cores and threads that
keep cores busy beside it, each in a process of its own, and compares the slowest second of each
setting, over all its processes, with the setting's median second. Where other processes want the
same cores, a second may be slow because the process got less of them: the table says how much.

    bazel build //tensorflow/examples/multistream:multistream_inference
    python benchmarks/steadiness.py --rounds 3 --out steadiness.csv

Needs Python only. On a GPU machine, let the program find NVIDIA's libraries (LD_LIBRARY_PATH).

Exit status: 0; 1 if a run failed, or a slowest second is below --least of its median; 2 if the
command line is not understood.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bazel-bin/tensorflow/examples/multistream/multistream_inference"
DATA = ROOT / "tensorflow/examples/multistream/data"
# Beyond the measured time: loading the model, the devices and their libraries.
START_UP_SECONDS = 120
# Of each thread: the time limit ends a run, not this.
ITERS = 500_000
OF_SECONDS = ("queries_of_seconds", "cpu_of_seconds")


@dataclasses.dataclass(frozen=True, order=True)
class Setting:
    """What a process is run with.

    Args:
        groups: stream groups.
        clients: threads that send queries.
        cores: that the process may use.
        busy: processes that keep a core busy, on the same cores.
    """

    groups: int
    clients: int
    cores: int
    busy: int


@dataclasses.dataclass(frozen=True)
class Run:
    """What one process gave.

    Args:
        setting: what it was run with.
        seconds: queries that ended in each whole second.
        cpu: CPU seconds that the process used in each of them.
        longest_ms: the longest query, in milliseconds.
        longest_launch_wait_ms: as of stream_stats(), warm-up included.
    """

    setting: Setting
    seconds: list[int]
    cpu: list[float]
    longest_ms: float
    longest_launch_wait_ms: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """All runs of a setting.

    Args:
        setting: of the runs.
        count: whole seconds.
        lowest: queries in the slowest of them.
        median: queries in the median one.
        highest: queries in the best one.
        lowest_cpu: CPU seconds that the process used in the slowest one.
        median_cpu: and in the median second.
    """

    setting: Setting
    count: int
    lowest: int
    median: float
    highest: int
    lowest_cpu: float
    median_cpu: float

    @property
    def ratio(self) -> float:
        """Of the slowest second to the median one."""
        return self.lowest / self.median if self.median else 0.0


def settings(
    groups: Sequence[int], clients: Sequence[int], cores: Sequence[int], busy: Sequence[int]
) -> list[Setting]:
    """All combinations.

    Args:
        groups: numbers of stream groups.
        clients: numbers of threads that send queries.
        cores: numbers of cores.
        busy: numbers of busy processes.

    Returns:
        A setting for each combination.
    """
    return [Setting(g, t, c, b) for b, c, g, t in itertools.product(busy, cores, groups, clients)]


def summaries(runs: Iterable[Run]) -> list[Summary]:
    """Summarizes the runs of each setting.

    Args:
        runs: of any settings, in any order.

    Returns:
        A summary for each setting that has a whole second, ordered by setting.
    """
    seconds: dict[Setting, list[tuple[int, float]]] = {}
    for run in runs:
        seconds.setdefault(run.setting, []).extend(zip(run.seconds, run.cpu, strict=True))
    return [
        Summary(
            setting,
            len(of),
            min(of)[0],
            statistics.median(queries for queries, _ in of),
            max(of)[0],
            min(of)[1],
            statistics.median(cpu for _, cpu in of),
        )
        for setting, of in sorted(seconds.items())
        if of
    ]


@contextlib.contextmanager
def busy_cores(count: int, cores: int) -> Iterator[None]:
    """Keeps cores busy for as long as it is entered.

    Args:
        count: processes that never wait.
        cores: they may use the first so many.

    Yields:
        Nothing.
    """
    command = ["taskset", "-c", f"0-{cores - 1}", sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(setting: Setting, seconds: float, program: pathlib.Path = PROGRAM) -> Run:
    """Runs one process.

    Args:
        setting: what with.
        seconds: of load.
        program: multistream_inference.

    Returns:
        What it gave.

    Raises:
        RuntimeError: it failed; has its last words.
    """
    with tempfile.TemporaryDirectory() as folder, busy_cores(setting.busy, setting.cores):
        path = pathlib.Path(folder, "figures.json")
        command = ["taskset", "-c", f"0-{setting.cores - 1}", str(program)]
        command += [str(DATA / "model_test.pbtxt"), "1", "input0", "1", "output", "16"]
        command += [str(ITERS), str(setting.clients), str(DATA / "config_proto")]
        command += [f"--max-seconds={seconds}", f"--json={path}"]
        try:
            ended = subprocess.run(
                command,
                env={**os.environ, "TF_GPU_STREAM_GROUP_COUNT": str(setting.groups)},
                capture_output=True,
                text=True,
                timeout=seconds + START_UP_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            raise RuntimeError(f"{setting}: not done after {expired.timeout:.0f} s") from expired
        if ended.returncode != 0:
            raise RuntimeError(f"{setting}: exit status {ended.returncode}: {ended.stderr[-500:]}")
        figures = json.loads(path.read_text())
    waits = [group["longest_launch_wait_micros"] / 1e3 for group in figures["groups"]]
    return Run(
        setting,
        figures["queries_of_seconds"],
        figures["cpu_of_seconds"],
        figures["max_ms"],
        max(waits, default=0.0),
    )


def write(path: pathlib.Path, runs: Sequence[Run]) -> None:
    """Writes one line for each run.

    Args:
        path: of the file, in CSV.
        runs: what to write.
    """
    names = [field.name for field in dataclasses.fields(Setting)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "longest_ms", "longest_launch_wait_ms", *OF_SECONDS])
        for one in runs:
            values = dataclasses.astuple(one.setting)
            seconds = [" ".join(map(str, of)) for of in (one.seconds, one.cpu)]
            writer.writerow([*values, one.longest_ms, one.longest_launch_wait_ms, *seconds])


def numbers(text: str) -> list[int]:
    """Reads a list of positive numbers, or 0.

    Args:
        text: such as "8,16".

    Returns:
        The numbers.

    Raises:
        argparse.ArgumentTypeError: it is no such list.
    """
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = [-1]
    if min(values) < 0:
        raise argparse.ArgumentTypeError(f"'{text}'; allowed: numbers such as 8,16")
    return values


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the command line says.

    Args:
        arguments: of the command line; sys.argv's by default.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=numbers, default=[8, 16], help="[8,16]")
    parser.add_argument("--clients", type=numbers, default=[16, 64], help="[16,64]")
    parser.add_argument("--cores", type=numbers, default=[16, 8, 4], help="[16,8,4]")
    parser.add_argument("--busy", type=numbers, default=[0, 4], help="busy processes [0,4]")
    parser.add_argument("--seconds", type=float, default=5.5, help="of load a process [5.5]")
    parser.add_argument("--rounds", type=int, default=1, help="processes a setting [1]")
    parser.add_argument("--least", type=float, default=0.8, help="of the median second [0.8]")
    parser.add_argument("--out", type=pathlib.Path, help="CSV file of all runs")
    options = parser.parse_args(arguments)
    if min(options.groups + options.clients + options.cores) < 1:
        parser.error("--groups, --clients and --cores: at least 1")
    available = len(os.sched_getaffinity(0))
    if max(options.cores) > available:
        parser.error(f"--cores {max(options.cores)}; this machine has {available}")
    if not PROGRAM.exists():
        parser.error(f"{PROGRAM} is not there; build it first, see --help")

    all_settings = settings(options.groups, options.clients, options.cores, options.busy)
    runs: list[Run] = []
    failed = False
    total = options.rounds * len(all_settings)
    for number, setting in enumerate(all_settings * options.rounds):
        print(f"[{number + 1}/{total}] {setting}", end=" ", flush=True)
        try:
            runs.append(run(setting, options.seconds))
            print(runs[-1].seconds, flush=True)
        except RuntimeError as error:
            failed = True
            print(f"failed: {error}", flush=True)
        if options.out:
            write(options.out, runs)

    columns = ["groups", "clients", "cores", "busy", "seconds", "lowest", "median", "highest"]
    columns += ["ratio", "CPU seconds in the slowest second", "in the median one"]
    print(f"\n| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|")
    for of in summaries(runs):
        s = of.setting
        failed |= of.ratio < options.least
        print(
            f"| {s.groups} | {s.clients} | {s.cores} | {s.busy} | {of.count} | {of.lowest:,} | "
            f"{of.median:,.0f} | {of.highest:,} | {of.ratio:.2f} | {of.lowest_cpu:.2f} | "
            f"{of.median_cpu:.2f} |"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
