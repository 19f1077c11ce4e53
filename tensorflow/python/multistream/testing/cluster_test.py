# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kit for clusters ends all processes when one fails."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from multistream.testing import cluster

Job = Callable[[], None]


def wait_for_long() -> None:
    time.sleep(250)


def fail() -> None:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize("jobs", [(wait_for_long, fail), (fail, wait_for_long)])
def test_a_failed_process_ends_those_that_wait(jobs: tuple[Job, ...], tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(AssertionError, match="on purpose"):
        cluster.run_all([(job, (), {}) for job in jobs], tmp_path)
    assert time.monotonic() - start < 200
