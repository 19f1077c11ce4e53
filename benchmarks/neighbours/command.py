# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What does a busy neighbour on the GPU cost a tenant that is in a hurry?

    python -m neighbours.command --csv FILE     # in benchmarks/

In each setting, the tenant in a hurry, a recommender, first shows how much it can serve: 16 threads
call it without a pause. Then it is called at random times (Poisson), at parts of this capacity:
alone, and beside each neighbour, which calls without a pause. A latency counts from when a call was
due, whether or not a thread was free, so that a slow server is not asked less. The result of every
call is compared with what the model gave when it was called directly, bit by bit.

The clients are threads of Python. What is the measurement's own is in the columns `late_p99_ms`:
how late calls began for which a thread slept until they were due, by the timer and the GIL. A
latency of that size says nothing of the server. `no_thread` has the calls that were due while all
64 threads were in calls, and `unserved` those that were not begun within 1.5 times the measurement:
their latency is how long they had waited by then.

A setting has processes of its own; all are made at the start, and idle while others are measured.
Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing.

Exit status: 0; 1 if a result is wrong, a call or a process fails; 2 for a wrong argument.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.fleet import WorkerError, WorkerProcess, clean_environment
from bench.gpu import describe
from programs import (
    TIMES_MEAN_NOTHING,
    above_zero,
    gpus_are_emulated,
    names_of,
    verdict,
    wholes,
)

from neighbours.settings import SETTINGS, Setting

NEIGHBOURS = ("small", "training", "large")
_MPS = "CUDA_MPS_PIPE_DIRECTORY"
_MPS_DEFAULT = "/tmp/nvidia-mps"  # CUDA's
_LEAD_SECONDS = 0.2  # of a neighbour's first calls, which do not count
# A neighbour alone calls so often at least, if that takes at most so many times its measurement.
_FEWEST_CALLS, _MOST_WAITS = 10, 50
_OF_LOADS = ("calls", "p50_ms", "p99_ms", "p999_ms", "max_ms", "late_p99_ms", "no_thread")
_SUMS = ("unserved", "errors", "wrong")
COLUMNS = (
    *("setting", "neighbour", "load_percent", "capacity_per_second", "rate_per_second"),
    *(f"{when}_{name}" for when in ("alone", "beside") for name in _OF_LOADS),
    *("p99_ratio", "neighbour_alone_per_second", "neighbour_beside_per_second", "neighbour_ratio"),
    *(*_SUMS, "replayed", "neighbour_replayed", "seconds", "commit", "machine", "date"),
)
_TABLE = (
    ("setting", "setting", 17),
    ("neighbour", "neighbour", 9),
    ("load_percent", "load %", 6),
    ("rate_per_second", "calls/s", 8),
    ("alone_p50_ms", "p50 ms", 8),
    ("beside_p50_ms", "beside", 8),
    ("alone_p99_ms", "p99 ms", 8),
    ("beside_p99_ms", "beside", 8),
    ("p99_ratio", "ratio", 6),
    ("beside_p999_ms", "p99.9", 8),
    ("beside_max_ms", "max", 8),
    ("beside_late_p99_ms", "late p99", 8),
    ("neighbour_alone_per_second", "its/s", 8),
    ("neighbour_beside_per_second", "beside", 8),
    ("neighbour_ratio", "ratio", 6),
    ("wrong", "wrong", 5),
)


class Tenants:
    """The process, or the two, of a setting; methods raise WorkerError."""

    def __init__(
        self,
        setting: Setting,
        neighbours: Sequence[str],
        size: str,
        environment: Mapping[str, str],
        folder: pathlib.Path,
    ) -> None:
        spec = {"setting": setting.name, "size": size}
        roles = (
            [{"hurry": True, "neighbours": []}, {"hurry": False, "neighbours": neighbours}]
            if setting.apart
            else [{"hurry": True, "neighbours": neighbours}]
        )
        self._processes = [
            WorkerProcess(
                [sys.executable, "-m", "neighbours.worker", json.dumps({**spec, **role})],
                {**environment, **setting.variables},
                folder / f"{setting.name}-{i}.log",
            )
            for i, role in enumerate(roles)
        ]

    def tell(self, do: str) -> None:
        """Has all processes begin with something; `wait` waits."""
        for process in self._processes:
            process.tell({"do": do})

    def wait(self) -> None:
        for process in self._processes:
            process.answer()

    def hurry(self, do: str, seconds: float, **more: Any) -> dict[str, Any]:
        """Tells the tenant in a hurry something that takes so long."""
        return self._ask(self._processes[0], {"do": do, "seconds": seconds, **more}, seconds)

    def neighbour(self, do: str, **more: Any) -> dict[str, Any]:
        return self._ask(self._processes[-1], {"do": do, **more})

    def stop(self) -> None:
        for process in self._processes:
            process.stop()

    def _ask(
        self, process: WorkerProcess, command: Mapping[str, Any], seconds: float = 0.0
    ) -> dict[str, Any]:
        process.tell(command)
        answer: dict[str, Any] = process.answer(2 * seconds)
        return answer


