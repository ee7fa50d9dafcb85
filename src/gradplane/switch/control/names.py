"""Names and numbers of the switch's objects, in all notations.

Python, commands and STF give a name in full, or a suffix of it that no other object has. P4Runtime
and BFRuntime number the objects of a program; simple_switch's commands number table entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Any

from gradplane.switch.ir.types import Annotations
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.control_errors import SwitchError, TableError
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.pipe_scopes import Resources
from gradplane.switch.runtime.state import State

_KINDS = {
    "table": "tables", "action profile": "profiles", "counter": "counters", "meter": "meters",
    "value set": "value_sets",
}  # fmt: skip
"""Kinds of objects that pipes can have of their own, in words."""


class Names:
    """Finds objects by name; raises SwitchError with the nearest names."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, kind: str, name: str, pipe: int = 0) -> Any:
        """Return the object of a kind ("table", "register", ...) and a name. pipe: whose, where
        pipes have their own."""
        registers = kind == "register"
        known = self._state.registers if registers else self._pipe(pipe).of(_KINDS[kind])
        return known[resolve(kind, name, known)]

    def cells(self, kind: str) -> dict[str, Any]:
        """Return all counters, or all meters, by name: arrays, and the tables whose entries have
        direct ones."""
        tables = self._state.tables.values()
        named = ((getattr(table.table, kind), table) for table in tables)
        direct = {instance.name: table for instance, table in named if instance is not None}
        return {**self._pipe(0).of(_KINDS[kind]), **direct}

    def _pipe(self, number: int) -> Resources:
        pipes = self._state.scopes.pipes
        if not 0 <= number < len(pipes):
            raise SwitchError(f"pipe {number} is not within 0 to {len(pipes) - 1}")
        return pipes[number]


# -- simple_switch's handles ----------------------------------------------------------------------

FIRST_HANDLE = 2
"""BFRuntime's handle of a table's first entry, which is 0 for simple_switch: the chip's driver has
1 for the default entry. Members, groups and nodes are known by their numbers to all."""
_SHOWN = 8  # handles listed in the message about a wrong one


def entry_with_handle(table: MatchTable, handle: int, first: int = 0) -> Entry:
    """Return the entry of a handle, where a table's first entry has `first`: FIRST_HANDLE for
    BFRuntime, 0 for simple_switch. Raises TableError."""
    entry = table.handles.get(handle - first)
    if entry is None:
        known = ", ".join(str(e.handle + first) for e in islice(table.entries(), _SHOWN))
        more = ", ..." if len(table) > _SHOWN else ""
        what = f"it has no entry with handle {handle}; handles: {known or 'none'}{more}"
        raise TableError("NOT_FOUND", f"table {table.table.name}: {what}")
    return entry


# -- the ids of P4Info ----------------------------------------------------------------------------
#
# As p4c assigns them: a prefix for the kind of object (p4info.proto, enum P4Ids) above 24 bits of a
# hash of the name; where it is taken, the next free one is used. `@id(n)` in the source fixes it.
# An alias is the shortest dotted suffix of the name that no other object shares.

_WORD = 0xFFFFFFFF
_SUFFIX = 0xFFFFFF


class P4InfoKind(IntEnum):
    """Kinds of objects; the value is the upper byte of their ids."""

    ACTION = 0x01
    TABLE = 0x02
    VALUE_SET = 0x03
    CONTROLLER_HEADER = 0x04
    ACTION_PROFILE = 0x11
    COUNTER = 0x12
    DIRECT_COUNTER = 0x13
    METER = 0x14
    DIRECT_METER = 0x15
    REGISTER = 0x16
    DIGEST = 0x17


class P4InfoError(Exception):
    """The program cannot be described to a controller; the message says why."""


def name_hash(name: str) -> int:
    """Return Jenkins' one-at-a-time hash of the name's UTF-8 bytes, 32 bits."""
    h = 0
    for byte in name.encode():
        h = (h + byte) & _WORD
        h = (h + (h << 10)) & _WORD
        h ^= h >> 6
    h = (h + (h << 3)) & _WORD
    h ^= h >> 11
    return (h + (h << 15)) & _WORD


def annotated_id(annotations: Annotations) -> int | None:
    """Return the number in @id(number), None without one."""
    for annotation in annotations:
        if annotation.name == "id":
            value = annotation.values[0] if annotation.values else None
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                raise P4InfoError(f"@id({annotation.body}): expected one positive number")
            return value
    return None


