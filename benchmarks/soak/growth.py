# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether something grows: memory, threads, files, over the samples of a round."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

# The part of a round's samples that is warm-up.
WARM_UP = 0.4
# With fewer seconds after warm-up, samples say nothing.
LEAST_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Limit:
    """The limit above which growth is a failure.

    Args:
        what: of which there is more.
        per_minute: most growth in a minute.
        in_all: total growth that is always allowed, such as one more block of an allocator.
    """

    what: str
    per_minute: float
    in_all: float


# By field of watcher.Sample.
LIMITS = {
    # A few feeds in flight more or fewer change the figure this much.
    "heap_mib": Limit("MiB from malloc", per_minute=32, in_all=96),
    "threads": Limit("threads", per_minute=4, in_all=8),
    "files": Limit("open files", per_minute=4, in_all=8),
    "group_mib": Limit("MiB in stream groups", per_minute=32, in_all=96),
}


@dataclasses.dataclass(frozen=True)
class Growth:
    """How much something has grown.

    The minimum of each third of the samples after warm-up counts: memory that steps take and free
    comes and goes, memory that they leak stays. If much comes and goes, minima differ by chance;
    growth is steady only if it leaves the range of the first third.

    Args:
        per_minute: growth from the first third to the last, per minute.
        in_all: growth from the first third to the last.
        steady: whether the second third is above the first, and the last above the second and above
            the first one's median.
    """

    per_minute: float
    in_all: float
    steady: bool

    def exceeds(self, limit: Limit) -> bool:
        """Whether the growth is steady, and above both figures of the limit."""
        return self.steady and self.per_minute > limit.per_minute and self.in_all > limit.in_all


def growth(seconds: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Finds how much something has grown.

    Args:
        seconds: when the samples were taken.
        values: the samples.

    Returns:
        The growth; None if the samples span too short a time.
    """
    warm = int(len(values) * WARM_UP)
    seconds, values = seconds[warm:], values[warm:]
    if len(values) < 3 or seconds[-1] - seconds[0] < LEAST_SECONDS:
        return None
    third = len(values) // 3
    first, second, last = (min(v) for v in (values[:third], values[third:-third], values[-third:]))
    minutes = (statistics.median(seconds[-third:]) - statistics.median(seconds[:third])) / 60
    steady = first < second < last and last > statistics.median(values[:third])
    return Growth((last - first) / minutes, last - first, steady)
