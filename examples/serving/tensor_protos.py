# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Tensors of requests, from TensorFlow's TensorProto."""

import math
from typing import Any

import numpy as np
import tensorflow as tf
from serving_error import invalid, too_large
from tensorflow.core.framework import tensor_pb2

# What a string takes beside its characters: in NumPy, in Python and in TensorFlow.
OF_STRING = 80
MOST_DIMENSIONS = 254  # of TensorFlow
# Values that are converted at once: other threads wait for Python's lock meanwhile.
_SLICE = 1 << 14


def array_of(proto: tensor_pb2.TensorProto, name: str, most_bytes: int) -> Any:
    """The array that a client's TensorProto stands for; of objects of type bytes for strings.

    `name` is the input's. A proto of a few bytes may stand for an array of any size, as a value
    that it leaves out is that of the element before: an array above `most_bytes` is a ServingError.
    """
    rank = len(proto.tensor_shape.dim)
    if rank > MOST_DIMENSIONS:
        raise invalid(f"input {name!r} has {rank} dimensions; {MOST_DIMENSIONS} is the most.")
    if proto.tensor_shape.unknown_rank or any(d.size < 0 for d in proto.tensor_shape.dim):
        raise invalid(f"input {name!r} has a shape with unknown or negative dimensions.")
    shape = [d.size for d in proto.tensor_shape.dim]
    try:
        dtype = tf.as_dtype(proto.dtype)
        if dtype in (tf.resource, tf.variant) or proto.dtype == 0 or dtype.as_numpy_dtype is None:
            raise TypeError
    except (TypeError, KeyError):
        raise invalid(f"input {name!r} has dtype {proto.dtype}, which no array has.") from None
    size = math.prod(shape)
    if dtype == tf.string:
        given = proto.string_val
        repeated = max(0, size - len(given)) * len(given[-1]) if given else 0
        size = size * OF_STRING + sum(map(len, given)) + repeated
    else:
        size *= dtype.size
    if size > most_bytes:
        raise too_large(
            f"input {name!r} takes {min(size, 1 << 63)} bytes or more, above the limit of "
            f"{most_bytes} (--max-request-mb), by its shape {shape}."
        )
    if not proto.tensor_content and not dtype.is_quantized:
        given = sum(len(x) for field, x in proto.ListFields() if field.name.endswith("_val"))
        given //= 2 if dtype.is_complex else 1
        if given > math.prod(shape):
            raise invalid(
                f"input {name!r} has {given} values, and its shape {shape} has {math.prod(shape)}."
            )
    try:
        array = _array(proto, shape)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise invalid(f"input {name!r} of shape {shape} and {dtype.name}: {error}") from error
    return np.asarray(array)


def _array(proto: tensor_pb2.TensorProto, shape: list[int]) -> Any:
    """What tf.make_ndarray makes, in slices if it has many values."""
    fields = [
        field.name
        for field, values in proto.ListFields()
        if field.name.endswith("_val") and len(values) > _SLICE
    ]
    if not fields or proto.tensor_content:
        return tf.make_ndarray(proto)
    values = getattr(proto, fields[0])
    numbers_of_value = 2 if "complex" in fields[0] else 1
    parts = []
    for i in range(0, len(values), _SLICE):
        part = tensor_pb2.TensorProto(dtype=proto.dtype)
        getattr(part, fields[0]).extend(values[i : i + _SLICE])
        count = len(getattr(part, fields[0])) // numbers_of_value
        part.tensor_shape.dim.add(size=count)
        parts.append(tf.make_ndarray(part))
    array = np.concatenate(parts)
    missing = math.prod(shape) - len(array)
    if missing > 0:  # they are as the last one
        array = np.pad(array, (0, missing), "edge")
    return array.reshape(shape)
