# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`numpy()` of a small variable that stays as it is does not wait for the GPU.

A copy from the GPU comes after all that the GPU was told before: after the training step that was
just called. tf-keras reads the number of steps per execution before each step, so the GPU waited
for Python between the steps of `fit`. A variable that was read three times in a row with the same
bits is therefore known from then on: later reads get the same value at once, as long as the runtime
says that nothing has given the variable other memory (ops/known_variable.h says why that is
enough). A variable that keeps changing is read as always.

    read 1   read 2   read 3   read 4     assign   read 5
     copy     copy     copy     known                copy, as the runtime says no
"""

import sys
from collections.abc import Callable
from ctypes import c_int64
from typing import Any

import numpy as np
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import errors, ops
from tensorflow.python.multistream import loader
from tensorflow.python.ops import resource_variable_ops

_OFTEN = 3  # reads in a row with the same bits
_MOST_BYTES = 64  # as in known_variable.h
# After so many changes a variable is read as always. While a variable is known, a change that would
# be in place needs other memory.
_MOST_CHANGES = 4

_STATE = "_multistream_reads"  # attribute of a variable

Read = Callable[[Any], Any]


class _Known:
    """Owns a KnownVariable of the runtime."""

    value: Any  # of NumPy

    def __init__(self, address: int) -> None:
        self._address = address

    def is_still(self) -> bool:
        return bool(loader.library.TFMS_IsStillKnown(c_int64(self._address)))

    def __del__(
        self,
        is_finalizing: Callable[[], bool] = sys.is_finalizing,  # modules may be gone by then
        delete: Callable[[Any], Any] = loader.library.TFMS_DeleteKnown,
        number: type = c_int64,
    ) -> None:
        if not is_finalizing():
            delete(number(self._address))


class _Reads:
    """The last reads of one variable. If threads read at once, only the counts may be wrong."""

    def __init__(self) -> None:
        self.last: bytes | None = None
        self.equal = 0  # reads with the bits of `last`, one after another
        self.changes = 0
        self.known: _Known | None = None

    def note(self, value: Any) -> bool:
        """Returns whether to know the variable from now on."""
        if not hasattr(value, "tobytes") or value.nbytes > _MOST_BYTES:
            self.changes = _MOST_CHANGES
            return False
        read = value.tobytes()
        if read != self.last or self.equal == _OFTEN:
            # Changed; or it was known and is elsewhere now; or it cannot be known.
            self.changes += self.last is not None
            self.last = read
            self.equal = 0
        self.equal += 1
        return self.equal == _OFTEN


def read(variable: Any, numpy: Read) -> Any:
    """Returns the value of a resource variable as `numpy`, the stock method, would."""
    reads = variable.__dict__.get(_STATE)
    if reads is None:
        reads = variable.__dict__[_STATE] = _Reads()
    if reads.changes >= _MOST_CHANGES or not _reads_plainly():
        return numpy(variable)
    known = reads.known
    if known is not None:
        if known.is_still():
            resource_variable_ops.variable_accessed(variable)  # tells tapes
            value = known.value
            return value.copy() if isinstance(value, np.ndarray) else value
        reads.known = None
    value = numpy(variable)
    if reads.note(value) and _can_be_known(variable):
        reads.known = _know(variable)
    return value


def _reads_plainly() -> bool:
    """Whether this thread runs ops eagerly, each at once, and without callbacks of ops."""
    ctx = context.context()
    return ctx.executing_eagerly() and not ctx.is_async() and not ctx.op_callbacks


def _can_be_known(variable: Any) -> bool:
    """Whether the variable is on a GPU of this process, and read as resource variables are."""
    plain = resource_variable_ops.BaseResourceVariable
    return (
        "GPU:" in (variable.device or "")
        and type(variable).read_value is plain.read_value
        and type(variable)._read_variable_op is plain._read_variable_op
        and getattr(variable, "_caching_device", None) is None
        and context.context().get_server_def() is None
    )


def _know(variable: Any) -> _Known | None:
    """Reads the variable once more, and asks the runtime to watch it."""
    try:
        with ops.device(variable.device):
            value, address = execute.execute(
                b"_MultiStreamKnownVariable",
                2,
                [variable.handle],
                ("dtype", variable.dtype.base_dtype.as_datatype_enum),
                context.context(),
            )
    except errors.OpError:  # it has no value any more, or is of another kind
        return None
    at = int(address.numpy())
    if at == 0:
        return None
    known = _Known(at)
    known.value = value.numpy()
    return known
