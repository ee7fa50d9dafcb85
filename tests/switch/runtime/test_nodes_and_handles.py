"""Multicast nodes and entries' handles: whatever is done in whatever order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.commands.command_registry import CommandError
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.handles import Handles
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.replication_tree import Branch

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
SWITCH = Switch("nodes.p4", text=source(), engine="interpreter")


COMMANDS = {
    "create": "mc_node_create", "update": "mc_node_update", "destroy": "mc_node_destroy",
    "create_group": "mc_mgrp_create", "destroy_group": "mc_mgrp_destroy",
    "associate": "mc_node_associate", "dissociate": "mc_node_dissociate",
    "mirror_to_group": "mirroring_add_mc",
}  # fmt: skip


def run(sw: Switch, name: str, args: Sequence[object]) -> None:
    words = [
        " ".join(map(str, sorted(word))) if isinstance(word, frozenset) else str(word)
        for word in args
    ]
    sw.run_commands(f"{COMMANDS[name]} {' '.join(words)}")


@given(st.lists(STEPS, max_size=40))
def test_a_group_has_its_nodes_copies_and_what_a_controller_gave_it(
    steps: list[tuple[object, ...]],
) -> None:
    SWITCH.reset()
    state, replication = SWITCH.state, SWITCH.store.replication
    state.multicast[3] = [OTHER]
    for name, *args in steps:
        before = {group: list(replicas) for group, replicas in state.multicast.items()}
        try:
            run(SWITCH, str(name), args)
        except CommandError:
            assert state.multicast == before
    for group, replicas in state.multicast.items():
        nodes = [n for n in replication.tree.nodes if group in replication.nodes.direct(n)]
        wanted = Counter(r for n in nodes for r in copies(n))
        assert Counter(r for r in replicas if r != OTHER) == wanted
        parts = replication.groups.read(group)["parts"]
        assert {part.number for part in parts if isinstance(part, Branch)} == set(nodes)
        assert [part for part in parts if isinstance(part, Replica)] in ([], [OTHER])
    for session, clones in state.clone_sessions.items():
        (mirrored,) = replication.sessions.read(session)["groups"]
        assert clones.replicas == state.multicast.get(mirrored, [])


def copies(node: int) -> list[Replica]:
    found = SWITCH.store.replication.nodes.read(node)
    return [Replica(port, found["rid"]) for port in found["ports"]]


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
