# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of several GPUs, each with stream groups."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from multistream.testing import kit


def run(job: Callable[..., None], *arguments: object, **environment: str) -> None:
    """Runs a job as kit.run_job does, in a process with two GPUs."""
    kit.run_job(job, *arguments, **{"TF_MULTI_STREAM_EMULATED_GPUS": "2", **environment})


def gpu(i: int) -> str:
    """The name of GPU `i`, modulo the number of GPUs."""
    return f"/GPU:{i % len(gpus())}"


def gpus() -> range:
    return range(len(tf.config.list_physical_devices("GPU")))


def used() -> set[tuple[int, int]]:
    """GPU and number of the stream groups whose memory this process has used."""
    return {(s.gpu, s.group) for s in tf.cuda.stream_stats() if s.peak_bytes_in_use > 0}


def leaders() -> set[tuple[int, int]]:
    """GPU and number of the groups that are used without scopes."""
    return {(i, 0) for i in gpus()}


def numbers(seed: int, *shape: int) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32) * 0.5
