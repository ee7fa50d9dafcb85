"""The packet replication engine: multicast groups of nodes, which have ports and link groups; and
mirror sessions, which are the switch's clone sessions.

A node is a replication id with ports; a group (mgid) lists nodes. A packet to the group gets a
replica for each port of each node; of a link group (lag), one of its ports. The nodes of an ECMP
group stand for one of them. `control/replication.py` keeps all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Attribute, Flags, KindTable, Scope
from gradplane.switch.control.kind import Kind, Record, Refusal
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.replication_tree import Branch

Values = dict[str, Any]

_BRANCHES = ((False, "$MULTICAST_NODE"), (True, "$MULTICAST_ECMP"))


class ReplicationTable(KindTable):
    """A table of the engine, whose key is a number. fields: the names here of the fields of a
    record; without them a record has the names of the table."""

    words: ClassVar = {
        "exists": "table {name}: {0.number} exists",
        "missing": "table {name}: there is no {key} {0.number}",
        "full": "table {name}: all {size} entries are in use",
        "twice": "$DEV_PORT: port {0.value} is given twice",
    }
    fields: ClassVar[Mapping[str, str]] = {}

    def __init__(self, schema: TableSchema, store: Store, kind: Kind[int]) -> None:
        super().__init__(schema, store, kind)
        self.replication = store.replication
        self.own_attributes["pre_device_config"] = Attribute(self._show_device, self._set_device)

    def worded(self, error: TableError) -> RpcError:
        if not isinstance(error, Refusal) or error.reason in self.words:
            return super().worded(error)
        if error.reason == "reference":
            word = error.field.removeprefix("multicast ")
            what = f"{self.schema.name}: there is no {word} {error.value}"
            return RpcError(error.code, what)
        where = "$DEV_PORT: " if error.field == "port" else f"table {self.schema.name}: "
        return RpcError(error.code, f"{where}{error.message}")

    def of_values(self, values: Values) -> Record:
        """Return the record that values make. Raises RpcError."""
        if not self.fields:
            return values
        return {own: tuple(values.get(name, ())) for own, name in self.fields.items()}

    def to_values(self, number: int) -> Values:
        """Return the values of an object that is there."""
        record = self.kind.read(number)
        if not self.fields:
            return record
        return {name: list(record[own]) for own, name in self.fields.items()}

    # -- requests -------------------------------------------------------------------------------

    def record(self, place: int, data: Data) -> Record:
        old = _without_zeros(self.to_values(place)) if self.kind.has(place) else {}
        return self.of_values({**old, **data.values})

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        number = self.place(key)
        entry = self._whole(self.to_values(number))
        self._change_lists(number, entry, data.values, flags)
        self.kind.modify(number, **self.of_values(entry))

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
        number = self.place(key)
        self.replication.take_out(self.kind, number)
        self.kind.delete(number)

    def clear(self, scope: Scope) -> None:
        for number in list(self.kind.existing()):
            self.delete(scope, self.key(number))

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, self._whole(self.to_values(row)))

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

    def _whole(self, values: Values) -> Values:
        """Return all fields of an entry, those that are lists and were not set among them."""
        values = dict(values)
        for f in self.schema.data:
            if f.repeated and f.name not in values:
                about = f.name.rpartition("_L1_")[0]
                count = len(values.get(f"{about}_ID", [])) if about else 0
                values[f.name] = [False if f.type.name == "bool" else 0] * count
        return values


class NodeTable(ReplicationTable):
    """Nodes: a replication id, ports and link groups."""

    fields: ClassVar = {"lags": "$MULTICAST_LAG_ID", "ports": "$DEV_PORT"}

    def of_values(self, values: Values) -> Record:
        if "$MULTICAST_RID" not in values:
            raise invalid("$pre.node: $MULTICAST_RID is missing")
        return {"rid": values["$MULTICAST_RID"], **super().of_values(values)}

    def to_values(self, number: int) -> Values:
        return {"$MULTICAST_RID": self.kind.read(number)["rid"], **super().to_values(number)}


class GroupTable(ReplicationTable):
    """Groups of nodes and of ECMP groups, each with an exclusion id."""

    def of_values(self, values: Values) -> Record:
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
            raise invalid(what)
        return found

    def to_values(self, number: int) -> Values:
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

    fields: ClassVar = {"nodes": "$MULTICAST_NODE_ID"}


_PIPE = 1 << 7  # ports of a pipe have the numbers from a multiple of this one


class StandingTable(ReplicationTable):
    """A table that is an array in the chip: link groups, pruning, ports.

    As in the chip's driver, every row exists from the start: to add sets it, to modify needs no row
    that was added, to delete sets it to what it was at first."""

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        number = self.place(key)
        self.kind.delete(number)
        self.kind.modify(number, **data.values)

    def usage(self, scope: Scope) -> int:
        return self.schema.size

    def clear(self, scope: Scope) -> None:
        self.kind.clear()

    def place(self, key: Key) -> int:
        field, number, rows = self.schema.keys[0].name, self.number(key), self._rows()
        if number not in rows:
            raise self.invalid(f"{field} {number} is not within {rows[0]} to {rows[-1]}")
        return number

    def rows(self, scope: Scope) -> list[int]:
        return list(self._rows())

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


class MirrorTable(KindTable):
    """Clone sessions, with the settings that packets do not see; 0 is none on the chip.

    What another interface set of a session takes the place of the settings that say the same."""

    words: ClassVar = {
        "exists": "table {name}: session {0.number} exists",
        "missing": "table {name}: there is no session {0.number}",
        **dict.fromkeys(("range", "full", "twice", "reference"), "table {name}: {0.message}"),
    }

    def __init__(self, schema: TableSchema, store: Store) -> None:
        super().__init__(schema, store, store.replication.sessions)
        self._normal = schema.action_named("$normal")

    def record(self, place: int, data: Data) -> Record:
        """Return the settings, and of what they mean the fields that change."""
        old = self._values(place) if self.kind.has(place) else None
        if old is None and data.action is None:
            raise self.invalid("a session needs an action: $normal")
        self._check_action(data)
        values = {**(self._zeros() if old is None else old), **data.values}
        before, after = {} if old is None else _session(old), _session(values)
        changed = {n: value for n, value in after.items() if n not in before or before[n] != value}
        return {**changed, "settings": values}

    def reset(self, scope: Scope, key: Key) -> None:
        return self.delete(scope, key)

    def rows(self, scope: Scope) -> list[int]:
        return [n for n in self.kind.existing() if 0 < n < self.schema.size]

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(self._normal, self._values(row))

    def place(self, key: Key) -> int:
        number = self.number(key, "$sid")
        if not 0 < number < self.schema.size:
            raise self.invalid(f"$sid {number} is not within 1 to {self.schema.size - 1}")
        return number

    # -- parts ----------------------------------------------------------------------------------

    def _check_action(self, data: Data) -> None:
        if data.action is not None and data.action.name == "$coalescing":
            raise self.refused("sessions that gather mirrored packets ($coalescing)")

    def _zeros(self) -> Values:
        return {**self.zeros(), **_DEFAULTS}

    def _values(self, number: int) -> Values:
        """Return the settings of a session, with what holds of it now."""
        now = self.kind.read(number)
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
