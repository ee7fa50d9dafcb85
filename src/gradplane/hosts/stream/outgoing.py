"""The sending half of a Stream towards one peer: window, losses, retransmission times.

A lost segment is one whose acknowledgement is overtaken by those of three later transmissions, or
is missing after the retransmission time. That time follows RFC 6298; the window grows and halves
like TCP's. The state of the segments in the window is in arrays, by sequence number modulo its
largest size, so that an acknowledgement of many is one step.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np

from gradplane.hosts.retransmission_timeout import RetransmissionTimeout
from gradplane.hosts.stream.outgoing_message import Batch, OutgoingMessage
from gradplane.hosts.stream.segments import BEYOND, Ack
from gradplane.hosts.wire.payloads import Ints

_OVERTAKEN = 3
_FIRST_WINDOW, _LEAST_WINDOW = 16.0, 2.0
_FIRST_RTO, _LEAST_RTO, _MOST_RTO = 20_000_000, 5_000_000, 2_000_000_000  # ns
_ARRIVED, _FLIGHT, _LOST = 0, 1, 2


class Outgoing:
    """The segments for one peer: send(), then take() those that may be sent; deadline() is the time
    to call timeout()."""

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self._receiver: int | None = None
        self._messages: deque[OutgoingMessage] = deque()  # not wholly acknowledged
        self._numbered = 0  # messages so far
        self._oldest = 0  # the first segment that has not arrived
        self._next = 0  # the first that was never sent
        self._stop = 0  # segments so far
        self._transmissions = 0
        self._state = np.zeros(BEYOND, np.uint8)
        self._attempts = np.zeros(BEYOND, np.int64)
        self._sent_at = np.zeros(BEYOND, np.int64)
        self._transmission = np.zeros(BEYOND, np.int64)  # its latest, counted by the connection
        self._window, self._threshold = _FIRST_WINDOW, float(BEYOND)
        self._recovered = 0  # losses of transmissions before this one are the last loss's
        self._timeout = RetransmissionTimeout(_FIRST_RTO, _LEAST_RTO, _MOST_RTO)

    @property
    def idle(self) -> bool:
        """True if everything is acknowledged."""
        return self._oldest == self._stop

    def send(self, data: bytes, values: bytes = b"") -> None:
        """Queue a message: exact bytes, then float32 values that the network may compress."""
        message = OutgoingMessage(self.connection, self._stop, self._numbered, data, values)
        self._messages.append(message)
        self._stop = message.stop
        self._numbered += 1

    def take(self, now: int) -> Iterator[Batch]:
        """Yield the segments that the window allows to send now."""
        sent = np.arange(self._oldest, self._next)
        states = self._state[sent % BEYOND]
        room = int(self._window) - int((states == _FLIGHT).sum())
        if room <= 0:
            return
        again = sent[states == _LOST][:room]
        new = min(self._next + room - len(again), self._stop, self._oldest + BEYOND)
        chosen = np.concatenate((again, np.arange(self._next, new)))
        if not len(chosen):
            return
        self._attempts[np.arange(self._next, new) % BEYOND] = 0
        self._next = max(new, self._next)
        slots = chosen % BEYOND
        self._state[slots], self._sent_at[slots] = _FLIGHT, now
        self._attempts[slots] += 1
        self._transmission[slots] = self._transmissions + 1 + np.arange(len(chosen))
        self._transmissions += len(chosen)
        yield from self._batches(chosen)

    def _batches(self, sequences: Ints) -> Iterator[Batch]:
        """Yield the datagrams of these segments, a batch for each run."""
        edges = [0, *(np.flatnonzero(np.diff(sequences) != 1) + 1).tolist(), len(sequences)]
        for a, b in zip(edges, edges[1:], strict=False):
            first, stop = int(sequences[a]), int(sequences[b - 1]) + 1
            for message in self._messages:
                if first < message.stop and message.first < stop:
                    low, high = max(first, message.first), min(stop, message.stop)
                    yield from message.batches(low, high)

    def deadline(self) -> int | None:
        """Return the time when timeout() is due, or None if nothing is in flight."""
        flight = self._in(_FLIGHT)
        if not len(flight):
            return None
        return int(self._sent_at[flight % BEYOND].min()) + self._timeout.value

    def timeout(self, now: int) -> tuple[int, str] | None:
        """Mark overdue segments as lost. Return how often that was sent which was sent most often,
        and which it is, for people; None if there are none.
        """
        flight = self._in(_FLIGHT)
        sent_at = self._sent_at[flight % BEYOND]
        overdue = flight[sent_at + self._timeout.value <= now]
        if not len(overdue):
            return None
        self._lose(overdue)
        self._window = _LEAST_WINDOW
        self._timeout.back_off(int(self._sent_at[overdue % BEYOND].max()), now)
        attempts = self._attempts[overdue % BEYOND]
        worst = int(overdue[np.argmax(attempts)])
        return int(attempts.max()), self._message_of(worst).place(worst)

    def restarted(self, ack: Ack) -> bool:
        """Return whether the peer has restarted since an earlier acknowledgement."""
        if self._receiver is None:
            self._receiver = ack.receiver
        return ack.receiver > self._receiver

    def acknowledge(self, ack: Ack, now: int) -> None:
        """Forget segments that arrived, measure the round-trip time, and find those overtaken."""
        if ack.connection != self.connection or ack.next > self._stop:
            return
        covered = self._covered(ack)
        states = self._state[covered % BEYOND]
        arrived = covered[states == _FLIGHT]
        self._state[covered % BEYOND] = _ARRIVED
        self._forget()
        if not len(arrived):
            return
        self._measure(arrived, now)
        self._grow(len(arrived))
        flight = self._in(_FLIGHT)
        newest = self._transmission[arrived % BEYOND].max()
        self._lose(flight[self._transmission[flight % BEYOND] <= newest - _OVERTAKEN])

    def _in(self, state: int) -> Ints:
        """Return the sequence numbers of the segments in that state, in their order."""
        sent = np.arange(self._oldest, self._next)
        chosen: Ints = sent[self._state[sent % BEYOND] == state]
        return chosen

    def _covered(self, ack: Ack) -> Ints:
        """Return the segments sent that an acknowledgement covers."""
        sent = np.arange(self._oldest, self._next)
        covered = sent < ack.next
        if ack.beyond:
            octets = np.frombuffer(ack.beyond.to_bytes(BEYOND // 8, "little"), np.uint8)
            bits = np.unpackbits(octets, bitorder="little")
            ahead = sent - ack.next - 1
            inside = (ahead >= 0) & (ahead < BEYOND)
            covered[inside] = bits[ahead[inside]] != 0
        return sent[covered]

    def _forget(self) -> None:
        """Move on to the first segment that has not arrived, and drop finished messages."""
        waiting = self._state[np.arange(self._oldest, self._next) % BEYOND] != _ARRIVED
        self._oldest += int(np.argmax(waiting)) if waiting.any() else len(waiting)
        while self._messages and self._messages[0].stop <= self._oldest:
            self._messages.popleft()

    def _message_of(self, sequence: int) -> OutgoingMessage:
        return next(m for m in self._messages if m.first <= sequence < m.stop)

    def _lose(self, sequences: Ints) -> None:
        if not len(sequences):
            return
        self._state[sequences % BEYOND] = _LOST
        if (self._transmission[sequences % BEYOND] > self._recovered).any():
            self._recovered = self._transmissions
            self._threshold = self._window = max(self._window / 2, _LEAST_WINDOW)

    def _grow(self, arrived: int) -> None:
        slow_start = self._window < self._threshold
        self._window += arrived if slow_start else arrived / self._window
        self._window = min(self._window, float(BEYOND))

    def _measure(self, arrived: Ints, now: int) -> None:
        slots = arrived % BEYOND
        once = self._attempts[slots] == 1
        sent_at = self._sent_at[slots]
        if once.any():
            self._timeout.measure(int(sent_at[once].max()), now)
        else:
            self._timeout.answered(int(sent_at.max()), now)
