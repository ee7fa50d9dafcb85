"""Action profiles and selectors: members shared by entries, groups that spread over members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gradplane.switch.runtime.action_lists import ActionList, annotated
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, EntryAction, GroupRef, MemberRef, OneShot
from gradplane.switch.runtime.links import Links

_MOST_DEALT = 1 << 14  # entries of a resilient group with members that are left out


@dataclass(frozen=True, slots=True)
class Weighted:
    """A member in a group, left out while its `watch_port` is down or it is not active."""

    member: int
    weight: int = 1
    watch_port: bytes = b""
    active: bool = True


@dataclass(slots=True)
class Group:
    """slots: the members in the places that a resilient selector's hash chooses first; a place
    whose member has left stays free until another one comes."""

    members: list[Weighted]
    max_size: int
    slots: list[Weighted | None]

    def has(self, member: int) -> bool:
        """Return whether a member is in the group."""
        return any(weighted.member == member for weighted in self.members)


@dataclass(slots=True)
class Use:
    """The use of a selector by all groups, those of single entries included: the sum of weights,
    and the number of members."""

    weights: int = 0
    members: int = 0

    def add(self, weights: Collection[int], times: int = 1) -> None:
        """Count a group with these weights, or one less of it (-1)."""
        self.weights += times * sum(weights)
        self.members += times * len(weights)


GroupMemory = tuple[Group, int | None, list[int]]
"""A group, its first cell in the register of states, and the states."""


class SharingTable(Protocol):
    """A table as the profile that it uses sees it; MatchTable."""

    actions: ActionList

    def targets(self) -> Iterable[EntryAction]: ...

    def user_of(self, target: EntryAction, default: bool = True) -> str | None: ...

    def check_member(self, member: ActionData) -> None: ...


MemberWatcher = Callable[[ActionData | None, ActionData | None], None]
"""Called for each change of a member with its former and new action, None where there is none."""


class ActionProfile:
    """The members and groups of an action profile or selector.

    A member has an action of one of the tables that share the profile; its number is the position
    in `actions`, which lists the actions of all these tables. An entry can use only members whose
    actions its own table lists.

    `algorithm` is the selector's hash ("" for a plain profile), `output_width` its bits; `links`
    says which ports are down. `states`: a register with a cell for each member of each group, 0 for
    those that are left out; the cells of a group, `most` of them, are one after the other.
    resilient: a member that is left out gives its share of the hashes to others, which keep theirs;
    if not, the hashes are dealt out anew.
    """

    def __init__(
        self,
        name: str,
        size: int,
        algorithm: str = "",
        output_width: int = 0,
        links: Links | None = None,
        states: Register | None = None,
        most: int = 0,
        resilient: bool = False,
    ) -> None:
        self.name = name
        self._resilient = resilient
        self.states = states
        self.most = most
        self._first_cells: dict[int, int] = {}  # of each group
        self.actions = ActionList(f"action profile {name}", [])
        self.tables: list[SharingTable] = []
        self.mixed = False  # whether the tables list different actions
        self.links = links or Links()
        self.size = size
        self.algorithm = algorithm
        self.output_width = output_width
        self.members: dict[int, ActionData] = {}
        self._ages: dict[int, int] = {}  # of the members; the older has the lower number
        self._age = 0
        self.groups: dict[int, Group] = {}
        self.use = Use()
        self.changes = 0  # so that mirrors can detect changes
        self.watchers: list[MemberWatcher] = []

    def attach(self, table: SharingTable) -> list[int]:
        """Note a table that uses the profile; return the numbers here of the table's actions."""
        self.tables.append(table)
        numbers = {name: at for at, name in enumerate(self.actions.names)}
        for choice in table.actions.choices:
            at = numbers.setdefault(choice.action.name, len(numbers))
            if at == len(self.actions.choices):
                self.actions.choices.append(choice)
            elif annotated(self.actions.choices[at], "defaultonly"):
                self.actions.choices[at] = choice
        first, *others = (set(other.actions.for_entries) for other in self.tables)
        self.mixed = any(names != first for names in others)
        return [numbers[name] for name in table.actions.names]

    @property
    def has_groups(self) -> bool:
        return bool(self.algorithm)

    def member(self, id: int) -> ActionData:
        """Return a member's action; raises TableError if there is none."""
        self._need_member(id)
        return self.members[id]

    def group(self, id: int) -> Group:
        """Return a group; raises TableError if there is none."""
        self._need_group(id)
        return self.groups[id]

    def add_member(self, id: int, action: ActionData) -> None:
        if id in self.members:
            raise self._error("ALREADY_EXISTS", f"member {id} exists", f"Duplicate member id: {id}")
        if len(self.members) >= self.size:
            raise self._error("RESOURCE_EXHAUSTED", f"all {self.size} members are in use")
        self.actions.check(action)
        self._put_member(id, action)
        self._age += 1
        self._ages[id] = self._age

    def modify_member(self, id: int, action: ActionData) -> None:
        self._need_member(id)
        self.actions.check(action)
        self._check_users(lambda target: self._can_run(target, id), [action])
        self._put_member(id, action)

    def delete_member(self, id: int) -> None:
        self._need_member(id)
        for group_id, group in self.groups.items():
            if group.has(id):
                raise self._error("FAILED_PRECONDITION", f"member {id} is in group {group_id}")
        self._put_member(id, None)

    def add_group(self, id: int, members: Iterable[Weighted], max_size: int = 0) -> None:
        if not self.has_groups:
            raise self._error("INVALID_ARGUMENT", "it is not a selector, so it has no groups")
        if id in self.groups:
            raise self._error("ALREADY_EXISTS", f"group {id} exists", f"Duplicate group id: {id}")
        group = self._group(list(members), max_size)
        self._activate(id, group)
        self._put_group(id, group)
        self.changes += 1

    def modify_group(self, id: int, members: Iterable[Weighted], max_size: int = 0) -> None:
        self._need_group(id)
        old = self.groups[id]
        group = self._group(list(members), max_size or old.max_size, old.slots)
        actions = [self.members[weighted.member] for weighted in group.members]
        self._check_users(GroupRef(id).__eq__, actions)
        self._activate(id, group)
        self._put_group(id, group)
        self.changes += 1

    def delete_group(self, id: int) -> None:
        self._need_group(id)
        self._put_group(id, None)
        self._first_cells.pop(id, None)
        self.changes += 1

    def clear(self) -> None:
        """Remove all groups and members, which no entry may use."""
        for id in list(self.groups):
            self._put_group(id, None)
        self._first_cells.clear()
        for id in list(self.members):
            self._put_member(id, None)
        self.changes += 1

    def memory_of_member(self, id: int) -> tuple[ActionData, int] | None:
        """Return what `restore_member` needs to make a member what it is now."""
        return (self.members[id], self._ages[id]) if id in self.members else None

    def restore_member(self, id: int, former: tuple[ActionData, int] | None) -> None:
        """Make a member what it was, unchecked."""
        action, age = former or (None, 0)
        self._put_member(id, action)
        if action is not None:
            self._ages[id] = age

    def memory_of_group(self, id: int) -> GroupMemory | None:
        """Return what `restore_group` needs to make a group what it is now."""
        if id not in self.groups:
            return None
        first = self._first_cells.get(id)
        return self.groups[id], first, self._states_of(first)

    def restore_group(
        self, id: int, former: GroupMemory | None, written: GroupMemory | None
    ) -> None:
        """Make a group what it was, unchecked. written: as it was after the change that is taken
        back; states that packets have set since stay."""
        self._put_group(id, None)
        self._first_cells.pop(id, None)
        if former is not None:
            group, first, states = former
            self._put_group(id, group)
            if first is not None:
                self._first_cells[id] = first
                self._restore_states(first, states, written[2] if written else states)
        self.changes += 1

    def note(self, target: EntryAction, times: int = 1) -> None:
        """Count what an entry begins to use of the selector's size, or ends to (-1): a group of its
        own."""
        if type(target) is OneShot:
            self.use.add([weight for _, weight, _ in target.actions], times)

    def _put_member(self, id: int, action: ActionData | None) -> None:
        former = self.members.get(id)
        if action is None:
            del self.members[id], self._ages[id]
        else:
            self.members[id] = action
        self.changes += 1
        for watch in self.watchers:
            watch(former, action)

    def _put_group(self, id: int, group: Group | None) -> None:
        former = self.groups.pop(id, None) if group is None else self.groups.get(id)
        if former is not None:
            self.use.add([w.weight for w in former.members], -1)
        if group is not None:
            self.groups[id] = group
            self.use.add([w.weight for w in group.members])

    def _restore_states(self, first: int, states: list[int], written: list[int]) -> None:
        assert self.states is not None
        for i, (state, set) in enumerate(zip(states, written, strict=True), first):
            if self.states.read(i) == set:
                self.states.write(i, state)

    def _states_of(self, first: int | None) -> list[int]:
        if self.states is None or first is None:
            return []
        return [self.states.read(first + i) for i in range(self.most)]

    def choices(self, target: MemberRef | GroupRef) -> list[ActionData]:
        """Return the actions that an entry's hash chooses among, each as often as its weight."""
        if isinstance(target, MemberRef):
            return [self.members[target.id]] if target.id in self.members else []
        return [self.members[member] for member in self.dealt(target.id)]

    def dealt(self, id: int) -> list[int]:
        """Return the members that a group deals out to hashes: hash h gets number h modulo all.

        The older members come first, whatever their order in the group, as in BMv2; those of a
        resilient selector in the order of their slots.
        """
        group = self.groups.get(id)
        if group is None:
            return []
        there = [w for w in self._active(id, group) if self.links.watched(w.watch_port)]
        if not self._resilient:
            return [w.member for w in self._by_age(there) for _ in range(w.weight)]
        up = {w.member for w in there}
        slots = [w.member if w is not None and w.member in up else None for w in group.slots
                 for _ in range(1 if w is None else w.weight)]  # fmt: skip
        return _resilient(slots)

    def member_states(self) -> bytes:
        """Return the states of all groups' members, so that mirrors can detect changes."""
        if self.states is None:
            return b""
        spans = [(self._first_cells[id], len(group.members)) for id, group in self.groups.items()]
        return bytes(self.states.read(first + i) for first, count in spans for i in range(count))

    def _active(self, id: int, group: Group) -> list[Weighted]:
        """Return the members of a group that are active; a register says which, if there is one."""
        if self.states is None:
            return [w for w in group.members if w.active]
        first = self._first_cells[id]
        return [w for i, w in enumerate(group.members) if self.states.read(first + i)]

    def _activate(self, id: int, group: Group) -> None:
        """Give a group its cells, and set those of its members. Raises TableError."""
        if self.states is None:
            return
        used = set(self._first_cells.values())
        places = range(0, self.states.size - self.most + 1, self.most)
        first = self._first_cells.get(id, next((p for p in places if p not in used), None))
        if first is None or len(group.members) > self.most:
            what = f"register {self.states.name} has no {len(group.members)} cells for group {id}"
            raise self._error("RESOURCE_EXHAUSTED", f"{what}; a group has {self.most}")
        self._first_cells[id] = first
        states = [int(weighted.active) for weighted in group.members]
        for i in range(self.most):
            self.states.write(first + i, states[i] if i < len(states) else 0)

    def _by_age(self, members: list[Weighted]) -> list[Weighted]:
        return sorted(members, key=lambda weighted: self._ages[weighted.member])

    def one_shot(self, target: OneShot) -> list[ActionData]:
        """Return the choices of an entry that has a group of its own, in its table's numbers."""
        up = self.links.watched
        return [
            action for action, weight, port in target.actions if up(port) for _ in range(weight)
        ]

    def check(self, target: MemberRef | GroupRef) -> None:
        """Raise TableError unless the member or group exists."""
        if isinstance(target, MemberRef):
            self._need_member(target.id)
        else:
            self._need_group(target.id)

    def members_of(self, target: MemberRef | GroupRef) -> list[ActionData]:
        """Return the actions of a member or group that exists."""
        if isinstance(target, MemberRef):
            return [self.member(target.id)]
        return [self.members[weighted.member] for weighted in self.group(target.id).members]

    def _can_run(self, target: EntryAction, member: int) -> bool:
        """Return whether an entry with a target can run a member, directly or in its group."""
        if isinstance(target, GroupRef):
            return self.groups[target.id].has(member)
        return target == MemberRef(member)

    def _check_users(
        self, used: Callable[[EntryAction], bool], actions: Collection[ActionData]
    ) -> None:
        """Raise TableError if a table that does not list the actions has entries that run them."""
        for table in self.tables if self.mixed else ():
            try:
                for action in actions:
                    table.check_member(action)
            except TableError:
                if any(used(target) for target in table.targets()):
                    raise

    def _group(
        self, members: list[Weighted], max_size: int, former: Sequence[Weighted | None] = ()
    ) -> Group:
        for weighted in members:
            self._need_member(weighted.member)
            if weighted.weight < 1:
                what = f"member {weighted.member} has weight {weighted.weight}, below 1"
                raise self._error("INVALID_ARGUMENT", what)
        if max_size and len(members) > max_size:
            what = f"{len(members)} members in a group of at most {max_size}"
            raise self._error("RESOURCE_EXHAUSTED", what)
        return Group(members, max_size, _placed(members, former))

    def _need_member(self, id: int) -> None:
        if id not in self.members:
            what = f"no member {id}; members: {_ids(self.members)}"
            raise self._error("NOT_FOUND", what, f"Member id does not exist: {id}")

    def _need_group(self, id: int) -> None:
        if id not in self.groups:
            what = f"no group {id}; groups: {_ids(self.groups)}"
            raise self._error("NOT_FOUND", what, f"Group id does not exist: {id}")

    def _error(self, code: str, what: str, pi_text: str = "") -> TableError:
        return TableError(code, f"action profile {self.name}: {what}", pi_text)


def _placed(members: list[Weighted], former: Sequence[Weighted | None]) -> list[Weighted | None]:
    """Return the slots of a group: members that stay keep theirs, others take free ones."""
    left = {weighted.member: weighted for weighted in members}
    slots = [None if old is None else left.pop(old.member, None) for old in former]
    for new in left.values():
        if None in slots:
            slots[slots.index(None)] = new
        else:
            slots.append(new)
    return slots


def _resilient(slots: list[int | None]) -> list[int]:
    """Return what hashes get of slots with members, or None for one that is left out.

    The list is the slots several times, so that a hash always falls on the same slot; what falls on
    one that is left out is dealt out to the others.
    """
    there = [member for member in slots if member is not None]
    if not there or len(there) == len(slots):
        return there
    count, rounds = len(slots), max(1, min(len(there), _MOST_DEALT // len(slots)))
    found: list[int] = []
    for at in range(count * rounds):
        member = slots[at % count]
        found.append(there[(at // count + at % count) % len(there)] if member is None else member)
    return found


def _ids(known: Iterable[int]) -> str:
    ids = sorted(known)
    shown = ", ".join(map(str, ids[:8])) or "none"
    return shown + (", ..." if len(ids) > 8 else "")
