"""Properties of TNA's externs: a model in Python says what they do, and both engines do it."""

from __future__ import annotations

import functools

from hypothesis import given
from hypothesis import strategies as st
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.hashes import csum16

TO_1 = "tm.ucast_egress_port = 1;"
byte = st.integers(0, 255)


@st.composite
def crcs(draw: st.DrawFn) -> Crc:
    width = draw(st.integers(1, 64))
    number = st.integers(0, (1 << width) - 1)
    return Crc(width, draw(number), draw(number), draw(number), draw(st.booleans()))


@given(crcs(), st.binary(max_size=20))
def test_a_crc_is_the_one_computed_bit_by_bit(crc: Crc, data: bytes) -> None:
    remainder, mask = crc.initial, (1 << crc.width) - 1
    for one in data:
        for i in range(8):
            bit = one >> i & 1 if crc.reflected else one >> 7 - i & 1
            top = remainder >> crc.width - 1 ^ bit
            remainder = (remainder << 1 & mask) ^ (crc.polynomial if top else 0)
    if crc.reflected:
        remainder = int(f"{remainder:0{crc.width}b}"[::-1], 2)
    assert crc(data) == remainder ^ crc.final


@functools.cache
def switches() -> tuple[Switch, Switch]:
    """Return a switch of each engine: a register of a count and a maximum, and a checksum."""
    parts = {
        "types": "struct pair_t { bit<8> count; bit<8> most; }",
        "headers": "a_t b;",
        "ingress_locals": """
            Register<pair_t, bit<2>>(4) pairs;
            RegisterAction<pair_t, bit<2>, bit<8>>(pairs) note = {
                void apply(inout pair_t value, out bit<8> rv) {
                    value.count = value.count |+| h.a.y;
                    if (value.most < h.a.z) { value.most = h.a.z; }
                    rv = value.most;
                }
            };""",
        "ingress": TO_1 + "h.b = h.a; h.b.kind = note.execute(h.a.x[1:0]);",
        "deparser_locals": "Checksum() sum;",
        "deparser": "bit<16> s = sum.update({h.a.kind, h.a.x, h.a.y, h.a.z, h.b.kind, 8w0});"
                    "h.b.y = s[15:8]; h.b.z = s[7:0];",
    }  # fmt: skip
    return switch("interpreter", **parts), switch("jit", **parts)


@given(st.lists(st.tuples(byte, byte, byte, byte), max_size=30))
def test_a_sequence_of_packets_leaves_what_the_model_says(packets: list[tuple[int, ...]]) -> None:
    count, most = [0] * 4, [0] * 4
    expected = []
    for kind, x, y, z in packets:
        count[x & 3] = min(count[x & 3] + y, 255)
        most[x & 3] = max(most[x & 3], z)
        data = packet(kind, x, y, z)
        total = csum16(data + bytes([most[x & 3], 0]))
        expected.append(data + bytes([most[x & 3], x]) + total.to_bytes(2, "big"))
    for sw in switches():
        sw.reset()
        sent = [sw.process(0, packet(*one)) for one in packets]
        assert [one for ((port, one),) in sent] == expected
        cells = [sw.state.registers["ingress.pairs"].read(i) for i in range(4)]
        assert cells == [c << 8 | m for c, m in zip(count, most, strict=True)]
