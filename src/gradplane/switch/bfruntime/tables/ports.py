"""Ports: their configuration, the state of their links, and their counters.

A port with a network interface exists from the start. The interface's speed is what the machine
gives it: a configured speed is kept and has no effect. Disabling a port sets its interface, and so
its link, down. Packets that leave by a port in loopback mode, whatever kind of it, come back by it;
such a port needs no interface.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.fixed_schema import STATISTICS
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Flags, RowTable, Scope
from gradplane.switch.control.journal import Journal
from gradplane.switch.control.store import Store
from gradplane.switch.runtime.interfaces import Interfaces, interface_counts

log = logging.getLogger(__name__)

LANES = 4
"""Channels of a front-panel connector."""
FRONT_PORTS = 64
"""Ports of a pipe at the front panel: those before the recirculation ports of Tofino 1."""


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


class Ports:
    """The ports of the switch: those with interfaces, and those that clients added."""

    def __init__(self, store: Store, count: int, interfaces: Interfaces | None) -> None:
        self.links = store.state.links
        self.count = count
        self._interfaces = interfaces
        self.added: dict[int, dict[str, Any]] = store.kept("$PORT")
        self._removed: dict[int, bool] = store.kept("$PORT removed")
        for port, values in self.known().items():
            if values:
                self.links.loopback[port] = _looped(values)

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

    def set(
        self, journal: Journal, port: int, values: dict[str, Any] | None, enables: bool = False
    ) -> None:
        """Set the configuration of a port, None: remove it. enables: its link goes up and down with
        it."""
        former, links = self.added.get(port), self.links
        journal.put(self.added, port, values)
        journal.put(self._removed, port, True if values is None else None)
        journal.splice(links.loopback, slice(port, port + 1), [_looped(values or {})])
        if enables and values is not None and "$PORT_ENABLE" in values:
            was_up = bool((former or {}).get("$PORT_ENABLE", True))
            self._enable(port, bool(values["$PORT_ENABLE"]))
            journal.record(self._enable, port, was_up)

    def _enable(self, port: int, up: bool) -> None:
        self.links.set(port, up)
        name = self.interfaces().get(port)
        if self._interfaces is None or not name:
            return
        try:
            self._interfaces.enable(name, up)
        except OSError as error:
            log.warning("port %d: %s cannot be set %s: %s", port, name, "up" if up else "down",
                        error.strerror)  # fmt: skip

    def up(self, port: int) -> bool:
        enabled = self.added.get(port, {}).get("$PORT_ENABLE", True)
        return bool(enabled) and port not in self.links.down and port in self.interfaces()


def _looped(values: Mapping[str, Any]) -> bool:
    """Return whether what leaves by a port comes back by it."""
    mode = values.get("$LOOPBACK_MODE", _NO_LOOPBACK)
    return bool(values.get("$PORT_ENABLE", True)) and mode != _NO_LOOPBACK


def front_panel(port: int) -> tuple[int, int]:
    """Return a port's connector, from 1, and channel: four ports of a pipe make a connector."""
    pipe, local = port >> 7, port & 127
    return pipe * 32 // 2 + local // LANES + 1, local % LANES


class _PortRows(RowTable):
    """A table of the ports that were added."""

    def __init__(self, schema: TableSchema, store: Store, ports: Ports) -> None:
        super().__init__(schema, store)
        self.ports = ports

    def rows(self, scope: Scope) -> list[Any]:
        return sorted(self.ports.known())

    def row(self, scope: Scope, key: Key) -> Any:
        port = self.number(key)
        if port not in self.ports.known():
            raise self.missing(f"port {port} was not added")
        return port


