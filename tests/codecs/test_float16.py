import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError


def test_values_round_to_the_nearest_half() -> None:
    codec = codecs.get("float16")
    x = np.array([65504, 65519, -1 / 3, 2.0**-25, 1e-9], np.float32)
    assert codec.decode(codec.encode(x)[0], 5).tolist() == [65504, 65504, -0.333251953125, 0, 0]


def test_values_beyond_are_refused() -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get("float16").encode(np.array([1, -65520], np.float32))
    assert str(caught.value) == "-65520.0 at index 1 is beyond float16 (65504)"


@pytest.mark.parametrize("name, data", [("float16", b"\0\x7c"), ("float32", b"\0\0\x80\x7f")])
def test_bytes_that_mean_infinity_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get(name).decode(data, 1)
    assert str(caught.value) == "infinity at index 0"
