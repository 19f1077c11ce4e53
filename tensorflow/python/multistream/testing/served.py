# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of `tf.cuda.serving_callable`."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream import loader


def bits(results: Any) -> list[Any]:
    arrays = [x.numpy() if tf.is_tensor(x) else np.asarray(x) for x in tf.nest.flatten(results)]
    return [(x.shape, x.dtype, x.tobytes()) for x in arrays]


def bound(body: Callable[..., Any], *specs: Any) -> tuple[Any, Any]:
    """A function, and its serving callable."""
    function = tf.function(body, input_signature=specs, autograph=False)
    return function, tf.cuda.serving_callable(function)


def noted_long_ways(serve: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets "long" for each call of the callable that takes the way in Python."""
    ways: list[str] = []
    in_python = serve._call_in_python

    def counted(*arguments: Any) -> Any:
        ways.append("long")
        return in_python(*arguments)

    monkeypatch.setattr(serve, "_call_in_python", counted)
    return ways


def is_direct(serve: Any, device: str | None = None) -> bool:
    """Whether calls in the scope of `device` no longer go through TensorFlow's eager layer."""
    asked = loader.library.TFMS_ServingIsDirect
    asked.restype, asked.argtypes = ctypes.c_bool, [ctypes.c_void_p, ctypes.c_char_p]
    return bool(asked(serve._handle, None if device is None else device.encode()))
