# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads the multi-stream runtime library, which must come before TensorFlow's own libraries.

`tensorflow/__init__.py` calls `load` before anything else. Unless the environment or a session's
ConfigProto asks for stream groups, the library is inactive, and TensorFlow behaves as stock.
"""

import ctypes
from pathlib import Path

from tensorflow.python.multistream import runtime_library

# Not resolved: installed files may be links into a cache (uv --link-mode=symlink), and NVIDIA's
# libraries are then beside the links, not beside what these lead to.
_LIBRARY = Path(__file__).absolute().parents[2] / runtime_library.NAME

# The runtime library, set by `load`.
library: ctypes.CDLL


def load() -> None:
    """Loads the runtime library.

    Raises:
      ValueError: a `TF_*` variable has a value that is not allowed.
      ImportError: the library cannot be loaded; or stream groups are asked for, but a library
        loaded earlier hides the runtime's functions from TensorFlow.
    """
    global library
    try:
        # TensorFlow's libraries are loaded as dependencies of the runtime library, so their symbol
        # lookups find its functions first. RTLD_LOCAL hides their symbols from other libraries.
        loaded = ctypes.CDLL(str(_LIBRARY), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise ImportError(
            f"The multi-stream runtime does not load: {error}. Reinstall this TensorFlow wheel."
        ) from error
    message = ctypes.create_string_buffer(4096)
    for check, error_type in (
        (loaded.TFMS_CheckReplacedSymbols, ImportError),
        (loaded.TFMS_CheckEnvironment, ValueError),
    ):
        check.argtypes = [ctypes.c_char_p, ctypes.c_int]
        if check(message, len(message)) > 0:
            raise error_type(message.value.decode(errors="replace"))
    library = loaded
