"""Where p4c 1.2.5 compiles a program to something else, and this compiler: the rows of
docs/coming-from-bmv2.md, "Beside p4c". On simple_switch_grpc, too, where it is on PATH; the tests
whose names begin with test_there run p4c-bm2-ss.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.p4info import build_p4info

TEXT = """
#include <core.p4>
#include <v1model.p4>
enum bit<12> kind_t { A = 0xab, B = 1 }
header h_t { bit<8> a; bit<8> b; kind_t k; bit<4> p; }
header v_t { bit<8> v; }
struct H { h_t h; v_t[2] st; }
struct M { }
struct d_t { kind_t k; bit<8> v; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start {
        p.extract(h.h);
        transition select(h.h.a, h.h.b) {
            (1, 1): s1;
            (_, 5 &&& 0): s3;
            default: s4;
        }
    }
    state s1 { h.h.b = 11; transition accept; }
    state s3 { h.h.b = 13; transition accept; }
    state s4 { h.h.b = 14; transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.h.a = v; }
    action set2(bit<4> v) { h.h.p = v; }
    table t {
        key = { h.h.a : ternary; h.h.k : ternary; }
        actions = { set; NoAction; }
        largest_priority_wins = false;
        entries = {
            const priority=10: (0x10 &&& 0xf0, _) : set(1);
            const priority=5: (0 &&& 0, _) : set(2);
            const priority=15: (0x11, _) : set(3);
        }
    }
    table u {
        key = { h.h.b : ternary; }
        actions = { set2; NoAction; }
        const entries = {
            13 : set2(1) @priority(30);
            13 &&& 0xf : set2(2) @priority(20);
        }
    }
    table w {
        key = { h.st[1].v : exact; h.h.isValid() : exact; }
        actions = { NoAction; }
    }
    apply {
        s.egress_spec = 1;
        t.apply();
        u.apply();
        w.apply();
        digest<d_t>(1, { h.h.k, h.h.b });
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control K(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), K(), D()) main;
"""
COMPILED = compile_source("beside.p4", text=TEXT)
Process = Callable[[int, bytes], list[tuple[int, bytes]]]


def theirs() -> Iterator[Process]:
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        info = p4_programs.p4info_message(COMPILED.program, "bmv2")
        switch.load(info, p4_programs.compiled_for("bmv2", COMPILED).encode())
        yield switch.process


@pytest.fixture(scope="module", params=["interpreter", "jit", "simple_switch_grpc"])
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    if request.param != "simple_switch_grpc":
        yield Switch(COMPILED.program, engine=request.param).process
        return
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    yield from theirs()


def test_a_case_that_matches_everything_wins_over_the_default_after_it(process: Process) -> None:
    """p4c's JSON has two defaults, of which BMv2 takes the last."""
    assert [process(0, bytes([a, 1, 0, 0]))[0][1][1] for a in (1, 7)] == [11, 13]


def test_priorities_where_the_smallest_wins(process: Process) -> None:
    """As in p4c's JSON; its file of entries has them as written, where a server's largest wins."""
    assert [process(0, bytes([a, 1, 0, 0]))[0][1][0] for a in (0x11, 0x12)] == [2, 2]


def test_priorities_by_annotation_are_obeyed(process: Process) -> None:
    """As in p4c's JSON; its warning says that they are ignored, and its file of entries does so."""
    assert process(0, bytes([7, 1, 0, 0]))[0][1][3] & 15 == 2


def test_enums_in_keys_and_digests() -> None:
    """A key's type_name is for what `type` declares, as in p4c's P4Info. PI refuses p4c's digest
    of a serializable enum."""
    info = build_p4info(COMPILED.program)
    tables = {t.preamble.alias: t for t in info.tables}
    assert [f.type_name.name for f in tables["t"].match_fields] == ["", ""]
    members = info.type_info.structs["d_t"].members
    assert members[0].type_spec.serializable_enum.name == "kind_t"
    for_pi = p4i.P4Info()
    text_format.Parse(p4_programs.p4info(COMPILED.program, "bmv2"), for_pi)
    assert for_pi.type_info.structs["d_t"].members[0].type_spec.bitstring.bit.bitwidth == 12


def test_keys_of_isvalid_and_of_a_stacks_element() -> None:
    """The first is named as in p4c's P4Info; the second is no copy, as in p4c's JSON."""
    info = build_p4info(COMPILED.program)
    [table] = [t for t in info.tables if t.preamble.alias == "w"]
    assert [f.name for f in table.match_fields] == ["h.st[1].v", "h.h.$valid$"]
    found: dict[str, Any] = json.loads(p4_programs.compiled_for("bmv2", COMPILED))
    [there] = [t for p in found["pipelines"] for t in p["tables"] if t["name"] == "I.w"]
    assert [key["target"] for key in there["key"]] == [["st[1]", "v"], ["h", "$valid$"]]


# -- p4c itself -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """What p4c makes of the program, and what it says."""

