"""The interface between a host and its network: sockets, or the simulated network.

Packets cross it in batches, both ways: a `Send` here, and `Host.receive()` with the `Payloads` of
one peer. A batch of several is the same as its packets one after the other at the same time; how
packets that arrive are grouped is up to the network.
"""

from collections.abc import Callable
from typing import Any, Protocol

from gradplane._deferred import Deferred
from gradplane.hosts.protocols.actions import Send


class Handle(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; no effect once it has happened."""


class Environment(Protocol):
    """Clock, network and log of one host. Time is an int of nanoseconds."""

    @property
    def granularity(self) -> int:
        """The ns that a timer or an answer may be late because of the machine instead of the
        network: G of RFC 6298. No timeout is shorter.
        """

    def now(self) -> int:
        """Return the time."""

    def send(self, send: Send) -> None:
        """Put a batch of datagrams on the host's link, in order."""

    def call_at(self, at: int, callback: Callable[[], None]) -> Handle:
        """Schedule a call for time `at`, at once if that has passed; never before this returns."""

    def when_idle(self, work: Deferred[Any]) -> None:
        """Compute a value while the processor has nothing else to do, those put off first first."""

    def crash(self, back: int) -> None:
        """End the host at once; a new one begins with training round `back`. In a process this
        does not return.
        """

    def record(self, kind: str, **fields: Any) -> None:
        """Append a line to the run's log; kinds and fields are listed in docs/architecture.md."""
