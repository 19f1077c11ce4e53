# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The messages of the Open Inference Protocol's gRPC service, made from a list of their fields.

The packages on PyPI that have them as generated code are clients, which bring packages that this
server does not need, and limit the versions of those that it does. The messages are in a pool of
their own: a program may import such a client, too.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "inference.GRPCInferenceService"

# A message in each line, its fields as `name:type=number`; `*` stands for a repeated field, `^` for
# a map from strings. That the original has some of them inside others makes no difference in bytes.
_MESSAGES = """
ServerLiveRequest
ServerLiveResponse live:bool=1
ServerReadyRequest
ServerReadyResponse ready:bool=1
ModelReadyRequest name:string=1 version:string=2
ModelReadyResponse ready:bool=1
ServerMetadataRequest
ServerMetadataResponse name:string=1 version:string=2 extensions:string*=3
ModelMetadataRequest name:string=1 version:string=2
TensorMetadata name:string=1 datatype:string=2 shape:int64*=3
ModelMetadataResponse name:string=1 versions:string*=2 platform:string=3 \
inputs:TensorMetadata*=4 outputs:TensorMetadata*=5
InferParameter bool_param:bool=1 int64_param:int64=2 string_param:string=3 double_param:double=4 \
uint64_param:uint64=5
InferTensorContents bool_contents:bool*=1 int_contents:int32*=2 int64_contents:int64*=3 \
uint_contents:uint32*=4 uint64_contents:uint64*=5 fp32_contents:float*=6 fp64_contents:double*=7 \
bytes_contents:bytes*=8
InferInputTensor name:string=1 datatype:string=2 shape:int64*=3 parameters:InferParameter^=4 \
contents:InferTensorContents=5
InferRequestedOutputTensor name:string=1 parameters:InferParameter^=2
ModelInferRequest model_name:string=1 model_version:string=2 id:string=3 \
parameters:InferParameter^=4 inputs:InferInputTensor*=5 outputs:InferRequestedOutputTensor*=6 \
raw_input_contents:bytes*=7
InferOutputTensor name:string=1 datatype:string=2 shape:int64*=3 parameters:InferParameter^=4 \
contents:InferTensorContents=5
ModelInferResponse model_name:string=1 model_version:string=2 id:string=3 \
parameters:InferParameter^=4 outputs:InferOutputTensor*=5 raw_output_contents:bytes*=6
"""
_ONE_OF = "InferParameter"  # has one of its fields

_Field = descriptor_pb2.FieldDescriptorProto


def _add_field(message: Any, text: str, number: int) -> None:
    name, _, kind = text.partition(":")
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind[-1] in "*^":
        field.label = _Field.LABEL_REPEATED
    if kind[-1] == "^":
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key:string", 1)
        _add_field(entry, f"value:{kind[:-1]}", 2)
        kind = f"{message.name}.{entry.name}"
    kind = kind.rstrip("*")
    if kind[0].isupper():
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".inference.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="open_inference_protocol.proto", package="inference", syntax="proto3"
    )
    for line in _MESSAGES.strip().splitlines():
        name, *fields = line.split()
        message = file.message_type.add(name=name)
        for field in fields:
            text, _, number = field.partition("=")
            _add_field(message, text, int(number))
        if name == _ONE_OF:
            message.oneof_decl.add(name="parameter_choice")
            for one in message.field:
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"inference.{message.name}")
        )
        for message in file.message_type
    }


MESSAGES = _classes()
