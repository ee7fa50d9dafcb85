"""The interface of the simulated network's nodes and links, of which there are two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gradplane.hosts.protocols.actions import Peer
from gradplane.topologies.sim.events import Events
from gradplane.topologies.sim.sim_host import HostStack
from gradplane.topologies.sim.sim_switch import SimSwitch

Deliver = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Receiver:
    """A local UDP port whose ordinary packets from `peer` a kernel takes.

    record: the address of its `fast_results.WORKER`.
    """

    host: str
    port: int
    peer: Peer
    record: int


class Fabric(Protocol):
    """The nodes, made and started, and the links between them."""

    @property
    def events(self) -> Events:
        """The calls and all that happens on links."""

    @property
    def stacks(self) -> Mapping[str, HostStack]:
        """The hosts' network stacks by name."""

    @property
    def switches(self) -> Mapping[str, SimSwitch]:
        """The switches by name."""

    def step(self, until: int | None) -> bool:
        """Run one event or more, but none after the first that Python has a part in, nor after the
        first later than `until`. Returns False if there is no event."""

    def set_receivers(self, receivers: list[Receiver], origin: int) -> None:
        """Let kernels take the ordinary packets of these ports, and of no others.

        origin: the virtual time that counts as 0 for the hosts' programs.
        """

    def sent(self, node: str, port: int) -> tuple[int, int, int]:
        """Return frames, bytes and drops of a link's end, without those before egress."""

    def take_peak(self, node: str, port: int) -> int:
        """Return the most frames in the queue of a link's end since the last call."""
