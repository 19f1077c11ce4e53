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
"""Compares policies that choose stream groups with hand marks and with one stream.

Models of many branches (`branchy_models.py`) are trained, and asked with a batch of
one, in setups that differ in who says what runs on which stream group:

    stock       nobody: stock TensorFlow, no variable of ours
    one_stream  nobody: node level with groups that no node is given
    hand_marks  the model's own tf.cuda.stream_scope around each branch
    embedding, full_graph, cost
                the runtime, by TF_MULTI_STREAM_POLICY

Each measurement is a process of its own. The rounds interleave the setups, so that a
machine that slows down slows all of them down, and the table holds the median of the
rounds of the median time of a step; its ratio is the time of one_stream to that of the
setup. All results of all steps, and the weights at the end, must be the same bits as
those of the first setup. Ops are deterministic
(tf.config.experimental.enable_op_determinism).

    python benchmarks/benchmark_policies.py --groups 4 --rounds 3
    python benchmarks/benchmark_policies.py --models nasnet --modes training --cells 8

Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for one: results are compared
all the same, with those of one_stream, since stock TensorFlow has no emulated GPU, and
the times mean nothing.

Exit status: 0, 1 if a run failed or a result differed, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmark_inference import EMULATION, order_of_round
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import whole
from policy_setups import ONE_STREAM, POLICY, SETUPS, STOCK, Setup, environment_of

MODELS = ("inception", "nasnet", "dlrm")
MODES = ("training", "inference")

# Measures in a process of its own; the options follow.
CHILD = (sys.executable, str(pathlib.Path(__file__).resolve()), "--here")

# What is shown of a run that failed: so many lines, none that says nothing about it.
LAST_LINES = 8
NOISE = ("I0000 ", "WARNING: All log messages before absl::InitializeLog()")


@dataclasses.dataclass(frozen=True)
class Work:
    """What is measured in each setup.

    Args:
        model: its name.
        mode: training or inference.
    """

    model: str
    mode: str


@dataclasses.dataclass
class Runs:
    """What the rounds of one setup gave for one model and mode.

    Args:
        figures: of each round that ended well, as `branchy_models.measure` makes them.
        failures: what went wrong in the others.
    """

    figures: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)

    def median(self, name: str) -> float:
        """Median of a figure over the rounds."""
        return float(statistics.median(figures[name] for figures in self.figures))

    @property
    def groups(self) -> int:
        """The most stream groups that had work in a round."""
        return max(len(figures["groups"]) for figures in self.figures)

    def same_bits(self, sha256: str) -> bool:
        """Whether the results of all rounds have this SHA-256."""
        return all(figures["sha256"] == sha256 for figures in self.figures)


Results = dict[Work, dict[Setup, Runs]]


def by_hand(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The line for a shell with this environment's process that runs a command as we do."""
    removed = [f"--unset={name}" for name in os.environ if name not in environment]
    pairs = environment.items()
    added = [f"{name}={value}" for name, value in pairs if os.environ.get(name) != value]
    return shlex.join(["env", *removed, *added, *command])


def parse_figures(output: str) -> dict[str, Any] | None:
    """Finds the figures in what a run wrote.

    Args:
        output: lines; TensorFlow or a library may have written some of them.

    Returns:
        The figures of the last line that is a JSON object, None if there is none.
    """
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            try:
                figures = json.loads(line)
            except ValueError:
                continue
            if "step_ms" in figures:
                return dict(figures)
    return None


