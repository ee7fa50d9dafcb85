"""The tables of the packet generator: its applications, ports and packet buffers, in each pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.packet_generator import (
    BUFFER,
    MASKS,
    REPLAY_NONE,
    TRIGGERS,
    Application,
    PacketGenerator,
)
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    SettingsTable,
    Undo,
)
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.links import Links

COUNTERS = ("batch_counter", "pkt_counter", "trigger_counter")


class ApplicationTable(ControlTable):
    """The applications; a read gives those of the first pipe that it is for.

    watch: called with whether an application waits for packets that come back."""

    def __init__(
        self,
        schema: TableSchema,
        generator: PacketGenerator,
        clock: Callable[[], int],
        watch: Callable[[bool], None],
    ) -> None:
        super().__init__(schema)
        self.generator = generator
        self._clock = clock
        self._watch = watch

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self._number(key)
        old = {pipe: self.generator.applications.get((pipe, number)) for pipe in scope.pipes}
        for pipe, former in old.items():
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
            self.generator.configure(pipe, number, trigger, values, self._clock())
        self._watch(self.generator.watches_returned)
        return lambda: self._put_back(number, old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self._number(key)
        old = {pipe: self.generator.applications.pop((pipe, number), None) for pipe in scope.pipes}
        self._watch(self.generator.watches_returned)
        return lambda: self._put_back(number, old)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self.delete(scope, key)

    def clear(self, scope: Scope) -> Undo:
        there = self.generator.applications
        old = {place: there.pop(place) for place in list(there) if place[0] in scope.pipes}
        self._watch(self.generator.watches_returned)

        def undo() -> None:
            there.update(old)
            self._watch(self.generator.watches_returned)

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        number = self._number(key)
        found = self.generator.applications.get((scope.pipes[0], number))
        if found is None:
            raise self.missing(f"application {number} has no entry")
        return key, self._shown(found)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for (pipe, number), application in sorted(self.generator.applications.items()):
            if pipe == scope.pipes[0]:
                yield {"app_id": (number,)}, self._shown(application)

    def usage(self, scope: Scope) -> int:
        return len({number for _, number in self.generator.applications})

    def _number(self, key: Key) -> int:
        number = self.number(key, "app_id")
        if number >= self.schema.size:
            raise self.invalid(f"app_id {number} is not within 0 to {self.schema.size - 1}")
        return number

    def _shown(self, application: Application) -> Data:
        spec = self.schema.action_named(application.trigger)
        fields = (*self.schema.data, *spec.data)
        zeros: dict[str, Any] = {f.name: False if f.type.name == "bool" else 0 for f in fields}
        return Data(spec, {**zeros, **application.values})

    def _put_back(self, number: int, old: dict[int, Application | None]) -> None:
        for pipe, application in old.items():
            if application is None:
                self.generator.applications.pop((pipe, number), None)
            else:
                self.generator.applications[pipe, number] = application
        self._watch(self.generator.watches_returned)


class GeneratorPortTable(ControlTable):
    """The ports that a pipe's generator may use: one of them must be enabled. With
    `recirculation_enable`, what leaves by a port comes back by it.

    As with the chip's driver, a port for which nothing was set can be read."""

    def __init__(self, schema: TableSchema, generator: PacketGenerator, links: Links) -> None:
        super().__init__(schema)
        self.generator = generator
        self.links = links

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        port = self.number(key, "dev_port")
        old = self.generator.ports.get(port)
        self._set(port, {**(old or {}), **data.values})
        return lambda: self._set(port, old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        port = self.number(key, "dev_port")
        old = self.generator.ports.get(port)
        if old is None:
            raise self.missing(f"port {port} has no entry")
        self._set(port, None)
        return lambda: self._set(port, old)

    def clear(self, scope: Scope) -> Undo:
        old = dict(self.generator.ports)
        for port in old:
            self._set(port, None)

        def undo() -> None:
            for port, values in old.items():
                self._set(port, values)

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        port = self.number(key, "dev_port")
        zeros = {f.name: False for f in self.schema.data}
        return key, Data(None, {**zeros, **self.generator.ports.get(port, {})})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for port in sorted(self.generator.ports):
            yield self.find(scope, {"dev_port": (port,)})

    def usage(self, scope: Scope) -> int:
        return len(self.generator.ports)

    def _set(self, port: int, values: dict[str, Any] | None) -> None:
        self.generator.ports.pop(port, None)
        if values is not None:
            self.generator.ports[port] = values
        self.links.loopback[port % QUEUES] = bool(values and values.get("recirculation_enable"))


class PacketBufferTable(ControlTable):
    """The bytes of the packet buffers; a key is a place and a size."""

    def __init__(self, schema: TableSchema, generator: PacketGenerator) -> None:
        super().__init__(schema)
        self.generator = generator

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self.modify(scope, key, data, Flags())

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        start, end = self._span(key)
        given = bytes(data.values.get("buffer", b""))
        if len(given) != end - start:
            raise self.invalid(f"{len(given)} bytes for a size of {end - start}")
        buffers = [self.generator.buffer(pipe) for pipe in scope.pipes]
        old = [bytes(buffer[start:end]) for buffer in buffers]
        for buffer in buffers:
            buffer[start:end] = given

        def undo() -> None:
            for buffer, former in zip(buffers, old, strict=True):
                buffer[start:end] = former

        return undo

    def clear(self, scope: Scope) -> Undo:
        buffers = [self.generator.buffer(pipe) for pipe in scope.pipes]
        old = [bytes(buffer) for buffer in buffers]
        for buffer in buffers:
            buffer[:] = bytes(len(buffer))

        def undo() -> None:
            for buffer, former in zip(buffers, old, strict=True):
                buffer[:] = former

        return undo

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


class PortMaskTable(ControlTable):
    """The ports whose links trigger applications with a mask: on Tofino 2, two masks a pipe."""

    def __init__(self, schema: TableSchema, generator: PacketGenerator) -> None:
        super().__init__(schema)
        self.generator = generator

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self._number(key)
        if "mask" not in data.values:
            raise self.invalid("data field mask is missing")
        return self._set({(pipe, number): data.values["mask"] for pipe in scope.pipes})

    def clear(self, scope: Scope) -> Undo:
        """Let all ports trigger applications."""
        return self._set({(pipe, i): None for pipe in scope.pipes for i in range(MASKS)})

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        mask = self.generator.mask(scope.pipes[0], self._number(key))
        return key, Data(None, {"mask": mask})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for i in range(MASKS):
            yield self.find(scope, {"port_mask_sel": (i,)})

    def usage(self, scope: Scope) -> int:
        return MASKS

    def _number(self, key: Key) -> int:
        number = self.number(key, "port_mask_sel")
        if number >= MASKS:
            raise self.invalid(f"port_mask_sel {number} is not within 0 to {MASKS - 1}")
        return number

    def _set(self, masks: Mapping[tuple[int, int], int | None]) -> Undo:
        there = self.generator.masks
        old = {place: there.get(place) for place in masks}
        _put(there, masks)
        return lambda: _put(there, old)


class ReplayTable(SettingsTable):
    """Whether links that are down already trigger an application as it is enabled."""

    def __init__(self, schema: TableSchema, generator: PacketGenerator) -> None:
        super().__init__(schema)
        self.generator = generator

    def set_default(self, scope: Scope, data: Data) -> Undo:
        mode = data.values.get("replay_mode", REPLAY_NONE)
        return self._set(dict.fromkeys(scope.pipes, mode))

    def reset_default(self, scope: Scope) -> Undo:
        return self._set(dict.fromkeys(scope.pipes))

    def default(self, scope: Scope) -> Data:
        mode = self.generator.replays.get(scope.pipes[0], REPLAY_NONE)
        return Data(None, {"replay_mode": mode})

    def _set(self, modes: Mapping[int, str | None]) -> Undo:
        there = self.generator.replays
        old = {pipe: there.get(pipe) for pipe in modes}
        _put(there, modes)
        return lambda: _put(there, old)


def _put(there: dict[Any, Any], values: Mapping[Any, Any]) -> None:
    """Set values; None takes one away."""
    for place, value in values.items():
        if value is None:
            there.pop(place, None)
        else:
            there[place] = value
