"""Hashes against independent ways to compute them, and the random numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.runtime.hashes import (
    HASHES,
    STEPS,
    add16,
    checksum_of,
    crc16,
    csum16,
    identity,
    pack_bits,
    subtract16,
    xor16,
)
from gradplane.switch.runtime.state import Rng

CHECK = b"123456789"  # the usual test string of CRC catalogues


def test_check_values() -> None:
    assert crc16(CHECK) == 0xBB3D
    assert HASHES["crc32"](CHECK) == 0xCBF43926
    # The example of RFC 1071: 0001 f203 f4f5 f6f7.
    assert csum16(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2
    assert xor16(bytes.fromhex("0001f203ff")) == 0x0001 ^ 0xF203 ^ 0xFF00
    assert identity(bytes(range(10))) == 0x0001020304050607
    assert [HASHES[h](b"") for h in ("csum16", "xor16", "crc16", "identity")] == [0xFFFF, 0, 0, 0]


@given(st.binary(max_size=40))
def test_csum16_is_the_complement_of_the_folded_sum(data: bytes) -> None:
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert csum16(data) == total ^ 0xFFFF


def test_bits_are_packed_from_the_left() -> None:
    assert pack_bits([(0x4, 4), (0x5, 4), (0x1FF, 9)]) == bytes([0x45, 0xFF, 0x80])
    assert pack_bits([(-1, 8), (0, 0)]) == b"\xff"
    assert pack_bits([]) == b""


def test_draws_repeat_with_the_seed_and_stay_within_their_limits() -> None:
    first, second, other = Rng(1), Rng(1), Rng(2)
    draws = [first.between(3, 10) for _ in range(500)]
    assert draws == [second.between(3, 10) for _ in range(500)]
    assert set(draws) == set(range(3, 11))
    assert draws != [other.between(3, 10) for _ in range(500)]
    wide = [first.between(0, (1 << 128) - 1) for _ in range(20)]
    assert max(wide) >> 120 and len(set(wide)) == 20
    assert first.between(5, 5) == 5 and first.between(9, 2) == 9


def test_seeds_that_are_near_have_no_draws_in_common() -> None:
    draws = [chance.draw() for chance in map(Rng, range(8)) for _ in range(50)]
    assert len(set(draws)) == len(draws)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_checksum_in_steps_is_that_of_all(a: bytes, b: bytes) -> None:
    for name in ("crc32", "crc16", "target_default"):
        step = STEPS[name]
        assert checksum_of(name, step(b, step(a, 0))) == HASHES[name](a + b)
    even = a + b"\0" * (len(a) % 2)
    both = add16(b, add16(even, 0))
    assert checksum_of("ones_complement16", both) == csum16(even + b)
    assert checksum_of("identity", STEPS["identity"](b, STEPS["identity"](a, 0))) == (
        int.from_bytes((a + b)[-8:], "big")
    )


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_what_is_subtracted_was_not_added(a: bytes, b: bytes) -> None:
    """Ones' complement has two zeros."""
    a += b"\0" * (len(a) % 2)
    assert subtract16(b, add16(a + b, 0)) % 0xFFFF == add16(a, 0) % 0xFFFF
