# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients of the Open Inference Protocol get the answers of Predict, with its bits."""

import contextlib
import json
import pathlib
import types
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import kserve_grpc
import numpy as np
import tensorflow as tf
import tritonclient.grpc
import tritonclient.http
from grpc_health.v1 import health_pb2
from kserve_messages import MESSAGES
from loaded_model import DEFAULT_SIGNATURE, LoadedModel
from serving_kit import ECHOED, Saved, Server, request
from tensorflow.python.multistream.serving.served_models import Devices
from tritonclient.grpc import service_pb2

INFER = "/v2/models/toy/infer"
HEADER = "Inference-Header-Content-Length"
X = np.zeros([1, 8], np.float32)
Client = tuple[Any, Any]  # a module of tritonclient, its client of a server

DATATYPES = {
    tf.bool: "BOOL",
    tf.float16: "FP16",
    tf.float32: "FP32",
    tf.float64: "FP64",
    tf.bfloat16: "BF16",
    tf.string: "BYTES",
}
DATATYPES |= {dtype: dtype.name.upper() for dtype in ECHOED if dtype not in DATATYPES}


@contextlib.contextmanager
def clients(server: Server) -> Iterator[list[Client]]:
    """Tritonclient's clients of a server, by gRPC and by HTTP."""
    addresses = (server.address, server.url.partition("//")[2])
    modules = (tritonclient.grpc, tritonclient.http)
    with contextlib.ExitStack() as stack:
        yield [
            (module, stack.enter_context(module.InferenceServerClient(address)))
            for module, address in zip(modules, addresses, strict=True)
        ]


def infer(client: Client, binary: bool = True, model: str = "toy", **options: Any) -> Any:
    """What tritonclient gets for inputs, each a pair of its datatype and its array."""
    module, calls = client
    inputs = []
    for name, (datatype, array) in options.pop("inputs").items():
        inputs.append(module.InferInput(name, list(array.shape), datatype))
        as_json = {} if binary else {"binary_data": False}
        inputs[-1].set_data_from_numpy(array, **as_json)
    outputs = [module.InferRequestedOutput(name) for name in options.pop("outputs", [])] or None
    return calls.infer(model, inputs, outputs=outputs, **options)


def method(server: Server, name: str = "ModelInfer") -> Any:
    """A method by gRPC, with the messages of tritonclient."""
    return server.channel.unary_unary(
        f"/inference.GRPCInferenceService/{name}",
        request_serializer=getattr(service_pb2, f"{name}Request").SerializeToString,
        response_deserializer=getattr(service_pb2, f"{name}Response").FromString,
    )


def call(server: Server, asked: Any, timeout: float = 20) -> Any:
    """The answer of ModelInfer."""
    return method(server)(asked, timeout=timeout)


def post(
    server: Server, head: Any, tail: bytes = b"", length: Any = None, **headers: str
) -> tuple[int, Any, bytes]:
    """Status, JSON and what is after JSON of the answer to a body of JSON and bytes after it.

    The length of JSON is said to be `length`.
    """
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    headers[HEADER] = str(len(text) if length is None else length)
    asked = urllib.request.Request(server.url + INFER, text + tail, headers)
    try:
        response = urllib.request.urlopen(asked, timeout=20)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        body = response.read()
        end = int(response.headers.get(HEADER, len(body)))
        return response.status, json.loads(body[:end]), body[end:]


def values() -> dict[str, Any]:
    """A vector of each dtype, with the ends of its range."""
    found: dict[str, Any] = {}
    for dtype in ECHOED:
        numpy = dtype.as_numpy_dtype
        if dtype == tf.string:
            found[dtype.name] = np.array([b"", b"a\0", "é".encode(), b"x" * 300], object)
        elif dtype == tf.bool:
            found[dtype.name] = np.array([True, False, True])
        elif dtype.is_integer:
            found[dtype.name] = np.array([dtype.min, dtype.max, 0, 7], numpy)
        else:
            some = [np.nan, -0.0, np.inf, -np.inf, float(dtype.max), 1 / 3]
            found[dtype.name] = np.array(some, numpy)
    return found


def raw(array: Any) -> bytes:
    if array.dtype != object:
        return array.tobytes()  # type: ignore[no-any-return]
    return b"".join(len(x).to_bytes(4, "little") + x for x in array)


