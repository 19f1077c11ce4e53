# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What does a busy neighbour cost a model in a hurry, if one model server serves both?

    scripts/build_front.sh
    python -m neighbours.served --csv FILE     # in benchmarks/

As neighbours.command does, but no Python runs for a call: the server answers by its front in C++,
and a load program in C++ makes the calls. The model in a hurry is the benchmark's recommender. It
first shows how much it can serve to 32 clients that call without a pause. Then it is called at
random times (Poisson), at parts of this capacity: alone, and beside each neighbour, a BERT that
clients call without a pause with few rows, or with many, whose kernels are longer. A latency counts
from when a call was due. A row's `calls` are those of its two loads after their warm-up, the
model's and the neighbour's. Each of their answers is compared with the model's, byte by byte; a
wrong one ends the setting.

Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing, and what
examples/serving/requirements.txt lists.

Exit status: 0; 1 if an answer is wrong, a call or a process fails; 2 for a wrong argument.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import model_server_load as server
from bench.fleet import clean_environment
from programs import TIMES_MEAN_NOTHING, above_zero, gpus_are_emulated, names_of, verdict, wholes

from neighbours import settings
from neighbours.command import append, common_columns

_HURRY, _CLIENTS, _CONNECTIONS = "hurry", 32, 64
_FIGURES = {"p50": "p50_ms", "p99": "p99_ms", "p999": "p999_ms", "longest": "max_ms"}
COLUMNS = (
    *("setting", "neighbour", "load_percent", "capacity_per_second", "rate_per_second"),
    *(f"{when}_{name}" for when in ("alone", "beside") for name in _FIGURES.values()),
    *("p99_ratio", "neighbour_alone_per_second", "neighbour_beside_per_second", "neighbour_ratio"),
    *("calls", "seconds", "commit", "machine", "date"),
)


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """A BERT with so many rows a call, and how many clients call it."""

    rows: int
    clients: int


_NEIGHBOURS = {"small": Neighbour(rows=0, clients=8), "large": Neighbour(rows=128, clients=2)}


SETTINGS = {
    name: setting for name, setting in settings.SETTINGS.items() if name.startswith("captured")
}


def measured(seconds: float, *commands: Sequence[object]) -> list[dict[str, Any]]:
    """What load programs say that begin at the same time; raises RuntimeError if one fails."""
    with contextlib.ExitStack() as stack:
        loads = server.ready_loads(stack, commands)
        said: list[dict[str, Any]] = server.figures_of(loads, seconds)
    for figures in said:
        if figures["failed"]:
            raise RuntimeError(f"{figures['failed']} calls failed, one with {figures['error']}")
        if wrong := figures["wrong"] + figures["close"]:
            raise RuntimeError(f"{wrong} answers are wrong")
    return said


