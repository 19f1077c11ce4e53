# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""CUDA as another library of the process uses it: through its own handle of the CUDA library."""

import collections
import ctypes
import pathlib
from collections.abc import Callable
from ctypes import byref, c_size_t
from typing import Any

import tensorflow as tf

# CUDA ends a capture in the global mode for certain calls of any other thread, such as TensorFlow's
# for memory; and such calls fail meanwhile, which ends a process of stock TensorFlow.
GLOBAL_CAPTURES = "captures, global"

_MIB = 1 << 20
_KERNEL = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""
# Libraries beside TensorFlow, by the prefix of their functions, and the kind of call that needs
# one; without the first there are no calls at all. The driver's functions begin with "cu" alone.
_LIBRARIES = {
    "cuda": ("cuda_runtime/lib/libcudart.so.*", ""),
    "cublas": ("cublas/lib/libcublas.so.*", "cublas handles"),
    "cudnn": ("cudnn/lib/libcudnn.so.*", "cudnn handles"),
    "nccl": ("nccl/lib/libnccl.so.*", "nccl"),
}
_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3
_PRINTF_FIFO, _STACK, _HEAP = 1, 0, 2  # limits of a device
_NON_BLOCKING = 1
_NOT_READY = 600  # what a query returns while the work is not done
_LEGACY_STREAM, _PER_THREAD_STREAM = None, ctypes.c_void_p(2)
_BYTE_OF_NCCL, _SUM_OF_NCCL = 1, 0
_CAPTURE_MODES = {"global": 0, "thread-local": 1, "relaxed": 2}


class _NcclId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


def _library(pattern: str) -> ctypes.CDLL:
    site = pathlib.Path(tf.__file__).resolve().parent.parent
    found = sorted((site / "nvidia").glob(pattern))
    if not found:
        raise OSError(f"there is no {pattern} beside TensorFlow")
    return ctypes.CDLL(str(found[0]))


