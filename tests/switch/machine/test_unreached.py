"""A path has no branches that its program cannot take, and all those that it can."""

from collections.abc import Iterator
from dataclasses import dataclass

import psaprograms
import pytest
import tnaprograms
import v1programs

from gradplane.switch import Switch
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import nested


def primitives(sw: Switch) -> set[str]:
    """Return the primitives that the path around a switch's program calls."""
    return {call.name for call in _calls(sw)}


def _calls(sw: Switch) -> Iterator[ir.CallExtern]:
    for pipeline in sw.architecture.path(sw.program).pipelines:
        for entry in pipeline.entries.values():
            yield from (s for s in nested(entry.body) if isinstance(s, ir.CallExtern))


def test_a_program_that_only_forwards() -> None:
    sw = v1programs.switch()
    assert not primitives(sw) & {"session", "members", "again", "cut", "copy", "enqueue"}
    assert sw.process(0, v1programs.packet(x=3)) == [(1, v1programs.packet(x=3))]


CLONE = "clone(CloneType.I2E, 5);"
RESUBMIT = "if (s.instance_type == 0) { resubmit_preserving_field_list(1); }"
RECIRCULATE = "if (h.a.kind == 0) { h.a.kind = 1; recirculate_preserving_field_list(1); }"
CALLED_BY_A_TABLE = """
    action act() { %s }
    table t { actions = { act; } const default_action = act(); }
"""


@dataclass(frozen=True)
class Way:
    """Parts of a v1model program, and the primitive that its path has because of them."""

    name: str
    parts: dict[str, str]
    primitive: str


WAYS = [
    Way("a clone", {"ingress": f"s.egress_spec = 1; {CLONE}"}, "session"),
    Way(
        "a clone in a table's action",
        {"ingress_locals": CALLED_BY_A_TABLE % CLONE, "ingress": "s.egress_spec = 1; t.apply();"},
        "session",
    ),
    Way("a clone in egress", {"egress": "clone(CloneType.E2E, 5);"}, "copy"),
    Way("resubmission", {"ingress": f"s.egress_spec = 1; {RESUBMIT}"}, "again"),
    Way("recirculation", {"egress": RECIRCULATE}, "again"),
    Way("a shorter packet", {"ingress": "s.egress_spec = 1; truncate(2);"}, "cut"),
    Way("a group", {"ingress": "s.mcast_grp = 1;"}, "members"),
    Way("a group from the parser", {"parser": "s.mcast_grp = 1; transition accept;"}, "members"),
    Way(
        "a group in a slice",
        {"ingress": "s.egress_spec = 1; s.mcast_grp[3:0] = h.a.x[3:0];"},
        "members",
    ),
    Way(
        "a group by an argument",
        {
            "ingress_locals": "action act(out bit<16> group) { group = 1; }",
            "ingress": "act(s.mcast_grp);",
        },
        "members",
    ),
    Way(
        "a group by an extern",
        {"ingress": "hash(s.mcast_grp, HashAlgorithm.crc16, 16w1, { h.a.x }, 16w1);"},
        "members",
    ),
    Way(
        "a group by a whole struct",
        {
            "ingress_locals": "standard_metadata_t other;",
            "ingress": "other = s; other.mcast_grp = 1; s = other;",
        },
        "members",
    ),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_each_way_to_a_branch_keeps_it(way: Way) -> None:
    sw = v1programs.switch(**way.parts)
    assert way.primitive in primitives(sw)
    interpreted = Switch(sw.program, engine="interpreter", clock=lambda: 0)
    left = []
    for one in (sw, interpreted):
        one.clone_session(5, [3])
        one.multicast(1, [4])
        left.append(sorted(one.process(0, v1programs.packet(x=1, payload=b"more"))))
    assert left[0] == left[1]
    port = {"session": 3, "copy": 3, "members": 4}.get(way.primitive, 1)
    assert port in [to for to, _ in left[0]]


def test_a_drop_is_no_group() -> None:
    """mark_to_drop sets the group to 0 only."""
    sw = v1programs.switch(ingress="mark_to_drop(s);")
    assert "members" not in primitives(sw)
    assert sw.process(0, v1programs.packet()) == []


def test_tna() -> None:
    groups = primitives(tnaprograms.switch(ingress="tm.mcast_grp_a = 1;"))
    assert "members" in groups
    plain = primitives(tnaprograms.switch())
    assert not plain & {"members", "session"}


def test_psa() -> None:
    plain = psaprograms.switch(ingress="send_to_port(o, (PortId_t) 1);")
    assert not primitives(plain) & {"session", "members"}
    cloned = psaprograms.switch(
        ingress="send_to_port(o, (PortId_t) 1); o.clone = true; o.clone_session_id ="
        " (CloneSessionId_t) 5;"
    )
    assert "session" in primitives(cloned)
    assert "members" in primitives(
        psaprograms.switch(ingress="multicast(o, (MulticastGroup_t) 1);")
    )
