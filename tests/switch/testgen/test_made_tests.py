"""Tests made from small programs: each line without `// never` is covered, and each test passes."""

from __future__ import annotations

import json
import runpy
import sys
import types
from pathlib import Path

import pytest

pytest.importorskip("z3")

from gradplane.switch import stf  # noqa: E402
from gradplane.switch.compiler import compile_source  # noqa: E402
from gradplane.switch.runtime.control_errors import SwitchError  # noqa: E402
from gradplane.switch.testgen.explorer import Limits  # noqa: E402
from gradplane.switch.testgen.generate import Generated, generate, report, write  # noqa: E402
from gradplane.switch.testgen.unreachable import unreachable  # noqa: E402
from tests.switch import psaprograms, tnaprograms  # noqa: E402
from tests.switch.v1programs import source  # noqa: E402

FORWARD = """
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
"""


def table(key: str, name: str = "t", rest: str = "default_action = drop();") -> str:
    return f"table {name} {{ key = {{ {key} }} actions = {{ to; drop; }} {rest} }}"


CASES: dict[str, dict[str, str]] = {
    "branches": {
        "ingress": """
            if (h.a.x > 100) {
                if (h.a.x < 50) {
                    s.egress_spec = 7;  // never
                } else {
                    s.egress_spec = 3;
                }
            } else if (h.a.x + h.a.y == 9 && h.a.z[3:0] == 4) {
                s.egress_spec = 4;
            }""",
    },
    "states": {
        "parser": """pkt.extract(h.a); transition select(h.a.kind, h.a.x) {
            (1, _): one;
            (2 .. 5, 0x80 &&& 0xC0): two;
            default: accept;
        }""",
        "states": """
            state one {
                verify(h.a.y != 3, error.NoMatch);
                transition two;
            }
            state two {
                m.unused = 1;
                transition accept;
            }
            state three {
                m.unused = 2;  // never
                transition accept;
            }""",
        "ingress": """
            if (s.parser_error != error.NoError) {
                s.egress_spec = 2;
            } else if (m.unused == 1) {
                s.egress_spec = 3;
            }""",
    },
    "lookups": {
        "ingress_locals": FORWARD
        + table("h.a.kind : exact;")
        + table("h.a.x : lpm; h.a.y : exact;", "l")
        + table("h.a.x : ternary; h.a.z : range; h.a.y : optional;", "w"),
        "ingress": """
            if (t.apply().hit) {
                switch (l.apply().action_run) {
                    to: { h.a.x = 1; }
                    drop: { h.a.x = 2; }
                }
            } else {
                w.apply();
            }""",
    },
    "entries": {
        "ingress_locals": FORWARD
        + table(
            "h.a.x : ternary; h.a.y : lpm;",
            rest="""const default_action = drop(); const entries = {
                (0x10 &&& 0xF0, 0x80 &&& 0xC0): to(2);
                (0x11, _): to(3);
                (_, 7): drop();
            }""",
        ),
        "ingress": "s.egress_spec = 5; t.apply();",
    },
    "defaults": {
        "ingress_locals": FORWARD
        + """
            action mark() { h.a.z = 9; }
            table keyless { actions = { to; drop; } default_action = drop(); }
            table only {
                key = { h.a.x : exact; }
                actions = { to; @defaultonly mark; @defaultonly NoAction; }
                default_action = NoAction();
            }""",
        "ingress": "keyless.apply(); only.apply();",
    },
    "value set": {
        "parser_locals": "value_set<bit<8>>(4) known;",
        "parser": "pkt.extract(h.a); transition select(h.a.kind) { known: one; _: accept; }",
        "states": """
            state one {
                m.unused = 1;
                transition accept;
            }""",
        "ingress": "s.egress_spec = (bit<9>) m.unused + 1;",
    },
    "registers": {
        "ingress_locals": "register<bit<8>>(256) last; bit<8> before;",
        "ingress": """
            last.read(before, (bit<32>) h.a.kind);
            last.write((bit<32>) h.a.kind, h.a.x);
            s.egress_spec = 1;
            if (before != 0 && h.a.x > before) {
                s.egress_spec = 2;
                if (before == 77) {
                    h.a.z = 5;
                }
            }""",
    },
    "arrays": {
        "types": "header more_t { bit<8>[4] v; }",
        "headers": "more_t more;",
        "parser": "pkt.extract(h.a); pkt.extract(h.more); transition accept;",
        "ingress_locals": """
            action all(bit<8>[2] some) { h.more.v[0] = some[1]; }
            table t { key = { h.more.v[3] : exact; } actions = { all; NoAction; } }""",
        "ingress": """
            s.egress_spec = 1;
            bit<8>[3] known = {1, 2, h.more.v[1]};
            t.apply();
            if (h.more.v[h.a.kind] == 77) {
                s.egress_spec = 2;
            }
            if (known[h.a.x] == 99) {
                s.egress_spec = 3;
            }""",
    },
    "again": {
        "ingress": """
            s.egress_spec = 1;
            if (s.instance_type == 4) {
                if (h.a.x == 44) {
                    s.egress_spec = 2;
                }
            } else if (h.a.kind == 6) {
                resubmit_preserving_field_list(0);
            }
            if (s.instance_type == 6) {
                h.a.y = 1;
            }""",
        "egress": """
            if (s.instance_type == 0 && h.a.kind == 5) {
                h.a.kind = 0;
                h.a.x = h.a.y ^ 0x5A;
                recirculate_preserving_field_list(0);
            }""",
    },
    "copies": {
        "ingress_locals": "action flood(bit<16> group) { s.mcast_grp = group; }\n"
        + "table groups { key = { h.a.x : exact; } actions = { flood; } }",
        "ingress": """
            s.egress_spec = 1;
            if (h.a.kind == 1) {
                clone(CloneType.I2E, 9);
            } else if (h.a.kind == 2) {
                groups.apply();
            }""",
        "egress": """
            if (s.instance_type == 1) {
                h.a.z = 1;
            } else if (s.egress_rid == 2) {
                h.a.z = 2;
            } else if (s.instance_type == 5 && s.egress_port == s.ingress_port) {
                mark_to_drop(s);
            }""",
    },
    "checksum": {
        "types": "header c_t { bit<16> sum; bit<16> data; }",
        "headers": "c_t c;",
        "parser": "pkt.extract(h.a); pkt.extract(h.c); transition accept;",
        "verify": "verify_checksum(h.a.kind == 1, {h.a.x, h.a.y, h.c.data}, h.c.sum,"
        " HashAlgorithm.csum16);",
        "ingress": """
            if (s.parser_error == error.NoError && s.checksum_error == 0 && h.a.kind == 1
                    && h.c.data > 900) {
                s.egress_spec = 2;
            }""",
    },
    "sums": {
        "types": "header c_t { bit<16> sum; bit<24> data; bit<16> other; }",
        "headers": "c_t c;",
        "parser": "pkt.extract(h.a); pkt.extract(h.c); transition accept;",
        "verify": "verify_checksum(true, {h.a.kind, h.a.x}, h.c.other, HashAlgorithm.csum16);",
        "ingress_locals": "bit<16> check = 1; bit<32> at;",
        "ingress": """
            if (h.c.isValid()) {
                hash(check, HashAlgorithm.csum16, 16w0, { h.a, h.c.sum, h.c.data }, 32w65536);
                hash(at, HashAlgorithm.csum16, 32w100, { h.c.data, h.a.z }, 32w50);
                if (check == 0 && s.checksum_error == 0 && h.c.data == 0x123456 && h.a.kind == 7) {
                    s.egress_spec = 2;
                    if (at == 131) {
                        s.egress_spec = 3;
                    }
                }
            }""",
        "compute": "update_checksum(h.a.kind == 7, {h.a.x, h.a.y}, h.c.sum, HashAlgorithm.csum16);",
    },
    "behind the parser": {
        "types": "header b_t { bit<8> size; bit<8> left; }",
        "headers": "b_t b; b_t c;",
        "metadata": "bit<2> which; bit<8> twice;",
        "parser": """pkt.extract(h.a); transition select(s.instance_type, h.a.kind) {
            (4, _): back;
            (_, 3): sized;
            default: accept;
        }""",
        "states": """
            state back {
                m.which = 3;  // never
                transition accept;
            }
            state sized {
                pkt.extract(h.b);
                m.which = 1;
                transition select(h.b.size) {
                    1 .. 9: accept;
                    10: reject;
                    default: other;
                }
            }
            state other {
                verify(false, error.NoMatch);
                transition accept;
            }""",
        "ingress": """
            s.egress_spec = 1;
            if (m.which == 2) {
                s.egress_spec = 2;  // never
            }
            if (h.c.isValid()) {
                s.egress_spec = 3;  // never
            }
            if (s.parser_error != error.NoError) {
                s.egress_spec = 4;
            } else if (m.which == 1 && h.b.size == 11) {
                s.egress_spec = 5;  // never
            } else if (m.which == 1 && h.b.size == 10) {
                s.egress_spec = 6;
            }
            m.twice = m.twice + 1;""",
        "egress": """
            if (m.which == 3 || h.b.isValid() && m.which == 0) {
                recirculate_preserving_field_list(0);  // never
            }
            if (m.twice == 1) {
                h.a.y = 1;
            }""",
    },
    "lengths": {
        "types": "header v_t { varbit<64> rest; } header s_t { bit<8> v; }",
        "headers": "v_t v; s_t[3] s;",
        "parser": """pkt.extract(h.a); transition select(h.a.kind) {
            1: options; 2: stack; 3: jump; default: accept;
        }""",
        "states": """
            state options {
                pkt.extract(h.v, (bit<32>) h.a.x);
                transition accept;
            }
            state stack {
                pkt.extract(h.s.next);
                transition select(h.s.last.v, pkt.lookahead<bit<8>>()) {
                    (0, _): accept;
                    (_, 9): jump;
                    default: stack;
                }
            }
            state jump {
                pkt.advance((bit<32>) h.a.y);
                transition accept;
            }""",
        "ingress": """
            s.egress_spec = 1;
            if (s.parser_error == error.StackOutOfBounds) {
                s.egress_spec = 2;
            } else if (s.parser_error == error.HeaderTooShort) {
                s.egress_spec = 3;
            } else if (s.parser_error == error.PacketTooShort && s.packet_length > 6) {
                s.egress_spec = 4;
            }""",
    },
    "signed": {
        "types": "header n_t { int<8> v; int<16> w; }",
        "headers": "n_t n;",
        "parser": "pkt.extract(h.a); pkt.extract(h.n); transition accept;",
        "ingress_locals": FORWARD + table("h.n.v : range; h.n.w : exact;"),
        "ingress": """
            t.apply();
            if (h.n.v < -100) {
                h.n.w = h.n.w |-| 20000;
                if (h.n.w == -32768) {
                    h.a.z = 1;
                }
            } else if (h.n.v >> 2 == -3) {
                h.a.z = 2;
            }""",
    },
    "random": {
        "ingress_locals": "bit<8> drawn;",
        "ingress": """
            random(drawn, 0, 255);
            h.a.y = drawn;
            s.egress_spec = 1;
            if (h.a.x == 0) {
                s.egress_spec = 2;
            }""",
    },
    "profile": {
        "ingress_locals": FORWARD
        + "action_profile(8) members;"
        + table("h.a.x : exact;", rest="implementation = members;"),
        "ingress": "t.apply();",
    },
}


