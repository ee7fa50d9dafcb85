"""The tree of outcomes of one packet."""

import pytest
import tnaprograms
import v1programs

pytest.importorskip("z3")

from gradplane.switch.testgen.outcomes import PASSES, outcome_tree  # noqa: E402


def tree(packet: bytes, **parts: str) -> list[str]:
    text = outcome_tree(v1programs.switch(**parts), 1, packet)
    return [line.partition("    [")[0] for line in text.splitlines()]


LOOKUPS = """
    action to(bit<9> port, bit<8> y) { s.egress_spec = port; h.a.y = y; }
    action drop() { mark_to_drop(s); }
    table t { key = { h.a.x : exact; } actions = { to; drop; } default_action = drop(); }
    table u { key = { h.a.y : exact; } actions = { drop; @defaultonly NoAction; }
        const default_action = NoAction(); }
"""


def test_the_lookups_of_a_packet_and_what_leaves() -> None:
    found = tree(
        bytes([1, 2, 3, 4, 5]),
        ingress_locals=LOOKUPS,
        ingress="if (h.a.kind == 1) { t.apply(); } else { u.apply(); }",
    )
    assert found[0] == "port 1, 5 bytes"
    assert found[1:] == [
        "├─ I.t: hit to",
        "│  ├─ leaves by to's port: 5 bytes 0102**0405",
        "│  └─ dropped: ingress: egress_spec is 511",
        "├─ I.t: hit drop",
        "│  └─ dropped: ingress: egress_spec is 511",
        "└─ I.t: miss",
        "   └─ dropped: ingress: egress_spec is 511",
        "*: a digit that depends on the data of an entry's action",
    ]


def test_default_actions_of_a_table_that_is_asked_for_hits() -> None:
    """A default action that a controller sets leads elsewhere than an entry with it."""
    found = tree(
        bytes([1, 2, 3, 4]),
        ingress_locals=LOOKUPS,
        ingress="if (t.apply().miss) { h.a.z = 9; }",
    )
    assert found[1:] == [
        "├─ I.t: hit to",
        "│  ├─ leaves by to's port: 4 bytes 0102**04",
        "│  └─ dropped: ingress: egress_spec is 511",
        "├─ I.t: hit drop",
        "│  └─ dropped: ingress: egress_spec is 511",
        "├─ I.t: miss",
        "│  └─ dropped: ingress: egress_spec is 511",
        "└─ I.t: default to",
        "   ├─ leaves by to's port: 4 bytes 0102**09",
        "   └─ dropped: ingress: egress_spec is 511",
        "*: a digit that depends on the data of an entry's action",
    ]


def test_conditions_and_groups_that_action_data_decide() -> None:
    found = tree(
        bytes([1, 2, 3, 4, 5]),
        ingress_locals="""
            action mark(bit<8> z) { h.a.z = z; }
            action all(bit<16> group) { s.mcast_grp = group; }
            table t { key = { h.a.x : exact; } actions = { mark; all; } const default_action =
                mark(9); }""",
        ingress="t.apply(); if (h.a.z == 77) { s.egress_spec = 4; }",
    )
    assert found[1:] == [
        "├─ I.t: hit mark",
        "│  ├─ if (h.a.z == 77): true",
        "│  │  └─ leaves by port 4: 5 bytes 010203**05",
        "│  └─ if (h.a.z == 77): false",
        "│     └─ leaves by port 0: 5 bytes 010203**05",
        "├─ I.t: hit all",
        "│  ├─ multicast to group all's group",
        "│  │  ├─ leaves by port 1: 5 bytes 0102030405",
        "│  │  └─ leaves by port 2: 5 bytes 0102030405",
        "│  └─ leaves by port 0: 5 bytes 0102030405",
        "└─ I.t: miss",
        "   └─ leaves by port 0: 5 bytes 0102030905",
        "*: a digit that depends on the data of an entry's action",
    ]


def test_a_packet_that_meets_no_table() -> None:
    assert tree(bytes(4), ingress="s.egress_spec = 6;") == [
        "port 1, 4 bytes",
        "└─ leaves by port 6: 4 bytes 00000000",
    ]


def test_a_packet_that_entries_could_send_round_for_ever_is_not_followed() -> None:
    sw = tnaprograms.switch(
        ingress_locals="""
            action send(PortId_t port) { tm.ucast_egress_port = port; }
            table t { key = { h.a.x : exact; } actions = { send; NoAction; } }""",
        ingress="t.apply();",
    )
    found = outcome_tree(sw, 1, tnaprograms.packet(x=3))
    assert "comes back if send's port is a recirculation port" in found
    assert "leaves by send's port" in found
    assert len(found.splitlines()) < 12


def test_a_packet_that_comes_back_for_ever_ends_after_some_passes() -> None:
    found = tree(
        bytes(5), ingress="s.egress_spec = 1;", egress="recirculate_preserving_field_list(0);"
    )
    assert found[-1].strip() == f"└─ and so on: {PASSES} passes are over", found
    assert sum("comes back" in line for line in found) == PASSES - 1