class PortTable(_PortRows):
    """The configuration of ports."""

    def __init__(self, schema: TableSchema, store: Store, ports: Ports) -> None:
        super().__init__(schema, store, ports)
        self.notifies = False
        self.keep_attribute("port_status_notify", "enable", "notifies")

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        """Add a port; one with an interface, which exists already, may be added once."""
        port = self._number(key)
        old = self.ports.known().get(port)
        if old:
            raise self.exists(f"port {port} exists")
        values = {"$PORT_ENABLE": False, **data.values}
        self.ports.set(self.store.journal, port, values, enables=old is not None)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        port = self.row(scope, key)
        values = {**self.ports.known()[port], **data.values}
        self.ports.set(self.store.journal, port, values, enables=True)

    def delete(self, scope: Scope, key: Key) -> None:
        self.ports.set(self.store.journal, self.row(scope, key), None)

    def clear(self, scope: Scope) -> None:
        for port in self.rows(scope):
            self.ports.set(self.store.journal, port, None)

    def row(self, scope: Scope, key: Key) -> int:
        self._number(key)
        return int(super().row(scope, key))

    def shown(self, scope: Scope, row: int) -> Data:
        connector, channel = front_panel(row)
        name = self.ports.interfaces().get(row) or f"{connector}/{channel}"
        return Data(None, {
            **self.zeros(), **_DEFAULTS, **self.ports.known()[row],
            "$MEDIA_TYPE": "BF_MEDIA_TYPE_COPPER", "$IS_VALID": True, "$CONN_ID": connector,
            "$CHNL_ID": channel, "$PORT_NAME": name, "$PORT_UP": self.ports.up(row),
        })  # fmt: skip

    def _number(self, key: Key) -> int:
        port = self.number(key)
        if port >= self.ports.count:
            raise self.invalid(f"$DEV_PORT {port} is not within 0 to {self.ports.count - 1}")
        return port


class PortPlaceTable(_PortRows):
    """The port of a connector and channel, of a front-panel index, or of a name.

    Ports that were not added have a place, too, but no index: scripts look them up to add them."""

    def rows(self, scope: Scope) -> list[Any]:
        """Return the ports with their indices."""
        return [(port, index) for index, port in enumerate(sorted(self.ports.known()))]

    def row(self, scope: Scope, key: Key) -> Any:
        known = self.ports.known()
        others = (port for port in range(self.ports.count) if port & 127 < FRONT_PORTS)
        for row in (*self.rows(scope), *((port, -1) for port in others if port not in known)):
            if self.key(row) == key:
                return row
        shown = ", ".join(f"{name} {match[0]}" for name, match in key.items() if match)
        raise self.missing(f"there is no port with {shown}")

    def key(self, row: Any) -> Key:
        port, index = row
        connector, channel = front_panel(port)
        values = {
            "$CONN_ID": connector, "$CHNL_ID": channel, "$FP_IDX": index,
            "$PORT_NAME": self.ports.interfaces().get(port) or f"{connector}/{channel}",
        }  # fmt: skip
        return {f.name: (values[f.name],) for f in self.schema.keys}

    def shown(self, scope: Scope, row: Any) -> Data:
        return Data(None, {"$DEV_PORT": row[0]})


class PortStatisticsTable(_PortRows):
    """The counters of ports, from those of their interfaces; clearing them keeps what to subtract.

    Rates are since the last read of a port's.
    """

    def __init__(self, schema: TableSchema, store: Store, ports: Ports) -> None:
        super().__init__(schema, store, ports)
        self._cleared: dict[int, dict[str, int]] = {}
        self._last: dict[int, tuple[int, dict[str, int]]] = {}
        self.interval = 1000
        self.keep_attribute("intvl_ms", "intvl_val", "interval")

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.check_zeros(data)
        self.delete(scope, key)

    def delete(self, scope: Scope, key: Key) -> None:
        port = self.number(key)
        self.store.journal.put(self._cleared, port, self._counts(port))

    def clear(self, scope: Scope) -> None:
        for port in self.rows(scope):
            self.store.journal.put(self._cleared, port, self._counts(port))

    def _counts(self, port: int) -> dict[str, int]:
        name = self.ports.interfaces().get(port)
        counts = dict.fromkeys(STATISTICS, 0)
        numbers = interface_counts().get(name or "")
        if numbers is not None:
            counts.update({n: numbers[column] for n, column in _INTERFACE_COUNTS.items()})
        return counts

    def shown(self, scope: Scope, row: int) -> Data:
        counts, now = self._counts(row), time.monotonic_ns()
        for name, cleared in self._cleared.get(row, {}).items():
            counts[name] -= cleared
        since, before = self._last.get(row, (now, counts))
        self._last[row] = now, dict(counts)
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
