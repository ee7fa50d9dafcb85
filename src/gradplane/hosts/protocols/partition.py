"""One partition of a vector reduced through the switch: its norm, chunks, codes and sums."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import Codec
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.job_codec import reduce_seed
from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.protocols.switch_states import (
    CHUNK,
    PARTITION,
    ChunkEvent,
    ChunkState,
    PartitionEvent,
    PartitionState,
    after,
)
from gradplane.hosts.wire import aggregation

Sums = npt.NDArray[np.integer[Any]]


@dataclass(slots=True, eq=False)
class Chunk:
    """The codes of one packet. `number` counts over the job's life."""

    number: int
    slot: int
    round: int
    part: "WorkerPartition"
    state: ChunkState = ChunkState.WAITING
    attempts: int = 0
    notices: int = 0
    count: int = 0  # workers in the result; 0: none in hand

    def step(self, event: ChunkEvent) -> ChunkState:
        """Enter the state that `event` leads to; return the one that was left."""
        left, self.state = self.state, after(CHUNK, self.state, event)
        return left

    @property
    def awaits_turn(self) -> bool:
        """True while its turn is still to come."""
        return self.state in (ChunkState.WAITING, ChunkState.EARLY)

    @property
    def has_result(self) -> bool:
        """True once its result is in hand."""
        return self.state in (ChunkState.EARLY, ChunkState.DONE)

    @property
    def index(self) -> int:
        """The chunk's index in its partition."""
        return self.number - self.part.first


class WorkerPartition:
    """Partition `index` of a reduce: values x, float32[n], as chunks `first`, `first + 1`, ... of
    the job.

    `state` is the codec's, before encode() or fall_silent() and after.
    """

    def __init__(
        self,
        job: JobConfig,
        codec: Codec,
        ticket: int,
        index: int,
        first: int,
        x: Floats,
        state: Any,
    ) -> None:
        self._codec, self._x, self.state = codec, x, state
        self.ticket, self.index, self.first = ticket, index, first
        self._seed = reduce_seed(job, ticket, index)
        self._sum_bits, self._width = job.sum_bits, aggregation.LANES[job.sum_bits]
        self._lanes = codec.lanes(x.size)
        numbers = range(first, first - (-self._lanes // self._width))
        self.chunks = [Chunk(c, c % job.slots, c // job.slots + 1, self) for c in numbers]
        self.stage = PartitionState.NEW
        self.norm: int | None = None  # float32 bits
        self.norm_attempts = 0
        self.codes = np.empty(0, np.uint8)
        self._sums = np.zeros(self._width * len(self.chunks), f"u{job.sum_bits // 8}")

    def step(self, event: PartitionEvent) -> PartitionState:
        """Enter the stage that `event` leads to; return the one that was left."""
        left, self.stage = self.stage, after(PARTITION, self.stage, event)
        return left

    @property
    def sums(self) -> Sums:
        """The sums, one a lane; 0 where missing."""
        return self._sums[: self._lanes]

    def local_norm(self) -> int | None:
        """Return this worker's norm, as float32 bits; None if the codec needs none."""
        stat = self._codec.local(self._x, self.state)
        return None if stat is None else aggregation.norm_bits(stat[0])

    def encode(self, norm: int | None, worker: int) -> None:
        """Compute the codes; `norm` is the workers' common norm, None if the codec needs none."""
        self.norm = norm or 0
        shared = None if norm is None else _shared(norm)
        self.codes, self.state = self._codec.codes(self._x, shared, self._seed, self.state, worker)

    def fall_silent(self) -> None:
        """Send nothing, as the norm never arrived: all of x stays in the error feedback."""
        self.state = self._codec.skip(self._x, self.state)

    def indices(self, chunk: Chunk) -> bytes:
        """Return the chunk's INDICES body."""
        start = chunk.index * self._width
        return aggregation.pack_indices(self.codes[start : start + self._width], self._sum_bits)

    def refusal(self, header: aggregation.Header, sums: Sums) -> str | None:
        """Return the reason why a SUMS packet cannot be this partition's, or None."""
        if not aggregation.is_norm(header.norm) or self.norm not in (None, header.norm):
            return "another norm"
        if int(sums.max()) > self._codec.table[-1] * header.worker:
            return "sums beyond the table"
        return None

    def accept(self, chunk: Chunk, header: aggregation.Header, sums: Sums) -> None:
        """Store a chunk's result."""
        start = chunk.index * self._width
        self._sums[start : start + self._width] = sums
        chunk.count = header.worker
        self.norm = header.norm

    def decode(self) -> Floats:
        """Return the estimate of the mean from the results in hand, float32[n]."""
        counts = np.array([chunk.count for chunk in self.chunks])
        if self.norm is None or not counts.any():
            return np.zeros_like(self._x)
        lanes = np.repeat(counts, self._width)[: self._lanes]
        shared = _shared(self.norm)
        return self._codec.decode_sum(self.sums, self._x.size, lanes, shared, self._seed)


def _shared(norm: int) -> Floats:
    return np.array([aggregation.norm_value(norm)], np.float32)