def measure(
    address: str, folder: pathlib.Path, neighbours: Sequence[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yields a row for each neighbour and load, without what all rows have in common."""
    seconds = options.seconds

    def hurry(rate: float) -> list[object]:
        clients = _CONNECTIONS if rate else _CLIENTS
        return [server.LOAD, address, folder / _HURRY, clients, seconds, rate]

    def neighbour(name: str) -> list[object]:
        return [server.LOAD, address, folder / name, _NEIGHBOURS[name].clients, seconds]

    (capacity,) = measured(seconds, hurry(0))
    rates = {load: round(capacity["per_second"] * load / 100, 1) for load in options.loads}
    alone = {load: measured(seconds, hurry(rate))[0] for load, rate in rates.items()}
    for name in neighbours:
        (by_itself,) = measured(seconds, neighbour(name))
        for load, rate in rates.items():
            beside, it = measured(seconds, hurry(rate), neighbour(name))
            yield {
                "neighbour": name,
                "load_percent": load,
                "capacity_per_second": capacity["per_second"],
                "rate_per_second": rate,
                **{f"alone_{to}": alone[load][name] for name, to in _FIGURES.items()},
                **{f"beside_{to}": beside[name] for name, to in _FIGURES.items()},
                "p99_ratio": beside["p99"] / alone[load]["p99"],
                "neighbour_alone_per_second": by_itself["per_second"],
                "neighbour_beside_per_second": it["per_second"],
                "neighbour_ratio": it["per_second"] / by_itself["per_second"],
                "calls": beside["calls"] + it["calls"],
            }


def save_all(neighbours: Sequence[str], size: str, folder: pathlib.Path) -> None:
    """Saves the models, with their calls."""
    models = {_HURRY: ("recommender", 0), **{x: ("bert", _NEIGHBOURS[x].rows) for x in neighbours}}
    for name, (model, rows) in models.items():
        more = [model, size, str(rows), str(folder / name), name]
        command = [sys.executable, server.__file__, "--save", *more]
        subprocess.run(command, env=server.variables_of("stock", 1), check=True)


@contextlib.contextmanager
def serving(
    setting: settings.Setting, neighbours: Sequence[str], folder: pathlib.Path
) -> Iterator[str]:
    """The address of a server of all models."""
    command = [sys.executable, str(server.SERVER), "--port=0", "--rest-port=0"]
    command += [f"--front={server.FRONT}", "--device=/GPU:0"]
    for name in (_HURRY, *neighbours):
        command.append(f"--model={name}={folder}/{name}/model")
        groups = setting.hurry_groups if name == _HURRY else setting.neighbour_groups
        if groups:
            command.append(f"--groups={name}={groups[0]}-{groups[-1]}")
    log = folder / "server.log"
    variables = {**clean_environment(os.environ), **setting.variables}
    with log.open("w") as file:
        more = {"env": variables, "stdout": file, "stderr": subprocess.STDOUT}
        with server.running(command, **more) as process:
            yield server.address_of("grpc", process, log)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m neighbours.served", description=__doc__)
    add = parser.add_argument
    add("--csv", required=True, help="add the rows to this file")
    add("--settings", type=names_of(SETTINGS), default=tuple(SETTINGS), help=", ".join(SETTINGS))
    add("--neighbours", type=names_of(_NEIGHBOURS), default=tuple(_NEIGHBOURS), help="small, large")
    add("--loads", type=wholes(1, 100), default=(10, 30, 50), help="percent [10,30,50]")
    add("--seconds", type=above_zero, default=5.0, help="of each measurement [5]")
    add("--size", choices=server.SIZES, default="full", help="of the models [full]")
    add("--commit", default="", help="the repository's, for the rows")
    options = parser.parse_args(arguments)
    if not server.LOAD.exists():
        parser.error(f"{server.LOAD} is missing: scripts/build_front.sh builds it")
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    common = common_columns(options)
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="neighbours") as temporary:
        folder = pathlib.Path(temporary)
        save_all(options.neighbours, options.size, folder)
        for name in options.settings:
            try:
                with serving(SETTINGS[name], options.neighbours, folder) as address:
                    for row in measure(address, folder, options.neighbours, options):
                        full = {"setting": name, **row, **common}
                        append(options.csv, COLUMNS, full)
                        print(_said(full), flush=True)
            except RuntimeError as error:
                problems.append(f"{name}: {error}")
    status: int = verdict(problems)
    return status


def _said(row: Mapping[str, Any]) -> str:
    return (
        f"{row['setting']} beside {row['neighbour']}, {row['load_percent']} %: p99 "
        f"{row['alone_p99_ms']:.3f} -> {row['beside_p99_ms']:.3f} ms ({row['p99_ratio']:.2f}), "
        f"longest {row['beside_max_ms']:.2f} ms; the neighbour {row['neighbour_ratio']:.2f} of "
        f"{row['neighbour_alone_per_second']:.0f}/s"
    )


if __name__ == "__main__":
    sys.exit(main())
