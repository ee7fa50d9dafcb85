"""Match-action tables: entries with actions of their own, or with members and groups of a profile.

A smaller $MATCH_PRIORITY wins, as on the chip; in the switch's state the larger number wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_fields import (
    ADJUSTMENT,
    BYTES,
    PACKETS,
    EntryParts,
    adjustment_attribute,
    default_parts,
    parts_of,
)
from gradplane.switch.bfruntime.tables.control_table import (
    Attribute,
    ControlTable,
    Flags,
    KindTable,
    Scope,
)
from gradplane.switch.control.journal import Journal
from gradplane.switch.control.names import FIRST_HANDLE, entry_with_handle
from gradplane.switch.control.store import Store
from gradplane.switch.control.tables import Entries
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction, GroupRef, MemberRef
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable

PRIORITY = "$MATCH_PRIORITY"
LAST_PRIORITY = (1 << 31) - 2
"""The number of the priority that loses against all others."""

MEMBER, GROUP = "$ACTION_MEMBER_ID", "$SELECTOR_GROUP_ID"

TTL, HIT_STATE = "$ENTRY_TTL", "$ENTRY_HIT_STATE"
MILLISECOND = 10**6  # ns

POLL, NOTIFY = 0, 1
"""The modes of idle timeouts: the hit state is read, or notifications are sent."""


class IdleMode:
    """A table's attribute IdleTimeout; times in ms."""

    def __init__(self) -> None:
        self.enabled = False
        self.mode = NOTIFY
        self.query_interval = 5000
        self.most = 3600000
        self.least = 1000

    @classmethod
    def of(cls, message: Any) -> IdleMode:
        """Make it of a message's IdleTable."""
        idle = cls()
        idle.enabled, idle.mode = message.enable, message.idle_table_mode
        idle.query_interval = message.ttl_query_interval or idle.query_interval
        idle.most, idle.least = message.max_ttl or idle.most, message.min_ttl
        return idle

    def show(self, message: Any) -> None:
        """Set a message's IdleTable; the mode to poll has no times."""
        message.enable, message.idle_table_mode = self.enabled, self.mode
        if self.mode == NOTIFY:
            message.ttl_query_interval = self.query_interval
            message.max_ttl, message.min_ttl = self.most, self.least

    def excess(self, ttl: int) -> str:
        """Return what is wrong with a timeout, nothing if it may be set. As in the chip's driver,
        it is an interval at least, and the attribute's own limits do not count."""
        if 0 < ttl < self.query_interval and self.enabled and self.mode == NOTIFY:
            return f"{TTL} {ttl} ms is shorter than the query interval, {self.query_interval} ms"
        return ""

    def starts_anew(self, former: IdleMode) -> bool:
        """Return whether entries' times begin when the attribute changes from `former` to this."""
        same = former.enabled and former.query_interval == self.query_interval
        return self.enabled and not same

    def left(self, entry: Entry, now: int) -> int:
        """Return the ms that an entry has left; they fall once in each query interval, in which
        the driver looks for hits."""
        left = entry.idle_timeout_ns // MILLISECOND
        idle_for = (now - entry.last_hit_ns) // MILLISECOND
        if not self.enabled:
            return left
        if idle_for >= left:
            return 0
        return left - idle_for // self.query_interval * self.query_interval


_NEVER = 0, "ENTRY_IDLE"


