"""A switch with all its control interfaces, in one process: Python, commands, P4Runtime messages,
BFRuntime's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finsy.proto import p4r

from gradplane.switch import Switch
from gradplane.switch.bfruntime.bound_program import bind
from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_errors import TableError

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Interfaces:
    """The interfaces of one switch; `sw` is Python's, `cli` runs a command."""

    def __init__(self, sw: Switch) -> None:
        self.sw = sw
        self.cli = sw.run_commands
        self.pipeline = Pipeline(Catalog(sw.program), sw, p4r.ForwardingPipelineConfig())
        bound = bind(self.pipeline).only
        assert bound is not None
        self._bound = bound
        self.tables = {t.schema.name: t for t in self._bound.requests.tables.values()}
        self.scope = Scope(range(self._bound.requests.pipes), True)

    # -- P4Runtime ------------------------------------------------------------------------------

    def p4rt(self, kind: int, **entity: Any) -> None:
        """Write an entity. Raises BatchError."""
        write(self.pipeline, [p4r.Update(type=kind, entity=p4r.Entity(**entity))])

    def p4rt_read(self, **entity: Any) -> list[p4r.Entity]:
        found = read(self.pipeline, [p4r.Entity(**entity)])
        return [entity for response in found for entity in response.entities]

    def p4rt_group(self, number: int) -> list[tuple[int, int]]:
        """Return the ports and instances of a multicast group."""
        query = p4r.MulticastGroupEntry(multicast_group_id=number)
        (found,) = self.p4rt_read(packet_replication_engine_entry=group_entry(query))
        entry = found.packet_replication_engine_entry.multicast_group_entry
        return [(port(r), r.instance) for r in entry.replicas]

    def p4rt_session(self, number: int) -> tuple[list[int], int, int]:
        """Return the ports of a clone session, its greatest length and class of service."""
        query = p4r.CloneSessionEntry(session_id=number)
        (found,) = self.p4rt_read(packet_replication_engine_entry=session_entry(query))
        entry = found.packet_replication_engine_entry.clone_session_entry
        ports = [port(r) for r in entry.replicas]
        return ports, entry.packet_length_bytes, entry.class_of_service

    # -- BFRuntime ------------------------------------------------------------------------------

    def table(self, name: str) -> ControlTable:
        return next(t for n, t in self.tables.items() if n == name or n.endswith(f".{name}"))

    def bfrt(
        self, what: str, name: str, key: Mapping[str, Any], action: str = "", **values: Any
    ) -> None:
        """Add, modify or delete an entry; names of values have no $. Raises RpcError."""
        table, spec = self.table(name), None
        if action:
            spec = table.schema.action_named(action)
        known = {f.name for f in (*table.schema.data, *(spec.data if spec else ()))}
        data = Data(spec, {n if n in known else f"${n}": v for n, v in values.items()})
        matches = {n: v if isinstance(v, tuple) else (v,) for n, v in key.items()}
        with self.sw.lock, self.sw.store.batch():
            try:
                if what == "add":
                    table.add(self.scope, matches, data)
                elif what == "modify":
                    table.modify(self.scope, matches, data, Flags())
                else:
                    table.delete(self.scope, matches)
            except TableError as error:
                raise table.worded(error) from None

    def bfrt_default(self, name: str, action: str, **values: Any) -> None:
        """Set the default entry of a table. Raises RpcError."""
        table = self.table(name)
        with self.sw.lock, self.sw.store.batch():
            table.set_default(self.scope, Data(table.schema.action_named(action), values))

    def bfrt_read(self, name: str, key: Mapping[str, Any]) -> dict[str, Any]:
        matches = {n: v if isinstance(v, tuple) else (v,) for n, v in key.items()}
        return self.table(name).find(self.scope, matches)[1].values

    def bfrt_keys(self, name: str) -> list[Any]:
        """Return the numbers of the entries of a table whose key is one."""
        found = [key for key, _ in self.table(name).entries(self.scope)]
        return [next(iter(key.values()))[0] for key in found]  # type: ignore[index]


def group_entry(entry: p4r.MulticastGroupEntry) -> p4r.PacketReplicationEngineEntry:
    return p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)


def session_entry(entry: p4r.CloneSessionEntry) -> p4r.PacketReplicationEngineEntry:
    return p4r.PacketReplicationEngineEntry(clone_session_entry=entry)


def replica(number: int, instance: int = 0) -> p4r.Replica:
    return p4r.Replica(port=number.to_bytes(2, "big").lstrip(b"\0") or b"\0", instance=instance)


def port(shown: p4r.Replica) -> int:
    return shown.egress_port or int.from_bytes(shown.port, "big")
