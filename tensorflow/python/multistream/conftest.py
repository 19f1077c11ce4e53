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
"""What several test files use."""

import os
import subprocess
import sys
import textwrap

import pytest
from tensorflow.python.multistream import cuda


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process with these multi-stream variables and no others."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**clean, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ok(code: str, **environment: str) -> str:
    """Like run, for code that must succeed; returns what it prints."""
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def four_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sees four groups; the process has none."""
    monkeypatch.setattr(cuda, "multi_stream_is_enabled", lambda: True)
    monkeypatch.setattr(cuda, "stream_group_count", lambda gpu=0: 4)
