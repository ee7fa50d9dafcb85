"""The actions that a state machine returns for an event, and that its driver performs.

A state machine's methods take the time (`now`, int nanoseconds) and return a list of actions, to be
performed in order. Timer keys are unique within one state machine; the driver of several adds the
machine to the key.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from gradplane._deferred import Deferred
from gradplane.hosts.wire.payloads import Payloads

Peer = tuple[str, int]  # (dotted IPv4 address, UDP port)


@dataclass(frozen=True, slots=True)
class Send:
    """Send UDP datagrams, in order, from local port `source_port`; `tos` is the IP header's whole
    byte, ECN bits included.
    """

    source_port: int
    ip: str
    port: int
    payloads: Payloads
    tos: int = 0

    @property
    def payload(self) -> bytes:
        """The payload where it is one datagram."""
        assert len(self.payloads) == 1, f"{len(self.payloads)} datagrams"
        return self.payloads[0]


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `timer(key, now)` at time `at`; replaces an earlier timer of the same key."""

    key: Hashable
    at: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel the timer of this key, if there is one."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Deliver:
    """The result that the caller asked for under `ticket`: a `Reduced` or a `Synchronised`."""

    ticket: int
    result: Any


@dataclass(frozen=True, slots=True)
class Record:
    """A line for the run's log; kinds and fields are listed in docs/architecture.md."""

    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a message by a Stream of the host: `stream.send_message(peer, data, now, values)`.

    port: the Stream's, None for the host's first one. One Stream's messages to a peer are in order.
    """

    peer: Peer
    data: bytes
    values: bytes = b""
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A Stream's event: a whole message from `peer`, its values at the end. Its first byte is a
    `messages.Kind`.
    """

    peer: Peer
    data: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """A Stream's event: `peer` cannot be reached, or has restarted; `reason` is for people."""

    peer: Peer
    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Give up what the host's Stream has in flight to a peer that restarted."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Defer:
    """Values to compute, in order, while the processor has nothing else to do; whoever needs one
    earlier does it."""

    values: tuple[Deferred[Any], ...]


Action = (
    Send
    | SetTimer
    | CancelTimer
    | Deliver
    | Record
    | SendMessage
    | Received
    | Failed
    | Forget
    | Defer
)