def measure(
    tenants: Tenants, neighbours: Sequence[str], loads: Sequence[int], seconds: float
) -> Iterator[dict[str, Any]]:
    """Yields a row for each neighbour and load, without what all rows have in common."""
    tenants.tell("warm")
    tenants.wait()
    first = tenants.hurry("capacity", seconds / 2)
    capacity = first["per_second"]
    rates = {load: capacity * load / 100 for load in loads}
    alone = {load: tenants.hurry("load", seconds, rate=rates[load]) for load in loads}
    for name in neighbours:
        tenants.neighbour("begin", neighbour=name)
        time.sleep(_LEAD_SECONDS)
        by_itself = [tenants.neighbour("count")]
        for _ in range(_MOST_WAITS):
            time.sleep(seconds / 2)
            by_itself[1:] = [tenants.neighbour("count")]
            if by_itself[1]["calls"] - by_itself[0]["calls"] >= _FEWEST_CALLS:
                break
        for load in loads:
            counts = [tenants.neighbour("count")]
            beside = tenants.hurry("load", seconds, rate=rates[load])
            counts.append(tenants.neighbour("count"))
            yield {
                "neighbour": name,
                "load_percent": load,
                "capacity_per_second": capacity,
                "rate_per_second": rates[load],
                **compared(alone[load], beside, _rate(by_itself), _rate(counts)),
                "neighbour_replayed": _share_replayed(by_itself),
                # Of what was measured first, which has no row.
                "wrong": first["wrong"] + alone[load]["wrong"] + beside["wrong"],
                "failure": alone[load]["failure"] or beside["failure"],
            }
        tenants.neighbour("end")


def compared(
    alone: Mapping[str, Any], beside: Mapping[str, Any], its_alone: float, its_beside: float
) -> dict[str, Any]:
    """The figures of two loads, and the neighbour's calls a second without and with the second."""
    return {
        **{f"alone_{name}": alone[name] for name in _OF_LOADS},
        **{f"beside_{name}": beside[name] for name in _OF_LOADS},
        **{name: alone[name] + beside[name] for name in _SUMS},
        "p99_ratio": _ratio(beside["p99_ms"], alone["p99_ms"]),
        "neighbour_alone_per_second": its_alone,
        "neighbour_beside_per_second": its_beside,
        "neighbour_ratio": _ratio(its_beside, its_alone),
        "replayed": alone["replayed"],
    }


def _rate(counts: Sequence[Mapping[str, Any]]) -> float:
    first, last = counts
    return float((last["calls"] - first["calls"]) / (last["at"] - first["at"]))


def _share_replayed(counts: Sequence[Mapping[str, Any]]) -> float:
    started, replayed = (counts[1][name] - counts[0][name] for name in ("started", "replayed"))
    return float(replayed / max(1, started))


def _ratio(value: float, to: float) -> float:
    return value / to if to else float("nan")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parse(arguments)
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    common = common_columns(options)
    problems: list[str] = []
    print(" ".join(f"{title:>{width}}" for _, title, width in _TABLE), flush=True)
    with tempfile.TemporaryDirectory(prefix="neighbours") as folder:
        started = _start(options, pathlib.Path(folder), problems)
        try:
            for name, tenants in started.items():
                try:
                    for row in measure(tenants, options.neighbours, options.loads, options.seconds):
                        full = {"setting": name, **row, **common}
                        problems += _problems(full)
                        print(_line(full), flush=True)
                        append(options.csv, COLUMNS, full)
                except WorkerError as error:
                    problems.append(f"{name}: {error}")
                tenants.stop()
        finally:
            for tenants in started.values():
                tenants.stop()
    status: int = verdict(problems)
    return status


