"""Multicast nodes and entries' handles: whatever is done in whatever order."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.handles import Handles
from gradplane.switch.runtime.multicast_nodes import MulticastNodes
from gradplane.switch.runtime.replicas import CloneSession, Replica

NUMBERS = st.integers(0, 3)
PORTS = st.frozensets(st.integers(0, 4))
STEPS = st.one_of(
    st.tuples(st.just("create"), NUMBERS, PORTS),
    st.tuples(st.just("update"), NUMBERS, PORTS),
    st.tuples(st.just("destroy"), NUMBERS),
    st.tuples(st.just("create_group"), NUMBERS),
    st.tuples(st.just("destroy_group"), NUMBERS),
    st.tuples(st.just("associate"), NUMBERS, NUMBERS),
    st.tuples(st.just("dissociate"), NUMBERS, NUMBERS),
    st.tuples(st.just("mirror_to_group"), NUMBERS, NUMBERS),
)
OTHER = Replica(100, 7)  # of a controller


@given(st.lists(STEPS, max_size=40))
def test_a_group_has_its_nodes_copies_and_what_a_controller_gave_it(
    steps: list[tuple[object, ...]],
) -> None:
    groups: dict[int, list[Replica]] = {3: [OTHER]}
    sessions: dict[int, CloneSession] = {}
    nodes = MulticastNodes(groups, sessions)
    for name, *args in steps:
        before = {group: list(replicas) for group, replicas in groups.items()}
        try:
            getattr(nodes, str(name))(*args)
        except TableError:
            assert groups == before
    for group, replicas in groups.items():
        wanted = Counter(r for n in nodes.nodes.values() if n.group == group for r in n.replicas)
        assert Counter(r for r in replicas if r != OTHER) == wanted
        members, rest = nodes.members(group)
        assert {handle for handle, _ in members} == {
            handle for handle, node in nodes.nodes.items() if node.group == group
        }
        assert rest in ([], [OTHER])
    for session in sessions:
        assert sessions[session].replicas == groups.get(nodes.mirrored(session) or 0, [])


@given(st.lists(st.booleans(), max_size=60), st.randoms(use_true_random=False))
def test_handles_are_the_lowest_places_and_never_the_same_again(
    adds: list[bool], chance: random.Random
) -> None:
    handles, there, given_before = Handles(), [], set()
    for add in adds:
        if add or not there:
            entry = Entry((), ActionData(0))
            handles.add(entry)
            places = {e.handle & 0xFFFFFF for e in there}
            place = entry.handle & 0xFFFFFF
            assert place == next(n for n in range(len(there) + 1) if n not in places)
            assert entry.handle not in given_before
            given_before.add(entry.handle)
            there.append(entry)
        else:
            entry = there.pop(chance.randrange(len(there)))
            handles.remove(entry)
            assert handles.get(entry.handle) is None
    assert all(handles.get(entry.handle) is entry for entry in there)
    numbers = [entry.handle for entry in there]
    again, copies = Handles(), [Entry((), ActionData(0)) for _ in there]
    again.renumber(copies, numbers)
    assert all(again.get(handle) is copy for handle, copy in zip(numbers, copies, strict=True))
    one, other = Entry((), ActionData(0)), Entry((), ActionData(0))
    handles.add(one)
    again.add(other)
    assert one.handle & 0xFFFFFF == other.handle & 0xFFFFFF


@pytest.mark.parametrize("handles", [[1, 1], [1], [1, 2, 3], [1, -1], [0, 1 << 40]])
def test_handles_that_entries_cannot_have(handles: list[int]) -> None:
    entries = [Entry((), ActionData(0)) for _ in range(2)]
    with pytest.raises(ValueError, match="2 entries cannot have the handles"):
        Handles().renumber(entries, handles)
