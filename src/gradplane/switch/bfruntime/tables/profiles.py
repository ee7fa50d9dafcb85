"""Action profiles and selectors: members with an action, and groups of members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from gradplane._p4runtime import p4i
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import (
    ActionSpec,
    TableSchema,
    annotations_of,
    data_fields,
    index,
    parse_tables,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, KindTable, Scope
from gradplane.switch.bfruntime.tables.match_table import GROUP, MEMBER, Actions
from gradplane.switch.control.kind import Record, Refusal
from gradplane.switch.control.names import TableId, name_hash, table_id
from gradplane.switch.control.store import Store
from gradplane.switch.control.tables import Members, SelectorGroups
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.profiles import ActionProfile, Weighted

STATUS, MOST = "$ACTION_MEMBER_STATUS", "$MAX_GROUP_SIZE"

MemberChange = Callable[[int, int, int, bool], None]
"""Called with a group, a member, its place and whether it is active now."""


# -- schemas --------------------------------------------------------------------------------------

_GROUP = """
data ACTION_MEMBER_ID $ACTION_MEMBER_ID uint32*
data SELECTOR_MEMBER_STATUS $ACTION_MEMBER_STATUS bool*
data SELECTOR_MAX_GROUP_SIZE $MAX_GROUP_SIZE uint32~{}
data . $ADT_OFFSET uint32~3735928559
"""
"""A client that reads the default of $ADT_OFFSET knows that the field was not set."""
_PROBE = """
key SELECTOR_GROUP $SELECTOR_GROUP_ID uint64
key HASH_VALUE hash_value uint64
data SELECTOR_MEMBER_ID $ACTION_MEMBER_ID uint64
"""


def profile_tables(
    profile: p4i.ActionProfile,
    instance: ir.ExternInstance,
    actions: Iterable[ActionSpec],
    table_name: Callable[[str], str],
) -> Iterator[TableSchema]:
    """Yield the table of a profile's members, and those of its groups if it is a selector.

    actions: those of the tables that use it. table_name: gives a table's name here."""
    specs = {a.id: a for a in actions if a.scope != "DefaultOnly"}
    members, groups = profile.preamble.name, ""
    if profile.with_selector:
        members, groups = profile_names(instance)
    number = members_id(profile, instance, table_name)
    about = annotations_of(profile.preamble)
    yield TableSchema(
        table_name(members), number, "Action", profile.size,
        (index("ACTION_MEMBER_ID"),), (),
        tuple(specs.values()), unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    if not groups:
        return
    selector = table_id(TableId.ACTION_SELECTOR, profile.preamble.id)
    yield TableSchema(
        table_name(groups), selector, "Selector", _groups(instance, profile.size),
        (index("SELECTOR_GROUP_ID"),),
        data_fields(_GROUP.format(profile.max_group_size)), depends_on=(number,),
        unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    probe = table_id(TableId.SELECTOR_GET_MEMBER, profile.preamble.id)
    (schema,) = parse_tables(f"table - SelectorGetMember {probe} 1{_PROBE}depends {selector}")
    yield replace(schema, name=f"{table_name(groups)}_get_member", annotations=about)


def members_id(
    profile: p4i.ActionProfile, instance: ir.ExternInstance, table_name: Callable[[str], str]
) -> int:
    """Return the id of the table of a profile's members: they are an object of their own where a
    selector is made with an ActionProfile."""
    members = profile_names(instance)[0] if profile.with_selector else profile.preamble.name
    own = members == profile.preamble.name
    number = profile.preamble.id if own else name_hash(table_name(members))
    return table_id(TableId.ACTION_PROFILE, number)


def profile_names(selector: ir.ExternInstance) -> tuple[str, str]:
    """Return the names of a selector's members and groups.

    Members are those of the ActionProfile that it is made with; without one, they have the
    selector's name, and the groups' ends in _sel.
    """
    for argument in selector.args:
        if isinstance(argument, ir.ExternInstance) and argument.kind == "action_profile":
            return argument.name, selector.name
    return selector.name, f"{selector.name}_sel"


def _groups(selector: ir.ExternInstance, members: int) -> int:
    """Return how many groups a selector has: its constructor's last argument or its size."""
    first, *rest = selector.args
    if not isinstance(first, ir.ExternInstance) or not isinstance(rest[-1], int):
        return members
    return rest[-1]


# -- tables ---------------------------------------------------------------------------------------


class _ProfileTable(KindTable):
    """A table of a profile's members or groups, whose numbers are their handles, too."""

    first_handle = 0
    words: ClassVar = {"used": "table {name}: {0.number} is used by {0.value}"}
    kind: Members | SelectorGroups

    @property
    def profile(self) -> ActionProfile:
        return self.kind.profile


class MemberTable(_ProfileTable):
    """The members of an action profile. action_numbers: the profile's number of an action's id."""

    def __init__(
        self, schema: TableSchema, store: Store, kind: Members, action_numbers: Mapping[int, int]
    ) -> None:
        super().__init__(schema, store, kind)
        params = [choice.action.params for choice in kind.profile.actions.choices]
        self._actions = Actions(self, params, action_numbers)

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        place = self.place(key)
        self.kind.insert(place, **self.record(place, data))

    def record(self, place: int, data: Data) -> Record:
        if data.action is None:
            raise self.invalid("a member needs an action")
        return {"action": self._actions.of(data)}

    def values(self, place: int, record: Record) -> Data:
        return self._actions.shown(record["action"])


class SelectorTable(_ProfileTable):
    """The groups of an action selector. A member may be inactive: it is not chosen then."""

    def __init__(self, schema: TableSchema, store: Store, kind: SelectorGroups) -> None:
        super().__init__(schema, store, kind)
        self._most: int = next(f.type.default for f in schema.data if f.name == MOST) or 0  # type: ignore[assignment]
        self.notifies = False
        self.changed: MemberChange | None = None
        self.keep_attribute("selector_update_notify", "enable", "notifies")

    def members(self, group: int) -> list[tuple[int, bool]]:
        """Return a group's members, and whether each is active."""
        return [(w.member, w.active) for w in self.profile.group(group).members]

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        number = self.number(key)
        if len(self.profile.groups) >= self.schema.size:
            raise self.full(f"all {self.schema.size} groups are in use")
        limit = self._limit(data, self._most)
        members = self._given(data, limit)
        self.kind.insert(number, members=_weighted(members), max_size=limit)
        self._report(number, [], members)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self.row(scope, key)
        changed = self._limit(data, self._limit_of(number))
        given = MEMBER in data.values
        self._set(number, self._given(data, changed) if given else self.members(number), changed)

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self.number(key)
        limit = self._limit_of(number)
        given = self._given(data, 0)
        named = {member for member, _ in given}
        rest = [pair for pair in self.members(number) if pair[0] not in named]
        if flags.remove:
            missing = named - {member for member, _ in self.members(number)}
            if missing:
                shown = ", ".join(map(str, sorted(missing)))
                raise self.missing(f"group {number} has no member {shown}")
            self._set(number, rest, limit)
        else:
            self._set(number, [*rest, *given], limit)

    def shown(self, scope: Scope, row: int) -> Data:
        members = self.members(row)
        return Data(None, {
            MEMBER: [member for member, _ in members],
            STATUS: [active for _, active in members],
            MOST: self._limit_of(row),
            "$ADT_OFFSET": 0,
        })  # fmt: skip

    def follow(self, other: ControlTable) -> None:
        assert isinstance(other, SelectorTable), other
        self.notifies, self.changed = other.notifies, other.changed

    # -- parts ----------------------------------------------------------------------------------

    def _limit(self, data: Data, former: int) -> int:
        """Return how many members a group may have."""
        limit: int = data.values.get(MOST, former)
        if limit != former and not 1 <= limit <= self._most:
            raise self.invalid(f"{MOST} {limit} is not within 1 to {self._most}")
        return limit

    def _limit_of(self, number: int) -> int:
        """Return how many members a group may have; without a limit of its own, the selector's."""
        return self.profile.group(number).max_size or self._most

    def _given(self, data: Data, limit: int) -> list[tuple[int, bool]]:
        members = data.values.get(MEMBER, [])
        states = data.values.get(STATUS, [True] * len(members))
        if len(states) != len(members):
            raise self.invalid(f"{len(members)} members, but {len(states)} of {STATUS}")
        self._check_room(members, limit)
        for member in members:
            self.profile.member(member)
        return list(zip(members, states, strict=True))

    def _check_room(self, members: Sequence[object], limit: int) -> None:
        if limit and len(members) > limit:
            raise self.full(f"{len(members)} members in a group of at most {limit}")

    def _set(self, number: int, members: list[tuple[int, bool]], limit: int) -> None:
        former = self.members(number)
        self._check_room(members, limit)
        self._check_active(number, members)
        self.kind.modify(number, members=_weighted(members), max_size=limit)
        self._report(number, former, members)

    def _check_active(self, number: int, members: list[tuple[int, bool]]) -> None:
        """Refuse to leave a group that entries use without an active member."""
        if any(active for _, active in members):
            return
        try:
            self.kind.check_unused(number)
        except Refusal as error:
            what = f"group {number} is used by {error.value}, so it needs an active member"
            raise self.invalid(what) from error

    def _report(
        self, number: int, former: list[tuple[int, bool]], members: list[tuple[int, bool]]
    ) -> None:
        if self.changed is None or not self.notifies:
            return
        before = {member for member, active in former if active}
        after = {member for member, active in members if active}
        places = {member: at for at, (member, _) in enumerate([*members, *former])}
        for member in sorted(before ^ after):
            self.changed(number, member, places[member], member in after)


class ProbeTable(ControlTable):
    """The member that a selector chooses for a hash."""

    def __init__(
        self, schema: TableSchema, store: Store, selector: Callable[[Scope], ControlTable]
    ) -> None:
        """`selector` returns the groups of a request's pipes, a SelectorTable."""
        super().__init__(schema, store)
        self._selector = selector

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        number, selector = self.number(key, GROUP), self._selector(scope)
        assert isinstance(selector, SelectorTable), selector
        selector.members(number)  # which must exist
        dealt = selector.profile.dealt(number)
        if not dealt:
            raise self.missing(f"group {number} has no active member")
        return key, Data(None, {MEMBER: dealt[self.number(key, "hash_value") % len(dealt)]})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        return iter(())

    def usage(self, scope: Scope) -> int:
        return 0


def _weighted(members: Sequence[tuple[int, bool]]) -> list[Weighted]:
    return [Weighted(member, active=active) for member, active in members]
