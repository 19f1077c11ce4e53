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

"""TensorFlow Serving's JSON formats: rows (instances) and columns (inputs)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from loaded_model import Arrays, Signature
from serving_error import invalid

# For a kind of dtype that an input has, the kinds of numbers that JSON may give for it.
_KINDS = {"f": "iuf", "c": "iuf", "i": "iu", "u": "iu", "b": "b", "V": "iuf"}


class PredictRequest:
    """The body of a predict request.

    Args:
      body: its bytes.

    Raises:
      ServingError: it is not JSON, or not a predict request.
    """

    def __init__(self, body: bytes) -> None:
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise invalid(f"the body is not JSON: {str(error)[:200]}") from None
        if not isinstance(fields, dict):
            raise invalid("the body is not a JSON object.")
        unknown = fields.keys() - {"instances", "inputs", "signature_name"}
        if unknown:
            raise invalid(f"the body has an unknown field {min(unknown)!r}.")
        if ("instances" in fields) == ("inputs" in fields):
            raise invalid("the body has to have one of 'instances' (rows) and 'inputs' (columns).")
        self.signature: str = fields.get("signature_name", "")
        if not isinstance(self.signature, str):
            raise invalid("signature_name is not a string.")
        self.by_row = "instances" in fields
        self._given = fields["instances" if self.by_row else "inputs"]

    def arrays(self, signature: Signature) -> Arrays:
        """The request's arrays.

        Args:
          signature: that is to be called.

        Returns:
          An array for each input.

        Raises:
          ServingError: a value is not one for its input.
        """
        columns = self._columns(signature) if self.by_row else self._given
        if not self.by_row and not _names_inputs(columns):
            columns = {_only_input(signature): columns}
        return {
            name: _array(value, name, signature.inputs[name].dtype)
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


def _array(value: Any, name: str, dtype: Any) -> Any:
    if dtype == tf.string:
        try:
            strings = np.array(_bytes_in(value, name), object)
        except (ValueError, RecursionError):
            strings = None
        # NumPy takes a list beside a string for one more object.
        if strings is None or any(isinstance(x, list) for x in strings.flat):
            raise invalid(f"input {name!r} has rows of different lengths.")
        return strings
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError, RecursionError):
        raise invalid(f"input {name!r} has rows of different lengths.") from None
    wanted = np.dtype(dtype.as_numpy_dtype)
    if array.size and array.dtype.kind not in _KINDS.get(wanted.kind, ""):
        raise invalid(
            f"input {name!r} has {_word_of(array)}, and the signature takes {dtype.name}."
        )
    if wanted.kind in "iu" and array.size:
        limits = np.iinfo(wanted)
        if array.min() < limits.min or array.max() > limits.max:
            raise invalid(f"input {name!r} has a number that {dtype.name} has not.")
    with np.errstate(over="ignore"):
        return array.astype(wanted)


def _word_of(array: Any) -> str:
    words = {"i": "integers", "u": "integers", "f": "fractions", "b": "booleans", "U": "strings"}
    return words.get(array.dtype.kind, "values that are no numbers")


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
    raise invalid(f"input {name!r} has {json.dumps(value)[:80]}, and the signature takes string.")


def answer(request: PredictRequest, results: Arrays) -> bytes:
    """The body of the answer to a predict request.

    Args:
      request: the request, whose format the answer has.
      results: an array for each output.

    Returns:
      JSON, with NaN and Infinity as TensorFlow Serving writes them.

    Raises:
      ServingError: results have no rows, or different numbers of them, and rows were asked for.
    """
    columns = {name: _plain(array, name) for name, array in results.items()}
    alone = len(columns) == 1
    if not request.by_row:
        outputs = next(iter(columns.values())) if alone else columns
        return json.dumps({"outputs": outputs}).encode()
    counts = {array.shape[0] if array.ndim else None for array in results.values()}
    if len(counts) > 1 or None in counts:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in results.items())
        raise invalid(f"the outputs have no rows in common ({shapes}): use 'inputs'.")
    if alone:
        return json.dumps({"predictions": next(iter(columns.values()))}).encode()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps({"predictions": rows}).encode()


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
