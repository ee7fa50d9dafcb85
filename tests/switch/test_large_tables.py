"""A program with large constant tables, unrolled by macros: AES-128 by tables (FIPS 197)."""

from __future__ import annotations

import gc

from gradplane.switch import Switch

KEY = bytes(range(16))
PLAIN = bytes.fromhex("00112233445566778899aabbccddeeff")
CIPHER = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")

FRAME = """
#include <core.p4>
#include <v1model.p4>
header b_t { bit<32> r0; bit<32> r1; bit<32> r2; bit<32> r3; }
struct H { b_t b; }
struct M { bit<32> t0; bit<32> t1; bit<32> t2; bit<32> t3; }
VALUES
#define LOOKUP(NAME, READ, WRITE, VALUES) action NAME##_a(bit<32> v) { WRITE = WRITE ^ v; } \\
    table NAME { key = { READ : exact; } actions = { NAME##_a; } \\
                 const entries = { VALUES(NAME##_a) } size = 256; }
#define COLUMN(R, C, C1, C2, C3, V0, V1, V2, V3) \\
    LOOKUP(t_##R##_##C##_0, h.b.r##C[31:24], m.t##C, V0) \\
    LOOKUP(t_##R##_##C##_1, h.b.r##C1[23:16], m.t##C, V1) \\
    LOOKUP(t_##R##_##C##_2, h.b.r##C2[15:8], m.t##C, V2) \\
    LOOKUP(t_##R##_##C##_3, h.b.r##C3[7:0], m.t##C, V3)
#define ROUND(R, V0, V1, V2, V3) \\
    COLUMN(R, 0, 1, 2, 3, V0, V1, V2, V3) COLUMN(R, 1, 2, 3, 0, V0, V1, V2, V3) \\
    COLUMN(R, 2, 3, 0, 1, V0, V1, V2, V3) COLUMN(R, 3, 0, 1, 2, V0, V1, V2, V3)
#define APPLY(R, C) t_##R##_##C##_0.apply(); t_##R##_##C##_1.apply(); \\
    t_##R##_##C##_2.apply(); t_##R##_##C##_3.apply();
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.b); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    ROUNDS
    apply { STEPS s.egress_spec = 1; }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def doubled(x: int) -> int:
    """Return x times 2 in GF(2^8)."""
    return x << 1 & 0xFF ^ (0x1B if x & 0x80 else 0)


def substitution_box() -> list[int]:
    """Return the S-box: the inverse in GF(2^8), then an affine map."""
    box, p, q = [0x63] * 256, 1, 1
    while True:
        p ^= doubled(p)  # times 3
        q ^= q << 1
        q ^= q << 2
        q = (q ^ q << 4) & 0xFF
        q ^= 0x09 if q & 0x80 else 0  # divided by 3
        box[p] = 0x63 ^ q ^ _left(q, 1, 8) ^ _left(q, 2, 8) ^ _left(q, 3, 8) ^ _left(q, 4, 8)
        if p == 1:
            return box


def _left(x: int, by: int, bits: int) -> int:
    return (x << by | x >> bits - by) & (1 << bits) - 1


def round_keys(box: list[int]) -> list[int]:
    words = [int.from_bytes(KEY[i : i + 4], "big") for i in range(0, 16, 4)]
    constant = 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            rotated = _left(word, 8, 32).to_bytes(4, "big")
            word = int.from_bytes(bytes(box[b] for b in rotated), "big") ^ constant << 24
            constant = doubled(constant)
        words.append(words[i - 4] ^ word)
    return words


def program() -> str:
    box = substitution_box()
    mixed = [doubled(s) << 24 | s << 16 | s << 8 | doubled(s) ^ s for s in box]
    values = ""
    for k in range(4):
        rotated = [_left(v, 32 - 8 * k, 32) for v in mixed]
        for name, table in (("T", rotated), ("F", [s << 24 - 8 * k for s in box])):
            entries = " ".join(f"{x} : A({v:#x});" for x, v in enumerate(table))
            values += f"#define {name}{k}(A) {entries}\n"
    kinds = [(r, "F" if r == 10 else "T") for r in range(1, 11)]
    rounds = "\n".join(f"ROUND({r}, {t}0, {t}1, {t}2, {t}3)" for r, t in kinds)
    keys = round_keys(box)
    steps = " ".join(f"h.b.r{c} = h.b.r{c} ^ {keys[c]:#x};" for c in range(4))
    for r in range(1, 11):
        steps += "\n" + " ".join(f"m.t{c} = {keys[4 * r + c]:#x};" for c in range(4))
        steps += " ".join(f"APPLY({r}, {c})" for c in range(4))
        steps += " ".join(f"h.b.r{c} = m.t{c};" for c in range(4))
    text = FRAME.replace("VALUES\n#", f"{values}#", 1)
    return text.replace("ROUNDS\n", f"{rounds}\n").replace("STEPS", steps)


def test_aes() -> None:
    sw = Switch("aes.p4", text=program())
    assert sw.process(0, PLAIN) == [(1, CIPHER)]
    assert sum(len(table.entries) for table in sw.program.tables) == 160 * 256
    assert gc.isenabled()
