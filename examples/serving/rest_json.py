# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""TensorFlow Serving's JSON formats: rows (instances) and columns (inputs)."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import sliced_json
import tensorflow as tf
from loaded_model import Arrays, Signature
from serving_error import ServingError, invalid

# For a kind of dtype that an input has, the kinds of numbers that JSON may give for it.
_KINDS = {"f": "iuf", "c": "iuf", "i": "iu", "u": "iu", "b": "b", "V": "iuf"}
_WORDS = {"i": "integers", "u": "integers", "f": "fractions", "b": "booleans", "U": "strings"}
_FLAT_DIMENSIONS = 32  # the most of an array of NumPy 1
# Values that are converted at once: other threads wait for Python's lock meanwhile.
_SLICE = 1 << 14


def object_of(body: bytes, most_bytes: int) -> dict[str, Any]:
    """The object that JSON is, whose values may take `most_bytes`; ServingError if it is none."""
    try:
        fields = sliced_json.loads(body, most_bytes)
    except (ValueError, RecursionError) as error:
        raise invalid(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(fields, dict):
        raise invalid("the body is not a JSON object.")
    return fields


def fields_of(body: bytes, most_bytes: int, *known: str) -> dict[str, Any]:
    """The fields of a body, whose values may take `most_bytes`, some of the known ones.

    `signature_name`, which every request may have, is a string. ServingError for any other body.
    """
    fields = object_of(body, most_bytes)
    unknown = fields.keys() - {*known, "signature_name"}
    if unknown:
        raise invalid(f"the body has an unknown field {min(unknown)!r}.")
    if not isinstance(fields.get("signature_name", ""), str):
        raise invalid("signature_name is not a string.")
    return fields


class PredictRequest:
    """The body of a predict request, whose values may take `most_bytes` in memory."""

    def __init__(self, body: bytes, most_bytes: int) -> None:
        fields = fields_of(body, most_bytes, "instances", "inputs")
        if ("instances" in fields) == ("inputs" in fields):
            raise invalid("the body has to have one of 'instances' (rows) and 'inputs' (columns).")
        self.signature: str = fields.get("signature_name", "")
        self.by_row = "instances" in fields
        self._given = fields["instances" if self.by_row else "inputs"]

    def arrays(self, signature: Signature) -> Arrays:
        """An array for each input; ServingError if a value is not one for its input."""
        columns = self._columns(signature) if self.by_row else self._given
        if not self.by_row and not _names_inputs(columns):
            columns = {_only_input(signature): columns}
        return {
            name: array_of(value, name, signature.inputs[name].dtype)
            if name in signature.inputs
            else np.empty(0)  # the signature names what it does not know
            for name, value in columns.items()
        }

    def _columns(self, signature: Signature) -> dict[str, Any]:
        rows = self._given
        if not isinstance(rows, list) or not rows:
            raise invalid("'instances' is not a list of at least one row.")
        if not _names_inputs(rows[0]):
            return {_only_input(signature): rows}
        names = rows[0].keys()
        for i, row in enumerate(rows):
            if not isinstance(row, dict) or row.keys() != names:
                raise invalid(f"instances[{i}] does not have the inputs of instances[0].")
        return {name: [row[name] for row in rows] for name in names}


def _names_inputs(value: Any) -> bool:
    """Whether it has values by the names of inputs, rather than the value of the only one."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only_input(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        raise invalid(
            f"signature {signature.name} takes {len(signature.inputs)} inputs; give each by its "
            f"name: {', '.join(signature.inputs) or 'none'}."
        )
    return str(next(iter(signature.inputs)))


def array_of(value: Any, name: str, dtype: Any) -> Any:
    """The array of an input's value in JSON; ServingError for values that are not of the dtype."""
    numbers = _Numbers(name, dtype)
    try:
        if dtype == tf.string:
            return _in_slices(value, name, lambda part: _strings(part, name))
        array = _in_slices(value, name, numbers.array)
    except RecursionError:
        raise _ragged(value, name) from None
    numbers.check()
    return array


def _in_slices(value: Any, name: str, convert: Callable[[Any], Any]) -> Any:
    """The array of nested lists, of which `convert` makes parts of at most about _SLICE values."""
    if _count(value) <= _SLICE:
        return convert(value)
    if len(value) == 1:
        return _in_slices(value[0], name, convert)[np.newaxis]
    half = len(value) // 2
    parts = [_in_slices(part, name, convert) for part in (value[:half], value[half:])]
    try:
        return np.concatenate(parts)
    except ValueError:
        raise _ragged(value, name) from None


def _count(value: Any) -> int:
    """About how many values are in nested lists."""
    if not isinstance(value, list):
        return 1
    if value and isinstance(value[0], list):
        return 1 + sum(map(_count, value))
    return 1 + len(value)


def _ragged(value: Any, name: str) -> ServingError:
    """The error for nested lists of which NumPy makes no array."""
    dimensions = 0
    while isinstance(value, list):
        value = value[0] if value else None
        dimensions += 1
    if dimensions > _FLAT_DIMENSIONS:
        return invalid(f"input {name!r} has {dimensions} dimensions, more than arrays may have.")
    return invalid(f"input {name!r} has rows of different lengths.")


def _strings(part: Any, name: str) -> Any:
    try:
        strings = np.array(_bytes_in(part, name), object)
    except (ValueError, RecursionError):
        strings = None
    # NumPy takes a list beside a string for one more object.
    if strings is None or any(isinstance(x, list) for x in strings.ravel()):
        raise _ragged(part, name)
    return strings


class _Numbers:
    """Makes arrays of an input's dtype from parts of its value."""

    def __init__(self, name: str, dtype: Any) -> None:
        self._name = name
        self._dtype = dtype
        self._wanted = np.dtype(dtype.as_numpy_dtype)
        self._kinds: set[str] = set()

    def array(self, part: Any) -> Any:
        """The array of a part; ServingError for values that the dtype does not have."""
        wanted = self._wanted
        try:
            array = np.asarray(part)
        except (ValueError, OverflowError, RecursionError):
            raise _ragged(part, self._name) from None
        if array.dtype.kind == "O" or (array.dtype.kind == "f" and wanted.kind in "iu"):
            # NumPy makes objects of integers of more than 64 bits, and may make fractions of those
            # that have 64.
            array = self._of_objects(np.array(part, object))
        kind = array.dtype.kind
        if array.size:
            self._kinds.add(kind)
            # A boolean beside numbers is one of them; `check` finds those that are alone.
            if kind not in _KINDS.get(wanted.kind, "") + "b":
                raise self._error(f"has {_WORDS.get(kind, 'values that are no numbers')}")
            if wanted.kind in "iu" and kind in "iu":
                limits = np.iinfo(wanted)
                for number in (array.min(), array.max()):
                    self._check_limits(int(number), limits)
        if wanted.kind not in "fcV":
            return array.astype(wanted)
        array = array.astype(np.float64)  # as JSON's numbers are, however they are written
        with np.errstate(over="ignore"):
            found = array.astype(wanted)
        infinite = np.isinf(found.astype(np.complex128)) & np.isfinite(array)
        if infinite.any():
            raise self._error(f"has {float(array[infinite].flat[0])}, which is out of range")
        return found

    def check(self) -> None:
        """ServingError if the input takes numbers, and all values of all parts are booleans."""
        if self._kinds == {"b"} and self._wanted.kind != "b":
            raise self._error("has booleans")

    def _of_objects(self, values: Any) -> Any:
        """The array of values that are no numbers of 64 bits, if they are numbers all the same."""
        flat = values.ravel()
        for value in flat:
            if type(value) not in (int, float):
                raise self._error("has values that are no numbers")
        if self._wanted.kind in "iu":
            limits = np.iinfo(self._wanted)
            for value in flat:
                if type(value) is float:
                    raise self._error("has fractions")
                self._check_limits(value, limits)
            return values.astype(self._wanted)
        try:
            return values.astype(np.float64)
        except OverflowError:
            largest = max(flat, key=abs)
            raise self._error(f"has {_digits(largest)}") from None

    def _check_limits(self, number: int, limits: Any) -> None:
        if not limits.min <= number <= limits.max:
            raise invalid(
                f"input {self._name!r} has {_digits(number)}, and {self._dtype.name} is from "
                f"{limits.min} to {limits.max}."
            )

    def _error(self, what: str) -> ServingError:
        return invalid(f"input {self._name!r} {what}, and the signature takes {self._dtype.name}.")


def _digits(number: int) -> str:
    text = str(number)
    return text if len(text) <= 40 else f"{text[:40]}... ({len(text)} characters)"


def _bytes_in(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_bytes_in(x, name) for x in value]
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (ValueError, binascii.Error):
            raise invalid(f"input {name!r} has a b64 that is not base64.") from None
    what = "an object" if isinstance(value, dict) else json.dumps(value)
    raise invalid(f"input {name!r} has {what}, and the signature takes string.")


def answer(request: PredictRequest, results: Arrays) -> bytes:
    """The body of the answer: JSON, with NaN and Infinity as TensorFlow Serving writes them."""
    results = dict(sorted(results.items()))
    if not request.by_row:
        outputs = text_of(results) if len(results) == 1 else _object_of(results)
        return f'{{"outputs": {outputs}}}'.encode()
    counts = {array.shape[0] if array.ndim else None for array in results.values()}
    if len(counts) > 1 or None in counts:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in results.items())
        raise invalid(f"the outputs have no rows in common ({shapes}): use 'inputs'.")
    return f'{{"predictions": {text_of(results)}}}'.encode()


