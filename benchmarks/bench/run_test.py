# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of run.py, with workers that measure nothing."""

import dataclasses
import pathlib
import types
from collections.abc import Sequence
from typing import Any

import pytest

from . import run
from .fleet import WorkerError
from .made_up import results, row
from .peers import PEERS
from .results import Results, Round
from .sweep import Configuration, Sweep, Team
from .workloads import WORKLOADS

SWEEP = Sweep(clients=(1, 4), groups=(1, 2), copies=(2,))
CAPTURED = Team("mlp", "captured", 2)


@dataclasses.dataclass
class Fake:
    """A fleet and its workers in one, and the clock."""

    fails: Sequence[Team] = ()  # do not start
    breaks: Sequence[Configuration] = ()  # their measurement fails
    seconds: float = 0.0  # of a measurement
    now: float = 0.0
    memory_mib: float = 5.0
    done: list[Configuration] = dataclasses.field(default_factory=list)

    def __call__(self, *_: object) -> "Fake":
        return self

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, teams: Sequence[Team]) -> dict[Team, str]:
        return {team: "it did not start" for team in teams if team in self.fails}

    def __getitem__(self, team: Team) -> "Fake":
        return self

    def make(self) -> str:
        return "TensorFlow 2"

    def reference(self, path: pathlib.Path) -> None:
        pass

    def warm(self, of: Configuration, seconds: float) -> None:
        pass

    def measure(self, of: Configuration, *_: object) -> Round:
        if of in self.breaks:
            raise WorkerError("it broke")
        self.now += self.seconds
        self.done.append(of)
        return row(of, [7.0]).rounds[0]


def measured(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, **effort: Any
) -> tuple[Results, list[str]]:
    """What a run of `mlp` gives, and what it says."""
    monkeypatch.setattr(run, "Fleet", fake)
    monkeypatch.setattr(run, "time", types.SimpleNamespace(monotonic=lambda: fake.now))
    all_effort = run.Effort(
        **{"seconds": 1.0, "rounds": 3, "warm_seconds": 0.0, "minutes": 9.0, **effort}
    )
    found, said = results(), list[str]()
    found.left_out.clear()
    chosen = [PEERS["stock"], PEERS["captured"]]
    folder = pathlib.Path("nowhere")
    one = run.Run(found, chosen, SWEEP, all_effort, {}, {}, folder, said.append, lambda: None)
    one.all([WORKLOADS["mlp"]])
    return found, said


def test_configurations_take_turns_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake()
    found, said = measured(fake, monkeypatch)
    count = len(found.rows)
    assert all(len(one.rounds) == 3 and one.memory_mib == 5.0 for one in found.rows)
    rounds = [fake.done[i : i + count] for i in range(0, 3 * count, count)]
    assert all(len(set(one)) == count for one in rounds)
    assert rounds[0] != rounds[1]
    assert said[-1].startswith(f"[{3 * count}/{3 * count}, 0 s left]")
    assert found.versions == {"stock": "TensorFlow 2", "captured": "TensorFlow 2"}
    assert not found.bad and not found.left_out


def test_what_does_not_start_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = measured(Fake(fails=[CAPTURED]), monkeypatch)
    assert {one.configuration.team for one in found.bad} == {CAPTURED}
    assert all(one.failure == "it did not start" and not one.rounds for one in found.bad)
    assert "failed: captured 2, mlp: it did not start" in said


def test_what_breaks_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Configuration(CAPTURED, 16, 4, "serving")
    found, _ = measured(Fake(breaks=[broken]), monkeypatch)
    assert [one.configuration for one in found.bad] == [broken]
    assert found.bad[0].failure == "it broke"


def test_a_short_time_takes_rounds_away_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(seconds=0.01)
    found, _ = measured(fake, monkeypatch, minutes=0.15 / 60)
    assert {len(one.rounds) for one in found.rows} == {1}
    assert found.left_out == ["mlp: 1 of 3 rounds"]


def test_a_shorter_time_leaves_out_configurations_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the most clients are measured first."""
    found, _ = measured(Fake(seconds=0.02), monkeypatch, minutes=0.05 / 60)
    missing = [one.configuration for one in found.rows if not one.rounds]
    assert missing and found.rows[0].rounds
    assert found.rows[0].configuration.clients == 4
    for one in missing:
        assert f"not measured: {one}" in found.left_out
    assert not found.bad
