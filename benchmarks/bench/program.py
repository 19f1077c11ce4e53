# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a framework's program of a workload looks like to the worker; the base of all of them."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from .workloads import Workload


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a worker is started with.

    Args:
        program: the module that runs the workload, such as `tensorflow_program`.
        workload: name.
        size: `small` or `full`.
        parallel: stream groups, copies of the model, or 1.
        options: what else the program should know, see peers.py.
    """

    program: str
    workload: str
    size: str
    parallel: int
    options: dict[str, Any]


class Program(abc.ABC):
    """A workload, ready to be queried from several threads.

    Args:
        workload: which.
        spec: how.
    """

    def __init__(self, workload: Workload, spec: Spec) -> None:
        self.workload = workload
        self.spec = spec

    def prepare(self, inputs: Sequence[np.ndarray], clients: int, call: str) -> None:
        """Makes what clients `0` to `clients - 1` need for such inputs; called again for others.

        Args:
            inputs: arrays of equal shape.
            clients: how many.
            call: of the peer's ways to call, see peers.py.
        """
        del inputs, clients, call

    def prepare_thread(self, client: int) -> None:
        """Prepares the calling thread, which is to be a client's; one after the other."""
        del client

    @abc.abstractmethod
    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        """Runs one query, as `prepare` has said; returns its result, in memory of the host."""

    def around(self, client: int) -> contextlib.AbstractContextManager[object]:
        """What a client's thread is in while it queries."""
        del client
        return contextlib.nullcontext()

    def rewind(self) -> None:
        """Gives a model that is trained its first weights again."""
        raise NotImplementedError(f"{self.version()} trains nothing here")

    def counters(self) -> dict[str, float]:
        """What the framework has counted: `replays` and `peak_mib`, if it does."""
        return {}

    @abc.abstractmethod
    def version(self) -> str:
        """Name and version of the framework."""
