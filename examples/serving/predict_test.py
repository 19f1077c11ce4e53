# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients get what the SavedModel gives, and errors that say what is wrong."""

from __future__ import annotations

import concurrent.futures
import functools
import http.client
import json
from typing import Any

import grpc
import numpy as np
import pytest
import rest_json
import tensorflow as tf
from conftest import Saved
from grpc_health.v1 import health_pb2
from serving_kit import GROUPS, Server, failure, request
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def test_answers_have_the_bits_of_the_saved_model_on_one_stream(
    server: Server, saved: Saved
) -> None:
    x, expected = saved.answers["x"], saved.answers["y2"].tobytes()
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda _: server.predict(x).tobytes(), range(200)))
    assert answers == [expected] * 200


def test_calls_run_on_all_groups_and_are_replayed(server: Server, saved: Saved) -> None:
    before = server.metric("model_server_group_steps_started_total")
    replayed = server.total("model_server_group_steps_replayed_total")
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda _: server.predict(saved.answers["x"]), range(300)))
    after = server.metric("model_server_group_steps_started_total")
    assert len(after) == GROUPS
    assert sum(after[group] > before[group] for group in after) > 1
    assert server.total("model_server_group_steps_replayed_total") > replayed


@pytest.mark.parametrize("version", [1, 2])
def test_version_can_be_asked_for(server: Server, saved: Saved, version: int) -> None:
    asked = request(x=saved.answers["x"])
    asked.model_spec.version.value = version
    response = server.predictions.Predict(asked, timeout=20)
    assert response.model_spec.version.value == version
    assert (
        tf.make_ndarray(response.outputs["y"]).tobytes() == saved.answers[f"y{version}"].tobytes()
    )
    body = {"inputs": saved.answers["x"].tolist()}
    status, answer = server.rest(f"/v1/models/toy/versions/{version}:predict", body)
    assert status == 200
    assert np.float32(answer["outputs"]).tobytes() == saved.answers[f"y{version}"].tobytes()


def test_signatures_inputs_and_output_filter(server: Server) -> None:
    asked = request(signature="pair", a=np.float32([[1, 2], [3, 4]]), b=np.int32([10, 20]))
    outputs = server.predictions.Predict(asked, timeout=20).outputs
    assert tf.make_ndarray(outputs["sum"]).tolist() == [13, 27]
    assert tf.make_ndarray(outputs["twice"]).tolist() == [20, 40]
    asked.output_filter.append("twice")
    assert list(server.predictions.Predict(asked, timeout=20).outputs) == ["twice"]
    asked.output_filter.append("none")
    code, text = failure(lambda: server.predictions.Predict(asked, timeout=20))
    assert code == INVALID and "'none'" in text
    asked = request(signature="text", s=[b"ab", b"\xff"])
    outputs = server.predictions.Predict(asked, timeout=20).outputs
    assert tf.make_ndarray(outputs["upper"]).tolist() == [b"AB", b"\xff"]


def test_rows_and_columns_by_rest(server: Server, saved: Saved) -> None:
    path, x = "/v1/models/toy:predict", saved.answers["x"].tolist()
    for body, name in (
        ({"instances": x}, "predictions"),
        ({"instances": [{"x": row} for row in x]}, "predictions"),
        ({"inputs": x}, "outputs"),
        ({"inputs": {"x": x}}, "outputs"),
    ):
        status, answer = server.rest(path, body)
        assert status == 200, answer
        assert np.float32(answer[name]).tobytes() == saved.answers["y2"].tobytes()
    rows = [{"a": [1, 2], "b": 10}, {"a": [3, 4.5], "b": 20}]
    status, answer = server.rest(path, {"instances": rows, "signature_name": "pair"})
    assert answer == {"predictions": [{"sum": 13, "twice": 20}, {"sum": 27.5, "twice": 40}]}
    columns = {"a": [[1, 2]], "b": [10]}
    status, answer = server.rest(path, {"inputs": columns, "signature_name": "pair"})
    assert answer == {"outputs": {"sum": [13], "twice": [20]}}
    texts = {"instances": ["ab", {"b64": "/w=="}], "signature_name": "text"}
    assert server.rest(path, texts) == (200, {"predictions": ["AB", {"b64": "/w=="}]})


