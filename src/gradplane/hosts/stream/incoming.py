"""The receiving half of a Stream from one peer: order, duplicates, reassembly, acknowledgements."""

from gradplane.hosts.stream.segments import BEYOND, SEGMENT, Ack, DataSegment, ValuesSegment

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
