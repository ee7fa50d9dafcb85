"""A switch that a driver outside the network runs; its ports are bridged to Mininet's links."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import Any

from mininet.node import Switch

from gradplane.controller.targets import Target
from gradplane.switch.ports import offload
from gradplane.topologies.topology_errors import NetworkError

_BETWEEN_LOOKS = 1.0  # seconds
_PATIENCE = 5.0  # seconds for the driver to take a connection
# A hub of two interfaces: nothing is learned, since a packet may come back by its own port.
_HUB = ("type", "bridge", "ageing_time", "0", "mcast_snooping", "0", "stp_state", "0")


class DrivenSwitch(Switch):  # type: ignore[misc]  # mininet has no types
    """The driver's switch as a node: it starts no process, and leaves the driver as it is.

    A host's link ends at NAME-ethPORT. A bridge joins that end with the interface that leads to
    the driver's port; the interface keeps its name and stays where it is. After a run that was
    killed, bridges of the same name are replaced.
    """

    def __init__(self, name: str, target: Target, **params: Any) -> None:
        super().__init__(name, **params)
        self.address = target.address
        self._interfaces = {place.port: place.interface for place in target.attachments.values()}
        self._bridges: list[str] = []
        self._looked = 0.0

    def launch(self) -> None:
        """Join the links with the driver's ports. Raises NetworkError where that fails."""
        for end in self.intfList():
            if end.link is not None:
                port = self.ports[end]
                self._join(f"{self.name}-br{port}", end.name, self._interfaces[port])

    def wait_ready(self) -> None:
        """Check that the driver answers."""
        self.check()

    def check(self) -> None:
        """Raise NetworkError if the driver takes no connections; it is asked once a second."""
        now = time.monotonic()
        if now - self._looked < _BETWEEN_LOOKS:
            return
        self._looked = now
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
        except OSError as error:
            raise NetworkError(
                f"switch {self.name}: the driver at {self.address} is gone: {error.strerror}"
            ) from error

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Take the bridges away."""
        for bridge in self._bridges:
            subprocess.run(["ip", "link", "delete", bridge], check=False)
        self._bridges = []
        super().stop(deleteIntfs)

    def _join(self, bridge: str, link: str, port: str) -> None:
        subprocess.run(["ip", "link", "delete", bridge], check=False, stderr=subprocess.DEVNULL)
        _ip("add", "name", bridge, *_HUB)
        self._bridges.append(bridge)
        offload.switch_off(port)
        for name in (link, port):
            _ip("set", name, "master", bridge)
        for name in (link, port, bridge):
            _ip("set", name, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", "link", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"ip link {' '.join(words)}: {done.stderr.strip()}")
