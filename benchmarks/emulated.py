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
"""Emulated GPUs: whether the times that a program measures mean anything, and tests of programs."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

TIMES_MEAN_NOTHING = "the GPU is emulated on the CPU: results count, times mean nothing"


def gpus_are_emulated() -> bool:
    """Tells whether this process's environment asks for emulated GPUs."""
    return os.environ.get("TF_MULTI_STREAM_EMULATED_GPUS", "").strip() not in ("", "0")


def run_on_emulated_gpu(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code that imports this folder's programs, with captured steps, for a test.

    Args:
        code: what to run.
        **variables: of its environment, beside those of two stream groups of an emulated GPU.

    Returns:
        The ended process, with what it printed.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=pathlib.Path(__file__).parent,
        env={
            **inherited,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_GPU_STREAM_GROUP_COUNT": "2",
            "TF_MULTI_STREAM_CAPTURE": "auto",
            "TF_MULTI_STREAM_EMULATED_GPUS": "1",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
