# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that people have are captured, with the results of one stream; what fails is said."""

import csv
import os
import pathlib
import subprocess
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from client_threads import run_checked
from multistream.testing import kit

from . import command

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "benchmarks/results/zoo_h200_2026-11-27.csv"
FIGURES = ("per_second", "median_ms", "p99_ms", "lowest_ms", "highest_ms")
ROW = {"model": "m", "mode": "inference", "share_of_launches": 0.5, "same_bits": "yes"}
ROW |= {"speedup": 2.0, "first_op_in_the_way": ""}
RUN = """
import runpy, sys
sys.path[:0] = {paths!r}
sys.argv[1:] = {arguments!r}
runpy.run_module({program!r}, run_name="__main__", alter_sys=True)
"""


def run_forked(
    command: Sequence[str], env: dict[str, str], timeout: float, **_: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program of the zoo in a process that has imported TensorFlow, as kit's others have."""
    program, *arguments = command[2:]
    variables = {**env}
    paths = env["PYTHONPATH"].split(os.pathsep)
    if arguments[0].startswith("DeepCTR"):
        variables["TF_USE_LEGACY_KERAS"] = "1"  # TensorFlow has read it before the program sets it
    else:
        del variables["PYTHONPATH"]  # to share the server of other tests
    code = RUN.format(paths=paths, arguments=arguments, program=program)
    done: subprocess.CompletedProcess[str] = kit.python(["-c", code], variables, timeout)
    return done


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked, and have an emulated GPU."""
    forked = types.SimpleNamespace(run=run_forked, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(command, "subprocess", forked)
    monkeypatch.setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1")


def test_a_model_is_captured() -> None:
    row = command.measure("TensorFlow: loop by lengths", "inference", 0.1)
    assert (row["share_of_launches"], row["same_bits"]) == (1.0, "yes"), row
    assert 0 < row["lowest_ms"] <= row["captured_ms"] <= row["highest_ms"]


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ("Keras: MLP", "training"),
        ("Keras: MLP", "fit"),
        ("Keras: MLP", "fit_10"),
        ("DeepCTR: DIN", "fit_10"),
    ],
)
def test_a_training_has_the_losses_of_one_stream(model: str, mode: str) -> None:
    row = command.measure(model, mode, 0.1)
    assert row["share_of_launches"] > 0.9 and row["same_bits"] == "yes", row


@pytest.mark.parametrize("model", ["DeepCTR: DeepFM", "TensorFlow: table of words"])
def test_a_model_is_served(model: str) -> None:
    """16 threads get the bits of one stream, from many inputs and from strings."""
    row = command.measure(model, "serving", 0.3)
    assert (row["share_of_launches"], row["same_bits"]) == (1.0, "yes"), row
    assert row["captured_per_second"] > 0 and row["one_stream_per_second"] > 0


def test_sentences_of_any_length_are_served() -> None:
    """Two recordings on each group serve BERT with one to four tokens, by stream groups alone."""
    variables = {"TF_GPU_STREAM_GROUP_COUNT": "2", "TF_MULTI_STREAM_CAPTURE_LENGTHS": "2,4"}
    figures = command._run(variables, "0.3", "4", program="zoo.any_length_program")
    assert 0.5 < figures["replayed"] <= 1.0 and 0 < figures["recordings"] <= 8, figures
    assert figures["worst_difference"] < 1e-4 and figures["calls_per_second"] > 0, figures


@pytest.mark.parametrize("same", ["yes", "no"])
def test_other_results_and_failures_give_the_status(
    same: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measure(model: str, mode: str, _: float) -> dict[str, Any]:
        if mode == "training":
            raise command.ModelError("exit status 1\nno module")
        return {**ROW, "model": model, "same_bits": same}

    monkeypatch.setattr(command, "measure", measure)
    path = str(tmp_path / "zoo.csv")
    arguments = ["--only", "TensorFlow: parse_example", "--csv", path]
    assert command.main(arguments) == int(same == "no")
    printed = capsys.readouterr().out
    assert "50% of launches captured, 2.00 times as fast" in printed
    assert ("OTHER RESULTS" in printed) == (same == "no")
    assert pathlib.Path(path).read_text().splitlines()[0] == ",".join(command.COLUMNS)
    assert command.main(["--only", "Keras: MLP", "--modes", "training"]) == 1
    assert (
        "[1 of 1] Keras: MLP, training: FAILED\nexit status 1\nno module" in capsys.readouterr().out
    )


@pytest.mark.parametrize("size", [3, 1 << 15])
def test_threads_compare_each_bit(size: int) -> None:
    """Also of large results, which are compared without the GIL."""
    right = np.zeros(size, np.float32)
    wrong = right.copy()
    wrong[-1] = -0.0
    load, count = run_checked(lambda x: x, [right, wrong], [right.tobytes()] * 2, 1, 0.05)
    assert load.calls > 1 and count == load.calls // 2


def test_the_page_has_what_was_measured() -> None:
    text = (ROOT / "docs/which-models.md").read_text()
    with open(DATA, newline="") as file:
        rows = list(csv.DictReader(file))
    assert "no" not in {row["same_bits"] for row in rows}
    lacking = [line for line in command.table(rows) if line not in text]
    assert not lacking, "docs/which-models.md lacks:\n" + "\n".join(lacking)


def test_a_process_that_fails_says_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "subprocess", subprocess)
    with pytest.raises(command.ModelError, match=r"exit status 1\n(.|\n)*ValueError: .*'seconds'"):
        command._run(dict(os.environ), "no: model", "inference", "seconds", "none")


@pytest.mark.parametrize(("again", "same"), [(b"right", "no"), (b"other", command._NOT_REPEATED)])
def test_bits_that_one_stream_does_not_repeat(
    again: bytes, same: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = iter([b"right", b"wrong", again])

    def run(_: dict[str, str], *arguments: str) -> dict[str, Any]:
        np.savez(arguments[-1], np.frombuffer(next(results), np.uint8))
        return {"share": 1.0, "in_the_way": "", **dict.fromkeys(FIGURES, 1.0)}

    monkeypatch.setattr(command, "_run", run)
    assert command.measure("m", "inference", 1.0)["same_bits"] == same
