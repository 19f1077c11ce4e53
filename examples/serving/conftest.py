# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the model server's tests."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import serving_kit


class Saved(NamedTuple):
    """The test's model: `folder` has versions 1 and 2, `answers` what they answer to `x`."""

    folder: pathlib.Path
    answers: dict[str, Any]

    def copy(self, folder: pathlib.Path, *versions: int) -> pathlib.Path:
        """Copies versions into a folder, as a deployment does: whole, by a move."""
        folder.mkdir(exist_ok=True)
        for version in versions:
            part = folder / f"{version}.part"
            shutil.copytree(self.folder / str(version), part)
            part.rename(folder / str(version))
        return folder


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Models that every test serves."""
    folder = tmp_path_factory.mktemp("saved")
    return Saved(folder, serving_kit.make_models(folder))


@pytest.fixture(scope="session")
def server(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving_kit.Server]:
    """A server of both versions, with captured steps, for tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("server")
    toy = saved.copy(folder / "toy", 1, 2)
    other = saved.copy(folder / "other", 1)
    options = (f"--model=toy={toy}", f"--model=other={other}", "--versions=2")
    log = folder / "log"
    with serving_kit.serving(*options, log=log, TF_MULTI_STREAM_CAPTURE="auto") as started:
        yield started
        assert "Traceback" not in started.text()


@pytest.fixture(scope="session")
def small_server(
    saved: Saved, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[serving_kit.Server]:
    """A server with one thread, one place in the queue, and small limits."""
    folder = tmp_path_factory.mktemp("small")
    toy = saved.copy(folder / "toy", 1)
    limits = ("--threads=1", "--queue=1", "--max-request-mb=0.05", "--read-timeout=1")
    with serving_kit.serving(f"--model=toy={toy}", *limits, log=folder / "log") as started:
        yield started
        assert "Traceback" not in started.text()
