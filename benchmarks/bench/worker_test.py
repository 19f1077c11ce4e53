# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of worker.py, with programs that have little to do: threads, and wrong results."""

import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .program import Program, Spec
from .worker import Judge, Worker
from .workloads import INPUTS, WORKLOADS

EXPECTED = np.array([[1.0, -4.0]], np.float32)
CLIENTS = 3
(BATCH,) = WORKLOADS["mlp"].batches


@pytest.mark.parametrize(
    ("tolerance", "result", "right"),
    [
        (0.0, EXPECTED.copy(), True),
        (0.0, np.nextafter(EXPECTED, np.float32(9)), False),  # one bit
        (0.01, EXPECTED + np.float32(0.039), True),  # of the largest number
        (0.01, EXPECTED + np.float32(0.041), False),
        (0.01, 2 * EXPECTED, False),  # the result of another input
        *(
            (tolerance, result, False)
            for tolerance in (0.0, 0.5)
            for result in (EXPECTED.reshape(2, 1), np.full_like(EXPECTED, np.nan))
        ),
    ],
)
def test_a_result_is_right_within_the_tolerance(
    tolerance: float, result: np.ndarray, right: bool
) -> None:
    judge = Judge([2 * EXPECTED, EXPECTED], tolerance)
    for _ in range(2):  # what was right is remembered, and nothing else
        assert judge.is_right(1, result) == right


class Told(Program):
    """Sums of rows; notes in which threads it is prepared and queried."""

    def __init__(self, more: Callable[[np.ndarray], float] = lambda x: 0.0) -> None:
        super().__init__(WORKLOADS["mlp"], Spec("program", "mlp", "small", 1, {}))
        self.more = more
        self.prepared: dict[int, set[int]] = {}
        self.queried: dict[int, set[int]] = {}
        self.preparing = threading.Lock()

    def prepare_thread(self, client: int) -> None:
        assert self.preparing.acquire(blocking=False), "two at a time"
        self.prepared.setdefault(client, set()).add(threading.get_ident())
        self.preparing.release()

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        self.queried.setdefault(client, set()).add(threading.get_ident())
        result: np.ndarray = x.sum(1) + np.float32(self.more(x))
        return result

    def version(self) -> str:
        return "NumPy"


class Measured:
    """A worker of a program, which has written the expected results of another one."""

    def __init__(self, program: Told, folder: pathlib.Path) -> None:
        self.worker = Worker(program.spec)
        self._expected, self._latencies = str(folder / "expected.npz"), folder / "l.npy"
        self.worker._program = Told()
        self.worker.reference(self._expected)
        self.worker._program = program

    def measure(self, clients: int, at: float = 0.0, seconds: float = 0.05) -> dict[str, Any]:
        done = self.worker.measure(
            BATCH, clients, "function", self._expected, 0.0, at, seconds, str(self._latencies)
        )
        self.milliseconds = np.load(self._latencies)
        assert len(self.milliseconds) == done["queries"] > 0
        return done


def test_wrong_results_are_counted(tmp_path: pathlib.Path) -> None:
    """Each client takes all inputs in turn, so that one of eight results is wrong."""
    done = Measured(Told(), tmp_path).measure(2)
    assert done["queries"] > 2 * INPUTS and done["wrong"] == 0
    bad = WORKLOADS["mlp"].inputs("small", BATCH)[3].tobytes()
    done = Measured(Told(lambda x: x.tobytes() == bad), tmp_path).measure(2)
    assert abs(done["wrong"] - done["queries"] / INPUTS) <= 2


def test_a_query_that_takes_longer_than_a_measurement_counts(tmp_path: pathlib.Path) -> None:
    """Each begins before the measurement does, and ends after it."""

    def slow(_: object) -> float:
        time.sleep(0.1)
        return 0.0

    measured = Measured(Told(slow), tmp_path)
    done = measured.measure(2, at=time.monotonic() + 0.02, seconds=0.01)
    assert done["wrong"] == 0
    assert (measured.milliseconds >= 100).all()
    assert done["seconds"] >= 0.1


def test_a_client_keeps_the_thread_that_was_prepared_for_it(tmp_path: pathlib.Path) -> None:
    program = Told()
    measured = Measured(program, tmp_path)
    measured.worker.warm(BATCH, CLIENTS, "function", at_most=0.3)
    for clients in (CLIENTS, 1):
        assert measured.measure(clients)["wrong"] == 0
    assert all(len(program.queried[i]) == 1 for i in range(CLIENTS))
    assert program.queried == program.prepared
