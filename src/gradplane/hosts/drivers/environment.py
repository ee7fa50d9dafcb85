"""The interface between a host and its network: sockets, or the simulated network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Datagram:
    """An outgoing UDP datagram. `ip` is dotted text; `tos` is the whole byte, ECN bits
    included.
    """

    source_port: int
    ip: str
    port: int
    payload: bytes
    tos: int = 0


class Handle(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; no effect once it has happened."""


class Environment(Protocol):
    """Clock, network and log of one host. Time is an int of nanoseconds."""

    def now(self) -> int:
        """Return the time."""

    def send(self, datagram: Datagram) -> None:
        """Put a datagram on the host's link."""

    def call_at(self, at: int, callback: Callable[[], None]) -> Handle:
        """Schedule a call for time `at`, at once if that has passed; never before this returns."""

    def record(self, kind: str, **fields: Any) -> None:
        """Append a line to the run's log; kinds and fields are listed in docs/architecture.md."""
