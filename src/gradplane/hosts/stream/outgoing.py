"""The sending half of a Stream towards one peer: window, losses, retransmission times.

A lost segment is one whose acknowledgement is overtaken by those of three later transmissions, or
is missing after the retransmission time. That time follows RFC 6298; the window grows and halves
like TCP's. Where that time allows for hosts that wait for a processor, a tail loss probe (RFC 8985,
section 7) comes first: when nothing was heard for twice the smoothed round trip, the last segment
in flight is sent again, and what its acknowledgement lacks is lost; then after twice, four times
that, as a probe may be lost, too. The state of the segments in the window is in arrays, by sequence
number modulo its largest size, so that an acknowledgement of many is one step.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.hosts.retransmission_timeout import NEVER, RetransmissionTimeout
from gradplane.hosts.stream import segments
from gradplane.hosts.stream.segments import (
    BEYOND,
    HEADER_SIZE,
    SEGMENT,
    VALUES,
    VALUES_HEADER_SIZE,
    Ack,
)
from gradplane.hosts.wire.payloads import Bytes, Ints, Payloads


@dataclass(frozen=True, slots=True)
class Batch:
    """Datagrams of equal ToS that are sent together."""

    tos: int
    payloads: Payloads


class OutgoingMessage:
    """Message `number` of a connection, in its segments `first` to `stop` - 1: exact bytes, then
    values.
    """

    def __init__(
        self, connection: int, first: int, number: int, data: bytes, values: bytes
    ) -> None:
        self._connection, self.first, self.number = connection, first, number
        self._data = np.frombuffer(data, np.uint8)
        self._values = np.frombuffer(values, np.uint8)
        self.exact = max(-(-len(data) // SEGMENT), 1)
        self.count = self.exact + -(-len(values) // VALUES)
        self.stop = first + self.count

    def batches(self, first: int, stop: int) -> Iterator[Batch]:
        """Yield the datagrams of segments `first` to `stop` - 1, which are the message's."""
        border = min(max(self.first + self.exact, first), stop)
        if first < border:
            yield Batch(0, self._exact(first, border))
        if border < stop:
            yield Batch(segments.MARK, self._marked(border, stop))

    def place(self, sequence: int) -> str:
        """Say for people which segment of the message this is."""
        index = sequence - self.first
        if index < self.exact:
            return f"message {self.number}, segment {index + 1} of {self.count},"
        return f"segment {sequence} of the connection, of values,"

    def _exact(self, first: int, stop: int) -> Payloads:
        start = first - self.first
        rows, sizes = _rows(self._data, start, stop - first, HEADER_SIZE, SEGMENT)
        header = np.zeros(len(rows), segments.DATA_HEADERS)
        header["start"] = segments.start_of_data(len(self._values) > 0)
        header["connection"], header["sequence"] = self._connection, np.arange(first, stop)
        header["message"], header["count"] = self.number, self.count
        header["index"] = np.arange(start, start + len(rows))
        rows[:, :HEADER_SIZE] = header.view(np.uint8).reshape(len(rows), -1)
        return Payloads(rows, sizes)

    def _marked(self, first: int, stop: int) -> Payloads:
        start = first - self.first - self.exact
        rows, sizes = _rows(self._values, start, stop - first, VALUES_HEADER_SIZE, VALUES)
        header = np.zeros(len(rows), segments.VALUES_HEADERS)
        header["start"] = segments.START_OF_VALUES
        header["connection"], header["sequence"] = self._connection, np.arange(first, stop)
        rows[:, :VALUES_HEADER_SIZE] = header.view(np.uint8).reshape(len(rows), -1)
        return Payloads(rows, sizes)


def _rows(source: Bytes, start: int, count: int, header: int, size: int) -> tuple[Bytes, Ints]:
    """Return pieces `start` and on of `source`, `size` bytes each, behind room for a header; and
    the datagrams' sizes.
    """
    some = source[start * size : (start + count) * size]
    whole, rest = divmod(some.size, size)
    rows = np.empty((count, header + (size if whole else rest)), np.uint8)
    if whole:
        rows[:whole, header:] = some[: whole * size].reshape(whole, size)
    sizes = np.full(count, header + size)
    if whole < count:
        rows[whole, header:] = 0
        rows[whole, header : header + rest] = some[whole * size :]
        sizes[whole] = header + rest
    return rows, sizes


