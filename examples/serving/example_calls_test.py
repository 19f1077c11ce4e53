# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.Examples are classified, and get numbers, as the signatures called directly give them."""

import base64
import pathlib
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import serving_kit
import tensorflow as tf
from serving_kit import FRONT, Server, failure
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    regression_pb2,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT
ROWS = [([1.5, -2.0], b"one"), ([0.25, 4.0], b"other"), ([0.0, 0.0], b"")]


class Model(tf.Module):
    """Signatures of tf.Examples with two floats `x` and a string `name`."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable([[1.0, 2.0, -1.0], [0.5, 0.25, 3.0]])

    def _parsed(self, inputs: Any) -> Any:
        features = {
            "x": tf.io.FixedLenFeature([2], tf.float32),
            "name": tf.io.FixedLenFeature([], tf.string, b"nobody"),
        }
        return tf.io.parse_example(inputs, features)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def classify(self, inputs: Any) -> Any:
        """Three classes, whose labels are of the example."""
        parsed = self._parsed(inputs)
        labels = [tf.strings.join([parsed["name"], f"-{i}"]) for i in range(3)]
        return {"classes": tf.stack(labels, 1), "scores": parsed["x"] @ self.weights}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def only_scores(self, inputs: Any) -> Any:
        """The same without labels."""
        return {"scores": self._parsed(inputs)["x"] @ self.weights}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def regress(self, inputs: Any) -> Any:
        """A number for each example."""
        return {"outputs": tf.reduce_sum(self._parsed(inputs)["x"] @ self.weights, 1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def one_for_all(self, inputs: Any) -> Any:
        """No answer for each example."""
        return {"outputs": tf.reduce_sum(self._parsed(inputs)["x"]), "scores": tf.zeros([2])}


METHODS = {
    "classify": "classify",
    "only_scores": "classify",
    "regress": "regress",
    "one_for_all": "regress",
    "scalar_scores": "classify",
}


def save_model(folder: str) -> None:
    """Saves it, and says which signatures classify and which give numbers."""
    model = Model()
    signatures = {name: getattr(model, name) for name in METHODS if hasattr(model, name)}
    signatures["scalar_scores"] = model.one_for_all
    signatures["serving_default"] = model.classify
    tf.saved_model.save(model, folder, signatures=signatures)
    utils = tf.compat.v1.saved_model.signature_def_utils
    updater = utils.MethodNameUpdater(folder)
    for name, method in METHODS.items():
        updater.replace_method_name(name, f"tensorflow/serving/{method}", tags=["serve"])
    updater.save()


@pytest.fixture(scope="session", params=["", f"--front={FRONT}"], ids=["", "front"])
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the model."""
    folder: pathlib.Path = tmp_path_factory.mktemp("examples")
    code = f"import example_calls_test\nexample_calls_test.save_model({str(folder / 'm' / '1')!r})"
    done = serving_kit.run_here(code, 60, TF_GPU_STREAM_GROUP_COUNT="1")
    assert done.returncode == 0, done.stderr
    options = [f"--model=m={folder / 'm'}", *[request.param] * bool(request.param)]
    with serving_kit.serving(*options, log=folder / "log") as started:
        yield started


def example(x: list[float] | None = None, name: bytes | None = None) -> Any:
    """A tf.Example with these features."""
    made = tf.train.Example()
    if x is not None:
        made.features.feature["x"].float_list.value.extend(x)
    if name is not None:
        made.features.feature["name"].bytes_list.value.append(name)
    return made


def given(context: Any = None) -> Any:
    """An Input with the rows, whose names come from the context if there is one."""
    found = input_pb2.Input()
    if context is None:
        found.example_list.examples.extend(example(x, name) for x, name in ROWS)
    else:
        found.example_list_with_context.context.CopyFrom(context)
        found.example_list_with_context.examples.extend(example(x) for x, _ in ROWS)
    return found


