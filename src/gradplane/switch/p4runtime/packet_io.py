"""Packet-in and packet-out: controller headers between messages and the CPU port."""

from __future__ import annotations

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import Catalog, HeaderInfo, Value
from gradplane.switch.p4runtime.status_errors import RpcError

_NO_HEADER = HeaderInfo("", ())


def packet_out_bytes(catalog: Catalog, message: p4r.PacketOut) -> bytes:
    """Return the packet to give to the CPU port: the packet_out header and the payload."""
    header = catalog.headers.get("packet_out", _NO_HEADER)
    given: dict[int, bytes] = {}
    known = {f.id: f for f in header.fields if f.id}
    for item in message.metadata:
        if item.metadata_id not in known or item.metadata_id in given:
            there = ", ".join(f"{f.name} ({f.id})" for f in known.values()) or "none"
            what = "is given twice" if item.metadata_id in given else "is not known"
            raise RpcError(
                "INVALID_ARGUMENT",
                f"packet_out: metadata {item.metadata_id} {what}; there are: {there}",
            )
        given[item.metadata_id] = item.value
    missing = [f.name for f in known.values() if f.id not in given]
    if missing:
        raise RpcError("INVALID_ARGUMENT", f"packet_out: metadata missing: {', '.join(missing)}")
    bits = 0
    for f in header.fields:
        bits = bits << f.width | (_value(f, given[f.id]) if f.id else 0)
    padding = header.size * 8 - sum(f.width for f in header.fields)
    return (bits << padding).to_bytes(header.size, "big") + message.payload


def _value(field: Value, data: bytes) -> int:
    """Decode a metadata value.

    Any error means that it does not match the P4Info: INVALID_ARGUMENT.
    """
    try:
        return field.read(data, f"packet_out: metadata {field.name}")
    except RpcError as error:
        raise RpcError("INVALID_ARGUMENT", error.message) from error


def packet_in_message(catalog: Catalog, packet: bytes) -> p4r.PacketIn:
    """Return the message of a packet that left through the CPU port.

    A packet too short for the packet_in header is sent without metadata.
    """
    header = catalog.headers.get("packet_in", _NO_HEADER)
    if len(packet) < header.size:
        return p4r.PacketIn(payload=packet)
    message = p4r.PacketIn(payload=packet[header.size :])
    bits, left = int.from_bytes(packet[: header.size], "big"), header.size * 8
    for f in header.fields:
        left -= f.width
        if f.id:
            value = bits >> left & ((1 << f.width) - 1)
            message.metadata.add(metadata_id=f.id, value=f.show(value))
    return message
