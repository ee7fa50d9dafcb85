"""set_crc16_parameters and set_crc32_parameters: the CRCs of hash's custom algorithms."""

from __future__ import annotations

import zlib

import pytest

from gradplane.switch import Switch
from gradplane.switch.commands import CommandError
from gradplane.switch.runtime.crcs import CrcParameters, CustomCrc

# Catalogue of parametrised CRC algorithms: width, parameters, the CRC of "123456789".
CHECKS = [
    (32, CrcParameters(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xCBF43926),
    (32, CrcParameters(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False, False), 0xFC891918),  # BZIP2
    (32, CrcParameters(0x04C11DB7, 0xFFFFFFFF, 0, False, False), 0x0376E6E7),  # MPEG-2
    (32, CrcParameters(0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xE3069283),  # iSCSI
    (32, CrcParameters(0x814141AB, 0, 0, False, False), 0x3010BF7F),  # AIXM
    (16, CrcParameters(0x8005, 0, 0, True, True), 0xBB3D),  # ARC
    (16, CrcParameters(0x1021, 0xFFFF, 0, False, False), 0x29B1),  # IBM-3740
    (16, CrcParameters(0x1021, 0, 0, True, True), 0x2189),  # KERMIT
    (16, CrcParameters(0x3D65, 0, 0xFFFF, True, True), 0xEA82),  # DNP
]

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<72> data; bit<32> a; bit<32> b; bit<16> c; bit<32> d; }
struct H { data_t d; }
struct M { }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {
    state start { b.extract(h.d); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action last() { hash(h.d.d, HashAlgorithm.crc32, 32w0, { h.d.data }, 64w0x100000000); }
    action first() {
        hash(h.d.a, HashAlgorithm.crc32_custom, 32w0, { h.d.data }, 64w0x100000000);
        hash(h.d.b, HashAlgorithm.crc32_custom, 32w0, { h.d.data }, 64w0x100000000);
    }
    table t { actions = { first; } default_action = first(); }
    apply {
        hash(h.d.c, HashAlgorithm.crc16_custom, 16w0, { h.d.data }, 32w0x10000);
        t.apply();
        last();
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out b, in H h) { apply { b.emit(h.d); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.mark.parametrize(("width", "parameters", "check"), CHECKS)
def test_known_values(width: int, parameters: CrcParameters, check: int) -> None:
    crc = CustomCrc("calc", width)
    crc.set(parameters)
    assert crc(b"123456789") == check


def hashes(sw: Switch) -> list[int]:
    [(_, out)] = sw.process(0, b"123456789" + bytes(14))
    spans = (9, 13), (13, 17), (17, 19), (19, 23)
    return [int.from_bytes(out[start:end], "big") for start, end in spans]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_each_call_has_parameters_of_its_own(engine: str) -> None:
    sw = Switch("crc.p4", text=SOURCE, engine=engine)
    standard = [0xCBF43926, 0xCBF43926, 0xBB3D, zlib.crc32(b"123456789")]
    assert hashes(sw) == standard
    sw.run_commands("set_crc32_parameters calc_0 0x1EDC6F41 0xffffffff 0xffffffff true true")
    sw.run_commands("set_crc16_parameters calc_1 0x1021 0xffff 0 false false")
    assert hashes(sw) == [standard[0], 0xE3069283, 0x29B1, standard[3]]
    sw.run_commands("set_crc32_parameters calc 0x04C11DB7 0xffffffff 0 0 0")
    assert hashes(sw)[0] == 0x0376E6E7
    sw.run_commands("reset_state")
    assert hashes(sw) == standard


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("set_crc32_parameters calc_1 1 2 3 0 0", "there is no crc32_custom calculation 'calc_1';"
         " known: calc, calc_0"),
        ("set_crc16_parameters calc_1 0x10000 2 3 0 0", "calc_1: 0x10000 does not fit 16 bits"),
        ("set_crc16_parameters calc_1 1 2 3 0 yes", "'yes' is not true or false"),
        ("set_crc16_parameters calc_1 1 2", "3 words follow set_crc16_parameters; usage:"
         " set_crc16_parameters CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA"
         " REFLECT_REMAINDER"),
    ],
)  # fmt: skip
def test_errors_are_reported(line: str, message: str) -> None:
    with pytest.raises(CommandError) as caught:
        Switch("crc.p4", text=SOURCE).run_commands(line, "f")
    assert str(caught.value) == f"f:1: {message}"
