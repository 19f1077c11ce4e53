# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
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
