"""bf-rt.json: the fixed tables of both chips, and what the chip's compiler says of a program's."""

from __future__ import annotations

from typing import Any

import pytest
import tnaprograms

from gradplane.switch.bfruntime import fixed_schema
from gradplane.switch.bfruntime.bound_program import fixed_schemas
from gradplane.switch.bfruntime.program_schema import ProgramSchema
from gradplane.switch.bfruntime.schema import parse_tables
from gradplane.switch.bfruntime.tables.hashes import NAMED
from gradplane.switch.p4runtime.catalog import Catalog

Json = dict[str, Any]


def described(text: str) -> dict[str, Json]:
    return {table.name: table.json() for table in parse_tables(text)}


def fields(table: Json) -> dict[str, Json]:
    return {item["singleton"]["name"]: item["singleton"] for item in table["data"]}


def program(parts: dict[str, str]) -> dict[str, Json]:
    """Return the tables of a program, by the ends of their names."""
    schema = ProgramSchema(Catalog(tnaprograms.switch("interpreter", **parts).program))
    return {t.name.rpartition("ingress.")[2]: t.json()
            for t in schema.schema.tables}  # fmt: skip


def test_the_notation_has_marks_choices_defaults_and_kinds_of_ports() -> None:
    (table,) = parse_tables("""
table t.x Kind 7 12
attribute some
key 1 port uint32?@~5
data 2 places uint8*-
data 3 mode string#~B:A,B
data 4 wide bytes40!
data 5 count uint64^=9
action 1 go
data 6 on bool~true
""")
    found = table.json()
    port = {"name": "$bfrt_port_type_class", "value": "dev_port"}
    (key,) = found["key"]
    assert (key["mandatory"], key["type"], key["annotations"]) == (
        False, {"type": "uint32", "default_value": 5}, [port],
    )  # fmt: skip
    known = fields(found)
    assert known["mode"]["type"] == {"type": "string", "choices": ["A", "B"], "default_value": "B"}
    assert known["mode"]["annotations"] == [{"name": "$bfrt_field_imp_level", "value": "2"}]
    assert known["wide"]["type"] == {"type": "bytes", "width": 40}
    assert known["count"]["annotations"] == [{"name": "clear_only", "value": "true"}]
    assert found["data"][0]["read_only"] and known["places"]["repeated"]
    (action,) = found["action_specs"]
    assert "action_scope" not in action
    assert action["data"][0]["type"] == {"type": "bool", "default_value": True}
    assert (table.data[0].first, table.data[1].first, table.data[3].first) == ([], "A", 9)
    assert found["attributes"] == ["some"]


def test_the_chips_differ_in_ports_groups_and_names() -> None:
    ports = [
        fields(described(text)["$PORT"])
        for text in (fixed_schema.PORTS_TF1, fixed_schema.PORTS_TF2)
    ]
    first, second = (found["$LOOPBACK_MODE"]["type"]["choices"] for found in ports)
    assert [*first, "BF_LPBK_PIPE"] == second
    assert ports[0].keys() - ports[1].keys() == {"$TIMESTAMP_1588_DELTA_RX"}
    lags = [described(t)["$pre.lag"]["size"] for t in (fixed_schema.PRE_TF1, fixed_schema.PRE_TF2)]
    assert lags == [255, 256]
    for chip, text in (("tf1", fixed_schema.DEVICE_TF1), ("tf2", fixed_schema.DEVICE_TF2)):
        sku = fields(described(text)[f"{chip}.dev.device_configuration"])["sku"]["type"]
        assert sku["default_value"] == sku["choices"][0] == "UNKNOWN"
        assert {name[:7] for name in sku["choices"][1:]} == {"BFN-T10" if chip == "tf1" else
                                                             "BFN-T20"}  # fmt: skip


@pytest.mark.parametrize("family", [None, "tf1", "tf2"])
def test_ids_and_names_of_fixed_tables_and_their_fields_are_unique(family: str | None) -> None:
    tables = fixed_schemas(family)
    for about in ("id", "name", "kind"):
        assert len({getattr(table, about) for table in tables}) == len(tables) > 10, about
    for table in tables:
        groups = [table.keys, table.actions, *((*table.data, *a.data) for a in table.actions)]
        for found in groups or [table.data]:
            assert len({f.id for f in found}) == len({f.name for f in found}) == len(found), table