@dataclass(slots=True)
class Symbols:
    """The objects of a program, with their ids and aliases.

    Call `add` for each object, then `assign` once.
    """

    _names: dict[P4InfoKind, dict[str, int | None]] = field(default_factory=dict)
    _hashed: dict[tuple[P4InfoKind, str], str] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)
    _suffixes: Counter[str] = field(default_factory=Counter)

    def add(
        self, kind: P4InfoKind, name: str, annotations: Annotations = (), hashed: str = ""
    ) -> None:
        """Register an object; the same kind and name twice is one object. hashed: the name that its
        id follows from, if it is another one."""
        names = self._names.setdefault(kind, {})
        self._hashed[kind, name] = hashed or name
        if name not in names:
            names[name] = self._fixed(kind, name, annotated_id(annotations))

    def _fixed(self, kind: P4InfoKind, name: str, number: int | None) -> int | None:
        if number is None:
            return None
        if number > _WORD or number >> 24 not in (0, kind):
            raise P4InfoError(
                f"{name}: @id({number:#x}) does not fit: the upper 8 of its 32 bits must be"
                f" {kind:#04x} (or 0) for this kind of object"
            )
        number |= kind << 24
        if number in self._taken:
            raise P4InfoError(f"{name}: @id({number:#010x}) is taken by another object")
        self._taken.add(number)
        return number

    def assign(self) -> None:
        """Give an id to every object that has none yet, and count suffixes for the aliases."""
        for kind, names in self._names.items():
            for name in sorted(n for n, number in names.items() if number is None):
                names[name] = self._probe(kind, name_hash(self._hashed[kind, name]))
        for name in {n for names in self._names.values() for n in names}:
            self._suffixes.update(_suffixes(name))

    def _probe(self, kind: P4InfoKind, start: int) -> int:
        number = kind << 24 | start & _SUFFIX
        while number in self._taken:
            start += 1
            number = kind << 24 | start & _SUFFIX
        self._taken.add(number)
        return number

    def id(self, kind: P4InfoKind, name: str) -> int:
        number = self._names[kind][name]
        assert number is not None, name
        return number

    def alias(self, name: str) -> str:
        return next((s for s in _suffixes(name) if self._suffixes[s] < 2), name)


def _suffixes(name: str) -> list[str]:
    """Return the suffixes of a dotted name, the shortest first: c, b.c, a.b.c for a.b.c."""
    parts = name.split(".")
    return [".".join(parts[i:]) for i in reversed(range(len(parts)))]


def field_ids(fields: Sequence[Annotations], owner: str) -> list[int]:
    """Return the ids of fields, parameters or metadata: @id, else counted from 1."""
    fixed = [annotated_id(annotations) for annotations in fields]
    taken = _distinct([number for number in fixed if number is not None], owner)
    ids: list[int] = []
    index = 1
    for number in fixed:
        if number is None:
            while index in taken:
                index += 1
            number = index
            taken.add(index)
        else:
            index += 1
        ids.append(number)
    return ids


def _distinct(numbers: Iterable[int], owner: str) -> set[int]:
    seen: set[int] = set()
    for number in numbers:
        if number in seen:
            raise P4InfoError(f"{owner}: @id({number}) is given to two of its fields")
        seen.add(number)
    return seen


# -- the ids of BFRuntime -------------------------------------------------------------------------
#
# Those of P4Info's objects, and of the fields that it adds. Ids of fields that are not the
# program's begin at 2^16, in the order in which the Tofino back end of p4c numbers them; names have
# a $ in front.


