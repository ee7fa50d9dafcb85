"""The tables of the packet generator: its applications, ports and packet buffers, in each pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.packet_generator import (
    BUFFER,
    MASKS,
    TRIGGERS,
    Application,
    PacketGenerator,
)
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, RowTable, Scope
from gradplane.switch.control.store import Store
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.links import Links


class ApplicationTable(RowTable):
    """The applications; a read gives those of the first pipe that it is for.

    watch: called with whether an application waits for packets that come back."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        generator: PacketGenerator,
        watch: Callable[[bool], None],
    ) -> None:
        super().__init__(schema, store)
        self.generator = generator
        self._clock = store.state.clock
        self._watch = watch
        self._kept: dict[tuple[int, int], dict[str, Any]] = store.kept("pktgen.app_cfg")
        for (pipe, number), kept in self._kept.items():
            generator.configure(pipe, number, kept["trigger"], kept["values"], self._clock())
        self._follow()

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self._number(key)
        made = {}
        for pipe in scope.pipes:
            trigger, values = self._wanted(self.generator.applications.get((pipe, number)), data)
            made[pipe, number] = self.generator.configured(
                pipe, number, trigger, values, self._clock()
            )
        self._put(made)

    def _wanted(self, former: Application | None, data: Data) -> tuple[str, dict[str, Any]]:
        """Return the trigger and the values of an application. Raises RpcError."""
        trigger = data.action.name if data.action else former.trigger if former else ""
        if not trigger:
            raise self.invalid("an application needs an action, its trigger")
        if trigger not in TRIGGERS:
            raise self.refused(f"applications with the action {trigger}")
        if data.values.get("port_mask_sel", 0) >= MASKS:
            raise self.invalid(f"port_mask_sel is not within 0 to {MASKS - 1}")
        values = {**(former.values if former else {}), **data.values}
        if values.get("pkt_buffer_offset", 0) + values.get("pkt_len", 0) > BUFFER:
            raise self.invalid(f"the packet ends beyond the buffer's {BUFFER} bytes")
        return trigger, values

    def delete(self, scope: Scope, key: Key) -> None:
        number = self._number(key)
        self._put({(pipe, number): None for pipe in scope.pipes})

    def reset(self, scope: Scope, key: Key) -> None:
        self.delete(scope, key)

    def clear(self, scope: Scope) -> None:
        there = self.generator.applications
        self._put({place: None for place in there if place[0] in scope.pipes})

    def rows(self, scope: Scope) -> Iterator[int]:
        for pipe, number in sorted(self.generator.applications):
            if pipe == scope.pipes[0]:
                yield number

    def row(self, scope: Scope, key: Key) -> int:
        number = self._number(key)
        if (scope.pipes[0], number) not in self.generator.applications:
            raise self.missing(f"application {number} has no entry")
        return number

    def shown(self, scope: Scope, row: int) -> Data:
        application = self.generator.applications[scope.pipes[0], row]
        spec = self.schema.action_named(application.trigger)
        return Data(spec, {**self.zeros(spec), **application.values})

    def usage(self, scope: Scope) -> int:
        return len({number for _, number in self.generator.applications})

    def _number(self, key: Key) -> int:
        number = self.number(key)
        if number >= self.schema.size:
            raise self.invalid(f"app_id {number} is not within 0 to {self.schema.size - 1}")
        return number

    def _put(self, values: Mapping[tuple[int, int], Application | None]) -> None:
        self.store.journal.record(self._follow)  # the last step that is taken back
        self.store.journal.put_all(self.generator.applications, values.items())
        self.store.journal.put_all(self._kept, (
            (place, None if a is None else {"trigger": a.trigger, "values": a.values})
            for place, a in values.items()
        ))  # fmt: skip
        self._follow()

    def _follow(self) -> None:
        self._watch(self.generator.watches_returned)


class GeneratorPortTable(RowTable):
    """The ports that a pipe's generator may use: one of them must be enabled. With
    `recirculation_enable`, what leaves by a port comes back by it.

    As with the chip's driver, a port for which nothing was set can be read."""

    def __init__(
        self, schema: TableSchema, store: Store, generator: PacketGenerator, links: Links
    ) -> None:
        super().__init__(schema, store)
        self.generator = generator
        self.links = links
        for port, values in generator.ports.items():
            links.loopback[port % QUEUES] |= bool(values.get("recirculation_enable"))

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        port = self.number(key)
        self._set(port, {**self.generator.ports.get(port, {}), **data.values})

    def delete(self, scope: Scope, key: Key) -> None:
        port = self.number(key)
        if port not in self.generator.ports:
            raise self.missing(f"port {port} has no entry")
        self._set(port, None)

    def clear(self, scope: Scope) -> None:
        for port in list(self.generator.ports):
            self._set(port, None)

    def rows(self, scope: Scope) -> list[int]:
        return sorted(self.generator.ports)

    def row(self, scope: Scope, key: Key) -> int:
        return self.number(key)

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, {**self.zeros(), **self.generator.ports.get(row, {})})

    def _set(self, port: int, values: dict[str, Any] | None) -> None:
        at, looped = port % QUEUES, bool(values and values.get("recirculation_enable"))
        self.store.journal.put(self.generator.ports, port, values)
        self.store.journal.splice(self.links.loopback, slice(at, at + 1), [looped])


class PacketBufferTable(ControlTable):
    """The bytes of the packet buffers; a key is a place and a size."""

    def __init__(self, schema: TableSchema, store: Store, generator: PacketGenerator) -> None:
        super().__init__(schema, store)
        self.generator = generator
        kept: dict[int, bytearray] = store.kept("pktgen.pkt_buffer")
        kept.update((pipe, bytearray(data)) for pipe, data in kept.items())
        generator.buffers = kept

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        start, end = self._span(key)
        given = bytes(data.values.get("buffer", b""))
        if len(given) != end - start:
            raise self.invalid(f"{len(given)} bytes for a size of {end - start}")
        for pipe in scope.pipes:
            self.store.journal.splice(self.generator.buffer(pipe), slice(start, end), given)

    def clear(self, scope: Scope) -> None:
        for pipe in scope.pipes:
            self.store.journal.splice(self.generator.buffer(pipe), slice(None), bytes(BUFFER))

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        start, end = self._span(key)
        found = self.generator.buffer(scope.pipes[0])[start:end]
        return key, Data(None, {"buffer": list(found)})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        return iter(())

    def usage(self, scope: Scope) -> int:
        return 0

    def _span(self, key: Key) -> tuple[int, int]:
        start, size = self.number(key, "pkt_buffer_offset"), self.number(key, "pkt_buffer_size")
        if start + size > BUFFER:
            raise self.invalid(f"{start} + {size} is beyond the buffer's {BUFFER} bytes")
        return start, start + size
