# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.cuda.synchronize waits for the right streams, and refuses where nothing runs yet."""

import ctypes
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import test_util
from tensorflow.python.multistream import loader

tf1 = tf.compat.v1


class FakeRuntime:
    error = b""

    def __init__(self) -> None:
        self.waits: list[int] = []

    def TFMS_Synchronize(self, group: int, message: Any, size: int) -> int:  # noqa: N802
        self.waits.append(group)
        ctypes.memmove(message, self.error, min(size, len(self.error)))
        return len(self.error)


@pytest.fixture
def runtime(four_groups: None, monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime()
    monkeypatch.setattr(loader, "library", fake)
    return fake


def test_synchronize_waits_for_the_streams_it_names(runtime: FakeRuntime) -> None:
    """Waits for one group or all groups, on all GPUs; what the runtime reports is raised."""
    tf.cuda.get_stream(1).synchronize()
    tf.cuda.synchronize()
    assert runtime.waits == [1, -1]
    runtime.error = b"an illegal memory access"
    with pytest.raises(RuntimeError, match=r"^tf.cuda.synchronize\(\): an illegal memory access$"):
        tf.cuda.synchronize()
    with pytest.raises(RuntimeError, match=r"^tf.cuda.get_stream\(2\).synchronize\(\): an illegal"):
        tf.cuda.get_stream(2).synchronize()


def test_synchronize_without_groups_waits_for_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    real = test_util.sync_devices
    monkeypatch.setattr(test_util, "sync_devices", lambda: waits.append(real()))
    tf.cuda.synchronize()
    tf.cuda.get_stream(63).synchronize()
    assert len(waits) == 2


def test_synchronize_waits_for_eager_calls_of_another_thread(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[Any] = runtime.waits
    real = context.async_wait
    monkeypatch.setattr(context, "async_wait", lambda: waits.append(real()))
    tf.config.experimental.set_synchronous_execution(False)
    try:
        tf.cuda.synchronize()
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    assert waits == [None, -1]


def test_synchronize_where_nothing_runs_is_an_error() -> None:
    """An error while a function is traced or a graph is built; works with a default session."""
    for call in (tf.cuda.synchronize, tf.cuda.get_stream(1).synchronize):
        with pytest.raises(
            RuntimeError, match=r"synchronize\(\) was called while a function is tr"
        ):
            tf.function(call).get_concrete_function()
        with tf.Graph().as_default():
            with pytest.raises(
                RuntimeError, match=r"synchronize\(\) was called while a graph is b"
            ):
                call()
            with tf1.Session():
                call()
