"""The STF format: its commands, what it accepts, and what is said about the rest."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.stf import StfError, StfResult, main, run, tester
from gradplane.switch.stf.stf_grammar import COMMANDS, parse
from gradplane.switch.stf.tester import Expected, packet_bytes

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header d_t { bit<8> x; bit<12> y; bit<4> z; }
struct headers_t { d_t d; }
struct meta_t { }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(2, CounterType.packets) seen;
    register<bit<8>>(2) cells;
    direct_counter(CounterType.packets) hits;
    action set(bit<9> port, bit<4> z) { s.egress_spec = port; h.d.z = z; }
    action drop() { mark_to_drop(s); }
    table exactly { key = { h.d.x : exact; } actions = { set; drop; } counters = hits; }
    table loosely { key = { h.d.y : ternary; h.d.z : optional; } actions = { set; drop; } }
    table fixed { key = { h.d.x : exact; } actions = { drop; NoAction; }
                  const default_action = NoAction; const entries = { 9 : drop; } }
    apply {
        seen.count(0);
        s.egress_spec = 1;
        fixed.apply();
        if (!exactly.apply().hit) { loosely.apply(); }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


Check = Callable[..., tuple[bool, str]]


@pytest.fixture
def stf(tmp_path: Path) -> Check:
    """Run lines against the program; return (passed, message without the file's folder)."""

    def check(*lines: str) -> tuple[bool, str]:
        program = tmp_path / "t.p4"
        program.write_text(PROGRAM)
        program.with_suffix(".stf").write_text("\n".join(lines))
        result = run(program)
        return result.passed, result.message.replace(f"{tmp_path}/", "")

    return check


PASSED = (True, "")


# -- packets ------------------------------------------------------------------------------------


def test_an_expectation_is_a_prefix_unless_it_ends_in_a_dollar(stf: Check) -> None:
    assert stf("packet 0 010203ff", "expect 1 0102") == PASSED
    assert stf("packet 0 010203ff", "expect 1 01 02 03 FF $") == PASSED
    assert stf("packet 0 010203ff", "expect 1 010203$") == (
        False,
        "t.stf:2: packet 1 on port 1: too long: 8 digits for 6\n"
        "    expected 010203$\n    received 010203ff",
    )
    assert stf("packet 0 010203", "expect 1 010203ff") == (
        False,
        "t.stf:2: packet 1 on port 1: too short: 6 digits for 8\n"
        "    expected 010203ff\n    received 010203",
    )


def test_a_star_is_any_digit(stf: Check) -> None:
    assert stf("packet 0 010203ff", "expect 1 *1 0* **ff $") == PASSED
    assert stf("packet 0 010203ff", "expect 1 *2") == (
        False,
        "t.stf:2: packet 1 on port 1: digit 1 (byte 0) is 1, not 2\n"
        "    expected *2\n    received 010203ff",
    )


def test_packets_are_compared_in_order_wherever_the_expectations_stand(
    stf: Check,
) -> None:
    assert stf("expect 1 01", "expect 1 02", "packet 0 01 0000", "packet 0 02 0000") == PASSED
    assert stf("packet 0 01 0000", "packet 0 02 0000", "expect 1 02", "expect 1 01")[0] is False


def test_too_many_and_too_few_packets_are_listed(stf: Check) -> None:
    assert stf("packet 0 010000", "packet 0 020000", "expect 1 01") == (
        False,
        "t.stf:3: port 1 sent 2 packets, expected 1\n    expected 01 (line 3)\n"
        "    received 010000\n    received 020000",
    )
    assert stf("packet 0 010000", "expect 1", "expect 2 01") == (
        False,
        "t.stf:3: port 2 sent 0 packets, expected 1\n    expected 01 (line 3)",
    )
    assert stf("packet 1 010000") == (
        False,
        "t.stf: port 1 sent 1 packet, expected 0\n    received 010000",
    )


def test_an_expectation_without_bytes_is_any_packet(stf: Check) -> None:
    assert stf("packet 0 010000", "expect 1") == PASSED
    assert stf("packet 0 010000", "packet 0 020000", "expect 1", "expect 1 02") == PASSED
    assert stf("packet 0 010000", "packet 0 020000", "expect 1") == (
        False,
        "t.stf:3: port 1 sent 2 packets, expected 1\n    expected any (line 3)\n"
        "    received 010000\n    received 020000",
    )
    assert stf("expect 1") == (
        False,
        "t.stf:1: port 1 sent 0 packets, expected 1\n    expected any (line 1)",
    )


def test_ports_that_the_file_does_not_name_are_looked_at_for_no_packet_only(stf: Check) -> None:
    assert stf("packet 0 010000") == PASSED
    assert stf("packet 0 010000", "no_packet") == (
        False,
        "t.stf: port 1 sent 1 packet, expected 0\n    received 010000",
    )


def test_a_packet_has_whole_bytes(stf: Check) -> None:
    assert packet_bytes("01 02 3f") == b"\x01\x02\x3f"
    assert stf("packet 0 01 02 3") == (
        False,
        "t.stf:1: the packet has 5 digits, which is not a whole number of bytes",
    )


def test_a_packet_comes_in_through_a_port_that_there_is(stf: Check) -> None:
    assert stf("packet 512 010000") == (False, "t.stf:1: port 512 is not within 0 to 511")


# -- entries ------------------------------------------------------------------------------------


def test_names_may_be_any_ending_that_fits_one(stf: Check) -> None:
    for table, field, action in [
        ("I.exactly", "h.d.x", "I.set"),
        ("exactly", "d.x", "set"),
        ("actly", "x", "et"),
        ('"I.exactly"', '"h.d.x"', '"I.set"'),
    ]:
        assert (
            stf(
                f"ADD {table} {field}:5 {action}( port : 2, z:0xA ) = $h  # comment",
                "packet 0 050000",
                "expect 2 05000a $",
                "check_counter hits($h) packets == 1",
            )
            == PASSED
        )


def test_values_of_ternary_fields(stf: Check) -> None:
    for value in ["0x12*", "0b00010010****", "0x120&&&0xff0"]:
        entry = f"add loosely 1 y:{value} z:4 set(port:2, z:1)"
        assert stf(entry, "packet 0 01 1234", "expect 2 01 1231 $") == PASSED
        assert stf(entry, "packet 0 01 1134", "expect 1 01 1134 $") == PASSED


def test_digits_not_written_of_a_ternary_value_do_not_matter(
    stf: Check,
) -> None:
    assert stf("add loosely y:0x23 set(port:2, z:1)", "packet 0 01 1234", "expect 2") == PASSED
    assert stf("add loosely y:0x23 drop()", "packet 0 01 1234", "no_packet") == PASSED
    assert stf("add loosely y:35 drop()", "packet 0 01 1234", "expect 1 01") == PASSED


def test_the_larger_priority_wins_and_of_equal_ones_the_first(stf: Check) -> None:
    two, three = "loosely {} y:0x1** set(port:2, z:0)", "loosely {} y:0x*2* set(port:3, z:0)"
    for first, second, port in [
        ("5", "6", 3),
        ("6", "5", 2),
        ("0", "", 2),
        ("", "0", 2),
        ("", "1", 3),
    ]:
        lines = [f"add {two.format(first)}", f"add {three.format(second)}"]
        assert stf(*lines, "packet 0 01 1234", f"expect {port} 01") == PASSED


def test_refused_commands_are_skipped_and_reported(stf: Check) -> None:
    assert stf(
        "add exactly x:1 set(port:2, z:0)",
        "add exactly x:1 set(port:3, z:0)",
        "add exactly x:256 drop()",
        "setdefault fixed drop()",
        "packet 0 010000",
        "expect 2 01",
    ) == (
        True,
        "t.stf:2: table I.exactly: it has an entry for h.d.x 0x1 (skipped)\n"
        "t.stf:3: table I.exactly: field h.d.x: value 256 does not fit 8 bits (0 to 255) "
        "(skipped)\n"
        "t.stf:4: table I.fixed: its default action is const in the source (skipped)",
    )


def test_entries_are_removed_by_match_by_handle_and_all(stf: Check) -> None:
    add = "add exactly x:1 set(port:2, z:0) = one"
    packet, gone = "packet 0 010000", "expect 1 01"
    assert stf(add, "remove exactly x:1", packet, gone) == PASSED
    assert stf(add, "remove exactly $one", packet, gone) == PASSED
    assert stf(add, "remove all", packet, gone) == PASSED
    loose = "add loosely 7 y:0x0** set(port:2, z:0)"
    assert stf(loose, "remove loosely 7 y:0x0**", packet, gone) == PASSED
    assert stf(loose, "remove loosely 8 y:0x0**", packet, "expect 2 01")[0] is True


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "add nothing x:1 drop()",
            "there is no table 'nothing'; known: I.exactly, I.fixed, I.loosely",
        ),
        ("add exactly q:1 drop()", "table I.exactly: there is no match field 'q'; known: h.d.x"),
        (
            "add exactly x:1 go()",
            "table I.exactly: there is no action 'go'; known: I.drop, I.set, NoAction",
        ),
        ("add exactly x:1 set(port:1)", "table I.exactly: action I.set: no value for z"),
        ("add exactly x:1 set(port:1, z)", "action argument 'z' is not PARAMETER:VALUE"),
        ("add exactly x:0x1* drop()", "field h.d.x is matched exact: 0x1* has wildcards"),
        ("add loosely z:0x1* drop()", "field h.d.z is matched optional: 0x1* has wildcards"),
        ("add loosely y:0xqq drop()", "'0xqq' is not a number"),
        ("remove exactly $two", "there is no entry handle '$two'; handles: none"),
        ("check_counter seen(x) == 1", "'x' is not a number"),
        ("check_counter hits(0) == 1", "there is no entry 0: the table has 0"),
        ("check_counter seen(9) == 0", "counter I.seen: index 9 is not within 0 to 1"),
        ("check_counter none", "there is no counter 'none'; known: I.hits, I.seen"),
        ("register_write none 0 0", "there is no register 'none'; known: I.cells"),
    ],
)
def test_what_does_not_exist_ends_the_test(stf: Check, line: str, message: str) -> None:
    assert stf("# first", line, "packet 0 00") == (False, f"t.stf:2: {message}")