class Benchmark:
    """Runs setups and collects what they print.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._notes: set[str] = set()

    def measure(self, work: Work, setup: Setup, runs: Runs) -> None:
        """Runs a setup once and adds what came out to `runs`."""
        environment = environment_of(setup, self._options.groups, os.environ)
        command = [*CHILD, *self._arguments(work, setup)]
        line = by_hand(command, environment)
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._options.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            seconds = self._options.timeout
            runs.failures.append(f"killed after {seconds} s; try a longer --timeout, or: {line}")
            return
        figures = parse_figures(done.stdout) if done.returncode == 0 else None
        if figures is None:
            lines = [text for text in done.stderr.splitlines() if not text.startswith(NOISE)]
            last = "".join(f"\n    {text}" for text in lines[-LAST_LINES:] or ["(nothing)"])
            runs.failures.append(
                f"exit status {done.returncode} and no figures; its last lines:{last}\n"
                f"  Correct what they name, or run it alone to see all of it: {line}"
            )
            return
        runs.figures.append(figures)
        if reports := figures.get("sanitizer_reports"):
            runs.failures.append(f"the stream sanitizer has {reports} reports; see: {line}")
        self._note(done.stderr)

    def _note(self, text: str) -> None:
        """Shows each line once that says that a policy has no effect."""
        for line in text.splitlines():
            note = line.rpartition("] ")[2]
            if POLICY in line and "no effect" in line and note not in self._notes:
                self._notes.add(note)
                print(f"benchmark_policies: note: {note}", file=sys.stderr, flush=True)

    def _arguments(self, work: Work, setup: Setup) -> list[str]:
        numbers = ["steps", "warmup", *SIZES]
        return [
            f"--models={work.model}",
            f"--modes={work.mode}",
            f"--setups={setup.name}",
            *(f"--{name.replace('_', '-')}={getattr(self._options, name)}" for name in numbers),
        ]


def references(results: Results) -> dict[Work, str]:
    """The SHA-256 that results must have: of the first setup, in its first good round."""
    return {
        work: next((figures["sha256"] for figures in next(iter(setups.values())).figures), "")
        for work, setups in results.items()
    }


def table(results: Results) -> str:
    """Makes the Markdown table.

    Args:
        results: what each setup gave; the results' bits are compared with the first one's.

    Returns:
        The table, a line for each model, mode and setup.
    """
    lines = [
        "| model | mode | setup | ms | ratio | waits | groups | same bits |",
        "|" + " --- |" * 8,
    ]
    expected = references(results)
    for work, setups in results.items():
        one = setups.get(ONE_STREAM, Runs())
        for setup, runs in setups.items():
            start = f"| {work.model} | {work.mode} | {setup.name} |"
            if not runs.figures:
                lines.append(f"{start} failed |" + " |" * 4)
                continue
            ratio = f"{one.median('step_ms') / runs.median('step_ms'):.2f}" if one.figures else ""
            same = ("yes" if runs.same_bits(expected[work]) else "no") if expected[work] else ""
            cells = [
                f"{runs.median('step_ms'):.3f}",
                ratio,
                f"{runs.median('waits'):.1f}" if setup.groups else "",
                f"{runs.groups}" if setup.groups else "",
                same,
            ]
            lines.append(f"{start} {' | '.join(cells)} |")
    return "\n".join(lines)


def failures(results: Results) -> list[str]:
    """Says what went wrong: runs that failed, and results that differ.

    Args:
        results: what each setup gave.

    Returns:
        A text for each; none if all is well.
    """
    texts: list[str] = []
    expected = references(results)
    for work, setups in results.items():
        first = next(iter(setups))
        for setup, runs in setups.items():
            name = f"{work.model}, {work.mode}, {setup.name}"
            texts.extend(f"{name}: {failure}" for failure in runs.failures)
            if expected[work] and not runs.same_bits(expected[work]):
                ends, right = (
                    sorted({(figures["first"], figures["last"]) for figures in of.figures})
                    for of in (runs, setups[first])
                )
                texts.append(
                    f"{name}: its results are not the bits of {first.name}; first and last of its"
                    f" rounds: {ends}, of {first.name}: {right}. TF_MULTI_STREAM_SANITIZER=log"
                    " names uses of memory that nothing orders"
                )
    return texts


# Sizes of the models: the lowest, default, highest value and meaning of each.
SIZES: dict[str, tuple[int, int, int, str]] = {
    "batch": (1, 32, 65_536, "rows of a step of training"),
    "inference_batch": (1, 1, 65_536, "rows of a call of inference"),
    "image": (4, 32, 1024, "inception, nasnet: height and width"),
    "channels": (1, 16, 4096, "inception, nasnet: of each branch"),
    "blocks": (1, 4, 256, "inception: blocks of four branches"),
    "cells": (1, 4, 256, "nasnet: cells of ten branches"),
    "lookups": (1, 26, 1024, "dlrm: embedding tables"),
    "rows": (1, 1000, 100_000_000, "dlrm: of a table"),
    "dim": (1, 16, 4096, "dlrm: of an embedding"),
    "lookup_layers": (0, 1, 64, "dlrm: dense layers of each lookup"),
    "seed": (0, 20260, 2**31 - 1, "of weights and inputs"),
}


def names(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Makes a parser of an option that takes some of the `allowed` names, in their order."""

    def parse(text: str) -> list[str]:
        given = [part.strip() for part in text.split(",")]
        for name in given:
            if name not in allowed:
                raise argparse.ArgumentTypeError(
                    f"{name!r} in {text!r} is not one of {', '.join(allowed)};"
                    " give one or more of them with commas between"
                )
        return [name for name in allowed if name in given]

    return parse


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    for name, allowed in (("models", MODELS), ("modes", MODES), ("setups", tuple(SETUPS))):
        text = f"some of {','.join(allowed)} [all]"
        add(f"--{name}", type=names(allowed), default=list(allowed), help=text)
    add("--groups", type=whole(2, 64), default=4, help="stream groups [4]")
    add("--rounds", type=whole(1, 1000), default=3, help="[3]")
    add("--steps", type=whole(1, 1_000_000), default=200, help="measured, a run [200]")
    add(
        "--warmup",
        type=whole(0, 1_000_000),
        default=100,
        help="steps before them: traces, and the policy cost measures by itself [100]",
    )
    for name, (low, default, high, meaning) in SIZES.items():
        option = f"--{name.replace('_', '-')}"
        add(option, type=whole(low, high), default=default, help=f"{meaning} [{default}]")
    add("--timeout", type=whole(1, 86_400), default=600, help="seconds of a run [600]")
    add("--json", type=pathlib.Path, metavar="FILE", help="write all figures of all rounds")
    add(
        "--here",
        action="store_true",
        help="measure one model, mode and setup in this process, whose variables are not"
        " changed, and print a line of JSON",
    )
    options = parser.parse_args(arguments)
    if options.rows < max(options.batch, options.inference_batch):
        parser.error(
            f"--rows {options.rows} is less than a batch of"
            f" {max(options.batch, options.inference_batch)}, whose ids all differ; give more"
        )
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"--json {options.json}: there is no such folder; make it")
    if options.here:
        for name in ("models", "modes", "setups"):
            if len(getattr(options, name)) != 1:
                parser.error(f"--here measures one alone: give one name to --{name}")
    elif os.environ.get(EMULATION, "") not in ("", "0") and STOCK.name in options.setups:
        print("benchmark_policies: no stock: stock TensorFlow has no emulated GPU", file=sys.stderr)
        options.setups.remove(STOCK.name)
        if not options.setups:
            parser.error("--setups stock needs a GPU: name others, or unset " + EMULATION)
    return options