def made(tmp_path: Path, text: str, **limits: int) -> tuple[Path, Generated]:
    file = tmp_path / "made.p4"
    file.write_text(text)
    program = compile_source(file, (), None).program
    return file, generate(program, Limits(seconds=600, **{"runs": 1500, **limits}))


def not_covered(result: Generated) -> set[int]:
    goals = result.found.goals.all
    return {place.line for kind, place, _ in goals - result.found.covered if kind == "line"}


OTHERS = {
    "tna": tnaprograms.source(
        ingress_locals="""
            action to(bit<9> port) { tm.ucast_egress_port = port; }
            table t { key = { h.a.x : exact; } actions = { to; NoAction; } }""",
        parser="pkt.extract(h.a); transition select(h.a.kind) { 7: seven; default: accept; }",
        states="""state seven {
                m.kept = 1;
                transition accept;
            }""",
        ingress="""
            if (m.kept == 1 && h.a.y == 9) {
                t.apply();
            } else if (ig.ingress_port == 5) {
                tm.ucast_egress_port = 3;
            }""",
        egress="""
            if (h.a.z == 44 && eg.egress_port == 3) {
                h.a.y = 1;
            }""",
    ),
    "psa": psaprograms.source(
        ingress="""
            send_to_port(o, (PortId_t) 1);
            if (h.a.x == 7) {
                m.kept = 1;
            }""",
        egress="""
            if (h.a.z == 44) {
                h.a.y = 1;
            }""",
    ),
}
TEXTS = {case: source(**parts) for case, parts in CASES.items()} | OTHERS


