# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of `tf.cuda.serving_callable`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


def bits(results: Any) -> list[Any]:
    arrays = [x.numpy() if tf.is_tensor(x) else np.asarray(x) for x in tf.nest.flatten(results)]
    return [(x.shape, x.dtype, x.tobytes()) for x in arrays]


def bound(body: Callable[..., Any], *specs: Any) -> tuple[Any, Any]:
    """A function, and its serving callable."""
    function = tf.function(body, input_signature=specs, autograph=False)
    return function, tf.cuda.serving_callable(function)