def test_settings_that_are_left_out_have_the_drivers_defaults() -> None:
    port = fields(described(fixed_schema.PORTS_TF1)["$PORT"])
    given = ("$N_LANES", "$PORT_ENABLE", "$TX_MTU", "$CUT_THROUGH_EN", "$SPEED")
    found = [port[name]["type"].get("default_value") for name in given]
    assert found == [1, False, 10240, False, None]
    device = described(fixed_schema.DEVICE_TF1)["tf1.dev.device_configuration"]
    assert fields(device)["flow_learn_timeout_usec"]["type"]["default_value"] == 500


def test_entry_scope_is_listed_for_match_tables_and_value_sets_only() -> None:
    found = program({
        "ingress_locals": """
            Counter<bit<32>, bit<8>>(8, CounterType_t.PACKETS) counted;
            Meter<bit<8>>(8, MeterType_t.PACKETS) metered;
            ActionProfile(8) members;
            action go(PortId_t p) { tm.ucast_egress_port = p; }
            table chosen { key = { h.a.x : exact; } actions = { go; } implementation = members; }
            """,
        "ingress": "chosen.apply(); counted.count(h.a.x); h.a.y = metered.execute(h.a.x);",
    })  # fmt: skip
    listed = {name for name, table in found.items() if "EntryScope" in table["attributes"]}
    assert listed == {"chosen"}
    assert found["metered"]["attributes"] == ["MeterByteCountAdjust"]
    assert found["members"]["attributes"] == found["counted"]["attributes"] == []


def test_a_selectors_table_depends_on_groups_and_members() -> None:
    found = program({
        "ingress_locals": """
            Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
            ActionProfile(8) members;
            ActionSelector(members, spread, SelectorMode_t.FAIR, 4, 2) groups;
            action go(PortId_t p) { tm.ucast_egress_port = p; }
            table chosen { key = { h.a.x : exact; h.a.y : selector; } actions = { go; }
                           implementation = groups; }""",
        "ingress": "chosen.apply();",
    })  # fmt: skip
    ids = [found[name]["id"] for name in ("groups", "members")]
    assert found["chosen"]["depends_on"] == ids
    assert fields(found["groups"])["$ADT_OFFSET"]["type"]["default_value"] == 0xDEADBEEF


@pytest.mark.parametrize("direct", [False, True])
def test_a_registers_parameter_depends_on_the_register_or_its_table(direct: bool) -> None:
    kind = "DirectRegister" if direct else "Register"
    declared = f"RegisterParam<bit<8>>(3) step; {kind}<bit<8>{'' if direct else ', bit<8>'}>"
    declared += f"({'' if direct else '4'}) cells; {kind}Action<bit<8>"
    declared += f"{', bit<8>' if direct else ', bit<8>, bit<8>'}>(cells) add = {{ void apply(inout"
    declared += " bit<8> v, out bit<8> r) { v = v + step.read(); r = v; } };"
    use = f"h.a.y = add.execute({'' if direct else 'h.a.x'});"
    table = f"""action act() {{ {use} }}
        table t {{ key = {{ h.a.z : exact; }} actions = {{ act; NoAction; }}
                   default_action = NoAction; {"registers = cells;" if direct else ""} }}"""
    found = program({"ingress_locals": declared + table, "ingress": "t.apply();"})
    assert found["step"]["depends_on"] == [found["t" if direct else "cells"]["id"]]
    assert fields(found["step"])["value"]["type"]["default_value"] == 3


def test_a_masked_key_and_a_polled_table() -> None:
    found = program({
        "ingress_locals": """
            action go(PortId_t p) { tm.ucast_egress_port = p; }
            table masked { key = { h.a.x & 0x0f : exact; } actions = { go; } }
            @idletime_precision(1)
            table polled { key = { h.a.x : exact; } actions = { go; } idle_timeout = true; }
            table timed { key = { h.a.x : exact; } actions = { go; } idle_timeout = true; }""",
        "ingress": "masked.apply(); polled.apply(); timed.apply();",
    })  # fmt: skip
    assert found["masked"]["key"][0]["type"] == {"type": "bytes", "width": 8, "mask": "0xf"}
    assert "$ENTRY_TTL" not in fields(found["polled"])
    assert "$ENTRY_TTL" in fields(found["timed"])


