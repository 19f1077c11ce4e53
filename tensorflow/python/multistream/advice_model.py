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
"""Which model `tf.cuda.advise` measures: a SavedModel, and inputs for one of its signatures."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import constant_op, dtypes, tensor, tensor_shape
from tensorflow.python.module import module
from tensorflow.python.multistream import compat
from tensorflow.python.saved_model import loader_impl, save, tag_constants
from tensorflow.python.trackable import base
from tensorflow.python.util import nest

SIGNATURE = "serving_default"

# Calls that run at once have different inputs, so that results that are mixed up are seen.
_QUERIES = 4
_SEED = 7

Query = dict[str, np.ndarray]
Specs = dict[str, tensor.TensorSpec]


def signature_specs(directory: str, signature: str) -> Specs:
    """Reads what a signature of a SavedModel takes.

    Args:
      directory: the SavedModel.
      signature: its name.

    Returns:
      For each argument, by name, its type and shape.

    Raises:
      FileNotFoundError: there is no such directory, or no SavedModel in it.
      ValueError: it has no such signature, or the signature takes what is not a dense tensor.
    """
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"tf.cuda.advise: there is no directory {directory!r}")
    if not loader_impl.contains_saved_model(directory):
        raise FileNotFoundError(
            f"tf.cuda.advise: {directory!r} has no SavedModel: neither saved_model.pb nor "
            "saved_model.pbtxt. Give the directory that tf.saved_model.save was given."
        )
    graphs = loader_impl.parse_saved_model(directory).meta_graphs
    graphs = [x for x in graphs if tag_constants.SERVING in x.meta_info_def.tags] or graphs
    found = {k: v for k, v in graphs[0].signature_def.items() if not k.startswith("__")}
    if signature not in found:
        names = ", ".join(sorted(found)) or "none"
        raise ValueError(
            f"tf.cuda.advise: {directory!r} has no signature {signature!r}. It has: {names}"
        )
    specs = {}
    for name, info in sorted(found[signature].inputs.items()):
        if info.WhichOneof("encoding") != "name":
            raise ValueError(f"tf.cuda.advise: argument {name!r} is not a dense tensor")
        shape = tensor_shape.TensorShape(info.tensor_shape)
        specs[name] = tensor.TensorSpec(shape, dtypes.as_dtype(info.dtype), name)
    return specs


def random_queries(specs: Specs, batch: int, max_int: int) -> list[Query]:
    """Makes inputs, the same each time.

    Args:
      specs: what the signature takes.
      batch: the size of unknown dimensions.
      max_int: integers are from 0 to this.

    Returns:
      Some queries.

    Raises:
      ValueError: random numbers are no input for an argument. The message names it.
    """
    random = np.random.default_rng(_SEED)
    return [
        {name: _random(spec, batch, max_int, random) for name, spec in specs.items()}
        for _ in range(_QUERIES)
    ]


def _random(
    spec: tensor.TensorSpec, batch: int, max_int: int, random: np.random.Generator
) -> np.ndarray:
    says = "Give an example (--example FILE.npz, or the argument `example`)."
    if spec.shape.rank is None:
        raise ValueError(f"tf.cuda.advise: argument {spec.name!r} has any number of axes. {says}")
    shape = [batch if size is None else size for size in spec.shape.as_list()]
    dtype = spec.dtype
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return random.integers(0, min(max_int, dtype.max) + 1, shape).astype(dtype.as_numpy_dtype)
    if dtype.is_floating or dtype.is_complex:
        return random.random(shape).astype(dtype.as_numpy_dtype)
    raise ValueError(
        f"tf.cuda.advise: argument {spec.name!r} is of type {dtype.name}, for which there are no "
        f"random inputs. {says}"
    )


def example_query(specs: Specs, example: Any) -> Query:
    """Checks an example.

    Args:
      specs: what the signature takes.
      example: a dict of arrays by the names of the arguments, or a sequence in the order of
        `specs`.

    Returns:
      Arrays by name.

    Raises:
      TypeError: an argument is missing, unknown, or of another type. The message names it.
      ValueError: an argument has another shape. The message names it.
    """
    names = ", ".join(specs) or "none"
    if not isinstance(example, Mapping):
        values = list(example)
        if len(values) != len(specs):
            raise TypeError(
                f"tf.cuda.advise: example has {len(values)} arrays; the arguments are: {names}"
            )
        example = dict(zip(specs, values, strict=True))
    if unknown := sorted(example.keys() - specs.keys()):
        raise TypeError(
            f"tf.cuda.advise: there is no argument {unknown[0]!r}; the arguments are: {names}"
        )
    if missing := sorted(specs.keys() - example.keys()):
        raise TypeError(f"tf.cuda.advise: example has no argument {missing[0]!r}")
    return {name: _checked(spec, example[name]) for name, spec in specs.items()}


def _checked(spec: tensor.TensorSpec, value: Any) -> np.ndarray:
    expected = spec.dtype
    if not hasattr(value, "dtype"):  # numbers of Python take the type that is wanted
        value = np.asarray(value, object if expected == dtypes.string else expected.as_numpy_dtype)
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    array = np.asarray(array)
    if expected == dtypes.string:
        right = array.dtype.kind in "OSU"
    else:
        right = array.dtype == expected.as_numpy_dtype
    if not right:
        raise TypeError(
            f"tf.cuda.advise: argument {spec.name!r} of the example is of type {array.dtype}; the "
            f"signature takes {expected.name}"
        )
    if not spec.shape.is_compatible_with(array.shape):
        raise ValueError(
            f"tf.cuda.advise: argument {spec.name!r} of the example has shape {array.shape}; the "
            f"signature takes {spec.shape}"
        )
    return array


def save_function(function: Any, example: Any, directory: str) -> Any:
    """Saves a function as a SavedModel with the signature `SIGNATURE`.

    Args:
      function: as of `tf.cuda.advise`, but no directory.
      example: as of `tf.cuda.advise`.
      directory: gets the SavedModel.

    Returns:
      The example, as a dict by the names of the signature's arguments; None if it was None.

    Raises:
      TypeError: `function` is none of those, or takes other arguments.
      ValueError: it cannot be traced without an example, or not be saved. The message says why.
    """
    root = module.Module()
    name = getattr(function, "__name__", None) or type(function).__name__
    if isinstance(function, base.Trackable) and not _is_function(function):
        root.model = function
        traced = getattr(function, "__call__", None)  # noqa: B004 - a tf.function or not
        if isinstance(traced, polymorphic_function.Function) and traced.input_signature:
            function = traced
    function = _concrete_of(function, example)
    if isinstance(function, compat.ConcreteFunction):
        specs, call = _of_concrete(function, name)
    elif callable(function):
        specs, call = _of_example(function, example, name)
    else:
        raise TypeError(
            f"tf.cuda.advise: {function!r} cannot be called. Give a SavedModel's directory or "
            "signature, a concrete function, a tf.function, a tf.Module or a Keras model."
        )
    try:
        concrete = polymorphic_function.function(call).get_concrete_function(**specs)
        root.read = list(concrete.graph.variables)
        save.save(root, directory, signatures=concrete)
    except Exception as error:
        raise ValueError(
            f"tf.cuda.advise: {name} cannot be saved as a SavedModel: {error}\n"
            "Save it yourself, with all that it uses (tf.saved_model.save), and give the directory."
        ) from error
    if example is None or isinstance(example, Mapping):
        return example
    return example_query(specs, example)


def _is_function(value: Any) -> bool:
    return isinstance(value, polymorphic_function.Function | compat.ConcreteFunction)


def _concrete_of(function: Any, example: Any) -> Any:
    """The concrete function of a tf.function that says what it takes, else what was given."""
    if not isinstance(function, polymorphic_function.Function):
        return function
    if function.input_signature is not None:
        return function.get_concrete_function()
    if example is None:
        raise ValueError(
            f"tf.cuda.advise: {function.__name__} has no input_signature: give an example."
        )
    return function


def _of_concrete(concrete: Any, name: str) -> tuple[Specs, Callable[..., Any]]:
    """What it takes, by name, and a function that takes it so."""
    args, kwargs = concrete.structured_input_signature
    names: list[tuple[int | str, str | None, Any]] = []
    specs = {}
    for key, spec in [*enumerate(args), *kwargs.items()]:
        if not isinstance(spec, tensor.TensorSpec):
            if nest.flatten(spec) and any(hasattr(leaf, "dtype") for leaf in nest.flatten(spec)):
                raise TypeError(
                    f"tf.cuda.advise: argument {key!r} of {name} is {spec}: each must be one dense "
                    "tensor. Give a tf.function that takes them so."
                )
            names.append((key, None, spec))
            continue
        argument = key if isinstance(key, str) else spec.name
        if not argument or argument in specs:
            argument = f"input_{key}"
        names.append((key, argument, None))
        specs[argument] = tensor.TensorSpec(spec.shape, spec.dtype, argument)

    def call(**named: Any) -> Any:
        values = [(key, fixed if used is None else named[used]) for key, used, fixed in names]
        return concrete(
            *[value for key, value in values if isinstance(key, int)],
            **{key: value for key, value in values if isinstance(key, str)},
        )

    return specs, call


def _of_example(
    function: Callable[..., Any], example: Any, name: str
) -> tuple[Specs, Callable[..., Any]]:
    """The same for code that is traced for the example."""
    if example is None:
        raise ValueError(f"tf.cuda.advise: it is not known what {name} takes: give an example.")
    by_name = isinstance(example, Mapping)
    given = example if by_name else {f"input_{i}": value for i, value in enumerate(example)}
    specs = {}
    for key, value in given.items():
        if not hasattr(value, "dtype"):
            value = constant_op.constant(value)  # noqa: PLW2901
        specs[key] = tensor.TensorSpec(value.shape, value.dtype, key)
    is_keras = hasattr(function, "predict") and hasattr(function, "layers")

    def call(**named: Any) -> Any:
        values = [named[key] for key in specs]
        if is_keras:  # which takes all inputs as one argument
            structure: Any = named if by_name else values
            return function(values[0] if len(values) == 1 else structure)
        return function(**named) if by_name else function(*values)

    return specs, call


def name_of(source: Any) -> str:
    """What reports call a model."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return getattr(source, "__name__", None) or type(source).__name__


def text_of(queries: Sequence[Query]) -> str:
    """What reports say of inputs: type and shape of each argument."""
    return ", ".join(f"{k}: {v.dtype}{list(v.shape)}" for k, v in queries[0].items()) or "none"
