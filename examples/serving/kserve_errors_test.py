# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""By the Open Inference Protocol, errors name what is wrong, and limits are kept."""

import json
import random
import threading
import types
from typing import Any

import grpc
import grpc_guard
import kserve_tensors
import numpy as np
import pytest
import serving_error
import tensorflow as tf
from greedy_requests_test import field
from kserve_test import INFER, X, asked_for, call, json_of, method, post, raw, values
from serving_kit import FOREVER, Saved, Server, failure, until
from tritonclient.grpc import service_pb2

DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
LIMIT = int(0.05 * (1 << 20))  # of small_server
MUTATIONS = 200


def changed(asked: Any, name: str = "x", raw: list[bytes] | None = None, **fields: Any) -> Any:
    """A message whose input of a name has other fields, or that has other raw contents."""
    (given,) = (given for given in asked.inputs if given.name == name)
    for field_name, value in fields.items():
        given.ClearField(field_name)
        given.MergeFrom(type(given)(**{field_name: value}))
    if raw is not None:
        asked.raw_input_contents[:] = raw
    return asked


def x(**fields: Any) -> Any:
    """A call of the default signature, with other fields of its input."""
    return changed(asked_for({"x": X}), **fields)


def n(**contents: Any) -> Any:
    """A call of a signature that takes an integer, with other typed values."""
    asked = asked_for({"n": np.int32(1)}, typed=True, signature="slow")
    return changed(asked, "n", contents=contents)


def text(data: bytes, *shape: int) -> Any:
    """A call of a signature that takes strings, with raw ones."""
    asked = asked_for({"s": np.array([b""], object)}, signature="text")
    return changed(asked, "s", [data], shape=shape)


def of_half() -> Any:
    """A call with inputs that have no values, neither raw ones nor typed ones."""
    asked = asked_for({name: x[:0] for name, x in values().items()}, signature="echo")
    del asked.raw_input_contents[:]
    return asked


def of_int8() -> Any:
    """A call with typed values, one of which is out of its range."""
    given = {name: x for name, x in values().items() if name not in ("float16", "bfloat16")}
    asked = asked_for(given, typed=True, signature="echo_typed")
    return changed(asked, "int8", shape=[2], contents={"int_contents": [1, 300]})


def twice(asked: Any, *raw: bytes) -> Any:
    """A message that has its only input twice, with raw contents."""
    asked.inputs.add().CopyFrom(asked.inputs[0])
    asked.raw_input_contents[:] = raw
    return asked


def of_signature(**value: Any) -> Any:
    """A call whose parameter has a value."""
    asked = asked_for({"x": X})
    asked.parameters["signature_name"].CopyFrom(service_pb2.InferParameter(**value))
    return asked