@pytest.mark.parametrize("case", TEXTS)
def test_every_line_and_outcome(tmp_path: Path, case: str) -> None:
    text = TEXTS[case]
    file, result = made(tmp_path, text)
    never = {i for i, line in enumerate(text.splitlines(), 1) if "// never" in line}
    assert not_covered(result) == never
    tables = {g for g in result.found.goals.all - result.found.covered if g[0] == "table"}
    assert not tables
    found, program = result.found, compile_source(file, (), None).program
    assert {g[1].line for g in found.unreachable if g[0] == "line"} == never
    assert not unreachable(program, found.goals, set()) & found.covered
    files = write(result, file, tmp_path, ["stf"])
    assert len(files) == len(result.tests) > 0
    for test in files:
        for engine in ("interpreter", "jit"):
            outcome = stf.run(file, test, engine)
            assert outcome.passed and not outcome.message, f"{outcome}\n{test.read_text()}"


def test_the_same_seed_gives_the_same_tests(tmp_path: Path) -> None:
    text = source(**CASES["lookups"])
    first, second, other = (
        write(made(tmp_path, text, seed=seed)[1], tmp_path / "x.p4", tmp_path / name, ["json"])
        for seed, name in ((7, "a"), (7, "b"), (8, "c"))
    )
    assert first[0].read_text() == second[0].read_text() != other[0].read_text()


