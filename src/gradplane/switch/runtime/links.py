"""The ports' links: which are down, how many packets wait for each, and the queues before them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gradplane.switch.runtime.egress_queues import QUEUES, EgressQueues
from gradplane.switch.runtime.replicas import Replica


class Links:
    """The ports of a switch, shared by the programs that it runs one after the other.

    `ports`: those that exist, None if unknown. `down`: those without a link; the set is replaced as
    a whole, so that any thread may change it. `queued`: the packets that wait at each port's
    interface, by its number, zero where that is unknown; native code reads the array. `queues`: the
    switch's own queues. `loopback`: 1 for each port whose packets come back by it, as ports of a
    Tofino can be set; native code reads it, too. `recirculation`: 1 if the first bytes of packets
    that come back are to be reported.
    """

    def __init__(
        self, ports: Iterable[int] | None = None, queues: EgressQueues | None = None
    ) -> None:
        self.ports = None if ports is None else frozenset(ports)
        self.down: frozenset[int] = frozenset()
        self.queued: npt.NDArray[np.int64] = np.zeros(QUEUES, dtype=np.int64)
        self.queues = queues or EgressQueues()
        self.loopback: npt.NDArray[np.uint8] = np.zeros(QUEUES, dtype=np.uint8)
        self.recirculation: npt.NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)

    def set(self, port: int, up: bool) -> None:
        self.down = self.down - {port} if up else self.down | {port}

    def watched(self, port: bytes) -> bool:
        """Return whether a member that watches `port` (big-endian; b"" for none) may be chosen."""
        return not port or int.from_bytes(port, "big") not in self.down

    def live(self, replicas: list[Replica]) -> list[Replica]:
        """Return each replica or, if its port is down, the first of its backups whose port is up.

        If all are down, it is the replica itself, which is lost at its port. (P4Runtime 1.4,
        section "MulticastGroupEntry", allows for this or for no replica at all.)
        """
        down = self.down
        if not down:
            return replicas
        return [
            next((r for r in (replica, *replica.backups) if r.port not in down), replica)
            for replica in replicas
        ]