def asked(kind: Any, signature: str, examples: Any = None) -> Any:
    """A request of Classify or Regress."""
    request = kind()
    request.model_spec.name = "m"
    request.model_spec.signature_name = signature
    request.input.CopyFrom(given() if examples is None else examples)
    return request


def scores() -> Any:
    """What the model gives for the rows."""
    x = np.float32([x for x, _ in ROWS])
    return x @ np.float32([[1.0, 2.0, -1.0], [0.5, 0.25, 3.0]])


CLASSIFY, REGRESS = classification_pb2.ClassificationRequest, regression_pb2.RegressionRequest


def test_classify(server: Server) -> None:
    response = server.predictions.Classify(asked(CLASSIFY, "classify"), timeout=20)
    rows = response.result.classifications
    found = [[(c.label, c.score) for c in row.classes] for row in rows]
    labels = [[f"{name.decode()}-{i}" for i in range(3)] for _, name in ROWS]
    assert found == [
        list(zip(*row, strict=True)) for row in zip(labels, scores().tolist(), strict=True)
    ]
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("m", 1, "classify")
    request = asked(CLASSIFY, "only_scores")
    rows = server.predictions.Classify(request, timeout=20).result.classifications
    assert [[(c.label, c.score) for c in row.classes] for row in rows] == [
        [("", score) for score in row] for row in scores().tolist()
    ]


def test_regress_and_what_examples_have_in_common(server: Server) -> None:
    response = server.predictions.Regress(asked(REGRESS, "regress"), timeout=20)
    assert [x.value for x in response.result.regressions] == scores().sum(1).tolist()
    assert response.model_spec.signature_name == "regress"
    context = example([9.0, 9.0], b"common")  # an example's own features come first
    request = asked(CLASSIFY, "classify", given(context))
    rows = server.predictions.Classify(request, timeout=20).result.classifications
    assert {row.classes[0].label for row in rows} == {"common-0"}
    assert [row.classes[0].score for row in rows] == scores()[:, 0].tolist()


def tasks(*of: tuple[str, str, str]) -> Any:
    """A request of MultiInference."""
    request = inference_pb2.MultiInferenceRequest(input=given())
    for model, signature, method in of:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = model, signature
    return request


def test_multi_inference(server: Server) -> None:
    before = server.calls("MultiInference", "OK")
    request = tasks(("m", "regress", "regress"), ("m", "only_scores", "classify"))
    first, second = server.predictions.MultiInference(request, timeout=20).results
    assert [x.value for x in first.regression_result.regressions] == scores().sum(1).tolist()
    assert first.model_spec.signature_name == "regress"
    rows = second.classification_result.classifications
    assert [[c.score for c in row.classes] for row in rows] == scores().tolist()
    assert server.calls("MultiInference", "OK") == before + 1


def test_each_call_counts_once_for_the_version(server: Server) -> None:
    """Also if its answer does not fit, or if it calls several signatures."""
    before = server.by_version("calls_total", "m")[1]
    server.predictions.Classify(asked(CLASSIFY, "classify"), timeout=20)
    server.predictions.Regress(asked(REGRESS, "regress"), timeout=20)
    request = tasks(("m", "regress", "regress"), ("m", "only_scores", "classify"))
    server.predictions.MultiInference(request, timeout=20)
    for method in ("classify", "regress"):
        body = {"signature_name": method, "examples": [{"x": [1.0, 2.0]}]}
        assert server.rest(f"/v1/models/m:{method}", body)[0] == 200
    unfit, refused = asked(REGRESS, "one_for_all"), asked(REGRESS, "classify")
    for wrong in (unfit, refused):
        failure(lambda wrong=wrong: server.predictions.Regress(wrong, timeout=20))
    assert server.by_version("calls_total", "m") == {1: before + 6}


