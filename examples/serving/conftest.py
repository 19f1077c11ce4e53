# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the model server's tests: servers that every test leaves as it has found them."""

import contextlib
import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import serving_kit
from serving_kit import FRONT, MOST_MB, Saved, Server


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Models that every test serves."""
    return serving_kit.make_models(tmp_path_factory.mktemp("saved"))


def _session_server(*options: str, versions: tuple[int, ...] = (1,), **variables: str) -> Any:
    """A fixture: a server of versions of `toy`, and of version 1 as `other`."""

    @pytest.fixture(scope="session")
    def started(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
        folder = tmp_path_factory.mktemp("server")
        toy, other = saved.copy(folder / "toy", *versions), saved.copy(folder / "other", 1)
        models = (f"--model=toy={toy}", f"--model=other={other}")
        with serving_kit.serving(*models, *options, log=folder / "log", **variables) as server:
            yield server

    return started


_two_versions = functools.partial(
    _session_server, "--versions=2", versions=(1, 2), TF_MULTI_STREAM_CAPTURE="auto"
)
python_server = _two_versions()
front_server = _two_versions(f"--front={FRONT}")
# One thread, one place in the queue, and small limits.
_SMALL = ("--threads=1", "--queue=1", "--max-request-mb=0.05", "--read-timeout=1")
small_server = _session_server(*_SMALL)
front_small_server = _session_server(*_SMALL, f"--front={FRONT}")
# A limit that is small enough for tests, and large enough to be above all slices.
greedy_server = _session_server(f"--max-request-mb={MOST_MB}")
front_greedy_server = _session_server(f"--max-request-mb={MOST_MB}", f"--front={FRONT}")


@pytest.fixture
def serve(
    saved: Saved, tmp_path: pathlib.Path
) -> Callable[..., contextlib.AbstractContextManager[Server]]:
    """Starts a server of version 1 with options of its own, for a test that ends it."""
    toy = saved.copy(tmp_path / "toy", 1)
    return functools.partial(serving_kit.serving, f"--model=toy={toy}", log=tmp_path / "log")


# A fixture with parameters must not have the name of a session's fixture that it asks for: pytest
# would make that one anew for each parameter, a server for each test.
@pytest.fixture
def server(python_server: Server) -> Server:
    """The server without --front; some files have `either_server` in its place."""
    return python_server


@pytest.fixture(params=["", "front"])
def either_server(
    python_server: Server, front_server: Server, request: pytest.FixtureRequest
) -> Server:
    """The servers without and with --front: clients see no difference."""
    return front_server if request.param else python_server
