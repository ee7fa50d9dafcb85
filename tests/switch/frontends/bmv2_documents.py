"""A small BMv2 JSON document to fill in: one header, an action that runs for each packet; and the
packet test of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradplane.switch.frontends.bmv2 import read_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.stf.stf_grammar import parse
from gradplane.switch.stf.tester import Clock, Tester
from gradplane.switch.switch import Switch

Json = dict[str, Any]
STANDARD = [
    ("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32),
    ("packet_length", 32), ("enq_timestamp", 32), ("enq_qdepth", 19), ("deq_timedelta", 32),
    ("deq_qdepth", 19), ("ingress_global_timestamp", 48), ("egress_global_timestamp", 48),
    ("mcast_grp", 16), ("egress_rid", 16), ("checksum_error", 1), ("parser_error", 32),
    ("priority", 3), ("_padding", 3),
]  # fmt: skip


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def hexstr(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json | None, right: Json | int, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right} | more}


def primitive(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: Json, value: Json) -> Json:
    return primitive("assign", target, {"type": "expression", "value": value})


def document(fields: list[list[Any]], primitives: list[Json], **sections: Any) -> Json:
    """A program that extracts and emits one header `h`, and sends packets to port 1."""
    out = primitive("assign", field("standard_metadata", "egress_spec"), hexstr(1))
    found: Json = {
        "header_types": [
            {"name": "standard_metadata", "id": 0, "fields": [[n, w, False] for n, w in STANDARD]},
            {"name": "scalars_0", "id": 1, "fields": [["tmp", 8, False]]},
            {"name": "h_t", "id": 2, "fields": fields},
        ],
        "headers": [
            {"name": "standard_metadata", "id": 0, "header_type": "standard_metadata",
             "metadata": True},
            {"name": "scalars", "id": 1, "header_type": "scalars_0", "metadata": True},
            {"name": "h", "id": 2, "header_type": "h_t", "metadata": False},
        ],
        "errors": [["NoError", 0], ["PacketTooShort", 1]],
        "parsers": [{"name": "parser", "id": 0, "init_state": "first", "parse_states": [
            {"name": "first", "id": 0, "parser_ops": [
                {"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}],
             "transition_key": [], "transitions": [{"type": "default", "next_state": None}]}]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"]}],
        "actions": [{"name": "act", "id": 0, "runtime_data": [],
                     "primitives": [*primitives, out]}],
        "pipelines": [
            {"name": "ingress", "id": 0, "init_table": "call", "tables": [], "conditionals": [],
             "action_calls": [{"name": "call", "id": 0, "action_id": 0, "next_node": None}]},
            {"name": "egress", "id": 1, "init_table": None, "tables": [], "conditionals": []},
        ],
    }  # fmt: skip
    return found | sections


def read(found: Json) -> ir.Program:
    from json import dumps

    return read_program(dumps(found, indent=1), "program.json")


def failures(program: ir.Program, path: Path, engine: str) -> list[str]:
    """Run the packet test beside a source; what is wrong."""
    clock, test = Clock(), path.with_suffix(".stf")
    tester = Tester(Switch(program, engine=engine, clock=clock), clock, str(test))
    for statement in parse(test.read_text(), str(test)):
        tester.run(statement)
    tester.finish()
    return [*tester.expectations.failures(), *tester.problems, *tester.refused]