def test_integers_of_any_size_are_numbers_of_a_float_input(server: Server) -> None:
    """JavaScript writes 1e20 as 100000000000000000000."""
    floats = [1e20, -1e20, 2.0**63, 2.0**64, 16777217, 1e38, 1.5, 0]
    whole = [10**20, -(10**20), 1 << 63, 1 << 64, 16777217, 10**38, 1.5, 0]
    for columns in (whole, [*whole[:6], 1, 0]):
        asked = request(x=np.float32([columns]))
        expected = tf.make_ndarray(server.predictions.Predict(asked, timeout=20).outputs["y"])
        status, answer = server.rest("/v1/models/toy:predict", {"inputs": [columns]})
        assert status == 200, answer
        assert np.float32(answer["outputs"]).tobytes() == expected.tobytes()
    assert rest_json._array([whole], "x", tf.float32).tolist() == np.float32([floats]).tolist()
    biggest = [(1 << 64) - 1, 1]
    assert rest_json._array(biggest, "x", tf.uint64).tolist() == biggest


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({}, "input 'x' is missing. Signature serving_default takes x: float32(None, 8)."),
        (
            {"x": np.zeros([1, 8])},
            "input 'x' is float64, and signature serving_default takes float32.",
        ),
        (
            {"x": np.zeros([1, 7], np.float32)},
            "has shape (1, 7), and signature serving_default takes",
        ),
        ({"x": [b"a"]}, "input 'x' is string"),
        ({"x": np.zeros([1, 8], np.float32), "z": [1.0]}, "has no input 'z'. It takes x: float32"),
    ],
)
def test_wrong_inputs_are_named(server: Server, inputs: Any, says: str) -> None:
    code, text = failure(lambda: server.predictions.Predict(request(**inputs), timeout=20))
    assert code == INVALID
    assert says in text


def test_tensors_that_are_none_are_refused(server: Server) -> None:
    asked = request(x=np.zeros([1, 8], np.float32))
    for change, expected, says in (
        ({"tensor_content": b"123"}, INVALID, "input 'x'"),
        ({"dtype": 0}, INVALID, "has dtype 0"),
        ({"dtype": 20}, INVALID, "has dtype 20"),
        ({"dtype": 120}, INVALID, "has dtype 120"),
    ):
        broken = type(asked).FromString(asked.SerializeToString())
        for field, value in change.items():
            setattr(broken.inputs["x"], field, value)
        code, text = failure(functools.partial(server.predictions.Predict, broken, timeout=20))
        assert (code, says in text) == (expected, True), text
    # A few bytes that stand for 8 TB.
    asked.inputs["x"].Clear()
    asked.inputs["x"].dtype = 1
    asked.inputs["x"].float_val.append(1.0)
    for size in (1 << 38, 8):
        asked.inputs["x"].tensor_shape.dim.add(size=size)
    code, text = failure(lambda: server.predictions.Predict(asked, timeout=20))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max-request-mb" in text
    asked.inputs["x"].tensor_shape.dim[0].size = -1
    assert failure(lambda: server.predictions.Predict(asked, timeout=20))[0] == INVALID


