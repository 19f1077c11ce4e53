# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Runs all kinds of work side by side for as long as you like, and verifies every result.

Serving, training, variables that are changed while they are read, sessions that come and go,
cancellations, full memory, calls pinned to groups, policies and big feeds: each round draws some of
them and the settings of its process from the seed, and runs them in one process. Each result is
compared, bit by bit, with what a process with one stream group gave. Memory, threads and open files
are watched, and so is whether every worker gets on.

    python benchmarks/soak/soak.py --minutes 20 --seed 7
    python benchmarks/soak/soak.py --gpu --groups 8 --minutes 20

It needs TensorFlow's multi-stream wheel, NumPy and nothing else. Without --gpu it runs on an
emulated GPU, of which rates and gaps mean nothing.

Exit status: 0; 1 if anything is wrong, hangs, fails in a way that it should not, or grows; 2 if the
command line is not understood.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from draw import FAULTS, GPU_ONLY, KINDS, Round, draw_rounds
from report import Outcome, report

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from programs import above_zero, whole

HERE = pathlib.Path(__file__).resolve().parent
# Seconds without a result, after which a worker hangs; the sanitizer is slow.
HANG_SECONDS, SANITIZED_HANG_SECONDS = 90, 180
# Until a process's first sample: TensorFlow's import, all models, and their first results.
START_SECONDS = 300
# A round that would be shorter is not begun.
LEAST_SECONDS = 20
# Between two lines of progress, where the line cannot be written over.
PROGRESS_SECONDS = 10


