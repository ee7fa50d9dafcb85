import numpy as np
import pytest
from baseline_reference import fields
from hypothesis import given
from hypothesis import strategies as st

from gradplane.codecs import CodecError
from gradplane.codecs._bits import pack, packed_size, unpack


@given(st.integers(1, 16), st.data())
def test_codes_are_one_big_number_and_come_back(width: int, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(0, 2**width - 1)))
    codes = np.array(drawn, np.uint8 if width <= 8 else np.uint16)
    packed = pack(codes, width)
    assert packed == fields(drawn, width) and len(packed) == packed_size(len(drawn), width)
    back = unpack(np.frombuffer(packed, np.uint8), codes.size, width)
    assert np.array_equal(back, codes) and back.dtype == codes.dtype


def test_bits_after_the_last_code_must_be_zero() -> None:
    assert unpack(np.array([0x3F], np.uint8), 2, 3).tolist() == [7, 7]
    with pytest.raises(CodecError) as caught:
        unpack(np.array([0x7F], np.uint8), 2, 3)
    assert str(caught.value) == "the 2 bits after code 1 must be 0, got 0x1"