@pytest.mark.parametrize(
    ("asked", "expected", "says"),
    [
        (asked_for({}), INVALID, "input 'x' is missing. Signature serving_default takes x: float"),
        (asked_for({"x": X, "z": X}), INVALID, "has no input 'z'. It takes x: float32"),
        (twice(asked_for({"x": X}), bytes(32), bytes(32)), INVALID, "'x' is given twice; give it"),
        (twice(asked_for({"x": X}), b""), INVALID, "1 raw_input_contents for 2 inputs; give one"),
        (
            x(contents={"fp32_contents": [1] * 8}),
            INVALID,
            "'x' has contents beside raw_input_contents; give one of them.",
        ),
        (x(datatype="FP64"), INVALID, "'x' has datatype 'FP64', and signature serving_default tak"),
        (x(datatype="fp32"), INVALID, "'fp32', and signature serving_default takes FP32."),
        (x(raw=[b"123"]), INVALID, "'x' has 3 bytes, and its shape [1, 8] of FP32 takes 32."),
        (x(raw=[bytes(36)]), INVALID, "'x' has 36 bytes, and its shape [1, 8] of FP32 takes 32."),
        (x(shape=[1, 7], raw=[bytes(28)]), INVALID, "has shape (1, 7), and signature"),
        (x(shape=[-1, 8]), INVALID, "'x' has -1 in its shape; a dimension is 0 or more."),
        (x(shape=[1 << 40, 8]), EXHAUSTED, "'x' takes 35184372088832 bytes or more, by its shape"),
        (x(shape=[1 << 62] * 60), EXHAUSTED, f"takes {1 << 63} bytes or more, by its shape"),
        (x(shape=[0, 1 << 62, 1 << 62], raw=[b""]), INVALID, "'x' of shape [0, 461168"),
        (x(shape=[1] * 200, raw=[bytes(4)]), INVALID, "'x' of shape [1, 1"),
        (x(shape=[1] * 255), INVALID, "'x' has 255 dimensions; 254 is the most."),
        (text(b"\5\0\0\0abc", 1), INVALID, "'s' has 7 bytes, of which string 0 would need 9"),
        (text(b"\xff\xff\xff\xffabc", 1), INVALID, "string 0 would need 4294967299: before each"),
        (text(b"\0\0\0\0\1\0", 2), INVALID, "'s' has 6 bytes, of which string 1 would need 9"),
        (text(bytes(9), 2), INVALID, "'s' has 1 bytes after the 2 strings of its shape"),
        (text(bytes(8), 1 << 40), EXHAUSTED, "--max-request-mb"),
        (n(int_contents=[1, 2]), INVALID, "'n' has 2 values, and its shape [] has 1."),
        (n(), INVALID, "'n' has 0 values, and its shape [] has 1."),
        (n(fp32_contents=[1]), INVALID, "'n' of INT32 has values in fp32_contents; give them in i"),
        (of_int8(), INVALID, "'int8' has 300, and int8 is from -128 to 127."),
        (of_half(), INVALID, "'float16' is of FP16, which contents has no field for; give raw_in"),
        (asked_for({"x": X}, model_version="7"), NOT_FOUND, "version 7 of model 'toy' is not ser"),
        (asked_for({"x": X}, model_version="-1"), NOT_FOUND, "version '-1' is not a number."),
        (of_signature(string_param="no"), NOT_FOUND, "signature 'no' is not one of echo, echo_ty"),
        (of_signature(int64_param=1), INVALID, "signature_name is 1, which is not a string."),
        (of_signature(), INVALID, "signature_name is None, which is not a string."),
        (
            asked_for({"x": X}, outputs=[{"name": "no"}]),
            INVALID,
            "outputs: signature serving_default has no output 'no'. It has y.",
        ),
    ],
)
def test_grpc_says_what_is_wrong(server: Server, asked: Any, expected: Any, says: str) -> None:
    code, text = failure(lambda: call(server, asked))
    assert (code, says in text) == (expected, True), text


def test_other_methods_say_what_is_wrong(server: Server) -> None:
    for name, asked, expected, says in (
        ("ModelMetadata", {"name": "no"}, NOT_FOUND, "model 'no' is not served."),
        ("ModelMetadata", {"name": "toy", "version": "9"}, NOT_FOUND, "version 9 of model 'toy'"),
        ("RepositoryIndex", {}, grpc.StatusCode.UNIMPLEMENTED, ""),
        ("ServerMetadata", None, INVALID, "the request of ServerMetadata is not a message."),
    ):
        path = f"/inference.GRPCInferenceService/{name}"
        message = getattr(service_pb2, f"{name}Request")
        data = b"\xff" if asked is None else message(**asked).SerializeToString()
        code, text = failure(
            lambda path=path, data=data: server.channel.unary_unary(path)(data, timeout=20)
        )
        assert (code, says in text) == (expected, True), text
    for path, body, status, says in (
        ("toy/infer", None, 405, "GET /v2/models/toy/infer: Method Not Allowed"),
        ("toy/versions/1/infer", None, 405, "Method Not Allowed"),
        ("toy", {}, 405, "Method Not Allowed"),
        ("no", None, 404, "model 'no' is not served."),
        ("no/ready", None, 404, "model 'no' is not served."),
        ("toy/versions/9", None, 404, "version 9 of model 'toy' is not served; 1, 2 is."),
        ("no/infer", {}, 404, "model 'no' is not served."),
        ("toy/versions/x/infer", {}, 404, "version 'x' is not a number."),
        ("toy/versions/9/infer", {}, 404, "version 9 of model 'toy'"),
        ("toy/stats", None, 404, "GET /v2/models/toy/stats: Not Found"),
    ):
        got, answer = server.rest(f"/v2/models/{path}", body)
        assert (got, says in answer["error"]) == (status, True), answer


