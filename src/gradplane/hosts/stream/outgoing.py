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
from gradplane.hosts.stream import window_kernels
from gradplane.hosts.stream.outgoing_message import Batch, OutgoingMessage
from gradplane.hosts.stream.segments import BEYOND, Ack
from gradplane.hosts.wire.payloads import Ints

_OVERTAKEN = 3
_FIRST_WINDOW, _LEAST_WINDOW = 16.0, 2.0
_FIRST_RTO, _LEAST_RTO, _MOST_RTO = 20_000_000, 5_000_000, 2_000_000_000  # ns


class Outgoing:
    """The segments for one peer: send(), then take() those that may be sent; deadline() is the time
    to call timeout(). window: the most that are in flight."""

    def __init__(self, connection: int, granularity: int = 0, window: int = BEYOND) -> None:
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
        self._columns = (self._state, self._attempts, self._sent_at, self._transmission)
        self._chosen = np.zeros(BEYOND, np.int64)  # for take()
        self._largest = float(min(window, BEYOND))
        self._window, self._threshold = min(_FIRST_WINDOW, self._largest), self._largest
        self._recovered = 0  # losses of transmissions before this one are the last loss's
        first, least = max(_FIRST_RTO, 2 * granularity), max(_LEAST_RTO, granularity)
        self._timeout = RetransmissionTimeout(first, least, _MOST_RTO)

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
        window = (self._oldest, self._next, self._stop, int(self._window))
        count, self._next = window_kernels.take(
            *self._columns, *window, self._transmissions, now, self._chosen
        )
        self._transmissions += count
        if count:
            yield from self._batches(self._chosen[:count].copy())

    def _batches(self, sequences: Ints) -> Iterator[Batch]:
        """Yield the datagrams of these segments, a batch for each run."""
        edges = [0, len(sequences)]
        if sequences[-1] - sequences[0] != len(sequences) - 1:
            edges[1:1] = (np.flatnonzero(np.diff(sequences) != 1) + 1).tolist()
        for a, b in zip(edges, edges[1:], strict=False):
            first, stop = int(sequences[a]), int(sequences[b - 1]) + 1
            for message in self._messages:
                if first < message.stop and message.first < stop:
                    low, high = max(first, message.first), min(stop, message.stop)
                    yield from message.batches(low, high)

    def deadline(self) -> int | None:
        """Return the time when timeout() is due, or None if nothing is in flight."""
        first = window_kernels.first_sent(self._state, self._sent_at, self._oldest, self._next)
        return None if first < 0 else first + self._timeout.value

    def timeout(self, now: int) -> tuple[int, str] | None:
        """Mark overdue segments as lost. Return how often that was sent which was sent most often,
        and which it is, for people; None if there are none.
        """
        sent = np.arange(self._oldest, self._next)
        slots = sent % BEYOND
        late = self._sent_at[slots] + self._timeout.value <= now
        overdue = sent[late & (self._state[slots] == window_kernels.FLIGHT)]
        if not len(overdue):
            return None
        self._state[overdue % BEYOND] = window_kernels.LOST
        self._lost(int(self._transmission[overdue % BEYOND].max()))
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
        beyond = np.frombuffer(ack.beyond.to_bytes(BEYOND // 8, "little"), np.uint8)
        arrived, newest, once, last, self._oldest = window_kernels.arrive(
            *self._columns, self._oldest, self._next, ack.next, beyond
        )
        while self._messages and self._messages[0].stop <= self._oldest:
            self._messages.popleft()
        if not arrived:
            return
        if once >= 0:
            self._timeout.measure(once, now)
        else:
            self._timeout.answered(last, now)
        self._grow(arrived)
        place = (self._transmission, self._oldest, self._next)
        self._lost(window_kernels.overtake(self._state, *place, newest - _OVERTAKEN))

    def _message_of(self, sequence: int) -> OutgoingMessage:
        return next(m for m in self._messages if m.first <= sequence < m.stop)

    def _lost(self, transmission: int) -> None:
        """Halve the window, as segments up to this transmission were lost; -1: none was."""
        if transmission > self._recovered:
            self._recovered = self._transmissions
            self._threshold = self._window = max(self._window / 2, _LEAST_WINDOW)

    def _grow(self, arrived: int) -> None:
        slow_start = self._window < self._threshold
        self._window += arrived if slow_start else arrived / self._window
        self._window = min(self._window, self._largest)
