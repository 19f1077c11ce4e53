# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Protobuf messages that no package has as generated code, made from a list of their fields."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto


def _add_field(package: str, message: Any, text: str, number: int) -> None:
    name, _, kind = text.partition(":")
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind[-1] in "*^":
        field.label = _Field.LABEL_REPEATED
    if kind[-1] == "^":
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(package, entry, "key:string", 1)
        _add_field(package, entry, f"value:{kind[:-1]}", 2)
        kind = f"{message.name}.{entry.name}"
    kind = kind.rstrip("*")
    if kind[0].isupper():
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


def messages_of(package: str, text: str, one_of: str = "") -> dict[str, Any]:
    """The classes of messages, by name, in a pool of their own.

    Args:
      package: of the messages; generated code may have the same one.
      text: a message in each line, its fields as `name:type=number`; `*` stands for a repeated
        field, `^` for a map from strings.
      one_of: the message that has one of its fields, its `parameter_choice`.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    for line in text.strip().splitlines():
        name, *fields = line.split()
        message = file.message_type.add(name=name)
        for field in fields:
            declared, _, number = field.partition("=")
            _add_field(package, message, declared, int(number))
        if name == one_of:
            message.oneof_decl.add(name="parameter_choice")
            for one in message.field:
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{package}.{message.name}")
        )
        for message in file.message_type
    }