ARRIVED, FLIGHT, LOST = 0, 1, 2


@njit(cache=True, nogil=True)
def take(  # type: ignore[no-untyped-def]
    state, attempts, sent_at, transmission, oldest, next, stop, window, transmissions, now, chosen
):
    """Choose the segments to send now: those that were lost, then new ones below `stop`.

    `window` is how many may be in flight; transmissions, how many there were. Writes the sequence
    numbers to chosen, int64[window's largest], and returns how many there are, the new `next`, how
    many of them were lost, and when the first of those was sent, -1 for none.
    """
    size, since = len(state), np.int64(-1)
    room = window
    for sequence in range(oldest, next):
        if state[sequence % size] == FLIGHT:
            room -= 1
    count = 0
    for sequence in range(oldest, next):
        if count < room and state[sequence % size] == LOST:
            chosen[count] = sequence
            count += 1
            sent = sent_at[sequence % size]
            since = sent if since < 0 else min(since, sent)
    lost = count
    new = max(min(next + room - count, stop, oldest + size), next)
    for sequence in range(next, new):
        attempts[sequence % size] = 0
        chosen[count] = sequence
        count += 1
    for i in range(count):
        slot = chosen[i] % size
        state[slot], sent_at[slot] = FLIGHT, now
        attempts[slot] += 1
        transmission[slot] = transmissions + 1 + i
    return count, new, lost, since


