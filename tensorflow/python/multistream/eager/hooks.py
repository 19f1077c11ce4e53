# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hooks that TensorFlow's own files call, in function_type.py and resource_variable_ops.py.

This module imports none of TensorFlow's modules at import time.
"""

import functools
from collections.abc import Callable
from typing import Any


def computed_once(hash_of: Callable[[Any], int]) -> Callable[[Any], int]:
    """Returns `hash_of`, the `__hash__` of a function's type, which keeps its result in the object.

    Each call of a `tf.function` makes a type of its arguments, and looks for the traced function
    with that type in tables that ask for the hash five times. The hash is one of all features of a
    data set and of all captured tensors. A type does not change.
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
    """Returns `numpy`, the method of resource variables, with what unchanged_variables.py says."""

    @functools.wraps(numpy)
    def read(self: Any) -> Any:
        from tensorflow.python.multistream.eager import unchanged_variables  # noqa: PLC0415

        return unchanged_variables.read(self, numpy)

    return read
