"""The classes of BFRuntime's messages, made from a table of them, and its service's methods.

They are in a descriptor pool of their own, so that a program may import them beside the classes
that protoc makes of bfruntime.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

from gradplane._bfruntime_message_table import MESSAGES
from gradplane._p4runtime import rpc_status

PACKAGE = "bfrt_proto"
SERVICE = f"{PACKAGE}.BfRuntime"

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_Field, f"TYPE_{name.upper()}")
    for name in ("uint32", "uint64", "int32", "bool", "bytes", "string", "float")
}


class Method(NamedTuple):
    """An RPC: the names of its messages, and which of them are streams."""

    request: str
    response: str
    requests: bool = False
    responses: bool = False


METHODS: Mapping[str, Method] = {
    "Write": Method("WriteRequest", "WriteResponse"),
    "Read": Method("ReadRequest", "ReadResponse", responses=True),
    "SetForwardingPipelineConfig": Method(
        "SetForwardingPipelineConfigRequest", "SetForwardingPipelineConfigResponse"
    ),
    "GetForwardingPipelineConfig": Method(
        "GetForwardingPipelineConfigRequest", "GetForwardingPipelineConfigResponse"
    ),
    "StreamChannel": Method(
        "StreamMessageRequest", "StreamMessageResponse", requests=True, responses=True
    ),
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="bfruntime.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=[rpc_status.DESCRIPTOR.name],
    )
    known: dict[str, Any] = {}
    enums = {line.split()[1] for line in MESSAGES.splitlines() if line.startswith("enum ")}
    owner: Any = None
    for line in MESSAGES.strip().splitlines():
        words = line.split()
        if words[0] in ("message", "enum"):
            outer, _, name = words[1].rpartition(".")
            place = known[outer] if outer else file
            nested = "nested_type" if outer else "message_type"
            owner = known[words[1]] = getattr(
                place, "enum_type" if words[0] == "enum" else nested
            ).add(name=name)
        elif isinstance(owner, descriptor_pb2.EnumDescriptorProto):
            owner.value.add(number=int(words[0]), name=words[1])
        else:
            _add_field(owner, words, enums)
    return file


def _add_field(owner: Any, words: list[str], enums: set[str]) -> None:
    number, name, kind, *rest = words
    field = owner.field.add(number=int(number), name=name, label=_Field.LABEL_OPTIONAL)
    if kind.endswith("*"):
        kind = kind[:-1]
        field.label = _Field.LABEL_REPEATED
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
        field.type_name = f".{kind}" if kind.startswith("google.") else f".{PACKAGE}.{kind}"
    if rest:
        there = [oneof.name for oneof in owner.oneof_decl]
        if rest[1] not in there:
            owner.oneof_decl.add(name=rest[1])
            there.append(rest[1])
        field.oneof_index = there.index(rest[1])


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for there in (any_pb2.DESCRIPTOR, rpc_status.DESCRIPTOR):
        pool.AddSerializedFile(there.serialized_pb)
    pool.AddSerializedFile(_file().SerializeToString())
    names = [
        line.split()[1]
        for line in MESSAGES.splitlines()
        if line.startswith("message ") and "." not in line
    ]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in names
    }


_CLASSES = _classes()


def message(name: str) -> Any:
    """Return the class of a message, by its name in the protocol."""
    return _CLASSES[name]


WriteRequest = message("WriteRequest")
WriteResponse = message("WriteResponse")
ReadResponse = message("ReadResponse")
Update = message("Update")
Entity = message("Entity")
TableEntry = message("TableEntry")
StreamMessageRequest = message("StreamMessageRequest")
StreamMessageResponse = message("StreamMessageResponse")
SetForwardingPipelineConfigRequest = message("SetForwardingPipelineConfigRequest")
SetForwardingPipelineConfigResponse = message("SetForwardingPipelineConfigResponse")
GetForwardingPipelineConfigResponse = message("GetForwardingPipelineConfigResponse")
Error = message("Error")
