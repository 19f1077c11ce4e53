# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random programs on stream groups give what one stream gives."""

import concurrent.futures

import pytest

from multistream.testing import kit
from multistream.testing.program_results import compare_programs


def random_programs(first: int, last: int) -> None:
    """The programs of these seeds, in this process."""
    compare_programs(first, last)


@pytest.mark.parametrize("reduce_waits", ["true", "false"])
def test_random_programs(reduce_waits: str) -> None:
    """Random programs give the same bits with scopes as without."""

    def run_part(part: int) -> None:
        kit.run_job(
            random_programs,
            10000 * part,
            10000 * part + 28 * kit.PROGRAMS,
            TF_REDUCE_STREAM_WAIT=reduce_waits,
            TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION=str(part % 2 > 0),
        )

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run_part, (0, 1) if reduce_waits == "true" else (2, 3)))
