# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients get what the SavedModel gives, and errors that say what is wrong."""

import concurrent.futures
from typing import Any

import grpc
import numpy as np
import pytest
import rest_json
import tensorflow as tf
from grpc_health.v1 import health_pb2
from serving_kit import GROUPS, REST_PREDICT, VARIABLE_BYTES, Saved, Server, failure, request
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
)

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


@pytest.fixture
def server(either_server: Server) -> Server:
    """The servers without and with --front."""
    return either_server


def test_answers_have_the_bits_of_the_saved_model_and_run_on_all_groups(
    server: Server, saved: Saved
) -> None:
    before = server.metric("model_server_group_steps_started_total")
    replayed = server.total("model_server_group_steps_replayed_total")
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda _: saved.check(server, 2), range(300)))
    after = server.metric("model_server_group_steps_started_total")
    assert len(after) == GROUPS
    assert sum(after[group] > before[group] for group in after) > 1
    assert server.total("model_server_group_steps_replayed_total") > replayed


@pytest.mark.parametrize("version", [1, 2])
def test_version_can_be_asked_for(server: Server, saved: Saved, version: int) -> None:
    asked = request(x=saved.x)
    asked.model_spec.version.value = version
    response = server.predictions.Predict(asked, timeout=20)
    assert response.model_spec.version.value == version
    assert saved.right(version, tf.make_ndarray(response.outputs["y"]))
    path = f"/v1/models/toy/versions/{version}:predict"
    assert saved.right(version, server.rest(path, {"inputs": saved.x.tolist()})[1]["outputs"])


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
    x = saved.x.tolist()
    for body, name in (
        ({"instances": x}, "predictions"),
        ({"instances": [{"x": row} for row in x]}, "predictions"),
        ({"inputs": x}, "outputs"),
        ({"inputs": {"x": x}}, "outputs"),
    ):
        assert saved.right(2, server.rest(REST_PREDICT, body)[1][name])
    rows = [{"a": [1, 2], "b": 10}, {"a": [3, 4.5], "b": 20}]
    of_rows = [{"sum": 13, "twice": 20}, {"sum": 27.5, "twice": 40}]
    for signature, body, answer in (
        ("pair", {"instances": rows}, {"predictions": of_rows}),
        (
            "pair",
            {"inputs": {"a": [[1, 2]], "b": [10]}},
            {"outputs": {"sum": [13], "twice": [20]}},
        ),
        (
            "text",
            {"instances": ["ab", {"b64": "/w=="}]},
            {"predictions": ["AB", {"b64": "/w=="}]},
        ),
    ):
        assert server.rest(REST_PREDICT, {**body, "signature_name": signature}) == (200, answer)


def test_integers_of_any_size_are_numbers_of_a_float_input(server: Server) -> None:
    """JavaScript writes 1e20 as 100000000000000000000."""
    floats = [1e20, -1e20, 2.0**63, 2.0**64, 16777217, 1e38, 1.5, 0]
    whole = [10**20, -(10**20), 1 << 63, 1 << 64, 16777217, 10**38, 1.5, 0]
    for columns in (whole, [*whole[:6], 1, 0]):
        asked = request(x=np.float32([columns]))
        expected = tf.make_ndarray(server.predictions.Predict(asked, timeout=20).outputs["y"])
        status, answer = server.rest(REST_PREDICT, {"inputs": [columns]})
        assert status == 200, answer
        assert np.float32(answer["outputs"]).tobytes() == expected.tobytes()
    assert rest_json.array_of([whole], "x", tf.float32).tolist() == np.float32([floats]).tolist()
    biggest = [(1 << 64) - 1, 1]
    assert rest_json.array_of(biggest, "x", tf.uint64).tolist() == biggest


X = np.zeros([1, 8], np.float32)


def changed(**fields: Any) -> Any:
    """A request whose tensor has other fields."""
    asked = request(x=X)
    for name, value in fields.items():
        setattr(asked.inputs["x"], name, value)
    return asked


def of_values(count: int) -> Any:
    """A request whose tensor has as many values."""
    asked = request(x=X)
    asked.inputs["x"].ClearField("tensor_content")
    asked.inputs["x"].float_val.extend([1.0] * count)
    return asked


def of_shape(*sizes: int) -> Any:
    """A request with a few bytes that stand for a tensor of any size."""
    asked = request(x=np.float32(1))
    for size in sizes:
        asked.inputs["x"].tensor_shape.dim.add(size=size)
    return asked


def of_version(**version: Any) -> Any:
    asked = request(x=X)
    for name, value in version.items():
        if name == "version":
            asked.model_spec.version.value = value
        else:
            asked.model_spec.version_label = value
    return asked


