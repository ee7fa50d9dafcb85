"""A message on its way out, cut into the payloads of datagrams."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradplane.hosts.stream import segments
from gradplane.hosts.stream.segments import HEADER_SIZE, SEGMENT, VALUES, VALUES_HEADER_SIZE
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
    rows = np.zeros((count, header + (size if whole else rest)), np.uint8)
    if whole:
        rows[:whole, header:] = some[: whole * size].reshape(whole, size)
    sizes = np.full(count, header + size)
    if whole < count:
        rows[whole, header : header + rest] = some[whole * size :]
        sizes[whole] = header + rest
    return rows, sizes
