"""Ports that have lost their link, which replicas and members of groups are chosen by."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.runtime.replicas import Replica


class Links:
    """The ports of a switch, shared by the programs that it runs one after the other.

    `ports`: those that there are, None where nobody said. `down`: those without a link; it is
    replaced as a whole, so that it may change from any thread.
    """

    def __init__(self, ports: Iterable[int] | None = None) -> None:
        self.ports = None if ports is None else frozenset(ports)
        self.down: frozenset[int] = frozenset()

    def set(self, port: int, up: bool) -> None:
        self.down = self.down - {port} if up else self.down | {port}

    def watched(self, port: bytes) -> bool:
        """Whether a member that watches this port (big-endian; b"" for none) may be chosen."""
        return not port or int.from_bytes(port, "big") not in self.down

    def live(self, replicas: list[Replica]) -> list[Replica]:
        """Each replica or, where its port is down, the first of its backups whose port is up.

        Where all are down it is the replica itself, and its copy is lost at its port. (P4Runtime
        1.4, section "MulticastGroupEntry", allows for this or no copy at all.)
        """
        down = self.down
        if not down:
            return replicas
        return [
            next((r for r in (replica, *replica.backups) if r.port not in down), replica)
            for replica in replicas
        ]