@pytest.mark.parametrize(
    ("asked", "expected", "says"),
    [
        (request(), INVALID, "input 'x' is missing. Signature serving_default takes x: float32("),
        (request(x=np.zeros([1, 8])), INVALID, "input 'x' is float64, and signature serving_def"),
        (request(x=X[:, 1:]), INVALID, "has shape (1, 7), and signature serving_default takes"),
        (request(x=X, z=[1.0]), INVALID, "has no input 'z'. It takes x: float32"),
        (changed(tensor_content=b"123"), INVALID, "input 'x'"),
        (of_values(9), INVALID, "'x' has 9 values, and its shape [1, 8] has 8"),
        *((changed(dtype=number), INVALID, f"has dtype {number}") for number in (0, 20, 120)),
        (of_shape(1 << 38, 8), EXHAUSTED, "--max-request-mb"),
        (of_shape(*[1 << 62] * 254), EXHAUSTED, f"takes {1 << 63} bytes or more, above the limit"),
        (of_shape(*[1] * 255), INVALID, "'x' has 255 dimensions; 254 is the most"),
        (of_shape(-1, 8), INVALID, "'x'"),
        (request("nobody", x=X), NOT_FOUND, "model 'nobody' is not served"),
        (request(signature="nothing", x=X), NOT_FOUND, "'nothing' is not one of echo, echo_type"),
        (of_version(version=7), NOT_FOUND, "version 7 of model 'toy' is not served; 1, 2 is."),
        (of_version(label="stable"), INVALID, "'stable'"),
    ],
)
def test_grpc_says_what_is_wrong(server: Server, asked: Any, expected: Any, says: str) -> None:
    code, text = failure(lambda: server.predictions.Predict(asked, timeout=20))
    assert (code, says in text) == (expected, True), text


def slow(n: float) -> Any:
    return {"inputs": n, "signature_name": "slow"}


def text(values: Any) -> Any:
    return {"inputs": values, "signature_name": "text"}


def nested(value: Any, dimensions: int) -> Any:
    return nested([value], dimensions - 1) if dimensions else value


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("nobody:predict", {"inputs": 1}, 404, "'nobody'"),
        ("toy/versions/7:predict", {"inputs": 1}, 404, "version 7"),
        ("toy/versions/x", None, 404, "'x'"),
        ("toy:classify", {"examples": []}, 400, "no 'examples'"),
        *((f"toy{at}:predict", None, 405, "it is asked by POST") for at in ("", "/versions/1")),
        *(
            ("toy:predict", body, 400, says)
            for body, says in (
                (b"{", "not JSON"),
                (b"[" * 100_000, "nested more than 32 deep"),
                ({"inputs": 1, "instances": 2}, "one of"),
                ({"instances": []}, "at least one row"),
                ({"instances": [[1], [2, 3]]}, "'x' has rows"),
                ({"inputs": nested(10**20, 40)}, "shape"),
                ({"inputs": nested(None, 40)}, "'x' has values that are no num"),
                (text(nested("a", 40)), "shape"),
                ({"inputs": nested(1, 90)}, "'x' has 90 dimensions"),
                (text(["a", []]), "'s'"),
                ({"inputs": ["a"]}, "'x' has strings, and the signature"),
                ({"inputs": {"x": 1, "z": 2}}, "'z'"),
                ({"inputs": 1, "signature_name": "pair"}, "a, b"),
                (slow(10**20), "'n' has 100000000000000000000, and int32 is from -2147483648 to"),
                (slow(-(10**90)), "(92 characters)"),
                ({"inputs": [[10**400] * 8]}, "'x' has 1000"),
                ({"inputs": [[1e39] * 8]}, "'x' has 1e+39, which is out of range"),
                ({"inputs": [[0, -(10**39)] * 4]}, "'x' has -1e+39, which is out of range"),
                ({"inputs": [[None] * 8]}, "'x' has values that are no num"),
                ({"inputs": [[True] * 8]}, "'x' has booleans"),
                ({"instances": [1], "signature_name": "slow"}, "shape"),
            )
        ),
    ],
)
def test_rest_says_what_is_wrong(
    server: Server, path: str, body: Any, status: int, says: str
) -> None:
    got, answer = server.rest(f"/v1/models/{path}", body)
    assert (got, says in answer["error"]) == (status, True), answer


def test_metadata_and_status(server: Server) -> None:
    asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = "other"
    found = server.predictions.GetModelMetadata(asked, timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert found.metadata["signature_def"].Unpack(signatures)
    names = "echo echo_typed pair serving_default slow text total"
    assert sorted(signatures.signature_def) == names.split()
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


def test_health_and_metrics(server: Server, saved: Saved) -> None:
    for service in ("", "tensorflow.serving.PredictionService"):
        asked = health_pb2.HealthCheckRequest(service=service)
        assert server.health.Check(asked, timeout=20).status == 1
    before = server.calls("Predict", "OK")
    server.predict(saved.x)
    failure(lambda: server.predictions.Predict(request("nobody"), timeout=20))
    assert server.calls("Predict", "OK") == before + 1
    _, text = server.rest("/metrics")
    assert 'seconds_bucket{le="0.001",method="Predict",model="toy",status="OK"}' in text
    assert server.total("model_server_call_seconds_count") == server.total(
        "model_server_calls_total"
    )
    assert server.total("process_resident_memory_bytes") > 1 << 20
    assert 'model_server_version_served{model="toy",version="2"} 1.0' in text
    assert server.total("model_server_group_bytes_in_use") > 0
    assert server.by_version("variable_bytes") == {1: VARIABLE_BYTES, 2: VARIABLE_BYTES}
    assert server.by_version("variable_bytes", "other") == {1: VARIABLE_BYTES}
    assert server.total("model_server_calls_in_flight") == 0
    assert "nobody" not in text  # or anybody could make the metrics grow