# -- counters, registers, groups ----------------------------------------------------------------


def test_counters_that_differ_fail(stf: Check) -> None:
    assert stf(
        "packet 0 010000", "check_counter seen(0) bytes >= 4", "check_counter seen == 2"
    ) == (
        False,
        "t.stf:2: counter seen(0): bytes >= 4 does not hold: it has 3\n"
        "t.stf:3: counter seen: packets == 2 does not hold: it has 1",
    )
    assert stf("check_counter seen(1)") == PASSED


def test_groups_and_sessions_that_do_not_exist_are_passed_over(stf: Check) -> None:
    assert stf(
        "mc_mgrp_create 1",
        "mc_mgrp_create 1",
        "mc_node_associate 2 0",
        "mc_node_associate 1 0",
        "mirroring_get 3",
        "register_read cells 7",
    ) == (
        True,
        "t.stf:3: there is no multicast group 2: mc_mgrp_create 2 first (skipped)\n"
        "t.stf:4: there is no multicast node 0; nodes: none (skipped)\n"
        "t.stf:5: there is no mirroring session 3; sessions: none (skipped)\n"
        "t.stf:6: register I.cells: index 7 is not within 0 to 1 (skipped)",
    )


# -- lines --------------------------------------------------------------------------------------


def test_every_invalid_line_is_reported() -> None:
    text = "packet 0 00\nexpekt 1 00\nflush\npacket x 00\npacket 0 0g\n\nwait now\nadd t x=1 a()\n"
    with pytest.raises(StfError) as caught:
        parse(text, "a.stf")
    assert str(caught.value) == (
        "a.stf:2: there is no command 'expekt'; did you mean expect?\n"
        f"a.stf:3: there is no command 'flush'; commands: {', '.join(COMMANDS)}\n"
        "a.stf:4: 'packet x 00' is not of the form: packet PORT HEX... or @CAPTURE\n"
        "a.stf:5: 'packet 0 0g' is not of the form: packet PORT HEX... or @CAPTURE\n"
        "a.stf:7: 'wait now' is not of the form: wait\n"
        "a.stf:8: 'add t x=1 a()' is not of the form: add TABLE [PRIORITY] [FIELD:VALUE...] "
        "ACTION(PARAMETER:VALUE, ...) [= HANDLE]"
    )


