"""The packet replication engine: multicast groups of nodes, which have ports and link groups; and
mirror sessions, which are the switch's clone sessions.

A node is a replication id with ports; a group (mgid) lists nodes. A packet to the group gets a
replica for each port of each node; of a link group (lag), one of its ports. The nodes of an ECMP
group stand for one of them. `control/replication.py` keeps all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import (
    Attribute,
    Flags,
    RowTable,
    Scope,
)
from gradplane.switch.control.kind import Kind, Record, Refusal
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.replication_tree import Branch

Values = dict[str, Any]

_WORDS = {"multicast node": "node", "ECMP group": "ECMP group"}
_BRANCHES = ((False, "$MULTICAST_NODE"), (True, "$MULTICAST_ECMP"))


class ReplicationTable(RowTable):
    """A table of the engine, whose key is a number: `kind` has its objects."""

    def __init__(self, schema: TableSchema, store: Store, kind: Kind[int]) -> None:
        super().__init__(schema, store)
        self.replication = store.replication
        self.kind = kind
        self.own_attributes["pre_device_config"] = Attribute(self._show_device, self._set_device)

    def record(self, values: Values) -> Record:
        """Return the record of an object. Raises RpcError."""
        return values

    def values(self, number: int) -> Values:
        """Return the values of an object that is there."""
        return self.kind.read(number)

    # -- requests -------------------------------------------------------------------------------

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        number = self._number(key)
        with self._worded():
            self.kind.need_absent(number)
            self.kind.insert(number, **self.record(data.values))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self._number(key)
        with self._worded():
            old = _without_zeros(self.values(number))
            self.kind.modify(number, **self.record({**old, **data.values}))

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self._number(key)
        with self._worded():
            entry = self._whole(self.values(number))
            self._change_lists(number, entry, data.values, flags)
            self.kind.modify(number, **self.record(entry))

    def _change_lists(self, number: int, entry: Values, given: Values, flags: Flags) -> None:
        """Add items to the lists of an entry, or remove them; other lists say more about each."""
        lists = [f.name for f in self.schema.data if f.repeated]
        for ids in [n for n in lists if n in given and not n.endswith(("VALID", "XID"))]:
            about = [n for n in lists if n.startswith(f"{ids.removesuffix('_ID')}_L1")]
            old = {n: list(entry.get(n, [])) for n in (ids, *about)}
            for i, item in enumerate(given[ids]):
                if flags.remove and item not in old[ids]:
                    raise self.missing(f"{number} has no {ids} {item}")
                if item in old[ids]:
                    at = old[ids].index(item)
                    for values in old.values():
                        del values[at : at + 1]
                if not flags.remove:
                    old[ids].append(item)
                    for n in about:
                        default = False if n.endswith("VALID") else 0
                        old[n].append(given[n][i] if given.get(n) else default)
            entry.update(old)

    def delete(self, scope: Scope, key: Key) -> None:
        """Delete an object; as in the chip's driver, the groups that have it go on without it."""
        number = self._number(key)
        with self._worded():
            self.replication.take_out(self.kind, number)
            self.kind.delete(number)

    def clear(self, scope: Scope) -> None:
        for number in list(self.kind.existing()):
            self.delete(scope, self.key(number))

    def rows(self, scope: Scope) -> list[int]:
        return list(self._rows())

    def row(self, scope: Scope, key: Key) -> int:
        number = self._number(key)
        with self._worded():
            self.kind.read(number)
        return number

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, self._whole(self.values(row)))

    def usage(self, scope: Scope) -> int:
        return self.kind.usage()

    # -- the device's settings ------------------------------------------------------------------

    def _show_device(self, message: Any) -> None:
        device, config = self.replication.settings, message.pre_device_config
        config.pre_global_rid.global_rid = device.get("global_rid")
        config.pre_port_protection.enable = bool(device.get("port_protection"))
        config.pre_fast_failover.enable = bool(device.get("fast_failover"))
        config.pre_max_nodes_before_yield.count = device.get("yield", 16)
        config.pre_max_node_threshold.node_count = device.get("nodes")
        config.pre_max_node_threshold.port_lag_count = device.get("ports")

    def _set_device(self, message: Any) -> None:
        device, config = self.replication.settings, message.pre_device_config
        if config.HasField("pre_global_rid"):
            device.put("global_rid", config.pre_global_rid.global_rid)
        if config.HasField("pre_port_protection"):
            device.put("port_protection", config.pre_port_protection.enable)
        if config.HasField("pre_fast_failover"):
            device.put("fast_failover", config.pre_fast_failover.enable)
        if config.HasField("pre_max_nodes_before_yield"):
            device.put("yield", config.pre_max_nodes_before_yield.count)
        if config.HasField("pre_max_node_threshold"):
            device.put("nodes", config.pre_max_node_threshold.node_count)
            device.put("ports", config.pre_max_node_threshold.port_lag_count)

    # -- parts ----------------------------------------------------------------------------------

    def _number(self, key: Key) -> int:
        return self.number(key)

    def _rows(self) -> Iterable[int]:
        return self.kind.existing()

    def _whole(self, values: Values) -> Values:
        """Return all fields of an entry, those that are lists and were not set among them."""
        values = dict(values)
        for f in self.schema.data:
            if f.repeated and f.name not in values:
                about = f.name.rpartition("_L1_")[0]
                count = len(values.get(f"{about}_ID", [])) if about else 0
                values[f.name] = [False if f.type.name == "bool" else 0] * count
        return values

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """Raise refusals of the store in the words of the chip's driver."""
        try:
            yield
        except Refusal as error:
            raise RpcError(error.code, self._words(error)) from error

    def _words(self, error: Refusal) -> str:
        name, number = self.schema.name, error.number
        match error.reason:
            case "exists":
                return f"table {name}: {number} exists"
            case "missing":
                return f"table {name}: there is no {self.schema.keys[0].name} {number}"
            case "full":
                return f"table {name}: all {self.schema.size} entries are in use"
            case "reference":
                return f"{name}: there is no {_WORDS[error.field]} {error.value}"
            case "twice":
                return f"$DEV_PORT: port {error.value} is given twice"
        where = "$DEV_PORT: " if error.field == "port" else f"table {name}: "
        return f"{where}{error.message}"


