"""The P4 tutorials' runtime JSON files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from one_of_each import packet

from gradplane.switch import Switch
from gradplane.switch.commands import CommandError

WHOLE = {
    "target": "bmv2",
    "p4info": "build/all.p4.p4info.txt",
    "bmv2_json": "build/all.json",
    "table_entries": [
        {"table": "I.hosts", "default_action": True, "action_name": "I.drop", "action_params": {}},
        {
            "table": "I.hosts",
            "match": {"h.eth.dst": ["00:00:00:00:00:09"]},
            "action_name": "I.group",
            "action_params": {"id": [11]},
        },
        {
            "table": "I.acl",
            "match": {"h.eth.src": [1, "0xff"], "h.eth.type": [0x800, 0x8FF]},
            "priority": 1,
            "action_name": "NoAction",
            "action_params": {},
        },
        {
            "table": "acl",
            "match": {"h.eth.src": [1, 255]},
            "priority": 5,
            "action_name": "counted",
            "action_params": {"port": 3},
        },
        {
            "table": "I.limits",
            "match": {"h.eth.type": [0x800, 16]},
            "action_name": "NoAction",
            "action_params": {},
        },
    ],
    "multicast_group_entries": [
        {"multicast_group_id": 11, "replicas": [{"egress_port": 1, "instance": 1},
                                                {"egress_port": 2, "instance": 1}]},
    ],
    "clone_session_entries": [
        {"clone_session_id": 5, "replicas": [{"egress_port": 7}], "packet_length_bytes": 64},
    ],
}  # fmt: skip


def test_a_whole_file(sw: Switch) -> None:
    said = sw.run_commands(json.dumps(WHOLE, indent=2), "s1-runtime.json")
    assert said == "note: build/all.json is not used: the switch runs its P4 source"
    assert [port for port, _ in sw.process(0, packet(9))] == [1, 2]
    assert [port for port, _ in sw.process(0, packet(8))] == [3]  # the larger priority wins
    assert [len(sw.table(name)) for name in ("hosts", "acl", "limits")] == [1, 2, 1]
    assert sw.run_commands("mirroring_get 5").endswith("port=7)")
    assert sw.state.clone_sessions[5].truncate == 64


def test_texts_at_other_keys_are_comments(sw: Switch) -> None:
    """Public files have "comment"; the tutorials' controller passes over every other key."""
    entry = {**WHOLE["table_entries"][1], "comment": "to h9", "_port": 1}
    replica = {"egress_port": 1, "comment": "the uplink"}
    group = {"multicast_group_id": 11, "description": "all", "replicas": [replica]}
    whole = {"//": "s1", "table_entries": [entry], "multicast_group_entries": [group]}
    sw.run_commands(json.dumps(whole), "s1-runtime.json")
    assert [port for port, _ in sw.process(0, packet(9))] == [1]


ENTRY = WHOLE["table_entries"][1]
GROUP = WHOLE["multicast_group_entries"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "tofino"}, "target: 'tofino' is not a target; expected bmv2"),
        ({"table_entry": []}, "table_entry: there is no key 'table_entry'; did you mean"
         " table_entries?"),
        ({"table_entries": {}}, "table_entries: expected a list, not {}"),
        ({"table_entries": [5]}, "table_entries[0]: 5: expected the keys table, match, action_name,"
         " action_params, default_action, priority"),
        ({"table_entries": [{**ENTRY, "actions": 1}]}, "table_entries[0]: unknown key"
         ' actions: did you mean "action_params"?'),
        ({"table_entries": [{**ENTRY, "keys": {"h.eth.dst": 1}}]}, "table_entries[0]: unknown key"
         " keys: known: action_name, action_params, default_action, match, priority, table"),
        ({"table_entries": [{"table": "I.hosts"}]}, "table_entries[0]: action_name is missing"),
        ({"table_entries": [ENTRY, {**ENTRY, "match": {"h.eth.src": 1}}]}, "table_entries[1]: table"
         " I.hosts: there is no match field 'h.eth.src'; known: h.eth.dst"),
        ({"table_entries": [{**ENTRY, "match": {"h.eth.dst": [1, 2]}}]}, "table_entries[0]: table"
         " I.hosts: field h.eth.dst: (1, 2) is not a value"),
        ({"table_entries": [{**ENTRY, "match": {"h.eth.dst": 1.5}}]}, "table_entries[0]:"
         " match.h.eth.dst: 1.5 is not a number, a text, or a list of them"),
        ({"table_entries": [{**ENTRY, "priority": "1"}]}, 'table_entries[0]: priority = "1":'
         " expected a whole number at least 0 and below 2147483648"),
        ({"table_entries": [{**ENTRY, "default_action": True}]}, "table_entries[0]: a default"
         " action has no match and no priority"),
        ({"table_entries": [{**WHOLE["table_entries"][2], "priority": 0}]}, "table_entries[0]:"
         " table I.acl has ternary, range or optional keys: an entry needs a priority of 1 or more,"
         ' of which the larger wins: "priority": 10'),
        ({"multicast_group_entries": [{**GROUP, "multicast_group_id": None}]},
         "multicast_group_entries[0]: multicast_group_id is missing"),
        ({"multicast_group_entries": [GROUP, GROUP]}, "multicast_group_entries[1]: there is already"
         " a multicast group 11"),
        ({"multicast_group_entries": [{**GROUP, "replicas": [1]}]}, "multicast_group_entries[0]:"
         " replicas.0 = 1: expected the keys egress_port, instance"),
    ],
)  # fmt: skip
def test_errors_are_reported_with_their_place(
    sw: Switch, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError) as caught:
        sw.run_commands(json.dumps(change), "r.json")
    assert str(caught.value) == f"r.json: {message}"


def test_what_is_not_json(sw: Switch) -> None:
    with pytest.raises(CommandError) as caught:
        sw.run_commands('{"target": "bmv2",}', "r.json")
    assert str(caught.value).startswith("r.json: not JSON: ")


@pytest.mark.parametrize("text", ["[]", ' [{"table": "routes"}]'])
def test_a_list_is_no_list_of_commands(sw: Switch, text: str) -> None:
    with pytest.raises(CommandError) as caught:
        sw.run_commands(text, "r.json")
    assert str(caught.value) == (
        "r.json: not runtime JSON: expected an object with keys table_entries,"
        " multicast_group_entries, clone_session_entries"
    )
