# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.serving_callable`: a function of arrays, for servers with many threads.

with the GIL                              C++ (serving_callable.cc), without the GIL
check arrays, make arrays for results ->  copy arguments, run the function,
put results into their structure      <-  copy results

Most calls take the short way: Python only finds the arguments and puts results into their
structure, and C++ checks and makes the arrays (python_arrays.h). A call takes the way in Python if
its arguments are not plain arrays (or arrays of strings), are large, or have shapes that are new.

The callable runs a wrapper around the caller's function, whose results are on the host. So the step
itself copies the results to the host, on its own stream, before the step ends. If a call returned
GPU tensors instead, TensorFlow's copy of them would wait for other calls as well.
"""

import ctypes
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import (
    atomic_function,
    polymorphic_function,
)
from tensorflow.python.framework import errors, ops, tensor_spec
from tensorflow.python.multistream import compat, loader
from tensorflow.python.multistream.serving import serving_arrays
from tensorflow.python.ops import array_ops

# Bound on the plans that a callable caches: one for each set of argument shapes. A server has one
# for each batch size.
_MOST_SHAPES = 1024

Shape = tuple[int, ...]


class _Result(ctypes.Structure):
    # serving_callable.cc, CallResult
    _fields_ = (
        ("code", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("shapes", ctypes.POINTER(ctypes.c_int64)),
    )


class _Plan:
    """Cached data for calls with the same argument shapes; the results' are None if unknown."""

    def __init__(
        self,
        arguments: Sequence[Shape],
        results: Sequence[Shape] | None,
        leaves: Sequence[serving_arrays.Leaf],
    ) -> None:
        numbers = [number for x in (*arguments, *(results or ())) for number in (len(x), *x)]
        if results is None:
            numbers += [-1] * len(leaves)
        self.shapes = (ctypes.c_int64 * len(numbers))(*numbers)
        self.results = [
            (shape, leaf.dtype) for shape, leaf in zip(results or (), leaves, strict=False)
        ]


def serving_callable(function: Any, *specs: Any, **named_specs: Any) -> "ServingCallable":
    """Makes a function that takes and returns NumPy arrays and hardly holds the GIL.

    For servers that call a model from many Python threads. A call of a `tf.function` or of a
    SavedModel's signature holds the GIL for most of its time:

    ```python
    predict = tf.cuda.serving_callable(loaded.signatures["serving_default"])
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
      answers = list(threads.map(lambda rows: predict(features=rows)["scores"], queries))
    ```

    Arguments stay on the host until the step copies them, on its own stream. The results have the
    bits that `function` gives for tensors on the host. For tensors on the GPU, TensorFlow's
    optimizer may order the factors of a product otherwise, which changes last bits. A call runs on
    the device and group where the same thread would call `function`: `tf.device` and
    `tf.cuda.stream_group` apply. Gradient tapes do not record the call, and it cannot be cancelled.

    Args:
      function: a SavedModel's signature, another concrete function, or a `tf.function`. The
        callable keeps it and the variables that it reads alive.
      *specs: for a `tf.function` without an `input_signature`: its positional arguments, as for
        `get_concrete_function`, with a `tf.TensorSpec` for each tensor.
      **named_specs: the same for named arguments.

    Returns:
      The callable. Any number of threads may call it at once.

    Raises:
      TypeError: `function` is none of these; or an argument is not a dense tensor of numbers or
        strings, or a result not one of numbers (ragged and sparse tensors are not dense). The
        message names the tensor.
      ValueError: specs are missing, or given to a concrete function; or the function has captured
        a value that is only known at each call.
      NotImplementedError: with TensorFlow 2.13, or a NumPy release whose arrays are laid out
        differently in memory.
    """
    compat.check_serving_callable()
    serving_arrays.check_arrays()
    return ServingCallable(function, serving_arrays.concrete_of(function, specs, named_specs))


