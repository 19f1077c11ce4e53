# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model in a hurry is measured alone and beside a neighbour that the same server serves."""

import csv
import json
import os
import pathlib
from typing import Any

import pytest
from bench.fleet import BENCHMARKS
from multistream.testing import kit

from . import served

PROGRAM = """
import subprocess, sys
import model_server_load
from neighbours import served
# The models are saved in this process, which has imported TensorFlow.
subprocess.run = lambda command, **_: model_server_load.main(command[2:])
sys.exit(served.main(sys.argv[1:]))
"""


def test_a_served_model_is_measured_alone_and_beside_a_neighbour(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.csv"
    options = ["--settings", "captured_sms_16", "--neighbours", "small", "--loads", "30"]
    options += ["--csv", str(file), "--seconds", "0.5", "--size", "small", "--commit", "abc"]
    done = kit.run_program(
        ["-c", PROGRAM, *options],
        BENCHMARKS,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with file.open() as lines:
        (row,) = csv.DictReader(lines)
    assert tuple(row) == served.COLUMNS
    assert (row["setting"], row["neighbour"]) == ("captured_sms_16", "small")
    assert int(row["calls"]) > 0
    rate, capacity = float(row["rate_per_second"]), float(row["capacity_per_second"])
    assert rate == pytest.approx(0.3 * capacity, abs=0.06)
    assert (
        0 < float(row["alone_p50_ms"]) <= float(row["alone_p99_ms"]) <= float(row["alone_max_ms"])
    )
    assert float(row["beside_p99_ms"]) > 0
    assert float(row["neighbour_beside_per_second"]) > 0


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("", "a load program failed; it says why above"),
        ("echo is ready", "a load program failed; it says why above"),
    ],
)
def test_a_load_that_fails_ends_the_other(
    program: str, message: str, tmp_path: pathlib.Path
) -> None:
    other = ["sh", "-c", f"echo $$ > {tmp_path}/pid; echo ready; exec sleep 600"]
    with pytest.raises(RuntimeError, match=message):
        served.measured(1, other, ["sh", "-c", program])
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"failed": 2, "error": "away"}, "2 calls failed, one with away"),
        ({"failed": 0, "wrong": 1, "close": 2}, "3 answers are wrong"),
    ],
)
def test_failed_calls_and_wrong_answers_are_errors(figures: dict[str, Any], message: str) -> None:
    program = f"echo ready; read line; echo '{json.dumps(figures)}'"
    with pytest.raises(RuntimeError, match=message):
        served.measured(1, ["sh", "-c", program])


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="a load program failed: Expecting value"):
        served.measured(1, ["sh", "-c", "echo ready; read line; echo no"])
