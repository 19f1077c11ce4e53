# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The Open Inference Protocol's REST paths, with its extension for binary tensors.

A body is JSON. With the header Inference-Header-Content-Length, in requests and in answers, JSON
has that many bytes, and after it are the bytes of the tensors that have `binary_data_size`.
"""

import functools
import json
from collections.abc import Callable
from typing import Any

import kserve_tensors
import numpy as np
from kserve_tensors import DTYPES, SIGNATURE_PARAMETER, Input
from predict_calls import Call
from request_log import predict_messages
from rest_calls import RestCalls, answered, json_response, version_of
from rest_json import array_of, object_of, text_of
from serving_error import invalid
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_LENGTH = "Inference-Header-Content-Length"
_WORDS = {str: "a string", list: "a list", dict: "an object", int: "an integer", bool: "a boolean"}


def routes(rest_calls: RestCalls) -> list[Route]:
    """The paths of the protocol."""
    calls = rest_calls.calls

    async def live(request: Request) -> Response:
        return json_response({"live": True})

    async def ready(request: Request) -> Response:
        calls.refuse_if_draining()
        return json_response({"ready": True})

    async def server(request: Request) -> Response:
        return json_response(kserve_tensors.server_metadata())

    async def model_ready(request: Request) -> Response:
        name = request.path_params["name"]
        kserve_tensors.check_ready(calls, name, version_of(request))
        return json_response({"name": name, "ready": True})

    async def metadata(request: Request) -> Response:
        name = request.path_params["name"]
        with calls.counted(name, "ModelMetadata"):
            model = calls.models.model(name)
            return json_response(kserve_tensors.metadata(model, version_of(request)))

    async def infer(request: Request) -> Response:
        work = functools.partial(_infer, request.path_params["name"], request.headers.get(_LENGTH))
        return await rest_calls.infer(request, "ModelInfer", work)

    model = "/v2/models/{name}"
    found = [("/v2", server), ("/v2/health/live", live), ("/v2/health/ready", ready)]
    for path in (model, f"{model}/versions/{{version}}"):
        found += [(path, metadata), (f"{path}/ready", model_ready), (f"{path}/infer", infer)]
    return [
        Route(path, answered(handler), methods=["POST" if handler is infer else "GET"])
        for path, handler in found
    ]


def _infer(
    model: str, header_length: str | None, body: bytes, most_bytes: int, call: Call
) -> Response:
    asked = _Request(header_length, body, most_bytes)
    signature = call.loaded.signature(asked.signature)
    arrays = kserve_tensors.arrays_of(signature, asked.inputs, most_bytes)
    chosen = signature.chosen(call.step(signature, arrays), asked.outputs, "outputs")
    call.log("predict_log", lambda spec: predict_messages(spec, arrays, chosen, [*asked.outputs]))
    outputs, parts = [], []
    for name, array in chosen.items():
        fields = {
            "name": name,
            "datatype": kserve_tensors.datatype_of(array.dtype),
            "shape": array.shape,
        }
        if asked.outputs.get(name, asked.all_binary):
            parts.append(kserve_tensors.raw_of(array))
            fields["parameters"] = {"binary_data_size": len(parts[-1])}
            outputs.append(json.dumps(fields))
        else:
            outputs.append(f'{json.dumps(fields)[:-1]}, "data": {_data_of(array, name)}}}')
    said = {"model_name": model, "model_version": str(call.number), **asked.id}
    head = f'{json.dumps(said)[:-1]}, "outputs": [{", ".join(outputs)}]}}'.encode()
    if not parts:
        return Response(head, media_type="application/json")
    return Response(
        b"".join((head, *parts)),
        media_type="application/octet-stream",
        headers={_LENGTH: str(len(head))},
    )


def _data_of(array: Any, name: str) -> str:
    """JSON of an array's values, without its shape."""
    flat = array.reshape(-1)
    if array.dtype.kind == "O":
        try:
            flat = np.array([value.decode() for value in flat], object)
        except UnicodeDecodeError:
            raise invalid(
                f"output {name!r} has bytes that are not UTF-8, which JSON cannot have; ask for "
                "it with the parameter binary_data."
            ) from None
    return str(text_of({"": flat}))