class NodeTable(ReplicationTable):
    """Nodes: a replication id, ports and link groups."""

    def record(self, values: Values) -> Record:
        if "$MULTICAST_RID" not in values:
            raise RpcError("INVALID_ARGUMENT", "$pre.node: $MULTICAST_RID is missing")
        return {
            "rid": values["$MULTICAST_RID"], "ports": tuple(values.get("$DEV_PORT", ())),
            "lags": tuple(values.get("$MULTICAST_LAG_ID", ())),
        }  # fmt: skip

    def values(self, number: int) -> Values:
        node = self.kind.read(number)
        return {"$MULTICAST_RID": node["rid"], "$MULTICAST_LAG_ID": list(node["lags"]),
                "$DEV_PORT": list(node["ports"])}  # fmt: skip


class GroupTable(ReplicationTable):
    """Groups of nodes and of ECMP groups, each with an exclusion id."""

    def record(self, values: Values) -> Record:
        parts: list[Branch] = []
        for ecmp, prefix in _BRANCHES:
            numbers = values.get(f"{prefix}_ID", [])
            ids = self._as_long(values, prefix, "L1_XID", len(numbers))
            valid = self._as_long(values, prefix, "L1_XID_VALID", len(numbers))
            parts += [Branch(n, ecmp, i, bool(v))
                      for n, i, v in zip(numbers, ids, valid, strict=True)]  # fmt: skip
        return {"parts": parts}

    @staticmethod
    def _as_long(values: Values, prefix: str, name: str, count: int) -> Sequence[int]:
        found: Sequence[int] = values.get(f"{prefix}_{name}", [0] * count)
        if len(found) != count:
            what = f"$pre.mgid: {count} of {prefix}_ID, but {len(found)} of {prefix}_{name}"
            raise RpcError("INVALID_ARGUMENT", what)
        return found

    def values(self, number: int) -> Values:
        branches = self.replication.groups.branches(number)
        values: Values = {}
        for ecmp, prefix in _BRANCHES:
            mine = [branch for branch in branches if branch.ecmp == ecmp]
            values[f"{prefix}_ID"] = [branch.number for branch in mine]
            values[f"{prefix}_L1_XID_VALID"] = [branch.valid for branch in mine]
            values[f"{prefix}_L1_XID"] = [branch.exclusion for branch in mine]
        return values


