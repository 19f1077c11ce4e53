# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
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
