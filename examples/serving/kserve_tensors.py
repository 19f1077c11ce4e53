# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Tensors of the Open Inference Protocol: the same for gRPC and REST."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from loaded_model import DEFAULT_SIGNATURE, Arrays, Signature
from model_versions import Model
from predict_calls import Calls
from serving_error import ServingError, invalid, too_large
from tensor_protos import MOST_DIMENSIONS, OF_STRING

DTYPES: dict[str, Any] = {
    "BOOL": tf.bool,
    **{f"INT{bits}": getattr(tf, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": getattr(tf, f"uint{bits}") for bits in (8, 16, 32, 64)},
    "FP16": tf.float16,
    "FP32": tf.float32,
    "FP64": tf.float64,
    "BF16": tf.bfloat16,
    "BYTES": tf.string,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LENGTH = 4  # bytes before each string of a raw tensor, which say how long the string is
SIGNATURE_PARAMETER = "signature_name"


class Input(NamedTuple):
    """A tensor of a request; `values` gives its values, without a shape, for their number."""

    name: str
    datatype: str
    shape: Sequence[int]
    values: Callable[["Input", int], Any]

    def error(self, what: str) -> ServingError:
        """The error that says `what` of the input."""
        return invalid(f"input {self.name[:100]!r} {what}")


def arrays_of(signature: Signature, inputs: Iterable[Input], most_bytes: int) -> Arrays:
    """The arrays of inputs, which may take `most_bytes` together; ServingError for a wrong one."""
    named: dict[str, Input] = {}
    for given in inputs:
        if given.name in named:
            raise given.error("is given twice; give it once.")
        named[given.name] = given
    signature.check_names(named.keys())
    arrays, left = {}, most_bytes
    for name, given in named.items():
        _check_datatype(given, signature)
        count = _count(given)
        size = count * (OF_STRING if given.datatype == "BYTES" else DTYPES[given.datatype].size)
        left -= size
        if left < 0:
            raise too_large(
                f"input {name!r} takes {min(size, 1 << 63)} bytes or more, by its shape "
                f"{list(given.shape)}, and all inputs of a request may take {most_bytes} "
                "(--max-request-mb)."
            )
        values = given.values(given, count)
        if values.size != count:
            raise given.error(
                f"has {values.size} values, and its shape {list(given.shape)} has {count}."
            )
        try:
            arrays[name] = values.reshape(given.shape)
        except (ValueError, OverflowError) as error:
            raise given.error(f"of shape {list(given.shape)}: {error}") from None
    return arrays


def _check_datatype(given: Input, signature: Signature) -> None:
    dtype = signature.inputs[given.name].dtype
    if DTYPES.get(given.datatype) != dtype:
        raise given.error(
            f"has datatype {given.datatype[:100]!r}, and signature {signature.name} takes "
            f"{datatype_of(dtype)}."
        )


def _count(given: Input) -> int:
    rank = len(given.shape)
    if rank > MOST_DIMENSIONS:
        raise given.error(f"has {rank} dimensions; {MOST_DIMENSIONS} is the most.")
    for size in given.shape:
        if size < 0:
            raise given.error(f"has {size} in its shape; a dimension is 0 or more.")
    return math.prod(given.shape)


def raw_values(data: bytes | memoryview) -> Callable[[Input, int], Any]:
    """The `values` of an input whose bytes are `data`."""

    def values(given: Input, count: int) -> Any:
        if given.datatype == "BYTES":
            return _strings(data, given, count)
        dtype = np.dtype(DTYPES[given.datatype].as_numpy_dtype)
        if len(data) != count * dtype.itemsize:
            raise given.error(
                f"has {len(data)} bytes, and its shape {list(given.shape)} of {given.datatype} "
                f"takes {count * dtype.itemsize}."
            )
        if dtype.kind == "b":  # any byte but 0 is true
            return np.frombuffer(data, np.uint8).astype(dtype)
        return np.frombuffer(data, dtype)

    return values


def _strings(data: bytes | memoryview, given: Input, count: int) -> Any:
    found, at = [], 0
    for i in range(count):
        begin = at + _LENGTH
        at = begin + int.from_bytes(data[at:begin], "little")
        if max(begin, at) > len(data):
            raise given.error(
                f"has {len(data)} bytes, of which string {i} would need {max(begin, at)}: before "
                f"each of the {count} strings of its shape are {_LENGTH} bytes with its length."
            )
        found.append(bytes(data[begin:at]))
    if at != len(data):
        raise given.error(f"has {len(data) - at} bytes after the {count} strings of its shape.")
    return np.array(found, object)


def raw_of(array: Any) -> bytes:
    """The bytes of an array."""
    if array.dtype.kind != "O":
        return bytes(array.tobytes())
    parts: list[bytes] = []
    for value in array.ravel():
        parts += (len(value).to_bytes(_LENGTH, "little"), value)
    return b"".join(parts)


def datatype_of(dtype: Any) -> str:
    """The protocol's name of a dtype; TensorFlow's, if the protocol has none."""
    found = tf.as_dtype(dtype)
    return str(_NAMES.get(found, found.name))


def signature_name(given: Any) -> str:
    """The signature that a parameter of a request asks for, as far as it is a name."""
    if not isinstance(given, str):
        raise invalid(f"the parameter {SIGNATURE_PARAMETER} is {given!r}, which is not a string.")
    return given


def metadata(model: Model, version: int | None) -> dict[str, Any]:
    """The fields of the answer of ModelMetadata; ServingError if there is no such version."""
    held = model.acquire(version)
    try:
        signature = held.loaded.signature(DEFAULT_SIGNATURE)
        definition = held.loaded.signature_defs[signature.name]
    finally:
        model.release(held)
    return {
        "name": model.name,
        "versions": [str(number) for number in model.served()],
        "platform": "tensorflow_savedmodel",
        "inputs": _described(definition.inputs),
        "outputs": _described(definition.outputs),
    }


def _described(tensors: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "datatype": datatype_of(tensor.dtype),
            # The protocol has no sign for any number of dimensions.
            "shape": [-1]
            if tensor.tensor_shape.unknown_rank
            else [dim.size for dim in tensor.tensor_shape.dim],
        }
        for name, tensor in sorted(tensors.items())
    ]


def check_ready(calls: Calls, name: str, version: int | None) -> None:
    """ServingError if a version of a model takes no calls."""
    calls.refuse_if_draining()
    model = calls.models.model(name)
    model.release(model.acquire(version))


def server_metadata() -> dict[str, Any]:
    """The fields of the answer of ServerMetadata."""
    return {
        "name": "multistream-tensorflow",
        "version": tf.__version__,
        "extensions": ["binary_tensor_data"],
    }