class EcmpTable(ReplicationTable):
    """Groups of nodes that stand for one of them."""

    def record(self, values: Values) -> Record:
        return {"nodes": tuple(values.get("$MULTICAST_NODE_ID", ()))}

    def values(self, number: int) -> Values:
        return {"$MULTICAST_NODE_ID": list(self.kind.read(number)["nodes"])}


_PIPE = 1 << 7  # ports of a pipe have the numbers from a multiple of this one


class StandingTable(ReplicationTable):
    """A table that is an array in the chip: link groups, pruning, ports.

    As in the chip's driver, every row exists from the start: to add sets it, to modify needs no row
    that was added, to delete sets it to what it was at first."""

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        with self._worded():
            number = self._number(key)
            self.kind.delete(number)
            self.kind.modify(number, **data.values)

    def usage(self, scope: Scope) -> int:
        return self.schema.size

    def clear(self, scope: Scope) -> None:
        self.kind.clear()

    def _number(self, key: Key) -> int:
        field, number = self.schema.keys[0].name, self.number(key)
        rows = self._rows()
        if number not in rows:
            raise self.invalid(f"{field} {number} is not within {rows[0]} to {rows[-1]}")
        return number

    def _rows(self) -> Sequence[int]:
        """Return the numbers of the rows: of `$pre.port`, the ports of each pipe."""
        if self.schema.name != "$pre.port":
            return range(self.schema.size)
        first = self.replication.nodes.ports[::_PIPE]
        each = self.schema.size // len(first)
        return [port + local for port in first for local in range(each)]


def replication_table(schema: TableSchema, store: Store) -> ReplicationTable:
    """Return the table of one of the engine's schemas."""
    replication = store.replication
    made, kind = {
        "$pre.mgid": (GroupTable, replication.groups),
        "$pre.node": (NodeTable, replication.nodes),
        "$pre.ecmp": (EcmpTable, replication.ecmp),
        "$pre.lag": (StandingTable, replication.lags),
        "$pre.prune": (StandingTable, replication.prune),
        "$pre.port": (StandingTable, replication.ports),
    }[schema.name]
    return made(schema, store, kind)


def _without_zeros(values: Values) -> Values:
    """Return values without lists of zeros, which need not be as long as others."""
    return {n: v for n, v in values.items() if "_L1_" not in n or any(v)}


# -- mirror sessions ------------------------------------------------------------------------------

_DEFAULTS: Values = {
    "$session_enable": False, "$direction": "BOTH", "$packet_color": "GREEN", "$copy_to_cpu": False,
    "$max_pkt_len": 0xFFFF,
}  # fmt: skip