FIELDS = {"FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}
FIELDS |= {"BOOL": "bool_contents", "INT64": "int64_contents", "UINT64": "uint64_contents"}


def asked_for(
    inputs: dict[str, Any], typed: bool = False, signature: str = "", **fields: Any
) -> Any:
    """A message that asks for inputs, raw or typed."""
    asked = service_pb2.ModelInferRequest(model_name="toy", **fields)
    if signature:
        asked.parameters["signature_name"].string_param = signature
    for name, array in inputs.items():
        dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
        datatype = DATATYPES[dtype]
        given = asked.inputs.add(name=name, datatype=datatype, shape=array.shape)
        if typed:
            kind = "uint_contents" if "UINT" in datatype else "int_contents"
            getattr(given.contents, FIELDS.get(datatype, kind)).extend(array.ravel().tolist())
        else:
            asked.raw_input_contents.append(raw(array))
    return asked


def json_of(inputs: dict[str, Any], signature: str = "echo") -> Any:
    """A body that asks for inputs in JSON."""
    given = [
        {
            "name": name,
            "datatype": DATATYPES[tf.string if x.dtype == object else tf.as_dtype(x.dtype)],
            "shape": x.shape,
            "data": [v.decode() for v in x] if x.dtype == object else x.ravel().tolist(),
        }
        for name, x in inputs.items()
    ]
    return {"inputs": given, "parameters": {"signature_name": signature}}


def bits(arrays: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same of arrays that have the names of their dtypes."""
    return {n: (DATATYPES[tf.as_dtype(n)], list(x.shape), raw(x)) for n, x in arrays.items()}


def test_messages_are_those_of_tritonclient() -> None:
    def fields(descriptor: Any) -> Any:
        return {
            x.name: (x.number, x.type, x.is_repeated, x.message_type and fields(x.message_type))
            for x in descriptor.fields
        }

    for name, message in MESSAGES.items():
        if name.endswith(("Request", "Response")):
            theirs = getattr(service_pb2, name).DESCRIPTOR
            assert fields(message.DESCRIPTOR) == fields(theirs), name


def test_predict_gives_the_bits_that_the_protocol_has_to_give(server: Server) -> None:
    inputs = values()
    response = server.predictions.Predict(request(signature="echo", **inputs), timeout=20)
    found = {name: tf.make_ndarray(x) for name, x in response.outputs.items()}
    assert bits(found) == bits(inputs)


def test_raw_tensors_by_grpc_have_all_bits(either_server: Server) -> None:
    inputs = values()
    response = call(either_server, asked_for(inputs, signature="echo"))
    pairs = zip(response.outputs, response.raw_output_contents, strict=True)
    found = {output.name: (output.datatype, list(output.shape), data) for output, data in pairs}
    assert found == bits(inputs)
    # Of true, a byte may be any but 0.
    asked = asked_for(inputs, signature="echo", outputs=[{"name": "bool"}])
    asked.raw_input_contents[list(inputs).index("bool")] = b"\x02\x00\xff"
    assert list(call(either_server, asked).raw_output_contents) == [b"\x01\x00\x01"]


def test_typed_tensors_by_grpc_have_all_bits(server: Server) -> None:
    inputs = {n: x for n, x in values().items() if n not in ("float16", "bfloat16")}
    response = call(server, asked_for(inputs, typed=True, signature="echo_typed"))
    assert not response.raw_output_contents
    found = {}
    for output in response.outputs:
        ((_, given),) = output.contents.ListFields()
        array = np.array(list(given), tf.as_dtype(output.name).as_numpy_dtype)
        found[output.name] = (output.datatype, list(output.shape), raw(array))
    assert found == bits(inputs)
    many = {"x": np.arange(40_000, dtype=np.float32).reshape(-1, 8) / 3}
    answer = server.predictions.Predict(request(**many), timeout=20).outputs["y"]
    (output,) = call(server, asked_for(many, typed=True)).outputs
    assert np.float32(output.contents.fp32_contents).tobytes() == answer.tensor_content


def test_answer_to_typed_tensors_is_raw_if_a_datatype_has_no_field() -> None:
    asked = asked_for({"x": X}, typed=True)
    held: Any = types.SimpleNamespace(number=3)
    for dtype in (tf.float16, tf.bfloat16):
        results = {"y": np.array([1], dtype.as_numpy_dtype), "z": X}
        response = kserve_grpc._response(asked, held, results)
        assert list(response.raw_output_contents) == [raw(x) for x in results.values()]
        assert not any(output.HasField("contents") for output in response.outputs)


def test_tensors_by_tritonclients_have_all_bits(either_server: Server) -> None:
    inputs = values()
    expected = bits(inputs)
    given = {name: (expected[name][0], x) for name, x in inputs.items()}
    # Of bfloat16 tritonclient makes and takes float32.
    given["bfloat16"] = ("BF16", inputs["bfloat16"].astype(np.float32))
    asked: Any = {"inputs": given, "parameters": {"signature_name": "echo"}}
    with clients(either_server) as both:
        for client in both:
            for outputs in ([], list(inputs)):
                result = infer(client, **asked, outputs=outputs)
                found = {name: result.as_numpy(name) for name in inputs}
                found["bfloat16"] = found["bfloat16"].astype(inputs["bfloat16"].dtype)
                assert bits(found) == expected


def test_tensors_in_json_have_all_bits(server: Server, saved: Saved) -> None:
    inputs = values()
    body = json_of(inputs)
    status, answer = server.rest(INFER, body)
    assert status == 200 and "parameters" not in answer["outputs"][0]
    found = {
        output["name"]: (
            output["datatype"],
            output["shape"],
            raw(
                np.array([text.encode() for text in output["data"]], object)
                if output["name"] == "string"
                else np.array(output["data"], tf.as_dtype(output["name"]).as_numpy_dtype)
            ),
        )
        for output in answer["outputs"]
    }
    assert found == bits(inputs)
    # Rows, in place of one list of all values, and null for what is left out.
    x = {"name": "x", "datatype": "FP32", "shape": [16, 8], "data": saved.x.tolist()}
    none = {"id": None, "parameters": None, "outputs": None}
    _, answer = server.rest(INFER, {"inputs": [{**x, "parameters": None}], **none})
    assert saved.right(2, np.float32(answer["outputs"][0]["data"])) and "id" not in answer


def test_binary_and_json_may_be_mixed_by_rest(server: Server) -> None:
    body = json_of({"a": np.float32([[1, 2]]), "b": np.int32([10])}, "pair")
    del body["inputs"][0]["data"]
    body["inputs"][0]["parameters"] = {"binary_data_size": 8}
    body["outputs"] = [{"name": "twice", "parameters": {"binary_data": True}}, {"name": "sum"}]
    body["id"] = "7"
    status, answer, tail = post(server, body, np.float32([1, 2]).tobytes())
    twice = {"name": "twice", "datatype": "INT32", "shape": [1]}
    assert (status, tail, answer) == (
        200,
        np.int32([20]).tobytes(),
        {
            "model_name": "toy",
            "model_version": "2",
            "id": "7",
            "outputs": [
                {**twice, "parameters": {"binary_data_size": 4}},
                {"name": "sum", "datatype": "FP32", "shape": [1], "data": [13]},
            ],
        },
    )


def test_version_id_signature_and_outputs(either_server: Server, saved: Saved) -> None:
    pair = {"a": ("FP32", np.float32([[1, 2]])), "b": ("INT32", np.int32([10]))}
    with clients(either_server) as both:
        for client in both:
            x = {"x": ("FP32", saved.x)}
            for version in (1, 2):
                found = infer(client, inputs=x, model_version=str(version), request_id="an id")
                assert saved.right(version, found.as_numpy("y"))
                response = found.get_response()
                if client[0] is tritonclient.http:
                    response = service_pb2.ModelInferResponse(
                        **{name: response[name] for name in ("model_name", "model_version", "id")}
                    )
                said = (response.model_name, response.model_version, response.id)
                assert said == ("toy", str(version), "an id")
            more = {"signature_name": "pair", "unknown": 1.5}
            found = infer(client, inputs=pair, parameters=more, outputs=["twice"])
            assert found.as_numpy("twice").tolist() == [20] and found.as_numpy("sum") is None


def test_metadata_and_readiness(either_server: Server) -> None:
    server = either_server
    with clients(server) as both:
        for _, client in both:
            assert client.is_server_live() and client.is_server_ready()
            for model, version, is_ready in (
                *(("toy", "", True), ("toy", "2", True), ("toy", "3", False), ("no", "", False)),
                ("toy", "x", False),
            ):
                assert client.is_model_ready(model, version) == is_ready
        by_grpc, by_http = (client for _, client in both)
        of_server = by_http.get_server_metadata()
        assert of_server == by_grpc.get_server_metadata(as_json=True)
        assert of_server["extensions"] == ["binary_tensor_data"]
        expected = {
            "name": "toy",
            "versions": ["1", "2"],
            "platform": "tensorflow_savedmodel",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}],
        }
        assert by_http.get_model_metadata("toy", "1") == expected
        found = by_grpc.get_model_metadata("toy", "1")
        of_message = {name: getattr(found, name) for name in ("name", "platform")}
        of_message["versions"] = list(found.versions)
        for name in ("inputs", "outputs"):
            of_message[name] = [
                {"name": x.name, "datatype": x.datatype, "shape": list(x.shape)}
                for x in getattr(found, name)
            ]
        assert of_message == expected


def test_calls_are_counted_as_model_infer(server: Server) -> None:
    statuses = ("OK", "INVALID_ARGUMENT")
    before = [server.calls("ModelInfer", status) for status in statuses]
    call(server, asked_for({"x": X}))
    assert server.rest(INFER, json_of({"x": X}, "pair"))[0] == 400
    assert server.rest(INFER, json_of({"x": X}, "serving_default"))[0] == 200
    after = [server.calls("ModelInfer", status) for status in statuses]
    assert after == [before[0] + 2, before[1] + 1]
    asked = health_pb2.HealthCheckRequest(service="inference.GRPCInferenceService")
    assert server.health.Check(asked, timeout=20).status == 1


def test_result_that_is_one_string_is_an_array(tmp_path: pathlib.Path) -> None:
    model = tf.Module()
    model.one = tf.function(lambda: {"one": tf.constant(b"a\0")}, input_signature=[])
    tf.saved_model.save(model, str(tmp_path), signatures={DEFAULT_SIGNATURE: model.one})
    found = LoadedModel(tmp_path, Devices(["/CPU:0"])).signature("")({})["one"]
    assert (found.shape, found.item()) == ((), b"a\0")
