# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kit for clusters ends all processes when one fails."""

import time
from pathlib import Path

import pytest

from multistream.testing import cluster


def wait_for_long(folder: str) -> None:
    time.sleep(60)
    (Path(folder) / "waited").touch()


def fail() -> None:
    raise RuntimeError("on purpose")


def test_a_failed_process_ends_those_that_wait(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="on purpose"):
        cluster.run_all([(wait_for_long, (str(tmp_path),), {}), (fail, (), {})], tmp_path)
    assert not (tmp_path / "waited").exists()
