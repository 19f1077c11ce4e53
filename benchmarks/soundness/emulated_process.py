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
"""For tests: runs this folder's programs in processes of their own, on an emulated GPU."""

from __future__ import annotations

import pathlib
import subprocess

from multistream.testing import kit

FOLDER = pathlib.Path(__file__).resolve().parent
CAPTURED = {
    "TF_MULTI_STREAM_EMULATED_GPUS": "1",
    "TF_GPU_STREAM_GROUP_COUNT": "2",
    "TF_MULTI_STREAM_CAPTURE": "auto",
}


def run_captured(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code that imports the programs, with captured steps."""
    return run_python(["-c", code], {**CAPTURED, **environment})


def run_python(
    arguments: list[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs Python with arguments in this folder, and with these variables of TensorFlow's."""
    done: subprocess.CompletedProcess[str] = kit.run_program(arguments, FOLDER, **environment)
    return done
