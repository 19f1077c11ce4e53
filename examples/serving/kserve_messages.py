# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The messages of the Open Inference Protocol's gRPC service, made from a list of their fields.

The packages on PyPI that have them as generated code are clients, which bring packages that this
server does not need, and limit the versions of those that it does. The messages are in a pool of
their own: a program may import such a client, too.
"""

from made_messages import messages_of

SERVICE = "inference.GRPCInferenceService"

# That the original has some of them inside others makes no difference in bytes.
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
MESSAGES = messages_of("inference", _MESSAGES, one_of="InferParameter")