def test_a_hash_offers_the_drivers_algorithms() -> None:
    found = program(
        {
            "ingress_locals": "Hash<bit<8>>(HashAlgorithm_t.CRC8) digest;",
            "ingress": "h.a.y = digest.get({ h.a.x });",
        }
    )
    (named, _) = found["digest.algorithm"]["action_specs"]
    algorithm = named["data"][0]["type"]
    assert algorithm["choices"] == ["IDENTITY", "RANDOM", "XOR", *NAMED]
    assert algorithm["default_value"] == "RANDOM"
    assert found["digest.algorithm"]["depends_on"] == [found["digest.configure"]["id"]]
    assert found["digest.compute"]["read_only"]


HASHED = {  # p4c 1.2.5.16: its names of what a hash takes
    "{h.a.x, h.a.y}": "h.a.x h.a.y",
    "{h.a.x, 8w0xff, 8w255, 8w0b101}":
        "h.a.x constant0_8_8w0xff constant1_8_8w255 constant2_8_8w0b101",
    "{h.a.x, (bit<8>) 0x2a, 16s5}": "h.a.x constant0_8_8w0x2a constant1_16_16s5",
    "{h.a.x, EIGHT, 8w0XFF & 8w15}": "h.a.x constant0_8_8w0x1f constant1_8_8w0xf",
    "{h.a.x, h.a.y ++ h.a.z}": "h.a.x h.a.y h.a.z",
    "{h.a.x, h.a.y ^ h.a.z ^ 0x1}": "h.a.x h.a.y ^ h.a.z ^ 1",
    "{h.a.x, (bit<16>) h.a.y, h.a.z[3:0]}": "h.a.x (bit<16>)h.a.y h.a.z[3:0]",
}  # fmt: skip


@pytest.mark.parametrize("taken", HASHED)
def test_what_a_hash_takes_has_the_names_of_the_chips_compiler(taken: str) -> None:
    found = program({
        "ingress_locals": "const bit<8> EIGHT = 0x1f; Hash<bit<8>>(HashAlgorithm_t.CRC8) digest;",
        "ingress": f"h.a.y = digest.get({taken});",
    })  # fmt: skip
    configured = list(fields(found["digest.configure"]))
    assert " ".join(configured) == HASHED[taken]
    keys = [key["name"] for key in found["digest.compute"]["key"]]
    assert keys == [name for name in configured if not name.startswith("constant")]


def test_ids_sizes_and_annotations_are_as_the_chips_compiler_writes_them() -> None:
    found = program({
        "ingress_locals": """
            Counter<bit<32>, bit<8>>(8, CounterType_t.PACKETS) counted;
            Meter<bit<8>>(8, MeterType_t.PACKETS) metered;
            Lpf<bit<32>, bit<8>>(8) filtered;
            Hash<bit<8>>(HashAlgorithm_t.CRC8) hashed;
            Register<bit<8>, bit<8>>(8) cells;
            action go(PortId_t p) { tm.ucast_egress_port = p; }
            @idletime_precision(6) table chosen {
                key = { h.a.x : exact; } actions = { go; @defaultonly NoAction; }
                default_action = NoAction(); idle_timeout = true; }""",
        "ingress": """chosen.apply(); counted.count(h.a.x); h.a.y = metered.execute(h.a.x);
            h.a.z = hashed.get({h.a.x}); cells.write(h.a.x, h.a.y);
            h.a.y = (bit<8>) filtered.execute((bit<32>) h.a.x, h.a.z);""",
    })  # fmt: skip
    ports = found["pipe.IngressParser.$PORT_METADATA"]
    kinds = {
        "chosen": 0x02, "counted": 0x83, "metered": 0x85, "filtered": 0x89, "cells": 0x8B,
        "hashed.configure": 0x95, "hashed.compute": 0x96, "hashed.algorithm": 0x97,
    }  # fmt: skip
    assert {name: found[name]["id"] >> 24 for name in kinds} == kinds
    assert (ports["id"] >> 24, ports["size"]) == (0x90, 288)
    assert found["chosen"]["annotations"] == [{"name": "@idletime_precision(6)"}]
    none = [a["annotations"] for a in found["chosen"]["action_specs"]]
    assert none == [[], [{"name": "@defaultonly"}]]
    assert found["counted"]["annotations"] == []
    assert "annotations" not in found["metered"] and "annotations" not in found["cells"]
