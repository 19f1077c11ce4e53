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
"""Another library's calls of CUDA in the same process, which wait for and change the whole GPU."""

from __future__ import annotations

import ctypes
import glob
import os
import random
from typing import Any

import tensorflow as tf
from models import Place, Results, Work
from tally import Tally

LARGEST = 1 << 20
TO_GPU, TO_HOST = 1, 2  # cudaMemcpyKind


def find_runtime() -> Any:
    """Loads CUDA's runtime library: that of TensorFlow's Python packages, or the system's."""
    site = os.path.dirname(os.path.dirname(tf.__file__))
    found = glob.glob(f"{site}/nvidia/cuda_runtime/lib/libcudart.so.*")
    return ctypes.CDLL(found[0] if found else "libcudart.so.12")


class ForeignCalls(Work):
    """Copies to the GPU and back, and calls what other libraries call; each must succeed."""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.runtime = find_runtime()

    def call(self, tally: Tally, name: str, *arguments: Any) -> None:
        """Calls a function of CUDA's; what it returns has to be 0."""
        tally.step()
        status = getattr(self.runtime, name)(*arguments)
        tally.check(f"returned {status}" if status else "", name)

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Allocates, copies, waits and frees."""
        size = draw.randint(1, LARGEST)
        memory = ctypes.c_void_p()
        self.call(tally, "cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(size))
        sent = draw.randbytes(16) * (size // 16 + 1)
        host, back = ctypes.create_string_buffer(sent[:size], size), ctypes.create_string_buffer(size)
        count = ctypes.c_size_t(size)
        self.call(tally, "cudaMemcpy", memory, host, count, TO_GPU)
        if draw.random() < 0.5:
            self.call(tally, "cudaDeviceSynchronize")
        self.call(tally, "cudaMemcpy", back, memory, count, TO_HOST)
        tally.check("other bytes" if back.raw != host.raw else "", f"a copy of {size} bytes")
        self.call(tally, "cudaMemset", memory, 0, count)
        self.use_stream(tally)
        self.call(tally, "cudaFree", memory)

    def use_stream(self, tally: Tally) -> None:
        """Makes a stream and an event, and waits for each."""
        stream, event = ctypes.c_void_p(), ctypes.c_void_p()
        self.call(tally, "cudaStreamCreate", ctypes.byref(stream))
        self.call(tally, "cudaEventCreate", ctypes.byref(event))
        self.call(tally, "cudaEventRecord", event, stream)
        self.call(tally, "cudaEventSynchronize", event)
        self.call(tally, "cudaStreamSynchronize", stream)
        self.call(tally, "cudaStreamSynchronize", None)  # the legacy stream
        self.call(tally, "cudaEventDestroy", event)
        self.call(tally, "cudaStreamDestroy", stream)