def body(input_fields: dict[str, Any] | None = None, signature: str = "", **fields: Any) -> Any:
    """A body with other fields, and other fields of its input."""
    changed = json_of({"x": X}, signature)
    changed["inputs"][0] |= input_fields or {}
    return changed | fields


def binary(size: Any, **fields: Any) -> Any:
    """A body whose input is after JSON."""
    found = body({"parameters": {"binary_data_size": size}, **fields})
    if "data" not in fields:
        del found["inputs"][0]["data"]
    return found


@pytest.mark.parametrize(
    ("asked", "tail", "says"),
    [
        ([], b"", "the body is not a JSON object."),
        (body(inputs=None), b"", "the body has no field 'inputs', which is a list."),
        (body(inputs={}), b"", "the field 'inputs' of the body is not a list."),
        (body(inputs=[1]), b"", "inputs[0] is not an object."),
        (body(inputs=[{}]), b"", "inputs[0] has no field 'shape', which is a list."),
        (body(outputs=[1]), b"", "outputs[0] is not an object."),
        (body(outputs=[{}]), b"", "outputs[0] has no field 'name', which is a string."),
        (body(outputs=[{"name": "no"}]), b"", "has no output 'no'. It has y."),
        (body(id=7), b"", "the field 'id' of the body is not a string."),
        (body(parameters=[]), b"", "the field 'parameters' of the body is not an object."),
        (body(parameters={"signature_name": 1}), b"", "signature_name is 1, which is not a strin"),
        (
            body(parameters={"binary_data_output": 1}),
            b"",
            "'binary_data_output' of parameters is no",
        ),
        (body({"name": 1}), b"", "the field 'name' of inputs[0] is not a string."),
        (body({"datatype": "FLOAT"}), b"", "'x' has datatype 'FLOAT', and signature serving_def"),
        (body({"shape": [1.5, 8]}), b"", "inputs[0] has 1.5 in its shape, which is not an integer"),
        (body({"shape": [True, 8]}), b"", "inputs[0] has True in its shape"),
        (body({"shape": [float("nan")]}), b"", "inputs[0] has nan in its shape"),
        (body({"shape": [-1, 8]}), b"", "'x' has -1 in its shape"),
        (body({"shape": [0, 10**4000], "data": []}), b"", "'x' of shape [0, 1000"),
        (body({"shape": [2, 8]}), b"", "'x' has 8 values, and its shape [2, 8] has 16."),
        (body({"data": [["a"] * 8]}), b"", "'x' has strings, and the signature takes float32."),
        (body({"data": [[1], [1, 2]]}), b"", "'x' has rows of different lengths."),
        (body({"data": [1e39] * 8}), b"", "'x' has 1e+39, which is out of range"),
        (body({"data": {}}), b"", "'x' has values that are no numbers"),
        (json_of({"n": np.int32(1)} | {"x": X}, "slow"), b"", "has no input 'x'"),
        (
            {**json_of({"x": X}), "inputs": json_of({"x": X})["inputs"] * 2},
            b"",
            "'x' is given twice; give it once.",
        ),
        (body(), b"1234", "the body has 4 bytes after JSON and the inputs that have binary_data_s"),
        (binary(32, data=[1]), bytes(32), "one of 'data' and the parameter binary_data_size."),
        (body({"parameters": 1}), b"", "the field 'parameters' of inputs[0] is not an object."),
        (body({"data": None}), b"", "one of 'data' and the parameter binary_data_size."),
        (binary(32), bytes(31), "binary_data_size 32, and 31 bytes are left of the body after JS"),
        (binary(-1), bytes(31), "inputs[0] has binary_data_size -1"),
        (binary(10**30), bytes(31), f"inputs[0] has binary_data_size {10**30}"),
        (binary("32"), bytes(32), "'binary_data_size' of inputs[0] is not an integer."),
        (binary(31), bytes(31), "'x' has 31 bytes, and its shape [1, 8] of FP32 takes 32."),
        (binary(32), bytes(33), "the body has 1 bytes after JSON"),
    ],
)
def test_rest_says_what_is_wrong(server: Server, asked: Any, tail: bytes, says: str) -> None:
    status, answer, _ = post(server, asked, tail)
    assert (status, says in answer["error"]) == (400, True), answer


