"""What a host needs of the world: of sockets, of the simulated network, or of a replay."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Datagram:
    """A UDP datagram on its way out. `ip` is dotted text; `tos` is the whole byte, ECN bits
    included.
    """

    source_port: int
    ip: str
    port: int
    payload: bytes
    tos: int = 0


class Handle(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """The call will not happen. No effect once it has."""


class Environment(Protocol):
    """Clock, network and log of one host. Time is an int of nanoseconds."""

    def now(self) -> int:
        """The time."""

    def send(self, datagram: Datagram) -> None:
        """Put a datagram on the host's link."""

    def call_at(self, at: int, callback: Callable[[], None]) -> Handle:
        """Call back at time `at`, or at once if that has passed; never before this returns."""

    def record(self, kind: str, **fields: Any) -> None:
        """Append a line to the run's log; kinds and fields are listed in docs/architecture.md."""