def _start(
    options: argparse.Namespace, folder: pathlib.Path, problems: list[str]
) -> dict[str, Tenants]:
    """Starts the processes of all settings, as many at a time as there are cores."""
    environment = clean_environment(os.environ)
    (no_mps := folder / "no_mps").mkdir()
    found: dict[str, Tenants] = {}
    at_a_time = len(os.sched_getaffinity(0))
    for first in range(0, len(options.settings), at_a_time):
        now = {}
        for name in options.settings[first : first + at_a_time]:
            setting = SETTINGS[name]
            pipes = os.environ.get(_MPS, _MPS_DEFAULT) if setting.mps else str(no_mps)
            now[name] = Tenants(
                setting,
                options.neighbours,
                options.size,
                {**environment, _MPS: pipes},
                folder,
            )
        for then in ("make", None):  # the imports have ended, and then the models are made
            for name in list(now):
                try:
                    now[name].wait()
                    if then:
                        now[name].tell(then)
                except WorkerError as error:
                    problems.append(f"{name}: {error}")
                    now.pop(name).stop()
        found.update(now)
    return found


def _problems(row: Mapping[str, Any]) -> list[str]:
    where = f"{row['setting']} beside {row['neighbour']}, {row['load_percent']} %"
    found = [f"{where}: {row['wrong']} results are wrong"] if row["wrong"] else []
    if row["errors"]:
        found.append(f"{where}: {row['errors']} calls failed, one with {row['failure']}")
    return found


def _line(row: Mapping[str, Any]) -> str:
    """A row of the printed table."""
    return " ".join(f"{_said(row[name]):>{width}}" for name, _, width in _TABLE)


def _said(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def append(path: str, columns: Sequence[str], row: Mapping[str, Any]) -> None:
    """Adds a row to the file, with a header if it is new."""
    rounded = {name: f"{x:.6g}" if isinstance(x := row[name], float) else x for name in columns}
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(rounded)


def common_columns(options: argparse.Namespace) -> dict[str, Any]:
    """What all rows have in common."""
    return {
        "seconds": options.seconds,
        "commit": options.commit or _commit(),
        "machine": "emulated" if gpus_are_emulated() else describe()["gpu"],
        "date": datetime.date.today().isoformat(),
    }


def _commit() -> str:
    """The repository's commit; empty in a copy without Git."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    folder = pathlib.Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m neighbours.command",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    settings = "\n".join(f"  {name}: {setting.title}" for name, setting in SETTINGS.items())
    add("--csv", required=True, help="add the rows to this file")
    add("--settings", type=names_of(SETTINGS), help=f"by default all that can run:\n{settings}")
    add("--neighbours", type=names_of(NEIGHBOURS), default=NEIGHBOURS, help=", ".join(NEIGHBOURS))
    add("--loads", type=wholes(1, 100), default=(10, 30, 50), help="percent [10,30,50]")
    add("--seconds", type=above_zero, default=5.0, help="of each measurement [5]")
    add("--size", choices=("small", "full"), default="full", help="of the neighbours [full]")
    add("--commit", help="what the column says, where there is no Git repository")
    add(
        "--mps",
        action="store_true",
        default=_MPS in os.environ,
        help=f"the daemon of NVIDIA's MPS runs (nvidia-cuda-mps-control -d), as {_MPS} says, too",
    )
    options = parser.parse_args(arguments)
    if options.settings is None:
        options.settings = [x.name for x in SETTINGS.values() if options.mps or not x.mps]
    for name in options.settings:
        if SETTINGS[name].mps and not options.mps:
            parser.error(f"--settings {name} needs --mps, and the daemon of MPS")
    path = pathlib.Path(options.csv)
    if path.exists() and path.stat().st_size:
        with path.open(newline="") as file:
            if next(csv.reader(file)) != list(COLUMNS):
                parser.error(f"--csv {path} has other columns; name another file")
    return options


if __name__ == "__main__":
    sys.exit(main())