class ForeignCuda:
    """Makes CUDA calls of one kind after another, on one thread.

    `codes` counts how often each call returned each code, by "call: code" (0 is success);
    `left_out` says why a kind of call is missing.
    """

    def __init__(self) -> None:
        self.codes: collections.Counter[str] = collections.Counter()
        self.left_out: dict[str, str] = {}
        self._libraries = {"cu": ctypes.CDLL("libcuda.so.1")}
        for prefix, (pattern, kind) in _LIBRARIES.items():
            try:
                self._libraries[prefix] = _library(pattern)
            except OSError as error:
                if not kind:
                    raise
                self.left_out[kind] = str(error)
        self.bind()
        self._device = self._new("cudaMalloc", c_size_t(_MIB))
        self._host = (ctypes.c_char * _MIB)()
        self._stream = self._new("cudaStreamCreateWithFlags", _NON_BLOCKING)
        self._blocking = self._new("cudaStreamCreate")
        self._module = self._new("cuModuleLoadData", _KERNEL)
        self._kernel = self._new("cuModuleGetFunction", self._module, b"nothing")
        self.codes.clear()

    def bind(self) -> None:
        """Makes the first GPU the calling thread's."""
        self._call("cudaSetDevice", 0)
        self._call("cudaFree", None)

    def kinds(self) -> dict[str, Callable[[], None]]:
        """Returns functions that make the calls of each kind once, by the kind's name."""
        kinds: dict[str, Callable[[], None]] = {
            name.removeprefix("_make_").replace("_", " "): getattr(self, name)
            for name in vars(ForeignCuda)
            if name.startswith("_make_")
        }
        for name, mode in _CAPTURE_MODES.items():
            kinds[f"captures, {name}"] = lambda mode=mode: self._capture(mode)  # type: ignore[misc]
        return {name: call for name, call in kinds.items() if name not in self.left_out}

    def _call(self, call: str, *arguments: Any) -> None:
        prefix = max((p for p in self._libraries if call.startswith(p)), key=len)
        code: int = self._libraries[prefix][call](*arguments)
        if call.endswith("Query") and code == _NOT_READY:
            code = 0
        self.codes[f"{call}: {code}"] += 1

    def _new(self, call: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(call, byref(made), *arguments)
        return made

    def _launch(self, stream: ctypes.c_void_p | None) -> None:
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        self._call("cuLaunchKernel", self._kernel, *one_thread, stream, None, None)

    def _wait(self) -> None:
        self._call("cudaStreamSynchronize", self._stream)

    def _make_device_synchronize(self) -> None:
        self._call("cudaDeviceSynchronize")
        self._call("cuCtxSynchronize")

    def _make_copies(self) -> None:
        part = ctypes.c_void_p((self._device.value or 0) + 4096)
        for to, source, size, way in (
            (self._device, self._host, _MIB, _HOST_TO_DEVICE),
            (self._host, self._device, 4096, _DEVICE_TO_HOST),
            (self._device, part, 4096, _DEVICE_TO_DEVICE),
        ):
            self._call("cudaMemcpy", to, source, c_size_t(size), way)
        self._call("cudaMemset", self._device, 0, c_size_t(_MIB))

    def _make_memory(self) -> None:
        size = c_size_t(16 * _MIB)
        self._call("cudaFree", self._new("cudaMalloc", size))
        self._call("cudaFree", self._new("cudaMallocManaged", size, 1))

    def _make_host_memory(self) -> None:
        size = c_size_t(4096)
        self._call("cudaFreeHost", self._new("cudaHostAlloc", size, 0))
        self._call("cudaHostRegister", self._host, size, 0)
        self._call("cudaHostUnregister", self._host)

    def _make_modules(self) -> None:
        self._call("cuModuleUnload", self._new("cuModuleLoadData", _KERNEL))

    def _make_events(self) -> None:
        event = self._new("cudaEventCreate")
        self._call("cudaEventRecord", event, self._stream)
        for call in ("cudaEventQuery", "cudaEventSynchronize", "cudaEventDestroy"):
            self._call(call, event)

    def _make_streams(self) -> None:
        stream = self._new("cudaStreamCreate")
        self._launch(stream)
        for call in ("cudaStreamQuery", "cudaStreamSynchronize", "cudaStreamDestroy"):
            self._call(call, stream)

    def _make_legacy_stream(self) -> None:
        self._launch(_LEGACY_STREAM)
        self._launch(self._blocking)
        self._call("cudaStreamQuery", _LEGACY_STREAM)
        for stream in (_LEGACY_STREAM, _PER_THREAD_STREAM):
            self._call("cudaStreamSynchronize", stream)

    def _capture(self, mode: int) -> None:
        self._call("cudaStreamBeginCapture", self._stream, mode)
        self._launch(self._stream)
        graph = ctypes.c_void_p()
        self._call("cudaStreamEndCapture", self._stream, byref(graph))
        if not graph.value:
            return
        executable = self._new("cudaGraphInstantiate", graph, ctypes.c_ulonglong(0))
        self._call("cudaGraphLaunch", executable, self._stream)
        self._wait()
        self._call("cudaGraphExecDestroy", executable)
        self._call("cudaGraphDestroy", graph)

    def _make_profiler(self) -> None:
        self._call("cudaProfilerStart")
        self._call("cudaProfilerStop")

    def _make_limits(self) -> None:
        for limit in (_PRINTF_FIFO, _STACK, _HEAP):
            value = c_size_t()
            self._call("cudaDeviceGetLimit", byref(value), limit)
            self._call("cudaDeviceSetLimit", limit, value)

    def _make_pools(self) -> None:
        memory = self._new("cudaMallocAsync", c_size_t(4096), self._stream)
        self._call("cudaFreeAsync", memory, self._stream)
        self._wait()
        self._call("cudaDeviceGraphMemTrim", 0)
        pool = self._new("cudaDeviceGetDefaultMemPool", 0)
        self._call("cudaMemPoolTrimTo", pool, c_size_t(0))

    def _make_contexts(self) -> None:
        self._new("cuDevicePrimaryCtxRetain", 0)
        self._call("cuDevicePrimaryCtxRelease_v2", 0)
        context = self._new("cuCtxCreate_v2", 0, 0)
        self._call("cuCtxSynchronize")
        self._call("cuCtxDestroy_v2", context)
        self.bind()

    def _make_cublas_handles(self) -> None:
        handle = self._new("cublasCreate_v2")
        self._call("cublasSetStream_v2", handle, self._stream)
        one, operand = ctypes.c_float(1), (self._device, 64)
        matrices = (*operand, *operand, byref(one), *operand)
        sizes = (0, 0, 64, 64, 64)
        self._call("cublasSgemm_v2", handle, *sizes, byref(one), *matrices)
        self._wait()
        self._call("cublasDestroy_v2", handle)

    def _make_cudnn_handles(self) -> None:
        handle = self._new("cudnnCreate")
        self._call("cudnnSetStream", handle, self._stream)
        self._call("cudnnDestroy", handle)

    def _make_nccl(self) -> None:
        of_all = _NcclId()
        self._call("ncclGetUniqueId", byref(of_all))
        communicator = self._new("ncclCommInitRank", 1, of_all, 0)
        memory = (self._device, self._device, c_size_t(64))
        kind = (_BYTE_OF_NCCL, _SUM_OF_NCCL)
        self._call("ncclAllReduce", *memory, *kind, communicator, self._stream)
        self._wait()
        self._call("ncclCommDestroy", communicator)
