"""Ports: their configuration, the state of their links, and their counters.

A port with a network interface exists from the start. The interface's speed is what the machine
gives it: a configured speed is kept and has no effect. Disabling a port takes its link down for
groups that watch it. Packets that leave by a port in loopback mode, whatever kind of it, come back
by it; such a port needs no interface.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.fixed_schema import STATISTICS
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.links import Links

LANES = 4
"""Channels of a front-panel connector."""
FRONT_PORTS = 64
"""Ports of a pipe at the front panel: those before the recirculation ports of Tofino 1."""


class Interface(Protocol):
    """A port's number and the name of its network interface."""

    @property
    def number(self) -> int: ...

    @property
    def interface(self) -> str: ...


class Interfaces(Protocol):
    """The interfaces of a live switch."""

    def status(self) -> Sequence[Interface]: ...


_NO_LOOPBACK = "BF_LPBK_NONE"
_DEFAULTS: Mapping[str, Any] = {
    "$SPEED": "BF_SPEED_10G", "$FEC": "BF_FEC_TYP_NONE", "$N_LANES": 1, "$PORT_ENABLE": True,
    "$AUTO_NEGOTIATION": "PM_AN_DEFAULT", "$LOOPBACK_MODE": _NO_LOOPBACK, "$TX_MTU": 10240,
    "$RX_MTU": 10240, "$PORT_DIR": "PM_PORT_DIR_DEFAULT",
}  # fmt: skip

_INTERFACE_COUNTS = {
    "OctetsReceivedinGoodFrames": 0, "OctetsReceived": 0, "FramesReceivedOK": 1,
    "FramesReceivedAll": 1, "FrameswithanyError": 2, "FramesDroppedBufferFull": 3,
    "FramesReceivedwithMulticastAddresses": 7, "OctetsTransmittedwithouterror": 8,
    "OctetsTransmittedTotal": 8, "FramesTransmittedOK": 9, "FramesTransmittedAll": 9,
    "FramesTransmittedwithError": 10,
}  # fmt: skip
"""The columns of /proc/net/dev that a port's counters show; the others are 0."""


def interface_counts(text: str) -> dict[str, list[int]]:
    """Return the numbers of each interface in /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        found[name.strip()] = [int(number) for number in numbers.split()]
    return found


class Ports:
    """The ports of the switch: those with interfaces, and those that clients added."""

    def __init__(self, links: Links, count: int, interfaces: Interfaces | None) -> None:
        self.links = links
        self.count = count
        self._interfaces = interfaces
        self.added: dict[int, dict[str, Any]] = {}
        self._removed: set[int] = set()
        for port in self.interfaces():
            self.added[port] = {}

    def interfaces(self) -> dict[int, str]:
        """Return the names of the interfaces, by port."""
        if self._interfaces is None:
            return dict.fromkeys(sorted(self.links.ports or ()), "")
        return {status.number: status.interface for status in self._interfaces.status()}

    def known(self) -> dict[int, dict[str, Any]]:
        """Return the configurations, by port."""
        for port in self.interfaces():
            if port not in self.added and port not in self._removed:
                self.added[port] = {}
        return self.added

    def forget(self, port: int) -> None:
        self._removed.add(port)
        del self.added[port]
        self.links.loopback[port] = 0

    def remember(self, port: int, values: dict[str, Any]) -> None:
        self._removed.discard(port)
        self.added[port] = values
        looped = values.get("$LOOPBACK_MODE", _NO_LOOPBACK) != _NO_LOOPBACK
        self.links.loopback[port] = looped and bool(values.get("$PORT_ENABLE", True))

    def up(self, port: int) -> bool:
        enabled = self.added.get(port, {}).get("$PORT_ENABLE", True)
        return bool(enabled) and port not in self.links.down and port in self.interfaces()


def front_panel(port: int) -> tuple[int, int]:
    """Return a port's connector, from 1, and channel: four ports of a pipe make a connector."""
    pipe, local = port >> 7, port & 127
    return pipe * 32 // 2 + local // LANES + 1, local % LANES


