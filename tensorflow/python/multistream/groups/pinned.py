# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.stream_group`: runs calls on stream groups of the caller's choice."""

import contextlib
import ctypes
import functools
import threading
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.scopes import streams

_ANY = -1


class _Entered(threading.local):
    """For each `stream_group` that this thread is in: the groups that were in force before."""

    def __init__(self) -> None:
        self.before: list[int] = []


_entered = _Entered()


def stream_group(i: int | range | None) -> "PinnedGroup":
    """Runs the calls that are made in the context on one stream group, or on a few.

    With this context a server keeps tenants apart, each on groups of its own:

    ```python
    with tf.cuda.stream_group(1):
      model(x)               # a tf.function; session.run, Keras predict and SavedModels as well
    with tf.cuda.stream_group(range(4, 8)):
      model(x)               # on the least loaded of the groups 4 to 7
    ```

    Outside such a context, each call runs on the least loaded group, even if other calls are pinned
    to that group, but not on groups with SMs of their own (`TF_GPU_STREAM_GROUP_SMS`). The context
    applies to calls that its thread makes, and to the functions that these calls call, but not to
    calls made by Python code that TensorFlow runs (`tf.py_function`, data sets). A call that may
    change variables still runs on group 0, the leader, and so do single eager ops. The innermost
    context counts.

    The result is a context manager and a decorator (each call of the function is then pinned).

    Args:
      i: number of the group, from 0 to `tf.cuda.stream_group_count() - 1`, or a range of such
        numbers without gaps; a call on another GPU that lacks one of them ends with
        `tf.errors.InvalidArgumentError`. If multi-stream is not enabled, any numbers from 0 to 63,
        without effect. None: the least loaded group.

    Returns:
      The context manager.

    Raises:
      TypeError: `i` is neither an int nor a range nor None.
      ValueError: there is no group `i`, or the range is empty or has gaps.
    """
    call = f"tf.cuda.stream_group({i!r})"
    if isinstance(i, range):
        if i.step != 1 or not i:
            raise ValueError(f"{call}: the range must have a group, and no gaps")
        streams.check_group(i[0], call, "i")
        streams.check_group(i[-1], call, "i")
    elif i is not None and not isinstance(i, int):
        raise TypeError(f"{call}: i must be an int, a range or None")
    elif i is not None:
        streams.check_group(i, call, "i")
    return PinnedGroup(i)


class PinnedGroup(contextlib.ContextDecorator):
    """A context manager and decorator; see `tf.cuda.stream_group`, which makes it.

    Entering raises a RuntimeError where pinning would have no effect: while a function is traced,
    with asynchronous eager execution, or at node level.
    """

    def __init__(self, group: int | range | None) -> None:
        self._groups = packed(group)

    def __call__(self, function: Any) -> Any:
        """Decorates a function: each call runs on the group."""
        streams.check_decorated(function, "tf.cuda.stream_group", "")
        return streams.in_scope(self, function)

    def __enter__(self) -> None:
        _check_that_it_counts()
        _entered.before.append(_pin()(self._groups))

    def __exit__(self, *exception: object) -> None:
        _pin()(_entered.before.pop())


def packed(group: int | range | None) -> int:
    """Groups as one number, for C++ (TFMS_PinThread)."""
    if group is None:
        return _ANY
    first, last = (group[0], group[-1]) if isinstance(group, range) else (group, group)
    return last << 32 | first


@functools.cache
def _pin() -> Any:
    """The function that sets the groups of this thread, `packed`, and returns those before."""
    function = loader.library.TFMS_PinThread
    function.argtypes, function.restype = [ctypes.c_int64], ctypes.c_int64
    return function


def _check_that_it_counts() -> None:
    if not context.executing_eagerly() and ops.get_default_graph().building_function:
        raise RuntimeError(
            "tf.cuda.stream_group was entered while a function is traced. It says where calls run: "
            "enter it where the function is called. Parts of a function have groups with "
            "tf.cuda.stream_scope and TF_NODE_LEVEL_MULTISTREAM=true."
        )
    if context.is_async():
        raise RuntimeError(
            "tf.cuda.stream_group was entered where eager calls are made by another thread: "
            "it works with tf.config.experimental.set_synchronous_execution(True)."
        )
    if loader.library.TFMS_IsNodeLevel():
        raise RuntimeError(
            "tf.cuda.stream_group was entered with TF_NODE_LEVEL_MULTISTREAM=true, where nodes "
            "have groups, and calls have not. Unset the variable, or use tf.cuda.stream_scope."
        )
