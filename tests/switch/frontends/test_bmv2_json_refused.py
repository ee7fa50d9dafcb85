"""Errors in a BMv2 JSON file are reported with their place in the JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bmv2_documents import Json, assign, document, field, hexstr, op, primitive, read
from finsy.proto import p4i

from gradplane.experiment import p4_programs
from gradplane.switch.frontends.bmv2 import read_program
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.source import CompileError, InternalCompilerError

FIELDS = [["a", 8, False]]
A = field("h", "a")


def changed(path: str, value: Any) -> Json:
    """A document with one value replaced: path is keys and indices, separated by blanks."""
    found: Json = json.loads(json.dumps(document(FIELDS, [assign(A, hexstr(1))])))
    here: Any = found
    *steps, last = [int(s) if s.isdigit() else s for s in path.split()]
    for step in steps:
        here = here[step]
    here[last] = value
    return found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (changed("actions 0 primitives 0 op", "fly"),
         "actions[0].primitives[0].op: primitive fly is not supported"),
        (changed("actions 0 primitives 0 parameters 0 value 0", "g"),
         "actions[0].primitives[0].parameters[0].value[0]: there is no header, stack or union g"),
        (changed("actions 0 primitives 0 parameters 0 value 1", "b"),
         "actions[0].primitives[0].parameters[0].value[1]: h_t has no field b"),
        (changed("pipelines 0 init_table", "nowhere"),
         "pipelines[0].init_table: there is no node nowhere in this pipeline"),
        (changed("pipelines 0 action_calls 0 action_id", 9),
         "pipelines[0].action_calls[0].action_id: there is no action with id 9"),
        (changed("pipelines 0 name", "side"), "pipelines: there is no pipeline ingress"),
        (changed("headers 2 header_type", "k_t"),
         "headers[2].header_type: there is no header type k_t"),
        (changed("headers 0 name", "std"),
         "headers: there is no metadata instance standard_metadata"),
        (changed("header_types 2 fields 0 1", "wide"),
         "header_types[2].fields[0][1]: expected a number, found 'wide'"),
        (changed("header_types 2 fields 0 1", -1),
         "header_types[2].fields[0][1]: expected a width of 0 to 65536 bits, found -1"),
        (changed("header_types 2 fields 0 1", 10**30),
         f"header_types[2].fields[0][1]: expected a width of 0 to 65536 bits, found {10**30}"),
        (changed("parsers 0 parse_states 0 transition_key",
                 [{"type": "lookahead", "value": [0, 1 << 64]}]),
         "parsers[0].parse_states[0].transition_key[0].value[1]: expected a width of 0 to 65536"
         f" bits, found {1 << 64}"),
        (changed("parsers 0 init_state", "second"),
         "parsers[0].init_state: there is no state second"),
        (changed("parsers 0 parse_states 0 parser_ops 0 op", "rewind"),
         "parsers[0].parse_states[0].parser_ops[0]: operation rewind with 1 parameters is not"
         " supported"),
        (changed("deparsers 0 order 0", "z"),
         "deparsers[0].order[0]: there is no header, stack or union z"),
        (changed("errors", [["NoError", 0], ["PacketTooShort", 0]]),
         "errors[1]: another error has this name or this code"),
        (document(FIELDS, [], __meta__={"version": [3, 1]}),
         "__meta__.version: format version 3.1: 2.x is supported"),
        (document(FIELDS, [], extern_instances=[{"name": "x", "id": 0, "type": "vault"}]),
         "extern_instances[0].type: extern vault is not supported"),
        (document(FIELDS, [assign(A, op("<<", A, op("<<", A, op("<<", A, A))))]),
         "actions[0].primitives[0].parameters[1].value.value.right.value: a shift by up to"),
        (document(FIELDS, [assign(A, op("**", A, A))]),
         "actions[0].primitives[0].parameters[1].value.value: operator '**' is not known"),
        (document(FIELDS, [primitive("add_header", A)]),
         "actions[0].primitives[0].parameters[0]: expected a header, stack or union"),
        (document(FIELDS, [primitive("_jump", hexstr(77))]),
         "actions[0].primitives[0].parameters[0]: there is no primitive 77; the action has 2"),
        (document(FIELDS, [{"parameters": []}]),
         "actions[0].primitives[0]: it has no member 'op'"),
        (document(FIELDS, [primitive("register_read", A, {"type": "register_array", "value": "r"},
                                     hexstr(0))]),
         "actions[0].primitives[0].parameters[1].value: there is no register r"),
    ],
)  # fmt: skip
def test_the_place_is_named(found: Json, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        read(found)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message.startswith(message)


def test_line_and_column() -> None:
    with pytest.raises(CompileError) as caught:
        read(changed("actions 0 primitives 0 op", "fly"))
    (diagnostic,) = caught.value.diagnostics
    text = json.dumps(changed("actions 0 primitives 0 op", "fly"), indent=1).split("\n")
    line = text[diagnostic.span.line - 1]
    assert line[diagnostic.span.column - 1 :].startswith('"fly"')
    assert str(caught.value).splitlines()[1].strip() == '"op": "fly",'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "program.json:1:1: error: this is not valid JSON: "),
        ('{"parsers":' + "[" * 10**5, "program.json:1:1: error: this is not valid JSON: maximum"),
        ("[]", "program.json:1:1: error: the document: this is not BMv2's JSON: it has none of"),
        ('{"x": 1}', "program.json:1:1: error: the document: this is not BMv2's JSON: it has none"),
    ],
)
def test_other_text(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        read_program(text, "program.json")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [[]], [{}], True])
@pytest.mark.parametrize(
    "section",
    [
        "header_types", "headers", "header_stacks", "header_unions", "errors", "parsers",
        "deparsers", "actions", "pipelines", "calculations", "register_arrays", "field_lists",
        "counter_arrays", "meter_arrays", "checksums", "parse_vsets", "learn_lists",
        "field_aliases", "header_union_types", "header_union_stacks", "extern_instances",
    ],
)  # fmt: skip
def test_a_section_of_another_kind_is_refused_or_read(section: str, value: Any) -> None:
    try:
        read(document(FIELDS, [], **{section: value}))
    except CompileError as error:
        assert error.diagnostics[0].message


@pytest.mark.parametrize("width", [-1, 1 << 17])
def test_a_width_in_p4info_that_no_type_has(width: int) -> None:
    info = p4i.P4Info()
    info.registers.add()
    info.registers.add().type_spec.bitstring.bit.bitwidth = width
    with pytest.raises(CompileError) as caught:
        read_program(json.dumps(document(FIELDS, [])), "program.json", info)
    (diagnostic,) = caught.value.diagnostics
    place = "the document: P4Info.registers[1].type_spec.bitstring.bit.bitwidth"
    assert diagnostic.message == f"{place} is {width}: expected a width of 0 to 65536 bits"


def test_registers_that_are_wider_in_p4info() -> None:
    info = p4i.P4Info()
    register = info.registers.add()
    register.preamble.name = "r"
    register.type_spec.bitstring.bit.bitwidth = 16
    array = {"name": "r", "id": 0, "size": 1, "bitwidth": 8}
    with pytest.raises(CompileError) as caught:
        read_program(json.dumps(document(FIELDS, [], register_arrays=[array])), "p.json", info)
    (diagnostic,) = caught.value.diagnostics
    place = "register_arrays[0].bitwidth"
    assert diagnostic.message == f"{place}: cells of 8 bits have 16 bits in the P4Info"


STF = Path(__file__).parents[1] / "stf"
WRONG = [
    None, 0, -1, 99999, 1.5, True, "", "x", "0x", "-0x1", [], {}, [[]], ["a", "b"],
    {"type": "field", "value": ["a", "b"]}, {"type": "hexstr", "value": "0x1"},
]  # fmt: skip


@pytest.mark.parametrize("name", ["exercises/acl", "exercises/ecmp", "features/value_set"])
def test_a_damaged_file_is_refused_or_read(name: str) -> None:
    """Whatever one value of a file is replaced by, it is never an internal error."""
    text = p4_programs.compiled_for("bmv2", p4_programs.compiled(STF / f"{name}.p4"))
    paths, random = [*spots(json.loads(text))][1:], Random(name)
    for _ in range(100):
        found = json.loads(text)
        here, path = found, random.choice(paths)
        for step in path[:-1]:
            here = here[step]
        if random.random() < 0.3:
            del here[path[-1]]
        else:
            here[path[-1]] = random.choice(WRONG)
        try:
            read_program(json.dumps(found), "program.json")
        except InternalCompilerError as error:
            raise AssertionError(path) from error
        except CompileError as error:
            assert error.diagnostics[0].message


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document."""
    yield path
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from spots(inner, (*path, key))


