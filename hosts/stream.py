"""Reliable messages over UDP between (ip, port) pairs; no I/O.

Messages from one peer arrive whole, once and in the order they were sent. What a restart of either
side loses is reported, never repeated: every incarnation has a larger connection number.
"""

from collections import Counter
from collections.abc import Hashable

from gradplane.hosts import segments
from gradplane.hosts.actions import (
    Action,
    CancelTimer,
    Failed,
    Peer,
    Received,
    Send,
    SetTimer,
)
from gradplane.hosts.incoming import MAX_MESSAGE, Incoming
from gradplane.hosts.outgoing import Outgoing, Segment
from gradplane.hosts.segments import HEADER_SIZE, Ack, Data

__all__ = ["HEADER_SIZE", "Stream", "StreamError"]

MAX_ATTEMPTS = 40  # a good minute, as a peer may be busy computing


class StreamError(ValueError):
    """A message that a Stream does not take."""


class Stream:
    """Messages from and to any number of peers through one local port.

    Actions: Send, SetTimer, CancelTimer, Received, Failed. `connection` must be larger after a
    restart of the same address, for example the start time in nanoseconds. After Failed what was
    under way to that peer is forgotten, and the next message starts a new connection. `refused`
    counts datagrams that made no sense.
    """

    def __init__(self, port: int, connection: int = 1, max_attempts: int = MAX_ATTEMPTS) -> None:
        self._port, self._connection = port, connection
        self._max_attempts = max_attempts
        self._outgoing: dict[Peer, Outgoing] = {}
        self._incoming: dict[Peer, Incoming] = {}
        self._failures = 0
        self.refused: Counter[str] = Counter()

    @property
    def idle(self) -> bool:
        """Every message was acknowledged."""
        return all(outgoing.idle for outgoing in self._outgoing.values())

    def send_message(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Send a message; StreamError if it is larger than a receiver takes."""
        if len(data) > MAX_MESSAGE - segments.SEGMENT:
            raise StreamError(
                f"message of {len(data)} bytes to {_text(peer)}: "
                f"at most {MAX_MESSAGE - segments.SEGMENT}: send it in parts"
            )
        outgoing = self._outgoing.get(peer)
        if outgoing is None:
            outgoing = Outgoing(self._connection + self._failures)
            self._outgoing[peer] = outgoing
        outgoing.send(data)
        return self._pump(peer, outgoing, now)

    def receive(self, peer: Peer, payload: bytes, now: int) -> list[Action]:
        """A datagram from `peer`."""
        try:
            segment = segments.parse(payload)
        except segments.SegmentError:
            self.refused["malformed"] += 1
            return []
        if isinstance(segment, Data):
            return self._data(peer, segment)
        return self._acknowledged(peer, segment, now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """A timer that was set has run out; its key is the peer."""
        assert isinstance(key, tuple), key
        outgoing = self._outgoing.get(key)
        if outgoing is None:
            return []
        worst = outgoing.timeout(now)
        if worst and worst.attempts >= self._max_attempts:
            return self._fail(key, _unanswered(worst))
        return self._pump(key, outgoing, now)

    def _pump(self, peer: Peer, outgoing: Outgoing, now: int) -> list[Action]:
        actions: list[Action] = [self._send(peer, data) for data in outgoing.take(now)]
        deadline = outgoing.deadline()
        timer = CancelTimer(peer) if deadline is None else SetTimer(peer, deadline)
        return [*actions, timer]

    def _data(self, peer: Peer, data: Data) -> list[Action]:
        incoming = self._incoming.get(peer)
        if incoming is None or data.connection > incoming.connection:
            incoming = self._incoming[peer] = Incoming(data.connection, self._connection)
        if data.connection < incoming.connection:
            self.refused["earlier connection"] += 1
            return []
        messages, ack = incoming.receive(data)
        actions: list[Action] = [self._send(peer, ack)] if ack else []
        return actions + [Received(peer, message) for message in messages]

    def _acknowledged(self, peer: Peer, ack: Ack, now: int) -> list[Action]:
        outgoing = self._outgoing.get(peer)
        if outgoing is None or ack.connection != outgoing.connection:
            self.refused["earlier connection"] += 1
            return []
        if outgoing.restarted(ack):
            return self._fail(peer, "it restarted: what was under way to it is lost")
        outgoing.acknowledge(ack, now)
        return self._pump(peer, outgoing, now)

    def _fail(self, peer: Peer, reason: str) -> list[Action]:
        del self._outgoing[peer]
        self._failures += 1
        return [CancelTimer(peer), Failed(peer, reason)]

    def _send(self, peer: Peer, segment: Data | Ack) -> Send:
        return Send(self._port, *peer, segment.pack())


def _text(peer: Peer) -> str:
    return f"{peer[0]}:{peer[1]}"


def _unanswered(segment: Segment) -> str:
    data = segment.data
    return (
        f"no answer: message {data.message}, segment {data.index + 1} of "
        f"{data.count}, was sent {segment.attempts} times: is its host up, and the way to it?"
    )
