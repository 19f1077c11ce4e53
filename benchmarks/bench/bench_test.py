# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the whole benchmark, on an emulated GPU, in sizes that take moments."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from . import fleet, made_up
from .command import main
from .results import load

QUICK = ["--quick", "--seconds", "0.05", "--groups", "2", "--clients", "2"]


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1")


def test_a_quick_run_measures_compares_and_reports(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Serving and training; a peer that is not there is skipped by name."""
    status = main(
        [
            *QUICK,
            *("--only", "recommender,wide_and_deep_4"),
            *("--peers", "stock,captured,marks,virtual,pytorch"),
            *("--python", "torch=/no/python"),
            *("--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html")),
        ]
    )
    said = capsys.readouterr()
    assert status == 0, said
    assert "skipped: pytorch: /no/python: No such file or directory" in said.out
    assert "skipped: virtual: there is no GPU" in said.out
    assert "times mean nothing" in said.err
    found = load(tmp_path / "a.json")
    assert found.skipped.keys() == {"pytorch", "virtual"}
    rows = {
        (row.configuration.team.workload, row.configuration.team.peer, row.configuration.call): row
        for row in found.rows
    }
    assert rows.keys() == {
        ("recommender", "stock", "function"),
        ("recommender", "captured", "function"),
        ("recommender", "captured", "serving"),
        ("wide_and_deep_4", "stock", "function"),
        ("wide_and_deep_4", "captured", "function"),
        ("wide_and_deep_4", "marks", "function"),
    }
    for row in rows.values():
        (one,) = row.rounds
        assert one.queries > 0 and one.wrong == 0 and one.queries_per_second > 0
        assert 0 < one.p50_ms <= one.p95_ms <= one.p99_ms <= one.max_ms
        assert row.memory_mib
    # All but those that were waiting for a recording.
    captured = rows["recommender", "captured", "serving"].rounds[0]
    assert captured.replays >= 0.9 * captured.queries
    assert rows["recommender", "stock", "function"].rounds[0].replays == 0
    assert 'id="wide_and_deep_4"' in (tmp_path / "a.html").read_text()

    # A file of a run is enough for all that comes after it.
    file = str(tmp_path / "a.json")
    assert main(["--load", file, "--compare", file]) == 0
    assert "6 compared: 0 faster, 0 slower" in capsys.readouterr().out


@dataclasses.dataclass
class Fake:
    """A process of a team that answers without measuring."""

    wrong: int

    def tell(self, command: Mapping[str, Any]) -> None:
        if "latencies" in command:
            np.save(command["latencies"], np.full(10, 2.0))

    def answer(self, seconds: float = 0.0) -> dict[str, Any]:
        figures = {"queries": 10, "seconds": 1.0, "cpu_seconds": 0.1, "replays": 4, "peak_mib": 7.0}
        return {"wrong": self.wrong, **figures}


def test_wrong_results_of_all_processes_are_counted_and_are_status_1(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = made_up.configuration("processes", 2)
    processes: Any = [Fake(wrong=1), Fake(wrong=2)]
    team = fleet.Workers(one.team, processes, tmp_path)
    measured = team.measure(one, tmp_path / "expected", 0.1)
    assert (measured.wrong, measured.queries, measured.replays) == (3, 20, 8)
    file = tmp_path / "a.json"
    made_up.results(made_up.row(one, [1.0], wrong=measured.wrong)).save(file)
    assert main(["--load", str(file)]) == 1
    assert ": 3 wrong results" in capsys.readouterr().err


def test_a_worker_that_ends_is_a_failure_with_its_last_words(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/bash\nif [[ "$1" == -c ]]; then exit 0; fi\necho "out of cheese" >&2\nexit 3\n'
    )
    python.chmod(0o755)
    arguments = ["--only", "mlp", "--peers", "stock", "--python", f"tensorflow={python}"]
    assert main([*QUICK, *arguments]) == 1
    assert "exit status 3; its last words: out of cheese" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--only", "mpl"], "there is no 'mpl'"),
        (["--set", "TF_GPU_STREAM_MERGE"], "'TF_GPU_STREAM_MERGE' is not NAME=VALUE"),
        (["--python", "tourch=python"], "'tourch=python' is not PACKAGE=PYTHON"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert named in capsys.readouterr().err


def test_a_file_that_is_none_is_said_before_anything_runs(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--compare", str(tmp_path / "old.json")]) == 1
    assert "old.json: No such file" in capsys.readouterr().err
