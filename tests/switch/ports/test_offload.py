"""Open checksums are completed as a network card would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from gradplane.switch.ports.offload import VNET_HEADER, without_header

PLAIN = VNET_HEADER.pack(0, 0, 0, 0, 0, 0)


def test_a_complete_packet_is_left_alone() -> None:
    assert without_header(PLAIN + b"packet") == b"packet"


@pytest.mark.parametrize(("layer", "offset"), [(UDP, 6), (TCP, 16)])
@given(payload=st.binary(max_size=60))
def test_an_open_checksum_is_filled_in(layer: type, offset: int, payload: bytes) -> None:
    packet = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / layer() / payload
    right = bytes(packet)
    transport = right[34:]
    pseudo = right[26:34] + bytes([0, right[23]]) + len(transport).to_bytes(2, "big")
    words = [int.from_bytes(pseudo[i : i + 2], "big") for i in range(0, len(pseudo), 2)]
    folded = sum(words)
    while folded >> 16:
        folded = (folded & 0xFFFF) + (folded >> 16)
    place = 34 + offset
    opened = right[:place] + folded.to_bytes(2, "big") + right[place + 2 :]
    header = VNET_HEADER.pack(1, 0, 0, 0, 34, offset)
    assert without_header(header + opened) == right


@given(st.binary(min_size=VNET_HEADER.size, max_size=80))
def test_no_header_from_outside_breaks_it(data: bytes) -> None:
    assert len(without_header(data)) == len(data) - VNET_HEADER.size
