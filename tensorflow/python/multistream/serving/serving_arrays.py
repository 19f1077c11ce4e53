# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts a function's arguments and results to arrays; for `tf.cuda.serving_callable`."""

import ctypes
import dataclasses
import inspect
import itertools
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import dtypes, tensor
from tensorflow.python.multistream import compat, loader
from tensorflow.python.util import nest

OBJECT = np.dtype(object)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One tensor among a function's arguments or results. `name`: its path in the structure."""

    name: str
    spec: tensor.TensorSpec
    dtype: np.dtype[Any]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a function. `structure` has a TensorSpec for each tensor."""

    name: str
    structure: Any
    positional: bool
    is_tensor: bool  # neither a structure of tensors nor fixed
    fixed: bool  # contains no tensors, and keeps the value that the function was traced with


def concrete_of(function: Any, specs: Sequence[Any], named_specs: Mapping[str, Any]) -> Any:
    """The concrete function to call."""
    name = getattr(function, "__name__", repr(function))
    if isinstance(function, compat.ConcreteFunction):
        if specs or named_specs:
            raise ValueError(
                f"tf.cuda.serving_callable({name}, ...): a concrete function or signature has its "
                "specs already. Pass it alone."
            )
        return function
    if not isinstance(function, polymorphic_function.Function):
        raise TypeError(
            f"tf.cuda.serving_callable({name}): takes a SavedModel's signature, a concrete "
            "function or a tf.function. For a Keras model or plain code, pass tf.function(code), "
            "and a tf.TensorSpec for each argument."
        )
    if specs or named_specs or function.input_signature is not None:
        return function.get_concrete_function(*specs, **named_specs)
    traced = list(function._list_all_concrete_functions())
    if len(traced) != 1:
        raise ValueError(
            f"tf.cuda.serving_callable({name}): it has no input_signature, and was traced for "
            f"{len(traced)} of them. Pass what it takes, too: serving_callable({name}, "
            "tf.TensorSpec([None, 64], tf.float32))."
        )
    return traced[0]


def parameters_of(concrete: Any, function: str) -> list[Parameter]:
    """The parameters, in the order in which the function takes their tensors."""
    args, kwargs = concrete.structured_input_signature
    names = [
        p.name
        for p in concrete.function_type.parameters.values()
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if not args and set(names) <= set(kwargs):
        names = []  # signatures of TensorFlow 1
    if len(names) != len(args):
        raise TypeError(
            f"tf.cuda.serving_callable({function}): it takes {len(args)} arguments by position, "
            f"of which {len(names)} have names. Name them all."
        )
    found = {}
    # A signature takes its tensors by name or, as a concrete function does, by position.
    by_position = not args and len(getattr(concrete, "_arg_keywords", None) or ()) <= 1
    for name, structure in [*zip(names, args, strict=True), *kwargs.items()]:
        leaves = nest.flatten(structure)
        specs = [x for x in leaves if isinstance(x, tensor.TensorSpec)]
        found[name] = Parameter(
            name=name,
            structure=structure,
            positional=name in names or by_position,
            is_tensor=isinstance(structure, tensor.TensorSpec),
            fixed=not specs and not any(_is_of_tensors(x) for x in leaves),
        )
    # TensorFlow's order: keyword-only parameters come last, sorted by name. Releases before 2.19 do
    # not sort `parameters`, and lack the parameters of TensorFlow 1 signatures, which are sorted by
    # name as well.
    by_name = inspect.Parameter.KEYWORD_ONLY
    declared = sorted(
        concrete.function_type.parameters.values(),
        key=lambda p: (True, p.name) if p.kind is by_name else (False, ""),
    )
    order = [p.name for p in declared]
    order += sorted(found.keys() - set(order))
    return [found[name] for name in order if name in found]


def leaves_of(structure: Any, name: str, what: str, strings: bool = False) -> list[Leaf]:
    """The tensors in a structure of specs or tensors; TypeError if NumPy has no arrays for one.

    With `strings`, there may be tensors of strings, whose arrays have the dtype object.
    """
    found = []
    for path, x in nest.flatten_with_tuple_paths(structure):
        where = ".".join(str(part) for part in (name, *path) if part != "") or "0"
        if isinstance(x, compat.Tensor):
            x = tensor.TensorSpec(x.shape, x.dtype)  # noqa: PLW2901
        if not isinstance(x, tensor.TensorSpec):
            if not _is_of_tensors(x):
                continue
            raise TypeError(
                f"{what.format(where)} is {x}: tf.cuda.serving_callable takes and gives dense "
                "tensors only."
            )
        dtype = OBJECT if strings and x.dtype == dtypes.string else _numpy_dtype(x.dtype)
        if dtype is None:
            raise TypeError(
                f"{what.format(where)} is of type {x.dtype.name}: tf.cuda.serving_callable takes "
                "numbers, booleans and strings, and gives numbers and booleans. Call the function "
                "itself."
            )
        found.append(Leaf(where, x, dtype))
    return found


def _is_of_tensors(x: Any) -> bool:
    """Whether `x` stands for tensors: a tensor, or a spec of any type."""
    return hasattr(x, "dtype") or hasattr(x, "_component_specs")


def _numpy_dtype(dtype: dtypes.DType) -> np.dtype[Any] | None:
    """The dtype of a NumPy array with the same bytes; None if NumPy has none."""
    if dtype.is_quantized or dtype in (dtypes.string, dtypes.resource, dtypes.variant):
        return None
    found = np.dtype(dtype.as_numpy_dtype)
    return None if found.hasobject or found.itemsize != dtype.size else found


def values_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Makes a function that gives the values of `names` in a mapping."""
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda mapping: tuple([mapping[name] for name in names])


