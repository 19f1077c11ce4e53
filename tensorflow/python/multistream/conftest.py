# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several test files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.multistream.groups import stats

from multistream.testing import kit, left_out


@pytest.fixture
def four_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sees four groups; the process has none."""
    monkeypatch.setattr(stats, "multi_stream_is_enabled", lambda: True)
    monkeypatch.setattr(stats, "stream_group_count", lambda gpu=0: 4)


@pytest.fixture
def graph() -> Iterator[Any]:
    """A v1 graph to build in."""
    with tf.Graph().as_default() as new:
        yield new


@pytest.fixture
def old_control_flow() -> Iterator[None]:
    """tf.cond and tf.while_loop of v1 graphs, which build ops in the same graph."""
    tf.compat.v1.disable_control_flow_v2()
    yield
    tf.compat.v1.enable_control_flow_v2()


@pytest.fixture
def fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process of the kit imports TensorFlow itself, instead of being forked."""
    monkeypatch.setattr(kit, "forks", False)


class _LeftOut(pytest.Module):
    """A test file that is not imported: this TensorFlow lacks the tested feature."""

    def collect(self) -> Any:
        pytest.skip(left_out.reason(self.path.name) or "", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Skips files that `left_out.py` names."""
    if left_out.reason(module_path.name):
        return _LeftOut.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Skips tests that `left_out.py` names."""
    for item in items:
        name = item.name.partition("[")[0]
        if why := left_out.reason(f"{item.path.name}::{name}"):
            item.add_marker(pytest.mark.skip(reason=why))
