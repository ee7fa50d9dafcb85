"""A table with an action selector, changed between packets: both engines choose alike."""

import random

import pytest

from gradplane.switch import Switch
from gradplane.switch.jit import native_mirrors
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
    OneShot,
)
from gradplane.switch.runtime.profiles import Weighted

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header key_t { bit<8> a; bit<16> flow; bit<16> found; }
struct headers_t { key_t k; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.k); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<16> n) { h.k.found = n; }
    table t {
        key = { h.k.a : ternary; h.k.flow : selector; }
        actions = { set; NoAction; }
        default_action = set(0xffff);
        implementation = action_selector(HashAlgorithm.crc16, 1024, 16);
    }
    apply { s.egress_spec = 1; t.apply(); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
MEMBERS, GROUPS, ENTRIES, ROUNDS = 12, 4, 20, 150


@pytest.mark.parametrize("slack", [0, native_mirrors.SLACK])
def test_choices_follow_members_groups_and_entries(
    slack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_mirrors, "SLACK", slack)
    rng = random.Random(3)
    switches = [Switch("s.p4", text=PROGRAM, engine=e) for e in ("interpreter", "jit")]
    tables = [s.table("t").state for s in switches]
    profiles = [t.profile for t in tables if t.profile is not None]
    for profile in profiles:
        for id in range(MEMBERS):
            profile.add_member(id, ActionData(0, (id,)))
        for id in range(GROUPS):
            profile.add_group(id, [])

    def members() -> list[Weighted]:
        chosen = rng.sample(range(MEMBERS), rng.randrange(6))
        return [Weighted(id, rng.randint(1, 3)) for id in chosen]

    def target() -> EntryAction:
        actions = tuple((ActionData(0, (100 + i,)), i + 1, b"") for i in range(rng.randrange(3)))
        refs = MemberRef(rng.randrange(MEMBERS)), GroupRef(rng.randrange(GROUPS))
        return rng.choice([*refs, OneShot(actions)])

    def change() -> None:
        what, entry = rng.randrange(4), (rng.randrange(ENTRIES), 0xFF)
        if what == 0:
            id, action = rng.randrange(MEMBERS), ActionData(0, (rng.randrange(1000),))
            for profile in profiles:
                profile.modify_member(id, action)
        elif what == 1:
            id, group = rng.randrange(GROUPS), members()
            for profile in profiles:
                profile.modify_group(id, group)
        else:
            action, known = target(), tables[0].find([entry], 1) is not None
            for table in tables:
                made = Entry((entry,), action, 1)
                if not known:
                    table.insert(made)
                elif what == 2:
                    table.modify(made)
                else:
                    table.delete(made)

    packets = [bytes([a, 0, flow, 0, 0]) for a in range(ENTRIES) for flow in (1, 2)]
    chosen = set()
    for _ in range(ROUNDS):
        for _ in range(rng.randrange(1, 30)):
            change()
        expected, found = (s.process_batch([0] * len(packets), packets) for s in switches)
        assert found == expected
        chosen |= {packet[-2:] for _, _, packet in found}
    assert len(chosen) > MEMBERS