def test_by_rest(server: Server) -> None:
    examples: list[Any] = [{"x": x, "name": name.decode()} for x, name in ROWS]
    examples[0]["name"] = {"b64": base64.b64encode(ROWS[0][1]).decode()}
    body: dict[str, Any] = {"signature_name": "classify", "examples": examples}
    labels = [[f"{name.decode()}-{i}" for i in range(3)] for _, name in ROWS]
    rows = zip(labels, scores().tolist(), strict=True)
    expected = [[list(pair) for pair in zip(*row, strict=True)] for row in rows]
    assert server.rest("/v1/models/m:classify", body) == (200, {"results": expected})
    body = {  # numbers of both kinds are floats
        "signature_name": "regress",
        "context": {"x": [1, 1.5]},
        "examples": [{"name": "a"}, {"x": [0.0, 0.0]}],
    }
    status, answer = server.rest("/v1/models/m/versions/1:regress", body)
    assert (status, answer) == (200, {"results": [7.625, 0.0]})
    assert server.calls("Regress", "OK") >= 1


@pytest.mark.parametrize(
    ("call", "request_", "says"),
    [
        ("Classify", asked(CLASSIFY, "regress"), "regress has the method tensorflow/serving/regre"),
        ("Classify", asked(CLASSIFY, ""), "serving_default has the method tensorflow/serving/pred"),
        ("Regress", asked(REGRESS, "classify"), "it has to be tensorflow/serving/regress"),
        ("Regress", asked(REGRESS, "regress", input_pb2.Input()), "the input has no examples"),
        ("Regress", asked(REGRESS, "one_for_all"), "outputs (), scores (2,) for 3 examples"),
        ("Classify", asked(CLASSIFY, "scalar_scores"), "outputs (), scores (2,) for 3 examples"),
        ("MultiInference", tasks(), "no tasks"),
        ("MultiInference", tasks(("m", "regress", "none")), "'tensorflow/serving/none', which is"),
        (
            "MultiInference",
            tasks(("m", "regress", "regress"), ("n", "regress", "regress")),
            "not all of one model",
        ),
    ],
)
def test_grpc_says_what_is_wrong(server: Server, call: str, request_: Any, says: str) -> None:
    code, text = failure(lambda: getattr(server.predictions, call)(request_, timeout=20))
    assert code == INVALID and says in text, text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "no 'examples'"),
        ({"examples": []}, "no 'examples'"),
        ({"examples": [1]}, "examples[0] is not an object"),
        ({"examples": [{}], "context": 1}, "'context' is not an object"),
        ({"examples": [{"x": [1, "a"]}]}, "examples[0]: feature 'x'"),
        ({"examples": [{"x": 1 << 64}]}, "examples[0]: feature 'x'"),
        ({"examples": [{"x": {"b64": "!"}}]}, "examples[0]: feature 'x'"),
        ({"examples": [{"x": None}]}, "examples[0]: feature 'x'"),
        ({"examples": [{}], "instances": []}, "unknown field 'instances'"),
        ({"examples": [{}], "signature_name": 1}, "signature_name is not a string"),
    ],
)
def test_rest_says_what_is_wrong(server: Server, body: Any, says: str) -> None:
    status, answer = server.rest("/v1/models/m:classify", body)
    assert (status, says in answer["error"]) == (400, True), answer


def test_large_requests_are_bounded_by_what_they_become(server: Server) -> None:
    many = input_pb2.Input()
    many.example_list.examples.extend([example([1.0, 2.0], b"x" * 100)] * 3000)  # 400 kB
    response = server.predictions.Regress(asked(REGRESS, "regress", many), timeout=20)
    assert len(response.result.regressions) == 3000
    empty = input_pb2.Input()
    empty.example_list.examples.extend([tf.train.Example()] * 2_000_000)  # 4 MB
    request = asked(REGRESS, "regress", empty)
    code, text = failure(lambda: server.predictions.Regress(request, timeout=60))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max-request-mb" in text
