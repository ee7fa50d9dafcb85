"""The configuration of the chip: what it has, and a few settings, which are kept."""

from __future__ import annotations

from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import Scope, SettingsTable, Undo
from gradplane.switch.bfruntime.tables.ports import FRONT_PORTS

_LOCAL_PORTS = 128


class DeviceTable(SettingsTable):
    """A table without a key: its only entry is read and set as the default entry."""

    def __init__(self, schema: TableSchema, facts: DeviceFacts) -> None:
        super().__init__(schema)
        inner = [
            pipe * _LOCAL_PORTS + port
            for pipe in range(facts.pipes)
            for port in facts.recirculation
        ]
        outer = [
            pipe * _LOCAL_PORTS + port
            for pipe in range(facts.pipes)
            for port in range(_LOCAL_PORTS)
            if port < FRONT_PORTS or port in facts.recirculation
        ]
        front = [port for port in outer if port not in inner and port != facts.cpu_port]
        self._first: dict[str, Any] = {
            "sku": facts.sku, "num_pipes": facts.pipes, "num_stages": facts.stages,
            "num_max_ports": facts.ports, "num_front_ports": len(front),
            "pcie_cpu_port": facts.cpu_port, "eth_cpu_port_list": [facts.cpu_port],
            "internal_port_list": inner, "external_port_list": front, "recirc_port_list": inner,
            "intr_based_link_monitoring": False, "flow_learn_intr_mode": False,
            "lrt_dr_timeout_usec": 0, "flow_learn_timeout_usec": 500, "inactive_node_delete": False,
            "selector_member_order": False,
        }  # fmt: skip
        self._values = self._first

    def set_default(self, scope: Scope, data: Data) -> Undo:
        old = self._values
        self._values = {**old, **data.values}

        def undo() -> None:
            self._values = old

        return undo

    def reset_default(self, scope: Scope) -> Undo:
        return self.set_default(scope, Data(None, self._first))

    def default(self, scope: Scope) -> Data | None:
        return Data(None, dict(self._values))
