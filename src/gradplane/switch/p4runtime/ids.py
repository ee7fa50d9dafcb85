"""Ids and aliases of control-plane objects, as p4c assigns them.

An id is a prefix for the kind of object (p4info.proto, enum P4Ids) above 24 bits of a hash of the
name; where it is taken, the next free one is used. `@id(n)` in the source fixes it. An alias is the
shortest dotted suffix of the name that no other object shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from gradplane.switch.ir.types import Annotations

_WORD = 0xFFFFFFFF
_SUFFIX = 0xFFFFFF


class Kind(IntEnum):
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

    _names: dict[Kind, dict[str, int | None]] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)
    _suffixes: Counter[str] = field(default_factory=Counter)

    def add(self, kind: Kind, name: str, annotations: Annotations = ()) -> None:
        """Register an object; the same kind and name twice is one object."""
        names = self._names.setdefault(kind, {})
        if name not in names:
            names[name] = self._fixed(kind, name, annotated_id(annotations))

    def _fixed(self, kind: Kind, name: str, number: int | None) -> int | None:
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
                names[name] = self._probe(kind, name_hash(name))
        for name in {n for names in self._names.values() for n in names}:
            self._suffixes.update(_suffixes(name))

    def _probe(self, kind: Kind, start: int) -> int:
        number = kind << 24 | start & _SUFFIX
        while number in self._taken:
            start += 1
            number = kind << 24 | start & _SUFFIX
        self._taken.add(number)
        return number

    def id(self, kind: Kind, name: str) -> int:
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
