# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the soak but for its kinds of work: what it draws, verifies, watches and reports."""

import dataclasses
import itertools
import pathlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import draw
import numpy as np
import pytest
import report
import soak
import tally
import watcher


def first(count: int, seed: int, gpu: bool = False) -> list[draw.Round]:
    return list(itertools.islice(draw.draw_rounds(seed, 4, gpu), count))


def test_same_seed_draws_the_same_and_another_one_does_not() -> None:
    assert first(20, 7) == first(20, 7)
    assert first(20, 7) != first(20, 8)
    # Also of a round by itself, to run it again.
    assert draw.draw_round(7, 13, 4, gpu=False) == first(20, 7)[13]


@pytest.mark.parametrize("gpu", [False, True])
def test_rounds_have_all_that_their_settings_allow(gpu: bool) -> None:
    rounds = first(200, 3, gpu)
    possible = [kind for kind in draw.KINDS if gpu or kind not in draw.GPU_ONLY]
    not_captured = [kind for kind in possible if kind not in draw.GRAPH_LEVEL_ONLY]
    assert list(rounds[0].workers) == possible
    assert list(rounds[1].workers) == not_captured
    assert rounds[1].node_level
    for round_ in rounds:
        assert len(round_.workers) >= draw.LEAST_KINDS
        assert set(round_.workers) <= set(not_captured if round_.node_level else possible)
        assert not (round_.node_level and "TF_MULTI_STREAM_CAPTURE" in round_.settings)
        assert round_.workers.get("variables", 2) >= 2
        most = 64 if gpu else draw.MOST_EMULATED
        assert all(1 <= n <= min(draw.KINDS[kind], most) for kind, n in round_.workers.items())
        if gpu:
            assert all(round_.workers.get(kind, 16) == 16 for kind in draw.MANY_THREADS)
        assert ("TF_MULTI_STREAM_EMULATED_GPUS" in round_.settings) != gpu
        assert not (gpu and round_.sanitized)
    assert {r.policy for r in rounds} == {"", *draw.POLICIES}
    captures = {r.settings.get("TF_MULTI_STREAM_CAPTURE") for r in rounds}
    assert captures == {None, "auto", "marked"}
    pieces = {r.settings.get("TF_MULTI_STREAM_CAPTURE_PIECES") for r in rounds}
    assert pieces == {None, "1", "4"}
    for kind in possible:
        assert any(kind not in r.workers for r in rounds)
    if not gpu:
        assert 0.1 < sum(r.sanitized for r in rounds) / len(rounds) < 0.5


def test_round_has_no_settings_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MULTI_STREAM_POLICY", "cost")
    monkeypatch.setenv("TF_GPU_STREAM_GROUP_COUNT", "9")
    found = soak.environment({"TF_GPU_STREAM_GROUP_COUNT": "4"}, None)
    assert found["TF_GPU_STREAM_GROUP_COUNT"] == "4"
    assert "TF_MULTI_STREAM_POLICY" not in found
    assert "PATH" in found
    broken = soak.environment({}, "drop_hold")
    assert broken["TF_MULTI_STREAM_TEST_FAULTS"] == "true"
    assert broken["TF_MULTI_STREAM_SANITIZER"] == "log"


