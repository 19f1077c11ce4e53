# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""CUDA as another library of the process uses it: through its own handle of the CUDA library."""

from __future__ import annotations

import collections
import ctypes
import pathlib
from collections.abc import Callable

import tensorflow as tf

# Allowed codes of a query: success, or that the work is not done.
_IS_DONE_OR_NOT = (0, 600)
_MIB = 1 << 20
_KERNEL = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""
_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3
_PRINTF_FIFO, _STACK, _HEAP = 1, 0, 2  # limits of a device
_NON_BLOCKING = 1
_LEGACY_STREAM, _PER_THREAD_STREAM = None, ctypes.c_void_p(2)
_BYTE_OF_NCCL, _SUM_OF_NCCL = 1, 0
_CAPTURE_MODES = {"global": 0, "thread-local": 1, "relaxed": 2}
# The library, besides CUDA's own two, that a kind of call needs.
_NEEDS = {
    "cublas handles": "cublas/lib/libcublas.so.*",
    "cudnn handles": "cudnn/lib/libcudnn.so.*",
    "nccl": "nccl/lib/libnccl.so.*",
}


# CUDA ends a capture in the global mode for certain calls of any other thread, such as TensorFlow's
# for memory; and such calls fail meanwhile, which ends a process of stock TensorFlow.
GLOBAL_CAPTURES = "captures, global"


class _NcclId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


def _library(pattern: str) -> ctypes.CDLL:
    site = pathlib.Path(tf.__file__).resolve().parent.parent
    found = sorted((site / "nvidia").glob(pattern))
    if not found:
        raise OSError(f"there is no {pattern} beside TensorFlow")
    return ctypes.CDLL(str(found[0]))


