"""The packet replication engine: multicast groups of nodes, which have ports and link groups.

A node is a replication id with ports; a group (mgid) lists nodes. A packet to the group gets a
replica for each port of each node; of a link group (lag), one of its ports. The nodes of an ECMP
group stand for one of them. Every write makes the replicas of the groups that it concerns anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
)
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import State

Entries = dict[int, dict[str, Any]]


@dataclass(slots=True)
class Engine:
    """The entries of all its tables, by table and number, and the state that has the replicas.

    device: the values of the attribute pre_device_config.
    """

    state: State
    ports: int
    tables: dict[str, Entries] = field(default_factory=dict)
    device: dict[str, int] = field(default_factory=dict)

    def entries(self, table: str) -> Entries:
        return self.tables.setdefault(table, {})

    def check_node(self, number: int, where: str) -> None:
        if number not in self.entries("$pre.node"):
            raise RpcError("NOT_FOUND", f"{where}: there is no node {number}")

    def replicas(self, values: dict[str, Any]) -> list[Replica]:
        """Return the replicas of a group."""
        nodes = list(zip(
            values.get("$MULTICAST_NODE_ID", []),
            _exclusions(values, "$MULTICAST_NODE"),
            strict=True,
        ))  # fmt: skip
        ecmp = values.get("$MULTICAST_ECMP_ID", [])
        for number, exclusion in zip(ecmp, _exclusions(values, "$MULTICAST_ECMP"), strict=True):
            members = self.entries("$pre.ecmp")[number]["$MULTICAST_NODE_ID"]
            if members:
                nodes.append((members[0], exclusion))
        found = []
        for number, exclusion in nodes:
            node = self.entries("$pre.node")[number]
            rid = node["$MULTICAST_RID"]
            ports = list(node.get("$DEV_PORT", []))
            for lag in node.get("$MULTICAST_LAG_ID", []):
                there = self.entries("$pre.lag").get(lag, {}).get("$DEV_PORT", [])
                ports += there[:1]
            for port in ports:
                found.append(Replica(port, rid, self._backups(port, rid), exclusion))
        return found

    def _backups(self, port: int, rid: int) -> tuple[Replica, ...]:
        if not self.device.get("fast_failover"):
            return ()
        backup = self.entries("$pre.port").get(port, {}).get("$MULTICAST_BACKUP_PORT")
        return () if backup is None else (Replica(backup, rid),)

    def renew(self) -> None:
        """Make the replicas of all groups."""
        wanted = {n: self.replicas(v) for n, v in self.entries("$pre.mgid").items()}
        for number, replicas in wanted.items():
            if self.state.multicast.get(number) != replicas:
                self.state.multicast[number] = replicas
                self.state.nodes.group_changed(number)
        self.state.global_rid = self.device.get("global_rid") or None
        self.state.pruned.fill(0)
        for number, values in self.entries("$pre.prune").items():
            self.state.pruned[number, values.get("$DEV_PORT", [])] = 1


def _exclusions(values: dict[str, Any], prefix: str) -> list[int | None]:
    """Return the exclusion id of each node, None where it is not valid."""
    count = len(values.get(f"{prefix}_ID", []))
    numbers = values.get(f"{prefix}_L1_XID", [0] * count)
    valid = values.get(f"{prefix}_L1_XID_VALID", [False] * count)
    return [n if v else None for n, v in zip(numbers, valid, strict=True)]


class ReplicationTable(ControlTable):
    """A table of the engine, whose key is a number. `check` looks at an entry before it is kept."""

    def __init__(
        self, schema: TableSchema, engine: Engine, check: Callable[[Engine, dict[str, Any]], None]
    ) -> None:
        super().__init__(schema)
        self.engine = engine
        self._check = check

    @property
    def _entries(self) -> Entries:
        return self.engine.entries(self.schema.name)

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        number = self._number(key)
        if number in self._entries:
            raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: {number} exists")
        if len(self._entries) >= self.schema.size:
            what = f"table {self.schema.name}: all {self.schema.size} entries are in use"
            raise RpcError("RESOURCE_EXHAUSTED", what)
        return self._set(number, data.values)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self._number(key)
        return self._set(number, {**self._entry(number), **data.values})

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self._number(key)
        entry = dict(self._entry(number))
        lists = [f.name for f in self.schema.data if f.repeated]
        for ids in [n for n in lists if n in data.values and not n.endswith(("VALID", "XID"))]:
            about = [n for n in lists if n.startswith(f"{ids.removesuffix('_ID')}_L1")]
            old = {n: list(entry.get(n, [])) for n in (ids, *about)}
            for i, item in enumerate(data.values[ids]):
                if flags.remove and item not in old[ids]:
                    raise self.missing(f"{number} has no {ids} {item}")
                if item in old[ids]:
                    at = old[ids].index(item)
                    for values in old.values():
                        del values[at : at + 1]
                if not flags.remove:
                    old[ids].append(item)
                    for n in about:
                        given = data.values.get(n)
                        default = False if n.endswith("VALID") else 0
                        old[n].append(given[i] if given else default)
            entry.update(old)
        return self._set(number, entry)

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self._number(key)
        old = self._entry(number)
        self._check_unused(number)
        del self._entries[number]
        self._removed(number)
        return lambda: self._put_back(number, old)

    def clear(self, scope: Scope) -> Undo:
        name = self.schema.keys[0].name
        steps = [self.delete(scope, {name: (number,)}) for number in list(self._entries)]

        def undo() -> None:
            for step in reversed(steps):
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._shown(self._entry(self._number(key)))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        name = self.schema.keys[0].name
        for number, entry in list(self._entries.items()):
            yield {name: (number,)}, self._shown(entry)

    def usage(self, scope: Scope) -> int:
        return len(self._entries)

    def attribute(self, name: str, message: Any) -> None:
        if name != "pre_device_config":
            super().attribute(name, message)
        device, config = self.engine.device, message.pre_device_config
        config.pre_global_rid.global_rid = device.get("global_rid", 0)
        config.pre_port_protection.enable = bool(device.get("port_protection", 0))
        config.pre_fast_failover.enable = bool(device.get("fast_failover", 0))
        config.pre_max_nodes_before_yield.count = device.get("yield", 16)
        config.pre_max_node_threshold.node_count = device.get("nodes", 0)
        config.pre_max_node_threshold.port_lag_count = device.get("ports", 0)

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name != "pre_device_config":
            return super().set_attribute(name, message)
        old, device, config = (
            dict(self.engine.device),
            self.engine.device,
            message.pre_device_config,
        )
        if config.HasField("pre_global_rid"):
            device["global_rid"] = config.pre_global_rid.global_rid
        if config.HasField("pre_port_protection"):
            device["port_protection"] = config.pre_port_protection.enable
        if config.HasField("pre_fast_failover"):
            device["fast_failover"] = config.pre_fast_failover.enable
        if config.HasField("pre_max_nodes_before_yield"):
            device["yield"] = config.pre_max_nodes_before_yield.count
        if config.HasField("pre_max_node_threshold"):
            device["nodes"] = config.pre_max_node_threshold.node_count
            device["ports"] = config.pre_max_node_threshold.port_lag_count
        self.engine.renew()

        def undo() -> None:
            self.engine.device = old
            self.engine.renew()

        return undo

    # -- parts ----------------------------------------------------------------------------------

    def _number(self, key: Key) -> int:
        return self.number(key, self.schema.keys[0].name)

    def _entry(self, number: int) -> dict[str, Any]:
        if number not in self._entries:
            raise self.missing(f"there is no {self.schema.keys[0].name} {number}")
        return self._entries[number]

    def _set(self, number: int, values: dict[str, Any]) -> Undo:
        self._check(self.engine, values)
        old = self._entries.get(number)
        self._entries[number] = dict(values)
        self.engine.renew()
        return lambda: self._put_back(number, old)

    def _put_back(self, number: int, old: dict[str, Any] | None) -> None:
        if old is None:
            del self._entries[number]
            self._removed(number)
        else:
            self._entries[number] = old
            self.engine.renew()

    def _removed(self, number: int) -> None:
        if self.schema.name == "$pre.mgid":
            self.engine.state.multicast.pop(number, None)
            self.engine.state.nodes.group_changed(number)
        self.engine.renew()

    def _check_unused(self, number: int) -> None:
        field = self.schema.keys[0].name
        users = {"$pre.node": ("$pre.mgid", "$pre.ecmp"), "$pre.ecmp": ("$pre.mgid",)}
        for table in users.get(self.schema.name, ()):
            for other, values in self.engine.entries(table).items():
                if number in values.get(field, []):
                    what = f"{number} is used by {table} {other}: take it out of there first"
                    raise RpcError("FAILED_PRECONDITION", f"table {self.schema.name}: {what}")

    def _shown(self, entry: dict[str, Any]) -> Data:
        values = dict(entry)
        for f in self.schema.data:
            if f.repeated and f.name not in values:
                about = f.name.rpartition("_L1_")[0]
                count = len(values.get(f"{about}_ID", [])) if about else 0
                values[f.name] = [False if f.type.name == "bool" else 0] * count
        return Data(None, values)


def check_group(engine: Engine, values: dict[str, Any]) -> None:
    """Refuse a group of nodes that do not exist, or lists of different lengths."""
    for number in values.get("$MULTICAST_NODE_ID", []):
        engine.check_node(number, "$pre.mgid")
    for number in values.get("$MULTICAST_ECMP_ID", []):
        if number not in engine.entries("$pre.ecmp"):
            raise RpcError("NOT_FOUND", f"$pre.mgid: there is no ECMP group {number}")
    for prefix in ("$MULTICAST_NODE", "$MULTICAST_ECMP"):
        count = len(values.get(f"{prefix}_ID", []))
        for name in (f"{prefix}_L1_XID", f"{prefix}_L1_XID_VALID"):
            given = len(values.get(name, [0] * count))
            if given != count:
                what = f"$pre.mgid: {count} of {prefix}_ID, but {given} of {name}"
                raise RpcError("INVALID_ARGUMENT", what)


def check_node(engine: Engine, values: dict[str, Any]) -> None:
    """Refuse a node without a replication id, or with ports that do not exist."""
    if "$MULTICAST_RID" not in values:
        raise RpcError("INVALID_ARGUMENT", "$pre.node: $MULTICAST_RID is missing")
    check_ports(engine, values)


def check_ecmp(engine: Engine, values: dict[str, Any]) -> None:
    for number in values.get("$MULTICAST_NODE_ID", []):
        engine.check_node(number, "$pre.ecmp")


def check_ports(engine: Engine, values: dict[str, Any]) -> None:
    """Refuse ports that do not exist, or are given twice."""
    ports = values.get("$DEV_PORT", [])
    for port in ports if isinstance(ports, list) else [ports]:
        if port >= engine.ports:
            what = f"port {port} is not within 0 to {engine.ports - 1}"
            raise RpcError("INVALID_ARGUMENT", f"$DEV_PORT: {what}")
        if isinstance(ports, list) and ports.count(port) > 1:
            raise RpcError("INVALID_ARGUMENT", f"$DEV_PORT: port {port} is given twice")


CHECKS: dict[str, Callable[[Engine, dict[str, Any]], None]] = {
    "$pre.mgid": check_group,
    "$pre.node": check_node,
    "$pre.ecmp": check_ecmp,
    "$pre.lag": check_ports,
    "$pre.prune": check_ports,
    "$pre.port": check_ports,
}
"""The check of each table's entries."""
