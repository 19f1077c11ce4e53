# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the memory of a process stays flat, over samples of it."""

from __future__ import annotations

import dataclasses
import pathlib
import statistics
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from watcher import Sample, take_sample

# From the middle third of the samples to the last one, growth that is not flat.
MOST_GROWTH, MOST_MIB = 0.05, 24.0
FIGURES = ("heap_mib", "group_mib", "resident_mib")


@dataclasses.dataclass
class Memory:
    """Samples of this process.

    Args:
        stats: tf.cuda.stream_stats.
    """

    stats: Callable[[], list[Any]]
    samples: list[Sample] = dataclasses.field(default_factory=list)

    def sample(self) -> None:
        """Takes a sample."""
        self.samples.append(take_sample(self.stats))

    def summary(self) -> dict[str, dict[str, float]]:
        """The least, median and most MiB of each figure."""
        summary = {}
        for name in FIGURES:
            values = [getattr(sample, name) for sample in self.samples]
            three = {"min": min(values), "median": statistics.median(values), "max": max(values)}
            summary[name] = {key: round(value, 1) for key, value in three.items()}
        return summary

    def growth(self) -> str:
        """Says which memory has grown, of malloc and of the stream groups; empty if none has.

        The first third of the samples is warm-up; of the others the medians of the middle third
        and of the last one are compared.
        """
        third = len(self.samples) // 3
        if not third:
            return ""
        grown = []
        for name in FIGURES[:2]:
            values = [getattr(sample, name) for sample in self.samples]
            middle = statistics.median(values[third:-third])
            last = statistics.median(values[-third:])
            if last - middle > max(MOST_MIB, MOST_GROWTH * middle):
                grown.append(f"{name} grew from {middle:.0f} to {last:.0f}")
        return "; ".join(grown)
