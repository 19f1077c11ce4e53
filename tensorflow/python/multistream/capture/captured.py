# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.captured`: a function whose calls are launched as one recording."""

import ctypes
import functools
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.multistream import compat, loader

_MARK = "_multi_stream_capture"  # capture_mark.h
_MODES = ("auto", "require", "off")


def captured(function: Callable[..., Any] | None = None, *, mode: str = "auto") -> Any:
    """Makes a function whose calls are recorded once and then launched as a whole.

    For a function of many small ops, whose launches are the limit: one that serves, or a step of
    training, which may change variables. The other steps of the process run as always:

    ```python
    @tf.cuda.captured
    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def predict(features):
      return model(features)
    ```

    A function that calls it is captured as well, as its calls are one step; so is the signature of
    a SavedModel that was saved with it, wherever steps can be captured. It counts for calls that
    have ops on a GPU, and is part of what XLA compiles where such a function calls it. In a session
    the session's configuration counts (`gpu_options.cuda_graph_enable_jit`), and functions do not.

    Decorate before the first op that runs eagerly, or set `TF_MULTI_STREAM_CAPTURE=marked`:
    devices that were made for the process without can capture nothing. `TF_MULTI_STREAM_CAPTURE`
    says what steps of other functions do; `off` counts before this function's mode.

    Args:
      function: a `tf.function`, a concrete function such as a SavedModel's signature, or Python
        code, of which a `tf.function` is made. Without it, the result is a decorator.
      mode: `auto` captures what can be, and says in a warning if nothing can; with `require` what
        cannot be is an error, of the call, that names the first op in the way; `off` captures
        none of the function's calls, where `TF_MULTI_STREAM_CAPTURE` says that others are.

    Returns:
      A `tf.function`, or a concrete function if `function` is one. Its results are those of
      `function`.

    Raises:
      TypeError: `function` cannot be called.
      ValueError: `mode` is none of these.
      RuntimeError: with `require`, no step can be captured in this process, and why.
    """
    if mode not in _MODES:
        raise ValueError(f"tf.cuda.captured(mode={mode!r}): takes one of {', '.join(_MODES)}")
    if function is None:
        return functools.partial(captured, mode=mode)
    if not callable(function):
        raise TypeError(f"tf.cuda.captured({function!r}): not a function")
    if mode != "off":
        _prepare(mode)

    called = function
    if isinstance(function, polymorphic_function.Function):
        # Without its input_signature, which does not count a method's `self`.
        called = polymorphic_function.function(
            function.python_function,
            autograph=function._autograph,
            jit_compile=function._jit_compile,
            reduce_retracing=function._reduce_retracing,
            experimental_autograph_options=function._experimental_autograph_options,
        )

    @functools.wraps(function, updated=())
    def marked(*args: Any, **kwargs: Any) -> Any:
        results = called(*args, **kwargs)
        graph = ops.get_default_graph()
        if isinstance(graph, func_graph.FuncGraph):  # else functions run eagerly
            _mark(graph, mode)
        return results

    if isinstance(function, compat.ConcreteFunction):
        # Its arguments' names are those of its specs.
        args, kwargs = function.structured_input_signature
        traced = polymorphic_function.function(marked, autograph=False)
        return traced.get_concrete_function(*args, **kwargs)
    if isinstance(function, polymorphic_function.Function):
        return polymorphic_function.function(
            marked,
            input_signature=function.input_signature,
            autograph=False,
            reduce_retracing=function._reduce_retracing,
        )
    return polymorphic_function.function(marked)


def _prepare(mode: str) -> None:
    """Makes the process able to capture, or says why it cannot."""
    if loader.library.TFMS_Captures():
        return
    has_devices = context.context_safe() is not None and context.context()._initialized
    message = ctypes.create_string_buffer(4096)
    if loader.library.TFMS_CaptureFunctions(has_devices, message, len(message)) == 0:
        return
    why = message.value.decode(errors="replace")
    if mode == "require":
        raise RuntimeError(f'tf.cuda.captured(mode="require"): {why}')
    warnings.warn(f"tf.cuda.captured has no effect: {why}", stacklevel=3)


def _mark(graph: Any, mode: str) -> None:
    """Marks what a function takes, which optimizers leave as it is."""
    traced = graph.get_operations()
    taken = [op for op in traced if op.type == "Placeholder"]
    for op in taken or traced:
        op._set_attr(_MARK, attr_value_pb2.AttrValue(s=mode.encode()))
