# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Emulated GPUs: whether the times that a program measures mean anything."""

from __future__ import annotations

import os

TIMES_MEAN_NOTHING = "the GPU is emulated on the CPU: results count, times mean nothing"


def gpus_are_emulated() -> bool:
    """Tells whether this process's environment asks for emulated GPUs."""
    return os.environ.get("TF_MULTI_STREAM_EMULATED_GPUS", "").strip() not in ("", "0")
