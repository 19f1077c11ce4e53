# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.synchronize`: makes the host wait until streams have completed their work."""

import ctypes

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import stats

_ALL = -1


def synchronize() -> None:
    """Waits, on the host, until the streams of all GPUs have completed all work they were given.

    Timings and foreign libraries need this call; TensorFlow's own results do not. For one group:
    `tf.cuda.get_stream(1).synchronize()`. Without stream groups the call waits for all of
    TensorFlow's devices.

    Raises:
      RuntimeError: called while a function is traced or a graph is built, when nothing runs yet;
        or work on the streams has failed.
    """
    wait_for(_ALL, "tf.cuda.synchronize()")


def wait_for(group: int, call: str) -> None:
    """Waits until the streams of a group (-1: all groups), on all GPUs, have completed their work.

    An error names the caller's call.
    """
    _check_that_it_runs(call)
    if context.executing_eagerly() and context.is_async():
        context.async_wait()  # another thread still enqueues the ops of asynchronous eager code
    message = ctypes.create_string_buffer(4096)
    if loader.library.TFMS_Synchronize(group, message, len(message)) != 0:
        raise RuntimeError(f"{call}: {message.value.decode(errors='replace')}")
    if not stats.multi_stream_is_enabled() and context.executing_eagerly():
        # A late import: TensorFlow always imports this module for tf.test, but after this file.
        from tensorflow.python.framework import test_util  # noqa: PLC0415

        test_util.sync_devices()


def _check_that_it_runs(call: str) -> None:
    if context.executing_eagerly():
        return
    if ops.get_default_graph().building_function:
        raise RuntimeError(
            f"{call} was called while a function is traced. It would wait now, once, and not when "
            "the function runs. Call it after the function's call; inside, nothing needs it, since "
            "what an op takes from another stream is waited for by itself."
        )
    if ops.get_default_session() is None:
        raise RuntimeError(
            f"{call} was called while a graph is built. It would wait now, once, and not when the "
            "graph runs. Call it after session.run, inside `with session.as_default():`."
        )
