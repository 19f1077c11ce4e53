# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether results are right: compares bits and counts, for each kind of work."""

import copy
import dataclasses
import pathlib
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

# For each kind of work, so many problems are reported in full.
EXAMPLES = 3


def difference(found: Any, expected: Any) -> str:
    """Says where two arrays differ; empty if type, shape and every bit agree."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return (
            f"{found.dtype}{list(found.shape)} in place of {expected.dtype}{list(expected.shape)}"
        )
    if found.tobytes() == expected.tobytes():
        return ""
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, expected))
    rows = np.flatnonzero((a != b).reshape(-1, found.itemsize).any(axis=1))
    first = int(rows[0])
    return (
        f"{len(rows)} of {found.size} elements differ, first element {first}:"
        f" {found.reshape(-1)[first]!r} in place of {expected.reshape(-1)[first]!r}"
    )


def distance(found: Any, expected: Any, tolerance: float) -> str:
    """How far two arrays are apart; empty if no more than this fraction of the largest number."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return difference(found, expected)
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return "numbers that are not finite are elsewhere"
    apart = float(np.max(np.abs(found - expected), initial=0.0))
    largest = float(np.max(np.abs(expected), initial=0.0))
    return f"{apart} off, of {largest} at most" if apart > tolerance * largest else ""


@dataclasses.dataclass
class Counts:
    """The counts of a kind of work."""

    steps: int = 0  # calls made
    results: int = 0  # results that were verified
    wrong: int = 0  # results that were not as expected
    expected_errors: int = 0  # errors that had to come, and came
    unexpected: int = 0  # all other errors, and errors that did not come
    # Number of results in each whole second.
    by_second: dict[int, int] = dataclasses.field(default_factory=dict)
    longest_gap: float = 0.0  # seconds between two results of a worker
    # Descriptions of wrong results and unexpected errors.
    examples: list[str] = dataclasses.field(default_factory=list)


class Tally:
    """Counts of one kind of work, from all its workers; `spoil` changes a result, for tests."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spoil: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> None:
        self.counts = Counts()
        self._clock = clock
        self._spoil = spoil
        self._lock = threading.Lock()
        self._last: dict[int, float] = {}

    def step(self) -> None:
        with self._lock:
            self.counts.steps += 1

    def verify(self, found: Any, expected: Any, what: str) -> bool:
        """Compares a result bit by bit with what it has to be; returns whether it is."""
        return self.check(difference(self._spoil(np.asarray(found)), expected), what)

    def check(self, problem: str, what: str) -> bool:
        """Counts a result; it is wrong if `problem` says something."""
        with self._lock:
            self._count_result()
            if problem:
                self.counts.wrong += 1
                self._keep(f"wrong: {what}: {problem}")
        return not problem

    def expected_error(self) -> None:
        with self._lock:
            self._count_result()
            self.counts.expected_errors += 1

    def unexpected(self, problem: BaseException | str) -> None:
        """Counts an unexpected error, or an expected error that did not come."""
        if isinstance(problem, BaseException):
            here = str(pathlib.Path(__file__).parent)
            places = [
                f"{pathlib.Path(frame.filename).name}:{frame.lineno}"
                for frame in traceback.extract_tb(problem.__traceback__)
                if frame.filename.startswith(here)
            ]
            name = type(problem).__name__
            problem = f"{name} at {', '.join(places)}: {str(problem)[:2000]}"
        with self._lock:
            self.counts.unexpected += 1
            self._keep(f"unexpected: {problem}")

    def snapshot(self) -> Counts:
        with self._lock:
            return copy.deepcopy(self.counts)

    def _count_result(self) -> None:
        now, worker = self._clock(), threading.get_ident()
        counts = self.counts
        counts.results += 1
        counts.by_second[int(now)] = counts.by_second.get(int(now), 0) + 1
        counts.longest_gap = max(counts.longest_gap, now - self._last.get(worker, now))
        self._last[worker] = now

    def _keep(self, text: str) -> None:
        if len(self.counts.examples) < EXAMPLES:
            self.counts.examples.append(text)


def flip_a_bit(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """Makes a `spoil` that changes the lowest bit of the middle of the result of this number."""
    seen = iter(range(2**62))

    def spoil(found: np.ndarray) -> np.ndarray:
        if next(seen) != number or not found.nbytes:
            return found
        spoiled = np.array(found)
        spoiled.reshape(-1).view(np.uint8)[spoiled.nbytes // 2] ^= 1
        return spoiled

    return spoil
