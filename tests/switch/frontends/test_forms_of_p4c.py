"""JSON as p4c writes it: calls of actions as tables, metadata instances, missing keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bmv2_documents import Json, assign, document, failures, field, hexstr, op, primitive, read

from gradplane.experiment import p4_programs
from gradplane.switch.frontends.bmv2 import read_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.verify import verify
from gradplane.switch.ir.walk import nested
from gradplane.switch.p4runtime.device import differences
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.switch import Switch

STF = Path(__file__).parents[1] / "stf"
EXERCISES = sorted((STF / "exercises").glob("*.p4"))


def as_p4c(found: Json) -> Json:
    """Give each call of an action a table without a key, as p4c does, and drop what it drops."""
    names = {a["id"]: a["name"] for a in found["actions"]}
    for pipeline in found["pipelines"]:
        renamed = {c["name"]: f"tbl_{c['name']}" for c in pipeline["action_calls"]}
        for call in pipeline.pop("action_calls"):
            action, after = call["action_id"], call["next_node"]
            pipeline["tables"].append({
                "name": renamed[call["name"]], "id": 1000 + call["id"], "key": [],
                "match_type": "exact", "type": "simple", "max_size": 1024, "with_counters": False,
                "support_timeout": False, "direct_meters": None, "action_ids": [action],
                "actions": [names[action]], "base_default_next": after,
                "next_tables": {names[action]: after},
                "default_entry": {"action_id": action, "action_const": True, "action_data": [],
                                  "action_entry_const": True},
            })  # fmt: skip
        nodes = [*pipeline["tables"], *pipeline["conditionals"], pipeline]
        for node in nodes:
            for key in ("true_next", "false_next", "base_default_next", "init_table"):
                if node.get(key) in renamed:
                    node[key] = renamed[node[key]]
            following = node.get("next_tables", {})
            for key, name in following.items():
                following[key] = renamed.get(name, name)
        for table in pipeline["tables"]:
            if table["type"] != "simple":
                table.pop("default_entry", None)
    return found


@pytest.mark.parametrize("with_p4info", [True, False], ids=["p4info", "alone"])
@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_calls_of_actions_are_tables(path: Path, with_p4info: bool) -> None:
    compiled = p4_programs.compiled(path)
    found = as_p4c(json.loads(p4_programs.compiled_for("bmv2", compiled)))
    info = build_p4info(compiled.program) if with_p4info else None
    program = read_program(json.dumps(found), "program.json", info)
    verify(program)
    assert not [t.name for t in program.tables if t.name.startswith("tbl_")]
    assert failures(program, path, "interpreter") == []


def test_jumps_become_conditions() -> None:
    a = field("h", "a")
    cond = op("b2d", None, op(">", a, hexstr(7)))
    code = [
        primitive("_jump_if_zero", {"type": "expression", "value": cond}, hexstr(3)),
        assign(a, op("&", op("+", a, hexstr(1)), hexstr(0xFF))),
        primitive("_jump", hexstr(4)),
        assign(a, hexstr(0)),
    ]
    program = read(document([["a", 8, False]], code))
    ingress = program.package.control("ig")
    assert [type(s) for s in ingress.body] == [ir.If, ir.Assign]
    switch = Switch(program, engine="interpreter")
    assert [switch.process(0, bytes([n]))[0][1] for n in (8, 7)] == [b"\x09", b"\x00"]


def test_what_one_block_uses_is_a_local_variable() -> None:
    tmp = field("scalars", "tmp")
    code = [assign(tmp, field("h", "a")), assign(field("h", "a"), op("~", None, tmp))]
    program = read(document([["a", 8, False]], code))
    assert [v.name for v in program.package.control("ig").locals] == ["scalars.tmp"]
    assert Switch(program, engine="jit").process(0, b"\x0f") == [(1, b"\xf0")]


def test_a_resubmission_with_list_0_is_none() -> None:
    """simple_switch takes it so, and p4c counts its lists from 1."""
    code = [primitive("resubmit", hexstr(0))]
    program = read(document([["a", 8, False]], code))
    stmts = nested(program.package.control("ig").body)
    assert not [s for s in stmts if isinstance(s, ir.CallExtern)]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_header_that_is_made_valid_as_it_is(engine: str) -> None:
    """add_header clears the fields of an invalid header, add_header_fast keeps them."""
    a, h = field("h", "a"), {"type": "header", "value": "h"}
    results = []
    for name in ("add_header", "add_header_fast"):
        code = [primitive("remove_header", h), assign(a, hexstr(5)), primitive(name, h)]
        switch = Switch(read(document([["a", 8, False]], code)), engine=engine)
        results.append(switch.process(0, b"\x09"))
    assert results == [[(1, b"\x00")], [(1, b"\x05")]]


def test_primitives_of_p4_14() -> None:
    a, b = field("h", "a"), field("h", "b")
    code = [
        primitive("add_to_field", a, hexstr(255)),
        primitive("shift_left", b, a, hexstr(1)),
        primitive("bit_xor", b, b, hexstr(0x0F)),
        primitive("no_op"),
    ]
    switch = Switch(read(document([["a", 8, False], ["b", 8, False]], code)), engine="interpreter")
    assert switch.process(0, b"\x09\x00") == [(1, b"\x08\x1f")]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_calculations_have_the_names_of_the_json(engine: str) -> None:
    """Two calls of one calculation share what the control plane sets."""
    a, out = field("h", "a"), field("h", "b")
    name = {"type": "calculation", "value": "calc_7"}
    call = "modify_field_with_hash_based_offset"
    code = [primitive(call, out, hexstr(0), name, hexstr(65536))] * 2
    found = document([["a", 8, False], ["b", 16, False]], code)
    found["calculations"] = [{"name": "calc_7", "id": 0, "algo": "crc16_custom", "input": [a]}]
    switch = Switch(read(found), engine=engine)
    before = switch.process(0, b"\x01\x00\x00")
    switch.run_commands("set_crc16_parameters calc_7 0x1021 0xffff 0 false false")
    assert switch.process(0, b"\x01\x00\x00") != before
    assert [crc.name for crc in switch.state.crcs.values()] == ["calc_7", "calc_7"]


def test_p4info_of_p4c_agrees() -> None:
    """It also lists actions that no table has, and numbers the digests of tuples."""
    compiled = p4_programs.compiled(STF / "exercises" / "heavy_hitter.p4")
    text = p4_programs.compiled_for("bmv2", compiled).replace('"digest_0"', '"tuple_1"')
    info = build_p4info(compiled.program)
    info.actions.add().preamble.name = "I.called"
    info.actions[-1].preamble.id = 0x0100_0001
    found = read_program(text, "program.json", info)
    assert differences(info, build_p4info(found)) == []
    assert [d.preamble.name for d in build_p4info(found).digests] == ["digest_0"]
    info.tables.add().action_refs.add(id=0x0100_0001)
    claims = differences(info, build_p4info(found))
    assert any("action I.called is not in the program" in claim for claim in claims)


def test_a_table_with_entries_has_the_size_of_its_p4info() -> None:
    """In p4c's JSON it has the number of the entries."""
    compiled = p4_programs.compiled(STF / "features" / "priority_delta.p4")
    found = json.loads(p4_programs.compiled_for("bmv2", compiled))
    info = build_p4info(compiled.program)
    for table in found["pipelines"][0]["tables"]:
        table["max_size"] = len(table.get("entries", ()))
    program = read_program(json.dumps(found), "program.json", info)
    assert [t.size for t in program.tables] == [t.size for t in info.tables]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_errors_counted_from_one(engine: str) -> None:
    """As earlier p4c did; ONOS ships such JSON. Errors that it does not have come after them."""
    copied = assign(field("h", "a"), field("standard_metadata", "parser_error"))
    found = document([["a", 8, False]], [copied])
    operations = found["parsers"][0]["parse_states"][0]["parser_ops"]
    operations.append({"op": "verify", "parameters": [op("!=", field("h", "a"), hexstr(9)),
                                                      hexstr(3)]})  # fmt: skip
    found["errors"] = [["NoError", 1], ["PacketTooShort", 2], ["Nine", 3]]
    program = read(found)
    verify(program)
    assert program.errors[:5] == ["error_0", "NoError", "PacketTooShort", "Nine", "NoMatch"]
    switch = Switch(program, engine=engine)
    assert switch.process(0, b"\x07") == [(1, b"\x01")]
    assert switch.process(0, b"\x09") == [(1, b"\x03")]
    assert switch.process(0, b"") == [(1, b"")]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(("name", "equal"), [("==", True), ("!=", False)])