class ServingCallable:
    """A function bound to arrays; see `tf.cuda.serving_callable`, which makes it."""

    def __init__(self, function: Any, concrete: Any) -> None:
        self._handle: int | None = None
        self.__name__ = getattr(function, "__name__", None) or concrete.graph.name
        self._parameters = serving_arrays.parameters_of(concrete, self.__name__)
        taken = {p.name: p.structure for p in self._parameters if not p.fixed}
        self._arguments = [
            leaf
            for p in self._parameters
            if not p.fixed
            for leaf in serving_arrays.leaves_of(
                p.structure, p.name, f"Argument {{}} of {self.__name__}", strings=True
            )
        ]
        self._check_arguments(concrete)
        _check_captures(concrete, self.__name__)
        self._results = serving_arrays.leaves_of(
            concrete.structured_outputs, "", f"Result {{}} of {self.__name__}"
        )
        if len(self._results) != len(concrete.outputs):
            raise TypeError(
                f"{self.__name__} gives {len(concrete.outputs)} tensors, of which "
                f"{len(self._results)} are in what it returns: tf.cuda.serving_callable cannot "
                "tell which. Return tensors in tuples, lists and dicts."
            )
        self._pack = serving_arrays.packer(concrete.structured_outputs)
        self._gives_names = isinstance(concrete.structured_outputs, Mapping)
        # Fast path of most calls: one array for each parameter, all by position or all by name.
        self._names = tuple(taken)
        self._all_names = frozenset(taken)
        self._plain = all(p.is_tensor for p in self._parameters)
        self._by_position = len(taken) if all(p.positional for p in self._parameters) else -1
        self._values_of = serving_arrays.values_of(self._names)
        self._plans: dict[tuple[Shape, ...], _Plan] = {}
        # What C++ knows of results. C++ has no references of its own: nothing is ever removed.
        self._short: dict[tuple[Shape, ...], list[Any]] = {}
        self._devices: dict[str | None, bytes | None] = {None: None, "": None}
        self._dtypes = [leaf.dtype for leaf in self._arguments]
        self._strings = [i for i, x in enumerate(self._dtypes) if x is serving_arrays.OBJECT]
        self._pointers = ctypes.c_void_p * (len(self._arguments) + len(self._results))
        self._result_pointers = ctypes.c_void_p * len(self._results)
        self._library = _library()
        self._call, self._call_short, self._add_short = _calls_of(self._library)
        called = _with_results_on_host(concrete)
        self._atomic = called._inference_function
        # TensorFlow deletes a function when Python drops the last reference to it. Variables need
        # no reference: the captured handles keep them alive.
        self._kept = [function, concrete, called]
        self._bind(called)

    def __del__(self) -> None:
        if self._handle:
            self._library.TFMS_DeleteServing(self._handle)

    def __repr__(self) -> str:
        takes = ", ".join(f"{x.name}: {x.dtype}{x.spec.shape}" for x in self._arguments)
        return f"<tf.cuda.serving_callable of {self.__name__}({takes})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Args:
          *args: for each tensor of the function's parameters a NumPy array, or an object with
            `__array__`, the buffer protocol, or DLPack in host memory; in the structures that the
            function was traced with. The dtype must be the parameter's (the byte order may differ;
            strings are arrays of str, bytes, or objects that are either), and the parameter must
            allow the shape. The call copies each array before the function runs. If another thread
            resizes an array meanwhile, `resize` raises in that thread.
          **kwargs: the same, by name.

        Returns:
          What the function returns, with a new NumPy array in place of each tensor.

        Raises:
          TypeError: an argument is missing, unknown, or of another dtype or structure.
          ValueError: an argument has a shape that the function does not allow.
          tf.errors.OpError: the error that a call of the function raises, with the same type.
        """
        plain = self._plain_arguments(args, kwargs)
        device = self._context.device_name
        if device not in self._devices:
            self._devices[device] = device.encode()
        if plain is None:
            plain = tuple(self._flat(args, kwargs))
        if self._short:
            results = self._call_short(self._handle, self._devices[device], plain)
            if type(results) is list:
                return self._pack(results)
            if results:
                return self._pack(self._other_results(results, tuple([x.shape for x in plain])))
        return self._call_in_python(list(plain), self._devices[device])

    def named_tensors(self) -> tuple[Sequence[serving_arrays.Leaf], Sequence[str]] | None:
        """The arguments, and the names of the results, if each of both is a tensor with a name.

        As of a SavedModel's signature. In the order that C++ knows them in.
        """
        results = [leaf.name for leaf in self._results]
        named = self._plain and self._gives_names and not any("." in name for name in results)
        return (self._arguments, results) if named else None

    def handle(self) -> int:
        """The address of the C++ side, which lives as long as this object."""
        assert self._handle is not None
        return self._handle

    def _plain_arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """The arguments, if each is one tensor, and all are given by position or all by name."""
        if not self._plain:
            return None
        if not kwargs and len(args) == self._by_position:
            return args
        if args or len(kwargs) != len(self._names):
            return None
        try:
            return self._values_of(kwargs)
        except KeyError:
            return None

    def _call_in_python(self, arrays: list[Any], device: bytes | None) -> Any:
        for i, dtype in enumerate(self._dtypes):
            x = arrays[i]
            if type(x) is not np.ndarray or x.dtype is not dtype or not x.flags.c_contiguous:
                arrays[i] = serving_arrays.host_array(x, self._arguments[i], self.__name__)
        held = serving_arrays.holds_on(arrays)  # before shapes and pointers are read
        shapes = tuple([x.shape for x in arrays])
        for i in self._strings:
            arrays[i] = serving_arrays.packed_strings(arrays[i], self._arguments[i], self.__name__)
        plan = self._plans.get(shapes)
        if plan is None:
            plan = self._new_plan(shapes)
        results = [np.empty(shape, dtype) for shape, dtype in plan.results]
        pointers = self._pointers(*serving_arrays.pointers_in([*arrays, *results]))
        other = self._call(self._handle, device, plan.shapes, pointers)
        del held
        if other is not None:
            results = self._other_results(other, shapes)
        return self._pack(results)

    def _flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Flattens the arguments of a call to one value for each tensor."""
        parameters = [p for p in self._parameters if not p.fixed]
        positional = [p for p in parameters if p.positional]
        if len(args) > len(positional):
            names = ", ".join(p.name for p in positional) or "none"
            raise TypeError(
                f"{self.__name__} takes {len(positional)} arguments by position ({names}), "
                f"and was given {len(args)}."
            )
        given = {p.name: x for p, x in zip(positional, args, strict=False)}
        for name, x in kwargs.items():
            if name not in self._all_names:
                fixed = any(p.fixed and p.name == name for p in self._parameters)
                raise TypeError(
                    f"{self.__name__} has no argument {name!r}"
                    + (" that is a tensor: it is what it was when it was bound" if fixed else "")
                    + f". It takes {', '.join(self._names) or 'none'}."
                )
            if name in given:
                raise TypeError(f"{self.__name__} was given {name!r} by position and by name.")
            given[name] = x
        missing = [p.name for p in parameters if p.name not in given]
        if missing:
            raise TypeError(f"{self.__name__} was not given {', '.join(missing)}.")
        flat: list[Any] = []
        for p in parameters:
            if p.is_tensor:
                flat.append(given[p.name])
            else:
                flat += serving_arrays.flat_like(given[p.name], p.structure, p.name, self.__name__)
        return flat

    def _new_plan(self, shapes: tuple[Shape, ...]) -> _Plan:
        for shape, leaf in zip(shapes, self._arguments, strict=True):
            if not leaf.spec.shape.is_compatible_with(shape):
                raise ValueError(
                    f"Argument {leaf.name} of {self.__name__} has shape {shape}, which is not "
                    f"one of {leaf.spec.shape}."
                )
        results = [leaf.spec.shape for leaf in self._results]
        known = all(shape.is_fully_defined() for shape in results)
        return self._remember(
            shapes, [tuple(shape.as_list()) for shape in results] if known else None
        )

    def _remember(self, shapes: tuple[Shape, ...], results: Sequence[Shape] | None) -> _Plan:
        if len(self._plans) >= _MOST_SHAPES:
            self._plans.clear()
        plan = self._plans[shapes] = _Plan(shapes, results, self._results)
        if results is not None:
            self._shorten(shapes, plan)
        return plan

    def _shorten(self, shapes: tuple[Shape, ...], plan: _Plan) -> None:
        """Lets later calls with arguments of `shapes` take the short way."""
        if len(self._short) >= _MOST_SHAPES and shapes not in self._short:
            return
        known = self._short.setdefault(shapes, plan.results)
        if known is plan.results:
            self._add_short(self._handle, plan.shapes, len(plan.shapes), id(known))
        elif known != plan.results:  # the arguments' values decide the results' shapes
            self._add_short(self._handle, plan.shapes, len(plan.shapes), None)

    def _other_results(self, address: int, shapes: tuple[Shape, ...]) -> list[Any]:
        """Reads a `CallResult` of C++ and deletes it: an error, or results of unplanned shapes.

        These become the plan for arguments of `shapes`.
        """
        try:
            result = _Result.from_address(address)
            if result.code:
                self.raise_error(result.code, (result.message or b"").decode(errors="replace"))
            found, arrays, at = [], [], 0
            for leaf in self._results:
                end = at + 1 + result.shapes[at]
                found.append(tuple(result.shapes[at + 1 : end]))
                arrays.append(np.empty(found[-1], leaf.dtype))
                at = end
            self._library.TFMS_CopyServingResult(
                address, self._result_pointers(*serving_arrays.pointers_in(arrays))
            )
            self._remember(shapes, found)
            return arrays
        finally:
            self._library.TFMS_DeleteServingResult(address)

    def raise_error(self, code: int, message: str) -> None:
        """Raises the error of a call, with the program's lines that built the failing node."""
        with atomic_function.InterpolateRuntimeError(self._atomic):
            try:
                kind = errors.exception_type_from_error_code(code)
            except KeyError:
                raise errors.UnknownError(None, None, message, code) from None
            raise kind(None, None, message)

    def _check_arguments(self, concrete: Any) -> None:
        expected = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
        if [x.dtype for x in expected] != [leaf.spec.dtype for leaf in self._arguments]:
            raise TypeError(
                f"tf.cuda.serving_callable cannot tell the arguments of {self.__name__} from its "
                f"signature {concrete.structured_input_signature}. Bind a tf.function with an "
                "input_signature that calls it."
            )

    def _bind(self, concrete: Any) -> None:
        """Makes the C++ side, which holds its own references to the captured tensors."""
        self._context = context.context()
        self._context.ensure_initialized()
        captures = list(concrete.captured_inputs)
        # Dropping the last reference to the capsule deletes the TFE_Context. Keep the reference:
        # TensorFlow's context may be replaced, as some tests do.
        capsule = self._context._handle
        flat_list = serving_arrays.flat_list
        self._kept += [capsule, captures, flat_list]
        attributes = self._context.function_call_options.as_attrs()
        config = attributes["config_proto"]
        config = config.encode() if isinstance(config, str) else config
        inputs = [leaf.spec.dtype.as_datatype_enum for leaf in self._arguments]
        outputs = [leaf.spec.dtype.as_datatype_enum for leaf in self._results]
        self._handle = self._library.TFMS_NewServing(
            _context_of(capsule),
            self._atomic.name,
            config,
            len(config),
            attributes["executor_type"].encode(),
            (ctypes.c_int32 * len(inputs))(*inputs),
            len(inputs),
            (ctypes.c_int32 * len(outputs))(*outputs),
            len(outputs),
            (ctypes.c_void_p * len(captures))(*map(_handle_of, captures)),
            len(captures),
        )
        if not self._handle:
            raise ValueError(
                f"tf.cuda.serving_callable: a tensor that {self.__name__} has captured is on a "
                "device that does not share tensors. Use CPUs and GPUs of this process."
            )
        dtypes = [None if x is serving_arrays.OBJECT else id(x) for x in self._dtypes]
        self._library.TFMS_BindArrays(
            self._handle,
            np.ndarray,
            np.empty,
            flat_list,
            (ctypes.c_void_p * len(dtypes))(*dtypes),
        )