@pytest.mark.parametrize("length", ["x", "-1", "1e1", "9" * 30, "", "²", 1000])
def test_length_of_json_that_is_wrong_is_named(server: Server, length: Any) -> None:
    status, answer, _ = post(server, body(), length=length)
    assert status == 400
    assert (
        f"Inference-Header-Content-Length is {str(length)!r}, and the body has" in answer["error"]
    )


def test_strings_that_json_cannot_have_and_bodies_that_are_compressed(server: Server) -> None:
    given = {"name": "s", "datatype": "BYTES", "shape": [1]}
    asked = {
        "inputs": [{**given, "parameters": {"binary_data_size": 5}}],
        "parameters": {"signature_name": "text"},
    }
    status, answer, _ = post(server, asked, raw(np.array([b"\xff"], object)))
    assert status == 400 and "ask for it with the parameter binary_data" in answer["error"]
    status, answer, _ = post(server, body(), **{"Content-Encoding": "gzip"})
    assert status == 415 and "Content-Encoding 'gzip'; send it without" in answer["error"]


def test_what_is_broken_at_random_is_answered(server: Server, saved: Saved) -> None:
    draw = random.Random(0)
    infer = server.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    message = asked_for(values(), signature="echo").SerializeToString()
    head = json.dumps(binary(len(raw(X)))).encode()
    codes = set()

    def broken(data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(found))
            cut = draw.choice([b"", bytes([draw.randrange(256)]), b"\xff\xff", b"0", b"-"])
            found[at : at + draw.randint(0, 2)] = cut
        return bytes(found)

    for _ in range(MUTATIONS):
        try:
            infer(broken(message), timeout=20)
        except grpc.RpcError as error:
            codes.add(error.code())
            assert error.code() in (INVALID, NOT_FOUND, EXHAUSTED), error.details()
        status, answer, _ = post(server, broken(head), raw(X), len(head))
        assert status in (200, 400, 404, 413), answer
    assert INVALID in codes
    saved.check(server, 2)


EMPTY = 1000
MUCH = {
    "parameters": field(4, b"") * EMPTY,
    "inputs": field(5, b"") * EMPTY,
    "a shape": field(5, field(3, b"\1" * 8 * EMPTY)),
    "parameters of an input": field(5, field(4, b"") * EMPTY),
    "integers": field(5, field(5, field(2, b"\1" * 10 * EMPTY))),
    "long integers": field(5, field(5, field(3, b"\1" * 8 * EMPTY))),
    "strings": field(5, field(5, field(8, b"") * EMPTY)),
    "outputs": field(6, b"") * EMPTY,
    "parameters of an output": field(6, field(2, b"") * EMPTY),
    "raw contents": field(7, b"") * EMPTY,
}


@pytest.mark.parametrize("name", MUCH)
def test_message_that_would_take_much_is_refused(name: str) -> None:
    def walk(most: int) -> None:
        walked = grpc_guard._Walk(MUCH[name], most)
        walked.through(0, len(MUCH[name]), grpc_guard._REQUESTS["ModelInfer"])

    with pytest.raises(serving_error.ServingError, match="--max-request-mb"):
        walk(35 * EMPTY)
    walk(200 * EMPTY)


def test_inputs_are_bounded_together() -> None:
    strings = kserve_tensors.raw_values(bytes(4 * 10))
    names = ("a", "b")
    signature = types.SimpleNamespace(
        inputs=dict.fromkeys(names, tf.TensorSpec([None], tf.string)),
        check_names=lambda names: None,
    )
    inputs = [kserve_tensors.Input(name, "BYTES", [10], strings) for name in names]
    assert kserve_tensors.arrays_of(signature, inputs, 1600).keys() == set(names)
    with pytest.raises(serving_error.ServingError, match="input 'b' takes 800 bytes or more"):
        kserve_tensors.arrays_of(signature, inputs, 1599)


