# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the model server's tests: servers that every test leaves as it has found them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import serving_kit
from serving_kit import Saved, Server

MOST_MB = 8  # of greedy_server


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Models that every test serves."""
    return serving_kit.make_models(tmp_path_factory.mktemp("saved"))


@pytest.fixture(scope="session")
def server(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of both versions, with captured steps."""
    folder = tmp_path_factory.mktemp("server")
    toy = saved.copy(folder / "toy", 1, 2)
    other = saved.copy(folder / "other", 1)
    options = (f"--model=toy={toy}", f"--model=other={other}", "--versions=2")
    log = folder / "log"
    with serving_kit.serving(*options, log=log, TF_MULTI_STREAM_CAPTURE="auto") as started:
        yield started


@pytest.fixture(scope="session")
def small_server(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one thread, one place in the queue, and small limits."""
    folder = tmp_path_factory.mktemp("small")
    toy = saved.copy(folder / "toy", 1)
    limits = ("--threads=1", "--queue=1", "--max-request-mb=0.05", "--read-timeout=1")
    with serving_kit.serving(f"--model=toy={toy}", *limits, log=folder / "log") as started:
        yield started


@pytest.fixture(scope="session")
def greedy_server(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose limit is small enough for tests, and large enough to be above all slices."""
    folder = tmp_path_factory.mktemp("greedy")
    toy = saved.copy(folder / "toy", 1)
    options = (f"--model=toy={toy}", f"--max-request-mb={MOST_MB}", "--read-timeout=300")
    with serving_kit.serving(*options, log=folder / "log") as started:
        yield started
