# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model in a hurry is measured alone and beside a neighbour that the same server serves."""

import csv
import io
import json
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
        TF_MULTI_STREAM_SANITIZER="abort",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with file.open() as lines:
        (row,) = csv.DictReader(lines)
    assert tuple(row) == served.COLUMNS
    assert (row["setting"], row["neighbour"], row["wrong"]) == ("captured_sms_16", "small", "0")
    rate, capacity = float(row["rate_per_second"]), float(row["capacity_per_second"])
    assert rate == pytest.approx(0.3 * capacity, rel=0.01)
    assert (
        0 < float(row["alone_p50_ms"]) <= float(row["alone_p99_ms"]) <= float(row["alone_max_ms"])
    )
    assert float(row["beside_p99_ms"]) > 0
    assert float(row["neighbour_beside_per_second"]) > 0


@pytest.mark.parametrize(
    ("ready", "failed", "message"),
    [("", 0, "a load program failed"), ("ready\n", 2, "2 calls failed, one with away")],
)
def test_a_load_that_fails_is_an_error(
    ready: str, failed: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Process:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.stdin, self.stdout = io.StringIO(), io.StringIO(ready)

        def communicate(self) -> tuple[str, None]:
            return json.dumps({"failed": failed, "error": "away"}), None

    monkeypatch.setattr("subprocess.Popen", Process)
    with pytest.raises(RuntimeError, match=message):
        served.measured(served.Load("host:1", "folder", 1, 1.0))
