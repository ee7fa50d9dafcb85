"""Hashes of fields that are no whole bytes, and results wider than their CRC, as on the chip.

The values are those of the library that the chip's compiler, assembler and driver share
(backends/tofino/bf-utils/dynamic_hash in p4c 1.2.5.16): fields are filled up to whole bytes in
front, those of an exclusive or behind to whole words, and a CRC is repeated in a wider result.
"""

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
VECTORS = """
CRC16 16 32:0x0a000001 32:0x0b000002 = 0x5a3e
CRC16 32 32:0x0a000001 32:0x0b000002 = 0x5a3e5a3e
CRC16 16 12:0xabc = 0x1107
CRC16 16 4:0xa 8:0xbc = 0x1107
CRC16 16 13:0x1abc = 0xd10a
CRC16 20 9:0x155 32:0x0a000001 = 0xfc5cf
CRC32 32 32:0x0a000001 32:0x0b000002 = 0xf08d0c3c
CRC32 48 32:0x0a000001 = 0xfee39fe0fee
CRC32 32 12:0xabc = 0x79e105d2
CRC32 32 3:5 13:0x1234 4:7 = 0xa50595a1
CRC8 13 32:0x0a000001 = 0x1b9b
CRC8 8 1:1 = 0x7
CRC64 32 12:0xabc = 0xebfe6518
CRC64 50 32:0x0a000001 32:0x0b000002 = 0x11049b310f3af
XOR8 16 32:0x12345678 = 0x8
XOR16 16 32:0x12345678 8:0x9a = 0xde4c
XOR16 16 12:0xabc = 0xabc0
XOR32 32 12:0xabc 32:0x12345678 = 0xcc412345
IDENTITY 8 8:0x12 8:0x34 = 0x34
0x04c11db7,32,false,false,0xffffffff,0 32 12:0xabc = 0xa23faf3a
0x1021,16,false,false,0xffff,0 32 32:0x0a000001 = 0xfc4a
0x1021,16,false,true,0xffff,0 32 32:0x0a000001 = 0xfc4afc4a
"""
"""The algorithm (or polynomial, width, reversed, extended, init, xor), the bits of the result, the
fields by width and value, and the result."""


def _rows() -> list[tuple[str, int, list[str], int]]:
    rows = []
    for line in VECTORS.strip().splitlines():
        left, result = line.split(" = ")
        algorithm, bits, *fields = left.split()
        rows.append((algorithm, int(bits), fields, int(result, 16)))
    return rows


def _declared(n: int, algorithm: str, bits: int) -> str:
    if "," not in algorithm:
        return f"Hash<bit<{bits}>>(HashAlgorithm_t.{algorithm}) h{n};"
    polynomial, width, turned, extended, *rest = algorithm.split(",")
    args = ", ".join([polynomial, turned, "false", extended, *rest])
    made = f"CRCPolynomial<bit<{width}>>({args}) p{n};"
    return f"{made} Hash<bit<{bits}>>(HashAlgorithm_t.CUSTOM, p{n}) h{n};"


def _constant(field: str) -> str:
    width, value = field.split(":")
    return f"{width}w{int(value, 16)}"


@ENGINES
def test_the_values_are_those_of_the_chip(engine: str) -> None:
    rows = list(enumerate(_rows()))
    made = " ".join(_declared(n, algorithm, bits) for n, (algorithm, bits, _, _) in rows)
    calls = [
        f"h.n.v{n} = (bit<64>)h{n}.get({{ {', '.join(map(_constant, fields))} }});"
        for n, (_, _, fields, _) in rows
    ]
    sw = switch(
        engine,
        types="header n_t { " + " ".join(f"bit<64> v{n};" for n, _ in rows) + " }",
        headers="n_t n;",
        ingress_locals=made,
        ingress=f"tm.ucast_egress_port = 1; h.n.setValid(); {' '.join(calls)}",
    )
    (_, out), *_ = sw.process(1, packet())
    found = [int.from_bytes(out[4 + 8 * n : 12 + 8 * n], "big") for n, _ in rows]
    assert list(map(hex, found)) == [hex(row[3]) for _, row in rows]


def _configured(engine: str) -> Switch:
    return switch(
        engine,
        types="header n_t { bit<32> v; }",
        headers="n_t n;",
        ingress_locals="Hash<bit<32>>(HashAlgorithm_t.CRC32) crc;",
        ingress="tm.ucast_egress_port = 1; h.n.setValid();"
        " h.n.v = crc.get({ 9w0x1ab, 8w0xbc, 4w7 });",
    )


@ENGINES
def test_parts_of_fields_are_filled_up_in_front(engine: str) -> None:
    sw = _configured(engine)
    sw.state.hashes["ingress.crc"].take([(5, 4), (9, 8)], 21)  # 0xb of the first, the second
    (_, out), *_ = sw.process(1, packet())
    other = _configured(engine)
    other.state.hashes["ingress.crc"].take([(5, 12)], 21)
    assert out == other.process(1, packet())[0][1]
    assert out[4:8].hex() == "60fa3493"
