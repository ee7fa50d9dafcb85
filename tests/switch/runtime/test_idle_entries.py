"""Which entries of a table are idle, and when that is noticed."""

from __future__ import annotations

import random

from gradplane.switch.runtime.entries import ActionData, Entry, IdleEntries


def entry(serial: int, hit: int, timeout: int) -> Entry:
    made = Entry(((serial,),), ActionData(0), timeout_ns=timeout, serial=serial)
    if timeout:
        made.last_hit_ns = hit
    return made


def test_an_entry_is_found_when_its_time_is_over_and_again_each_time() -> None:
    idle, one, never = IdleEntries(), entry(1, 100, 50), entry(2, 100, 0)
    idle.watch(one)
    idle.watch(never)
    assert idle.found(149, lambda e: True, 2) == []
    assert idle.found(150, lambda e: True, 2) == [one]
    assert one.idle_reported_ns == 150
    assert idle.found(199, lambda e: True, 2) == []
    one.last_hit_ns = 190
    assert idle.found(230, lambda e: True, 2) == []  # the hit has put it off
    assert idle.found(240, lambda e: True, 2) == [one]


def test_entries_that_are_gone_or_have_other_times_are_passed_over() -> None:
    idle, one, other = IdleEntries(), entry(1, 0, 50), entry(2, 0, 50)
    there = [one, other]
    for each in there:
        idle.watch(each)
    there.remove(one)
    other.idle_timeout_ns = 500
    idle.watch(other)
    assert idle.found(100, there.__contains__, 1) == []
    other.idle_timeout_ns = 20
    idle.watch(other)
    there.append(one)
    idle.watch(one)  # put back
    assert idle.found(100, there.__contains__, 2) == [one, other]  # the oldest first
    other.idle_timeout_ns = 0
    assert idle.found(1000, there.__contains__, 2) == [one]


def test_entries_that_come_and_go_leave_nothing_behind() -> None:
    idle, kept = IdleEntries(), entry(0, 0, 10**9)
    idle.watch(kept)
    for serial in range(1, 10_000):
        idle.watch(entry(serial, serial, 10**9))
        idle.found(serial, lambda e: e is kept, 1)
    assert len(idle._waiting) < 2000
    assert idle.found(10**9, lambda e: e is kept, 1) == [kept]


def test_it_finds_what_a_look_at_all_entries_finds() -> None:
    draw = random.Random(1)
    entries = [entry(i, draw.randrange(100), draw.choice([0, 5, 30, 200])) for i in range(50)]
    idle, twins = IdleEntries(), [entry(e.serial, 0, 0) for e in entries]
    for one, twin in zip(entries, twins, strict=True):
        twin.idle_timeout_ns, twin.last_hit_ns = one.idle_timeout_ns, one.last_hit_ns = (
            one.idle_timeout_ns, one.last_hit_ns if one.idle_timeout_ns else 0
        )  # fmt: skip
        idle.watch(one)
    for now in range(100, 2000, 7):
        found = [e.serial for e in idle.found(now, lambda e: True, len(entries))]
        expected = [twin for twin in twins if twin.is_idle(now)]
        assert found == [twin.serial for twin in expected]
        for twin in expected:
            twin.idle_reported_ns = now
        at = draw.randrange(50)
        if twins[at].idle_timeout_ns:
            twins[at].last_hit_ns = entries[at].last_hit_ns = now
