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
"""Loads the multi-stream runtime library, which must come before TensorFlow's own libraries.

`tensorflow/__init__.py` calls `load` before anything else. If no variable asks for multi-stream,
nothing is loaded, and TensorFlow is the stock one.
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

_LIBRARY = Path(__file__).resolve().parents[2] / "libtensorflow_multistream.so"

# Any of these that is set makes the runtime check it, even where it has no effect.
_VARIABLES = (
    "TF_GPU_STREAM_GROUP_COUNT",
    "TF_MULTI_STREAM_EMULATED_GPUS",
    "TF_NODE_LEVEL_MULTISTREAM",
    "TF_SEGMENT_OWN_CONST",
    "TF_REDUCE_STREAM_WAIT",
    "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION",
    "TF_STREAM_FROM_FILE",
    "TF_MULTI_STREAM_SANITIZER",
    "TF_GPU_STREAM_MERGE",
    "TF_GPU_CONTEXT_COUNT",
    "TF_PER_STREAM_HOST_ALLOCATOR",
    "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL",
    "TF_GPU_STREAM_AWARE_BFC",
    "TF_BFC_EXTEND_LIMIT_MB",
    "TF_GPU_STREAM_GROUP_PRIORITIES",
    "TF_MULTI_STREAM_POLICY",
)

# The runtime library, or None if nothing asks for it.
library: ctypes.CDLL | None = None


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Tells whether the runtime has anything to do in a process with this environment.

    Args:
      environment: names and values, as in `os.environ`.

    Returns:
      False if none of the multi-stream variables is set, or if all that is set asks for one stream
      group on a real GPU.
    """
    values = {name: environment[name] for name in _VARIABLES if environment.get(name)}
    if values.get("TF_GPU_STREAM_GROUP_COUNT") == "1":
        del values["TF_GPU_STREAM_GROUP_COUNT"]
    return bool(values)


def load() -> None:
    """Loads the runtime library if the environment asks for it.

    Raises:
      ValueError: a `TF_*` variable has a value that is not allowed. The message names the variable,
        its value and what is allowed.
      ImportError: the library cannot be loaded.
    """
    global library
    if library is not None or not is_wanted(os.environ):
        return
    try:
        # RTLD_LOCAL: TensorFlow's libraries become dependencies of ours and look functions up in it
        # first, without showing their symbols to the rest of the process.
        loaded = ctypes.CDLL(str(_LIBRARY), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise ImportError(
            f"The multi-stream runtime does not load: {error}. Reinstall this TensorFlow wheel, or "
            "unset the TF_* variables of multi-stream to run without it."
        ) from error
    loaded.TFMS_CheckEnvironment.argtypes = [ctypes.c_char_p, ctypes.c_int]
    message = ctypes.create_string_buffer(4096)
    if loaded.TFMS_CheckEnvironment(message, len(message)) > 0:
        raise ValueError(message.value.decode(errors="replace"))
    library = loaded
