"""Match-action tables: entries with actions of their own, or with members and groups of a profile.

A smaller $MATCH_PRIORITY wins, as on the chip; in the switch's state the larger number wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import ActionSpec, TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
    nothing,
)
from gradplane.switch.bfruntime.tables.entry_parts import (
    BYTES,
    PACKETS,
    EntryParts,
    set_counter,
    together,
)
from gradplane.switch.bfruntime.tables.idle_times import MILLISECOND, TTL, IdleMode, IdleTimes
from gradplane.switch.bfruntime.tables.key_masks import KeyMasks
from gradplane.switch.bfruntime.tables.meter_adjustments import (
    ATTRIBUTE,
    set_adjustment,
    show_adjustment,
)
from gradplane.switch.ir.types import Bits
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
)
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable

PRIORITY = "$MATCH_PRIORITY"
LAST_PRIORITY = (1 << 31) - 2
"""The number of the priority that loses against all others."""

MEMBER, GROUP = "$ACTION_MEMBER_ID", "$SELECTOR_GROUP_ID"

FIRST_HANDLE = 1
"""The handle of a table's first entry; 0 is no entry's."""


class MatchActionTable(ControlTable):
    """A table of the program. action_numbers: the position of each action, by its id. masks: those
    of its keys that have one, by the field's name, in each pipe. pipes: returns those that share
    the table. adjustment: of the bytes that its meter measures."""

    def __init__(
        self,
        schema: TableSchema,
        table: MatchTable,
        action_numbers: Mapping[int, int],
        masks: Mapping[str, Sequence[Register]],
        pipes: Callable[[], Sequence[int]],
        adjustment: ByteAdjustment | None = None,
    ) -> None:
        super().__init__(schema)
        self.table = table
        self._numbers = action_numbers
        self._specs = {number: schema.action_by_id[id] for id, number in action_numbers.items()
                       if id in schema.action_by_id}  # fmt: skip
        self.idle = IdleTimes(table, any(f.name == TTL for f in schema.data))
        self._masks = KeyMasks(schema, masks)
        self._adjustment = adjustment
        self._parts = EntryParts(schema, table, pipes)

    # -- keys -----------------------------------------------------------------------------------

    def _identity(self, key: Key) -> tuple[tuple[Match, ...], int]:
        names = [f.name for f in self.schema.keys if f.name != PRIORITY]
        key = self._masks.masked(key)
        matches: list[Match] = []
        for name, known in zip(names, self.table.fields, strict=True):
            match = key[name]
            if match is not None and known.kind == "lpm" and not match[1]:
                match = None
            if match is not None and known.kind == "ternary" and not match[1]:
                match = None
            matches.append(match)
        if not self.table.with_priority:
            return tuple(matches), 0
        priority = self.number(key, PRIORITY)
        if priority > LAST_PRIORITY:
            raise self.invalid(f"{PRIORITY} {priority} is above {LAST_PRIORITY}")
        return tuple(matches), LAST_PRIORITY + 1 - priority

    def key(self, entry: Entry) -> Key:
        """Return the key of an entry."""
        names = [f.name for f in self.schema.keys if f.name != PRIORITY]
        key: Key = {}
        for name, known, match in zip(names, self.table.fields, entry.matches, strict=True):
            if match is None and known.kind != "optional":
                match = (0, known.full) if known.kind == "range" else (0, 0)
            key[name] = match
        if self.table.with_priority:
            key[PRIORITY] = (LAST_PRIORITY + 1 - entry.priority,)
        return key

    def _found(self, key: Key) -> Entry:
        matches, priority = self._identity(key)
        found = self.table.find(matches, priority)
        if found is None:
            shown = self.table.describe(Entry(matches, ActionData(0), priority))
            raise self.missing(f"it has no entry for {shown}")
        return found

    # -- entries --------------------------------------------------------------------------------

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        matches, priority = self._identity(key)
        target = self._target(data)
        if target is None:
            raise self.invalid("an entry needs an action, a member or a group")
        entry = Entry(matches, target, priority, idle_timeout_ns=self._timeout(data))
        together(
            lambda: self._insert(entry),  # which makes its register and filter
            *self._changes(entry, data),
        )
        if self.table.table.support_timeout:
            self.idle.note(entry, data)
        return lambda: self.table.delete(entry)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        found = self._found(key)
        hit = found.last_hit_ns
        changed = self._target(data)
        timeout = self._timeout(data) if TTL in data.values else found.idle_timeout_ns
        changes = [*self._changes(found, data), lambda: self._retarget(found, changed, timeout)]
        if flags.reset_stats and changed is not None and not {PACKETS, BYTES} & data.values.keys():
            changes.append(lambda: set_counter(found.counter, 0, 0))
        undo_parts = together(*changes)
        if self.table.table.support_timeout:
            if flags.reset_ttl:
                found.last_hit_ns = self.table.clock()
            self.idle.note(found, data)

        def undo() -> None:
            undo_parts()
            found.last_hit_ns = hit

        return undo

    def _insert(self, entry: Entry) -> Undo:
        self.table.insert(entry)
        return lambda: self.table.delete(entry)

    def _changes(self, entry: Entry, data: Data) -> list[Callable[[], Undo]]:
        """Return the changes of an entry's counter, meter, register and filter."""
        parts = self._parts
        return [
            lambda: parts.set_counter(entry.counter, data),
            lambda: parts.set_meter(entry.meter, data),
            lambda: parts.set_register(entry.register, data),
            lambda: parts.set_filter(entry.filter, data),
        ]

    def _retarget(self, entry: Entry, target: EntryAction | None, timeout: int) -> Undo:
        """Give an entry another action and idle timeout; without an action it keeps its own."""
        if target is None and timeout == entry.idle_timeout_ns:
            return nothing
        old, kept = replace(entry), entry.action if target is None else target
        self.table.modify(Entry(entry.matches, kept, entry.priority, entry.metadata, timeout))
        return lambda: self.table.modify(old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        found = self._found(key)
        self.table.delete(found)
        self.idle.forget(found)
        return lambda: self.table.restore(found)

    def clear(self, scope: Scope) -> Undo:
        former = [e for e in self.table.entries() if not e.is_const]
        self.table.clear()

        def undo() -> None:
            for entry in former:
                self.table.restore(entry)

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        found = self._found(key)
        return self.key(found), self.data(found, scope)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for entry in self.table.entries():
            yield self.key(entry), self.data(entry, scope)

    def usage(self, scope: Scope) -> int:
        return len(self.table)

    def handle(self, scope: Scope, key: Key) -> int:
        return self._found(key).handle + FIRST_HANDLE

    def key_of(self, scope: Scope, handle: int) -> Key:
        return self.key(self.table.by_handle(handle - FIRST_HANDLE))

    def data(self, entry: Entry, scope: Scope) -> Data:
        """Return the data of an entry, in a request's pipes."""
        data = self._shown(entry.action)
        self._parts.show(data, scope, entry.counter, entry.meter, entry.register, entry.filter)
        if self.table.table.support_timeout:
            self.idle.show(data, entry)
        return data

    # -- the default entry ----------------------------------------------------------------------

    def set_default(self, scope: Scope, data: Data) -> Undo:
        table, parts = self.table, self._parts
        return together(
            lambda: parts.set_counter(table.default_counter, data),
            lambda: parts.set_meter(table.default_meter, data),
            lambda: parts.set_register(table.default_register, data),
            lambda: parts.set_filter(table.default_filter, data),
            lambda: self._set_default_action(data),
        )

    def _set_default_action(self, data: Data) -> Undo:
        target = self._target(data)
        if target is None:
            return nothing
        old = self.table.default
        self.table.set_default(target)
        return lambda: self.table.set_default(old)

    def reset_default(self, scope: Scope) -> Undo:
        """Set the source's default action. That of a table whose default is const is set already:
        the chip's driver takes the request, too."""
        if self.table.table.const_default:
            return lambda: None
        old = self.table.default
        self.table.set_default(None)
        return lambda: self.table.set_default(old)

    def default(self, scope: Scope) -> Data | None:
        if self.table.profile is not None and isinstance(self.table.default, ActionData):
            return None  # the source's action, which is no member
        table, data = self.table, self._shown(self.table.default)
        self._parts.show(
            data, scope, table.default_counter, table.default_meter, table.default_register,
            table.default_filter,
        )  # fmt: skip
        return data

    # -- operations and attributes --------------------------------------------------------------

    def follow(self, other: ControlTable) -> None:
        assert isinstance(other, MatchActionTable), other
        self.idle.mode = other.idle.mode

    def operate(self, name: str) -> None:
        if name == "UpdateHitState":
            self.idle.update_states()

    def attribute(self, name: str, message: Any) -> None:
        if name == "idle_table" and "IdleTimeout" in self.schema.attributes:
            self.idle.mode.show(message.idle_table)
        elif name == "dyn_key_mask":
            self._masks.show(message.dyn_key_mask)
        elif name == ATTRIBUTE and "MeterByteCountAdjust" in self.schema.attributes:
            assert self._adjustment is not None, self.schema.name
            show_adjustment(self._adjustment, message)
        else:
            super().attribute(name, message)

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name == "idle_table" and "IdleTimeout" in self.schema.attributes:
            old = self.idle.mode
            self.idle.mode = IdleMode.of(message.idle_table)

            def undo() -> None:
                self.idle.mode = old

            return undo
        if name == "dyn_key_mask":
            if len(self.table):
                raise self.refused("its key masks can change while it has no entries: clear it")
            return self._masks.set(message.dyn_key_mask)
        if name == ATTRIBUTE and "MeterByteCountAdjust" in self.schema.attributes:
            assert self._adjustment is not None, self.schema.name
            try:
                return set_adjustment(self._adjustment, message)
            except ValueError as error:
                raise self.invalid(str(error)) from error
        return super().set_attribute(name, message)

    # -- parts ----------------------------------------------------------------------------------

    def _target(self, data: Data) -> EntryAction | None:
        if data.action is not None:
            return self._action(data.action, data)
        if MEMBER in data.values and GROUP in data.values:
            raise self.invalid(f"give one of {MEMBER} and {GROUP}")
        if MEMBER in data.values:
            return MemberRef(data.values[MEMBER])
        if GROUP in data.values:
            return GroupRef(data.values[GROUP])
        return None

    def _action(self, spec: ActionSpec, data: Data) -> ActionData:
        number = self._numbers[spec.id]
        params = self.table.table.actions[number].action.params
        args = []
        for field, param in zip(spec.data, params, strict=True):
            value = data.values[field.name]
            t = param.type
            if isinstance(t, Bits) and t.signed and value >> (t.width - 1):
                value -= 1 << t.width
            args.append(value)
        return ActionData(number, tuple(args))

    def _shown(self, target: EntryAction) -> Data:
        match target:
            case MemberRef(id=number):
                return Data(None, {MEMBER: number})
            case GroupRef(id=number):
                return Data(None, {GROUP: number})
            case ActionData(index=index, args=args):
                spec = self._specs.get(index)
                if spec is None:  # hidden from the control plane
                    return Data()
                names = (f.name for f in spec.data)
                return Data(spec, dict(zip(names, args, strict=True)))
        raise RpcError(
            "UNIMPLEMENTED", f"table {self.schema.name}: an entry with a group of its own"
        )

    def _timeout(self, data: Data) -> int:
        ttl: int = data.values.get(TTL, 0)
        if wrong := self.idle.mode.excess(ttl):
            raise self.invalid(wrong)
        return ttl * MILLISECOND
