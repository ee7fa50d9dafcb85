"""Entries that are inserted together are as those that are inserted one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar
from unittest import mock

import pytest
from finsy.proto import p4r
from hand_made_device import DELETE, INSERT, MODIFY, EchoSwitch, ids
from hand_made_ir import HEADERS, extern, field, note, program, table, var
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.p4runtime import write
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.entry_rules import EntryRules
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.roles import FULL_ACCESS, RoleConfig
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.runtime.entries import Entry

T = TypeVar("T")

ENTRIES = 5  # of the table `pairs`


@cache
def catalog() -> Catalog:
    """Return a program with tables of exact keys, of which one is plain."""
    hdr = var("hdr", HEADERS)
    mark = ir.Action("mark", [var("value", Bits(12)), var("on", Bool())], [])
    port = ir.Action("port", [var("port", Bits(9), type_name="PortId_t")], [])
    signed = ir.Action("signed", [var("number", Bits(8, True))], [])
    named = ir.Action("named", [var("name", Bits(9), type_name="Name_t")], [])
    drop, miss = ir.Action("drop", [], []), ir.Action("miss", [], [])
    kind, flag = (
        ir.Key("kind", field(hdr, "kind"), "exact"),
        ir.Key("flag", field(hdr, "flag"), "exact"),
    )
    actions = [mark, port, named, signed, drop, miss]
    hits = extern("direct_counter", "hits", "packets")
    ruled = note("entry_restriction", "kind != 1")
    made = program(
        tables=[
            table("pairs", [kind, flag], actions, size=ENTRIES, counter=hits, support_timeout=True),
            table("others", [kind, flag], actions),
            table("ruled", [kind, flag], actions, annotations=(ruled,)),
            table("fixed", [kind, flag], actions, const_entries=True),
            table("prefixes", [ir.Key("kind", field(hdr, "kind"), "lpm")], actions),
        ],
        actions=actions,
        externs=[hits],
        types={
            "PortId_t": ir.TypeInfo("PortId_t", 9, "p4.org/PortId_t", 32),
            "Name_t": ir.TypeInfo("Name_t", 9, "p4.org/Name_t", 0),
        },
    )
    made.tables[0].actions[-1] = ir.TableAction(miss, (note("defaultonly"),))
    return Catalog(made)


def pipeline() -> Pipeline:
    switch = EchoSwitch(catalog().program)
    rules = EntryRules(catalog(), catalog().p4info, switch.store)
    return Pipeline(catalog(), switch, p4r.ForwardingPipelineConfig(), rules=rules)


def update(
    kind: int = INSERT,
    table: str = "pairs",
    action: str = "mark",
    keys: Sequence[tuple[int, bytes]] = ((1, b"\x02"), (2, b"\x01")),
    params: Sequence[tuple[int, bytes]] = ((1, b"\x0f\xff"), (2, b"\x01")),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> p4r.Update:
    known = ids(catalog().p4info)
    made = p4r.Update(type=kind)  # type: ignore[arg-type]
    entry = made.entity.table_entry
    entry.MergeFrom(p4r.TableEntry(table_id=known.get(table, 99), **more))
    for number, data in keys:
        entry.match.add(field_id=number).exact.value = data
    entry.action.action.action_id = known.get(action, 99)
    for number, data in params:
        entry.action.action.params.add(param_id=number, value=data)
    return made


@cache
def plain() -> list[p4r.Update]:
    """Return inserts of more plain entries than there is room for, each twice."""
    keys = [[(1, bytes([i])), (2, b"\0")] for i in range(ENTRIES + 2)]
    return [
        u for key in keys for u in (update(keys=key), update(keys=key, action="drop", params=()))
    ]


@cache
def odd() -> list[p4r.Update]:
    """Return updates that are something else, or wrong."""
    one, on = (1, b"\x02"), (2, b"\x01")
    more: list[Mapping[str, Any]] = [
        {"priority": 3}, {"metadata": b"m"}, {"controller_metadata": 4}, {"idle_timeout_ns": 5},
        {"is_const": True}, {"is_default_action": True},
        {"counter_data": p4r.CounterData(packet_count=6)},
    ]  # fmt: skip
    without_id = update()
    without_id.entity.table_entry.ClearField("table_id")
    group = p4r.Update(type=INSERT, entity=p4r.Entity(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            multicast_group_entry=p4r.MulticastGroupEntry(multicast_group_id=1)
        )
    ))  # fmt: skip
    member = update()
    member.entity.table_entry.action.action_profile_member_id = 1
    return [
        without_id, member, group, p4r.Update(type=INSERT), p4r.Update(),
        *(update(kind) for kind in (MODIFY, DELETE, 0)),
        *(update(table=name) for name in ("others", "ruled", "fixed", "prefixes", "unknown")),
        update(table="ruled", keys=[(1, b"\x01"), on]),  # which its restriction refuses
        *(update(action="port", params=[(1, data)]) for data in (b"\x03", b"\x02\0")),
        *(update(action="named", params=[(1, data)]) for data in (b"\0", b"\xff", b"a name")),
        update(action="signed", params=[(1, b"\xff")]), update(action="unknown"),
        update(action="miss", params=()),  # which only the default entry can have
        *(update(keys=keys) for keys in (
            [on, one], [one], [], [one, on, one], [(3, b"\x02"), on], [(1, b""), on],
            [(1, b"\0\0\x02"), on], [(1, b"\1\0"), on], [one, (2, b"\x02")],
        )),
        *(update(params=params) for params in (
            [on, one], [one], [], [one, on, one], [(3, b"\x02"), on], [(1, b""), on],
            [(1, b"\0\0\x02"), on], [(1, b"\x10\0"), on], [one, (2, b"\x02")],
        )),
        *(update(more=given) for given in more),
    ]  # fmt: skip


def result(p: Pipeline, *given: Any) -> list[object]:
    """Write; return the errors, and all that is in the tables then."""
    errors: Sequence[RpcError | None] = ()
    try:
        write.write(p, *given)
    except BatchError as error:
        errors = error.errors
    query = p4r.Entity(table_entry=p4r.TableEntry(counter_data=p4r.CounterData()))
    answers = [e for answer in read(p, [query], FULL_ACCESS) for e in answer.entities]
    entries = [
        (e.key, e.action, e.serial, e.handle, e.last_hit_ns)
        for table in p.state.tables.values() for e in table.entries()
    ]  # fmt: skip
    return [[e and (e.code, e.message, e.pi_text) for e in errors], answers, entries]


def compare(
    requests: Sequence[Sequence[p4r.Update]], together: int, atomicity: int, *rights: RoleConfig
) -> None:
    """Write requests, as many updates together as given, and beside it one by one."""
    ours, theirs = pipeline(), pipeline()
    for number, request in enumerate(requests, 1):
        ours.switch.time = theirs.switch.time = number  # type: ignore[attr-defined]
        with mock.patch.object(write, "_TOGETHER", together):
            found = result(ours, request, atomicity, *rights)
        with mock.patch.object(write, "insert_plain", return_value=False):
            assert found == result(theirs, request, atomicity, *rights)


@pytest.mark.parametrize("atomicity", p4r.WriteRequest.Atomicity.values())
def test_others_and_wrong_ones_among_them_are_as_before(atomicity: int) -> None:
    first, second = plain()[0], plain()[-1]
    for one in odd():
        compare([[first, one, second]], 1, atomicity)
        compare([[first, one, second]], 3, atomicity)
    for rights in (
        RoleConfig(frozenset()),
        RoleConfig(frozenset([ids(catalog().p4info)["pairs"]])),
    ):
        compare([[first, second]], 2, atomicity, rights)


@given(st.data(), st.sampled_from(p4r.WriteRequest.Atomicity.values()), st.integers(1, 4))
def test_many_at_once_are_as_one_by_one(data: st.DataObject, atomicity: int, together: int) -> None:
    updates = st.sampled_from(4 * plain() + odd())
    requests = data.draw(st.lists(st.lists(updates, min_size=1, max_size=9), max_size=3))
    compare(requests, together, atomicity)


def test_plain_entries_are_inserted_together() -> None:
    p = pipeline()
    many = [update(keys=[(1, bytes([i])), (2, b"\0")]) for i in range(ENTRIES)]
    with mock.patch.object(write, "_attempt", side_effect=AssertionError):
        write.write(p, many)
    assert len(p.state.tables["pairs"]) == ENTRIES
    for unknown in update(table="unknown"), update(action="unknown"):
        with pytest.raises(BatchError):
            write.write(p, [unknown])
    assert len(p.plain) == 1  # what is unknown takes no memory


def test_a_fault_is_of_the_entry_that_has_it() -> None:
    """Where a table's mirror fails at one entry, the others are there, and it alone is refused."""
    p = pipeline()

    class Mirror:
        def inserted(self, entry: Entry) -> None:
            assert entry.matches[0] != (2,), "no room"

        def deleted(self, entry: Entry) -> None:
            pass

    p.state.tables["pairs"].watchers.append(Mirror())  # type: ignore[arg-type]
    many = [update(keys=[(1, bytes([i])), (2, b"\0")]) for i in range(4)]
    with pytest.raises(BatchError) as caught:
        write.write(p, many)
    assert [error and error.code for error in caught.value.errors] == [None, None, "INTERNAL", None]