def _library() -> ctypes.CDLL:
    library = loader.library
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.TFMS_NewServing.restype = pointer
    library.TFMS_NewServing.argtypes = [
        *(pointer, ctypes.c_char_p, ctypes.c_char_p, number, ctypes.c_char_p),
        *(pointer, number, pointer, number, pointer, number),
    ]
    library.TFMS_DeleteServing.argtypes = [pointer]
    library.TFMS_CopyServingResult.argtypes = [pointer, pointer]
    library.TFMS_DeleteServingResult.argtypes = [pointer]
    python = ctypes.py_object
    library.TFMS_BindArrays.argtypes = [pointer, python, python, python, pointer]
    return library


def _calls_of(library: ctypes.CDLL) -> tuple[Any, Any, Any]:
    """Three functions that are called with the GIL held; the first two release it themselves."""
    held = ctypes.PyDLL(library._name, handle=library._handle)
    pointer, device = ctypes.c_void_p, ctypes.c_char_p
    call, short, add = held.TFMS_CallServing, held.TFMS_CallWithArrays, held.TFMS_AddPlan
    call.restype, call.argtypes = pointer, [pointer, device, pointer, pointer]
    short.restype, short.argtypes = ctypes.py_object, [pointer, device, ctypes.py_object]
    add.restype, add.argtypes = None, [pointer, pointer, ctypes.c_int, pointer]
    return call, short, add


