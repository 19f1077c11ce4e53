# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of growth, of the table, and of what makes a soak fail."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import draw
import growth
import pytest
import report
import tally

USED = {
    "load": (0.0, 1000.0),
    "steps_of_groups": [5, 6, 7, 8],
    "peak_bytes_of_groups": [1 << 20] * 4,
}
LIMIT = growth.Limit("MiB", per_minute=30, in_all=40)


@pytest.mark.parametrize(
    ("leaks", "count", "value"),
    [
        (True, 120, lambda second: 1000 + 1.5 * second),
        # A slow leak, over the noise of a long round.
        (True, 300, lambda second: 1000 + second + (second % 7) * 3),
        # Memory that is reached once.
        (False, 120, lambda second: 1000 + 10 * min(second, 40)),
        # Steps that take memory and give it back, and that take more and more at a time.
        (False, 120, lambda second: 1000 + (second % 20) * 30),
        (False, 120, lambda second: 1000 + (second % 20) * second),
        # Minima that differ by chance: an H100's host had 1,200 to 3,000 MiB within ten seconds.
        (False, 120, lambda second: 1000 + second % 20 * 50 + second // 24 * 90),
        # One more block of an allocator, and less and less memory.
        (False, 120, lambda second: 1000 if second < 80 else 1100),
        (False, 120, lambda second: 1000 - second),
    ],
)
def test_memory_that_leaks_is_seen_and_memory_that_is_reached_is_not(
    leaks: bool, count: int, value: Callable[[float], float]
) -> None:
    seconds = [float(second) for second in range(count)]
    found = growth.growth(seconds, [value(second) for second in seconds])
    assert found is not None
    assert found.exceeds(LIMIT) == leaks


def test_growth_is_a_minutes() -> None:
    seconds = [float(second) for second in range(120)]
    found = growth.growth(seconds, [1.5 * second for second in seconds])
    assert found is not None
    assert found.per_minute == pytest.approx(90)
    # Short rounds say nothing.
    assert growth.growth(seconds[:60], [100 * second for second in seconds[:60]]) is None
    assert growth.growth([], []) is None


def test_workers_that_have_ended_do_not_hide_growth() -> None:
    threads = [50.0 + second for second in range(150)] + [10.0] * 20
    outcome = outcome_of(counts_of(), samples=samples_of("threads", threads), load=(0.0, 149.0))
    assert any("threads more at the end" in failure for failure in outcome.failures())


def counts_of(**changed: Any) -> dict[str, Any]:
    counts = dataclasses.asdict(tally.Counts(steps=1200, results=1300))
    return {**counts, **changed}


def outcome_of(counts: dict[str, Any], **changed: Any) -> report.Outcome:
    round_ = draw.draw_round(1, 0, 4, gpu=False)
    fields = {"counts": {"function": counts}, **USED, **changed}
    return report.Outcome(round_, **fields)


def samples_of(field: str, values: list[float]) -> list[dict[str, float]]:
    still = dict.fromkeys(growth.LIMITS, 10.0)
    return [{**still, "seconds": float(i), field: v} for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (outcome_of(counts_of(wrong=1, examples=["wrong: it"])), "function: 1 wrong"),
        (outcome_of(counts_of(unexpected=2)), "2 unexpected errors"),
        (outcome_of(counts_of(results=0)), "function: no result at all"),
        (outcome_of(counts_of(), problems=["hang: function 0"]), "hang: function 0"),
        (outcome_of(counts_of(), steps_of_groups=[9, 9, 0, 9]), "a stream group ran nothing"),
        (outcome_of(counts_of(), peak_bytes_of_groups=[9, 0, 9, 9]), "group used no memory"),
        *(
            (
                outcome_of(counts_of(), samples=samples_of(name, [5.0 * i for i in range(120)])),
                f"{limit.per_minute:g} are allowed",
            )
            for name, limit in growth.LIMITS.items()
        ),
    ],
)
def test_whatever_is_wrong_makes_it_fail(outcome: report.Outcome, message: str) -> None:
    assert any(message in failure for failure in outcome.failures())
    text = report.report([outcome], 60)
    assert message in text
    assert "1 rounds in 1.0 minutes, 1 of them failed" in text


def test_round_without_fault_does_not_fail() -> None:
    outcome = outcome_of(counts_of(), samples=samples_of("threads", [50.0] * 60))
    assert outcome.failures() == []
    assert "0 of them failed" in report.report([outcome], 60)


def test_table_has_the_slowest_second_of_the_load_and_the_sums() -> None:
    by_second = {str(second): 100 for second in range(8, 60)}  # the first 5 are warm-up
    by_second["30"] = 3
    by_second["9"] = 1
    one = outcome_of(counts_of(by_second=by_second, longest_gap=1.25), load=(8.4, 60.2))
    other = outcome_of(counts_of(by_second=by_second, wrong=2), load=(8.4, 60.2))
    rows = [line.split(" | ") for line in report.table([one, other]).splitlines()]
    assert rows[2][0] == "| function"
    assert rows[2][1:] == ["2,400", "2,600", "2", "0", "0", "3", "100", "1.2", "2 |"]
    assert rows[3][:4] == ["| all", "2,400", "2,600", "2"]
    # A second without any result is the slowest.
    del by_second["30"]
    assert report.rates(by_second, (8.4, 60.2)).count(0) == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
