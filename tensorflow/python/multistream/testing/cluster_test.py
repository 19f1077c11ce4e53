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
"""What the kit for clusters does when a process fails."""

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