class PortTable(ControlTable):
    """The configuration of ports."""

    def __init__(self, schema: TableSchema, ports: Ports) -> None:
        super().__init__(schema)
        self.ports = ports
        self.notifies = False

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        """Add a port; one with an interface, which exists already, may be added once."""
        port = self._number(key)
        old = self.ports.known().get(port)
        if old:
            raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: port {port} exists")
        return self._set(port, {"$PORT_ENABLE": False, **data.values}, old)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        port = self._number(key)
        old = self._port(port)
        return self._set(port, {**old, **data.values}, old)

    def delete(self, scope: Scope, key: Key) -> Undo:
        port = self._number(key)
        old = self._port(port)
        self.ports.forget(port)
        return lambda: self.ports.remember(port, old)

    def clear(self, scope: Scope) -> Undo:
        steps = [self.delete(scope, {"$DEV_PORT": (p,)}) for p in list(self.ports.known())]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        port = self._number(key)
        return key, self._shown(port, self._port(port))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for port, values in sorted(self.ports.known().items()):
            yield {"$DEV_PORT": (port,)}, self._shown(port, values)

    def usage(self, scope: Scope) -> int:
        return len(self.ports.known())

    def attribute(self, name: str, message: Any) -> None:
        if name != "port_status_notify":
            super().attribute(name, message)
        message.port_status_notify.enable = self.notifies

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name != "port_status_notify":
            return super().set_attribute(name, message)
        old, self.notifies = self.notifies, message.port_status_notify.enable

        def undo() -> None:
            self.notifies = old

        return undo

    def _number(self, key: Key) -> int:
        port = self.number(key, "$DEV_PORT")
        if port >= self.ports.count:
            raise self.invalid(f"$DEV_PORT {port} is not within 0 to {self.ports.count - 1}")
        return port

    def _port(self, port: int) -> dict[str, Any]:
        known = self.ports.known()
        if port not in known:
            raise self.missing(f"port {port} was not added")
        return known[port]

    def _set(self, port: int, values: dict[str, Any], old: dict[str, Any] | None) -> Undo:
        self.ports.remember(port, values)
        if old is not None and "$PORT_ENABLE" in values:
            self.ports.links.set(port, bool(values["$PORT_ENABLE"]))

        def undo() -> None:
            if old is None:
                self.ports.forget(port)
            else:
                self.ports.remember(port, old)
                self.ports.links.set(port, bool(old.get("$PORT_ENABLE", True)))

        return undo

    def _shown(self, port: int, values: dict[str, Any]) -> Data:
        connector, channel = front_panel(port)
        zeros = {f.name: _zero(f.type.name) for f in self.schema.data}
        name = self.ports.interfaces().get(port) or f"{connector}/{channel}"
        return Data(None, {
            **zeros, **_DEFAULTS, **values, "$MEDIA_TYPE": "BF_MEDIA_TYPE_COPPER",
            "$IS_VALID": True, "$CONN_ID": connector, "$CHNL_ID": channel, "$PORT_NAME": name,
            "$PORT_UP": self.ports.up(port),
        })  # fmt: skip


class PortPlaceTable(ControlTable):
    """The port of a connector and channel, of a front-panel index, or of a name.

    Ports that were not added have a place, too, but no index: scripts look them up to add them."""

    def __init__(self, schema: TableSchema, ports: Ports) -> None:
        super().__init__(schema)
        self._ports = ports

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        for known, data in chain(self.entries(scope), self._not_added()):
            if known == key:
                return known, data
        shown = ", ".join(f"{name} {match[0]}" for name, match in key.items() if match)
        raise self.missing(f"there is no port with {shown}")

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for index, port in enumerate(sorted(self._ports.known())):
            yield self._row(port, index)

    def _not_added(self) -> Iterator[tuple[Key, Data]]:
        known = self._ports.known()
        for port in range(self._ports.count):
            if port & 127 < FRONT_PORTS and port not in known:
                yield self._row(port, -1)

    def _row(self, port: int, index: int) -> tuple[Key, Data]:
        connector, channel = front_panel(port)
        values = {
            "$CONN_ID": connector, "$CHNL_ID": channel, "$FP_IDX": index,
            "$PORT_NAME": self._ports.interfaces().get(port) or f"{connector}/{channel}",
        }  # fmt: skip
        return {f.name: (values[f.name],) for f in self.schema.keys}, Data(
            None, {"$DEV_PORT": port}
        )

    def usage(self, scope: Scope) -> int:
        return len(self._ports.known())


