# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.synchronize`: lets the host wait for what streams have been given."""

import ctypes

from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import stats

_ALL = -1


def synchronize() -> None:
    """Waits, on the host, until all that the streams of all GPUs have been given is done.

    Timings and foreign libraries need it; TensorFlow's own results do not. For the streams of one
    group: `tf.cuda.get_stream(1).synchronize()`. Without stream groups it waits for all of
    TensorFlow's devices.

    Raises:
      RuntimeError: it is called while a function is traced or a graph is built, when nothing runs
        yet; or what the streams were given has failed.
    """
    wait_for(_ALL, "tf.cuda.synchronize()")


def wait_for(group: int, call: str) -> None:
    """Waits until a group's streams of all GPUs have nothing to do.

    Args:
      group: number of the group, which is checked; -1 for all groups.
      call: what the caller called, for errors.

    Raises:
      RuntimeError: as for `synchronize`.
    """
    _check_that_it_runs(call)
    if context.executing_eagerly() and context.is_async():
        context.async_wait()  # what eager code has asked for, another thread gives to the streams
    message = ctypes.create_string_buffer(4096)
    if loader.library.TFMS_Synchronize(group, message, len(message)) != 0:
        raise RuntimeError(f"{call}: {message.value.decode(errors='replace')}")
    if not stats.multi_stream_is_enabled() and context.executing_eagerly():
        # tf.test imports it in any case, but after this module.
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
