"""One reduce through the switch: its partitions, the table of its chunks, the sums so far."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._addresses import Record, Whole, address_of, place_of
from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest, digest_by, function
from gradplane.hosts.protocols import chunk_table
from gradplane.hosts.protocols.chunk_table import Ints, Table
from gradplane.hosts.protocols.common_sums import CommonSums
from gradplane.hosts.protocols.device_vector import DeviceVector, digest_of
from gradplane.hosts.protocols.once import Common, Once
from gradplane.hosts.protocols.partition import NO_CODES, WorkerPartition
from gradplane.hosts.protocols.results import Floats, Reduced, Summed, SummedLanes, is_integers
from gradplane.hosts.protocols.switch_packets import indices_size
from gradplane.hosts.protocols.switch_states import PartitionState
from gradplane.hosts.wire.payloads import Bytes

REDUCE = np.dtype(
    [(name, np.int64) for name in ("table", "chunks", "first", "parts", "ends", "norms", "sums")]
    + [(name, np.int64) for name in ("known", "packets", "sending", "left", "own")]
)
"""A reduce as the kernel of fast_results sees it. table, ends, norms, sums, known: addresses of its
arrays, of `chunks` or `parts` rows. packets: the address of int64[parts], where each partition's
first payload is, 0 while it is not sending; sending: how many are. own: the address of int64[2],
from which chunk up to which this worker needs the sums."""


class SwitchReduce(Record):
    """Reduce `ticket` of `vector`, float32[n], in the job's chunks `first` to `stop` - 1.

    table: a row a chunk (`chunk_table.ROW`). own: int64[2], from which chunk up to which the worker
    needs the sums: of a reduce-scatter its part. sums, known: [chunks, lanes] and [chunks], see
    CommonSums; after settle() own sums are 0 where missing. norms: int64[partitions], the workers'
    common norms as float32 bits, -1 where not known. left: chunks that have not ended. codes: the
    digest of all partitions' codes, once they are encoded.
    """

    layout = REDUCE
    sending, left = Whole(), Whole()

    def __init__(
        self,
        job: JobConfig,
        worker: int,
        ticket: int,
        tensor: int,
        vector: Floats,
        parts: list[WorkerPartition],
    ) -> None:
        self.ticket, self.tensor, self.vector, self.parts = ticket, tensor, vector, parts
        self.first = parts[0].first if parts else 0
        self.stop = parts[-1].stop if parts else 0
        chunks = self.stop - self.first
        self.table: Table = chunk_table.make(chunks)
        self._worker, needed = worker, [part for part in parts if part.needed_by(worker)]
        own = (needed[0].first, needed[-1].stop) if needed else (self.first, self.first)
        self.own: Ints = np.array(own, np.int64) - self.first
        self.ends: Ints = np.array([part.stop - self.first for part in parts], np.int64)
        self.norms: Ints = np.full(len(parts), -1, np.int64)
        self._device = vector if isinstance(vector, DeviceVector) else None
        self.codes: str | None = None
        # By row: how often the switch was asked about a chunk, and when.
        self.asked: dict[int, tuple[int, int]] = {}
        self._workers = job.workers
        self._packets: Ints = np.zeros(len(parts), np.int64)
        self._rows: Bytes = np.empty((chunks, indices_size(job.transport)), np.uint8)
        for part in parts:
            part.packets = self._rows[part.first - self.first : part.stop - self.first]
        super().__init__(
            table=address_of(self.table), chunks=chunks, first=self.first, parts=len(parts),
            ends=address_of(self.ends), norms=address_of(self.norms),
            packets=address_of(self._packets), left=chunks, own=address_of(self.own),
        )  # fmt: skip
        self._use(CommonSums.of(job, self.first, chunks))

    def _use(self, common: CommonSums) -> None:
        self._common, self.sums, self.known = common, common.values, common.known
        for name in ("sums", "known"):
            self.words[place_of(REDUCE, name)] = address_of(getattr(self, name))

    def separate(self) -> None:
        """Go on with sums of this worker's own, as it has others than the ones before it."""
        self._use(self._common.copy(self.table["count"] > 0))

    def open(self, part: WorkerPartition) -> None:
        """Let a partition's chunks take their turns, as their payloads are made."""
        self._packets[part.index] = address_of(part.packets)
        self.sending += 1
        self.rows_of(part)["open"] = 1
        if self.sending == len(self.parts):
            self.codes = digest(*(part.codes for part in self.parts))
            for part in self.parts:
                part.codes = NO_CODES  # they are in the packets

    def part_of(self, index: int) -> WorkerPartition:
        """Return the partition of a chunk, by its index."""
        return self.parts[int(np.searchsorted(self.ends, index, side="right"))]

    def rows_of(self, part: WorkerPartition) -> Table:
        """Return a partition's rows of the table."""
        return self.table[part.first - self.first : part.stop - self.first]

    @property
    def any_silent(self) -> bool:
        """True if some partition is silent."""
        return any(part.stage is PartitionState.SILENT for part in self.parts)

    def silent(self, indices: Ints) -> npt.NDArray[np.bool_]:
        """Return which of the chunks are of a silent partition, bool[k]."""
        silent = [part.stage is PartitionState.SILENT for part in self.parts]
        return np.array(silent)[np.searchsorted(self.ends, indices, side="right")]

    def packets(self, indices: Ints) -> Bytes:
        """Return the payloads of some chunks, whose partitions are encoded, as uint8[k, bytes]."""
        return self._rows[indices]

    def settle(self) -> None:
        """Keep the sums, which no packet changes any more, once for all workers that have them."""
        if (self.table["count"] == 0).any():  # what others have is 0 here
            self.separate()
        self.sums = _common_sums(self.sums)

    def result(self) -> Reduced:
        """Return what is delivered."""
        means = []
        for part, norm in zip(self.parts, self.norms.tolist(), strict=True):
            rows = slice(part.first - self.first, part.stop - self.first)
            if part.needed_by(self._worker):
                means.append(part.decode(self.sums[rows], self.table["count"][rows], norm))
            else:
                means.append(part.zeros())
        counts = self.table["count"].astype(np.int64)
        needed = [part for part in self.parts if part.needed_by(self._worker)]
        flat = [
            self.sums[part.first - self.first : part.stop - self.first].reshape(-1)[: part.lanes]
            for part in needed
        ]
        reduced = Reduced(
            mean=self._device.joined(means) if self._device else _joined(*means),
            counts=counts,
            missed=int(np.count_nonzero(counts[slice(*self.own)] == 0)),
            gradient=digest_of(self.vector),
            codes=self.codes or digest(*(part.codes for part in self.parts)),
            sums=_digest(function(), *flat),
        )
        if is_integers(self.vector):
            return self._of_integers(reduced)
        parts = zip(needed, flat, strict=True)
        summed = tuple((int(self.norms[part.index]), part.seed, sums) for part, sums in parts)
        return SummedLanes(**vars(reduced), parts=summed)

    def _of_integers(self, reduced: Reduced) -> Summed:
        """Return the result with the sums that the partitions of integers decode to."""
        total: npt.NDArray[Any] = reduced.mean
        mean = (total / self._workers).astype(np.float32)
        return Summed(**vars(replace(reduced, mean=mean)), total=total)


_digest = Once(digest_by)
_common_sums = Common()


@Once
def _joined(*pieces: Floats) -> Floats:
    """Return the pieces as one vector: a copy if there are several."""
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