def test_random_values_are_not_expected(tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES["random"]))
    expected = [digits for test in result.tests for one in test.expected for _, digits in one]
    assert expected and all(digits[4:6] == "**" for digits in expected if len(digits) >= 8)


def test_the_most_tests_and_packets(tmp_path: Path) -> None:
    _, result = made(tmp_path, source(**CASES["branches"]), tests=1)
    assert len(result.tests) == 1
    _, result = made(tmp_path, source(**CASES["registers"]), packets=1)
    assert not_covered(result)
    assert {len(test.packets) for test in result.tests} == {1}


def test_the_report(tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES["branches"]))
    lines = report(result).splitlines()
    assert all(len(line) <= 80 for line in lines if "/" not in line), lines
    assert lines[0].startswith(f"{len(result.tests)} tests with ")
    assert any("the condition is true" in line for line in lines)


def test_the_report_says_what_excludes_a_goal(tmp_path: Path) -> None:
    text = source(
        parser="pkt.extract(h.a); transition select(h.a.x + h.a.y) { 1: one; default: accept; }",
        states="state one { m.unused = 1; transition accept; }",
        ingress="if (m.unused == 1 && h.a.x + h.a.y == 2) { s.egress_spec = 5; }",
    )
    file, result = made(tmp_path, text)
    lines = report(result).splitlines()
    case, branch = (
        next(i for i, line in enumerate(text.splitlines(), 1) if part in line)
        for part in ("1: one", "h.a.x + h.a.y == 2")
    )
    assert lines[lines.index("not covered within the limits:") + 1 :] == [
        f"  {file}:{branch}: the condition is true, and line {branch} behind it",
        f"    excluded where packets go by line {case} (the case to one)",
    ]


def test_registers_are_asked_inside_their_size(tmp_path: Path) -> None:
    text = source(
        ingress_locals="register<bit<8>>(4) last; bit<8> before;",
        ingress="""
            last.read(before, (bit<32>) (h.a.kind + 9));
            last.write((bit<32>) (h.a.kind + 9), h.a.x);
            if (before == 77) {
                s.egress_spec = 5;
            }""",
    )
    _, result = made(tmp_path, text)
    assert {place.line for _, place, _ in result.found.goals.all - result.found.covered} == set()


def test_json_says_it_all(tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES["profile"]))
    (written,) = write(result, file, tmp_path, ["json"])
    tests = json.loads(written.read_text())["tests"]
    entry = next(test["entries"][0] for test in tests if test["entries"])
    assert entry["fields"] == {"h.a.x": {"kind": "exact", "match": [0]}}
    assert entry["member"] == 0 and entry["action"] in ("I.to", "I.drop")


def test_user_defined_externs_are_refused(tmp_path: Path) -> None:
    text = source(types="extern bit<8> ask(in bit<8> v);", ingress="h.a.x = ask(h.a.y);")
    with pytest.raises(SwitchError) as caught:
        made(tmp_path, text)
    assert str(caught.value) == (
        "ask is a user-defined extern: no test can be made of what it does"
    )


class Recorded:
    """Stands for the base class and the modules of a PTF file, and notes the calls."""

    calls: list[tuple[str, tuple[object, ...]]] = []

    def __getattr__(self, name: str) -> object:
        return lambda *args: Recorded.calls.append((name, args))


def test_the_ptf_file_does_what_the_stf_files_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, result = made(tmp_path, source(**CASES["copies"]))
    for name in ("base_test", "p4", "p4.v1", "ptf", "ptf.mask"):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        for inside in ("p4runtime_pb2", "testutils"):
            setattr(module, inside, Recorded())
        setattr(module, "P4RuntimeTest", Recorded)  # noqa: B010
        setattr(module, "Mask", bytes)  # noqa: B010
    (written,) = write(result, file, tmp_path, ["ptf"])
    space = runpy.run_path(str(written))
    monkeypatch.setattr(space["MadeTest"], "replicate", Recorded().replicate)
    for test in result.tests:
        Recorded.calls.clear()
        space[f"Test{test.number}"]().runTest()
        sent = [args[1:] for name, args in Recorded.calls if name == "send_packet"]
        assert sent == [(given.port, given.data) for given in test.packets]
        expected = [args[1:] for name, args in Recorded.calls if name == "verify_packet"]
        wanted = [one for each in test.expected for one in each]
        assert expected == [(bytes.fromhex(digits), port) for port, digits in wanted]
        entries = [args for name, args in Recorded.calls if name == "table_add"]
        assert len(entries) == len(test.made.entries) + len(test.made.defaults)