class _Request:
    """The body of a request; ServingError if it is wrong.

    `inputs` has its inputs, `outputs` the outputs that it names, and whether each is to be binary.
    """

    def __init__(self, header_length: str | None, body: bytes, most_bytes: int) -> None:
        length = _header_length(header_length, len(body))
        self._left = memoryview(body)[length:]
        fields = object_of(body[:length], most_bytes)
        given_id = _field(fields, "id", str, "the body", "")
        self.id = {"id": given_id} if given_id else {}
        parameters = _parameters(fields, "the body")
        self.signature = kserve_tensors.signature_name(parameters.get(SIGNATURE_PARAMETER, ""))
        self.all_binary = _field(parameters, "binary_data_output", bool, "parameters", False)
        self.inputs = [
            self._input(given, f"inputs[{i}]")
            for i, given in enumerate(_field(fields, "inputs", list, "the body"))
        ]
        if self._left:
            raise invalid(
                f"the body has {len(self._left)} bytes after JSON and the inputs that have "
                "binary_data_size."
            )
        self.outputs: dict[str, bool] = {}
        for i, given in enumerate(_field(fields, "outputs", list, "the body", [])):
            where = f"outputs[{i}]"
            binary = _parameters(given, where)
            name = _field(given, "name", str, where)
            self.outputs[name] = _field(binary, "binary_data", bool, where, self.all_binary)

    def _input(self, given: Any, where: str) -> Input:
        parameters = _parameters(given, where)
        shape = _field(given, "shape", list, where)
        wrong = [size for size in shape if type(size) is not int]
        if wrong:
            raise invalid(f"{where} has {wrong[0]!r} in its shape, which is not an integer.")
        data, size = given.get("data"), parameters.get("binary_data_size")
        if (data is None) == (size is None):
            raise invalid(f"{where} has to have one of 'data' and the parameter binary_data_size.")
        values = _json_values(data)
        if size is not None:
            if not 0 <= _field(parameters, "binary_data_size", int, where) <= len(self._left):
                raise invalid(
                    f"{where} has binary_data_size {size}, and {len(self._left)} bytes are left "
                    f"of the body after JSON ({_LENGTH}) and the inputs before."
                )
            values = kserve_tensors.raw_values(self._left[:size])
            self._left = self._left[size:]
        name, datatype = (_field(given, field, str, where) for field in ("name", "datatype"))
        return Input(name, datatype, shape, values)


def _json_values(data: Any) -> Callable[[Input, int], Any]:
    """The `values` of an input in JSON, a list without or with lists for the dimensions."""
    return lambda given, _: array_of(data, given.name, DTYPES[given.datatype]).reshape(-1)


def _header_length(given: str | None, most: int) -> int:
    if given is None:
        return most
    if not (given.isascii() and given.isdigit() and len(given) < 19 and int(given) <= most):
        raise invalid(
            f"{_LENGTH} is {given[:50]!r}, and the body has {most} bytes, of which it is to say "
            "how many are JSON."
        )
    return int(given)


def _parameters(fields: Any, where: str) -> dict[str, Any]:
    if not isinstance(fields, dict):
        raise invalid(f"{where} is not an object.")
    found: dict[str, Any] = _field(fields, "parameters", dict, where, {})
    return found


def _field(fields: dict[str, Any], name: str, kind: type, where: str, default: Any = None) -> Any:
    """A field of a kind; ServingError for another, or for none if there is no default.

    Clients of MLServer send null for fields that they leave out.
    """
    value = fields.get(name)
    value = default if value is None else value
    if type(value) is not kind:
        if value is None:
            raise invalid(f"{where} has no field {name!r}, which is {_WORDS[kind]}.")
        raise invalid(f"the field {name!r} of {where} is not {_WORDS[kind]}.")
    return value
