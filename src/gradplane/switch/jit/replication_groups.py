"""Native mirrors of multicast groups, clone sessions and parser value sets.

They are compared before native code runs, and updated if the originals changed.
"""

from __future__ import annotations

import numpy as np

from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.valuesets import member_bytes, value_set_word
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.valuesets import ParserValueSet


class GroupMirror:
    """Multicast groups and clone sessions: rows of (first replica, count) and of (first replica,
    count, truncate, class of service + 1 or 0 if there is no such session). The groups' replicas
    come first; an array of their own has their exclusion ids."""

    def __init__(self, state: State, groups: int, sessions: int, set_word: SetWord) -> None:
        self.state = state
        self._set = set_word
        self._seen: object = None
        self._groups = np.zeros((groups, 2), dtype=np.int64)
        self._sessions = np.zeros((sessions, 4), dtype=np.int64)
        for name, array in (("groups", self._groups), ("sessions", self._sessions)):
            set_word(name, int(array.__array_interface__["data"][0]))
        self._replicas = Memory("replicas", set_word)
        self._exclusions = Memory("exclusions", set_word)
        self._used: tuple[list[int], list[int]] = ([], [])

    def refresh(self) -> None:
        """Update both if one changed, or the ports that are down."""
        state, live = self.state, self.state.links.live
        changes = state.multicast.changes, state.clone_sessions.changes, state.links.down
        if changes == self._seen:
            return
        self._seen = changes
        replicas: list[int] = []
        exclusions: list[int] = []
        # Row by row: filling all would touch megabytes that hardly any program needs.
        for array, ids in ((self._groups, self._used[0]), (self._sessions, self._used[1])):
            array[ids] = 0
        self._used = list(state.multicast), list(state.clone_sessions)
        for id, members in state.multicast.items():
            _check("multicast group", id, len(self._groups))
            self._groups[id] = len(replicas) // 2, len(members)
            chosen = live(members)
            replicas += [n for r in chosen for n in (r.port, r.instance)]
            exclusions += [-1 if r.exclusion is None else r.exclusion for r in chosen]
        for id, session in state.clone_sessions.items():
            _check("clone session", id, len(self._sessions))
            count = len(session.replicas)
            service = session.class_of_service + 1
            self._sessions[id] = len(replicas) // 2, count, session.truncate, service
            replicas += [n for r in live(session.replicas) for n in (r.port, r.instance)]
        whole = np.array(replicas, dtype=np.int64).tobytes()
        self._replicas.grow(len(whole))
        self._replicas.write(0, whole)
        whole = np.array(exclusions, dtype=np.int64).tobytes()
        self._exclusions.grow(len(whole))
        self._exclusions.write(0, whole)


def _check(what: str, id: int, there: int) -> None:
    if not 0 <= id < there:
        raise SwitchError(f"{what} {id} is not within 0 to {there - 1}")


class ValueSetMirror:
    """One parser value set."""

    def __init__(self, value_set: ParserValueSet, set_word: SetWord) -> None:
        self.value_set = value_set
        self._set = set_word
        self._seen: object = None
        self._members = Memory(value_set_word(value_set.name, "members"), set_word)

    def refresh(self) -> None:
        members = self.value_set.members
        if members is self._seen:
            return
        self._seen = members
        whole = member_bytes(self.value_set)
        self._members.grow(len(whole))
        self._members.write(0, whole)
        self._set(value_set_word(self.value_set.name, "count"), len(members))