def test_short_soak_has_a_round_at_each_level() -> None:
    drawn = dataclasses.replace(draw.draw_round(1, 0, 4, gpu=False), seconds=150)
    assert soak.restricted(drawn, None, None, left=120, total=120).seconds == 40
    assert soak.restricted(drawn, None, None, left=15, total=1200).seconds == soak.LEAST_SECONDS
    assert soak.restricted(drawn, None, None, left=900, total=1200) == drawn
    assert list(soak.restricted(drawn, ["feeds"], None, 900, 1200).workers) == ["feeds"]
    assert soak.restricted(drawn, ["feeds"], 8, 900, 1200).workers == {"feeds": 8}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "x"], "invalid choice: 'x'"),
        (["--memory-mib", "255"], "--memory-mib 255 is less than 64 for each group"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        soak.parse_arguments(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


USED = {
    "load": (0.0, 1000.0),
    "steps_of_groups": [5, 6, 7, 8],
    "peak_bytes_of_groups": [1 << 20] * 4,
}
LIMIT = watcher.Limit("MiB", per_minute=30, in_all=40)


@pytest.mark.parametrize(
    ("leaks", "count", "value"),
    [
        (True, 120, lambda second: 1000 + 1.5 * second),
        # A slow leak, over the noise of a long round.
        (True, 300, lambda second: 1000 + second + (second % 7) * 3),
        # Steps that take memory and give it back, and that take more and more at a time.
        (False, 120, lambda second: 1000 + (second % 20) * 30),
        (False, 120, lambda second: 1000 + (second % 20) * second),
        # Minima that differ by chance: an H100's host had 1,200 to 3,000 MiB within ten seconds.
        (False, 120, lambda second: 1000 + second % 20 * 50 + second // 24 * 90),
        # One more block of an allocator, and less and less memory.
        (False, 120, lambda second: 1000 if second < 80 else 1100),
    ],
)
def test_memory_that_leaks_is_seen_and_memory_that_is_reached_is_not(
    leaks: bool, count: int, value: Callable[[float], float]
) -> None:
    seconds = [float(second) for second in range(count)]
    found = watcher.growth(seconds, [value(second) for second in seconds])
    assert found is not None
    assert found.exceeds(LIMIT) == leaks
    # Short rounds say nothing.
    assert watcher.growth(seconds[:60], [100 * second for second in seconds[:60]]) is None


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
    still = dict.fromkeys(watcher.LIMITS, 10.0)
    return [{**still, "seconds": float(i), field: v} for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (outcome_of(counts_of(wrong=1, examples=["wrong: it"])), "function: 1 wrong"),
        (outcome_of(counts_of(unexpected=2)), "2 unexpected errors"),
        (outcome_of(counts_of(results=0)), "function: no result at all"),
        (outcome_of(counts_of(), problems=["hang: function 0"]), "hang: function 0"),
        (outcome_of(counts_of(), steps_of_groups=[9, 9, 0, 9]), "a stream group ran nothing"),
        (outcome_of(counts_of(), peak_bytes_of_groups=[9, 9, 0, 9]), "group used no memory"),
        *(
            (
                outcome_of(counts_of(), samples=samples_of(name, [5.0 * i for i in range(120)])),
                f"{limit.per_minute:g} are allowed",
            )
            for name, limit in watcher.LIMITS.items()
        ),
    ],
)
def test_whatever_is_wrong_makes_it_fail(outcome: report.Outcome, message: str) -> None:
    assert any(message in failure for failure in outcome.failures())
    text = report.report([outcome], 60)
    assert message in text
    assert "1 rounds in 1.0 minutes, 1 of them failed" in text


def test_a_group_with_sms_of_its_own_runs_what_names_it_alone() -> None:
    idle = {"steps_of_groups": [9, 0, 9, 9], "peak_bytes_of_groups": [9, 0, 9, 9]}
    round_ = draw.draw_round(1, 0, 4, gpu=False)
    settings = {**round_.settings, "TF_GPU_STREAM_GROUP_SMS": f"{draw.GROUP_WITH_SMS}:8"}
    round_ = dataclasses.replace(round_, settings=settings)
    counts = {"function": counts_of()}

    def failures(counts: dict[str, Any], found: dict[str, list[int]]) -> list[str]:
        return list(report.Outcome(round_, counts, **{**USED, **found}).failures())

    assert not failures(counts, idle)
    assert failures(counts, {}) == ["6 steps ran on a group that no call has named"]
    named = {**counts, "pinned": counts_of()}
    assert not failures(named, {})
    assert "a stream group ran nothing" in failures(named, idle)[0]


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


def test_one_flipped_bit_is_wrong() -> None:
    expected = np.linspace(-1, 1, 1000, dtype=np.float32)
    counts = tally.Tally(spoil=tally.flip_a_bit(2))
    right = [counts.verify(expected.copy(), expected, f"result {i}") for i in range(4)]
    assert right == [True, True, False, True]
    assert (counts.snapshot().results, counts.snapshot().wrong) == (4, 1)
    (example,) = counts.snapshot().examples
    assert "result 2: 1 of 1000 elements differ, first element 500" in example


ZERO, NAN = np.zeros(3, np.float32), np.full(2, np.nan, np.float32)
NEAR = np.array([1, -100, 0], np.float32)


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "says"),
    [
        (ZERO.copy(), ZERO, None, ""),
        (NAN.copy(), NAN, None, ""),
        (-ZERO, ZERO, None, "3 of 3 elements differ"),
        (np.zeros(3), ZERO, None, "float64[3]"),
        (ZERO[:, None], ZERO, None, "float32[3, 1]"),
        (NEAR + 1, NEAR, 0.02, ""),  # a part of the largest number
        (NEAR + 3, NEAR, 0.02, "3.0 off, of 100.0 at most"),
        (np.full(3, np.inf, np.float32), NEAR, 0.02, "not finite"),
    ],
)
def test_a_difference_of_bits_shape_or_type_or_beyond_the_tolerance_is_said(
    found: np.ndarray, expected: np.ndarray, tolerance: float | None, says: str
) -> None:
    said = (
        tally.difference(found, expected)
        if tolerance is None
        else tally.distance(found, expected, tolerance)
    )
    assert says in said
    assert bool(says) == bool(said)


