"""One partition of a vector reduced through the switch: its norm, its codes and their packets."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane.codecs import ErrorFeedback, Partition
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.device_vector import DeviceVector, zeros_of
from gradplane.hosts.protocols.job_codec import reduce_seed
from gradplane.hosts.protocols.once import Once
from gradplane.hosts.protocols.results import Floats, Sums
from gradplane.hosts.protocols.switch_states import PARTITION, PartitionEvent, PartitionState, after
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.payloads import Bytes


class SummedCodes(Protocol):
    """The part of a codec that a reduce through the switch uses; see codecs.Codec."""

    def partitions(self, n: int) -> tuple[Partition, ...]: ...
    def lanes(self, n: int) -> int: ...
    def start(self, n: int) -> Any: ...
    def skip(self, x: Any, state: Any = None) -> Any: ...
    def local(self, x: Any, state: Any = None) -> Any: ...
    def codes(
        self, x: Any, shared: Any, seed: int, state: Any = None, worker: int = 0
    ) -> tuple[npt.NDArray[np.uint8], Any]: ...
    def deferred(self, state: Any) -> tuple[Deferred[Any], ...]: ...
    def decode_sum(self, sums: Any, n: int, count: Any, shared: Any, seed: int = 0) -> Any: ...


Encoding = Deferred[tuple[npt.NDArray[np.uint8], Any]]
"""The codes, and the codec's state after them."""
_LARGE = 1 << 12  # values
NO_CODES = np.empty(0, np.uint8)


class WorkerPartition:
    """Partition `index` of a reduce: values x, float32[n], in the job's chunks `first` to
    `stop` - 1.

    `state` is the codec's, before encode() or fall_silent() and after; `seed` that of its codes;
    `owner` the only worker that needs the sums, None where all do.
    Those of the norm: `asked_at` (first) and `sent_at` (last), `deadline`, `attempts`.
    """

    def __init__(
        self,
        job: JobConfig,
        codec: SummedCodes,
        ticket: int,
        index: int,
        first: int,
        x: Floats,
        state: Any,
        owner: int | None = None,
    ) -> None:
        self._codec, self._x, self.state, self.owner = codec, x, state, owner
        self._coded = x  # with what the codec adds, from local_norm() to encode()
        self.index, self.first = index, first
        self.seed = reduce_seed(job, ticket, index)
        self.lanes = codec.lanes(x.size)
        self.stop = first - (-self.lanes // aggregation.LANES[job.transport.sum_bits])
        self.stage = PartitionState.NEW
        self.asked_at = self.sent_at = self.deadline = self.attempts = 0
        self.own_norm = 0  # float32 bits
        self.codes = NO_CODES
        self._prepared: tuple[int, Encoding] | None = None  # and its norm
        self.packets: Bytes  # payloads of the chunks, uint8[chunks, bytes], set by the reduce

    def needed_by(self, worker: int) -> bool:
        """Return whether a worker needs the sums."""
        return self.owner is None or self.owner == worker

    def step(self, event: PartitionEvent) -> PartitionState:
        """Enter the stage that `event` leads to; return the one that was left."""
        left, self.stage = self.stage, after(PARTITION, self.stage, event)
        return left

    def local_norm(self) -> int | None:
        """Return this worker's norm, as float32 bits; None if the codec needs none."""
        if isinstance(self._codec, ErrorFeedback):
            self._coded, self.state = self._codec.combined(self._x, self.state)
        stat = self._codec.local(self._coded, self.state)
        return None if stat is None else aggregation.norm_bits(stat[0])

    def encode(self, norm: int | None, worker: int) -> None:
        """Compute the codes; `norm` is the workers' common norm, None if the codec needs none."""
        expected, work = self._prepared or (None, None)
        if work is None or norm != expected:
            work = self._encoding(norm, worker)
        self.codes, self.state = work.get()
        self._prepared, self._coded = None, self._x

    def prepared(self, norm: int, worker: int) -> Encoding | None:
        """Return the encoding with this norm, which another thread may begin; None where it is not
        due, or is little, or may change a state that another norm would need."""
        waits = self.stage is PartitionState.NORM and self.state is None
        if not waits or self._x.size < _LARGE:
            return None
        self._prepared = norm, self._encoding(norm, worker)
        return self._prepared[1]

    def _encoding(self, norm: int | None, worker: int) -> Encoding:
        shared = None if norm is None else _shared(norm)
        return Deferred(self._codec.codes, self._coded, shared, self.seed, self.state, worker)

    def deferred(self) -> tuple[Deferred[Any], ...]:
        """Return what encode() put off."""
        return self._codec.deferred(self.state)

    def fall_silent(self) -> None:
        """Send nothing, as the norm never came: all of x stays in the error feedback."""
        self.state = self._codec.skip(self._coded, self.state)

    def decode(self, sums: Sums, counts: npt.NDArray[np.uint16], norm: int) -> Floats:
        """Return the estimate of the mean, float32[n]; of integers, the sum.

        sums: [chunks, lanes], 0 where missing. counts: the workers in each chunk's result, 0 where
        it is missing. norm: as float32 bits, -1 where it never came.
        """
        most = counts.max(initial=0)
        if norm < 0 or not most:
            return self.zeros()
        count: int | npt.NDArray[np.int64] = int(most)
        if counts.min() != most:
            count = np.repeat(counts.astype(np.int64), sums.shape[1])[: self.lanes]
        flat = sums.reshape(-1)[: self.lanes]
        decode = _sum_decoded if isinstance(self._x, DeviceVector) else _decode_sum
        return decode(self._codec, flat, self._x.size, count, _shared(norm), self.seed)

    def zeros(self) -> Floats:
        """Return what stands for the mean where nothing is known of it, float32[n]."""
        zeros: Floats = zeros_of(self._x, self._x.size)
        return zeros


def _sum_decoded(codec: SummedCodes, *arguments: Any) -> Floats:
    found: Floats = codec.decode_sum(*arguments)
    return found


_decode_sum = Once(_sum_decoded)


def _shared(norm: int) -> Floats:
    return np.array([norm], np.uint32).view(np.float32)
