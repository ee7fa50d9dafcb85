"""Reliable messages over UDP between (ip, port) pairs; no I/O.

Messages from one peer arrive whole, once and in the order they were sent. Messages that a
restart of either side loses are reported and never repeated: after a restart the connection number
is larger.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from typing import Any

from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Failed,
    Peer,
    Received,
    Record,
    Send,
    SetTimer,
)
from gradplane.hosts.stream import segments
from gradplane.hosts.stream.outgoing import Outgoing
from gradplane.hosts.stream.segments import (
    BEYOND,
    HEADER_SIZE,
    SEGMENT,
    Ack,
    DataSegment,
    ValuesSegment,
)
from gradplane.hosts.wire.payloads import Payloads

MAX_MESSAGE = 1 << 28  # bytes


class Incoming:
    """The segments of one of the peer's connections; holds at most 256 out of order and one
    message.
    """

    def __init__(self, connection: int, receiver: int) -> None:
        self.connection, self._receiver = connection, receiver
        self._next = 0
        self._early: dict[int, DataSegment | ValuesSegment] = {}
        self._message: tuple[int, int] | None = None  # number and segments of the current one
        self._takes_values = False  # whether values follow in the current one
        self._pieces: list[bytes] = []
        self._segments = 0  # of the current one so far
        self._unacknowledged = 0

    def receive(self, data: DataSegment | ValuesSegment) -> tuple[list[bytes], Ack | None]:
        """Return the messages that this segment completes, and the acknowledgement to send, if any.

        Segments that follow each other may come as one. Every second segment in order is
        acknowledged, at most once for those that come as one; a message's last, and every duplicate
        or segment out of order."""
        if data.sequence == self._next and not self._early and _fits(data):
            self._next += data.pieces
            messages, in_order = self._append(data), True
        else:
            messages, in_order = self._out_of_order(data), False
        self._unacknowledged += data.pieces
        if in_order and not messages and self._unacknowledged < 2:
            return messages, None
        self._unacknowledged = 0
        return messages, self._acknowledgement()

    def _out_of_order(self, data: DataSegment | ValuesSegment) -> list[bytes]:
        """Keep the segments for later; return the messages that are complete now."""
        for segment in data.split():
            if 0 <= segment.sequence - self._next <= BEYOND and _fits(segment):
                self._early[segment.sequence] = segment
        messages = []
        while early := self._early.pop(self._next, None):
            self._next += 1
            messages += self._append(early)
        return messages

    def _append(self, data: DataSegment | ValuesSegment) -> list[bytes]:
        """Return the message if this is its last piece. Pieces that do not fit are dropped."""
        if isinstance(data, DataSegment) and data.index == 0:
            self._pieces, self._message = [], (data.message, data.count)
            self._takes_values, self._segments = data.values, 0
        if self._message is None or not self._continues(data):
            return []
        self._pieces.append(data.payload)
        self._segments += data.pieces
        if self._segments < self._message[1]:
            return []
        message, self._pieces, self._message = b"".join(self._pieces), [], None
        return [message]

    def _continues(self, data: DataSegment | ValuesSegment) -> bool:
        """Return whether this is the next piece of the current message."""
        assert self._message is not None
        if isinstance(data, ValuesSegment):
            return self._takes_values and self._segments + data.pieces <= self._message[1]
        return self._message == (data.message, data.count) and data.index == self._segments

    def _acknowledgement(self) -> Ack:
        beyond = sum(1 << sequence - self._next - 1 for sequence in self._early)
        return Ack(self.connection, self._receiver, self._next, beyond)


def _fits(data: DataSegment | ValuesSegment) -> bool:
    """Return whether its message, as far as its header says, is not too large."""
    return isinstance(data, ValuesSegment) or data.count * SEGMENT <= MAX_MESSAGE


__all__ = ["HEADER_SIZE", "Stream", "StreamError"]

MAX_ATTEMPTS = 40  # a good minute, as a peer may be busy computing


class StreamError(ValueError):
    """A message that a Stream cannot send."""


class Stream:
    """Messages from and to any number of peers through one local port.

    Actions: Send, SetTimer, CancelTimer, Received, Failed, and Record (resend) of segments that are
    sent again, with the fields of `about`; None: of none. `connection` must be larger after a
    restart of the same address, for example the start time in nanoseconds. No timeout is below
    `granularity`, ns, nor below `trip`, the round trip by the links with all that they may carry
    at once (outgoing.timeouts); `probes` find a lost tail sooner; no more than `window` segments to
    a peer are in flight. After Failed the messages in flight to that peer are dropped, and the next
    one starts a new connection. `refused` counts invalid datagrams by reason.
    """

    def __init__(
        self,
        port: int,
        connection: int = 1,
        max_attempts: int = MAX_ATTEMPTS,
        granularity: int = 0,
        window: int = segments.BEYOND,
        trip: int = 0,
        about: Mapping[str, Any] | None = None,
        probes: bool = False,
    ) -> None:
        self._port, self._connection = port, connection
        self._limits = (granularity, window, trip, probes)
        self._max_attempts, self._about = max_attempts, about
        self._bytes = [0, 0]
        self._outgoing: dict[Peer, Outgoing] = {}
        self._incoming: dict[Peer, Incoming] = {}
        self._failures = 0
        self.refused: Counter[str] = Counter()

    @property
    def idle(self) -> bool:
        """True if every message is acknowledged."""
        return all(outgoing.idle for outgoing in self._outgoing.values())

    def send_message(self, peer: Peer, data: bytes, now: int, values: bytes = b"") -> list[Action]:
        """Send a message; StreamError if it is larger than a receiver accepts.

        It arrives as `data` followed by `values`: float32 values in network order that the network
        may compress. Their number stays; each may change within the network's error bound.
        """
        size = len(data) + -(-len(values) // segments.VALUES) * segments.SEGMENT
        if size > MAX_MESSAGE - segments.SEGMENT:
            raise StreamError(
                f"message of {size} bytes to {_text(peer)}: "
                f"at most {MAX_MESSAGE - segments.SEGMENT}"
                f"{', a segment of values counted as a full one' if values else ''}"
                ": send it in parts"
            )
        if len(values) % 4:
            raise StreamError(f"{len(values)} bytes to {_text(peer)} are no float32 values")
        outgoing = self._outgoing.get(peer)
        if outgoing is None:
            connection = self._connection + self._failures
            outgoing = Outgoing(connection, *self._limits)
            self._outgoing[peer] = outgoing
        outgoing.send(data, values)
        self._bytes[0] += len(data) + len(values)
        return self._pump(peer, outgoing, now)

    def receive(self, peer: Peer, payloads: Payloads, now: int) -> list[Action]:
        """Take datagrams from `peer`. The actions for acknowledgements come before the messages, as
        who gets one may send others, whose timer must stay."""
        actions: list[Action] = []
        received: list[Action] = []
        answer: Ack | None = None  # of several acknowledgements the last says it all
        for segment in segments.parse_batch(payloads):
            if segment is None:
                self.refused["malformed"] += 1
            elif isinstance(segment, Ack):
                actions += self._acknowledged(peer, segment, now)
            else:
                messages, ack = self._data(peer, segment)
                answer = ack or answer
                received += (Received(peer, message) for message in messages)
                self._bytes[1] += sum(map(len, messages))
        if answer:
            actions.insert(0, Send(self._port, *peer, Payloads.of([answer.pack()]), answer.tos))
        return actions + received

    def take_bytes(self) -> tuple[int, int]:
        """Return the bytes of messages that were sent, and that arrived, since the last call."""
        sent, arrived = self._bytes
        self._bytes = [0, 0]
        return sent, arrived

    def forget(self, peer: Peer) -> list[Action]:
        """Give up what is in flight to a peer; the next message to it starts a new connection."""
        if self._outgoing.pop(peer, None) is None:
            return []
        self._failures += 1
        return [CancelTimer(peer)]

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out; its key is the peer."""
        assert isinstance(key, tuple), key
        outgoing = self._outgoing.get(key)
        if outgoing is None:
            return []
        worst = outgoing.timeout(now)
        if worst and worst[0] >= self._max_attempts:
            return self._fail(key, _unanswered(*worst))
        return self._pump(key, outgoing, now)

    def _pump(self, peer: Peer, outgoing: Outgoing, now: int) -> list[Action]:
        actions: list[Action] = [
            Send(self._port, *peer, batch.payloads, batch.tos) for batch in outgoing.take(now)
        ]
        if outgoing.resent is not None and self._about is not None:
            fields = {"peer": _text(peer), **asdict(outgoing.resent), "at": now}
            actions.append(Record("resend", {**self._about, **fields}))
        deadline = outgoing.deadline()
        timer = CancelTimer(peer) if deadline is None else SetTimer(peer, deadline)
        return [*actions, timer]

    def _data(
        self, peer: Peer, data: DataSegment | ValuesSegment
    ) -> tuple[list[bytes], Ack | None]:
        incoming = self._incoming.get(peer)
        if incoming is None or data.connection > incoming.connection:
            incoming = self._incoming[peer] = Incoming(data.connection, self._connection)
        if data.connection < incoming.connection:
            self.refused["earlier connection"] += data.pieces
            return [], None
        return incoming.receive(data)

    def _acknowledged(self, peer: Peer, ack: Ack, now: int) -> list[Action]:
        outgoing = self._outgoing.get(peer)
        if outgoing is None or ack.connection != outgoing.connection:
            self.refused["earlier connection"] += 1
            return []
        if outgoing.restarted(ack):
            return self._fail(peer, "it restarted: messages in flight to it are lost")
        outgoing.acknowledge(ack, now)
        return self._pump(peer, outgoing, now)

    def _fail(self, peer: Peer, reason: str) -> list[Action]:
        del self._outgoing[peer]
        self._failures += 1
        return [CancelTimer(peer), Failed(peer, reason)]


def _text(peer: Peer) -> str:
    return f"{peer[0]}:{peer[1]}"


def _unanswered(attempts: int, place: str) -> str:
    return f"no answer: {place} was sent {attempts} times: is its host up and reachable?"