class MirrorTable(RowTable):
    """Clone sessions, with the settings that packets do not see; 0 is none on the chip.

    What another interface set of a session takes the place of the settings that say the same."""

    def __init__(self, schema: TableSchema, store: Store) -> None:
        super().__init__(schema, store)
        self.sessions = store.replication.sessions
        self._normal = schema.action_named("$normal")

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        number = self._number(key)
        with self._worded():
            self.sessions.need_absent(number)
            if data.action is None:
                raise self.invalid("a session needs an action: $normal")
            self._check_action(data)
            values = {**self._zeros(), **data.values}
            self.sessions.insert(number, **_session(values), settings=values)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self._number(key)
        with self._worded():
            old = self._values(number)
            self._check_action(data)
            values = {**old, **data.values}
            before, after = _session(old), _session(values)
            changed = {name: after[name] for name in after if after[name] != before[name]}
            self.sessions.modify(number, **changed, settings=values)

    def delete(self, scope: Scope, key: Key) -> None:
        with self._worded():
            self.sessions.delete(self._number(key))

    def reset(self, scope: Scope, key: Key) -> None:
        return self.delete(scope, key)

    def clear(self, scope: Scope) -> None:
        for number in self.rows(scope):
            self.sessions.delete(number)

    def rows(self, scope: Scope) -> list[int]:
        return [n for n in self.sessions.existing() if 0 < n < self.schema.size]

    def row(self, scope: Scope, key: Key) -> int:
        number = self._number(key)
        with self._worded():
            self.sessions.read(number)
        return number

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(self._normal, self._values(row))

    # -- parts ----------------------------------------------------------------------------------

    def _number(self, key: Key) -> int:
        number = self.number(key, "$sid")
        if not 0 < number < self.schema.size:
            raise self.invalid(f"$sid {number} is not within 1 to {self.schema.size - 1}")
        return number

    def _check_action(self, data: Data) -> None:
        if data.action is not None and data.action.name == "$coalescing":
            raise self.refused("sessions that gather mirrored packets ($coalescing)")

    def _zeros(self) -> Values:
        return {**self.zeros(), **_DEFAULTS}

    def _values(self, number: int) -> Values:
        """Return the settings of a session, with what holds of it now."""
        now = self.sessions.read(number)
        values = {**self._zeros(), **now["settings"]}
        set = _session(values)
        if set["replicas"] != now["replicas"]:
            first = now["replicas"][0] if now["replicas"] else None
            values["$ucast_egress_port_valid"] = first is not None
            if first is not None:
                values["$ucast_egress_port"], values["$mcast_rid"] = first.port, first.instance
        if set["groups"] != now["groups"]:
            for name, group in zip("ab", (*now["groups"], None, None), strict=False):
                values[f"$mcast_grp_{name}_valid"] = group is not None
                values[f"$mcast_grp_{name}"] = group or 0
        if set["truncate"] != now["truncate"]:
            values["$max_pkt_len"] = min(now["truncate"] or 0xFFFF, 0xFFFF)
        if set["class_of_service"] != now["class_of_service"]:
            values["$ingress_cos"] = now["class_of_service"]
        values["$session_enable"], values["$copy_to_cpu"] = now["enabled"], now["to_cpu"]
        return values

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """Raise refusals of the store in the words of the chip's driver."""
        try:
            yield
        except Refusal as error:
            match error.reason:
                case "exists":
                    what = f"table {self.schema.name}: session {error.number} exists"
                case "missing":
                    what = f"table {self.schema.name}: there is no session {error.number}"
                case _:
                    what = f"table {self.schema.name}: {error.message}"
            raise RpcError(error.code, what) from error


def _session(values: Values) -> Record:
    """Return what the settings of a session mean."""
    port, most = Replica(values["$ucast_egress_port"], values["$mcast_rid"]), values["$max_pkt_len"]
    return {
        "replicas": (port,) if values["$ucast_egress_port_valid"] else (),
        "groups": tuple(
            values[f"$mcast_grp_{name}"] for name in "ab" if values[f"$mcast_grp_{name}_valid"]
        ),
        "to_cpu": values["$copy_to_cpu"],
        "truncate": 0 if most in (0, 0xFFFF) else most,
        "class_of_service": values["$ingress_cos"] & 0xFF,
        "enabled": values["$session_enable"],
    }  # fmt: skip