class Soak:
    """Runs rounds, whose logs and files are in the folder."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self._options = options
        self._folder = folder
        self._began = time.monotonic()
        self._shown = 0.0
        self.loaded = 0  # seconds of load, of rounds that have ended

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def make_reference(self) -> str:
        """Makes the results of one stream; returns what went wrong."""
        settings = {
            "TF_GPU_STREAM_GROUP_COUNT": "1",
            "TF_DETERMINISTIC_OPS": "1",
            "TF_MULTI_STREAM_CAPTURE": "off",
        }
        if not self._options.gpu:
            settings["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
        kinds = [k for k in KINDS if self._options.gpu or k not in GPU_ONLY]
        workers = dict.fromkeys(self._options.only or kinds, 1)
        return self._run(Round(-1, 0, 0, settings, workers), "reference", make_reference=True)

    def run_round(self, round_: Round) -> Outcome:
        """Runs a round in a process of its own."""
        name = f"round-{round_.number}"
        outcome = Outcome(round_)
        problem = self._run(round_, name, make_reference=False)
        self.loaded += round_.seconds
        path = self._folder / f"{name}.outcome.json"
        if path.exists():
            outcome = dataclasses.replace(outcome, **json.loads(path.read_text()))
        outcome.problems += [problem] if problem else []
        return outcome

    def _run(self, round_: Round, name: str, make_reference: bool) -> str:
        options = self._options
        files, log = self._folder / name, self._folder / f"{name}.log"
        files.mkdir()
        hang_seconds = SANITIZED_HANG_SECONDS if round_.sanitized else HANG_SECONDS
        plan = {
            "seed": round_.seed,
            "seconds": round_.seconds,
            "workers": round_.workers,
            "hang_seconds": options.hang_seconds or hang_seconds,
            "make_reference": make_reference,
            "reference": str(self._folder / "reference.npz"),
            "outcome": str(self._folder / f"{name}.outcome.json"),
            "break": None if make_reference else options.break_,
            "place": {
                "gpu": options.gpu,
                "groups": 1 if make_reference else options.groups,
                "node_level": round_.node_level,
                "policy": round_.policy,
                "seed": options.seed,
                "folder": str(files),
                "memory_mib": options.memory_mib,
            },
        }
        path = self._folder / f"{name}.plan.json"
        path.write_text(json.dumps(plan, indent=1))
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "one_round.py"), str(path)],
                env=environment(round_.settings, options.break_),
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
            silent = self._follow(process, name, plan["hang_seconds"])
        if silent:
            end = f"it said nothing for {silent:.0f} s, and was ended"
        elif process.returncode < 0:
            end = f"it was ended by {signal.Signals(-process.returncode).name}"
        elif process.returncode:
            end = f"it ended with status {process.returncode}"
        else:
            return ""
        lines = log.read_text(errors="replace").splitlines()
        return "\n    ".join([f"{end}; all it wrote is in {log}, whose end is:", *lines[-12:]])

    def _follow(self, process: subprocess.Popen[bytes], name: str, hang_seconds: float) -> float:
        """Shows what a process says; returns the seconds of silence after which it was ended."""
        assert process.stdout is not None
        allowed: float = START_SECONDS
        buffer = b""
        while True:
            ready, _, _ = select.select([process.stdout], [], [], allowed)
            if not ready:
                # Its handler writes the stacks of its Python threads.
                process.send_signal(signal.SIGABRT)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                return allowed
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                process.wait()
                if sys.stdout.isatty():
                    print("\r\033[K", end="", flush=True)
                return 0
            *lines, buffer = (buffer + chunk).split(b"\n")
            if lines:
                # It writes stacks itself first, for some minutes if there is a debugger.
                allowed = hang_seconds + 240
                self._show(name, json.loads(lines[-1]))

    def _show(self, name: str, said: dict[str, Any]) -> None:
        """Shows how far it is: one line on a terminal, or a line now and then."""
        terminal = sys.stdout.isatty()
        if not terminal and time.monotonic() - self._shown < PROGRESS_SECONDS:
            return
        self._shown = time.monotonic()
        text = (
            f"[{self.seconds:5.0f} s] {name}:"
            f" {said['results']:,} results, {said['wrong']} wrong,"
            f" {said['unexpected']} unexpected errors, {said['resident_mib']:.0f} MiB,"
            f" {said['threads']} threads"
        )
        print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", flush=True)


def environment(settings: dict[str, str], broken: str | None) -> dict[str, str]:
    """The environment of a round: none of our variables but its own."""
    ours = ("TF_GPU_", "TF_MULTI_STREAM_", "TF_NODE_LEVEL_", "TF_PER_STREAM_", "TF_SEGMENT_OWN_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    if broken in FAULTS:
        kept["TF_MULTI_STREAM_TEST_FAULTS"] = "true"
        kept["TF_MULTI_STREAM_SANITIZER"] = "log"  # which finds them
    return {**kept, **settings}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--gpu", action="store_true", help="use the GPU, not an emulated one")
    add("--minutes", type=above_zero, default=5.0, help="of load, in all rounds [5]")
    add("--seed", type=whole(0, 10**9), help="draws the rounds [drawn, and printed]")
    add("--groups", type=whole(2, 64), default=4, help="stream groups [4]")
    add("--out", type=pathlib.Path, help="new folder for logs [a temporary one]")
    add("--only", nargs="+", choices=KINDS, help="only these kinds of work")
    add("--workers", type=whole(2, 64), help="threads of each kind of work [drawn]")
    memory = "of the GPU for all groups; steps then wait for memory, and may fail [all it has]"
    add("--memory-mib", type=int, default=0, help=memory)
    add("--rounds", type=int, nargs="+", help="only the rounds of these numbers")
    add("--hang-seconds", type=float, help="without a result [90; sanitizer 180]")
    mistake = "make a mistake on purpose, which has to be noticed"
    add("--break", dest="break_", choices=("bit", "hang", *FAULTS), help=mistake)
    options = parser.parse_args(arguments)
    if options.memory_mib and options.memory_mib < 64 * options.groups:
        parser.error(f"--memory-mib {options.memory_mib} is less than 64 for each group")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options


def restricted(
    round_: Round, only: Sequence[str] | None, threads: int | None, left: float, total: float
) -> Round:
    """A round with the kinds of work and the threads that are wanted, no longer than there is time.

    Of the `total` seconds there should be three rounds at least: the first is at graph level, the
    second one at node level.
    """
    seconds = int(max(LEAST_SECONDS, min(round_.seconds, left, total / 3)))
    workers = {k: threads or n for k, n in round_.workers.items() if only is None or k in only}
    return dataclasses.replace(round_, workers=workers, seconds=seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    folder = options.out or pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"soak: --out {folder} is not empty: name a new folder", file=sys.stderr)
        return 2
    where = "the GPU" if options.gpu else "an emulated GPU: rates and gaps mean nothing"
    print(
        f"{datetime.datetime.now():%Y-%m-%d %H:%M}, seed {options.seed}, {options.groups} stream"
        f" groups of {where}\nlogs are in {folder}\n"
        "the results of one stream, in a process with one stream group",
        flush=True,
    )
    soak = Soak(options, folder)
    if problem := soak.make_reference():
        print(f"error: {problem}", file=sys.stderr)
        return 1
    outcomes: list[Outcome] = []
    total = 60 * options.minutes
    for drawn in draw_rounds(options.seed, options.groups, options.gpu):
        left = total - soak.loaded
        if left < LEAST_SECONDS and outcomes:
            break
        if options.rounds and drawn.number > max(options.rounds):
            break
        round_ = restricted(drawn, options.only, options.workers, left, total)
        if (options.rounds and drawn.number not in options.rounds) or not round_.workers:
            continue
        print(round_, flush=True)
        outcome = soak.run_round(round_)
        outcomes.append(outcome)
        for failure in outcome.failures():
            print(f"  FAILED: {failure}", flush=True)
    print(f"\n{report(outcomes, soak.seconds)}", flush=True)
    return int(not outcomes or any(outcome.failures() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