@njit(cache=True, nogil=True)
def arrive(  # type: ignore[no-untyped-def]
    state, attempts, sent_at, transmission, oldest, next, before, beyond
):
    """Mark the segments as arrived that an acknowledgement covers.

    Those are all before number `before`, and `before` + 1 + i for each bit i of beyond, uint8[n],
    lowest bits first. Of the segments that were in flight until now, returns how many there are,
    the last transmission, and when the last one was sent that was sent once, -1 for none, and the
    last of all; then the new `oldest`.
    """
    size = len(state)
    arrived, newest, once, last = 0, np.int64(-1), np.int64(-1), np.int64(-1)
    for sequence in range(oldest, next):
        ahead = sequence - before - 1
        covered = sequence < before
        if 0 <= ahead < 8 * len(beyond):
            covered = beyond[ahead // 8] >> (ahead % 8) & 1 != 0
        if not covered:
            continue
        slot = sequence % size
        if state[slot] == FLIGHT:
            arrived += 1
            newest, last = max(newest, transmission[slot]), max(last, sent_at[slot])
            if attempts[slot] == 1:
                once = max(once, sent_at[slot])
        state[slot] = ARRIVED
    while oldest < next and state[oldest % size] == ARRIVED:
        oldest += 1
    return arrived, newest, once, last, oldest


@njit(cache=True, nogil=True)
def overtake(state, transmission, oldest, next, limit):  # type: ignore[no-untyped-def]
    """Mark as lost what is in flight since transmission `limit` or before.

    Returns the last of their transmissions, -1 if there are none.
    """
    last = np.int64(-1)
    for sequence in range(oldest, next):
        slot = sequence % len(state)
        if state[slot] == FLIGHT and transmission[slot] <= limit:
            state[slot] = LOST
            last = max(last, transmission[slot])
    return last


@njit(cache=True, nogil=True)
def in_flight(state, sent_at, oldest, next):  # type: ignore[no-untyped-def]
    """Return how many segments are in flight, when they were sent first and last, and the number of
    the last one; -1 if there is none."""
    count, first, last, number = 0, np.int64(-1), np.int64(-1), -1
    for sequence in range(oldest, next):
        sent = sent_at[sequence % len(state)]
        if state[sequence % len(state)] == FLIGHT:
            first = sent if first < 0 else min(first, sent)
            last, number = max(last, sent), sequence
            count += 1
    return count, first, last, number


_OVERTAKEN = 3
_FIRST_WINDOW, _LEAST_WINDOW = 16.0, 2.0
_FIRST_RTO, _LEAST_RTO, _MOST_RTO = 20_000_000, 5_000_000, 2_000_000_000  # ns
_LEAST_BY_LINKS = 1_000_000


def timeouts(granularity: int, trip: int) -> tuple[int, int]:
    """Return a stream's timeout before anything is measured, and its least one, ns.

    granularity: by how much hosts may be late; trip: the links' longest round trip, 0 where it is
    not known. After short messages, or those that met no others, an estimate would be below it.
    """
    if not trip:
        return max(_FIRST_RTO, 2 * granularity), max(_LEAST_RTO, granularity)
    least = max(trip, granularity, _LEAST_BY_LINKS)
    return max(3 * trip, trip + 2 * granularity, least), least


@dataclass(frozen=True, slots=True)
class Resent:
    """Segments that are sent again, the first of them of message `message`.

    cause: "timeout", "probe", or "overtaken" by the acknowledgements of later ones. since: when the
    first of them was sent before, ns.
    """

    segments: int
    message: int
    cause: str
    since: int


class Outgoing:
    """The segments for one peer: send(), then take() those that may be sent; deadline() is the time
    to call timeout(). window: the most that are in flight; granularity, trip: see timeouts().
    probes: whether tail loss probes are sent."""

    def __init__(
        self,
        connection: int,
        granularity: int = 0,
        window: int = BEYOND,
        trip: int = 0,
        probes: bool = False,
    ) -> None:
        self.connection = connection
        self.resent: Resent | None = None
        """The segments of the last take() that had been sent before."""
        self._cause = "timeout"
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
        self._timeout = RetransmissionTimeout(*timeouts(granularity, trip), _MOST_RTO)
        self._first_probe, self._least_probe = timeouts(0, trip)
        self._probes = self._may_probe = probes
        self._in_vain = 0  # probes since a segment was last acknowledged
        self._probe = 0  # the transmission that was the last probe
        self._heard = 0  # when a segment was last acknowledged

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
        place = (*self._columns, *window, self._transmissions, now, self._chosen)
        count, self._next, again, since = take(*place)
        if again and self._cause == "probe":
            self._probe = self._transmissions + int(again)
        self._transmissions += count
        self.resent = None
        if again:
            first = self._message_of(int(self._chosen[0])).number
            self.resent = Resent(int(again), first, self._cause, int(since))
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
        count, first, last, _ = in_flight(self._state, self._sent_at, self._oldest, self._next)
        if not count:
            return None
        return min(int(first) + self._timeout.value, self._probe_time(count, last))

    def _probe_time(self, count: int, last: int) -> int:
        """Return when the last of `count` segments in flight, sent at `last` or before, is sent
        again, each time after twice the time; NEVER after a timeout, until something arrives."""
        if not self._may_probe or count > self._window:
            return NEVER
        measured = self._timeout.measured
        wait = self._timeout.prompt(self._least_probe) if measured else self._first_probe
        return max(int(last), self._heard) + (wait << self._in_vain)

    def timeout(self, now: int) -> tuple[int, str] | None:
        """Mark overdue segments as lost, or the last one, for a probe.

        Return how often that overdue one was sent which was sent most often, and which it is, for
        people; None if there are none.
        """
        sent = np.arange(self._oldest, self._next)
        slots = sent % BEYOND
        late = self._sent_at[slots] + self._timeout.value <= now
        overdue = sent[late & (self._state[slots] == FLIGHT)]
        if not len(overdue):
            place = (self._state, self._sent_at, self._oldest, self._next)
            count, _, last, number = in_flight(*place)
            if count and self._probe_time(count, last) <= now:
                self._state[number % BEYOND] = LOST
                self._cause = "probe"
                self._in_vain += 1
            return None
        self._may_probe = False
        self._state[overdue % BEYOND] = LOST
        self._cause = "timeout"
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
        arrived, newest, once, last, self._oldest = arrive(
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
        self._heard, self._may_probe, self._in_vain = now, self._probes, 0
        self._grow(arrived)
        place = (self._transmission, self._oldest, self._next)
        limit = newest - _OVERTAKEN
        if newest >= self._probe:  # what was sent before it was sent long before
            limit = max(limit, self._probe - 1)
        overtaken = overtake(self._state, *place, limit)
        if overtaken >= 0:
            self._cause = "overtaken"
        self._lost(overtaken)

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