def test_requests_above_the_limit_are_refused(small_server: Server, saved: Saved) -> None:
    server = small_server
    code, text = failure(lambda: call(server, asked_for({"x": np.zeros([4096, 8], np.float32)})))
    assert code == EXHAUSTED and str(LIMIT) in text
    status, answer, _ = post(server, body(), bytes(LIMIT))
    assert status == 413 and f"limit of {LIMIT} bytes (--max-request-mb)" in answer["error"]
    # A string takes 80 bytes beside those that it has.
    says = "takes 160000 bytes or more, by its shape [2000], and all inputs of a request may "
    says += f"take {LIMIT} (--max-request-mb)"
    many = np.full([2000], b"", object)
    code, found = failure(lambda: call(server, asked_for({"s": many}, signature="text")))
    assert code == EXHAUSTED and says in found
    asked = json_of({"s": many}, "text")
    del asked["inputs"][0]["data"]
    asked["inputs"][0]["parameters"] = {"binary_data_size": 8000}
    status, answer, _ = post(server, asked, bytes(8000))
    assert status == 413 and says in answer["error"]
    status, answer = server.rest(INFER, json_of({"x": np.zeros([1000, 8])}, ""))
    assert status == 413 and "In JSON a number counts as 32 bytes" in answer["error"]
    saved.check(server, 1)


def forever(server: Server, timeout: float = 60) -> Any:
    """A call that does not end by itself."""
    asked = asked_for({"n": np.int32(FOREVER)}, signature="slow")
    return method(server).future(asked, timeout=timeout)


def test_full_queue_and_deadline(small_server: Server) -> None:
    server = small_server
    first = forever(server)
    until(server.running)
    asked = asked_for({"x": X})
    code, text = failure(lambda: call(server, asked, timeout=0.5))
    assert code == DEADLINE
    second = method(server).future(asked, timeout=60)
    until(lambda: server.total("model_server_calls_waiting") == 1)
    code, text = failure(lambda: call(server, asked))
    assert code == EXHAUSTED and "1 calls run (--threads) and 1 may wait (--queue)" in text
    status, answer, _ = post(server, body())
    assert status == 429 and "--queue" in answer["error"]
    first.cancel()
    assert second.result().raw_output_contents
    code, _ = failure(forever(server, 0.5).result)
    assert code == DEADLINE
    until(server.idle)
    assert server.calls("ModelInfer", "DEADLINE_EXCEEDED") >= 2


def test_server_that_stops_is_not_ready_and_refuses_calls(serve: Any) -> None:
    with serve("--call-timeout=3", "--grace=20") as server:
        asked = json_of({"n": np.int32(FOREVER)}, "slow")
        status, answer = server.rest(INFER, asked)
        assert status == 504 and "deadline" in answer["error"]
        until(server.idle)  # else this call is taken for the next one
        running = forever(server)
        until(server.running)
        stops = threading.Thread(target=server.stop, daemon=True)
        stops.start()
        ready = method(server, "ServerReady")
        until(lambda: not ready(service_pb2.ServerReadyRequest(), timeout=20).ready)
        assert method(server, "ServerLive")(service_pb2.ServerLiveRequest(), timeout=20).live
        of_model = service_pb2.ModelReadyRequest(name="toy")
        assert not method(server, "ModelReady")(of_model, timeout=20).ready
        code, text = failure(lambda: call(server, asked_for({"x": X})))
        assert code == UNAVAILABLE and "shutting down" in text
        for path in ("/v2/health/ready", "/v2/models/toy/ready"):
            status, answer = server.rest(path)
            assert status == 503 and "shutting down" in answer["error"]
        assert post(server, body())[0] == 503
        assert server.rest("/v2/health/live") == (200, {"live": True})
        assert running.code() == DEADLINE  # it was let run
        stops.join(60)
