# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
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
