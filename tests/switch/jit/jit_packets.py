"""Random packets for the programs in programs/: likely to reach every corner of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from jit_pair import likely_number, random_packet


def headers(rng: random.Random) -> bytes:
    kind = rng.choice([0, 1, 2, 2, 3, 4, 5, 6, 7, 9, 11, 13, 0x81, 0x90, 0xFF, rng.randrange(256)])
    count = rng.choice([0, 3, 7, 8, 16, 40, 255, rng.randrange(256)])
    body = random_packet(rng, rng.choice([0, 1, 3, 9, 30, 60, 200]))
    if kind == 4:
        body = b"".join(rng.choice([b"\1abc", b"\2d", b"\3"]) for _ in range(rng.randrange(5)))
    return bytes([kind, count]) + body


def whole_bytes(rng: random.Random) -> bytes:
    kind = rng.choice([0x8847, 0x8847, 1, 1, 2, 3, 0])
    start = random_packet(rng, 10) + bytes([rng.randrange(256), rng.randrange(256)])
    return start + kind.to_bytes(2, "big") + random_packet(rng, rng.randrange(60))


def tables(rng: random.Random) -> bytes:
    key = bits = 0
    for width in (8, 4, 4, 32, 48, 16, 16, 128, 72, 1, 7):
        key, bits = key << width | likely_number(rng, width), bits + width
    return key.to_bytes(bits // 8, "big") + random_packet(rng, rng.choice([0, 30, 40, 60]))


def externs(rng: random.Random) -> bytes:
    what, index = rng.randrange(12), rng.choice([0, 1, 2, 3, 5, 7, 9, 200])
    return bytes([what, index]) + random_packet(rng, rng.choice([20, 34, 36, 60, 61, 62]))


def traffic(rng: random.Random) -> bytes:
    ingress, egress = rng.randrange(16) | 16 * rng.randrange(4), rng.randrange(10)
    left = rng.choice([0, 1, 2, 3, 4])
    return bytes([ingress, egress, left]) + random_packet(rng, rng.choice([2, 3, 9, 10, 40]))


def psa_traffic(rng: random.Random) -> bytes:
    ingress = rng.choice(
        [0, 1, 2, 4, 8, 16, 32, 64, 128, rng.randrange(256), rng.randrange(64) | 1]
    )
    where = rng.choice([*range(16), 70, 77, 78, 79, 80, 81, 210, rng.randrange(256)])
    start = [ingress, rng.randrange(8), rng.choice([0, 0, 1, 2, 3]), where]
    return bytes(start[: rng.choice([4, 4, 4, 4, 4, 4, 3])]) + random_packet(
        rng, rng.choice([0, 7, 8, 40])
    )


def psa_externs(rng: random.Random) -> bytes:
    start = bytes([rng.randrange(12), rng.choice([0, 1, 2, 3, 4, 5, 9, 200])])
    key = rng.choice([0, 1, 2, 3, rng.randrange(1 << 16)]).to_bytes(2, "big")
    return start + key + random_packet(rng, rng.choice([10, 32, 32, 40, 44, 50]))


def frame(rng: random.Random) -> bytes:
    """Return an Ethernet frame, often with IPv4 in it, or random bytes."""
    if not rng.randrange(3):
        return random_packet(rng, rng.randrange(100))
    kind = rng.choice([0x800, 0x800, 0x800, 0x86DD, 0x8100, 0x806, rng.randrange(1 << 16)])
    ethernet = random_packet(rng, 12) + kind.to_bytes(2, "big")
    ip = bytes([0x45, rng.randrange(4), *random_packet(rng, 6), rng.choice([0, 1, 2, 64])])
    ip += bytes([rng.choice([0, 1, 6, 17, 253])]) + random_packet(rng, 10)
    whole = ethernet + ip + random_packet(rng, rng.randrange(90))
    return whole if rng.randrange(3) else whole[: rng.randrange(80)]


PACKETS: dict[str, Callable[[random.Random], bytes]] = {
    "headers": headers,
    "bytes": whole_bytes,
    "tables": tables,
    "externs": externs,
    "traffic": traffic,
    "psa_traffic": psa_traffic,
    "psa_externs": psa_externs,
}