def test_each_command_has_its_method() -> None:
    assert all(callable(getattr(tester.Tester, name)) for name in COMMANDS)


def test_expected_describes_the_first_difference() -> None:
    assert Expected(1, "0*", whole=False).difference(b"\x0f\xff") == ""
    assert Expected(1, "01", whole=False).difference(b"\x02") == "digit 1 (byte 0) is 2, not 1"


# -- several ------------------------------------------------------------------------------------


def test_main_prints_a_line_each_and_how_many_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, alone = (tmp_path / f"{name}.p4" for name in ("good", "bad", "alone"))
    for program in (good, bad, alone):
        program.write_text(PROGRAM)
    good.with_suffix(".stf").write_text("packet 0 010203\nexpect 1 010203 $\n")
    bad.with_suffix(".stf").write_text("packet 0 010203\nexpect 2 010203 $\n")
    assert main([good, bad, alone]) == 1
    assert capsys.readouterr().out == (
        f"PASS {good}\n"
        f"FAIL {bad}: {tmp_path}/bad.stf:2: port 2 sent 0 packets, expected 1\n"
        "    expected 010203$ (line 2)\n"
        f"FAIL {alone}: there is no packet test {tmp_path}/alone.stf\n"
        "1 passed, 2 failed\n"
    )
    assert main([good]) == 0


