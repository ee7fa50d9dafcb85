"""Tables that packets write, in PNA: both engines are held equal, and each to what it should do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pnaprograms import ADD, PROPERTIES, flow, seen, tracking

from gradplane.switch import CompileError, Switch
from gradplane.switch.control.records import dump
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.control_messages import IdleNotice
from gradplane.switch.runtime.entries import ActionData

ENGINES = ("interpreter", "jit")
SECOND = 1_000_000_000
NET, HOST = 1, 0x105


class Timed:
    """A switch with a clock of its own."""

    def __init__(self, engine: str, **parts: str) -> None:
        self.now = 5
        text = tracking(**parts)
        self.switch = Switch("track.p4", text=text, engine=engine, clock=lambda: self.now)

    def passes(self, *packets: bytes, port: int = NET) -> list[tuple[int, int]]:
        """Process packets as one batch; return what the program says of each."""
        left = self.switch.process_batch([port] * len(packets), packets)
        return [seen(packet) for _, _, packet in left]

    def entries(self) -> list[Any]:
        table = self.switch.state.tables["C.flows"]
        return [
            (e.matches, e.action, e.idle_timeout_ns, e.last_hit_ns, e.counter.packets, e.handle)
            for e in table.entries()
        ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_miss_adds_an_entry_that_the_next_packet_hits(engine: str) -> None:
    sw = Timed(engine)
    assert sw.passes(flow(1, 7, 8), flow(1, 7, 8), flow(2, 7, 9), flow(2, 7, 9)) == [
        (2, 0), (1, 0), (3, 0), (3, 0)
    ]  # fmt: skip
    assert sw.passes(flow(2, 8, 7), port=HOST) == [(1, 0)]  # the other direction
    assert sw.passes(flow(1, 5, 5), flow(1, 5, 5)) == [(2, 0), (1, 3)]  # ids count up
    assert [e[:2] for e in sw.entries()] == [
        (((7,), (8,)), ActionData(0, (0, 0x100))), (((5,), (5,)), ActionData(0, (3, 0x100)))
    ]  # fmt: skip
    assert [e[4] for e in sw.entries()] == [2, 1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_table_takes_none_until_one_leaves(engine: str) -> None:
    sw = Timed(engine)
    assert sw.passes(*(flow(1, n, 0) for n in range(10))) == [(2, 0)] * 8 + [(3, 0)] * 2
    sw.now += 10 * SECOND - 1
    assert sw.passes(flow(1, 3, 0, flags=1), flow(1, 8, 0)) == [(1, 3), (3, 0)]
    sw.now += 1
    assert sw.passes(flow(1, 8, 0), flow(1, 3, 0), flow(1, 0, 0)) == [(2, 0), (1, 3), (2, 0)]
    assert [e[0][0][0] for e in sw.entries()] == [3, 8, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_timers_run_unless_calls_restart_them(engine: str) -> None:
    sw = Timed(engine)
    sw.passes(flow(1, 1, 0), flow(1, 2, 0, profile=2), flow(1, 3, 0, profile=15))
    assert [e[2] for e in sw.entries()] == [10 * SECOND, 60 * SECOND, 0]
    sw.now += 9 * SECOND
    sw.passes(flow(0, 1, 0), flow(0, 2, 0, profile=0, flags=3))  # a hit; a shorter time from now on
    sw.now += SECOND
    assert sw.passes(flow(0, 1, 0), flow(0, 2, 0)) == [(3, 0), (1, 1)]
    sw.now += 9 * SECOND
    assert sw.passes(flow(0, 2, 0), flow(0, 3, 0)) == [(3, 0), (1, 2)]
    sw.now += 10**9 * SECOND
    assert [e[0][0][0] for e in sw.entries()] == [3]  # its profile has no time


@pytest.mark.parametrize("engine", ENGINES)
def test_hits_restart_the_timer_where_no_action_does(engine: str) -> None:
    sw = Timed(engine, hit="")
    sw.passes(flow(1, 1, 0), flow(1, 2, 0))
    for _ in range(3):
        sw.now += 6 * SECOND
        assert sw.passes(flow(0, 1, 0)) == [(1, 0)]
    assert sw.passes(flow(0, 2, 0)) == [(3, 0)]
    assert sw.switch.messages() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_control_plane_is_told_of_idle_entries_that_stay(engine: str) -> None:
    properties = PROPERTIES.replace("AUTO_DELETE", "NOTIFY_CONTROL")
    sw = Timed(engine, properties=properties)
    sw.passes(flow(1, 1, 0))
    sw.now += 10 * SECOND
    (notice,) = sw.switch.messages()
    assert isinstance(notice, IdleNotice) and notice.entry.matches == ((1,), (0,))
    assert sw.passes(flow(0, 1, 0)) == [(1, 0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_timeouts_entries_stay(engine: str) -> None:
    sw = Timed(engine, hit="", properties="add_on_miss = true;")
    sw.passes(flow(1, 1, 0))
    sw.now += 10**6 * SECOND
    assert sw.passes(flow(0, 1, 0)) == [(1, 0)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("hit, timer", [
    ("restart_expire_timer();", (10, 4)),
    ("set_entry_expire_time(profile);", (30, 4)),
    ("set_entry_expire_time_if(hdr.flow.flags == 2, profile);", (30, 4)),
    ("set_entry_expire_time_if(hdr.flow.flags == 1, profile);", (10, 0)),
    ("if (hdr.flow.flags == 2) { set_entry_expire_time(profile); }", (30, 4)),
])  # fmt: skip
def test_what_sets_timers(engine: str, hit: str, timer: tuple[int, int]) -> None:
    sw = Timed(engine, hit=hit, miss=f"status = {ADD}")
    sw.passes(flow(1, 1, 0))
    sw.now += 4 * SECOND
    assert sw.passes(flow(0, 1, 0, profile=1, flags=2)) == [(1, 5)]
    ((_, _, timeout, last, *_),) = sw.entries()
    assert (timeout // SECOND, last // SECOND) == timer


@pytest.mark.parametrize("engine", ENGINES)
def test_expire_times_are_set_in_python_and_by_commands(engine: str) -> None:
    sw = Timed(engine)
    sw.switch.set_expire_time(9, 2 * SECOND)
    sw.switch.run_commands("set_expire_time 0 1500")
    assert sw.switch.expire_time(0) == 1_500_000_000
    assert "profile 0: 1500\nprofile 1: 30000" in sw.switch.run_commands("show_expire_times")
    sw.passes(flow(1, 1, 0, profile=9), flow(1, 2, 0))
    sw.now += 1_600_000_000
    assert [e[0][0][0] for e in sw.entries()] == [1]
    with pytest.raises(TableError, match="expire time profile 256 is not within 0 to 255"):
        sw.switch.set_expire_time(256, 1)
    what = "expire time profile 3: the time in ns -1 is not within 0 to"
    with pytest.raises(TableError, match=what):
        sw.switch.set_expire_time(3, -1)
    sw.switch.reset()
    assert sw.switch.expire_time(0) == 10 * SECOND and sw.entries() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_entries_of_packets_are_the_control_planes_too(engine: str) -> None:
    sw = Timed(engine)
    sw.passes(flow(1, 1, 0), flow(1, 2, 0))
    table = sw.switch.table("flows")
    table.modify({"far": 1, "near": 0}, "tracked", {"id": 77, "port": 0x103})
    table.remove({"far": 2, "near": 0})
    table.add({"far": 4, "near": 0}, "tracked", {"id": 78, "port": 0x103})
    assert sw.passes(*(flow(0, n, 0) for n in (1, 2, 4))) == [(1, 77), (3, 0), (1, 78)]
    sw.now += 10 * SECOND
    assert [e[0][0][0] for e in sw.entries()] == [4]  # what it added has no time
    shown = sw.switch.run_commands("table_dump flows")
    assert "C.tracked" in shown


def test_a_trace_shows_that_an_entry_is_added() -> None:
    sw = Timed("jit")
    text = sw.switch.trace(NET, flow(1, 6, 0)).text()
    assert re.search(r"add_entry_if\(true, tracked, .*\) -> 0", text), text
    assert sw.passes(flow(0, 6, 0)) == [(1, 0)]


def test_a_failed_batch_leaves_what_packets_added() -> None:
    sw = Timed("jit")
    store = sw.switch.store
    with pytest.raises(RuntimeError), store.batch():
        store.expire_times.modify(0, time_ns=7)
        sw.passes(flow(1, 1, 0))
        raise RuntimeError
    assert [e[2] for e in sw.entries()] == [7]
    assert sw.switch.expire_time(0) == 10 * SECOND
    sw.switch.set_expire_time(2, 4)
    assert dump(store)["expire_times"] == {2: 4}


# -- what is refused ----------------------------------------------------------------------------

NO_TIMERS = "add_on_miss = true;"
REFUSED = {
    "add_entry is called in an action of table C.flows, which adds no entries":
        {"properties": "size = 8;", "hit": "", "miss": ADD},
    "add_entry may be called in an action of a table with add_on_miss = true only":
        {"main": ADD},
    "update_expire_info is called in an action of table C.flows, whose entries have no timers":
        {"properties": NO_TIMERS},
    "restart_expire_timer may be called in an action of a table with pna_idle_timeout ="
    " PNA_IdleTimeout_t.AUTO_DELETE or NOTIFY_CONTROL only": {"main": "restart_expire_timer();"},
    "add_entry is called in an action of table C.flows, which has no action 'trackd'":
        {"miss": ADD.replace("tracked", "trackd", 1)},
    "add_entry is called in an action of table C.flows, but no entry can have the action tracked:"
    " it is @defaultonly": {"miss": ADD, "actions": "@defaultonly tracked; unknown;"},
    "add_entry is called in an action of table C.flows with action unknown, which adds an entry"
    " itself": {"miss": ADD.replace('"tracked"', '"unknown"')},
    "add_entry: action tracked does not have the parameters that":
        {"miss": 'add_entry("tracked", hdr.flow, profile);'},
    "table C.more has add_on_miss = true and the key hdr.flow.kind of kind ternary":
        {"main": "more.apply();"},
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_calls_that_write_no_such_table_are_refused(message: str) -> None:
    more = "table more { key = { hdr.flow.kind : ternary; } actions = { NoAction; }"
    text = tracking(**REFUSED[message])
    if "more.apply()" in text:
        text = text.replace("apply { flows", more + " add_on_miss = true; } apply { flows")
    with pytest.raises(CompileError, match=re.escape(message)):
        Switch("track.p4", text=text)


# -- both engines -------------------------------------------------------------------------------

ENDS = st.integers(0, 5)
PACKETS = st.lists(
    st.builds(flow, st.sampled_from([0, 1, 1]), ENDS, ENDS, st.integers(0, 3), st.integers(0, 3)),
    min_size=1, max_size=12,
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("packets"), st.sampled_from([NET, HOST]), PACKETS),
        st.tuples(st.just("wait"), st.sampled_from([1, 3 * SECOND, 10 * SECOND, 31 * SECOND])),
        st.tuples(st.just("remove"), ENDS, ENDS),
        st.tuples(st.just("timeout"), ENDS, ENDS, st.sampled_from([0, SECOND, 20 * SECOND])),
        st.tuples(st.just("profile"), st.integers(0, 3), st.sampled_from([0, 1, 5 * SECOND])),
        st.tuples(st.just("read")),
    ),
    max_size=25,
)  # fmt: skip
PAIRS = {
    "calls": {}, "hits": {"hit": ""},
    "notices": {"properties": PROPERTIES.replace("AUTO_DELETE", "NOTIFY_CONTROL")},
}  # fmt: skip
SWITCHES: dict[str, list[Timed]] = {}


def step(sw: Timed, what: str, *args: Any) -> Any:
    """Take one step of a story; return what is seen of it."""
    table = sw.switch.state.tables["C.flows"]
    match what, args:
        case "packets", (port, packets):
            return sw.switch.process_batch([port] * len(packets), packets)
        case "wait", (time,):
            sw.now += time
        case "profile", (number, time):
            sw.switch.set_expire_time(number, time)
        case "read", ():
            return sw.entries(), sw.switch.messages(), len(table)
        case _, (far, near, *time):
            found = table.find(((far,), (near,)))
            if found is not None and what == "remove":
                sw.switch.store.entries(table).delete((found.matches, 0))
            elif found is not None:
                entries = sw.switch.store.entries(table)
                entries.modify((found.matches, 0), idle_timeout_ns=time[0])
            return found is not None
    return None


@pytest.mark.parametrize("kind", PAIRS)
@settings(max_examples=60, deadline=None)
@given(story=STEPS)
def test_both_engines_write_the_same(kind: str, story: list[tuple[Any, ...]]) -> None:
    if kind not in SWITCHES:
        SWITCHES[kind] = [Timed(engine, **PAIRS[kind]) for engine in ENGINES]
    pair = SWITCHES[kind]
    for sw in pair:
        sw.switch.reset()
        sw.switch.messages()
    for what in [*story, ("read",)]:
        first, second = (step(sw, *what) for sw in pair)
        assert _plain(first) == _plain(second), what
    assert dict(pair[0].switch.state.drops) == dict(pair[1].switch.state.drops)


def _plain(seen_of: Any) -> Any:
    if isinstance(seen_of, tuple):
        entries, messages, count = seen_of
        return entries, [(m.table, m.entry.matches) for m in messages], count
    return seen_of
