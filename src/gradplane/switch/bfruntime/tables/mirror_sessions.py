"""Mirror sessions: the switch's clone sessions, with what only clients need kept beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope, Undo
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import State

_DEFAULTS: dict[str, Any] = {
    "$session_enable": False, "$direction": "BOTH", "$packet_color": "GREEN", "$copy_to_cpu": False,
    "$max_pkt_len": 0xFFFF,
}  # fmt: skip


class MirrorTable(ControlTable):
    """The sessions that clients of BFRuntime made, by their number; 0 is none on the chip."""

    def __init__(self, schema: TableSchema, state: State, ports: int, cpu_port: int) -> None:
        super().__init__(schema)
        self.state = state
        self._ports = ports
        self._cpu_port = cpu_port
        self._kept: dict[int, Data] = {}
        state.nodes.followers.append(self._group_changed)

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        number = self._number(key)
        if number in self._kept:
            raise RpcError("ALREADY_EXISTS", f"table {self.schema.name}: session {number} exists")
        if data.action is None:
            raise self.invalid("a session needs an action: $normal")
        return self._set(number, Data(data.action, self._whole(data.values)))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        number = self._number(key)
        old = self._session(number)
        return self._set(number, Data(data.action or old.action, {**old.values, **data.values}))

    def delete(self, scope: Scope, key: Key) -> Undo:
        number = self._number(key)
        old = self._session(number)
        self._put(number, None)
        return lambda: self._put(number, old)

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self.delete(scope, key)

    def clear(self, scope: Scope) -> Undo:
        steps = [self.delete(scope, {"$sid": (number,)}) for number in list(self._kept)]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self._session(self._number(key))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for number, data in list(self._kept.items()):
            yield {"$sid": (number,)}, data

    def usage(self, scope: Scope) -> int:
        return len(self._kept)

    # -- parts ----------------------------------------------------------------------------------

    def _number(self, key: Key) -> int:
        number = self.number(key, "$sid")
        if not 0 < number < self.schema.size:
            raise self.invalid(f"$sid {number} is not within 1 to {self.schema.size - 1}")
        return number

    def _session(self, number: int) -> Data:
        if number not in self._kept:
            raise self.missing(f"there is no session {number}")
        return self._kept[number]

    def _whole(self, values: dict[str, Any]) -> dict[str, Any]:
        zeros = {f.name: False if f.type.name == "bool" else 0 for f in self.schema.data}
        return {**zeros, **_DEFAULTS, **values}

    def _set(self, number: int, data: Data) -> Undo:
        if data.action is not None and data.action.name == "$coalescing":
            raise self.refused("sessions that gather mirrored packets ($coalescing)")
        self._replicas(data.values)
        old = self._kept.get(number)
        self._put(number, data)
        return lambda: self._put(number, old)

    def _put(self, number: int, data: Data | None) -> None:
        if data is None:
            self._kept.pop(number, None)
            self.state.clone_sessions.pop(number, None)
            return
        self._kept[number] = data
        values = data.values
        if not values["$session_enable"]:
            self.state.clone_sessions.pop(number, None)
            return
        most = values["$max_pkt_len"]
        self.state.clone_sessions[number] = CloneSession(
            self._replicas(values),
            0 if most in (0, 0xFFFF) else most,
            values["$ingress_cos"] & 0xFF,
        )

    def _group_changed(self, group: int) -> None:
        """Make the replicas of the sessions that mirror to a multicast group anew."""
        for number, data in self._kept.items():
            if group in _groups(data.values):
                self._put(number, data)

    def _replicas(self, values: dict[str, Any]) -> list[Replica]:
        found = []
        if values["$ucast_egress_port_valid"]:
            port = values["$ucast_egress_port"]
            if port >= self._ports:
                raise self.invalid(f"port {port} is not within 0 to {self._ports - 1}")
            found.append(Replica(port, values["$mcast_rid"]))
        for group in _groups(values):
            found += self.state.multicast.get(group, [])
        if values["$copy_to_cpu"]:
            found.append(Replica(self._cpu_port))
        return found


def _groups(values: dict[str, Any]) -> list[int]:
    """Return the multicast groups that a session mirrors to."""
    return [values[f"$mcast_grp_{name}"] for name in "ab" if values[f"$mcast_grp_{name}_valid"]]