    info: p4i.P4Info
    entries: list[p4r.TableEntry]
    config: bytes
    said: str

    @property
    def tables(self) -> dict[str, Any]:
        """The JSON's tables, by name."""
        pipelines = json.loads(self.config)["pipelines"]
        return {t["name"]: t for pipeline in pipelines for t in pipeline["tables"]}


@pytest.fixture(scope="module")
def p4c(tmp_path_factory: pytest.TempPathFactory) -> Made:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    folder: Path = tmp_path_factory.mktemp("p4c")
    (folder / "beside.p4").write_text(TEXT)
    words = "p4c-bm2-ss --arch v1model --p4runtime-files info.txtpb"
    words += " --p4runtime-entries-files entries.txtpb -o beside.json beside.p4"
    done = subprocess.run(words.split(), cwd=folder, capture_output=True, text=True, check=True)
    info, entries = p4i.P4Info(), p4r.WriteRequest()
    text_format.Parse((folder / "info.txtpb").read_text(), info)
    text_format.Parse((folder / "entries.txtpb").read_text(), entries)
    found = [update.entity.table_entry for update in entries.updates]
    return Made(info, found, (folder / "beside.json").read_bytes(), done.stderr)


@pytest.fixture(scope="module")
def there(p4c: Made) -> Iterator[Bmv2Switch]:
    """Provide BMv2 with p4c's JSON, and a P4Info that PI takes."""
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        switch.load(p4_programs.p4info_message(COMPILED.program, "bmv2"), p4c.config)
        yield switch


def test_there_the_last_default_wins(there: Bmv2Switch) -> None:
    assert [there.process(0, bytes([a, 1, 0, 0]))[0][1][1] for a in (1, 7)] == [11, 14]


def test_there_priorities_are_the_jsons(there: Bmv2Switch) -> None:
    assert [there.process(0, bytes([a, 1, 0, 0]))[0][1][0] for a in (0x11, 0x12)] == [2, 2]


def test_there_annotated_priorities_are_said_to_be_ignored_and_are_in_the_json(p4c: Made) -> None:
    assert "will be ignored" in p4c.said
    entries = p4c.tables["I.u"]["entries"]
    assert [entry["priority"] for entry in entries] == [30, 20]


def test_there_the_file_of_entries_has_other_priorities(p4c: Made) -> None:
    names = {table.preamble.id: table.preamble.alias for table in p4c.info.tables}
    found = [(names[e.table_id], e.priority, e.action.action.params[0].value) for e in p4c.entries]
    assert [(n, value) for name, n, value in found if name == "t"] == [
        (5, b"\2"),
        (10, b"\1"),
        (15, b"\3"),
    ]
    assert [(n, value) for name, n, value in found if name == "u"] == [(2, b"\1"), (1, b"\2")]


def test_there_names_and_types_are_the_same(p4c: Made) -> None:
    tables = {t.preamble.alias: t for t in p4c.info.tables}
    assert [f.type_name.name for f in tables["t"].match_fields] == ["", ""]
    assert [f.name for f in tables["w"].match_fields] == ["h.st[1].v", "h.h.$valid$"]
    assert [key["target"][0] for key in p4c.tables["I.w"]["key"]] == ["scalars", "h"]


def test_there_a_digest_with_an_enum_is_refused(p4c: Made, there: Bmv2Switch) -> None:
    with pytest.raises(DiffError, match="Error when importing p4info"):
        there.load(p4c.info, p4c.config)
