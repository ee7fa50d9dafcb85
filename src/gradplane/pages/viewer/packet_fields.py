"""A frame as Scapy's layers show it, for a page."""

from __future__ import annotations

from typing import Any

_SHOWN = 64  # values of a list field


def layers(frame: bytes) -> list[dict[str, Any]]:
    """Return the layers of an Ethernet frame from the outside in: `name`, and `fields` as pairs of
    name and text."""
    from scapy.layers.l2 import Ether
    from scapy.packet import NoPayload

    from gradplane.hosts.scapy_layers import bind, compressed

    bind()
    packet, found = compressed(Ether(frame)), []
    while not isinstance(packet, NoPayload):
        fields = [[name, _text(packet, name)] for name in packet.fields]
        found.append({"name": packet.name, "fields": fields})
        packet = packet.payload
    return found


def _text(packet: Any, name: str) -> str:
    value = packet.getfieldval(name)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        more = f" ... {len(value):,} in all" if len(value) > _SHOWN else ""
        return " ".join(map(str, value[:_SHOWN])) + more
    return str(packet.get_field(name).i2repr(packet, value))
