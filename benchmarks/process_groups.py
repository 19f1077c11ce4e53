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
"""The stream groups that this process has: what it lacks for several, and a scope of one.

`training_comparison.py` and the models of the benchmarks ask.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

GPU = "/GPU:0"


def check_environment() -> list[str]:
    """Checks that this process can run work on several streams.

    Returns:
        Why scopes have no effect here, a sentence each; empty if they have.

    Raises:
        RuntimeError: there is no multi-stream TensorFlow, or no GPU.
    """
    if not hasattr(tf, "cuda"):
        raise RuntimeError("this TensorFlow has no tf.cuda; install the multi-stream wheel")
    try:
        gpus = tf.config.list_physical_devices("GPU")
    except tf.errors.FailedPreconditionError as error:
        raise RuntimeError(error.message) from error
    if not gpus:
        raise RuntimeError(
            "TensorFlow finds no GPU; set TF_MULTI_STREAM_EMULATED_GPUS=1 for an emulated one"
        )
    missing = []
    groups = tf.cuda.stream_group_count()
    if groups < 2:
        missing.append("there is 1 stream group: set TF_GPU_STREAM_GROUP_COUNT to 2 or more")
    name = "TF_NODE_LEVEL_MULTISTREAM"
    if os.environ.get(name, "").lower() not in ("true", "1"):
        missing.append(f"{name} is not on: set {name}=true")
    return missing


def sanitizer_reports() -> int | None:
    """Number of races that the stream sanitizer has reported; None if it is off."""
    if os.environ.get("TF_MULTI_STREAM_SANITIZER", "").lower() not in ("log", "abort"):
        return None
    library: Any = importlib.import_module("tensorflow.python.multistream.loader").library
    count = library.TFMS_SanitizerReports
    count.restype = ctypes.c_int64
    return int(count())


def groups_used() -> list[int]:
    """The stream groups whose memory this process has used."""
    return [stats.group for stats in tf.cuda.stream_stats() if stats.peak_bytes_in_use > 0]


def on_group(group: int, scoped: bool) -> Any:
    """A scope of a stream group.

    Args:
        group: any number; groups are counted round.
        scoped: False gives a context that does nothing.

    Returns:
        The context manager.
    """
    if not scoped:
        return contextlib.nullcontext()
    return tf.cuda.stream_scope(tf.cuda.get_stream(group % tf.cuda.stream_group_count()))
