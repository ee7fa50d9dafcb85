"""Constructs that this compiler accepts and p4c refuses get a warning of kind "p4c"."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner
from warning_case import TEMPLATE, warnings

from gradplane.cli.main import app
from gradplane.switch.compiler import compile_source

LOOP = "for (bit<8> i = 0; i < 3; i = i + 1) { m.x = m.x + i; }"
CHAINED = "m.x = m.x == 1 ? 8w2 : m.x == 2 ? 8w3 : 8w4;"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CHAINED, "p4c reads a ? b : c ? d : e as (a ? b : c) ? d : e"),
        (LOOP, "p4c for BMv2 has loops in actions only"),
        ("for (bit<8> i in 8w0..8w3) { m.x = i; }", "p4c for BMv2 has no for-in loops"),
        (
            "bit<16> n = 3; m.x = m.x << n;",
            "p4c for BMv2 takes shift amounts of up to 8 bits, not bit<16>",
        ),
        ("m.x = (bit<8>) ((bit<300>) m.x >> 256);", "p4c for BMv2 shifts by less than 256"),
    ],
)
def test_statements(body: str, expected: str) -> None:
    assert warnings(body, "p4c") == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "m.x = m.x == 1 ? 8w2 : (m.x == 2 ? 8w3 : 8w4);",
        "m.x = m.x == 1 ? (m.x == 2 ? 8w3 : 8w4) : 8w5;",
        "m.x = (m.x == 1 ? 8w2 : 8w3) == 8w2 ? 8w4 : 8w5;",
        "bit<8> n = 3; m.x = m.x << n;",
        "m.x = m.x << 3;",
    ],
)
def test_what_p4c_takes(body: str) -> None:
    assert warnings(body, "p4c") == []


def test_a_loop_in_an_action_is_taken() -> None:
    assert warnings("a();", "p4c", locals=f"action a() {{ {LOOP} }}") == []


def test_a_switch_in_an_action() -> None:
    found = warnings("a();", "p4c", locals="action a() { switch (m.x) { 1: { m.f = true; } } }")
    assert found == ["p4c for BMv2 has no switch statements in actions"]


def test_headers_of_broken_bytes() -> None:
    found = warnings(top="header o_t { bit<7> a; varbit<8> v; }", kind="p4c")
    assert found == ["p4c for BMv2 needs headers of whole bytes; this one has 7 bits"]


def test_a_deparser_and_a_checksum_block() -> None:
    text = TEMPLATE.format(top="", locals="", states="", transition="accept;", body="")
    text = text.replace("p.emit(hdr);", "if (hdr.h.isValid()) { p.emit(hdr); }")
    text = text.replace("inout M m) { apply { } }", "inout M m) { apply { m.x = 1; } }", 1)
    found = [w.message for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"]
    assert found == [
        "p4c for BMv2: a checksum block can only verify and update checksums",
        "p4c for BMv2: a deparser can only emit",
    ]


def test_programs_of_other_architectures_have_no_limits_of_bmv2() -> None:
    text = "#include <core.p4>\nheader o_t { bit<7> a; }\n"
    assert compile_source("case.p4", text=text, library=True).warnings == []


def test_they_are_silenced_by_their_kind() -> None:
    text = TEMPLATE.format(top="", locals="", states="", transition="accept;", body=CHAINED)
    text = text.replace("control I(", '@noWarn("p4c") control I(')
    assert [w for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"] == []


def test_strict_makes_warnings_errors(tmp_path: Path) -> None:
    program = tmp_path / "case.p4"
    parts = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    program.write_text(TEMPLATE.format(body=CHAINED, **parts))
    found = CliRunner().invoke(app, ["p4", "check", str(program)])
    assert found.exit_code == 0 and "ok" in found.output
    found = CliRunner().invoke(app, ["p4", "check", "--strict", str(program)])
    assert found.exit_code == 1 and "[p4c]" in found.output and "ok" not in found.output