def packer(structure: Any) -> Callable[[list[Any]], Any]:
    """Makes a function that puts arrays, in the order of nest.flatten, into a result structure.

    `nest.pack_sequence_as` takes 30 us with the GIL; only types that it alone knows are left to it.
    """
    return _packer(structure, itertools.count())


def _packer(structure: Any, numbers: Iterator[int]) -> Callable[[list[Any]], Any]:
    kind = type(structure)
    if isinstance(structure, (compat.Tensor, tensor.TensorSpec)):
        return operator.itemgetter(next(numbers))
    if kind is dict:  # nest.flatten sorts the keys
        of_keys = {key: _packer(structure[key], numbers) for key in sorted(structure)}
        items = [(key, of_keys[key]) for key in structure]
        return lambda arrays: {key: pack(arrays) for key, pack in items}
    if kind is list or kind is tuple:
        packs = [_packer(x, numbers) for x in structure]
        return lambda arrays: kind([pack(arrays) for pack in packs])
    if not nest.is_nested(structure):
        return lambda arrays: structure
    parts = [_packer(x, numbers) for x in nest.flatten(structure)]
    return lambda arrays: nest.pack_sequence_as(structure, [pack(arrays) for pack in parts])


def flat_like(given: Any, structure: Any, name: str, function: str) -> list[Any]:
    """The tensor values inside an argument, in the order of `structure`."""
    try:
        # To the depth of the specs: a list may stand for an array.
        parts = nest.flatten_up_to(structure, given, check_types=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Argument {name} of {function} has another structure than {structure}: {error}"
        ) from error
    specs = nest.flatten(structure)
    return [x for x, s in zip(parts, specs, strict=True) if isinstance(s, tensor.TensorSpec)]


# `PyArrayObject` begins with Python's object header, then the pointer to the array's memory.
_POINTER_AT = object.__basicsize__


def pointers_in(arrays: Sequence[np.ndarray[Any, Any]]) -> list[int]:
    """Addresses at which each array object stores the pointer to its memory.

    C++ reads the pointers in no time and without the GIL. `__array_interface__` would hold the GIL
    for a microsecond per array.
    """
    return [id(x) + _POINTER_AT for x in arrays]