def measure_here(options: argparse.Namespace) -> int:
    """Measures in this process and prints the figures; returns the exit status."""
    # It loads TensorFlow, which the process that starts the others does not need.
    branchy_models: Any = importlib.import_module("branchy_models")
    marks = SETUPS[options.setups[0]].marks
    try:
        figures = branchy_models.measure(options.models[0], options.modes[0], options, marks)
    except RuntimeError as error:
        print(f"benchmark_policies: {error}", file=sys.stderr)
        return 1
    print(json.dumps(figures), flush=True)
    return 0


def run_rounds(options: argparse.Namespace) -> Results:
    """Measures everything, and says so on stderr.

    Args:
        options: of the command line.

    Returns:
        What came out.
    """
    setups = [SETUPS[name] for name in options.setups]
    results: Results = {
        Work(model, mode): {setup: Runs() for setup in setups}
        for model in options.models
        for mode in options.modes
    }
    benchmark = Benchmark(options)
    for number in range(options.rounds):
        for work, of_work in results.items():
            for setup in order_of_round(setups, number):
                runs = of_work[setup]
                failed = len(runs.failures)
                benchmark.measure(work, setup, runs)
                good = len(runs.failures) == failed
                print(
                    f"round {number + 1} of {options.rounds}: {work.model}, {work.mode},"
                    f" {setup.name}: "
                    + (f"{runs.figures[-1]['step_ms']:.3f} ms" if good else "failed"),
                    file=sys.stderr,
                    flush=True,
                )
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    if options.here:
        return measure_here(options)
    results = run_rounds(options)
    print(table(results), flush=True)
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr, flush=True)
    if options.json is not None:
        settings = {key: value for key, value in vars(options).items() if key != "json"}
        everything = [
            {**dataclasses.asdict(work), "setup": setup.name, **dataclasses.asdict(runs)}
            for work, setups in results.items()
            for setup, runs in setups.items()
        ]
        text = json.dumps({"options": settings, "results": everything}, indent=1)
        options.json.write_text(text)
    problems = failures(results)
    for problem in problems:
        print(f"benchmark_policies: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
