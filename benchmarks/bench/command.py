# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures TensorFlow with stream groups and its peers on workloads of the field.

The peers do the same work, with the same weights, in turn within one run; each configuration in
processes of its own, and every result is compared with that of stock TensorFlow on one stream.
docs/benchmarks.md says how, and what each column means.

    python benchmarks/bench/main.py --quick
    python benchmarks/bench/main.py --minutes 25 --json results.json --html report.html
    python benchmarks/bench/main.py --load results.json --compare older.json

Peers that are not installed are skipped, by name. With TF_MULTI_STREAM_EMULATED_GPUS=1 it runs on
an emulated GPU, of which times mean nothing.

Exit status: 0; 1 if something failed, a result was wrong or, with --compare, something is slower
beyond noise; 2 if the command line is not understood.
"""

import argparse
import datetime
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from typing import Any

from programs import (
    TIMES_MEAN_NOTHING,
    above_zero,
    gpus_are_emulated,
    names_of,
    whole,
    wholes,
)

from . import gpu
from .fleet import missing
from .peers import PEERS, Peer
from .results import Results, ResultsError, load, merge
from .run import Effort, Run
from .sweep import QUICK, Sweep
from .tables import best_table, compare, wrong_table
from .workloads import WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def pair_of(form: str, names: Collection[str] = ()) -> Callable[[str], tuple[str, str]]:
    """Makes a parser of an option of this form, NAME=VALUE, with one of the names if there are."""

    def parse(text: str) -> tuple[str, str]:
        name, found, value = text.partition("=")
        if not name or not found or (names and (name not in names or not value)):
            allowed = f" with one of {', '.join(sorted(names))}" if names else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not {form}{allowed}")
        return name, value

    return parse


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers, file = wholes(1, 64), pathlib.Path

    def add(name: str, kind: Any, about: str, **more: Any) -> None:
        parser.add_argument(name, type=kind, help=about, **more)

    quick = "small models, 1 round, few settings: a minute or two"
    parser.add_argument("--quick", action="store_true", help=quick)
    for name, of, known in (("--only", "WORKLOADS", WORKLOADS), ("--peers", "PEERS", PEERS)):
        about = f"some of {', '.join(known)} [all]"
        add(name, names_of(known), about, default=list(known), metavar=of)
    add("--clients", numbers, "threads that query [1,4,8,16]")
    add("--groups", numbers, "stream groups [1,4,8,16]")
    add("--copies", numbers, "virtual devices, and processes [4,8]")
    add("--rounds", whole(1, 100), "measurements of each configuration [3]")
    add("--seconds", above_zero, "of each measurement [1]")
    warm = "after which a configuration counts as warm, if it is not before [8]"
    add("--warm", above_zero, warm, metavar="SECONDS")
    left_out = "of all; what there is no time for is left out, and named [600]"
    add("--minutes", above_zero, left_out, default=600.0)
    parser.add_argument("--size", choices=("small", "full"), help="of the models [full]")
    packages = {peer.program[1] for peer in PEERS.values()}
    python, variable = pair_of("PACKAGE=PYTHON", packages), pair_of("NAME=VALUE")
    add(
        "--python",
        python,
        "the interpreter that has a package, as torch=~/torch/bin/python",
        action="append",
        default=[],
        metavar="PACKAGE=PYTHON",
    )
    add(
        "--set",
        variable,
        "a variable of peers with stream groups, as TF_GPU_STREAM_MERGE=true",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="variables",
    )
    one_run = "measure nothing: read such files, of runs that belong together"
    add("--json", file, "write all that was measured", metavar="FILE")
    add("--load", file, one_run, nargs="+", metavar="FILE")
    add("--html", file, "write a report, one page", metavar="FILE")
    drawn = "write its pictures: SVG, light and dark in one, and PNG"
    add("--pictures", file, drawn, metavar="FOLDER")
    add("--compare", file, "say what is faster and slower", metavar="OLD.json")
    options = parser.parse_args(arguments)
    default, seconds, rounds, warm_seconds = (
        (QUICK, 0.1, 1, 0.2) if options.quick else (Sweep(), 1.0, 3, 8.0)
    )
    options.sweep = Sweep(
        clients=options.clients or default.clients,
        groups=options.groups or default.groups,
        copies=options.copies or default.copies,
    )
    options.effort = Effort(
        seconds=options.seconds or seconds,
        rounds=options.rounds or rounds,
        warm_seconds=options.warm or warm_seconds,
        minutes=options.minutes,
    )
    options.size = options.size or ("small" if options.quick else "full")
    return options


def available_peers(options: argparse.Namespace, skipped: dict[str, str]) -> list[Peer]:
    """Finds the peers that can run here; those that cannot are put into `skipped`, with why."""
    pythons = dict(options.python)
    found = []
    for peer in (PEERS[name] for name in options.peers):
        package = peer.program[1]
        python = pythons.get(package, sys.executable)
        if why := missing(peer.needs_gpu, package, peer.mps, python):
            skipped[peer.name] = why
        else:
            found.append(peer)
    return found


def _machine() -> dict[str, str]:
    information = pathlib.Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    cpu = found[1] if found else platform.processor() or platform.machine()
    return {"cpu": cpu, "cores": str(len(os.sched_getaffinity(0))), **gpu.describe()}


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def measure(options: argparse.Namespace, arguments: Sequence[str]) -> Results:
    """Runs the sweep of the command line; returns what was measured."""
    results = Results(
        date=datetime.date.today().isoformat(),
        command=shlex.join(["python", "benchmarks/bench/main.py", *arguments]),
        commit=_commit(),
        machine=_machine(),
        emulated=gpus_are_emulated(),
        seconds=options.effort.seconds,
        size=options.size,
        memory=(
            "taken from the GPU by all processes" if gpu.is_there() else "most in use by tensors"
        ),
    )
    peers = available_peers(options, results.skipped)
    for name, why in results.skipped.items():
        print(f"skipped: {name}: {why}", flush=True)

    def save() -> None:
        if options.json:
            results.save(options.json)

    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            results,
            peers,
            options.sweep,
            options.effort,
            dict(options.python),
            dict(options.variables),
            pathlib.Path(folder),
            lambda line: print(line, flush=True),
            save,
        )
        run.all([WORKLOADS[name] for name in options.only])
    save()
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    try:
        # Before anything is measured in vain.
        older = load(options.compare) if options.compare else None
        if options.html or options.pictures:
            from . import report  # noqa: PLC0415 (needs matplotlib)
        given = sys.argv[1:] if arguments is None else arguments
        if options.load:
            results = merge([load(path) for path in options.load])
        else:
            results = measure(options, given)
        print(best_table(results))
        if options.html:
            options.html.write_text(report.page(results), encoding="utf-8")
        if options.pictures:
            report.write_pictures(results, options.pictures)
    except (ImportError, ResultsError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    for line in results.left_out:
        print(f"no time: {line}")
    if results.bad:
        print(wrong_table(results), file=sys.stderr)
    slower = False
    if older is not None:
        comparison = compare(older, results)
        print(comparison)
        slower = comparison.slower
    if results.emulated:
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    if results.left_out and not results.measured:
        print("bench: nothing was measured: --minutes has to be more", file=sys.stderr)
        return 1
    return int(bool(results.bad) or slower)