def text_of(columns: Arrays) -> str:
    """JSON of arrays by rows: of one array its own rows, of several an object for each row."""
    arrays = list(columns.values())
    if sum(array.size for array in arrays) <= _SLICE or arrays[0].ndim == 0:
        return json.dumps(_rows_of(columns))
    if len(arrays[0]) == 1:
        row = {name: np.asarray(x[0], x.dtype) for name, x in columns.items()}
        return f"[{text_of(row) if len(row) == 1 else _object_of(row)}]"
    half = len(arrays[0]) // 2
    first, second = (
        text_of({name: x[part] for name, x in columns.items()})
        for part in (slice(half), slice(half, None))
    )
    return f"{first[:-1]}, {second[1:]}"


def _object_of(columns: Arrays) -> str:
    texts = (f"{json.dumps(name)}: {text_of({name: x})}" for name, x in columns.items())
    return f"{{{', '.join(texts)}}}"


def _rows_of(columns: Arrays) -> Any:
    plain = {name: _plain(array, name) for name, array in columns.items()}
    if len(plain) == 1:
        return next(iter(plain.values()))
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _plain(array: Any, name: str) -> Any:
    if array.dtype.kind not in "OSV":
        return array.tolist()
    if array.dtype.kind == "V":  # bfloat16 and other types that NumPy itself does not have
        return array.astype(np.float32).tolist()
    as_base64 = name.endswith("_bytes")
    return _mapped(array.tolist(), lambda x: _text(x, as_base64))


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    return [_mapped(x, function) for x in value] if isinstance(value, list) else function(value)


def _text(value: Any, as_base64: bool) -> Any:
    if isinstance(value, str):
        return value
    if not as_base64:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(value).decode()}