def test_fields_of_variable_length_are_compared(name: str, equal: bool, engine: str) -> None:
    """p4c writes their fields as numbers'. Of unequal lengths they are unequal (P4_16)."""
    result = op("b2d", None, op(name, field("h", "v"), field("other", "v")))
    found = document([["a", 8, False], ["n", 8, False], ["v", "*"]],
                     [assign(field("h", "a"), result)])  # fmt: skip
    found["header_types"][2]["max_length"] = 6
    found["headers"].append({"name": "other", "id": 3, "header_type": "h_t", "metadata": False})
    found["parsers"][0]["parse_states"][0]["parser_ops"] = [
        {"op": "extract_VL", "parameters": [
            {"type": "regular", "value": header},
            {"type": "expression", "value": {
                "type": "expression", "value": op("<<", size, hexstr(3))}}]}
        for header, size in (("h", hexstr(2)), ("other", field("h", "n")))
    ]  # fmt: skip
    found["deparsers"][0]["order"].append("other")
    switch = Switch(read(found), engine=engine)
    for first, second, same in ("0005", "0005", 1), ("0005", "0006", 0), ("0005", "05", 0):
        rest = f"{len(second) // 2:02x}{first}0000{second}"
        left = switch.process(0, bytes.fromhex(f"07{rest}"))
        assert left == [(1, bytes([same if equal else 1 - same]) + bytes.fromhex(rest))]