def test_a_program_that_is_not_accepted_fails_its_test(tmp_path: Path) -> None:
    program = tmp_path / "broken.p4"
    program.write_text("header h { bit<8> x\n")
    program.with_suffix(".stf").write_text("")
    result = run(program)
    assert not result.passed and result.message.startswith(f"{program}:1:20: error: ")


def test_the_test_may_be_named(tmp_path: Path) -> None:
    program, other = tmp_path / "p.p4", tmp_path / "other.stf"
    program.write_text(PROGRAM)
    other.write_text("packet 0 000000\nexpect 1 000000\n")
    assert run(program, other) == StfResult(str(program), True)


# -- anything -----------------------------------------------------------------------------------

PARTS = ["all", "t", "h.d.x:0x1*", "a(b:1)", "=$h", "(", ")", "[", '"', "$", "*", "1", "#", ":"]
WORDS = st.sampled_from([*COMMANDS, *PARTS])


@given(st.lists(st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=20), max_size=5))
def test_any_text_is_read_or_refused_by_line(lines: list[str]) -> None:
    try:
        statements = parse("\n".join(lines), "a.stf")
    except StfError as error:
        assert all(line.startswith("a.stf:") for line in str(error).split("\n") if ".stf" in line)
    else:
        assert len(statements) <= len("\n".join(lines).splitlines())


@given(st.binary(max_size=40), st.data())
def test_a_packet_is_as_its_own_digits_say_with_any_of_them_starred(
    packet: bytes, data: st.DataObject
) -> None:
    stars = data.draw(st.sets(st.integers(0, 79)))
    digits = "".join("*" if i in stars else d for i, d in enumerate(packet.hex()))
    assert Expected(1, digits, whole=True).difference(packet) == ""
    assert Expected(1, digits, whole=True).difference(packet + b"\0") != ""
    assert Expected(1, digits, whole=False).difference(packet + b"\0") == ""
