# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model that `tf.cuda.advise` measures: a SavedModel, and inputs for one of its signatures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import constant_op, dtypes, ops, tensor, tensor_shape
from tensorflow.python.module import module
from tensorflow.python.multistream import compat
from tensorflow.python.saved_model import loader_impl, save
from tensorflow.python.trackable import base

SIGNATURE = "serving_default"

# Threads pass different inputs, so that a mix-up of results between threads shows.
_QUERIES = 4
_LARGEST_INTEGER = 9  # a valid id of nearly every table

Query = dict[str, np.ndarray]


def save_function(function: Any, example: Any, directory: str) -> Query:
    """Saves a function as a SavedModel, and returns the example by the arguments' names."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if not callable(function) or example is None:
        raise TypeError(
            f"tf.cuda.advise: give a directory, or a function and an example; got {name}"
        )
    is_concrete = isinstance(function, compat.ConcreteFunction)
    if is_concrete and not isinstance(example, Mapping):
        positional, named = function.structured_input_signature
        if not positional:  # a SavedModel's signature takes its arguments by name only
            example = dict(zip(sorted(named), example, strict=True))
    by_name = isinstance(example, Mapping)
    given = example if by_name else {f"input_{i}": x for i, x in enumerate(example)}
    with ops.device("/device:CPU:0"):
        tensors = {key: constant_op.constant(x) for key, x in given.items()}
    specs = {key: tensor.TensorSpec.from_tensor(x, key) for key, x in tensors.items()}

    def call(**named: Any) -> Any:
        values = [named[key] for key in specs]
        if hasattr(function, "predict_on_batch"):  # a Keras model takes its inputs as one argument
            structure: Any = named if by_name else values
            return function(values[0] if len(values) == 1 else structure)
        return function(**named) if by_name else function(*values)

    root = module.Module()
    if not is_concrete and not isinstance(function, polymorphic_function.Function):
        root.model = function if isinstance(function, base.Trackable) else None
    try:
        concrete = polymorphic_function.function(call).get_concrete_function(**specs)
        root.variables_read = list(concrete.graph.variables)
        save.save(root, directory, signatures=concrete)
    except Exception as error:
        raise ValueError(
            f"tf.cuda.advise: {name} cannot be saved as a SavedModel: {error}\n"
            "Save the model with all that it uses (tf.saved_model.save), and give the directory."
        ) from error
    return {key: x.numpy() for key, x in tensors.items()}


def queries_of(directory: str, signature: str, example: Any, batch: int) -> list[Query]:
    """Returns inputs for a SavedModel's signature: the example, or else random queries."""
    signatures = loader_impl.parse_saved_model(directory).meta_graphs[0].signature_def
    if signature not in signatures:
        names = ", ".join(sorted(name for name in signatures if not name.startswith("__")))
        raise ValueError(
            f"tf.cuda.advise: {directory!r} has no signature {signature!r}, but {names}"
        )
    inputs = dict(sorted(signatures[signature].inputs.items()))
    types = {name: dtypes.as_dtype(info.dtype) for name, info in inputs.items()}
    if example is not None:
        if not isinstance(example, Mapping):
            example = dict(zip(inputs, example, strict=False))
        if example.keys() != inputs.keys():
            raise TypeError(
                f"tf.cuda.advise: signature {signature!r} takes {', '.join(inputs) or 'nothing'}; "
                f"the example has {', '.join(example) or 'nothing'}"
            )
        return [{name: np.asarray(example[name], x.as_numpy_dtype) for name, x in types.items()}]
    random = np.random.default_rng(7)
    queries: list[Query] = [{} for _ in range(_QUERIES)]
    for name, kind in types.items():
        shape = tensor_shape.TensorShape(inputs[name].tensor_shape)
        whole = kind.is_bool or kind.is_integer
        if shape.rank is None or not (whole or kind.is_floating or kind.is_complex):
            raise ValueError(
                f"tf.cuda.advise: there are no random inputs for argument {name!r}, "
                f"{kind.name}{shape}. Give an example (--example FILE.npz, or `example`)."
            )
        sizes = [batch if size is None else size for size in shape.as_list()]
        largest = 1 if kind.is_bool else _LARGEST_INTEGER
        for query in queries:
            array = random.integers(0, largest + 1, sizes) if whole else random.random(sizes)
            query[name] = array.astype(kind.as_numpy_dtype)
    return queries
