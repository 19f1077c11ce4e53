# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""memory_over_time.py says whether memory has grown after the warm-up."""

from __future__ import annotations

import sys

import pytest
from memory_over_time import FIGURES, Memory
from watcher import Sample


def memory_of(values: list[float]) -> Memory:
    return Memory(
        list, [Sample(float(i), value, value, 1, 1, value) for i, value in enumerate(values)]
    )


def test_growth_after_warm_up_is_told() -> None:
    grown = memory_of([1000.0 + 5 * i for i in range(60)]).growth()
    assert "heap_mib grew from 1148 to 1248" in grown
    assert "group_mib" in grown


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [10.0 * min(i, 20) for i in range(60)],  # warm-up
        [1000.0 + 100 * (i % 2) for i in range(60)],
        [1000.0 + i % 20 for i in range(60)],
        [1000.0 - 5 * i for i in range(60)],
    ],
)
def test_what_is_flat_is_not(values: list[float]) -> None:
    assert memory_of(values).growth() == ""


def test_summary_has_least_median_and_most() -> None:
    summary = memory_of([3.0, 1.0, 2.0]).summary()
    assert summary == {name: {"min": 1.0, "median": 2.0, "max": 3.0} for name in FIGURES}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
