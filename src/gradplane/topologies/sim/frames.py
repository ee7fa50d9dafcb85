"""Ethernet frames of UDP datagrams, as a simulated host's network stack builds and checks them.

RFC 791 (IPv4), RFC 768 (UDP), RFC 1071 (checksum).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from gradplane.topologies.topology_errors import NetworkError

HEADERS = 42
"""Bytes before the payload: Ethernet 14, IPv4 20, UDP 8."""

MTU = 1500
TOS_AT = 15
"""Where IP's ToS byte is in a frame."""
_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_PSEUDO = struct.Struct("!4s4sBBH")
_TYPE_IPV4, _PROTOCOL_UDP, _DONT_FRAGMENT, _TTL = 0x0800, 17, 0x4000, 64


class FrameError(Exception):
    """A frame that a host's stack drops; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Address:
    """The source or destination of a datagram; mac as "00:00:00:00:00:01"."""

    mac: str
    ip: str
    port: int


@dataclass(frozen=True, slots=True)
class UdpDatagram:
    """A UDP datagram extracted from a frame."""

    source_ip: str
    source_port: int
    ip: str
    port: int
    payload: bytes
    tos: int = 0


def build(source: Address, to: Address, payload: bytes, tos: int = 0) -> bytes:
    """Build the frame of a datagram, with checksums. Raises NetworkError beyond the MTU."""
    check_size(len(payload))
    length = HEADERS - 14 + len(payload)
    source_ip, ip = socket.inet_aton(source.ip), socket.inet_aton(to.ip)
    fields = (0x45, tos, length, 0, _DONT_FRAGMENT, _TTL, _PROTOCOL_UDP)
    checksum = internet_checksum(_IPV4.pack(*fields, 0, source_ip, ip))
    size = 8 + len(payload)
    pseudo = _PSEUDO.pack(source_ip, ip, 0, _PROTOCOL_UDP, size)
    header = _UDP.pack(source.port, to.port, size, 0)
    # 0 on the wire would mean that there is none.
    udp_checksum = internet_checksum(pseudo + header + payload) or 0xFFFF
    return b"".join(
        (
            _ETHERNET.pack(_mac(to.mac), _mac(source.mac), _TYPE_IPV4),
            _IPV4.pack(*fields, checksum, source_ip, ip),
            _UDP.pack(source.port, to.port, size, udp_checksum),
            payload,
        )
    )


def check_size(payload: int) -> None:
    """Raise NetworkError for a datagram with so many bytes if it is beyond the MTU."""
    length = HEADERS - 14 + payload
    if length > MTU:
        raise NetworkError(
            f"a datagram of {payload} bytes makes an IP packet of {length}: the MTU is {MTU},"
            f" send {MTU - HEADERS + 14} bytes or fewer"
        )


def parse(frame: bytes, mac: str) -> UdpDatagram:
    """Extract the datagram for the host with that MAC. Raises FrameError for any other frame."""
    if len(frame) < HEADERS:
        raise FrameError(f"{len(frame)} bytes are shorter than the headers")
    destination, _, ethertype = _ETHERNET.unpack_from(frame)
    if destination != _mac(mac):
        raise FrameError(f"for {destination.hex(':')}, not for {mac}")
    if ethertype != _TYPE_IPV4:
        raise FrameError(f"EtherType {ethertype:#06x} is not IPv4")
    return _parse_ip(frame[14:])


def _parse_ip(packet: bytes) -> UdpDatagram:
    first, tos, length, _, fragment, _, protocol, _, source, destination = _IPV4.unpack_from(packet)
    size = (first & 15) * 4
    if first >> 4 != 4 or not 20 <= size <= length - 8 or length > len(packet):
        raise FrameError(f"IP version and header length {first:#04x}, total length {length}")
    if internet_checksum(packet[:size]) != 0:
        raise FrameError("the IP header's checksum is wrong")
    if fragment & ~_DONT_FRAGMENT or protocol != _PROTOCOL_UDP:
        raise FrameError(f"a fragment ({fragment:#06x}), or protocol {protocol} is not UDP")
    source_port, port, udp_length, checksum = _UDP.unpack_from(packet, size)
    datagram = packet[size:length]
    if not 8 <= udp_length <= len(datagram):
        raise FrameError(f"UDP length {udp_length} in {len(datagram)} bytes")
    datagram = datagram[:udp_length]
    pseudo = _PSEUDO.pack(source, destination, 0, _PROTOCOL_UDP, udp_length)
    if checksum and internet_checksum(pseudo + datagram) != 0:
        raise FrameError("the UDP checksum is wrong")
    addresses = socket.inet_ntoa(source), source_port, socket.inet_ntoa(destination), port
    return UdpDatagram(*addresses, datagram[8:], tos)


def internet_checksum(data: bytes) -> int:
    """Return the one's complement of the 16-bit one's complement sum.

    0 over data with its checksum.
    """
    if len(data) & 1:
        data += b"\0"
    # 2**16 is 1 modulo 2**16 - 1, so the sum of the words is the number itself.
    total = int.from_bytes(data, "big")
    return 0xFFFF - (total % 0xFFFF or (0xFFFF if total else 0))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
