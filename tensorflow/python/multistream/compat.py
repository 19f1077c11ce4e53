# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What differs between TensorFlow releases for Python, in one place.

For C++ it is `compat.h`.
"""

from collections.abc import Sequence
from typing import Any

from tensorflow.python.framework import tensor, versions

try:
    from tensorflow.python.eager.polymorphic_function import concrete_function
except ImportError:  # 2.13
    from tensorflow.python.eager.polymorphic_function import (
        monomorphic_function as concrete_function,
    )

if not hasattr(tensor, "Tensor"):  # 2.13
    from tensorflow.python.framework import ops as _tensors
else:
    _tensors = tensor

ConcreteFunction = concrete_function.ConcreteFunction
Tensor = _tensors.Tensor


def check_serving_callable() -> None:
    """Refuses `tf.cuda.serving_callable` where it has not been made to work.

    Raises:
      NotImplementedError: with this release of TensorFlow. The message names it.
    """
    if not hasattr(ConcreteFunction, "function_type"):
        raise NotImplementedError(
            "tf.cuda.serving_callable is not to be had with TensorFlow "
            f"{versions.__version__}. Call the function itself, or take the multi-stream wheel of "
            "a newer release."
        )


def call_flat(function: Any, tensors: Sequence[Any]) -> list[Any]:
    """Calls a concrete function, also one whose variables nobody has any more.

    Args:
      function: the function; gradient tapes do not see the call.
      tensors: all that it takes, what it has captured included.

    Returns:
      The tensors that it gives.
    """
    atomic = function._inference_function
    return list(getattr(atomic, "call_flat", atomic)(*tensors))  # itself with TensorFlow 2.14