def test_what_is_not_there_is_not_found(server: Server, saved: Saved) -> None:
    x = saved.answers["x"]
    unknown_version = request(x=x)
    unknown_version.model_spec.version.value = 7
    for asked, says in (
        (request("nobody", x=x), "model 'nobody' is not served"),
        (request(signature="nothing", x=x), "signature 'nothing' is not one of pair, serving_d"),
        (unknown_version, "version 7 of model 'toy' is not served; 1, 2 is."),
    ):
        code, text = failure(functools.partial(server.predictions.Predict, asked, timeout=20))
        assert code == NOT_FOUND
        assert says in text
    unknown_version.model_spec.version_label = "stable"
    assert failure(lambda: server.predictions.Predict(unknown_version, timeout=20))[0] == INVALID


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/v1/models/nobody:predict", {"inputs": 1}, 404, "'nobody'"),
        ("/v1/models/nobody", None, 404, "'nobody'"),
        ("/v1/models/toy/versions/7:predict", {"inputs": 1}, 404, "version 7"),
        ("/v1/models/toy/versions/x", None, 404, "'x'"),
        ("/v1/models/toy:predict", b"{", 400, "not JSON"),
        ("/v1/models/toy:predict", b"[" * 100_000, 400, "not JSON"),
        ("/v1/models/toy:predict", {"inputs": 1, "instances": 2}, 400, "one of"),
        ("/v1/models/toy:predict", {"instances": []}, 400, "at least one row"),
        ("/v1/models/toy:predict", {"instances": [[1], [2, 3]]}, 400, "'x' has rows"),
        ("/v1/models/toy:predict", {"inputs": ["a", []], "signature_name": "text"}, 400, "'s'"),
        ("/v1/models/toy:predict", {"inputs": [1], "signature_name": "text"}, 400, "'s' has 1"),
        ("/v1/models/toy:predict", {"inputs": ["a"]}, 400, "'x' has strings, and the signature"),
        ("/v1/models/toy:predict", {"inputs": {"x": 1, "z": 2}}, 400, "'z'"),
        ("/v1/models/toy:predict", {"inputs": 1, "signature_name": "pair"}, 400, "a, b"),
        ("/v1/models/toy:predict", {"inputs": 1.5, "signature_name": "slow"}, 400, "fractions"),
        ("/v1/models/toy:predict", {"inputs": 1 << 40, "signature_name": "slow"}, 400, "int32"),
        (
            "/v1/models/toy:predict",
            {"inputs": 10**20, "signature_name": "slow"},
            400,
            "'n' has 100000000000000000000, and int32 is from -2147483648 to 2147483647.",
        ),
        (
            "/v1/models/toy:predict",
            {"inputs": -(10**90), "signature_name": "slow"},
            400,
            "(92 characters)",
        ),
        ("/v1/models/toy:predict", {"inputs": [[10**400] * 8]}, 400, "'x' has 1000"),
        ("/v1/models/toy:predict", {"inputs": [[None] * 8]}, 400, "'x' has values that are no num"),
        ("/v1/models/toy:predict", {"inputs": [[True] * 8]}, 400, "'x' has booleans"),
        ("/v1/models/toy:predict", {"instances": [1], "signature_name": "slow"}, 400, "shape"),
        ("/v1/models/toy:classify", {"examples": []}, 501, "Classify"),
        ("/elsewhere", None, 404, "Not Found"),
        ("/v1/models/toy:predict", None, 404, "toy:predict"),
    ],
)
def test_rest_says_what_is_wrong(
    server: Server, path: str, body: Any, status: int, says: str
) -> None:
    got, answer = server.rest(path, body)
    assert (got, says in answer["error"]) == (status, True), answer


def test_metadata_and_status(server: Server) -> None:
    asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = "other"
    found = server.predictions.GetModelMetadata(asked, timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert found.metadata["signature_def"].Unpack(signatures)
    assert sorted(signatures.signature_def) == ["pair", "serving_default", "slow", "text"]
    assert found.model_spec.version.value == 1
    _, answer = server.rest("/v1/models/other/metadata")
    inputs = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert inputs["x"]["dtype"] == "DT_FLOAT"

    wanted = get_model_status_pb2.GetModelStatusRequest()
    wanted.model_spec.name = "toy"
    states = server.models.GetModelStatus(wanted, timeout=20).model_version_status
    assert [(s.version, s.state) for s in states] == [(2, 30), (1, 30)]
    _, answer = server.rest("/v1/models/toy/versions/1")
    assert [s["state"] for s in answer["model_version_status"]] == ["AVAILABLE"]


def test_what_is_not_done_is_unimplemented(server: Server) -> None:
    for call in (
        lambda: server.predictions.Classify(classification_pb2.ClassificationRequest()),
        lambda: server.models.HandleReloadConfigRequest(model_management_pb2.ReloadConfigRequest()),
    ):
        code, text = failure(call)
        assert code == grpc.StatusCode.UNIMPLEMENTED and text


def test_http_connection_serves_many_requests(server: Server, saved: Saved) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=20)
    connection.connect()
    opened = connection.sock
    body = json.dumps({"instances": saved.answers["x"].tolist()})
    for path, status in (("toy:predict", 200), ("nobody:predict", 404), ("toy:predict", 200)):
        connection.request("POST", f"/v1/models/{path}", body)
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (status, True)
        assert connection.sock is opened
    connection.close()


def test_health_and_metrics(server: Server, saved: Saved) -> None:
    for service in ("", "tensorflow.serving.PredictionService"):
        asked = health_pb2.HealthCheckRequest(service=service)
        assert server.health.Check(asked, timeout=20).status == 1
    before = server.calls("Predict", "OK")
    server.predict(saved.answers["x"])
    failure(lambda: server.predictions.Predict(request("nobody"), timeout=20))
    assert server.calls("Predict", "OK") == before + 1
    _, text = server.rest("/metrics")
    assert 'model_server_call_seconds_bucket{le="0.001",method="Predict",model="toy"}' in text
    assert 'model_server_version_served{model="toy",version="2"} 1.0' in text
    assert server.total("model_server_group_bytes_in_use") > 0
    assert server.total("model_server_calls_in_flight") == 0
    assert "nobody" not in text  # or anybody could make the metrics grow
