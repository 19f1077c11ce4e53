# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The GPU, as NVIDIA's management library sees it, without a framework."""

import ctypes
import functools
from typing import Any

_NAME_BYTES = 96


@functools.cache
def _first_gpu() -> tuple[Any, ctypes.c_void_p] | None:
    """The library and its first GPU; None if there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    device = ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        return None
    return library, device


def is_there() -> bool:
    """Tells whether this machine has a GPU."""
    return _first_gpu() is not None


def used_mib() -> float:
    """Memory of the first GPU that is in use by all processes, in MiB; 0 without a GPU."""
    if (found := _first_gpu()) is None:
        return 0.0
    library, device = found
    memory = (ctypes.c_ulonglong * 3)()  # in all, free, used
    library.nvmlDeviceGetMemoryInfo(device, memory)
    return float(memory[2]) / 2**20


def describe() -> dict[str, str]:
    """Name of the first GPU, as `gpu`, and version of its driver, as `driver`."""
    if (found := _first_gpu()) is None:
        return {"gpu": "", "driver": ""}
    library, device = found
    name, driver = (ctypes.create_string_buffer(_NAME_BYTES) for _ in range(2))
    library.nvmlDeviceGetName(device, name, _NAME_BYTES)
    library.nvmlSystemGetDriverVersion(driver, _NAME_BYTES)
    return {"gpu": name.value.decode(), "driver": driver.value.decode()}
