"""Undo offloads: a switch must see packets as they are on the wire.

On the switch's interfaces, offloads are switched off (SIOCETHTOOL). A sender at the other end of a
veth link may still leave a checksum open, since it is never computed on a link inside one machine;
the kernel says so in a virtio_net_hdr before the packet, and `complete` computes it
(linux/virtio_net.h).
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct

import numpy as np

_SIOCETHTOOL = 0x8946
# linux/ethtool.h: commands that set one feature to 0 or 1.
_SWITCHES = {"tx checksum": 0x17, "scatter-gather": 0x19, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}

VNET_HEADER = struct.Struct("=BBHHHH")  # flags, gso type, header, gso size, sum start, sum offset
NEEDS_CHECKSUM = 1


def switch_off(interface: str) -> list[str]:
    """Switch offloads off; return the names of those that the driver refuses to switch off."""
    refused = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in _SWITCHES.items():
            value = array.array("B", struct.pack("=II", command, 0))
            address, _ = value.buffer_info()
            request = struct.pack("16sP16x", interface.encode(), address)
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError:
                refused.append(name)
    return refused


def complete_open(received: memoryview) -> None:
    """Compute the checksum that its sender left open, in a packet after its virtio_net_hdr."""
    _, _, _, _, start, offset = VNET_HEADER.unpack_from(received)
    complete(received[VNET_HEADER.size :], start, offset)


def complete(packet: memoryview, start: int, offset: int) -> None:
    """Compute a packet's open Internet checksum.

    The sum runs from byte `start` to the end; the checksum is `offset` bytes after `start` and
    holds the pseudo-header's sum.
    """
    place = start + offset
    if place + 2 > len(packet):
        return
    even = len(packet) - (len(packet) - start) % 2
    total = int(np.frombuffer(packet[start:even], dtype=">u2").sum(dtype=np.uint64))
    if even < len(packet):
        total += packet[even] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = ~total & 0xFFFF or 0xFFFF  # a UDP checksum of 0 would mean "none"
    packet[place : place + 2] = checksum.to_bytes(2, "big")
