# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the programs that serve share: layers, what the runtime has counted, memory over time."""

from __future__ import annotations

import pathlib
import statistics
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from growth import growth
from watcher import Sample, take_sample

GPU = "/GPU:0"
WIDTH = 64
# Growth of memory that is not flat: both in MiB, and as a fraction of the least.
MOST_MIB, MOST_GROWTH = 24.0, 0.05
FIGURES = ("heap_mib", "group_mib", "resident_mib")


def layers(seed: int, count: int) -> np.ndarray:
    """Weights of dense layers, an array [count, WIDTH, WIDTH]."""
    draw = np.random.default_rng(seed).normal(size=[count, WIDTH, WIDTH])
    return (draw / 8).astype(np.float32)


def total(field: str) -> int:
    """A figure of tf.cuda.stream_stats, of all stream groups together."""
    return sum(getattr(group, field) for group in tf.cuda.stream_stats())


def least_median_most(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """The least, the median and the most, rounded."""
    three = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return {name: round(float(value), digits) for name, value in three.items()}


class Memory:
    """Samples of this process's memory, taken each second while the context is entered."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.samples.append(take_sample(tf.cuda.stream_stats))

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.samples.append(take_sample(tf.cuda.stream_stats))

    def report(self) -> dict[str, Any]:
        """The least, median and most MiB, and what has grown of malloc and the stream groups."""
        values = {name: [getattr(sample, name) for sample in self.samples] for name in FIGURES}
        grown = []
        for name in FIGURES[:2]:
            found = growth([sample.seconds for sample in self.samples], values[name])
            most = max(MOST_MIB, MOST_GROWTH * min(values[name]))
            if found is not None and found.steady and found.in_all > most:
                grown.append(f"{name} grew by {found.in_all:.0f}")
        return {
            "memory": {name: least_median_most(of_name) for name, of_name in values.items()},
            "grown": "; ".join(grown),
        }
