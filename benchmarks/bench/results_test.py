# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of results.py and tables.py."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from .made_up import all_kinds, configuration, results, row
from .results import ResultsError, load, merge
from .tables import FASTER, NOISE, SLOWER, best_rows, compare, setting


def test_a_file_gives_what_was_saved(tmp_path: pathlib.Path) -> None:
    saved = all_kinds()
    saved.save(tmp_path / "a.json")
    assert load(tmp_path / "a.json") == saved


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda data: data.pop("date"), "'date' is missing"),
        (lambda data: data.update(seconds="1"), "'seconds' is '1'"),
        (lambda data: data.update(more=1), "'more' is unknown"),
        (lambda data: data.update(schema=9), "'schema' is not 1"),
        (
            lambda data: data["rows"][1]["rounds"][0].update(wrong=None),
            r"'rows\[1\].rounds\[0\].wrong' is None",
        ),
        (
            lambda data: data["rows"][0]["configuration"]["team"].pop("peer"),
            r"'rows\[0\].configuration.team.peer' is missing",
        ),
    ],
)
def test_an_error_names_the_field(
    spoil: Callable[[dict[str, Any]], object], named: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "a.json"
    all_kinds().save(path)
    data = json.loads(path.read_text())
    spoil(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ResultsError, match=f"a.json.*{named}"):
        load(path)
    path.write_text("{")
    with pytest.raises(ResultsError, match="is no JSON"):
        load(path)


def test_the_best_setting_is_the_one_of_the_most_queries() -> None:
    slow, fast = (row(configuration(parallel=n), [rate, rate]) for n, rate in ((4, 10), (2, 20)))
    failed = row(configuration(parallel=8), [])
    other = row(configuration(clients=1), [5.0])
    assert best_rows(results(slow, fast, failed, other)) == [other, fast]
    assert setting(fast) == "2 groups, function"


@pytest.mark.parametrize(
    ("was", "now", "verdict"),
    [
        ([100, 110, 105], [120, 130, 125], FASTER),
        ([120, 130, 125], [100, 110, 105], SLOWER),
        ([100, 110, 105], [109, 130, 125], NOISE),
        ([100, 110, 105], [100, 110, 105], NOISE),
        ([100], [200], NOISE),  # one round shows no noise
    ],
)
def test_a_verdict_is_beyond_the_noise_of_both_runs(
    was: list[float], now: list[float], verdict: str
) -> None:
    done = compare(results(row(configuration(), was)), results(row(configuration(), now)))
    assert [change.verdict for change in done.changes] == [verdict]
    assert done.slower == (verdict == SLOWER)
    assert done.changes[0].noise == (min(now) / max(was), max(now) / min(was))


def test_what_cannot_be_compared_is_counted_and_noted() -> None:
    old = results(row(configuration(), [1, 1]), row(configuration(clients=1), [1, 1]))
    new = results(row(configuration(), [2, 2]), row(configuration("stock"), [1, 1]))
    new.machine["gpu"] = "Another GPU"
    done = compare(old, new)
    assert (len(done.changes), done.only_old, done.only_new) == (1, 1, 1)
    assert "'A GPU' then, 'Another GPU' now" in str(done)
    assert "1 compared: 1 faster, 0 slower, 0 within noise" in str(done)


def test_runs_in_parts_are_one_run() -> None:
    one, other = row(configuration(), [1.0]), row(configuration(), [2.0, 3.0])
    more = row(configuration("stock"), [4.0])
    parts = [results(one), results(other, more)]
    parts[1].command = "main.py --only recommender"
    whole = merge(parts)
    assert [row.values("queries_per_second") for row in whole.rows] == [[1, 2, 3], [4]]
    assert whole.command == "main.py --quick; main.py --only recommender"
    assert len(one.rounds) == 1  # the parts stay as they are
    parts[1].machine["gpu"] = "Another"
    with pytest.raises(ResultsError, match="'machine'"):
        merge(parts)
