"""Filters on packets: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from v1programs import packet, switch

from gradplane.switch import CompileError, Switch
from gradplane.switch.packet_filters import PacketFilter

PARTS = {
    "types": "header b_t { int<8> v; } header long_t { bit<128> six; bit<48> mac; bit<32> four; }",
    "headers": "b_t[2] b; long_t long;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) { 1: b; 2: long; default: accept; }",
    "states": "state b { pkt.extract(h.b.next); pkt.extract(h.b.next); transition accept; }"
    "state long { pkt.extract(h.long); transition accept; }",
    "ingress": "s.egress_spec = 1;",
}
SWITCH = switch(**PARTS)
LONG = bytes.fromhex("20010db8000000000000000000000001 0a0b0c0d0e0f 0a000005")


def holds(where: str, data: bytes, port: int = 3) -> bool:
    return PacketFilter(SWITCH._model, where)(port, data)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("h.a.kind == 2 && h.a.z == 9", True),
        ("h.a.kind == 1 || h.a.z != 9", False),
        ("h.long.isValid()", True),
        ("h.b[0].isValid()", False),
        ("h.long.six == 2001:db8::1", True),
        ("h.long.six == 2001:db8::2", False),
        ("h.long.mac == 0a:0b:0c:0d:0e:0f", True),
        ("h.long.four == 10.0.0.5", True),
        ("h.long.four & 255.255.255.0 == 10.0.0.0", True),
        ("h.long.four[31:24]==10", True),
        ("(h.a.kind == 2 ? h.long.four : 10.0.0.6) == 10.0.0.5", True),
        ("s.ingress_port == 3", True),
        ("s.packet_length == 30 && s.parser_error == 0", True),
        ("(bit<16>) h.a.kind ++ h.a.z == 0x209", True),
    ],
)
def test_what_holds_for_a_packet(where: str, expected: bool) -> None:
    assert holds(where, packet(2, 0, 0, 9, LONG)) is expected


def test_headers_that_are_not_there_are_invalid_and_read_as_zero() -> None:
    short = packet(2, 0, 0, 0, LONG[:5])
    assert holds("!h.long.isValid() && h.long.four == 0 && s.parser_error != 0", short)
    assert not holds("h.a.isValid()", b"")


def test_stacks_and_signed_fields() -> None:
    two = packet(1, 0, 0, 0, b"\xfe\x05")
    assert holds("h.b[0].v == -2 && h.b[1].v > 4 && h.b[1].isValid()", two)


@pytest.mark.parametrize(
    ("where", "message", "caret", "hint"),
    [
        ("h.a.kin == 1", "a_t has no field kin", "^^^^^^^", "did you mean kind?"),
        ("hh.a.kind == 1", "hh is not declared", "^^", "did you mean h?"),
        ("h.a.kind", "a filter must be bool, not bit<8>", "^^^^^^^^", ""),
        ("h.a.kind == 300", "300 does not fit bit<8>: it becomes 44", "            ^^^", ""),
        ("h.long.four == ::1:0:0:0", "281474976710656 does not fit bit<32>: it becomes 0",
         "               ^^^^^^^^^", ""),
        ("h.a.setValid()", "a filter must be bool, not void", "^^^^^^^^^^^^^^", ""),
        ("pkt.length() > 3", "pkt is not declared", "^^^", "known: h, m, s"),
    ],
)  # fmt: skip
def test_what_is_refused(where: str, message: str, caret: str, hint: str) -> None:
    with pytest.raises(CompileError) as refused:
        SWITCH.tracing(where=where)
    column = len(caret) - len(caret.lstrip()) + 1
    lines = [f"filter:1:{column}: error: {message}", f"    {where}", f"    {caret}"]
    assert str(refused.value).splitlines() == lines + ([f"    {hint}"] if hint else [])


@pytest.mark.parametrize(
    "where",
    ["", " ", "h.a.kind ==", "(h.a.kind == 1", "true;", "h.a.kind == 1)", "10.0.0.256 == 1",
     "true\ntrue", "\0", "#include <core.p4>", "I.t.apply().hit", "(" * 500, "!" * 9999 + "true",
     "x" * 10_001, "h.a.kind == 99999999999999999999999999999999", "{1,2} == {1}", "h", "1", '"a"'],
)  # fmt: skip
def test_nonsense_is_refused_as_an_error_in_the_filter(where: str) -> None:
    with pytest.raises(CompileError) as refused:
        SWITCH.tracing(where=where)
    assert str(refused.value).startswith("filter:1:")


@given(st.text(alphabet="h.ab kind=&|!()[]{}<>?:+-*/%^~0123456789'\"\\$@;,isValid", max_size=40))
def test_no_text_does_worse(where: str) -> None:
    try:
        SWITCH.tracing(where=where).close()
    except CompileError as error:
        assert str(error).startswith("filter:1:")


def test_both_architectures_are_filtered() -> None:
    source = """
#include <core.p4>
#include <psa.p4>
struct empty_t { }
header a_t { bit<8> x; }
struct headers_t { a_t a; }
parser IP(packet_in p, out headers_t h, inout empty_t m, in psa_ingress_parser_input_metadata_t s,
          in empty_t r, in empty_t c) { state start { p.extract(h.a); transition accept; } }
control I(inout headers_t h, inout empty_t m, in psa_ingress_input_metadata_t s,
          inout psa_ingress_output_metadata_t o) { apply { send_to_port(o, (PortId_t) 4); } }
control ID(packet_out p, out empty_t c, out empty_t r, out empty_t n, inout headers_t h,
           in empty_t m, in psa_ingress_output_metadata_t o) { apply { p.emit(h.a); } }
parser EP(packet_in p, out headers_t h, inout empty_t m, in psa_egress_parser_input_metadata_t s,
          in empty_t n, in empty_t c, in empty_t d) { state start { transition accept; } }
control E(inout headers_t h, inout empty_t m, in psa_egress_input_metadata_t s,
          inout psa_egress_output_metadata_t o) { apply { } }
control ED(packet_out p, out empty_t c, out empty_t r, inout headers_t h, in empty_t m,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t s)
           { apply { } }
IngressPipeline(IP(), I(), ID()) ingress;
EgressPipeline(EP(), E(), ED()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
"""
    sw = Switch("test.p4", text=source, engine="interpreter")
    with sw.tracing(where="h.a.x == 7 && s.ingress_port != 3") as on:
        for port, x in ((1, 7), (2, 8), (2, 7), (3, 7)):
            sw.process(port, bytes([x]))
    assert [(t.port, t.packet) for t in on] == [(1, b"\x07"), (2, b"\x07")]
