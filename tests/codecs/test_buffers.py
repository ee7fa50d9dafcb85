"""Bytes objects that are filled in place."""

import numpy as np
import pytest

from gradplane.codecs._buffers import blank, to_bytes


@pytest.mark.parametrize("size", [0, 1, 4095, 2**22 - 1, 2**22 + 5])
def test_what_is_written_is_in_the_bytes(size: int) -> None:
    data, view = blank(size)
    view[:] = np.arange(size) % 251
    assert type(data) is bytes and len(data) == size
    assert data == (np.arange(size) % 251).astype(np.uint8).tobytes()


def test_two_blanks_share_nothing() -> None:
    (one, first), (two, second) = blank(0), blank(0)
    assert first.size == second.size == 0 and one == two == b""
    (one, first), (two, second) = blank(3), blank(3)
    first[:], second[:] = 1, 2
    assert (one, two) == (b"\1\1\1", b"\2\2\2")


def test_copies_and_slices() -> None:
    array = np.arange(100, dtype=np.uint8)
    assert to_bytes(array[10:20]) == array[10:20].tobytes()
