"""The receiving half of a Stream from one peer: order, duplicates, reassembly, acknowledgements."""

from gradplane.hosts.segments import BEYOND, SEGMENT, Ack, Data

MAX_MESSAGE = 1 << 28  # bytes


class Incoming:
    """Segments of one of the peer's connections. Holds at most 256 segments out of order and one
    message.
    """

    def __init__(self, connection: int, receiver: int) -> None:
        self.connection, self._receiver = connection, receiver
        self._next = 0
        self._early: dict[int, Data] = {}
        self._message: tuple[int, int] | None = None  # number and segments of the one begun
        self._pieces: list[bytes] = []
        self._unacknowledged = 0

    def receive(self, data: Data) -> tuple[list[bytes], Ack | None]:
        """The messages that this segment completes, and what to acknowledge now, if anything.

        Every second segment in order is acknowledged, a message's last, and at once what is a
        duplicate or out of order."""
        in_order = data.sequence == self._next and not self._early
        if 0 <= data.sequence - self._next <= BEYOND and data.count * SEGMENT <= MAX_MESSAGE:
            self._early[data.sequence] = data
        messages = []
        while segment := self._early.pop(self._next, None):
            self._next += 1
            messages += self._append(segment)
        self._unacknowledged += 1
        if in_order and not messages and self._unacknowledged < 2:
            return messages, None
        self._unacknowledged = 0
        return messages, self._acknowledgement()

    def _append(self, data: Data) -> list[bytes]:
        """The message, if this is its last piece. Pieces that do not fit together are dropped."""
        if data.index == 0:
            self._pieces, self._message = [], (data.message, data.count)
        if self._message != (data.message, data.count) or data.index != len(self._pieces):
            return []
        self._pieces.append(data.payload)
        if data.index < data.count - 1:
            return []
        message, self._pieces = b"".join(self._pieces), []
        return [message]

    def _acknowledgement(self) -> Ack:
        beyond = sum(1 << sequence - self._next - 1 for sequence in self._early)
        return Ack(self.connection, self._receiver, self._next, beyond)
