import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.codecs import CodecError
from gradplane.codecs._packing import pack, packed_size, unpack


def test_the_first_is_in_the_high_bits() -> None:
    assert pack(np.array([1, 2, 15, 0, 7], np.uint8), 4).hex() == "12f070"
    assert pack(np.array([1, 2, 7], np.uint8), 3).hex() == "1270"
    assert pack(np.array([1, 2, 3, 0, 2], np.uint8), 2).hex() == "6c80"
    assert pack(np.array([1, 0, 0, 0, 0, 0, 1, 1, 0, 1], np.uint8), 1).hex() == "8340"
    assert pack(np.array([1, 31], np.uint8), 5).hex() == "011f"


@given(st.integers(1, 8), st.data())
def test_unpack_undoes_pack(bits: int, data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1))), np.uint8)
    packed = pack(codes, bits)
    assert len(packed) == packed_size(codes.size, bits)
    assert np.array_equal(unpack(np.frombuffer(packed, np.uint8), codes.size, bits), codes)


def test_a_code_that_is_too_big_is_named() -> None:
    with pytest.raises(CodecError) as caught:
        unpack(np.array([0x12, 0x3D], np.uint8), 4, 3)
    assert str(caught.value) == "code 13 at lane 3 does not fit 3 bits"


def test_fields_after_the_last_code_are_empty() -> None:
    with pytest.raises(CodecError) as caught:
        unpack(np.array([0x12, 0x35], np.uint8), 3, 4)
    assert str(caught.value) == "the fields after code 2 must be 0, got 5"
    with pytest.raises(CodecError) as caught:
        unpack(np.array([0x80, 0x42], np.uint8), 12, 1)
    assert str(caught.value) == "the fields after code 11 must be 0, got 1"
