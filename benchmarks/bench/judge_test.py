# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of judge.py, and that workers count wrong results."""

from __future__ import annotations

import pathlib
import time

import numpy as np
import pytest

from .judge import Judge
from .program import Program, Spec
from .worker import Worker
from .workloads import INPUTS, WORKLOADS

EXPECTED = np.array([[1.0, -4.0]], np.float32)


def test_without_tolerance_one_bit_is_wrong() -> None:
    judge = Judge([EXPECTED], 0.0)
    assert judge.is_right(0, EXPECTED.copy())
    assert not judge.is_right(0, np.nextafter(EXPECTED, np.float32(9)))


def test_tolerance_is_of_the_largest_number() -> None:
    judge = Judge([EXPECTED], 0.01)
    for _ in range(2):  # what was right is remembered, and nothing else
        assert judge.is_right(0, EXPECTED + np.float32(0.039))
        assert not judge.is_right(0, EXPECTED + np.float32(0.041))


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_another_shape_and_not_a_number_are_wrong(tolerance: float) -> None:
    judge = Judge([EXPECTED], tolerance)
    assert not judge.is_right(0, EXPECTED.reshape(2, 1))
    assert not judge.is_right(0, np.full_like(EXPECTED, np.nan))


def test_the_result_of_another_input_is_wrong() -> None:
    judge = Judge([EXPECTED, 2 * EXPECTED], 0.01)
    assert judge.is_right(1, 2 * EXPECTED)
    assert not judge.is_right(1, EXPECTED)


class Sums(Program):
    """Sums of rows; of one input it gives a wrong one."""

    def __init__(self, bad: int, spec: Spec) -> None:
        super().__init__(WORKLOADS["mlp"], spec)
        self._bad = self.workload.inputs("small", 16)[bad].tobytes() if bad >= 0 else b""

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = x.sum(1)
        return result + 1 if x.tobytes() == self._bad else result

    def version(self) -> str:
        return "NumPy"


def test_wrong_results_are_counted(tmp_path: pathlib.Path) -> None:
    """Each client takes all inputs in turn, so that one of eight results is wrong."""
    spec = Spec("program", "mlp", "small", 1, {})
    worker, expected = Worker(spec), str(tmp_path / "expected.npz")
    worker._made = Sums(-1, spec)
    worker.reference(expected)

    def measure() -> tuple[int, int]:
        done = worker.measure(
            16, 2, "function", expected, 0.0, at=0, seconds=0.05, latencies=str(tmp_path / "l.npy")
        )
        assert len(np.load(tmp_path / "l.npy")) == done["queries"]
        return done["queries"], done["wrong"]

    queries, wrong = measure()
    assert queries > 2 * INPUTS and wrong == 0
    worker._made = Sums(3, spec)
    queries, wrong = measure()
    assert abs(wrong - queries / INPUTS) <= 2


def test_a_query_that_takes_longer_than_a_measurement_counts(tmp_path: pathlib.Path) -> None:
    """Each begins before the measurement does, and ends after it."""

    class Slow(Sums):
        def query(self, client: int, x: np.ndarray) -> np.ndarray:
            time.sleep(0.1)
            return super().query(client, x)

    spec = Spec("program", "mlp", "small", 1, {})
    worker, expected = Worker(spec), str(tmp_path / "expected.npz")
    worker._made = Slow(-1, spec)
    worker.reference(expected)
    done = worker.measure(
        16,
        2,
        "function",
        expected,
        0.0,
        at=time.monotonic() + 0.02,
        seconds=0.01,
        latencies=str(tmp_path / "l.npy"),
    )
    assert done["queries"] >= 1 and done["wrong"] == 0
    assert (np.load(tmp_path / "l.npy") >= 100).all()
    assert done["seconds"] >= 0.1