class IdleTimes:
    """The idle times of a table's entries, as clients see and set them. timed: whether an entry has
    a time of its own; if not, its hit state can only be polled. noted: by handle, an entry's last
    hit before UpdateHitState, and its state."""

    def __init__(self, journal: Journal, table: MatchTable, timed: bool) -> None:
        self._journal = journal
        self._table = table
        self._timed = timed
        self.mode = IdleMode()
        self._noted: dict[int, tuple[int, str]] = {}

    def show(self, data: Data, entry: Entry) -> None:
        """Add an entry's time that is left, or, in the mode to poll, its hit state; both while the
        attribute is not enabled."""
        if self._timed and (not self.mode.enabled or self.mode.mode == NOTIFY):
            data.values[TTL] = self.mode.left(entry, self._table.clock())
        if not self.mode.enabled or self.mode.mode == POLL:
            data.values[HIT_STATE] = self._state(entry)

    def attribute(self) -> Attribute:
        """Return the attribute IdleTimeout."""

        def set(message: Any) -> None:
            former, mode = self.mode, IdleMode.of(message.idle_table)
            if mode.mode not in (POLL, NOTIFY):
                what = f"idle_table_mode {mode.mode} is neither {POLL}, to poll, nor {NOTIFY}"
                raise invalid(f"table {self._table.table.name}: {what}")
            self._journal.set(self, "mode", mode)
            if mode.starts_anew(former):
                for entry in self._table.entries():
                    self._journal.set(entry, "last_hit_ns", self._table.clock())

        return Attribute(lambda message: self.mode.show(message.idle_table), set)

    def note(self, entry: Entry, data: Data) -> None:
        """Keep the hit state that a client sets with an entry."""
        state = data.values.get(HIT_STATE, "ENTRY_IDLE")
        self._journal.put(self._noted, entry.handle, (entry.last_hit_ns, state))
        if state == "ENTRY_ACTIVE":
            self._journal.set(entry, "last_hit_ns", self._table.clock())

    def update_states(self) -> None:
        """See which entries were hit since the last time: the operation UpdateHitState."""
        for entry in self._table.entries():
            active = entry.last_hit_ns > self._noted.get(entry.handle, _NEVER)[0]
            state = "ENTRY_ACTIVE" if active else "ENTRY_IDLE"
            self._noted[entry.handle] = entry.last_hit_ns, state

    def forget(self, entry: Entry) -> None:
        """Drop what is known of an entry that is deleted."""
        self._journal.put(self._noted, entry.handle, None)

    def _state(self, entry: Entry) -> str:
        if self.mode.mode == POLL and self.mode.enabled:
            return self._noted.get(entry.handle, _NEVER)[1]
        idle_for = self._table.clock() - entry.last_hit_ns
        expired = entry.idle_timeout_ns and idle_for >= entry.idle_timeout_ns
        return "ENTRY_IDLE" if expired else "ENTRY_ACTIVE"


class Actions:
    """The actions of a table's entries, or of members. params: of each, by number; numbers: by id.
    Parameters with a sign are numbers without one in messages."""

    def __init__(
        self, owner: ControlTable, params: Sequence[Sequence[ir.Var]], numbers: Mapping[int, int]
    ) -> None:
        self._params = params
        self._numbers = numbers
        known = owner.schema.action_by_id
        self._specs = {number: known[id] for id, number in numbers.items() if id in known}

    def of(self, data: Data) -> ActionData:
        """Return the action of data, which have one."""
        assert data.action is not None
        number, args = self._numbers[data.action.id], []
        for field, param in zip(data.action.data, self._params[number], strict=True):
            value, t = data.values[field.name], param.type
            if isinstance(t, Bits) and t.signed and value >> (t.width - 1):
                value -= 1 << t.width
            args.append(value)
        return ActionData(number, tuple(args))

    def shown(self, action: ActionData) -> Data:
        """Return the data of an action, none of one that is hidden from the control plane."""
        spec = self._specs.get(action.index)
        if spec is None:
            return Data()
        return Data(spec, dict(zip((f.name for f in spec.data), action.args, strict=True)))