def test_a_program_that_contradicts_itself() -> None:
    path = Path(__file__).parents[1] / "stf" / "exercises" / "router.p4"
    text = p4_programs.compiled_for("bmv2", p4_programs.compiled(path))
    found = json.loads(text)
    tables = next(p["tables"] for p in found["pipelines"] if p["tables"])
    tables.append(tables[0])
    with pytest.raises(CompileError) as said:
        read_program(json.dumps(found), "router.json")
    assert not isinstance(said.value, InternalCompilerError)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("max_size", 1 << 64, f"expected a size of 0 to {2**31 - 1}, found {1 << 64}"),
        ("max_size", -1, f"expected a size of 0 to {2**31 - 1}, found -1"),
        ("prefix_length", -1, "expected a length of 0 to 32 bits, found -1"),
        ("prefix_length", 33, "expected a length of 0 to 32 bits, found 33"),
    ],
)
def test_a_number_that_no_table_has(member: str, value: int, message: str) -> None:
    path = Path(__file__).parents[1] / "stf" / "exercises" / "router.p4"
    found = json.loads(p4_programs.compiled_for("bmv2", p4_programs.compiled(path)))
    table = next(
        t
        for p in found["pipelines"]
        for t in p["tables"]
        if [k["match_type"] for k in t["key"]] == ["lpm"]
    )
    entry = {
        "match_key": [{"match_type": "lpm", "key": "0x0a000000", "prefix_length": 8}],
        "action_entry": {"action_id": table["action_ids"][-1], "action_data": []},
        "priority": 1,
    }
    table["entries"] = [entry]
    (entry["match_key"][0] if member == "prefix_length" else table)[member] = value
    with pytest.raises(CompileError) as said:
        read_program(json.dumps(found), "router.json")
    (diagnostic,) = said.value.diagnostics
    assert diagnostic.message.endswith(f"{member}: {message}")


def test_an_index_of_a_type_that_p4info_does_not_describe() -> None:
    info = p4i.P4Info()
    register = info.registers.add()
    register.preamble.name, register.preamble.id = "r", 369098753
    register.type_spec.bitstring.bit.bitwidth = 8
    register.index_type_name.name = "port_t"
    array = {"name": "r", "id": 0, "size": 1, "bitwidth": 8}
    text = json.dumps(document(FIELDS, [], register_arrays=[array]))
    program = read_program(text, "program.json", info)
    (register,) = build_p4info(program).registers
    assert not register.HasField("index_type_name")
