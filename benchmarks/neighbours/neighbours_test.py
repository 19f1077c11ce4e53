# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Neighbours of a tenant in a hurry are measured; its waiting calls and wrong results count."""

import csv
import json
import os
import pathlib
import threading
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from bench.fleet import BENCHMARKS, WorkerError, WorkerProcess
from multistream.testing import kit

from . import command
from .open_loop import poisson, run_open_loop
from .tenants import NEIGHBOURS, Hurry
from .worker import Worker

CODE = """
import os, runpy, sys
os.dup2(os.open({log!r} + ".in", os.O_RDONLY), 0)
os.dup2(os.open({log!r} + ".out", os.O_WRONLY), 1)
sys.path.insert(0, {folder!r})
sys.argv[1:] = [{spec!r}]
runpy.run_module("neighbours.worker", run_name="__main__", alter_sys=True)
"""
LOAD: dict[str, float] = dict.fromkeys(("no_thread", "unserved", "errors", "wrong"), 0)
LOAD |= {"calls": 100, "p50_ms": 1.0, "p99_ms": 2.0, "p999_ms": 3.0, "max_ms": 4.0}
LOAD |= {"late_p99_ms": 0.1, "replayed": 1.0}


class ForkedWorker(WorkerProcess):
    """A worker in a process that has imported TensorFlow, as kit's others have."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: pathlib.Path
    ) -> None:
        for end in ("in", "out"):
            os.mkfifo(f"{log}.{end}")
        # For both ways, so that opening them does not wait for the worker.
        self._in, self._out = (
            os.fdopen(os.open(f"{log}.{end}", os.O_RDWR), "r+b", 0) for end in ("in", "out")
        )
        code = CODE.format(log=str(log), folder=str(BENCHMARKS), spec=command[-1])
        ours = kit.runtime_variables() | kit.READ_LATE
        variables = {k: v for k, v in environment.items() if k in ours}
        self._job = threading.Thread(target=self._run, args=(code, variables))
        self._job.start()

    def _run(self, code: str, variables: Mapping[str, str]) -> None:
        done = kit.python(["-c", code], {**kit.inherited(), **variables}, 120)
        with open(self._out.fileno(), "wb", closefd=False) as answers:
            answers.write(json.dumps({"error": done.stderr[-2000:]}).encode() + b"\n")

    def stop(self) -> None:
        self._in.close()  # then it ends
        self._job.join()


@pytest.mark.parametrize(
    ("setting", "neighbours", "loads"),
    [("captured_priority", command.NEIGHBOURS, ("50",)), ("processes", ("large",), ("10", "50"))],
)
def test_a_tenant_is_measured_alone_and_beside_each_neighbour(
    setting: str,
    neighbours: Sequence[str],
    loads: Sequence[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All in one process, with priorities, and each of two in a process."""
    monkeypatch.setattr(command, "WorkerProcess", ForkedWorker)
    monkeypatch.setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1")
    path = tmp_path / "rows.csv"
    arguments = [f"--settings={setting}", f"--neighbours={','.join(neighbours)}"]
    arguments += [f"--csv={path}", "--size=small", "--seconds=0.2", f"--loads={','.join(loads)}"]
    status = command.main(arguments)
    said = capsys.readouterr()
    assert status == 0, said
    assert "times mean nothing" in said.err
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["setting"], row["neighbour"], row["load_percent"]) for row in rows] == [
        (setting, neighbour, load) for neighbour in neighbours for load in loads
    ]
    assert len(said.out.splitlines()) == 1 + len(rows)
    for row in rows:
        assert (row["errors"], row["wrong"], row["machine"]) == ("0", "0", "emulated"), row
        numbers = {name: float(row[name]) for name in command.COLUMNS[2:-3]}
        rate = numbers["capacity_per_second"] * numbers["load_percent"] / 100
        assert numbers["rate_per_second"] == pytest.approx(rate, rel=1e-4)
        assert numbers["alone_calls"] == numbers["beside_calls"] > 0  # the same arrivals
        for when in ("alone", "beside"):
            values = [numbers[f"{when}_{name}_ms"] for name in ("p50", "p99", "p999", "max")]
            assert values[0] > 0 and sorted(values) == values, row
            assert numbers[f"{when}_late_p99_ms"] > 0
        ratio = numbers["beside_p99_ms"] / numbers["alone_p99_ms"]
        assert numbers["p99_ratio"] == pytest.approx(ratio, rel=1e-4)
        assert numbers["neighbour_alone_per_second"] > 0
        assert numbers["replayed"] > 0.9
        if row["neighbour"] != "large":  # which is never captured
            assert numbers["neighbour_replayed"] > 0.5, row