class ForeignCuda:
    """Makes CUDA calls of one kind after another, on one thread, and counts their return codes.

    Attributes:
        codes: how often each call returned each code, by "call: code" (0 is success).
        left_out: why a kind of call is missing.
    """

    def __init__(self) -> None:
        self.codes: collections.Counter[str] = collections.Counter()
        self.left_out: dict[str, str] = {}
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._runtime = _library("cuda_runtime/lib/libcudart.so.*")
        self._more: dict[str, ctypes.CDLL] = {}
        for kind, pattern in _NEEDS.items():
            try:
                self._more[kind] = _library(pattern)
            except OSError as error:
                self.left_out[kind] = str(error)
        self.bind()
        self._device = self._new(self._runtime.cudaMalloc, ctypes.c_size_t(_MIB))
        self._host = (ctypes.c_char * _MIB)()
        self._stream = self._new(self._runtime.cudaStreamCreateWithFlags, _NON_BLOCKING)
        self._blocking = self._new(self._runtime.cudaStreamCreate)
        self._module = self._new(self._driver.cuModuleLoadData, _KERNEL)
        self._kernel = self._new(self._driver.cuModuleGetFunction, self._module, b"nothing")
        self.codes.clear()

    def bind(self) -> None:
        """Makes the first GPU the calling thread's."""
        self._note("cudaSetDevice", self._runtime.cudaSetDevice(0))
        self._note("cudaFree(NULL)", self._runtime.cudaFree(None))

    def kinds(self) -> dict[str, Callable[[], None]]:
        """Returns functions that make the calls of each kind once, by the kind's name."""
        kinds: dict[str, Callable[[], None]] = {
            "device synchronize": self._synchronize,
            "copies": self._copies,
            "memory": self._memory,
            "host memory": self._host_memory,
            "modules": self._modules,
            "events": self._events,
            "streams": self._streams,
            "legacy stream": self._legacy_stream,
            "profiler": self._profiler,
            "limits": self._limits,
            "pools": self._pools,
            "contexts": self._contexts,
            "cublas handles": self._cublas,
            "cudnn handles": self._cudnn,
            "nccl": self._nccl,
        }
        for name, mode in _CAPTURE_MODES.items():
            kinds[f"captures, {name}"] = lambda mode=mode: self._capture(mode)  # type: ignore[misc]
        return {name: call for name, call in kinds.items() if name not in self.left_out}

    def _note(self, call: str, code: int) -> None:
        self.codes[f"{call}: {code}"] += 1

    def _call(self, library: ctypes.CDLL, call: str, *arguments: object) -> None:
        self._note(call, library[call](*arguments))

    def _ask(self, call: str, *arguments: object) -> None:
        code = self._runtime[call](*arguments)
        self._note(call, 0 if code in _IS_DONE_OR_NOT else code)

    def _new(self, make: Callable[..., int], *arguments: object) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._note(getattr(make, "__name__", "?"), make(ctypes.byref(made), *arguments))
        return made

    def _launch(self, stream: ctypes.c_void_p | None) -> None:
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        self._call(self._driver, "cuLaunchKernel", self._kernel, *one_thread, stream, None, None)

    def _wait(self) -> None:
        self._call(self._runtime, "cudaStreamSynchronize", self._stream)

    def _synchronize(self) -> None:
        self._call(self._runtime, "cudaDeviceSynchronize")
        self._call(self._driver, "cuCtxSynchronize")

    def _copies(self) -> None:
        part = ctypes.c_void_p((self._device.value or 0) + 4096)
        for to, source, size, way in (
            (self._device, self._host, _MIB, _HOST_TO_DEVICE),
            (self._host, self._device, 4096, _DEVICE_TO_HOST),
            (self._device, part, 4096, _DEVICE_TO_DEVICE),
        ):
            self._call(self._runtime, "cudaMemcpy", to, source, ctypes.c_size_t(size), way)
        self._call(self._runtime, "cudaMemset", self._device, 0, ctypes.c_size_t(_MIB))

    def _memory(self) -> None:
        size = ctypes.c_size_t(16 * _MIB)
        for make in (self._runtime.cudaMalloc, self._runtime.cudaMallocManaged):
            more = (1,) if make is self._runtime.cudaMallocManaged else ()
            self._call(self._runtime, "cudaFree", self._new(make, size, *more))

    def _host_memory(self) -> None:
        size = ctypes.c_size_t(4096)
        self._call(self._runtime, "cudaFreeHost", self._new(self._runtime.cudaHostAlloc, size, 0))
        self._call(self._runtime, "cudaHostRegister", self._host, size, 0)
        self._call(self._runtime, "cudaHostUnregister", self._host)

    def _modules(self) -> None:
        module = self._new(self._driver.cuModuleLoadData, _KERNEL)
        self._call(self._driver, "cuModuleUnload", module)

    def _events(self) -> None:
        event = self._new(self._runtime.cudaEventCreate)
        self._call(self._runtime, "cudaEventRecord", event, self._stream)
        self._ask("cudaEventQuery", event)
        self._call(self._runtime, "cudaEventSynchronize", event)
        self._call(self._runtime, "cudaEventDestroy", event)

    def _streams(self) -> None:
        stream = self._new(self._runtime.cudaStreamCreate)
        self._launch(stream)
        self._ask("cudaStreamQuery", stream)
        self._call(self._runtime, "cudaStreamSynchronize", stream)
        self._call(self._runtime, "cudaStreamDestroy", stream)

    def _legacy_stream(self) -> None:
        self._launch(_LEGACY_STREAM)
        self._launch(self._blocking)
        self._ask("cudaStreamQuery", _LEGACY_STREAM)
        for stream in (_LEGACY_STREAM, _PER_THREAD_STREAM):
            self._call(self._runtime, "cudaStreamSynchronize", stream)

    def _capture(self, mode: int) -> None:
        self._call(self._runtime, "cudaStreamBeginCapture", self._stream, mode)
        self._launch(self._stream)
        graph = ctypes.c_void_p()
        self._call(self._runtime, "cudaStreamEndCapture", self._stream, ctypes.byref(graph))
        if not graph.value:
            return
        flags = ctypes.c_ulonglong(0)
        executable = self._new(self._runtime.cudaGraphInstantiate, graph, flags)
        self._call(self._runtime, "cudaGraphLaunch", executable, self._stream)
        self._wait()
        self._call(self._runtime, "cudaGraphExecDestroy", executable)
        self._call(self._runtime, "cudaGraphDestroy", graph)

    def _profiler(self) -> None:
        self._call(self._runtime, "cudaProfilerStart")
        self._call(self._runtime, "cudaProfilerStop")

    def _limits(self) -> None:
        for limit in (_PRINTF_FIFO, _STACK, _HEAP):
            value = ctypes.c_size_t()
            self._call(self._runtime, "cudaDeviceGetLimit", ctypes.byref(value), limit)
            self._call(self._runtime, "cudaDeviceSetLimit", limit, value)

    def _pools(self) -> None:
        memory = self._new(self._runtime.cudaMallocAsync, ctypes.c_size_t(4096), self._stream)
        self._call(self._runtime, "cudaFreeAsync", memory, self._stream)
        self._wait()
        self._call(self._runtime, "cudaDeviceGraphMemTrim", 0)
        pool = self._new(self._runtime.cudaDeviceGetDefaultMemPool, 0)
        self._call(self._runtime, "cudaMemPoolTrimTo", pool, ctypes.c_size_t(0))

    def _contexts(self) -> None:
        self._new(self._driver.cuDevicePrimaryCtxRetain, 0)
        self._call(self._driver, "cuDevicePrimaryCtxRelease_v2", 0)
        context = self._new(self._driver.cuCtxCreate_v2, 0, 0)
        self._call(self._driver, "cuCtxSynchronize")
        self._call(self._driver, "cuCtxDestroy_v2", context)
        self.bind()

    def _cublas(self) -> None:
        cublas = self._more["cublas handles"]
        handle = self._new(cublas.cublasCreate_v2)
        self._call(cublas, "cublasSetStream_v2", handle, self._stream)
        one, operand = ctypes.c_float(1), (self._device, 64)
        matrices = (*operand, *operand, ctypes.byref(one), *operand)
        sizes = (0, 0, 64, 64, 64)
        self._call(cublas, "cublasSgemm_v2", handle, *sizes, ctypes.byref(one), *matrices)
        self._wait()
        self._call(cublas, "cublasDestroy_v2", handle)

    def _cudnn(self) -> None:
        cudnn = self._more["cudnn handles"]
        handle = self._new(cudnn.cudnnCreate)
        self._call(cudnn, "cudnnSetStream", handle, self._stream)
        self._call(cudnn, "cudnnDestroy", handle)

    def _nccl(self) -> None:
        nccl = self._more["nccl"]
        of_all = _NcclId()
        self._call(nccl, "ncclGetUniqueId", ctypes.byref(of_all))
        communicator = self._new(nccl.ncclCommInitRank, 1, of_all, 0)
        memory = (self._device, self._device, ctypes.c_size_t(64))
        kind = (_BYTE_OF_NCCL, _SUM_OF_NCCL)
        self._call(nccl, "ncclAllReduce", *memory, *kind, communicator, self._stream)
        self._wait()
        self._call(nccl, "ncclCommDestroy", communicator)
