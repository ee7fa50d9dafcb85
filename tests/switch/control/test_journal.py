"""Batches that fail take back what they wrote, and nothing that packets wrote meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from v1programs import packet, source

from gradplane.switch import Switch
from gradplane.switch.control.journal import Journal
from gradplane.switch.control.records import dump
from gradplane.switch.runtime.entries import ActionData, Entry, MemberRef
from gradplane.switch.runtime.meters import MeterConfig
from gradplane.switch.runtime.profiles import Weighted

PROGRAM = source(
    ingress_locals="""
        register<bit<32>>(8) seen;
        register<bit<80>>(4) wide;
        counter(8, CounterType.packets_and_bytes) hits;
        meter(4, MeterType.packets) rate;
        direct_counter(CounterType.packets_and_bytes) each;
        action mark(bit<8> v) { h.a.z = v; }
        table t {
            key = { h.a.x: exact; }
            actions = { mark; NoAction; }
            counters = each; default_action = NoAction; size = 4;
        }
        table grouped {
            key = { h.a.x: exact; h.a.y: selector; }
            actions = { mark; NoAction; }
            implementation = action_selector(HashAlgorithm.identity, 8, 8);
        }""",
    ingress="""
        bit<32> n; bit<80> w; bit<8> colour;
        seen.read(n, (bit<32>) h.a.x); seen.write((bit<32>) h.a.x, n + 1);
        wide.read(w, 0); wide.write(0, w + 1);
        hits.count((bit<32>) h.a.x);
        rate.execute_meter((bit<32>) 0, colour); h.a.kind = colour;
        grouped.apply(); t.apply(); s.egress_spec = 1;""",
)

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])


class Failed(Exception):
    """Ends a batch."""


@contextmanager
def failing(sw: Switch) -> Iterator[None]:
    """A batch that fails at its end."""
    with pytest.raises(Failed), sw.store.batch():
        yield
        raise Failed


def made(engine: str) -> Switch:
    return Switch("journal.p4", text=PROGRAM, engine=engine, clock=lambda: 10**9)


def z(sw: Switch, x: int, y: int = 0) -> int:
    ((_, out),) = sw.process(0, packet(x=x, y=y))
    return out[3]


@engines
def test_counters_keep_what_packets_counted_meanwhile(engine: str) -> None:
    sw = made(engine)
    hits = sw.counter("hits")
    hits.write(1, 10, 1000)
    with failing(sw):
        hits.write(1, 0, 0)
        z(sw, 1)
        hits.write(2, 7, 70)
        z(sw, 2)
        assert (hits.read(1), hits.read(2)) == ((1, 4), (8, 74))
    assert (hits.read(1), hits.read(2)) == ((11, 1004), (1, 4))
    with failing(sw):
        hits.clear()
        z(sw, 1)
    assert (hits.read(1), hits.read(2)) == ((12, 1008), (1, 4))
    cells = sw.store.counters(hits)
    with failing(sw):
        cells.fill(packets=5, bytes=-1)
        z(sw, 1)
        assert (hits.read(1), hits.read(2)) == ((6, 3), (5, (1 << 64) - 1))
        assert (cells.seen(1), cells.seen(3)) == (cells.seen(2), cells.get(3))
    assert (hits.read(1), hits.read(2)) == ((13, 1012), (1, 4))


@engines
def test_registers_keep_what_packets_wrote_meanwhile(engine: str) -> None:
    sw = made(engine)
    seen, wide = sw.register("seen"), sw.register("wide")
    for index, value in ((1, 10), (2, 20), (3, 30)):
        seen.write(index, value)
    wide.write(0, 1 << 70)
    wide.write(1, 5)
    with failing(sw):
        for index in (1, 2):
            seen.write(index, 100)
        z(sw, 1)
    assert list(seen.cells)[1:4] == [101, 20, 30]
    with failing(sw):
        seen.clear()
        wide.clear()
        z(sw, 2)
    assert list(seen.cells)[1:4] == [101, 1, 30]
    assert list(wide.cells)[:2] == [1, 5]
    with failing(sw):
        sw.store.registers(seen).fill(value=9)
        sw.store.registers(wide).fill(value=1 << 69)
        assert set(seen.cells) == {9}
        assert set(wide.cells) == {1 << 69}
        z(sw, 3)
    assert list(seen.cells)[1:4] == [101, 1, 10]
    assert list(wide.cells)[:2] == [(1 << 69) + 1, 5]


@engines
def test_meters_get_their_rates_back_and_keep_the_tokens_that_are_left(engine: str) -> None:
    sw = made(engine)
    rate = sw.meter("rate")
    cell = rate.cell(0)
    rate.write(0, MeterConfig(1, 9, 1, 9), 10**9)
    z(sw, 0)
    former = cell.cells.tolist()
    with failing(sw):
        sw.store.meters(cell).write(0, config=MeterConfig(5, 3, 5, 3), clear=True)
    assert cell.cells.tolist() == former
    with failing(sw):
        sw.store.meters(cell).write(0, config=MeterConfig(5, 3, 5, 3), clear=True)
        z(sw, 0)
    assert cell.config == MeterConfig(1, 9, 1, 9)
    assert (cell.committed, cell.excess) == (2, 2)  # of 3, one was taken
    assert cell.counts[0] == (2, 8)  # one before, one meanwhile


@engines
def test_entries_and_their_counters(engine: str) -> None:
    sw = made(engine)
    table, store = sw.table("t"), sw.store
    entries = store.entries(table.state)
    first = table.add({"h.a.x": 1}, "mark", {"v": 11})
    second = table.add({"h.a.x": 2}, "mark", {"v": 22})
    table.remove({"h.a.x": 1})
    again = table.add({"h.a.x": 1}, "mark", {"v": 11})
    assert again.handle != first.handle
    handles = [(entry.handle, entry.action) for entry in table.entries()]
    assert [z(sw, x) for x in (1, 2, 3)] == [11, 22, 0]
    with failing(sw):
        entries.delete(second.key)
        new = Entry(((3,),), ActionData(0, (33,)))
        entries.add(new)
        entries.modify(again.key, action=ActionData(0, (99,)))
        store.counters(again.counter).write(0, packets=0, bytes=0)
        entries.set_default(ActionData(0, (77,)))
        assert [z(sw, x) for x in (1, 2, 3)] == [99, 77, 33]
    assert [z(sw, x) for x in (1, 2, 3)] == [11, 22, 0]
    assert (again.counter.packets, second.counter.packets) == (3, 2)
    assert sorted(handles, key=str) == sorted(
        ((entry.handle, entry.action) for entry in table.entries()), key=str
    )
    with failing(sw):
        entries.clear()
        assert [z(sw, x) for x in (1, 2)] == [0, 0]
    assert [z(sw, x) for x in (1, 2)] == [11, 22]
    assert {entry.handle for entry in table.entries()} == {handle for handle, _ in handles}
    assert table.add({"h.a.x": 5}, "mark", {"v": 1}).handle not in dict(handles)


@engines
def test_entries_that_are_there_by_then_stay(engine: str) -> None:
    """A packet may add an entry of the same key while a batch that deleted one is open."""
    sw = made(engine)
    table = sw.table("t")
    old = table.add({"h.a.x": 1}, "mark", {"v": 11})
    with failing(sw):
        sw.store.entries(table.state).delete(old.key)
        table.state.insert(Entry(((1,),), ActionData(0, (55,))))  # as a packet's
    assert z(sw, 1) == 55


@engines
def test_a_reset_is_taken_back(engine: str) -> None:
    sw = made(engine)
    fresh = dump(sw.store)
    sw.table("t").add({"h.a.x": 1}, "mark", {"v": 7})
    sw.counter("hits").write(1, 10, 1000)
    sw.register("seen").write(1, 5)
    sw.meter("rate").write(0, MeterConfig(1, 9, 1, 9), 10**9)
    sw.multicast(3, [1, 2])
    sw.clone_session(4, [2])
    before = dump(sw.store)
    with failing(sw):
        sw.reset()
        assert dump(sw.store) == fresh
        assert z(sw, 1) == 0
    assert z(sw, 1) == 7
    assert sw.counter("hits").read(1) == (12, 1008)  # and what came meanwhile
    assert sw.register("seen").read(1) == 2
    after = dump(sw.store)
    assert after["replication"] == before["replication"]
    assert sw.meter("rate").read(0) == MeterConfig(1, 9, 1, 9)
    assert [len(t["entries"]) for t in after["tables"]] == [1, 0]
    sw.reset()
    assert dump(sw.store) == fresh


@engines
def test_members_and_groups_deal_as_before(engine: str) -> None:
    sw = made(engine)
    profile = sw.profile("implementation")
    for member in (1, 2, 3):
        profile.add_member(member, "mark", {"v": member})
    profile.add_group(1, [3, 1, 2])
    sw.table("grouped").add({"h.a.x": 9}, group=1)
    dealt = [z(sw, 9, y) for y in range(6)]
    grouped = sw.store.entries(sw.table("grouped").state)
    members, groups = sw.store.members(profile.state), sw.store.groups(profile.state)
    with failing(sw):
        groups.modify(1, members=[Weighted(2)])
        members.delete(1)
        members.modify(2, action=ActionData(0, (42,)))
        assert z(sw, 9) == 42
    assert [z(sw, 9, y) for y in range(6)] == dealt
    with failing(sw):
        grouped.delete((((9,),), 0))
        groups.delete(1)
        members.insert(7, action=ActionData(0, (7,)))
        grouped.add(Entry(((9,),), MemberRef(7)))
        assert z(sw, 9) == 7
    assert [z(sw, 9, y) for y in range(6)] == dealt
    assert sorted(profile.state.members) == [1, 2, 3]


def test_settings_of_queues_links_and_crcs() -> None:
    sw = made("interpreter")
    sw.run_commands("set_queue_depth 9\nset_queue_rate 100 1")
    before = sw.run_commands("show_queues")
    with failing(sw):
        sw.run_commands("set_queue_rate 5\nset_queue_depth 3 1\nset_queue_rate 7 2")
        sw.set_link(3, up=False)
        assert sw.state.links.down == {3}
    assert sw.run_commands("show_queues") == before.rstrip() + (
        "\n    2     0          0          9        0        0"
    )
    assert sw.state.links.down == set()
    assert sw.state.links.queues.flags[[1, 2, 4]].tolist() == [1, 0, 0]


def test_many_entries_or_none() -> None:
    sw = made("interpreter")
    table = sw.table("t").state
    entries = [Entry(((x,),), ActionData(0, (x,))) for x in range(5)]
    with pytest.raises(Exception, match="all 4 entries are in use"):
        sw.store.entries(table).add_all(entries)
    assert len(table) == 0
    sw.store.entries(table).add_all(entries[:4])
    assert len(table) == 4
    kind = sw.store.entries(table)
    kind.clear()
    records = [((((x,),), 0), {"action": ActionData(0, (x,)), "idle_timeout_ns": x})
               for x in range(5)]  # fmt: skip
    with pytest.raises(Exception, match="all 4 entries are in use"):
        kind.insert_all(records)
    assert kind.usage() == 0
    kind.insert_all(records[:4])
    assert [record["idle_timeout_ns"] for _, record in kind.records()] == [0, 1, 2, 3]


def test_a_batch_in_a_batch_fails_alone_or_with_it() -> None:
    journal, items = Journal(threading.RLock()), {"kept": 1}
    with journal.batch():
        journal.put(items, "a", 1)
        with pytest.raises(Failed), journal.batch():
            journal.put(items, "b", 2)
            journal.put(items, "kept", None)
            raise Failed
        assert items == {"kept": 1, "a": 1}
    with pytest.raises(Failed), journal.batch():
        with journal.batch():
            journal.put(items, "a", None)
        raise Failed
    assert items == {"kept": 1, "a": 1}


def test_a_batch_is_its_threads_own() -> None:
    journal, items = Journal(threading.RLock()), dict[str, int]()
    with pytest.raises(Failed), journal.batch():
        journal.put(items, "mine", 1)
        other = threading.Thread(target=journal.put, args=(items, "theirs", 2))
        other.start()
        other.join()
        raise Failed
    assert items == {"theirs": 2}


def test_a_dump_is_plain_and_complete() -> None:
    sw = made("interpreter")
    sw.table("t").add({"h.a.x": 1}, "mark", {"v": 11})
    sw.profile("implementation").add_member(3, "mark", {"v": 3})
    sw.profile("implementation").add_group(4, [(3, 2, 300)])
    sw.register("seen").write(2, 9)
    sw.counter("hits").write(5, 1, 10)
    sw.meter("rate").write(1, MeterConfig(1, 2, 3, 4), 5)
    found = dump(sw.store)
    assert json.loads(json.dumps(found))["registers"]
    named = {kind: {one["name"]: one for one in ones} for kind, ones in found.items()
             if isinstance(ones, list)}  # fmt: skip
    (entry,) = named["tables"]["I.t"]["entries"]
    assert entry["matches"] == [[1]]
    assert entry["action"] == {"name": "I.mark", "args": [11]}
    assert named["profiles"]["I.grouped.implementation"] == {
        "name": "I.grouped.implementation", "pipes": [0],
        "members": {3: {"name": "I.mark", "args": [3]}},
        "groups": {4: {"max_size": 0, "members": [[3, 2, "012c", True]]}},
    }  # fmt: skip
    assert named["registers"]["I.seen"]["cells"] == {2: 9}
    assert named["counters"]["I.hits"]["cells"] == {5: [1, 10]}
    assert named["meters"]["I.rate"]["cells"] == {1: [1, 1, 2, 3, 4, 0, 1, 0, 0, 0, 0, 0, 0]}
    assert found["replication"]["groups"] == {}
