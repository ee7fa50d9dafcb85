"""Parser value sets: entries without data."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
    nothing,
)
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.valuesets import ParserValueSet

Member = tuple[Match, ...]


class ValueSetTable(ControlTable):
    """A value set. Keys are ternary; a field that the switch matches in another way takes a full
    mask."""

    def __init__(self, schema: TableSchema, value_set: ParserValueSet) -> None:
        super().__init__(schema)
        self.value_set = value_set

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        member = self._member(key)
        old = list(self.value_set.members)
        if member in old:
            raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: the entry exists")
        return self._replace([*old, member])

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        self.find(scope, key)
        return nothing

    def delete(self, scope: Scope, key: Key) -> Undo:
        self.find(scope, key)
        member = self._member(key)
        return self._replace([m for m in self.value_set.members if m != member])

    def clear(self, scope: Scope) -> Undo:
        return self._replace([])

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        member = self._member(key)
        if member not in self.value_set.members:
            raise self.missing("it has no such entry")
        return self._key(member), Data()

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for member in list(self.value_set.members):
            yield self._key(member), Data()

    def usage(self, scope: Scope) -> int:
        return len(self.value_set.members)

    def _replace(self, members: list[Member]) -> Undo:
        old = list(self.value_set.members)
        self.value_set.replace(members)
        return lambda: self.value_set.replace(old)

    def _member(self, key: Key) -> Member:
        found: list[Match] = []
        for f, known in zip(self.schema.keys, self.value_set.fields, strict=True):
            match = key[f.name]
            assert match is not None
            value, mask = match
            if known.kind == "ternary":
                found.append(known.canonical((value, mask)))
            elif mask == known.full:
                found.append(known.canonical((value, known.width) if known.kind == "lpm"
                                             else (value, value) if known.kind == "range"
                                             else (value,)))  # fmt: skip
            elif not mask and known.kind != "exact":
                found.append(None)
            else:
                raise self.invalid(f"{f.name} matches exactly: give the mask {known.full:#x}")
        return tuple(found)

    def _key(self, member: Member) -> Key:
        key: Key = {}
        for f, known, match in zip(self.schema.keys, self.value_set.fields, member, strict=True):
            if match is None:
                key[f.name] = (0, 0)
            else:
                key[f.name] = (match[0], match[1] if known.kind == "ternary" else known.full)
        return key
