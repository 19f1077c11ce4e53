# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The Open Inference Protocol's gRPC service, GRPCInferenceService."""

from collections.abc import Callable
from typing import Any

import grpc
import kserve_tensors
import numpy as np
import rest_json
from kserve_messages import MESSAGES, SERVICE
from kserve_tensors import DTYPES, SIGNATURE_PARAMETER, Input
from loaded_model import Arrays
from predict_calls import Call, Calls, version_number
from request_log import predict_messages
from serving_error import ServingError, invalid

# Values that are converted at once: other threads wait for Python's lock meanwhile.
_SLICE = 1 << 14
# The field of `contents` for a datatype. FP16 and BF16 have none.
_FIELDS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def add_to(server: grpc.aio.Server, calls: Calls, most_bytes: int) -> None:
    """Adds the service to a server; the inputs of a request may take `most_bytes`."""
    service = _Service(calls, most_bytes)
    methods = {
        "ServerLive": service.server_live,
        "ServerReady": service.server_ready,
        "ModelReady": service.model_ready,
        "ServerMetadata": service.server_metadata,
        "ModelMetadata": service.model_metadata,
        "ModelInfer": service.model_infer,
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            method,
            request_deserializer=MESSAGES[f"{name}Request"].FromString,
            response_serializer=MESSAGES[f"{name}Response"].SerializeToString,
        )
        for name, method in methods.items()
    }
    server.add_registered_method_handlers(SERVICE, handlers)


class _Service:
    """The methods. The guard of the server tells clients of a ServingError."""

    def __init__(self, calls: Calls, most_bytes: int) -> None:
        self._calls = calls
        self._most_bytes = most_bytes

    async def server_live(self, request: Any, context: Any) -> Any:
        return MESSAGES["ServerLiveResponse"](live=True)

    async def server_ready(self, request: Any, context: Any) -> Any:
        is_ready = _succeeds(self._calls.refuse_if_draining)
        return MESSAGES["ServerReadyResponse"](ready=is_ready)

    async def model_ready(self, request: Any, context: Any) -> Any:
        """Is false, and no error, for a model that is not there, as Triton's answer is."""
        is_ready = _succeeds(
            lambda: kserve_tensors.check_ready(
                self._calls, request.name, version_number(request.version)
            )
        )
        return MESSAGES["ModelReadyResponse"](ready=is_ready)

    async def server_metadata(self, request: Any, context: Any) -> Any:
        return MESSAGES["ServerMetadataResponse"](**kserve_tensors.server_metadata())

    async def model_metadata(self, request: Any, context: Any) -> Any:
        with self._calls.counted(request.name, "ModelMetadata"):
            model = self._calls.models.model(request.name)
            found = kserve_tensors.metadata(model, version_number(request.version))
            return MESSAGES["ModelMetadataResponse"](**found)

    async def model_infer(self, request: Any, context: Any) -> Any:
        def work(call: Call) -> Any:
            signature = call.loaded.signature(_signature_name(request))
            arrays = kserve_tensors.arrays_of(signature, _inputs(request), self._most_bytes)
            wanted = [output.name for output in request.outputs]
            chosen = signature.chosen(call.step(signature, arrays), wanted, "outputs")
            call.log("predict_log", lambda spec: predict_messages(spec, arrays, chosen, wanted))
            return _response(request, call, chosen)

        version, seconds = version_number(request.model_version), context.time_remaining()
        method, origin = "ModelInfer", self._calls.grpc_origin(context, SERVICE, "ModelInfer")
        return await self._calls.predict(request.model_name, version, work, seconds, method, origin)


def _succeeds(check: Callable[[], None]) -> bool:
    try:
        check()
    except ServingError:
        return False
    return True


def _signature_name(request: Any) -> str:
    given = request.parameters.get(SIGNATURE_PARAMETER)
    if given is None:
        return ""
    choice = given.WhichOneof("parameter_choice")
    return str(kserve_tensors.signature_name(choice and getattr(given, choice)))


def _inputs(request: Any) -> list[Input]:
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise invalid(
            f"the request has {len(raw)} raw_input_contents for {len(request.inputs)} inputs; "
            "give one for each input, in the order of the inputs."
        )
    found = []
    for i, given in enumerate(request.inputs):
        values = kserve_tensors.raw_values(raw[i]) if raw else _typed_values(given.contents)
        found.append(Input(given.name, given.datatype, given.shape, values))
        if raw and given.HasField("contents"):
            raise found[-1].error("has contents beside raw_input_contents; give one of them.")
    return found


def _typed_values(contents: Any) -> Callable[[Input, int], Any]:
    def values(given: Input, count: int) -> Any:
        field = _FIELDS.get(given.datatype)
        if field is None:
            raise given.error(
                f"is of {given.datatype}, which contents has no field for; give raw_input_contents."
            )
        for other, _ in contents.ListFields():
            if other.name != field:
                raise given.error(
                    f"of {given.datatype} has values in {other.name}; give them in {field}."
                )
        found = getattr(contents, field)
        if given.datatype == "BYTES":
            return np.array(list(found), object)
        dtype = DTYPES[given.datatype]
        parts = [
            rest_json.array_of(found[i : i + _SLICE], given.name, dtype)
            for i in range(0, max(1, len(found)), _SLICE)
        ]
        return np.concatenate(parts)

    return values


def _response(request: Any, call: Call, results: Arrays) -> Any:
    """The answer: in `contents` if the request's values are, and raw otherwise."""
    response = MESSAGES["ModelInferResponse"](
        model_name=request.model_name, model_version=str(call.number), id=request.id
    )
    outputs = [
        response.outputs.add(
            name=name, datatype=kserve_tensors.datatype_of(array.dtype), shape=array.shape
        )
        for name, array in results.items()
    ]
    typed = any(given.HasField("contents") for given in request.inputs)
    if typed and all(output.datatype in _FIELDS for output in outputs):
        for output, array in zip(outputs, results.values(), strict=True):
            field, flat = getattr(output.contents, _FIELDS[output.datatype]), array.reshape(-1)
            for i in range(0, len(flat), _SLICE):
                field.extend(flat[i : i + _SLICE].tolist())
    else:
        response.raw_output_contents.extend(map(kserve_tensors.raw_of, results.values()))
    return response
