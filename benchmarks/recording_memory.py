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
"""Do recordings of steps take as much of a GPU's memory as `tf.cuda.stream_stats()` says?

    TF_GPU_STREAM_GROUP_COUNT=4 TF_MULTI_STREAM_CAPTURE=auto python benchmarks/recording_memory.py

Records graphs of several kinds, each with some batches on each stream group. Compared are what is
taken, of what the GPU has free and of TensorFlow's own memory, and what the statistics say. The
driver takes portions of 2 MiB, and of 32 for graphs that allocate memory as they run. Prints a line
of CSV for each graph, in MiB. Needs a GPU.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from frozen_model import MODEL, FrozenModel

GPU = "/GPU:0"
BATCHES = range(1, 12)
# A shape's third run on a group records it.
RUNS = 3
MIB = 1 << 20
RANDOM = np.random.default_rng(3)

Graph = tuple[Callable[[Any], Any], Callable[[int], np.ndarray]]


def recommender() -> Graph:
    """300 small kernels."""
    model = FrozenModel(str(MODEL))
    (rows,) = model.inputs(max(BATCHES), 1)
    return model.predict, lambda batch: rows[:batch]


def transpositions() -> Graph:
    """100 pairs of tanh and a transposition."""

    def run(x: Any) -> Any:
        for _ in range(50):
            x = tf.transpose(tf.tanh(tf.transpose(tf.tanh(x))))
        return x

    return run, lambda batch: RANDOM.random((batch, 64), np.float32)


def products() -> Graph:
    """100 products with a matrix."""
    weights = RANDOM.normal(size=(64, 64)).astype(np.float32) / 8

    def run(x: Any) -> Any:
        for _ in range(100):
            x = tf.tanh(x @ weights)
        return x

    return run, lambda batch: RANDOM.random((batch, 64), np.float32)


def convolutions() -> Graph:
    """100 convolutions."""
    weights = RANDOM.normal(size=(3, 3, 8, 8)).astype(np.float32) / 8

    def run(x: Any) -> Any:
        for _ in range(100):
            x = tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME"))
        return x

    return run, lambda batch: RANDOM.random((batch, 8, 8, 8), np.float32)


def attention() -> Graph:
    """25 layers of products of batches of matrices, softmax and layer norm."""

    def run(x: Any) -> Any:
        for _ in range(25):
            scores = tf.nn.softmax(tf.matmul(x, x, transpose_b=True))
            x = x + tf.matmul(scores, x)
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            x = (x - mean) * tf.math.rsqrt(variance + 1e-3)
        return x

    return run, lambda batch: RANDOM.random((batch, 32, 32), np.float32)


GRAPHS = (recommender, transpositions, products, convolutions, attention)


def free_bytes() -> int:
    """What the GPU has free, in bytes."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    error = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    if error:
        raise RuntimeError(f"cuMemGetInfo failed with CUDA's error {error}")
    return free.value


def pool_bytes() -> int:
    """What CUDA's pool for graphs that allocate memory has, in bytes."""
    reserved = ctypes.c_uint64()
    driver = ctypes.CDLL("libcuda.so.1")
    # CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
    if error := driver.cuDeviceGetGraphMemAttribute(0, 2, ctypes.byref(reserved)):
        raise RuntimeError(f"cuDeviceGetGraphMemAttribute failed with CUDA's error {error}")
    return reserved.value


def said() -> tuple[int, int, int]:
    """Recordings, their bytes, and those of workspaces that CUDA may take for them."""
    groups = tf.cuda.stream_stats()
    return (
        sum(group.recordings for group in groups),
        sum(group.recording_bytes for group in groups),
        sum(group.recording_workspace_bytes for group in groups),
    )


def served(run: Callable[[Any], Any], sample: np.ndarray) -> Callable[[np.ndarray], Any]:
    """A callable for batches of any size."""

    def on_gpu(x: Any) -> Any:
        with tf.device(GPU):
            return tf.identity(run(x))

    signature = [tf.TensorSpec([None, *sample.shape[1:]], sample.dtype)]
    callable_: Callable[[np.ndarray], Any] = tf.cuda.serving_callable(
        tf.function(on_gpu, input_signature=signature)
    )
    return callable_


def main() -> int:
    """Returns the exit status."""
    groups = tf.cuda.stream_group_count()
    keep = []  # or the driver has their memory for the next one
    print("graph,recordings,said_mib,of_tensorflow_mib,taken_mib,pool_said_mib,pool_taken_mib")
    for graph in GRAPHS:
        run, inputs = graph()
        call = served(run, inputs(1))
        keep.append(call)

        def runs(count: int, call: Any = call, inputs: Any = inputs) -> None:
            for _ in range(count):
                for batch in BATCHES:
                    for group in range(groups):
                        with tf.device(GPU), tf.cuda.stream_group(group):
                            call(inputs(batch))

        runs(RUNS - 1)
        before, in_use = said(), bytes_in_use()
        free, pool = free_bytes(), pool_bytes()
        runs(RUNS)
        recordings, told, workspaces = said()
        of_tensorflow = bytes_in_use() - in_use
        pool_taken = pool_bytes() - pool
        taken = free - free_bytes() - pool_taken + of_tensorflow
        figures = [told - before[1], of_tensorflow, taken, workspaces - before[2], pool_taken]
        print(
            f"{graph.__name__},{recordings - before[0]},"
            + ",".join(f"{bytes_ / MIB:.1f}" for bytes_ in figures),
            flush=True,
        )
    return 0


def bytes_in_use() -> int:
    """What steps have of the groups' own memory, in bytes."""
    return sum(group.bytes_in_use for group in tf.cuda.stream_stats())


if __name__ == "__main__":
    sys.exit(main())