_FIELDS = """
1 MATCH_PRIORITY ACTION ACTION_MEMBER_ID SELECTOR_GROUP_ID ACTION_MEMBER_STATUS MAX_GROUP_SIZE
    ENTRY_TTL ENTRY_HIT_STATE METER_SPEC_CIR_KBPS METER_SPEC_PIR_KBPS METER_SPEC_CBS_KBITS
    METER_SPEC_PBS_KBITS METER_SPEC_CIR_PPS METER_SPEC_PIR_PPS METER_SPEC_CBS_PKTS
    METER_SPEC_PBS_PKTS COUNTER_SPEC_BYTES COUNTER_SPEC_PKTS METER_INDEX COUNTER_INDEX
    REGISTER_INDEX
24 LPF_INDEX WRED_INDEX SELECTOR_MEMBER_ID SELECTOR_GROUP SELECTOR_MEMBER_STATUS
    SELECTOR_MAX_GROUP_SIZE ADT_OFFSET LPF_SPEC_TYPE LPF_SPEC_GAIN_TIME_CONSTANT_NS
    LPF_SPEC_DECAY_TIME_CONSTANT_NS LPF_SPEC_OUT_SCALE_DOWN_FACTOR WRED_SPEC_TIME_CONSTANT_NS
    WRED_SPEC_MIN_THRESH_CELLS WRED_SPEC_MAX_THRESH_CELLS WRED_SPEC_MAX_PROBABILITY
    PORT_METADATA_PORT PORT_METADATA_DEFAULT_FIELD HASH_ALGORITHM_ROTATE HASH_ALGORITHM_SEED
    HASH_ALGORITHM_MSB HASH_ALGORITHM_EXTEND HASH_ALGORITHM_PRE_DEFINED
    HASH_ALGORITHM_USER_DEFINED HASH_VALUE HASH_CONFIGURE_START_BIT HASH_CONFIGURE_LENGTH
    HASH_CONFIGURE_ORDER SNAPSHOT_START_STAGE SNAPSHOT_END_STAGE SNAPSHOT_ENABLE
    SNAPSHOT_TRIGGER_STATE SNAPSHOT_TIMER_ENABLE SNAPSHOT_TIMER_TRIGGER
    SNAPSHOT_TIMER_VALUE_USECS
60 SNAPSHOT_TABLE_INFO SNAPSHOT_METER_ALU_INFO
63 SNAPSHOT_PREV_STAGE_TRIGGER SNAPSHOT_INGRESS_TRIGGER_MODE SNAPSHOT_LOCAL_STAGE_TRIGGER
67 SNAPSHOT_NEXT_TABLE_NAME SNAPSHOT_ENABLED_NEXT_TABLES SNAPSHOT_GLOBAL_EXECUTE_TABLES
    SNAPSHOT_ENABLED_GLOBAL_EXECUTE_TABLES SNAPSHOT_LONG_BRANCH_TABLES
    SNAPSHOT_ENABLED_LONG_BRANCH_TABLES SNAPSHOT_DEPARSER_ERROR
75 SNAPSHOT_TABLE_NAME SNAPSHOT_METER_TABLE_NAME SNAPSHOT_METER_ALU_OPERATION_TYPE
    SNAPSHOT_MATCH_HIT_HANDLE SNAPSHOT_TABLE_HIT SNAPSHOT_TABLE_INHIBITED
    SNAPSHOT_TABLE_EXECUTED SNAPSHOT_LIVENESS_FIELD_NAME SNAPSHOT_LIVENESS_VALID_STAGES
    SNAPSHOT_THREAD SNAPSHOT_INGRESS_CAPTURE SNAPSHOT_EGRESS_CAPTURE SNAPSHOT_GHOST_CAPTURE
90 DEBUG_COUNTER_TABLE DEBUG_COUNTER_TYPE DEBUG_COUNTER_VALUE
"""
"""The fields that BFRuntime adds to a program's. A number is the place of the name behind it; those
between have no field of ours. Tofino's own begin at 24."""


def _numbered(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for word in text.split():
        if word.isdigit():
            at = int(word)
        else:
            yield word, (1 << 16) + at
            at += 1


FIELD_IDS: Mapping[str, int] = dict(_numbered(_FIELDS))


class TableId(IntEnum):
    """The upper byte of the id of a table or digest, as the chip's compiler has it."""

    ACTION_PROFILE = 0x81
    ACTION_SELECTOR = 0x82
    COUNTER = 0x83
    METER = 0x85
    WRED = 0x87
    LPF = 0x89
    REGISTER = 0x8B
    REGISTER_PARAM = 0x8D
    DIGEST = 0x8E
    PORT_METADATA = 0x90
    SNAPSHOT_CONFIG = 0x91
    SNAPSHOT_TRIGGER = 0x92
    SNAPSHOT_DATA = 0x93
    SNAPSHOT_LIVENESS = 0x94
    HASH_CONFIGURE = 0x95
    HASH_COMPUTE = 0x96
    HASH_ALGORITHM = 0x97
    DEBUG_COUNTER = 0x99
    SELECTOR_GET_MEMBER = 0x9A
    VALUE_SET = 0xFE


def table_id(kind: TableId, number: int) -> int:
    """Return the id of a table or digest of a kind, from the id of the object in P4Info."""
    return kind << 24 | number & 0xFFFFFF
