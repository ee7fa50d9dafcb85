"""Action profiles and selectors: members with an action, and groups of members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
)
from gradplane.switch.bfruntime.tables.match_table import GROUP, MEMBER
from gradplane.switch.ir.types import Bits
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.entries import ActionData, GroupRef, MemberRef
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile, Weighted

STATUS, MOST = "$ACTION_MEMBER_STATUS", "$MAX_GROUP_SIZE"

MemberChange = Callable[[int, int, int, bool], None]
"""Called with a group, a member, its place and whether it is active now."""


def _check_unused(
    schema: TableSchema, tables: Sequence[MatchTable], target: MemberRef | GroupRef
) -> None:
    for table in tables:
        user = table.user_of(target)
        if user is not None:
            what = f"table {schema.name}: {target.id} is used by {user}"
            raise RpcError("FAILED_PRECONDITION", what)


class MemberTable(ControlTable):
    """The members of an action profile. action_numbers: the profile's number of an action's id."""

    def __init__(
        self,
        schema: TableSchema,
        profile: ActionProfile,
        action_numbers: Mapping[int, int],
        users: Sequence[MatchTable],
    ) -> None:
        super().__init__(schema)
        self.profile = profile
        self._numbers = action_numbers
        self._specs = {number: schema.action_by_id[id] for id, number in action_numbers.items()
                       if id in schema.action_by_id}  # fmt: skip
        self._users = users

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        number = self.number(key, MEMBER)
        self.profile.add_member(number, self._action(data))
        return lambda: self.profile.delete_member(number)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self.number(key, MEMBER)
        old = self.profile.member(number)
        self.profile.modify_member(number, self._action(data))
        return lambda: self.profile.modify_member(number, old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self.number(key, MEMBER)
        old = self.profile.member(number)
        _check_unused(self.schema, self._users, MemberRef(number))
        self.profile.delete_member(number)
        return lambda: self.profile.add_member(number, old)

    def clear(self, scope: Scope) -> Undo:
        steps = [self.delete(scope, {MEMBER: (number,)}) for number in list(self.profile.members)]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self.profile.member(self.number(key, MEMBER)))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for number, action in list(self.profile.members.items()):
            yield {MEMBER: (number,)}, self._shown(action)

    def usage(self, scope: Scope) -> int:
        return len(self.profile.members)

    def handle(self, scope: Scope, key: Key) -> int:
        number = self.number(key, MEMBER)
        self.profile.member(number)
        return number

    def key_of(self, scope: Scope, handle: int) -> Key:
        self.profile.member(handle)
        return {MEMBER: (handle,)}

    def _action(self, data: Data) -> ActionData:
        if data.action is None:
            raise self.invalid("a member needs an action")
        number, args = self._numbers[data.action.id], []
        params = self.profile.actions.choices[number].action.params
        for field, param in zip(data.action.data, params, strict=True):
            value, t = data.values[field.name], param.type
            if isinstance(t, Bits) and t.signed and value >> (t.width - 1):
                value -= 1 << t.width
            args.append(value)
        return ActionData(number, tuple(args))

    def _shown(self, action: ActionData) -> Data:
        spec = self._specs[action.index]
        return Data(spec, dict(zip((f.name for f in spec.data), action.args, strict=True)))


class SelectorTable(ControlTable):
    """The groups of an action selector. A member may be inactive: it is not chosen then."""

    def __init__(
        self, schema: TableSchema, profile: ActionProfile, users: Sequence[MatchTable]
    ) -> None:
        super().__init__(schema)
        self.profile = profile
        self._users = users
        self._most: int = next(f.type.default for f in schema.data if f.name == MOST) or 0  # type: ignore[assignment]
        self._limits: dict[int, int] = {}
        self.notifies = False
        self.changed: MemberChange | None = None

    def members(self, group: int) -> list[tuple[int, bool]]:
        """Return a group's members, and whether each is active."""
        return [(w.member, w.active) for w in self.profile.group(group).members]

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        number = self.number(key, GROUP)
        if len(self.profile.groups) >= self.schema.size:
            what = f"table {self.schema.name}: all {self.schema.size} groups are in use"
            raise RpcError("RESOURCE_EXHAUSTED", what)
        limit = self._limit(data, self._most)
        members = self._given(data, limit)
        self.profile.add_group(number, _weighted(members))
        self._limits[number] = limit
        self._report(number, [], members)

        def undo() -> None:
            self.profile.delete_group(number)
            self._limits.pop(number, None)

        return undo

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self.number(key, GROUP)
        former = self.members(number)
        changed = self._limit(data, self._limits.get(number, self._most))
        members = self._given(data, changed) if MEMBER in data.values else former
        return self._set(number, members, changed)

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self.number(key, GROUP)
        limit = self._limits.get(number, self._most)
        given = self._given(data, 0)
        named = {member for member, _ in given}
        rest = [pair for pair in self.members(number) if pair[0] not in named]
        if flags.remove:
            missing = named - {member for member, _ in self.members(number)}
            if missing:
                shown = ", ".join(map(str, sorted(missing)))
                raise self.missing(f"group {number} has no member {shown}")
            return self._set(number, rest, limit)
        return self._set(number, [*rest, *given], limit)

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self.number(key, GROUP)
        old, kept = self.members(number), self._limits.get(number, self._most)
        _check_unused(self.schema, self._users, GroupRef(number))
        self.profile.delete_group(number)
        self._limits.pop(number, None)

        def undo() -> None:
            self.profile.add_group(number, _weighted(old))
            self._limits[number] = kept

        return undo

    def clear(self, scope: Scope) -> Undo:
        steps = [self.delete(scope, {GROUP: (number,)}) for number in list(self.profile.groups)]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self.number(key, GROUP))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for number in list(self.profile.groups):
            yield {GROUP: (number,)}, self._shown(number)

    def usage(self, scope: Scope) -> int:
        return len(self.profile.groups)

    def handle(self, scope: Scope, key: Key) -> int:
        number = self.number(key, GROUP)
        self.profile.group(number)
        return number

    def key_of(self, scope: Scope, handle: int) -> Key:
        self.profile.group(handle)
        return {GROUP: (handle,)}

    def follow(self, other: ControlTable) -> None:
        assert isinstance(other, SelectorTable), other
        self.notifies, self.changed = other.notifies, other.changed

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name != "selector_update_notify":
            return super().set_attribute(name, message)
        old, self.notifies = self.notifies, message.selector_update_notify.enable

        def undo() -> None:
            self.notifies = old

        return undo

    def attribute(self, name: str, message: Any) -> None:
        if name != "selector_update_notify":
            super().attribute(name, message)
        message.selector_update_notify.enable = self.notifies

    # -- parts ----------------------------------------------------------------------------------

    def _limit(self, data: Data, former: int) -> int:
        """Return how many members a group may have."""
        limit: int = data.values.get(MOST, former)
        if limit != former and not 1 <= limit <= self._most:
            raise self.invalid(f"{MOST} {limit} is not within 1 to {self._most}")
        return limit

    def _given(self, data: Data, limit: int) -> list[tuple[int, bool]]:
        members = data.values.get(MEMBER, [])
        states = data.values.get(STATUS, [True] * len(members))
        if len(states) != len(members):
            raise self.invalid(f"{len(members)} members, but {len(states)} of {STATUS}")
        if limit and len(members) > limit:
            what = f"{len(members)} members in a group of at most {limit}"
            raise RpcError("RESOURCE_EXHAUSTED", f"table {self.schema.name}: {what}")
        for member in members:
            self.profile.member(member)
        return list(zip(members, states, strict=True))

    def _set(self, number: int, members: list[tuple[int, bool]], limit: int) -> Undo:
        former, old = self.members(number), self._limits.get(number, self._most)
        if limit and len(members) > limit:
            what = f"{len(members)} members in a group of at most {limit}"
            raise RpcError("RESOURCE_EXHAUSTED", f"table {self.schema.name}: {what}")
        self.profile.modify_group(number, _weighted(members))
        self._limits[number] = limit
        self._report(number, former, members)

        def undo() -> None:
            self.profile.modify_group(number, _weighted(former))
            self._limits[number] = old

        return undo

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

    def _shown(self, number: int) -> Data:
        members = self.members(number)
        return Data(None, {
            MEMBER: [member for member, _ in members],
            STATUS: [active for _, active in members],
            MOST: self._limits.get(number, self._most),
            "$ADT_OFFSET": 0,
        })  # fmt: skip


class ProbeTable(ControlTable):
    """The member that a selector chooses for a hash."""

    def __init__(self, schema: TableSchema, selector: Callable[[Scope], ControlTable]) -> None:
        """`selector` returns the groups of a request's pipes, a SelectorTable."""
        super().__init__(schema)
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
