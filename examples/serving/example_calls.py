# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Classify and Regress: calls of signatures that take serialized tf.Examples as `inputs`.

A signature's method says what it is for: tf.compat.v1.saved_model's signature_def_utils give it to
signatures as they are built, and its MethodNameUpdater to those of models that are saved.
"""

import base64
import json
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from loaded_model import Arrays, Signature
from predict_calls import Call
from rest_json import fields_of
from serving_error import ServingError, invalid
from tensorflow_serving.apis import classification_pb2, inference_pb2, regression_pb2

_INPUT = "inputs"
CLASSIFY = tf.compat.v1.saved_model.CLASSIFY_METHOD_NAME
REGRESS = tf.compat.v1.saved_model.REGRESS_METHOD_NAME


def serialized(given: Any) -> list[bytes]:
    """The tf.Examples of an Input message, each with what its context has and it has not."""
    if given.WhichOneof("kind") == "example_list_with_context":
        with_context = given.example_list_with_context
        found = []
        for example in with_context.examples:
            merged = tf.train.Example()
            merged.CopyFrom(with_context.context)
            merged.MergeFrom(example)
            found.append(merged.SerializeToString())
    else:
        found = [example.SerializeToString() for example in given.example_list.examples]
    if not found:
        raise invalid("the input has no examples.")
    return found


def classify(call: Call, signature: str, examples: list[bytes]) -> Any:
    """The ClassificationResult of examples; ServingError if the signature gives none."""
    called, results = _call(call, signature, CLASSIFY, examples)
    columns = [results.get(name) for name in ("classes", "scores")]
    if columns[0] is None and columns[1] is None:
        raise _unfit(called, results, examples, "'classes' and 'scores', or one of them")
    shapes = {column.shape for column in columns if column is not None}
    shape = next(iter(shapes))
    if len(shapes) > 1 or len(shape) != 2 or shape[0] != len(examples):
        raise _unfit(called, results, examples, "[examples, classes] for each example")
    found = classification_pb2.ClassificationResult()
    for i in range(shape[0]):
        classes = found.classifications.add().classes
        for j in range(shape[1]):
            one = classes.add()
            if columns[0] is not None:
                one.label = columns[0][i, j]
            if columns[1] is not None:
                one.score = columns[1][i, j]
    return found


def regress(call: Call, signature: str, examples: list[bytes]) -> Any:
    """The RegressionResult of examples; ServingError if the signature gives none."""
    called, results = _call(call, signature, REGRESS, examples)
    values = results.get("outputs")
    if values is None or values.shape not in ((len(examples),), (len(examples), 1)):
        raise _unfit(called, results, examples, "'outputs', a number for each example")
    found = regression_pb2.RegressionResult()
    for value in values.reshape(-1):
        found.regressions.add(value=value)
    return found


RESULTS = {CLASSIFY: classify, REGRESS: regress}


def infer(call: Call, tasks: Any, examples: list[bytes]) -> Any:
    """The MultiInferenceResponse of tasks of one model, on the same examples."""
    response = inference_pb2.MultiInferenceResponse()
    for task in tasks:
        if task.method_name not in RESULTS:
            raise invalid(
                f"a task has the method {task.method_name[:100]!r}, which is not one of "
                f"{', '.join(RESULTS)}."
            )
        name = task.model_spec.signature_name
        found = RESULTS[task.method_name](call, name, examples)
        result = response.results.add()
        name_model(result.model_spec, task.model_spec.name, call, name)
        if task.method_name == CLASSIFY:
            result.classification_result.CopyFrom(found)
        else:
            result.regression_result.CopyFrom(found)
    return response


def name_model(spec: Any, model: str, call: Call, signature: str) -> None:
    """Says in an answer what has answered."""
    spec.name = model
    spec.version.value = call.number
    spec.signature_name = call.loaded.signature(signature).name


class JsonExamples(NamedTuple):
    """A classify or regress request by REST."""

    signature: str
    examples: list[bytes]

    @classmethod
    def of(cls, body: bytes, most_bytes: int) -> "JsonExamples":
        """Reads a body, whose values may take `most_bytes`; ServingError if it is wrong."""
        fields = fields_of(body, most_bytes, "context", "examples")
        given = fields.get("examples")
        if not isinstance(given, list) or not given:
            raise invalid("the body has no 'examples', a list of at least one object.")
        context = fields.get("context", {})
        if not isinstance(context, dict):
            raise invalid("'context' is not an object of features.")
        examples = []
        for i, example in enumerate(given):
            if not isinstance(example, dict):
                raise invalid(f"examples[{i}] is not an object of features.")
            examples.append(_example({**context, **example}, i).SerializeToString())
        return cls(fields.get("signature_name", ""), examples)


def json_of(result: Any) -> bytes:
    """The body of the answer: a label and a score for each class, or a number for each example."""
    if isinstance(result, regression_pb2.RegressionResult):
        rows: Any = [x.value for x in result.regressions]
    else:
        rows = [[[c.label, c.score] for c in x.classes] for x in result.classifications]
    return json.dumps({"results": rows}).encode()


def _call(call: Call, name: str, method: str, examples: list[bytes]) -> tuple[Signature, Arrays]:
    signature = call.loaded.signature(name)
    found = call.loaded.signature_defs[signature.name].method_name
    if found != method:
        raise invalid(f"signature {signature.name} has the method {found}; it has to be {method}.")
    return signature, call.step(signature, {_INPUT: np.array(examples, object)})


def _unfit(
    signature: Signature, results: Arrays, examples: list[bytes], wanted: str
) -> ServingError:
    shapes = ", ".join(f"{name} {array.shape}" for name, array in sorted(results.items()))
    return invalid(
        f"signature {signature.name} gives {shapes} for {len(examples)} examples; it has to give "
        f"{wanted}."
    )


def _example(features: dict[str, Any], number: int) -> Any:
    example = tf.train.Example()
    for name, value in features.items():
        feature = example.features.feature[name]
        values = value if isinstance(value, list) else [value]
        try:
            if all(type(x) is int for x in values):
                feature.int64_list.value.extend(values)
            elif all(type(x) in (int, float) for x in values):
                feature.float_list.value.extend(values)
            else:
                feature.bytes_list.value.extend(map(_bytes_of, values))
        except (TypeError, ValueError, OverflowError):
            raise invalid(
                f"examples[{number}]: feature {name[:100]!r} has to be numbers within range, or "
                'strings or {"b64": ...}, or a list of one of these.'
            ) from None
    return example


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, dict) and value.keys() == {"b64"}:
        return base64.b64decode(value["b64"], validate=True)
    raise TypeError
