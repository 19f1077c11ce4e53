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
"""Tests of benchmark_inference.py with a program that only pretends to measure."""

from __future__ import annotations

import json
import pathlib
import sys
import time

import benchmark_inference
import pytest
from benchmark_inference import Configuration

PROGRAM = """#!{python}
import json, os, sys
options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
if "save-reference" in options:
    open(options["save-reference"], "w").write("reference")
    sys.exit()
assert open(options["reference"]).read() == "reference"
groups = int(os.environ.get("TF_GPU_STREAM_GROUP_COUNT", "0"))
if groups == {fails_at}:
    sys.exit("device lost")
wrong = 3 if groups == {wrong_at} else 0
figures = dict.fromkeys(["p50_ms", "p95_ms", "p99_ms"], 1.5)
figures |= {{"queries_per_second": 100.0 * max(groups, 1), "verified": 1000, "wrong": wrong}}
figures["groups"] = [{{"peak_bytes_in_use": 2**20}}] * groups
json.dump(figures, open(options["json"], "w"))
sys.exit(1 if wrong else 0)
"""


def _program(folder: pathlib.Path, fails_at: int = -1, wrong_at: int = -1) -> str:
    path = folder / "program"
    path.write_text(PROGRAM.format(python=sys.executable, fails_at=fails_at, wrong_at=wrong_at))
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _no_emulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_MULTI_STREAM_EMULATED_GPUS", raising=False)


SHORT = ["--threads", "2", "--groups", "1,4", "--rounds", "2", "--seconds", "0.1"]


def test_table_has_a_row_for_each_configuration(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.json"
    arguments = ["--program", _program(tmp_path), "--json", str(path), *SHORT]
    assert benchmark_inference.main(arguments) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert {len(row) for row in rows} == {12}
    assert [row[:3] + row[4:5] for row in rows[2:]] == [
        ["2", "stock", "100", "1.00"],
        ["2", "1 group", "100", "1.00"],
        ["2", "4 groups", "400", "4.00"],
    ]
    assert rows[4][9:] == ["4.0", "2,000", "0"]
    assert len(json.loads(path.read_text())[2]["figures"]) == 2


def test_emulated_gpu_is_compared_with_one_group(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1")
    assert benchmark_inference.main(["--program", _program(tmp_path), *SHORT]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[2].strip() for row in rows] == ["1 group", "4 groups"]


def test_wrong_results_are_counted_and_fail(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark_inference.main(["--program", _program(tmp_path, wrong_at=4), *SHORT]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("| 2,000 | 6 |")


def test_failed_run_is_named_and_the_others_still_run(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark_inference.main(["--program", _program(tmp_path, fails_at=1), *SHORT]) == 1
    captured = capsys.readouterr()
    assert "| 2 | 1 group | failed |" in captured.out
    assert "| 2 | 4 groups | 400 |" in captured.out
    assert "1 group: exit status 1: device lost" in captured.err


def test_environment_of_a_run_is_that_of_its_configuration() -> None:
    given = {"TF_GPU_STREAM_GROUP_COUNT": "9", "TF_OTHER": "kept", "TF_CPP_MIN_LOG_LEVEL": "0"}
    stock = benchmark_inference.environment_of(Configuration(8, 0), given)
    assert stock == {"TF_OTHER": "kept", "TF_CPP_MIN_LOG_LEVEL": "0"}
    groups = benchmark_inference.environment_of(Configuration(8, 4), given)
    assert groups["TF_GPU_STREAM_GROUP_COUNT"] == "4"
    assert groups["TF_NODE_LEVEL_MULTISTREAM"] == "false"


def test_every_round_runs_everything_in_another_order() -> None:
    configurations = [Configuration(8, groups) for groups in range(6)]
    orders = [benchmark_inference.order_of_round(configurations, n) for n in range(3)]
    for order in orders:
        assert sorted(order, key=configurations.index) == configurations
    assert len({order[0] for order in orders}) == 3


@pytest.mark.parametrize(("processes", "expected"), [("7, 300\n9, 5\n", 300), ("", 400)])
def test_memory_is_the_process_own_or_what_was_added(processes: str, expected: float) -> None:
    in_use = iter(["100\n0\n"])

    def nvidia_smi(arguments: list[str]) -> str:
        return processes if "pid" in arguments[0] else next(in_use, "450\n50\n")

    watch = benchmark_inference.MemoryWatch(nvidia_smi)
    watch.start(7)
    deadline = time.monotonic() + 10
    while watch.most == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.stop()
    assert watch.most == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--groups", "0"], "'0' is not whole numbers from 1 to 64"),
        (["--threads", "8,x"], "'8,x' is not whole numbers from 1 to 1024"),
        (["--rounds", "0"], "'0' is not a whole number of 1 or more"),
        (["--seconds", "nan"], "'nan' is not a number of 0.01 or more"),
        (["--program", "/no/program"], "--program /no/program: there is no such file"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        benchmark_inference.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
