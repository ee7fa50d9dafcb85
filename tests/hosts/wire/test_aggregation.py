import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.codecs import CODE_WIDTHS, SUM_WIDTHS
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type, WireError

HEADERS = st.builds(
    Header,
    type=st.sampled_from(Type),
    job=st.integers(0, 255),
    worker=st.integers(0, 255),
    slot=st.integers(0, 2**16 - 1),
    round=st.integers(0, 2**32 - 1),
    sum_bits=st.sampled_from([8, 16, 32]),
    norm=st.integers(0, 2**32 - 1),
    bitmap=st.integers(0, 2**64 - 1),
    flags=st.integers(0, 255),
    passed=st.integers(0, 255),
    count=st.integers(0, 2**16 - 1),
    epoch=st.integers(0, 255),
    code_bits=st.sampled_from(CODE_WIDTHS),
)


def test_header_bytes_as_in_the_design():
    fields = (0x0A, 0x0B, 0x1122, 0x33445566, 8, 0x3FC00000, 0x0102030405060708, 3)
    header = Header(Type.SUMS, *fields, count=0x0C0D, epoch=0x0E)
    assert header.pack().hex(" ") == (
        "24 03 0a 0b 11 22 00 08 33 44 55 66 01 02 03 04 05 06 07 08 3f c0 00 00 0c 0d 0e 04 ce 37"
    )


@given(HEADERS, st.integers(0, 8 * aggregation.HEADER_SIZE - 1))
def test_a_flipped_bit_is_noticed(header, bit):
    packed = bytearray(header.pack())
    packed[bit // 8] ^= 1 << bit % 8
    body = bytes(aggregation.body_size(header.type, header.sum_bits, header.code_bits))
    damaged = "checksum is wrong|the header alone takes"  # a flipped type may have a longer header
    with pytest.raises(WireError, match="^version" if bit in (4, 5, 6, 7) else damaged):
        aggregation.parse(bytes(packed) + body)


@pytest.mark.parametrize(
    "round, other, expected",
    [(5, 3, 2), (3, 5, -2), (0, 2**32 - 1, 1), (2**32 - 1, 0, -1), (2**31, 0, -(2**31)), (7, 7, 0)],
)
def test_rounds_compare_as_serial_numbers(round, other, expected):
    assert aggregation.ahead(round, other) == expected


def test_rounds_count_modulo_2_to_the_32():
    slots = 4
    last = (2**32 - 2) * slots + 3
    assert aggregation.place(last, slots) == (3, 2**32 - 1)
    assert aggregation.place(last + 1, slots) == (0, 0)


@given(HEADERS)
def test_parse_inverts_pack(header):
    header = replace(header, flags=header.flags & ~aggregation.REPEATS)
    widths = header.sum_bits, header.code_bits
    body = bytes(aggregation.body_size(header.type, *widths, header.flags))
    assert aggregation.parse(header.pack() + body) == (header, body)


def right(header):
    """Return a header with the checksum that its other bytes have."""
    return header[:28] + aggregation.checksum(header).to_bytes(2, "big")


@pytest.mark.parametrize(
    "payload, message",
    [
        (b"", "0 bytes, the header alone takes 30"),
        (b"\x21" + bytes(28), "29 bytes, the header alone takes 30"),
        (b"\x11" + bytes(23), "version 1, known is 2"),
        (right(b"\x20" + bytes(29)), "type 0, known are 1 to 9"),
        (right(b"\x2a" + bytes(29)), "type 10, known are 1 to 9"),
        (right(b"\x21" + bytes(29)), "sum_bits 0, known are 8, 16, 32"),
        (Header(Type.NORM, 0, 0, 0, 1, 8, code_bits=3).pack(), "code_bits 3, known are 1, 2, 4, 8"),
        (
            Header(Type.NORM, 0, 0, 0, 1, 8).pack() + b"x",
            "NORM: 1 bytes after the header, expected 0",
        ),
        (
            Header(Type.INDICES, 0, 0, 0, 1, 8).pack() + bytes(511),
            "INDICES: 511 bytes after the header, expected 512",
        ),
        (
            Header(Type.INDICES, 0, 0, 0, 1, 16).pack() + bytes(512),
            "INDICES: 512 bytes after the header, expected 256",
        ),
        (
            Header(Type.INDICES, 0, 0, 0, 1, 8, code_bits=1).pack() + bytes(512),
            "INDICES: 512 bytes after the header, expected 128",
        ),
        (
            Header(Type.SUMS, 0, 0, 0, 1, 16).pack(),
            "SUMS: 0 bytes after the header, expected 1024",
        ),
    ],
)
def test_what_is_no_packet(payload, message):
    with pytest.raises(WireError, match=f"^{re.escape(message)}$"):
        aggregation.parse(payload)


def test_field_that_does_not_fit():
    with pytest.raises(WireError, match="job=256"):
        Header(Type.NORM, 256, 0, 0, 1, 8).pack()


@given(st.sampled_from(SUM_WIDTHS), st.sampled_from(CODE_WIDTHS), st.data())
def test_unpacked_indices_are_those_that_were_packed(sum_bits, code_bits, data):
    lanes = 8192 // sum_bits
    numbers = st.lists(st.integers(0, 2**code_bits - 1), max_size=lanes)
    indices = np.array(data.draw(numbers), np.uint8)
    body = aggregation.pack_indices(indices, sum_bits, code_bits)
    assert len(body) == lanes * code_bits // 8
    found = aggregation.unpack_indices(body, code_bits)
    assert np.array_equal(found[: indices.size], indices) and not found[indices.size :].any()


@pytest.mark.parametrize("code_bits, first", [(1, "65"), (2, "1b"), (4, "0123"), (8, "00010203")])
def test_the_first_index_is_in_the_high_bits(code_bits, first):
    indices = np.array([0, 1, 2, 3] if code_bits > 1 else [0, 1, 1, 0, 0, 1, 0, 1], np.uint8)
    assert aggregation.pack_indices(indices, 16, code_bits).hex().startswith(first)


def test_sums_are_in_network_order():
    sums = np.arange(512) + 300
    body = aggregation.pack_sums(sums, 16)
    assert body[:4] == struct.pack(">HH", 300, 301)
    assert aggregation.unpack_sums(body, 16).tolist() == sums.tolist()
    assert aggregation.unpack_sums(bytes(range(256)) * 4, 8)[255] == 255


@given(st.floats(0, width=32), st.floats(0, width=32))
def test_norms_compare_as_their_bits(a, b):
    if b > 0 or a > 0:  # -0.0 and 0.0
        assert (abs(a) < abs(b)) == (aggregation.norm_bits(abs(a)) < aggregation.norm_bits(abs(b)))
    assert aggregation.norm_value(aggregation.norm_bits(a)) == np.float32(a)


@pytest.mark.parametrize(
    "norm, usable",
    [(0.0, True), (1e-45, True), (3.4e38, True), (-0.0, False), (-1.0, False)]
    + [(float("inf"), False), (float("nan"), False)],
)
def test_usable_norms(norm, usable):
    assert aggregation.is_norm(aggregation.norm_bits(norm)) == usable
