"""Bit strings: what is accepted, what is sent, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.catalog import Value
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.translations import Translation

widths = st.integers(1, 300)


@pytest.mark.p4runtime("8.3-1")
@given(st.data(), widths, st.integers(0, 3))
def test_unsigned_values_come_back_in_their_shortest_form(
    data: st.DataObject, width: int, zeros: int
) -> None:
    value = data.draw(st.integers(0, (1 << width) - 1))
    sent = to_bytes(value, width)
    assert from_bytes(b"\0" * zeros + sent, width, "t") == value
    assert len(sent) == 1 or sent[0] != 0


@pytest.mark.p4runtime("8.3-4")
@given(st.data(), widths, st.integers(0, 3))
def test_signed_values_come_back_in_their_shortest_form(
    data: st.DataObject, width: int, extra: int
) -> None:
    value = data.draw(st.integers(-(1 << width - 1), (1 << width - 1) - 1))
    sent = to_bytes(value, width, signed=True)
    sign = b"\xff" if value < 0 else b"\0"
    assert from_bytes(sign * extra + sent, width, "t", signed=True) == value
    if len(sent) > 1:
        assert int.from_bytes(sent[1:], "big", signed=True) != value


@pytest.mark.p4runtime("8.3-2 8.3-3")
@given(st.binary(max_size=40), widths, st.booleans())
def test_any_string_is_a_value_of_the_width_or_refused(
    data: bytes, width: int, signed: bool
) -> None:
    try:
        value = from_bytes(data, width, "t", signed)
    except RpcError as error:
        assert error.code == "OUT_OF_RANGE"
    else:
        assert from_bytes(to_bytes(value, width, signed), width, "t", signed) == value


@pytest.mark.p4runtime("8.3-2 8.3-4 8.3-5")
@pytest.mark.parametrize(
    ("data", "width", "signed", "value"),
    [  # the specification's table of valid encodings
        (b"\x63", 8, False, 99),
        (b"\x00\x63", 16, False, 99),
        (b"\x63", 16, False, 99),
        (b"\x30\x64", 16, False, 12388),
        (b"\x00\x30\x64", 16, False, 12388),
        (b"\x00\x00\x63", 12, False, 99),
        (b"\x63", 8, True, 99),
        (b"\x9d", 8, True, -99),
        (b"\xff\x9d", 8, True, -99),
        (b"\xfd\x1d", 12, True, -739),
        (b"\x00\x00", 16, True, 0),
    ],
)
def test_valid_encodings(data: bytes, width: int, signed: bool, value: int) -> None:
    assert from_bytes(data, width, "t", signed) == value


@pytest.mark.p4runtime("8.3-3 8.3-5")
@pytest.mark.parametrize(
    ("data", "width", "signed", "message"),
    [  # the specification's table of invalid encodings
        (b"\x01\x63", 8, False, "t: value 355 does not fit bit<8> (0 to 255)"),
        (b"", 8, False, "t: empty value, expected bit<8> as 1 to 1 big-endian bytes"),
        (b"\x01\x00\x63", 16, False, "t: value 0x10063 does not fit bit<16> (0 to 65535)"),
        (b"\x10\x63", 12, False, "t: value 4195 does not fit bit<12> (0 to 4095)"),
        (b"\x00\x40\x63", 12, False, "t: value 16483 does not fit bit<12> (0 to 4095)"),
        (b"\x00\x9d", 8, True, "t: value 157 does not fit int<8> (-128 to 127)"),
        (b"\x8d\x1d", 12, True, "t: value -29411 does not fit int<12> (-2048 to 2047)"),
        (b"", 16, True, "t: empty value, expected int<16> as 1 to 2 big-endian bytes"),
        (b"\x80" + b"\0" * 16, 8, False,
         "t: value of 136 bits does not fit bit<8> (0 to 255)"),
    ],
)  # fmt: skip
def test_invalid_encodings(data: bytes, width: int, signed: bool, message: str) -> None:
    with pytest.raises(RpcError) as caught:
        from_bytes(data, width, "t", signed)
    assert (caught.value.code, caught.value.message) == ("OUT_OF_RANGE", message)


@pytest.mark.p4runtime("18.1.1-1")
def test_translated_values_keep_their_number() -> None:
    port = Value(1, "port", 9, 32)
    assert port.read(b"\x01\x00", "t") == 256
    assert port.show(256) == b"\x01\x00"
    with pytest.raises(RpcError) as caught:
        port.read(b"\x02\x00", "t")
    assert caught.value.message == "t: 512 does not fit bit<9>"
    text = Value(1, "port", 9, 0, names=Translation("port_t", 9))
    assert (text.read(b"511", "t"), text.show(511)) == (511, b"511")
    assert text.show(text.read(b"eth0", "t")) == b"eth0"


def test_a_value_of_no_bits_is_read_as_it_is_shown() -> None:
    nothing = Value(1, "m.z", 0, 0)
    assert nothing.show(0) == b"\x00"
    assert nothing.read(nothing.show(0), "field m.z") == 0
