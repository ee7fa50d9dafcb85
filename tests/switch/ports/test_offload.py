"""Open checksums are completed as a network card would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from gradplane.switch.ports.offload import complete


def completed(packet: bytes, start: int, offset: int) -> bytes:
    memory = bytearray(packet)
    complete(memoryview(memory), start, offset)
    return bytes(memory)


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
    assert completed(opened, 34, offset) == right


@given(st.binary(max_size=80), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_no_header_from_outside_breaks_it(packet: bytes, start: int, offset: int) -> None:
    assert len(completed(packet, start, offset)) == len(packet)