def _context_of(capsule: Any) -> int:
    """The TFE_Context* of a capsule, which has a name from TensorFlow 2.22 on."""
    name, get = ctypes.pythonapi["PyCapsule_GetName"], ctypes.pythonapi["PyCapsule_GetPointer"]
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name(capsule)))


def _handle_of(captured: Any) -> int:
    """The TFE_TensorHandle* of an eager tensor, for which TensorFlow has no function in Python."""
    folder = pathlib.Path(ops.__file__).resolve().parents[1]
    # The second one has the function in releases before 2.20.
    names = ("lib_pywrap_tensorflow_common.so", "_pywrap_tensorflow_internal.so")
    path = next(folder / name for name in names if (folder / name).exists())
    library = ctypes.PyDLL(str(path))
    get = library["_Z18EagerTensor_HandlePK7_object"]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    return int(get(captured))


def _check_captures(concrete: Any, function: str) -> None:
    deferred = list(concrete.graph.deferred_internal_captures)
    if deferred:
        names = ", ".join(str(getattr(x, "name", x)) for x in deferred)
        raise ValueError(
            f"tf.cuda.serving_callable({function}): it has captured {names}, whose value is only "
            "known at each call. Make it an argument."
        )
    for captured in concrete.captured_inputs:
        if not isinstance(captured, ops.EagerTensor):
            raise ValueError(
                f"tf.cuda.serving_callable({function}): it has captured {captured!r}, which is not "
                "a tensor of this process. Make it an argument or a variable."
            )


def _with_results_on_host(concrete: Any) -> Any:
    """A function of the same tensors that returns the same results, as a flat list on the host."""
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    specs = [tensor_spec.TensorSpec(x.shape, x.dtype) for x in concrete.inputs[:count]]

    def call(*arguments: Any) -> list[Any]:
        results = compat.call_flat(concrete, [*arguments, *concrete.captured_inputs])
        with ops.device("/device:CPU:0"):
            return [array_ops.identity(x) for x in results]

    with ops.device(None):  # a device scope around this call must not apply to the later calls
        traced = polymorphic_function.function(call, input_signature=specs, autograph=False)
        return traced.get_concrete_function()
