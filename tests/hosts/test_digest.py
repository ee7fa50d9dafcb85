"""Digests are equal where the little-endian bytes are, by the function that is recorded."""

import hashlib

import numpy as np
import pytest

from gradplane.hosts.digest import (
    FUNCTION,
    FUNCTIONS,
    OLDER,
    digest,
    digest_by,
    digests_by,
    row_digests,
)


@pytest.mark.parametrize(
    ("function", "data", "expected"),
    [
        (FUNCTION, b"", "2d06800538d394c2"),  # of XXH3's documentation
        (FUNCTION, b"abc", "78af5f94892f3950"),
        (OLDER, b"abc", "ba7816bf8f01cfea"),  # FIPS 180-4
    ],
)
def test_known_digests(function: str, data: bytes, expected: str) -> None:
    assert digest_by(function, data) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parts_and_byte_order_make_no_difference(function: str) -> None:
    values = np.arange(600, dtype=">f4")
    with digests_by(function):
        whole = digest(values.astype("<f4").tobytes())
        assert digest(values[:7], values[7:].astype("<f4")) == whole
        assert digest(np.repeat(values, 2)[::2]) == whole


@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_have_the_digests_that_each_has_alone(function: str) -> None:
    rows = np.arange(12, dtype=np.uint16).reshape(3, 4)
    found = [f"{number:016x}" for number in row_digests(function, rows).tolist()]
    assert found == [digest_by(function, row) for row in rows]
    assert row_digests(function, rows[:0]).size == 0


def test_another_function_ends_with_its_context() -> None:
    with digests_by(OLDER):
        assert digest(b"abc") == hashlib.sha256(b"abc").hexdigest()[:16]
    assert digest(b"abc") == digest_by(FUNCTION, b"abc")
