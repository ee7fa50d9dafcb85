"""A Tofino, or its model, under a driver (bf_switchd): it is there before and after a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.targets import Attachment, LoadableProgram, Start
from gradplane.controller.targets.tna import Tna

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i

ADDRESS = "127.0.0.1:50052"
"""The address that bf_switchd serves BFRuntime on."""

_PORTS = 1 << 9  # numbers of ports: PortId_t has 9 bits
_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:\s]+):\d{1,5}")
_ATTACHMENT = re.compile(r"(\d{1,3})@(\S{1,15})")


class Tofino(Tna):
    """The target tofino: the controller finds the program there, over BFRuntime.

    The program is compiled by the chip's compiler and loaded by the driver, which the user starts.
    address: of its BFRuntime server. ports: for each host "PORT@INTERFACE", the chip's number of
    the port (pipe << 7 | port) and the interface on this machine that leads to it.
    """

    networks = ("mininet", "cluster")
    announces = False
    queues = False
    protocol = "bfruntime"
    lasting = True
    keys = ("address", "device_id", "ports")

    def __init__(
        self,
        name: str,
        address: str = ADDRESS,
        device_id: int = 0,
        ports: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name)
        if not _ADDRESS.fullmatch(address):
            raise ControllerError(f'address = "{address}": write HOST:PORT, such as "{ADDRESS}"')
        self.address, self.device_id = address, device_id
        self.attachments = {host: _attachment(host, text) for host, text in (ports or {}).items()}
        for values in zip(*self.attachments.values(), strict=True):
            value, times = Counter(values).most_common(1)[0]
            if times > 1:
                hosts = [host for host, place in self.attachments.items() if value in place]
                raise ControllerError(
                    f"ports: {' and '.join(hosts)} both have {value}: each host needs a port and an"
                    " interface of its own"
                )

    def description(self) -> str:
        """Return the name with the driver's address."""
        return f"{self.name} (driver at {self.address})"

    def port(self, number: int, neighbour: str) -> int:
        """Return the port that the node is attached to."""
        return self.attachments[neighbour].port

    def pipeline(self, program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
        """Return P4Info, to compare with the running program, and no device config."""
        return super().pipeline(program)[0], b""

    def command(self, start: Start) -> list[str]:
        """Raise ControllerError: the driver is started by the user."""
        raise ControllerError(
            f"target {self.name}: start bf_switchd with the compiled program yourself"
            " (docs/tofino.md), and configure it by its BFRuntime address"
        )


def _attachment(host: str, text: str) -> Attachment:
    found = _ATTACHMENT.fullmatch(text)
    if found is None:
        raise ControllerError(
            f'ports: {host} = "{text}": write PORT@INTERFACE, such as {host} = "8@veth1"'
        )
    port = int(found[1])
    if port >= _PORTS:
        raise ControllerError(
            f"ports: {host}: the chip has no port {port}: its numbers are pipe << 7 | port, 0 to"
            f" {_PORTS - 1}"
        )
    return Attachment(port, found[2])
