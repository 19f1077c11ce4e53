# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of worker.py, with a program that has nothing to do."""

from __future__ import annotations

import pathlib
import sys
import threading
import types

import numpy as np
import pytest

from . import worker
from .program import Program, Spec
from .workloads import WORKLOADS, Workload

CLIENTS = 3


class Threads(Program):
    """Notes in which threads it is prepared, and in which it is queried."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        super().__init__(workload, spec)
        self.prepared: dict[int, set[int]] = {}
        self.queried: dict[int, set[int]] = {}
        self.preparing = threading.Lock()

    def prepare_thread(self, client: int) -> None:
        """See Program."""
        assert self.preparing.acquire(blocking=False), "two at a time"
        self.prepared.setdefault(client, set()).add(threading.get_ident())
        self.preparing.release()

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        """See Program."""
        self.queried.setdefault(client, set()).add(threading.get_ident())
        return x

    def version(self) -> str:
        """See Program."""
        return "none"


def test_a_client_keeps_the_thread_that_was_prepared_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    made: list[Threads] = []

    def make(workload: Workload, spec: Spec) -> Threads:
        made.append(Threads(workload, spec))
        return made[0]

    module = types.SimpleNamespace(make=make)
    monkeypatch.setitem(sys.modules, f"{worker.__package__}.threads", module)
    one = worker.Worker(Spec("threads", "mlp", "small", 1, {}))
    one.make()
    (batch,) = WORKLOADS["mlp"].batches
    expected, times = str(tmp_path / "expected.npz"), str(tmp_path / "times.npy")
    one.reference(expected)
    made[0].queried.clear()
    one.warm(batch, CLIENTS, "function", at_most=0.3)
    for clients in (CLIENTS, 1):
        done = one.measure(batch, clients, "function", expected, 0.0, 0.0, 0.05, times)
        assert done["queries"] > 0
        assert done["wrong"] == 0
    assert all(len(made[0].queried[i]) == 1 for i in range(CLIENTS))
    assert made[0].queried == made[0].prepared
