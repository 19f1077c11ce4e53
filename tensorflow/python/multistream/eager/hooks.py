# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hooks that TensorFlow's own files call, in function_type.py and resource_variable_ops.py.

At import time, this module imports none of TensorFlow's own modules.
"""

import functools
from collections.abc import Callable
from typing import Any

from tensorflow.python.multistream import loader


def computed_once(hash_of: Callable[[Any], int]) -> Callable[[Any], int]:
    """Returns `hash_of`, the `__hash__` of a function's type, which keeps its result in the object.

    Each call of a `tf.function` makes a type of its arguments, and looks the traced function up by
    the type. The lookup needs the hash five times, and the hash goes through all features of a data
    set. A type never changes.
    """

    @functools.wraps(hash_of)
    def kept(self: Any) -> int:
        values = self.__dict__
        found: int | None = values.get("_multistream_hash")
        if found is None:
            found = values["_multistream_hash"] = hash_of(self)
        return found

    return kept


def without_waiting(numpy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `numpy`, the method of resource variables, as unchanged_variables.py describes it."""

    @functools.wraps(numpy)
    def read(self: Any) -> Any:
        if not loader.library.TFMS_IsEnabled():
            return numpy(self)
        from tensorflow.python.multistream.eager import unchanged_variables  # noqa: PLC0415

        return unchanged_variables.read(self, numpy)

    return read