def test_what_waits_for_a_slow_server_counts_from_when_it_was_due() -> None:
    """One call takes long: those behind it have waited, though they were sent late."""
    due = np.array([0.0, 0.01, 0.02, 0.2])
    found: list[tuple[int, int]] = []
    done = run_open_loop(
        lambda _, i: time.sleep(0.1) if i == 0 else None,
        due,
        threads=1,
        most_seconds=1,
        done=lambda _, i, result: found.append((i, result)),
    )
    assert found == [(i, None) for i in range(4)]
    first, second, third, last = done.milliseconds
    assert first >= 100 and second >= 89 and third >= 79 and last < 60
    figures = done.figures()
    # The thread slept for the first and the last.
    assert (figures["no_thread"], figures["calls"], len(done.late_ms)) == (2, 4, 2)
    assert figures["max_ms"] == first and 0 < figures["late_p99_ms"] < 60


def test_what_is_not_begun_in_time_counts_as_waiting_and_errors_do_not() -> None:
    def call(_: int, i: int) -> None:
        time.sleep(0.15)
        if i == 0:
            raise ValueError("out of cheese")

    done = run_open_loop(call, np.array([0.0, 0.01, 0.02, 0.03]), threads=1, most_seconds=0.2)
    assert done.errors == ["ValueError: out of cheese"]
    figures = done.figures()
    assert (figures["errors"], figures["unserved"], figures["calls"]) == (1, 2, 3)
    assert (done.milliseconds >= 260).all()


def test_arrivals_are_random_and_repeat() -> None:
    due = poisson(1000, 10, seed=3)
    assert np.array_equal(due, poisson(1000, 10, seed=3))
    assert 9500 < len(due) < 10500 and (np.diff(due) > 0).all() and due[-1] < 10
    assert np.diff(due).std() == pytest.approx(1e-3, rel=0.1)  # as of an exponential distribution
    assert len(poisson(0.001, 1, seed=3)) == 1


def test_wrong_results_are_counted() -> None:
    inputs = [(np.full(3, i, np.float32),) for i in range(4)]
    expected = [x.tobytes() for (x,) in inputs]
    expected[2] = np.full(3, -0.0, np.float32).tobytes()
    tenant = Worker("stock", "small", True, [])
    tenant._hurry = Hurry(lambda x: x, inputs, expected)
    figures = tenant.load(rate=400, seconds=0.25)
    assert figures["calls"] > 40
    assert abs(figures["wrong"] - figures["calls"] / 4) <= 1
    figures = tenant.capacity(seconds=0.05)
    assert figures["per_second"] > 0 and figures["wrong"] > 0


@pytest.mark.parametrize(("what", "status"), [({}, 0), ({"wrong": 2}, 1), ({"errors": 3}, 1)])
def test_wrong_results_and_errors_are_status_1_and_rows_are_added(
    what: dict[str, int],
    status: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def rows(*_: object) -> Any:
        row = command.compared(LOAD, {**LOAD, "p99_ms": 5.0, **what}, 8.0, 6.0)
        row |= {"neighbour": "small", "load_percent": 30, "capacity_per_second": 100.0}
        yield {**row, "rate_per_second": 30.0, "neighbour_replayed": 1.0, "failure": "no cheese"}

    tenants = types.SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(command, "_start", lambda *_: {"stock": tenants})
    monkeypatch.setattr(command, "measure", rows)
    path = tmp_path / "rows.csv"
    for _ in range(2):
        assert command.main([f"--csv={path}", "--commit=c0ffee"]) == status
    said = capsys.readouterr().err
    assert ("2 results are wrong" in said) == ("wrong" in what)
    assert ("3 calls failed, one with no cheese" in said) == ("errors" in what)
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == second
    assert (first["p99_ratio"], first["neighbour_ratio"], first["commit"]) == (
        *("2.5", "0.75"),
        "c0ffee",
    )


def test_a_worker_that_fails_is_said_and_others_are_measured(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Process:
        def __init__(self, command: Sequence[str], *_: object) -> None:
            self.fails = json.loads(command[-1])["setting"] == "stock"

        def tell(self, command: Mapping[str, Any]) -> None:
            pass

        def answer(self) -> dict[str, Any]:
            if self.fails:
                raise WorkerError("out of cheese")
            return {}

        def stop(self) -> None:
            pass

    def measure(*_: object) -> list[dict[str, Any]]:
        measured.append(1)
        return []

    measured: list[int] = []
    monkeypatch.setattr(command, "WorkerProcess", Process)
    monkeypatch.setattr(command, "measure", measure)
    arguments = [f"--csv={tmp_path}/rows.csv", "--settings=stock,groups"]
    assert command.main(arguments) == 1
    assert "WRONG: stock: out of cheese" in capsys.readouterr().err and measured == [1]


def test_the_command_knows_all_neighbours() -> None:
    assert tuple(NEIGHBOURS) == command.NEIGHBOURS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--settings=stok"], "there is no 'stok'"),
        (["--settings=processes_mps"], "processes_mps needs --mps"),
        (["--loads=0"], "'0' is not a whole number"),
        (["--csv=README.md"], "has other columns"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: list[str],
    message: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(BENCHMARKS.parent)
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    with pytest.raises(SystemExit) as ended:
        command.main([f"--csv={tmp_path}/rows.csv", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
