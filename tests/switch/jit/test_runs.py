"""Headers with many fields of one width, and very wide ones: moved as vectors. Runs of bits that
begin and end anywhere."""

import ctypes
import random

import pytest
from jit_pair import Pair

from gradplane.switch.compiler import compile_program
from gradplane.switch.jit.headers import copy_bits
from gradplane.switch.jit.llvm_text import Module
from gradplane.switch.jit.native_code import Native

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> flag; }
header many_t { FIELDS }
struct headers_t { first_t first; many_t many; many_t other; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.first); packet.extract(h.many); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.first.flag[0:0] == 1) { h.many.LAST = h.many.FIRST; }
        if (h.first.flag[1:1] == 1) { h.other = h.many; h.other.FIRST = h.many.LAST; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
LAYOUTS = {
    "bytes": [8] * 100,
    "words": [32] * 37,
    "halves behind an odd start": [3, 5, *[16] * 21],
    "not at a byte": [4, *[32] * 9, 4],
    "of two widths": [*[16] * 11, *[64] * 13, 16],
    "wide": [512, 8, 1024, 512],
    "wide and no multiple of a word": [72, 136, 200, 72],
    "addresses": [128, 48, 128, 48, 16, 128],
    "few": [32, 32, 32, 32],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_headers_are_parsed_and_emitted_alike(name: str) -> None:
    widths = LAYOUTS[name]
    fields = " ".join(f"bit<{width}> f{i};" for i, width in enumerate(widths))
    last = len(widths) - 1 if widths[-1] == widths[0] else 0
    text = PROGRAM.replace("FIELDS", fields).replace("LAST", f"f{last}").replace("FIRST", "f0")
    pair = Pair(compile_program("runs.p4", text=text), seed=1)
    size = sum(widths) // 8
    packets = [
        bytes([flag]) + pair.rng.randbytes(size + more) for flag in range(4) for more in (-1, 0, 9)
    ]
    pair.check(packets)


def test_bits_are_copied_from_and_to_anywhere() -> None:
    module, rng = Module(), random.Random(5)
    params = [("ptr", "%target"), ("i64", "%to"), ("ptr", "%source"), ("i64", "%from"),
              ("i64", "%count")]  # fmt: skip
    f = module.function("copy", "void", params, exported=True)
    copy_bits(f, "%target", "%to", "%source", "%from", "%count")
    f.ret()
    native = Native(module.text(), cached=False)
    pointer, number = ctypes.c_char_p, ctypes.c_int64
    copy = native.function("copy", pointer, number, pointer, number, number)
    for _ in range(2000):
        before, source = rng.randbytes(40), rng.randbytes(40)
        count = rng.choice([0, 1, 7, 8, 63, 64, 65, 128, rng.randrange(300)])
        to, start = rng.randrange(320 - count), rng.randrange(320 - count)
        target = ctypes.create_string_buffer(before, 40)
        copy(ctypes.cast(target, pointer), to, source, start, count)
        moved, kept = bits(source)[start : start + count], bits(before)
        assert bits(target.raw) == kept[:to] + moved + kept[to + count :], (to, start, count)


def bits(data: bytes) -> str:
    return f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"
