# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether something grows: memory, threads, files, over the samples of a round."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

# Of a round's samples, those that are warm-up.
WARM_UP = 0.4
# Without as many seconds after warm-up, samples say nothing.
LEAST_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Limit:
    """What growth is too much.

    Args:
        per_minute: most growth in a minute.
        in_all: growth over the samples below which nothing is said, such as one more block of an
            allocator.
    """

    per_minute: float
    in_all: float


# Of the fields of watcher.Sample.
LIMITS = {
    # A few feeds more or fewer at a time are as much.
    "heap_mib": Limit(per_minute=32, in_all=96),
    "threads": Limit(per_minute=4, in_all=8),
    "files": Limit(per_minute=4, in_all=8),
    "group_mib": Limit(per_minute=32, in_all=96),
}


@dataclasses.dataclass(frozen=True)
class Growth:
    """How much something has grown.

    Each third of the samples after warm-up counts with its least one: what steps take and give back
    comes and goes, what they leave behind stays. Where much comes and goes, least ones differ by
    chance: growth is steady only if it leads out of the range that the first third has swung in.

    Args:
        per_minute: from the first third to the last.
        in_all: the same, not by time.
        steady: whether the second third is above the first, and the last above the second and above
            the first one's median.
    """

    per_minute: float
    in_all: float
    steady: bool

    def exceeds(self, limit: Limit) -> bool:
        """Whether it is too much: steady, and above both figures of the limit."""
        return self.steady and self.per_minute > limit.per_minute and self.in_all > limit.in_all


def growth(seconds: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Finds how much something has grown.

    Args:
        seconds: when the samples were taken.
        values: the samples.

    Returns:
        The growth; None if they are of too short a time to say.
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