class PortStatisticsTable(ControlTable):
    """The counters of ports, from those of their interfaces; clearing them keeps what to subtract.

    Rates are since the last read of a port's.
    """

    def __init__(self, schema: TableSchema, ports: Ports) -> None:
        super().__init__(schema)
        self._ports = ports
        self._cleared: dict[int, dict[str, int]] = {}
        self._last: dict[int, tuple[int, dict[str, int]]] = {}
        self._interval = 1000

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        port = self.number(key, "$DEV_PORT")
        if port not in self._ports.known():
            raise self.missing(f"port {port} was not added")
        return key, self._shown(port)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for port in sorted(self._ports.known()):
            yield {"$DEV_PORT": (port,)}, self._shown(port)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        if any(data.values.values()):
            raise self.invalid("counters can only be set to 0")
        return self.delete(scope, key)

    def delete(self, scope: Scope, key: Key) -> Undo:
        port = self.number(key, "$DEV_PORT")
        old = self._cleared.get(port)
        self._cleared[port] = self._counts(port)

        def undo() -> None:
            self._cleared.pop(port)
            if old is not None:
                self._cleared[port] = old

        return undo

    def clear(self, scope: Scope) -> Undo:
        steps = [self.delete(scope, {"$DEV_PORT": (p,)}) for p in self._ports.known()]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def usage(self, scope: Scope) -> int:
        return len(self._ports.known())

    def attribute(self, name: str, message: Any) -> None:
        if name != "intvl_ms":
            super().attribute(name, message)
        message.intvl_ms.intvl_val = self._interval

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name != "intvl_ms":
            return super().set_attribute(name, message)
        old, self._interval = self._interval, message.intvl_ms.intvl_val

        def undo() -> None:
            self._interval = old

        return undo

    def _counts(self, port: int) -> dict[str, int]:
        name = self._ports.interfaces().get(port)
        counts = dict.fromkeys(STATISTICS, 0)
        # The process's own: /sys may show the interfaces of another network namespace.
        numbers = interface_counts(Path("/proc/self/net/dev").read_text()).get(name or "")
        if numbers is not None:
            counts.update({n: numbers[column] for n, column in _INTERFACE_COUNTS.items()})
        return counts

    def _shown(self, port: int) -> Data:
        counts, now = self._counts(port), time.monotonic_ns()
        for name, cleared in self._cleared.get(port, {}).items():
            counts[name] -= cleared
        since, before = self._last.get(port, (now, counts))
        self._last[port] = now, dict(counts)
        passed = now - since
        if passed:
            for rate, counter, each in (
                ("TX_PPS", "FramesTransmittedAll", 1), ("RX_PPS", "FramesReceivedAll", 1),
                ("TX_RATE", "OctetsTransmittedTotal", 8), ("RX_RATE", "OctetsReceived", 8),
            ):  # fmt: skip
                counts[rate] = max(0, counts[counter] - before[counter]) * each * 10**9 // passed
        wall = time.time_ns()
        counts["TimeInSec"], counts["TimeinNSec"] = wall // 10**9, wall % 10**9
        return Data(None, {f"${name}": count for name, count in counts.items()})


def _zero(kind: str) -> Any:
    return {"bool": False, "string": "", "float": 0.0}.get(kind, 0)
