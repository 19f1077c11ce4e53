# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what verifies and watches: a flipped bit, a hang, a process that ends."""

from __future__ import annotations

import pathlib
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest
import soak
import tally
import watcher


def test_one_flipped_bit_is_wrong() -> None:
    expected = np.linspace(-1, 1, 1000, dtype=np.float32)
    counts = tally.Tally(spoil=tally.flip_a_bit(2))
    right = [counts.verify(expected.copy(), expected, f"result {i}") for i in range(4)]
    assert right == [True, True, False, True]
    assert (counts.snapshot().results, counts.snapshot().wrong) == (4, 1)
    (example,) = counts.snapshot().examples
    assert "result 2: 1 of 1000 elements differ, first element 500" in example


ZERO, NAN = np.zeros(3, np.float32), np.full(2, np.nan, np.float32)
SQUARE = np.array([[1, 2], [3, 4]], np.int32)
NEAR = np.array([1, -100, 0], np.float32)


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "says"),
    [
        (ZERO.copy(), ZERO, None, ""),
        (NAN.copy(), NAN, None, ""),
        (-ZERO, ZERO, None, "3 of 3 elements differ"),
        (np.zeros(3), ZERO, None, "float64[3]"),
        (ZERO[:, None], ZERO, None, "float32[3, 1]"),
        (SQUARE.T, SQUARE, None, "2 of 4 elements differ"),
        (NEAR + 1, NEAR, 0.02, ""),  # a part of the largest number
        (NEAR + 3, NEAR, 0.02, "3.0 off, of 100.0 at most"),
        (np.full(3, np.inf, np.float32), NEAR, 0.02, "not finite"),
        (NEAR.astype(np.float64), NEAR, 0.02, "float64"),
        (NEAR[:1], NEAR, 0.02, "[1]"),
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


def test_sample_is_of_this_process() -> None:
    before = sample()
    assert before.resident_mib > 1
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    with pathlib.Path(__file__).open():
        after = sample()
    event.set()
    thread.join()
    assert after.threads >= before.threads + 1
    assert after.files >= before.files + 1


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


def test_stacks_show_where_a_thread_stands(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher.shutil, "which", lambda name: None)
    event = threading.Event()

    def stands_here() -> None:
        event.wait()

    thread = threading.Thread(target=stands_here)
    thread.start()
    path = tmp_path / "stacks"
    with path.open("w") as out:
        watcher.write_stacks(out, lambda: ["a group"])
    event.set()
    thread.join()
    assert "stands_here" in path.read_text()
    assert "a group" in path.read_text()


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


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
