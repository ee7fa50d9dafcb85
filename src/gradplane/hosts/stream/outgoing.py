"""The sending half of a Stream towards one peer: window, losses, retransmission times.

A lost segment is one whose acknowledgement is overtaken by those of three later transmissions, or
is missing after the retransmission time. That time follows RFC 6298 (Karn's rule: only segments
sent once are measured); the window grows and halves like TCP's.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from gradplane.hosts.stream.segments import BEYOND, SEGMENT, VALUES, Ack, DataSegment, ValuesSegment

_OVERTAKEN = 3
_FIRST_WINDOW, _LEAST_WINDOW = 16.0, 2.0
_FIRST_RTO, _LEAST_RTO, _MOST_RTO = 200_000_000, 20_000_000, 2_000_000_000  # ns


@dataclass(slots=True, eq=False)
class Segment:
    """A segment and its latest transmission; `transmission` counts the connection's."""

    data: DataSegment | ValuesSegment
    attempts: int = 0
    sent_at: int = 0
    transmission: int = 0


class Outgoing:
    """The segments for one peer: send(), then take() those that may be sent; deadline() is the time
    to call timeout()."""

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self._receiver: int | None = None
        self._messages = self._sequence = self._transmissions = 0
        self._waiting: deque[Segment] = deque()
        self._flight: dict[int, Segment] = {}
        self._lost: dict[int, Segment] = {}
        self._window, self._threshold = _FIRST_WINDOW, float(BEYOND)
        self._recovered = 0  # losses of transmissions before this one are the last loss's
        self._smooth: float | None = None
        self._deviation = 0.0
        self._rto = _FIRST_RTO

    @property
    def idle(self) -> bool:
        """True if everything is acknowledged."""
        return not (self._waiting or self._flight or self._lost)

    def send(self, data: bytes, values: bytes = b"") -> None:
        """Queue a message: exact bytes, then float32 values that the network may compress."""
        exact = max(-(-len(data) // SEGMENT), 1)
        count = exact + -(-len(values) // VALUES)
        for index in range(exact):
            piece = data[index * SEGMENT : (index + 1) * SEGMENT]
            place = (self.connection, self._sequence, self._messages, index, count)
            self._queue(DataSegment(*place, piece, bool(values)))
        for start in range(0, len(values), VALUES):
            piece = values[start : start + VALUES]
            self._queue(ValuesSegment(self.connection, self._sequence, piece))
        self._messages += 1

    def _queue(self, segment: DataSegment | ValuesSegment) -> None:
        self._waiting.append(Segment(segment))
        self._sequence += 1

    def take(self, now: int) -> Iterator[DataSegment | ValuesSegment]:
        """Yield the segments that the window allows to send now."""
        while len(self._flight) < int(self._window) and (segment := self._pick()):
            self._transmissions += 1
            segment.attempts += 1
            segment.sent_at, segment.transmission = now, self._transmissions
            self._flight[segment.data.sequence] = segment
            yield segment.data

    def deadline(self) -> int | None:
        """Return the time when timeout() is due, or None if nothing is in flight."""
        sent = [segment.sent_at for segment in self._flight.values()]
        return min(sent) + self._rto if sent else None

    def timeout(self, now: int) -> Segment | None:
        """Mark overdue segments as lost; return the one sent most often, or None."""
        overdue = [s for s in self._flight.values() if s.sent_at + self._rto <= now]
        if not overdue:
            return None
        self._lose(overdue)
        self._window = _LEAST_WINDOW
        self._rto = min(2 * self._rto, _MOST_RTO)
        return max(overdue, key=lambda segment: segment.attempts)

    def restarted(self, ack: Ack) -> bool:
        """Return whether the peer has restarted since an earlier acknowledgement."""
        if self._receiver is None:
            self._receiver = ack.receiver
        return ack.receiver > self._receiver

    def acknowledge(self, ack: Ack, now: int) -> None:
        """Forget segments that arrived, measure the round-trip time, and find those overtaken."""
        if ack.connection != self.connection or ack.next > self._sequence:
            return
        for sequence in [s for s in self._lost if _covers(ack, s)]:
            del self._lost[sequence]
        arrived = [self._flight.pop(s) for s in list(self._flight) if _covers(ack, s)]
        if not arrived:
            return
        self._measure(arrived, now)
        self._grow(len(arrived))
        newest = max(segment.transmission for segment in arrived)
        self._lose([s for s in self._flight.values() if s.transmission <= newest - _OVERTAKEN])

    def _pick(self) -> Segment | None:
        """Return the next segment to send, if the peer has room for it."""
        if self._lost:
            return self._lost.pop(min(self._lost))
        oldest = min(self._flight, default=None)
        if not self._waiting:
            return None
        if oldest is not None and self._waiting[0].data.sequence - oldest >= BEYOND:
            return None
        return self._waiting.popleft()

    def _lose(self, segments: list[Segment]) -> None:
        for segment in segments:
            self._lost[segment.data.sequence] = self._flight.pop(segment.data.sequence)
        if any(segment.transmission > self._recovered for segment in segments):
            self._recovered = self._transmissions
            self._threshold = self._window = max(self._window / 2, _LEAST_WINDOW)

    def _grow(self, arrived: int) -> None:
        slow_start = self._window < self._threshold
        self._window += arrived if slow_start else arrived / self._window
        self._window = min(self._window, float(BEYOND))

    def _measure(self, arrived: list[Segment], now: int) -> None:
        once = [s.sent_at for s in arrived if s.attempts == 1]
        if not once:
            return
        sample = now - max(once)
        if self._smooth is None:
            self._smooth, self._deviation = sample, sample / 2
        else:
            self._deviation += (abs(sample - self._smooth) - self._deviation) / 4
            self._smooth += (sample - self._smooth) / 8
        self._rto = min(max(int(self._smooth + 4 * self._deviation), _LEAST_RTO), _MOST_RTO)


def _covers(ack: Ack, sequence: int) -> bool:
    ahead = sequence - ack.next - 1
    return ahead < -1 or (ahead >= 0 and bool(ack.beyond >> ahead & 1))
