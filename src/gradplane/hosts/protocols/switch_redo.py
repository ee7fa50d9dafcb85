"""The packets that a worker repeats after a switch lost its state and the job has a later epoch.

With a full quorum, the turns of two workers in a chain of chunks differ by one at most. So besides
the chunk of its turn, which waits for a result anyway, the worker sends the one before again, as
others may lack its result, and the norm of a partition whose first chunk has no result yet, though
this worker has the common one. docs/several-switches.md has the rules, and the model they are from.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from gradplane._kernels import njit
from gradplane.hosts.protocols.chunk_table import Ints
from gradplane.hosts.protocols.switch_packets import write_checksum
from gradplane.hosts.protocols.switch_reduce import SwitchReduce
from gradplane.hosts.protocols.switch_states import PartitionState
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.payloads import Bytes

_EPOCH_AT = aggregation.EPOCH_AT


@njit(cache=True, nogil=True)
def restamp(packets, epoch):  # type: ignore[no-untyped-def]
    """Write another epoch, and the checksum, into the headers of packets without a path,
    uint8[n, bytes]."""
    for row in packets:
        row[_EPOCH_AT] = epoch
        write_checksum(row)


class Redo:
    """The last packet of each chain of chunks, and what is to be sent again until it is answered.

    turns: int64[window], by chain the chunk whose turn it is.
    """

    def __init__(self, turns: Ints, packet: int) -> None:
        """Set up; packets of codes have `packet` bytes."""
        self._turns = turns
        self._kept = np.zeros((len(turns), packet), np.uint8)  # by chain: of delivered reduces
        self._numbers = np.full(len(turns), -1)  # of those chunks
        self._chunks: dict[int, Bytes] = {}  # by number: its packet
        self._norms: dict[int, int] = {}  # by the number of a partition's first chunk: its norm
        self.deadline: int | None = None
        """When all of it is sent once more; None where there is nothing."""

    def keep(self, reduce: SwitchReduce) -> None:
        """Keep the last packets of a reduce that is delivered: its own are forgotten."""
        chunks = reduce.stop - reduce.first
        last = np.arange(max(chunks - len(self._turns), 0), chunks)
        chains = (reduce.first + last) % len(self._turns)
        newer = reduce.first + last > self._numbers[chains]
        if newer.any():
            self._kept[chains[newer]] = reduce.packets(last[newer])
            self._numbers[chains[newer]] = reduce.first + last[newer]

    def begin(self, reduces: Iterable[SwitchReduce], epoch: int) -> None:
        """Give all packets the epoch, and begin to send again."""
        restamp(self._kept, epoch)
        self._chunks = {
            int(number): self._kept[chain : chain + 1]
            for chain, number in enumerate(self._numbers)
            if 0 <= number == self._turns[chain] - len(self._turns)
        }
        self._norms = {}
        for reduce in reduces:
            for part in reduce.parts:
                if part.stage is PartitionState.SENDING:
                    restamp(part.packets, epoch)
                    if part.attempts:  # else its codec needs no common norm
                        self._norms[part.first] = part.own_norm
            before = self._turns - len(self._turns)
            for number in before[(before >= reduce.first) & (before < reduce.stop)].tolist():
                self._chunks[number] = reduce.packets(np.array([number - reduce.first]))

    def pending(self) -> tuple[list[Bytes], Iterator[tuple[int, int]]]:
        """Return what is still to be sent again: packets, and numbers and values of norms."""
        for number in [n for n in self._chunks if self._turn(n) > n + len(self._turns)]:
            del self._chunks[number]
        for number in [n for n in self._norms if self._turn(n) > n]:
            del self._norms[number]
        return list(self._chunks.values()), iter(self._norms.items())

    def answered(self, numbers: Iterable[int]) -> None:
        """Forget chunks of which a result has come, in the present epoch."""
        for number in numbers:
            self._chunks.pop(number, None)
            self._norms.pop(number, None)

    def answered_norm(self, number: int) -> None:
        """Forget the norm of a partition, of which a result has come."""
        self._norms.pop(number, None)

    def overtaken(self, number: int, slots: int) -> None:
        """Forget the chunk whose slot has a later one, which says that nobody waits for it."""
        for earlier in [n for n in self._chunks if n < number and (number - n) % slots == 0]:
            del self._chunks[earlier]

    def _turn(self, number: int) -> int:
        return int(self._turns[number % len(self._turns)])
