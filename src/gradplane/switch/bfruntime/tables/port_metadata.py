"""The metadata of ports: what a pipeline's ingress parser reads before each packet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.state import State


class PortMetadataTable(ControlTable):
    """The metadata of the ports of a pipeline's pipes. A port without an entry has zeros."""

    def __init__(self, schema: TableSchema, facts: DeviceFacts, number: int, state: State) -> None:
        super().__init__(schema)
        self._key = schema.keys[0].name
        self._state = state
        self._size = facts.port_metadata_bytes
        pipes = facts.pipelines[number].pipes
        self._ports = [port for port in range(facts.ports) if port >> facts.pipe_bits in pipes]
        self._places = _places(facts.pipelines[number], schema, 8 * self._size)
        self._set: set[int] = set()

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        port = self._port(key)
        if port in self._set:
            raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: port {port} has an entry")
        return self._write(port, self._bytes(data))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        return self._write(self._port(key), self._bytes(data))

    def delete(self, scope: Scope, key: Key) -> Undo:
        port = self._port(key)
        if port not in self._set:
            raise self.missing(f"port {port} has no entry")
        return self._write(port, None)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self._write(self._port(key), None)

    def clear(self, scope: Scope) -> Undo:
        steps = [self._write(port, None) for port in list(self._set)]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        port = self._port(key)
        if port not in self._set:
            raise self.missing(f"port {port} has no entry")
        return key, self._shown(port)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for port in sorted(self._set):
            yield {self._key: (port,)}, self._shown(port)

    def usage(self, scope: Scope) -> int:
        return len(self._set)

    # -- parts ----------------------------------------------------------------------------------

    def _port(self, key: Key) -> int:
        port = self.number(key, self._key)
        if port not in self._ports:
            raise self.invalid(f"port {port} is not of this pipeline's pipes")
        return port

    def _bytes(self, data: Data) -> bytes:
        whole = 0
        for name, shift, width in self._places:
            whole |= (int(data.values.get(name, 0)) & (1 << width) - 1) << shift
        return whole.to_bytes(self._size, "big")

    def _shown(self, port: int) -> Data:
        whole = int.from_bytes(self._state.port_metadata[port].tobytes(), "big")
        types = {f.name: f.type.name for f in self.schema.data}
        values = {}
        for name, shift, width in self._places:
            number = whole >> shift & (1 << width) - 1
            values[name] = bool(number) if types[name] == "bool" else number
        return Data(None, values)

    def _write(self, port: int, data: bytes | None) -> Undo:
        row = self._state.port_metadata[port]
        old = row.tobytes() if port in self._set else None
        row[:] = list(data or bytes(self._size))
        (self._set.discard if data is None else self._set.add)(port)

        def undo() -> None:
            self._write(port, old)

        return undo


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
