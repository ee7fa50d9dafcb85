"""The modes of action selectors: who gets the packets of a member that is left out."""

from __future__ import annotations

from collections import Counter

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.runtime.profiles import Weighted

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])

SELECTOR = """
    Hash<bit<14>>(HashAlgorithm_t.CRC16) flow;
    ActionProfile(16) members;
    ActionSelector(members, flow, SelectorMode_t.{mode}, 8, 4) groups;
    action to(bit<9> port) {{ tm.ucast_egress_port = port; }}
    table spread {{
        key = {{ h.a.kind : exact; h.a.x : selector; h.a.y : selector; }}
        actions = {{ to; }}
        implementation = groups;
    }}
"""
FLOWS = [(x, y) for x in range(16) for y in range(16)]


def balanced(engine: str, mode: str) -> Switch:
    """A switch that spreads packets to ports 1 to 4, by members of these numbers."""
    sw = switch(engine, ingress_locals=SELECTOR.format(mode=mode), ingress="spread.apply();")
    profile = sw.profile("groups")
    for number in range(1, 5):
        profile.add_member(number, "ingress.to", {"port": number})
    profile.add_group(1, [1, 2, 3, 4])
    sw.table("spread").add({"h.a.kind": 0}, group=1)
    return sw


def ports(sw: Switch) -> list[int]:
    return [sw.process(0, packet(x=x, y=y))[0][0] for x, y in FLOWS]


def leave_out(sw: Switch, *numbers: int) -> None:
    state = sw.state.profiles["ingress.groups"]
    state.modify_group(1, [Weighted(n, active=n not in numbers) for n in range(1, 5)])


@engines
def test_a_resilient_selector_moves_the_packets_of_the_member_that_is_left_out(engine: str) -> None:
    sw = balanced(engine, "RESILIENT")
    before = ports(sw)
    assert min(Counter(before).values()) > 40
    for gone in ((2,), (2, 3), (2,)):
        leave_out(sw, *gone)
        now = ports(sw)
        assert all(a == b for a, b in zip(before, now, strict=True) if a not in gone)
        moved = Counter(b for a, b in zip(before, now, strict=True) if a in gone)
        assert set(moved) == {1, 2, 3, 4} - set(gone) and min(moved.values()) > 10
    leave_out(sw)
    assert ports(sw) == before


@engines
def test_a_slot_stays_free_until_another_member_takes_it(engine: str) -> None:
    sw = balanced(engine, "RESILIENT")
    before, state = ports(sw), sw.state.profiles["ingress.groups"]
    state.modify_group(1, [Weighted(n) for n in (1, 3, 4)])
    assert all(a == b for a, b in zip(before, ports(sw), strict=True) if a != 2)
    sw.profile("groups").add_member(5, "ingress.to", {"port": 5})
    state.modify_group(1, [Weighted(n) for n in (5, 4, 3, 1)])
    assert ports(sw) == [5 if port == 2 else port for port in before]


@engines
def test_a_fair_selector_deals_all_packets_out_anew(engine: str) -> None:
    sw = balanced(engine, "FAIR")
    before = ports(sw)
    leave_out(sw, 2)
    now = ports(sw)
    assert set(now) == {1, 3, 4} and min(Counter(now).values()) > 70
    assert any(a != b for a, b in zip(before, now, strict=True) if a != 2)


@engines
def test_a_group_without_active_members_is_empty(engine: str) -> None:
    sw = balanced(engine, "RESILIENT")
    leave_out(sw, 1, 2, 3, 4)
    assert sw.process(0, packet(x=1)) == []


def test_a_selectors_members_are_those_of_the_profile_that_it_is_made_with() -> None:
    sw = balanced("interpreter", "FAIR")
    members = sw.profile("members")
    members.add_member(9, "ingress.to", {"port": 9})
    members.add_group(2, [9])
    sw.table("spread").add({"h.a.kind": 1}, group=2)
    assert sw.process(0, packet(kind=1))[0][0] == 9