def test_a_table_without_a_default_action_beside_one_with_no_action() -> None:
    """A controller may use NoAction of the one, and not that which the other one lacks."""
    table = {"id": 0, "key": [], "match_type": "exact", "type": "simple", "max_size": 16,
             "with_counters": False, "support_timeout": False, "direct_meters": None,
             "base_default_next": None}  # fmt: skip
    found = document([["a", 8, False]], [])
    found["actions"].append({"name": "NoAction", "id": 1, "runtime_data": [], "primitives": []})
    first = {"name": "I.first", "action_ids": [1], "actions": ["NoAction"],
             "next_tables": {"NoAction": "I.second"}}  # fmt: skip
    second = {"name": "I.second", "id": 1, "action_ids": [0], "actions": ["act"],
              "next_tables": {"act": None}}  # fmt: skip
    found["pipelines"][0] |= {"init_table": "I.first", "action_calls": [],
                              "tables": [table | first, table | second]}  # fmt: skip
    info = build_p4info(read(found))
    assert [action.preamble.name for action in info.actions] == ["NoAction", "act"]


def test_a_trace_shows_only_places_that_the_json_gives() -> None:
    place = {"filename": "a.p4", "line": 7, "column": 3, "source_fragment": "h.a = 5"}
    found = document([["a", 8, False]], [assign(field("h", "a"), hexstr(5))])
    found["actions"][0]["primitives"][0]["source_info"] = place
    text = Switch(read(found)).trace(0, b"\x01").text()
    assert "  state start\n" in text and "  hdr.h.a = 5    [a.p4:7:3]\n" in text


def test_a_message_without_values() -> None:
    """p4c writes an empty object where the list of values is empty."""
    text = {"type": "string", "value": "seen"}
    message = primitive("log_msg", text, {"type": "parameters_vector", "value": {}})
    trace = Switch(read(document([["a", 8, False]], [message]))).trace(0, b"\x01")
    assert "log: seen" in trace.text()


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_copy_of_the_standard_metadata_is_marked(engine: str) -> None:
    """The packet is dropped only where the copy is assigned back, as for an argument `inout`."""
    copy, standard = ({"type": "header", "value": n} for n in ("s_0", "standard_metadata"))
    spec = field("standard_metadata", "egress_spec")
    mark = primitive("mark_to_drop", copy)
    code = [
        assign(spec, hexstr(1)),
        assign(field("standard_metadata", "mcast_grp"), hexstr(7)),
        primitive("assign_header", copy, standard),
        mark,
        assign(field("h", "spec"), field("s_0", "egress_spec")),
        assign(field("h", "group"), field("s_0", "mcast_grp")),
        assign(field("h", "kept"), field("standard_metadata", "mcast_grp")),
        assign(field("standard_metadata", "mcast_grp"), hexstr(0)),
    ]
    back = primitive("assign_header", standard, copy)
    fields = [["spec", 16, False], ["group", 16, False], ["kept", 16, False]]
    results = []
    for primitives in (code, [*code, back]):
        found = document(fields, [])
        found["actions"][0]["primitives"] = primitives
        found["headers"].append(
            {"name": "s_0", "id": 3, "header_type": "standard_metadata", "metadata": True}
        )
        program = read(found)
        verify(program)
        results.append(Switch(program, engine=engine).process(0, bytes(6)))
    assert results == [[(1, bytes([1, 255, 0, 0, 0, 7]))], []]
