"""Tests made from small programs: each line without `// never` is covered, and each test passes."""

from __future__ import annotations

import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import psaprograms
import pytest
import tnaprograms
from v1programs import source

pytest.importorskip("z3")

from made_cases import CASES, made  # noqa: E402

from gradplane._p4runtime import p4r  # noqa: E402
from gradplane.switch import stf  # noqa: E402
from gradplane.switch.compiler import compile_source  # noqa: E402
from gradplane.switch.runtime.control_errors import SwitchError  # noqa: E402
from gradplane.switch.testgen.generate import Generated, report, report_json, write  # noqa: E402
from gradplane.switch.testgen.unreachable import unreachable  # noqa: E402


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
    for most in (1, 2, 3):  # without those that a later one makes superfluous
        _, result = made(tmp_path, source(**CASES["defaults"]), tests=most)
        assert len(result.tests) == most
    _, result = made(tmp_path, source(**CASES["registers"]), packets=1)
    assert {len(test.packets) for test in result.tests} == {1}
    assert any(test.made.cells for test in result.tests) and not not_covered(result)
    _, result = made(tmp_path, source(**CASES["registers"]))
    assert max(len(test.packets) for test in result.tests) > 1
    assert not any(test.made.cells for test in result.tests)


def test_the_report(tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES["branches"]))
    lines = report(result).splitlines()
    assert all(len(line) <= 80 for line in lines if "/" not in line), lines
    assert lines[0].startswith(f"{len(result.tests)} tests with ")
    assert any("the condition is true" in line for line in lines)
    form = json.loads(json.dumps(report_json(result)))
    assert [test["number"] for test in form["tests"]] == list(range(1, len(result.tests) + 1))
    places = [place for part in ("covered", "unreachable", "not_covered") for place in form[part]]
    assert len(places) == len(result.found.goals.all)
    assert {place["file"] for place in places} == {str(file)}
    assert any(place["what"] == "the condition is true" for place in form["covered"])
    assert all(place["why"] for place in form["not_covered"])


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


def test_what_an_earlier_branch_has_decided_is_decided_otherwise(tmp_path: Path) -> None:
    """The last condition is no branch of a packet's path: the parser's case has decided it. The
    other case shifts the fields, so that all the conditions before are to be fulfilled again; and
    many branches lead nowhere."""
    aside = "".join(f"if (h.a.x[{k}:{k}] == 1) {{ m.unused[{k}:{k}] = 1; }} " for k in range(8))
    text = source(
        types="header b_t { bit<40> some; } header c_t { bit<16> v; bit<16> w; bit<16> u; }",
        headers="b_t b; c_t c;",
        metadata="bit<2> kind;",
        parser="pkt.extract(h.a); transition select(h.a.kind) {"
        " 1: with_b; 2: with_c; 3: other; default: accept; }",
        states="""
            state with_b { pkt.extract(h.b); transition with_c; }
            state with_c { pkt.extract(h.c); m.kind = 2; transition accept; }
            state other { pkt.extract(h.c); m.kind = 1; transition accept; }""",
        ingress=f"""
            {aside}
            if (h.c.v > 9000) {{
                if (h.c.w == h.c.v + 77) {{
                    if (h.c.u & 0xF0F == 0x505) {{
                        if (h.c.u + h.c.w == 0x1234) {{
                            if (m.kind == 2) {{
                                if (h.b.isValid()) {{
                                    s.egress_spec = 3;
                                }} else {{
                                    s.egress_spec = 4;
                                }}
                            }}
                        }}
                    }}
                }}
            }}""",
    )
    _, result = made(tmp_path, text, runs=200)
    assert result.found.goals.all == result.found.covered & result.found.goals.all


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


def test_default_actions_that_are_set_are_in_each_form(tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES["defaults"]))
    stf_files = write(result, file, tmp_path, ["stf", "ptf", "json"])
    data = json.loads((tmp_path / "made.json").read_text())
    known = [one["table"] for test in data["tests"] for one in test["defaults"]]
    assert set(known) == {"I.keyless", "I.only"}
    lines = [line for f in stf_files if f.suffix == ".stf" for line in f.read_text().splitlines()]
    assert sum(line.startswith("setdefault ") for line in lines) == len(known)
    assert (tmp_path / "made_tests.py").read_text().count('", None), ') == len(known)


def test_contents_of_registers_are_in_each_form(tmp_path: Path) -> None:
    shown: list[tuple[int, int, float]] = []
    file, result = made(tmp_path, source(**CASES["contents"]), shown=shown)
    assert 0 < shown[0][0] < shown[0][1]
    cells = [made for test in result.tests for made in test.made.cells]
    assert {(register.name, at, value) for register, at, value in cells} == {
        ("I.seen", 2, 499), ("I.low", 0, -3)}  # fmt: skip
    write(result, file, tmp_path, ["ptf", "json"])
    text = (tmp_path / "made_tests.py").read_text()
    assert 'self.register("I.seen", 2, 499)' in text
    assert 'self.register("I.low", 0, 253)' in text
    data = json.loads((tmp_path / "made.json").read_text())
    known = [one for test in data["tests"] for one in test["registers"]]
    assert {"register": "I.low", "index": 0, "value": -3} in known


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


class Messages(Recorded):
    """A base class with the parts of base_test.py that fill in requests."""

    device_id = 0
    written: list[p4r.WriteRequest] = []
    _reqs: list[p4r.WriteRequest] = []

    def tearDown(self) -> None:  # noqa: N802
        pass

    def push_update_add_member(
        self, request: p4r.WriteRequest, profile: str, number: int, *action: object
    ) -> None:
        request.updates.add().entity.action_profile_member.member_id = number

    def push_update_add_entry_to_member(
        self, request: p4r.WriteRequest, table: str, key: object, number: int
    ) -> None:
        entry = request.updates.add().entity.table_entry
        entry.action.action_profile_member_id = number

    def write_request(self, request: p4r.WriteRequest) -> None:
        self.written.append(request)


def ptf_classes(
    case: str, base: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], Generated]:
    """Return what the PTF file of a case defines, over a base class."""
    file, result = made(tmp_path, source(**CASES[case]))
    for name in ("base_test", "p4", "p4.v1", "ptf", "ptf.mask"):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        setattr(module, "p4runtime_pb2", p4r)  # noqa: B010
        setattr(module, "testutils", Recorded())  # noqa: B010
        setattr(module, "P4RuntimeTest", base)  # noqa: B010
        setattr(module, "Mask", bytes)  # noqa: B010
    (written,) = write(result, file, tmp_path, ["ptf"])
    return runpy.run_path(str(written)), result


def test_the_ptf_file_does_what_the_stf_files_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, result = ptf_classes("copies", Recorded, tmp_path, monkeypatch)
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


@pytest.mark.parametrize("case", ["profile", "copies"])
def test_requests_of_the_ptf_file_are_the_primary_controllers(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """base_test.py's controller has election id 1; members count from 1, as 0 stands for all."""
    space, result = ptf_classes(case, Messages, tmp_path, monkeypatch)
    Messages.written.clear()
    for test in result.tests:
        Messages.calls.clear()
        one = space[f"Test{test.number}"]()
        one.runTest()
        one.tearDown()
        assert Messages.calls[-1] == ("undo_write_requests", ([],))
    assert Messages.written
    for request in Messages.written:
        assert (request.election_id.high, request.election_id.low) == (0, 1)
        if case == "profile":
            member, entry = (update.entity for update in request.updates)
            number = member.action_profile_member.member_id
            assert number == entry.table_entry.action.action_profile_member_id >= 1