class KeyMasks:
    """The attribute DynamicKeyMask: masks of some of a table's exact key fields; by name, the
    registers that hold one a pipe."""

    def __init__(self, owner: ControlTable, registers: Mapping[str, Sequence[Register]]) -> None:
        self._owner = owner
        self._registers = registers
        self._fields = {f.id: f for f in owner.schema.keys if f.name in registers}

    def masked(self, key: Key) -> Key:
        """Return a key without the bits that packets are not compared in."""
        if not self._registers:
            return key
        found = dict(key)
        for name, registers in self._registers.items():
            match = found[name]
            assert match is not None, name
            found[name] = (match[0] & int(registers[0].read(0)),)
        return found

    def show(self, message: Any) -> None:
        """Fill in a message's DynKeyMask."""
        for number, field in self._fields.items():
            value = int(self._registers[field.name][0].read(0))
            size = -(-field.type.bits // 8)
            message.dyn_key_mask.fields.add(field_id=number, mask=value.to_bytes(size, "big"))

    def set(self, message: Any) -> None:
        """Set the masks from a DynKeyMask; a field without one is compared in full.

        Raises RpcError for fields that have no mask, and for masks that are too wide.
        """
        masks = {f.name: (1 << f.type.bits) - 1 for f in self._fields.values()}
        for given in message.dyn_key_mask.fields:
            masks.update([self._mask(given)])
        for name, mask in masks.items():
            for register in self._registers[name]:
                self._owner.store.registers(register).write(0, value=mask)

    def _mask(self, given: Any) -> tuple[str, int]:
        field = self._fields.get(given.field_id)
        if field is None:
            known = ", ".join(f"{f.id} ({f.name})" for f in self._fields.values()) or "none"
            what = f"key field {given.field_id} has no mask; those of exact keys: {known}"
            raise self._owner.invalid(what)
        mask = int.from_bytes(given.mask, "big")
        if mask >> field.type.bits:
            what = f"the mask of key field {field.name} has more than {field.type.bits} bits"
            raise self._owner.invalid(what)
        return field.name, mask


class MatchActionTable(KindTable):
    """A table of the program. action_numbers: the position of each action, by its id. masks: those
    of its keys that have one, by the field's name, in each pipe. pipes: returns those that share
    the table. adjustment: of the bytes that its meter measures."""

    kind: Entries

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        table: MatchTable,
        action_numbers: Mapping[int, int],
        masks: Mapping[str, Sequence[Register]],
        pipes: Callable[[], Sequence[int]],
        adjustment: ByteAdjustment | None = None,
    ) -> None:
        super().__init__(schema, store, store.entries(table))
        self.table = table
        self._names = [f.name for f in schema.keys if f.name != PRIORITY]
        self.actions = Actions(self, [a.action.params for a in table.table.actions], action_numbers)
        self.idle = IdleTimes(store.journal, table, any(f.name == TTL for f in schema.data))
        self._masks = KeyMasks(self, masks)
        self._parts = EntryParts(self, table, pipes)
        if "IdleTimeout" in schema.attributes:
            self.own_attributes["idle_table"] = self.idle.attribute()
        if "MeterByteCountAdjust" in schema.attributes and adjustment is not None:
            self.own_attributes[ADJUSTMENT] = adjustment_attribute(self, adjustment)
        self.own_attributes["dyn_key_mask"] = Attribute(self._masks.show, self._set_masks)

    # -- keys -----------------------------------------------------------------------------------

    def place(self, key: Key) -> tuple[tuple[Match, ...], int]:
        key = self._masks.masked(key)
        matches: list[Match] = []
        for name, known in zip(self._names, self.table.fields, strict=True):
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

    def key(self, row: Entry) -> Key:
        """Return the key of an entry."""
        key: Key = {}
        for name, known, match in zip(self._names, self.table.fields, row.matches, strict=True):
            if match is None and known.kind != "optional":
                match = (0, known.full) if known.kind == "range" else (0, 0)
            key[name] = match
        if self.table.with_priority:
            key[PRIORITY] = (LAST_PRIORITY + 1 - row.priority,)
        return key

    def row(self, scope: Scope, key: Key) -> Entry:
        matches, priority = self.place(key)
        found = self.table.find(matches, priority)
        if found is None:
            shown = self.table.describe(Entry(matches, ActionData(0), priority))
            raise self.missing(f"it has no entry for {shown}")
        return found

    # -- entries --------------------------------------------------------------------------------

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        matches, priority = self.place(key)
        target = self._target(data)
        if target is None:
            raise self.invalid("an entry needs an action, a member or a group")
        entry = Entry(matches, target, priority, timeout_ns=self._timeout(data))
        self.kind.add(entry)  # which makes its register and filter
        self._parts.set(parts_of(entry), data.values)
        if self.table.table.support_timeout:
            self.idle.note(entry, data)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        found = self.row(scope, key)
        target = self._target(data)
        timeout = self._timeout(data) if TTL in data.values else found.idle_timeout_ns
        self._parts.set(parts_of(found), data.values)
        if target is not None or timeout != found.idle_timeout_ns:
            kept = found.action if target is None else target
            self.kind.modify(found.key, action=kept, idle_timeout_ns=timeout)
        if flags.reset_stats and target is not None and not {PACKETS, BYTES} & data.values.keys():
            self.store.counters(found.counter).clear()
        if self.table.table.support_timeout:
            if flags.reset_ttl:
                self.store.journal.set(found, "last_hit_ns", self.table.clock())
            self.idle.note(found, data)

    def delete(self, scope: Scope, key: Key) -> None:
        found = self.row(scope, key)
        self.kind.delete(found.key)
        self.idle.forget(found)

    def clear(self, scope: Scope) -> None:
        self.kind.clear()

    def rows(self, scope: Scope) -> Iterator[Entry]:
        return self.table.entries()

    def shown(self, scope: Scope, row: Entry) -> Data:
        data = self._shown(row.action)
        self._parts.show(data, scope, parts_of(row))
        if self.table.table.support_timeout:
            self.idle.show(data, row)
        return data

    def usage(self, scope: Scope) -> int:
        return len(self.table)

    def handle(self, scope: Scope, key: Key) -> int:
        return self.row(scope, key).handle + FIRST_HANDLE

    def key_of(self, scope: Scope, handle: int) -> Key:
        return self.key(entry_with_handle(self.table, handle, FIRST_HANDLE))

    # -- the default entry ----------------------------------------------------------------------

    def set_default(self, scope: Scope, data: Data) -> None:
        self._parts.set(default_parts(self.table), data.values)
        target = self._target(data)
        if target is not None:
            self.kind.set_default(target)

    def reset_default(self, scope: Scope) -> None:
        """Set the source's default action. That of a table whose default is const is set already:
        the chip's driver takes the request, too."""
        if not self.table.table.const_default:
            self.kind.set_default(None)

    def default(self, scope: Scope) -> Data | None:
        if self.table.profile is not None and isinstance(self.table.default, ActionData):
            return None  # the source's action, which is no member
        data = self._shown(self.table.default)
        self._parts.show(data, scope, default_parts(self.table))
        return data

    # -- operations and attributes --------------------------------------------------------------

    def follow(self, other: ControlTable) -> None:
        assert isinstance(other, MatchActionTable), other
        self.idle.mode = other.idle.mode

    def operate(self, name: str) -> None:
        if name == "UpdateHitState":
            self.idle.update_states()
        elif name in ("SyncCounters", "SyncRegisters"):
            for parts in (default_parts(self.table), *map(parts_of, self.table.entries())):
                self._parts.sync(parts, name == "SyncCounters")

    def _set_masks(self, message: Any) -> None:
        if len(self.table):
            raise self.refused("its key masks can change while it has no entries: clear it")
        self._masks.set(message)

    # -- parts ----------------------------------------------------------------------------------

    def _target(self, data: Data) -> EntryAction | None:
        if data.action is not None:
            return self.actions.of(data)
        if MEMBER in data.values and GROUP in data.values:
            raise self.invalid(f"give one of {MEMBER} and {GROUP}")
        if MEMBER in data.values:
            return MemberRef(data.values[MEMBER])
        if GROUP in data.values:
            return self._group(data.values[GROUP])
        return None

    def _group(self, number: int) -> GroupRef:
        """Return a group as an entry's action. Raises RpcError for one without members."""
        profile = self.table.profile
        if profile is not None and number in profile.groups and not profile.groups[number].members:
            raise self.missing(f"group {number} has no members, so no entry can refer to it")
        return GroupRef(number)

    def _shown(self, target: EntryAction) -> Data:
        match target:
            case MemberRef(id=number):
                return Data(None, {MEMBER: number})
            case GroupRef(id=number):
                return Data(None, {GROUP: number})
            case ActionData():
                return self.actions.shown(target)
        raise RpcError(
            "UNIMPLEMENTED", f"table {self.schema.name}: an entry with a group of its own"
        )

    def _timeout(self, data: Data) -> int:
        ttl: int = data.values.get(TTL, 0)
        if wrong := self.idle.mode.excess(ttl):
            raise self.invalid(wrong)
        return ttl * MILLISECOND
