# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.captured`: a function whose calls are recorded once and replayed from then on."""

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

    Use it for a function of many small ops that is limited by their launches: a model that serves,
    or a training step, which may change variables. Other steps of the process are not captured:

    ```python
    @tf.cuda.captured
    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def predict(features):
      return model(features)
    ```

    A function that calls the captured function is captured as well, because the whole call is one
    step. The signature of a SavedModel that contains the captured function is captured too, in
    every process that can capture steps. Only calls with ops on a GPU are captured. If a function
    that XLA compiles calls the captured function, XLA compiles both. In a session only the
    session's configuration counts (`gpu_options.cuda_graph_enable_jit`), not the decorator.

    Decorate before the first op runs eagerly, or set `TF_MULTI_STREAM_CAPTURE=marked`: devices that
    TensorFlow has already made without capture cannot capture. `TF_MULTI_STREAM_CAPTURE` decides
    for steps of other functions; its value `off` overrides `mode`.

    Args:
      function: a `tf.function`, a concrete function such as a SavedModel's signature, or Python
        code, of which a `tf.function` is made. Without `function`, the result is a decorator.
      mode: `auto` captures the steps that can be captured, and warns if this process can capture
        none. `require` raises an error at each call that cannot be captured; the error names the
        first op in the way. (With `TF_MULTI_STREAM_CAPTURE_PERCENT` less than all of a call may be
        required.) `off` captures none of the function's calls, even if
        `TF_MULTI_STREAM_CAPTURE` captures other functions.

    Returns:
      A `tf.function`, or a concrete function if `function` is one. Its results are those of
      `function`.

    Raises:
      TypeError: `function` cannot be called.
      ValueError: `mode` is none of these.
      RuntimeError: `mode` is `require`, and this process cannot capture. The message says why.
    """
    if mode not in _MODES:
        raise ValueError(f"tf.cuda.captured(mode={mode!r}): takes one of {', '.join(_MODES)}")
    if function is None:
        return functools.partial(captured, mode=mode)
    if not callable(function):
        raise TypeError(f"tf.cuda.captured({function!r}): not a function")
    if mode != "off":
        _prepare(mode)

    # None for a concrete function and for Python code.
    whole: Any = function if isinstance(function, polymorphic_function.Function) else None

    @functools.wraps(function, updated=())
    def marked(*args: Any, **kwargs: Any) -> Any:
        graph = ops.get_default_graph()
        if not isinstance(graph, func_graph.FuncGraph):  # functions run eagerly
            return (whole.python_function if whole else function)(*args, **kwargs)
        results = _to_trace(function)(*args, **kwargs)
        _mark(graph, mode)
        return results

    if isinstance(function, compat.ConcreteFunction):
        compat.forget_deleted_variables(function)
        # Traced with the same specs, so that the arguments keep their names.
        args, kwargs = function.structured_input_signature
        traced = polymorphic_function.function(marked, autograph=False)
        return traced.get_concrete_function(*args, **kwargs)
    options = {}
    if whole:
        options["input_signature"] = whole.input_signature
        options["reduce_retracing"] = whole._reduce_retracing
    # With AutoGraph for Python code, which `marked` calls.
    return polymorphic_function.function(marked, autograph=whole is None, **options)


def _to_trace(function: Any) -> Any:
    """What to call in place of `function` while a graph is built for it.

    Of a `tf.function` another one with the same Python code: a `tf.function` that is called with
    objects, as `self`, keeps the graphs that it has built for each of them, and so their variables.
    """
    if not isinstance(function, polymorphic_function.Function):
        return function
    return polymorphic_function.function(
        function.python_function,  # without the input_signature, which leaves out `self`
        autograph=function._autograph,
        jit_compile=function._jit_compile,
        experimental_autograph_options=function._experimental_autograph_options,
    )


def _prepare(mode: str) -> None:
    """Enables capture in this process; otherwise raises (`require`) or warns, with the reason."""
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
    """Marks the arguments, which graph optimizers never replace; all ops if there are none."""
    traced = graph.get_operations()
    taken = [op for op in traced if op.type == "Placeholder"]
    for op in taken or traced:
        op._set_attr(_MARK, attr_value_pb2.AttrValue(s=mode.encode()))