def holds_on(arrays: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Keeps arrays' memory from moving, even if another thread tries to resize an array.

    NumPy refuses to resize an array that has a weak reference, even with `refcheck=False`. A view's
    memory belongs to its base. The memory stays in place until the caller drops the references.
    """
    return [weakref.ref(x.base if isinstance(x.base, np.ndarray) else x) for x in arrays]


def check_arrays() -> None:
    """Checks that C++ and `holds_on` can do what they do with arrays of this NumPy release."""
    arrays = [np.zeros(shape, np.float32) for shape in ((), (3,), (2, 0), (2, 3, 4))]
    arrays.append(arrays[3].T)
    if not all(_is_known(x, at) for x, at in zip(arrays, pointers_in(arrays), strict=True)):
        raise NotImplementedError(
            f"tf.cuda.serving_callable does not know where arrays of NumPy {np.__version__} "
            "have their memory. Use a NumPy release that this TensorFlow was made for."
        )
    held = holds_on(arrays)
    try:
        arrays[1].resize(4, refcheck=False)
    except ValueError:
        return
    del held
    raise NotImplementedError(
        f"tf.cuda.serving_callable cannot keep NumPy {np.__version__} from resizing an array that "
        "a call reads. Use a NumPy release that this TensorFlow was made for."
    )


def _is_known(x: np.ndarray[Any, Any], pointer_at: int) -> bool:
    """Whether C++ reads the fields of the array object as they are."""
    data = x.__array_interface__["data"][0]
    if ctypes.c_void_p.from_address(pointer_at).value != data:
        return False
    fields = (ctypes.c_int64 * 6)()
    read = loader.library.TFMS_FieldsOfArray
    read.restype = ctypes.c_bool
    if not read(ctypes.py_object(x), fields):
        return False
    *same, dimensions, rank, flags = fields
    if same != [data, id(x.dtype), id(np.ndarray)] or rank != x.ndim:
        return False
    shape = tuple((ctypes.c_ssize_t * rank).from_address(dimensions)) if rank else ()
    return shape == x.shape and bool(flags & 1) == bool(x.flags.c_contiguous)


def host_array(x: Any, leaf: Leaf, function: str) -> np.ndarray[Any, Any]:
    """A C-contiguous array of the leaf's dtype, in native byte order, with the same numbers."""
    says = f"Argument {leaf.name} of {function}"
    try:
        if not hasattr(x, "__array__") and hasattr(x, "__dlpack__"):
            array = np.from_dlpack(x)
        else:
            array = np.asarray(x)
    except Exception as error:
        raise TypeError(
            f"{says} is a {type(x).__name__}, which is not an array in host memory: {error}"
        ) from error
    if leaf.dtype is OBJECT:
        if array.dtype.kind not in "OSTU":
            raise TypeError(f"{says} is of dtype {array.dtype}, and must be of str or bytes.")
    elif array.dtype != leaf.dtype:
        if array.dtype.newbyteorder("=") != leaf.dtype:
            raise TypeError(
                f"{says} is of dtype {array.dtype}, and must be {leaf.dtype}: pass "
                "np.asarray(x, dtype) of that."
            )
        array = array.astype(leaf.dtype)
    # Not np.ascontiguousarray, which gives scalars a dimension.
    return array if array.flags.c_contiguous else array.copy(order="C")


def flat_list(array: np.ndarray[Any, Any]) -> list[Any]:
    """The elements, as Python's objects."""
    elements: list[Any] = array.reshape(-1).tolist()
    return elements


def packed_strings(array: np.ndarray[Any, Any], leaf: Leaf, function: str) -> Any:
    """An array of bytes that `StringsOf` in serving_callable.cc reads: offsets, and all strings.

    As in TensorFlow, str is encoded in UTF-8.
    """
    try:
        encoded = [
            x if isinstance(x, bytes) else str.encode(x)  # TypeError for what is neither
            for x in flat_list(array)
        ]
    except (TypeError, UnicodeEncodeError) as error:
        raise TypeError(
            f"Argument {leaf.name} of {function} has an element that is not a string: {error}"
        ) from error
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(x) for x in encoded], out=offsets[1:])
    return np.frombuffer(offsets.tobytes() + b"".join(encoded), np.uint8)
