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
"""Emulated GPUs: whether the times that a program measures mean anything."""

from __future__ import annotations

import os

TIMES_MEAN_NOTHING = "the GPU is emulated on the CPU: results count, times mean nothing"


def gpus_are_emulated() -> bool:
    """Tells whether this process's environment asks for emulated GPUs."""
    return os.environ.get("TF_MULTI_STREAM_EMULATED_GPUS", "").strip() not in ("", "0")
