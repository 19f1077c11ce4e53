# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fields about stream groups in TensorFlow's Python protocol buffers, which lack them.

`RewriterConfig` gets `use_multi_stream` and `multi_stream_opts`, with the names of DeepRec
(https://github.com/DeepRec-AI/DeepRec, rewriter_config.proto) but other field numbers, since
TensorFlow uses DeepRec's numbers for other fields; `GPUOptions` gets `cuda_graph_enable_jit`
likewise. TensorFlow's C++ messages keep these as unknown fields, where the runtime reads them;
`message_fields.h` has the same numbers.

`rewriter_config_pb2` and `config_pb2` import this module instead of
`google.protobuf.descriptor_pool`.
"""

from google.protobuf import descriptor_pb2, descriptor_pool

# Field numbers in RewriterConfig.
USE_MULTI_STREAM = 7301
MULTI_STREAM_OPTS = 7302
# Field number in GPUOptions.
CUDA_GRAPH_ENABLE_JIT = 7303

# Values of MultiStreamPartitionPolicy, from 0. DeepRec does not have the last one.
POLICIES = (
    "NO_PARTITION",
    "USER_DEFINED_PARTITION",
    "EMBEDDING_GRAPH_PARTITION",
    "FULL_GRAPH_PARTITION",
    "COST_PARTITION",
)

_Field = descriptor_pb2.FieldDescriptorProto


class _Pool:
    """Stands for protobuf's default pool, and adds our fields to a file of messages."""

    def AddSerializedFile(self, serialized: bytes) -> object:  # noqa: N802  protobuf's name
        """Adds a serialized `FileDescriptorProto`, with our fields, to the default pool."""
        file = descriptor_pb2.FileDescriptorProto.FromString(serialized)
        _add_fields(file)
        return descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


def Default() -> _Pool:  # noqa: N802  protobuf's name
    """Stands for `descriptor_pool.Default`: a pool for one file."""
    return _Pool()


def _add_fields(file: descriptor_pb2.FileDescriptorProto) -> None:
    for message in file.message_type:
        if message.name == "RewriterConfig":
            _add_rewriter_fields(file, message)
            break
        if message.name == "GPUOptions":
            message.field.add(
                name="cuda_graph_enable_jit",
                number=CUDA_GRAPH_ENABLE_JIT,
                type=_Field.TYPE_BOOL,
                label=_Field.LABEL_OPTIONAL,
            )


def _add_rewriter_fields(
    file: descriptor_pb2.FileDescriptorProto, rewriter: descriptor_pb2.DescriptorProto
) -> None:
    package = f".{file.package}"
    policies = file.enum_type.add(name="MultiStreamPartitionPolicy")
    for number, name in enumerate(POLICIES):
        policies.value.add(name=name, number=number)
    options = file.message_type.add(name="MultiStreamOptions")
    # proto3 `optional`: tells an explicit 0, which is an error, from unset.
    options.oneof_decl.add(name="_multi_stream_num")
    options.field.add(
        name="multi_stream_num",
        number=1,
        type=_Field.TYPE_INT32,
        label=_Field.LABEL_OPTIONAL,
        proto3_optional=True,
        oneof_index=0,
    )
    options.field.add(
        name="partition_policy",
        number=2,
        type=_Field.TYPE_ENUM,
        type_name=f"{package}.MultiStreamPartitionPolicy",
        label=_Field.LABEL_OPTIONAL,
    )
    rewriter.field.add(
        name="use_multi_stream",
        number=USE_MULTI_STREAM,
        type=_Field.TYPE_ENUM,
        type_name=f"{package}.RewriterConfig.Toggle",
        label=_Field.LABEL_OPTIONAL,
    )
    rewriter.field.add(
        name="multi_stream_opts",
        number=MULTI_STREAM_OPTS,
        type=_Field.TYPE_MESSAGE,
        type_name=f"{package}.MultiStreamOptions",
        label=_Field.LABEL_OPTIONAL,
    )
