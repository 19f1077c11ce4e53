# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Are the models that people have captured, right, and faster than with one stream?

Each model runs in two processes, with one stream and with captured steps, on the same inputs.
Prints a table with the share of launches that is replayed, whether the results have the same bits,
and the time of a step with one stream divided by that of a captured step; of serving, the calls in
a second of 16 threads, captured divided by one stream.

Exit status: 0; 1 if a model failed or has other results than with one stream; 2 for a wrong
argument.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from bench.gpu import describe
from programs import above_zero, gpus_are_emulated, names_of

from zoo.models import names

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TRAININGS = ("training", "fit", "fit_xla", "fit_10")
_MODES = ("inference", *_TRAININGS, "serving")
_SECONDS = 600  # for one process
_CAPTURED = {
    "TF_GPU_STREAM_GROUP_COUNT": "8",
    "TF_MULTI_STREAM_CAPTURE": "auto",
}
_NOT_REPEATED = "one stream does not repeat its own"
COLUMNS = (
    *("model", "mode", "share_of_launches", "same_bits", "speedup", "one_stream_ms"),
    *("captured_ms", "lowest_ms", "highest_ms", "first_op_in_the_way", "gpu"),
    *("one_stream_per_second", "captured_per_second", "one_stream_p99_ms", "captured_p99_ms"),
)
# Not Keras models, which `train_on_batch` trains.
FUNCTIONS = ("TensorFlow", "TensorFlow Recommenders")
# tf.cuda.serving_callable neither takes sparse tensors nor gives strings.
NOT_SERVED = ("TensorFlow: sparse columns",)


class ModelError(Exception):
    """A process failed; the message has its last lines."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parse(arguments)
    gpu = "emulated" if gpus_are_emulated() else describe()["gpu"]
    rows, failed = [], 0
    chosen = [
        (model, mode)
        for mode in options.modes
        for model in options.only
        if model.split(":")[0] not in FUNCTIONS or mode not in _TRAININGS
        if model not in NOT_SERVED or mode != "serving"
    ]
    for number, (model, mode) in enumerate(chosen, 1):
        prefix = f"[{number} of {len(chosen)}] {model}, {mode}: "
        try:
            row = measure(model, mode, options.seconds)
        except ModelError as error:
            print(f"{prefix}FAILED\n{error}", flush=True)
            failed += 1
            continue
        failed += row["same_bits"] == "no"
        rows.append({**row, "gpu": gpu})
        print(prefix + said(row), flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(f"{len(rows)} of {len(chosen)} models ran, {failed} failed or have other results")
    return int(failed > 0)


def measure(model: str, mode: str, seconds: float) -> dict[str, Any]:
    """A row of the table; ModelError if a process fails."""
    with tempfile.TemporaryDirectory(prefix="zoo") as folder:
        file = pathlib.Path(folder, "results.npz")

        def run(variables: dict[str, str]) -> tuple[Any, list[bytes]]:
            found = _run(variables, model, mode, str(seconds), str(file))
            with np.load(file) as loaded:
                return found, [loaded[name].tobytes() for name in loaded.files]

        one, right = run({})
        captured, results = run(_CAPTURED)
        same = "yes" if results == right else "no"
        # Sums of gradients may be made in the order in which threads come to them.
        if same == "no" and run({})[1] != right:
            same = _NOT_REPEATED
    return {
        "model": model,
        "mode": mode,
        "share_of_launches": round(captured["share"], 3),
        "same_bits": same,
        "speedup": round(captured["per_second"] / one["per_second"], 2)
        if mode == "serving"
        else round(one["median_ms"] / captured["median_ms"], 2),
        "one_stream_ms": round(one["median_ms"], 3),
        "captured_ms": round(captured["median_ms"], 3),
        "lowest_ms": round(captured["lowest_ms"], 3),
        "highest_ms": round(captured["highest_ms"], 3),
        "first_op_in_the_way": captured["in_the_way"],
        "one_stream_per_second": round(one["per_second"], 1),
        "captured_per_second": round(captured["per_second"], 1),
        "one_stream_p99_ms": round(one["p99_ms"], 3),
        "captured_p99_ms": round(captured["p99_ms"], 3),
    }


def table(rows: Sequence[dict[str, str]]) -> list[str]:
    """Rows of a file of `--csv`, as lines of Markdown: one for each model and mode."""
    return [
        f"| {row['model']} | {row['mode']} | {float(row['share_of_launches']):.0%} | "
        f"{_short(row['first_op_in_the_way'])} |"
        for row in rows
    ]


def _short(reason: str) -> str:
    """The op in the way, without the launches and the node's name."""
    reason = re.sub(r"^\(\d+ of \d+ launches\), as ", "", reason)
    return re.sub(r"^(\w+) '[^']*'", r"`\1`", reason)


def said(row: dict[str, Any]) -> str:
    """A row as a line of text."""
    text = (
        f"{row['share_of_launches']:.0%} of launches captured, {row['speedup']:.2f} times as fast"
    )
    if row["same_bits"] == "no":
        text += ", OTHER RESULTS than one stream"
    elif row["same_bits"] == _NOT_REPEATED:
        text += ", one stream does not repeat its own bits"
    if row["first_op_in_the_way"]:
        text += f"; in the way: {row['first_op_in_the_way']}"
    return text


def _run(variables: dict[str, str], *arguments: str, program: str = "zoo.program") -> Any:
    environment = {**os.environ, **variables}
    paths = [str(_ROOT / "benchmarks"), str(pathlib.Path(sys.prefix, "zoo"))]
    environment["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", program, *arguments]
    try:
        done = subprocess.run(
            command, env=environment, text=True, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"it took more than {_SECONDS} s") from None
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-8:])
        raise ModelError(f"exit status {done.returncode}\n{last}")
    return json.loads(done.stdout.splitlines()[-1])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.sh --zoo", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--only", type=names_of(names()), default=names(), help="models, with commas between"
    )
    parser.add_argument("--modes", type=names_of(_MODES), default=_MODES, help=", ".join(_MODES))
    parser.add_argument("--seconds", type=above_zero, default=2.0, help="of each measurement")
    parser.add_argument("--csv", help="write the table to this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
