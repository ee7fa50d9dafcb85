"""Parser value sets, and the metadata of ports, which parsers read before each packet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, KindTable, Scope
from gradplane.switch.control.cells import Values
from gradplane.switch.control.kind import Record
from gradplane.switch.control.store import Store
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.valuesets import PARSERS, Member

_ALL_PARSERS = 0xFF
"""The parser of a request that is for all of them."""


class ValueSetTable(KindTable):
    """A parser value set: entries without data, which all parsers of a pipe share, or of each its
    own. Keys are ternary; a field that the switch matches in another way takes a full mask."""

    words: ClassVar = {
        "exists": "table {name}: the entry exists",
        "missing": "table {name}: it has no such entry",
    }
    kind: Values

    @property
    def by_parser(self) -> bool:
        return self.kind.value_set.by_parser

    def set_by_parser(self, wanted: bool) -> None:
        if self.kind.value_set.members or self.kind.value_set.own:
            what = f"table {self.schema.name}: its scope can change while it has no entries"
            raise RpcError("FAILED_PRECONDITION", f"{what}: clear it")
        self.store.journal.set(self.kind.value_set, "by_parser", wanted)

    def follow(self, other: ControlTable) -> None:
        self.kind.value_set.by_parser = other.by_parser

    def _of(self, scope: Scope) -> Values:
        """Return the members that a request is for. Raises RpcError."""
        if not self.by_parser:
            return self.kind
        if scope.parser >= PARSERS:
            what = "parsers have entries of their own: name one in the request's target (prsr_id)"
            raise self.invalid(f"parser {scope.parser} does not exist; {what}, 0 to {PARSERS - 1}")
        return self.store.values(self.kind.value_set, scope.parser)

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        place, kind = self.place(key), self._of(scope)
        kind.need_absent(place)
        kind.insert(place)

    def row(self, scope: Scope, key: Key) -> Member:
        place = self.place(key)
        self._of(scope).read(place)
        return place

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.row(scope, key)

    def delete(self, scope: Scope, key: Key) -> None:
        self._of(scope).delete(self.row(scope, key))

    def clear(self, scope: Scope) -> None:
        for kind in self._all(scope):
            kind.clear()

    def rows(self, scope: Scope) -> list[Member]:
        return [member for kind in self._all(scope) for member in kind.existing()]

    def shown(self, scope: Scope, row: Member) -> Data:
        return Data()

    def _all(self, scope: Scope) -> list[Values]:
        """Return the members that a request without a key is for: perhaps those of all parsers."""
        if self.by_parser and scope.parser == _ALL_PARSERS:
            value_set = self.kind.value_set
            return [self.store.values(value_set, parser) for parser in value_set.own]
        return [self._of(scope)]

    def place(self, key: Key) -> Member:
        found: list[Match] = []
        for f, known in zip(self.schema.keys, self.kind.value_set.fields, strict=True):
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

    def key(self, row: Member) -> Key:
        key: Key = {}
        for f, known, match in zip(self.schema.keys, self.kind.value_set.fields, row, strict=True):
            if match is None:
                key[f.name] = (0, 0)
            else:
                key[f.name] = (match[0], match[1] if known.kind == "ternary" else known.full)
        return key


class PortMetadataTable(KindTable):
    """The metadata of the ports of a pipeline's pipes, which its ingress parser reads before each
    packet. A port without an entry has zeros."""

    first_handle, resets = 1, True
    words: ClassVar = {
        "exists": "table {name}: port {0.number} has an entry",
        "missing": "table {name}: port {0.number} has no entry",
    }

    def __init__(self, schema: TableSchema, store: Store, facts: DeviceFacts, number: int) -> None:
        super().__init__(schema, store, store.port_metadata)
        self._size = facts.port_metadata_bytes
        pipes = facts.pipelines[number].pipes
        self._ports = [port for port in range(facts.ports) if port >> facts.pipe_bits in pipes]
        self._places = _places(facts.pipelines[number], schema, 8 * self._size)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        place = self.place(key)
        self.kind.write(place, **self.record(place, data))

    def rows(self, scope: Scope) -> list[int]:
        return [port for port in self.kind.existing() if port in self._ports]

    def place(self, key: Key) -> int:
        port = self.number(key)
        if port not in self._ports:
            raise self.invalid(f"port {port} is not of this pipeline's pipes")
        return port

    def record(self, place: int, data: Data) -> Record:
        whole = 0
        for name, shift, width in self._places:
            whole |= (int(data.values.get(name, 0)) & (1 << width) - 1) << shift
        return {"data": whole.to_bytes(self._size, "big")}

    def values(self, place: int, record: Record) -> Data:
        whole = int.from_bytes(record["data"], "big")
        types = {f.name: f.type.name for f in self.schema.data}
        values = {}
        for name, shift, width in self._places:
            number = whole >> shift & (1 << width) - 1
            values[name] = bool(number) if types[name] == "bool" else number
        return Data(None, values)


def _places(
    pipeline: PipelineFacts, schema: TableSchema, total: int
) -> Sequence[tuple[str, int, int]]:
    """Return the name, shift and width of each data field in the metadata's bits."""
    if pipeline.port_metadata is None:
        width = schema.data[0].type.width
        return [(schema.data[0].name, total - width, width)]
    known, at, places = {f.name for f in schema.data}, total, []
    for field in pipeline.port_metadata.fields:
        width = bit_width(field.type) or (field.type.width if isinstance(field.type, Bits) else 1)
        at -= width
        if field.name in known:
            places.append((field.name, at, width))
    return places
