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
"""Fixtures of several test files."""

from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.multistream import cuda

from multistream.testing import kit


@pytest.fixture
def four_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sees four groups; the process has none."""
    monkeypatch.setattr(cuda, "multi_stream_is_enabled", lambda: True)
    monkeypatch.setattr(cuda, "stream_group_count", lambda gpu=0: 4)


@pytest.fixture
def graph() -> Iterator[Any]:
    """A v1 graph to build in."""
    with tf.Graph().as_default() as new:
        yield new


@pytest.fixture
def fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's processes import TensorFlow themselves."""
    monkeypatch.setattr(kit, "forks", False)
