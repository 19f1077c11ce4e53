# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""All differences between TensorFlow releases that concern Python; for C++ see `compat.h`."""

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
    """Refuses `tf.cuda.serving_callable` with TensorFlow releases that lack what it needs."""
    if not hasattr(ConcreteFunction, "function_type"):
        raise NotImplementedError(
            "tf.cuda.serving_callable is not to be had with TensorFlow "
            f"{versions.__version__}. Call the function itself, or take the multi-stream wheel of "
            "a newer release."
        )


def call_flat(function: Any, tensors: Sequence[Any]) -> list[Any]:
    """Calls a concrete function with its arguments, then its captured inputs, as tensors.

    The function's variables may have been deleted in Python; gradient tapes do not see the call.
    """
    atomic = function._inference_function
    # In TensorFlow 2.14 `atomic` has no call_flat, and is called itself.
    return list(getattr(atomic, "call_flat", atomic)(*tensors))


def forget_deleted_variables(function: Any) -> None:
    """Lets other functions call a concrete function whose variables have been deleted in Python.

    As a SavedModel's are if only its signature is kept. The function's captured inputs keep their
    values; no gradient is wanted of a variable that nobody has.
    """
    graph = function.graph
    alive = [variable() for variable in graph._weak_variables]
    graph.variables = [variable for variable in alive if variable is not None]