def test_errors_and_gaps_are_counted() -> None:
    now = [0.0]
    counts = tally.Tally(clock=lambda: now[0])
    for second in (0.5, 0.9, 4.0):
        now[0] = second
        counts.check("", "it")
    counts.expected_error()
    counts.unexpected(ValueError("no such thing"))
    found = counts.snapshot()
    assert found.by_second == {0: 2, 4: 2}
    assert found.longest_gap == pytest.approx(3.1)
    assert (found.results, found.expected_errors, found.unexpected) == (4, 1, 1)
    assert "ValueError" in found.examples[0]
    assert "no such thing" in found.examples[0]


def sample() -> watcher.Sample:
    return watcher.take_sample(list)


def test_heap_is_what_malloc_has_handed_out() -> None:
    before = sample().heap_mib
    kept = bytearray(8 << 20)
    with_it = sample().heap_mib
    del kept
    after = sample().heap_mib
    assert with_it >= before + 7
    assert after <= with_it - 7


def test_hang_is_seen_and_names_the_worker() -> None:
    now = [0.0]
    hung: list[str] = []
    seen = threading.Event()

    def on_hang(workers: list[str]) -> None:
        hung.extend(workers)
        seen.set()

    watching = watcher.Watcher(90, sample, on_hang, every=0.01, clock=lambda: now[0])
    for worker in ("function 0", "feeds 1", "session 0"):
        watching.note(worker)
    now[0] = 89.0
    watching.note("function 0")
    watching.ended("session 0")  # it has nothing more to do
    assert not seen.wait(0.2)
    now[0] = 100.0
    assert seen.wait(30)
    watching.stop()
    assert hung == ["feeds 1: no result for 100 s"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (
            "import os, sys; sys.stderr.write('Check failed: x'); sys.stderr.flush(); os.abort()",
            ("it was ended by SIGABRT", "Check failed: x", "round-0.log"),
        ),
        (
            "import faulthandler, time; faulthandler.enable(); time.sleep(600)",
            ("it said nothing for 1 s, and was ended", "line 1 in <module>"),
        ),
    ],
)
def test_process_that_crashes_or_says_nothing_fails_with_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, program: str, says: Sequence[str]
) -> None:
    (tmp_path / "one_round.py").write_text(program)
    monkeypatch.setattr(soak, "HERE", tmp_path)
    monkeypatch.setattr(soak, "START_SECONDS", 1 if "sleep" in program else 60)
    options = soak.parse_arguments(["--seed", "1"])
    outcome = soak.Soak(options, tmp_path).run_round(soak.Round(0, 1, 1, {}, {"function": 1}))
    for text in says:
        assert text in "; ".join(outcome.failures())
