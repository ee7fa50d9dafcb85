"""OptiReduce (NSDI 2025, arXiv 2310.06993): sums between workers, in bounded time, with losses.

Transpose AllReduce: the vector is rotated (randomized Hadamard transform) and cut into chunks of
one packet each, and these into a block for each worker. In the first stage everybody sends each
worker the parts of its block. After it a worker takes the mean of those that came and of its own,
added in the workers' order, and in the second stage it sends the means to all others. Nobody sends
anything again, and both stages end in time (`time_limits`). A chunk whose mean did not come counts
as 0 before the rotation is undone, so that what is lost spreads over all values.

The first `observed` reduces of each size go by streams, from which the limits follow. A later
packet than its stage is dropped, and counted; one that is early waits for its reduce. A worker that
is late gives nothing to the others' means, and gets theirs at once, as all of it has come.

Sources: the authors' code (OptiReduce/benchmark, gloo_uhc.patch: both stages, the order of peers,
1,024 bytes a packet, limits) and summaries of the paper. There a lost part counts as 0 of a sum of
all, and a lost mean is this worker's own value; means of those that came are unbiased under the
rotation. Dynamic incast and rate control are not here: each worker begins with another peer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane import codecs
from gradplane.codecs import CodecError
from gradplane.hosts.config import JobConfig, UnsuitableCodecError
from gradplane.hosts.digest import digest
from gradplane.hosts.packed_columns import pack
from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Deliver,
    Peer,
    Record,
    Send,
    SendMessage,
    SetTimer,
)
from gradplane.hosts.protocols.device_vector import (
    coder_of,
    decoder_of,
    digest_of,
    divided,
    rotated_of,
    unrotated_of,
    zeros_of,
)
from gradplane.hosts.protocols.job_codec import push_codec, reduce_seed
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.phases import Watch, unwatched
from gradplane.hosts.protocols.results import Floats, Reduced, ReduceError, checked_vector
from gradplane.hosts.protocols.time_limits import TimeLimits
from gradplane.hosts.wire import aggregation, bounded
from gradplane.hosts.wire.bounded import SIZE, Type
from gradplane.hosts.wire.payloads import Bytes, Payloads

PLAIN = ("float32", "float16", "bfloat16")
"""The codecs that send each value by itself, in as many bytes."""

_TAIL = 100
"""The last packets of a block are one in so many, at least one."""
_KINDS = {Kind.PARTIAL_BLOCK: Type.PART, Kind.WHOLE_BLOCK: Type.MEAN}


def plain_codec(job: JobConfig) -> codecs.Codec:
    """Return the workers' codec; UnsuitableCodecError for one that is not of PLAIN."""
    if job.coding.codec[0] not in PLAIN:
        raise UnsuitableCodecError(
            f"codec {job.coding.codec[0]}: a lost packet leaves whole values of the others only"
            f" where each value has bytes of its own: use {', '.join(PLAIN)}",
            "codec",
        )
    return push_codec(job.changed(error_feedback=False))


@dataclass
class _Reduce:
    """A reduce of a rotated vector in chunks `first` to `stop` - 1, of which `own` are this
    worker's to sum.

    parts: uint8[workers, own, SIZE], means: uint8[chunks, SIZE]: values' bytes as they came, or 0,
    which decodes to 0. has: by type, which came, bool[workers, own] and bool[chunks]. who:
    uint64[chunks], the workers in each mean.
    """

    ticket: int
    vector: Floats
    first: int
    own: range
    parts: Bytes
    means: Bytes
    who: npt.NDArray[np.uint64]
    at: npt.NDArray[np.int64]  # ns, when a mean came
    has: dict[Type, npt.NDArray[np.bool_]]
    observed: bool
    begun: int  # ns
    started: int  # ns, of the stage
    stage: Type = Type.PART
    last: int = 0  # ns, when the last packet of the stage came
    tails: dict[Type, set[int]] = field(default_factory=lambda: defaultdict(set))
    sent: list[bytes] = field(default_factory=list)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.means)


class BoundedWorker:
    """One worker's reduces, several in flight at once.

    Actions: Send, SendMessage, SetTimer, CancelTimer, Deliver(ticket, Reduced), Record (arrivals).
    `refused` counts packets that were foreign, late or again. Raises UnsuitableCodecError.
    """

    def __init__(self, job: JobConfig, worker: int, granularity: int = 0) -> None:
        """Set up worker number `worker`; no limit is below `granularity`, ns."""
        self._job, self._worker = job, worker
        self._codec, self._granularity = plain_codec(job), max(granularity, 1)
        self._values = SIZE // (len(self._codec.encode(np.zeros(1, np.float32))[0]))
        self.watch: Watch = unwatched
        self.refused: Counter[str] = Counter()
        self._reduces: list[_Reduce] = []
        self._limits: dict[int, dict[Type, TimeLimits]] = {}  # by size
        self._sizes: Counter[int] = Counter()  # reduces begun, by size
        self._allocated = 0  # chunks so far
        self._early: dict[int, list[tuple[np.void, Bytes]]] = {}  # by chunk
        self._early_blocks: dict[int, list[tuple[int, Message]]] = {}  # by ticket

    def save(self) -> None:
        """Return what later reduces need of the earlier ones: nothing."""

    def restore(self, saved: None) -> None:
        """Go on where save() was called; times are observed anew."""

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start reducing finite float32[n]. All workers use the same tickets, in the same order,
        and equal n. Raises ReduceError where a value cannot be sent.
        """
        vector = checked_vector(vector, self._worker, ticket)
        self.watch(ticket, "encode")
        reduce = self._begin(ticket, vector, now)
        self._reduces.append(reduce)
        data = self._encoded(reduce, rotated_of(vector, reduce_seed(self._job, ticket)))
        self.watch(ticket, "network")
        reduce.parts[self._worker] = data[reduce.own.start : reduce.own.stop]
        reduce.has[Type.PART][self._worker] = True
        actions = [action for peer in self._peers() for action in self._blocks(reduce, peer, data)]
        actions += self._take_early(reduce, now)
        return actions + self._go_on(reduce, now)

    def receive(self, ip: str, port: int, payloads: Payloads, now: int) -> list[Action]:
        """Take datagrams of another worker."""
        packets, slots = bounded.parse(payloads), self._job.transport.slots
        self.refused["malformed"] += len(payloads) - len(packets)
        touched: list[_Reduce] = []
        for header, values in zip(packets.header, packets.values, strict=True):
            if not self._is_of_peer(header, (ip, port)):
                self.refused["stranger"] += 1
                continue
            number = (int(header["round"]) - 1) * slots + int(header["slot"])
            reduce = self._find(number)
            if reduce is not None:
                self._take(reduce, header, values, now)
                if reduce not in touched:
                    touched.append(reduce)
            elif number >= self._allocated:
                self._early.setdefault(number, []).append((header, values.copy()))
            else:
                self.refused["late"] += 1
        return [action for reduce in touched for action in self._go_on(reduce, now)]

    def message(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a block of a reduce that is observed, from a peer's stream.

        MessageError for one that does not fit."""
        message = parse(data)
        senders = [w for w in self._peers() if self._job.addresses.stream(w) == peer]
        if not senders:
            raise MessageError(f"{message.kind.name} of {peer}, who is no worker of the job")
        reduce = next((r for r in self._reduces if r.ticket == message.ticket), None)
        if reduce is None:
            self._early_blocks.setdefault(message.ticket, []).append((senders[0], message))
            return []
        self._take_block(reduce, senders[0], message, now)
        return self._go_on(reduce, now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle the timer of a reduce: its stage may be over."""
        reduce = self._find(key) if isinstance(key, int) else None
        return [] if reduce is None else self._go_on(reduce, now)

    def expire(self, ticket: int, stage: Type, now: int) -> list[Action]:
        """End a stage of a reduce, if it is in that, as its limit would."""
        reduce = next((r for r in self._reduces if r.ticket == ticket), None)
        return self._end_stage(reduce, now) if reduce and reduce.stage is stage else []

    def missing(self, ticket: int) -> list[str]:
        """Name the workers of whom a reduce in flight lacks packets, for people."""
        reduce = next((r for r in self._reduces if r.ticket == ticket), None)
        if reduce is None:
            return []
        lacking = (w for w in self._peers() if self._lacks(reduce, w))
        return [f"{reduce.stage.name} of worker {worker}" for worker in sorted(lacking)]

    # A reduce and its chunks

    def _begin(self, ticket: int, vector: Floats, now: int) -> _Reduce:
        n, workers, values = vector.size, self._job.workers, self._values
        chunks = -(-codecs.rotated_size(n) // values)
        own, first = self._span(self._worker, chunks), self._allocated
        self._allocated += chunks
        self._sizes[n] += 1
        return _Reduce(
            ticket, vector, first, own,
            parts=np.zeros((workers, len(own), SIZE), np.uint8),
            means=np.zeros((chunks, SIZE), np.uint8),
            who=np.zeros(chunks, np.uint64),
            at=np.zeros(chunks, np.int64),
            has={Type.PART: np.zeros((workers, len(own)), bool), Type.MEAN: np.zeros(chunks, bool)},
            observed=self._sizes[n] <= self._job.transport.observed,
            begun=now, started=now, last=now,
        )  # fmt: skip

    def _span(self, worker: int, chunks: int) -> range:
        """Return the chunks that a worker sums."""
        workers = self._job.workers
        return range(chunks * worker // workers, chunks * (worker + 1) // workers)

    def _peers(self) -> Iterator[int]:
        """Yield the other workers, each one's first neighbour first."""
        workers = self._job.workers
        return ((self._worker - k) % workers for k in range(1, workers))

    def _find(self, number: int) -> _Reduce | None:
        inside = (r for r in self._reduces if r.first <= number < r.first + r.chunks)
        return next(inside, None)

    def _times(self, reduce: _Reduce) -> TimeLimits:
        """Return the limits of a reduce's stage."""
        ceiling = self._job.transport.timeout_ns
        of_size = self._limits.setdefault(
            reduce.vector.size, {kind: TimeLimits(ceiling, self._granularity) for kind in Type}
        )
        return of_size[reduce.stage]

    # What is sent

    def _encoded(self, reduce: _Reduce, values: Floats) -> Bytes:
        """Return the bytes of values, uint8[chunks, SIZE], filled up with zeros."""
        try:
            data, _ = coder_of(self._codec, values, None).encode(values)
        except CodecError as error:
            where = f"worker {self._worker}, ticket {reduce.ticket}"
            raise ReduceError(f"{where}: rotated: {error}") from error
        data = data.ljust(-(-len(data) // SIZE) * SIZE, b"\0")
        reduce.sent.append(data)
        return np.frombuffer(data, np.uint8).reshape(-1, SIZE)

    def _decoded(self, reduce: _Reduce, data: Bytes) -> Floats:
        """Return the values of uint8[chunks, SIZE], float32[chunks x values]."""
        codec = decoder_of(self._codec, reduce.vector)
        values: Floats = codec.decode(data.tobytes(), len(data) * self._values)
        return values

    def _blocks(self, reduce: _Reduce, peer: int, data: Bytes) -> list[Action]:
        """Return the actions that send a peer the chunks of a stage. data: of all chunks, or in
        the second stage of this worker's own."""
        first = reduce.stage is Type.PART
        span = self._span(peer, reduce.chunks) if first else reduce.own
        some = data[span.start : span.stop] if first else data
        if not len(span):
            return []
        if reduce.observed:
            kind = Kind.PARTIAL_BLOCK if first else Kind.WHOLE_BLOCK
            bitmap = 1 << self._worker if first else (1 << self._job.workers) - 1
            block = Message(kind, reduce.ticket, reduce.vector.size, 0, 0, bitmap, some.tobytes())
            return [SendMessage(self._job.addresses.stream(peer), block.pack())]
        addresses = self._job.addresses.worker_addresses
        payloads = bounded.pack(self._headers(reduce, span), some)
        return [Send(addresses[self._worker][1], *addresses[peer], payloads)]

    def _headers(self, reduce: _Reduce, span: range) -> npt.NDArray[np.void]:
        header = np.zeros(len(span), bounded.HEADER)
        numbers = reduce.first + np.arange(span.start, span.stop)
        places = [aggregation.place(n, self._job.transport.slots) for n in numbers.tolist()]
        header["magic"], header["type"] = bounded.MAGIC, reduce.stage
        header["job"], header["worker"] = self._job.number, self._worker
        header["slot"], header["round"] = np.array(places).T
        header["limit"] = min(self._times(reduce).own(self._worker) // 1000, 2**32 - 1)
        header["bitmap"] = reduce.who[span.start : span.stop]
        header["flags"][-max(len(span) // _TAIL, 1) :] = bounded.TAIL
        return header

    # What arrives

    def _is_of_peer(self, header: np.void, source: Peer) -> bool:
        worker, addresses = int(header["worker"]), self._job.addresses.worker_addresses
        known = worker < len(addresses) and worker != self._worker
        return known and addresses[worker] == source and header["job"] == self._job.number

    def _take_early(self, reduce: _Reduce, now: int) -> list[Action]:
        """Take what came before the reduce began."""
        for number in range(reduce.first, reduce.first + reduce.chunks):
            for header, values in self._early.pop(number, ()):
                self._take(reduce, header, values, now)
        for sender, message in self._early_blocks.pop(reduce.ticket, ()):
            try:
                self._take_block(reduce, sender, message, now)
            except MessageError as error:
                raise ReduceError(f"worker {self._worker}: {error}") from error
        return []

    def _take(self, reduce: _Reduce, header: np.void, values: Bytes, now: int) -> None:
        slots, sender = self._job.transport.slots, int(header["worker"])
        index = (int(header["round"]) - 1) * slots + int(header["slot"]) - reduce.first
        kind = Type(int(header["type"]))
        if kind < reduce.stage:
            self.refused["late"] += 1
            return
        if not self._put(reduce, kind, sender, index, values[None], now):
            self.refused["again"] += 1
            return
        if kind is Type.MEAN:
            reduce.who[index] = header["bitmap"]
        if header["flags"] & bounded.TAIL:
            reduce.tails[kind].add(sender)
        if header["limit"]:
            stage = self._limits.get(reduce.vector.size)
            if stage is not None:
                stage[kind].heard(sender, 1000 * int(header["limit"]))
        reduce.last = now

    def _put(
        self, reduce: _Reduce, kind: Type, sender: int, index: int, values: Bytes, now: int
    ) -> bool:
        """Keep the values of chunks `index` and up; False for those of another's, or again."""
        owner = self._worker if kind is Type.PART else sender
        span = self._span(owner, reduce.chunks)
        if index not in span or index + len(values) > span.stop:
            return False
        at = slice(index - span.start, index - span.start + len(values))
        here = reduce.has[kind][sender, at] if kind is Type.PART else None
        if here is None:
            at = slice(index, index + len(values))
            here = reduce.has[kind][at]
        if here.any():
            return False
        here[:] = True
        if kind is Type.PART:
            reduce.parts[sender, at] = values
        else:
            reduce.means[at], reduce.at[at] = values, now
        return True

    def _take_block(self, reduce: _Reduce, sender: int, message: Message, now: int) -> None:
        kind = _KINDS[message.kind]
        span = self._span(self._worker if kind is Type.PART else sender, reduce.chunks)
        whole = len(message.body) == len(span) * SIZE and message.n == reduce.vector.size
        if not (whole and reduce.observed and len(span)):
            raise MessageError(f"ticket {message.ticket}, {message.kind.name}: of another reduce")
        values = np.frombuffer(message.body, np.uint8).reshape(-1, SIZE)
        if not self._put(reduce, kind, sender, span.start, values, now):
            raise MessageError(f"ticket {message.ticket}, {message.kind.name}: not again")
        if kind is Type.MEAN:
            reduce.who[span.start : span.stop] = message.bitmap
        reduce.last = now

    # The stages

    def _lacks(self, reduce: _Reduce, worker: int) -> bool:
        """Return whether something of a worker's is missing in a reduce's stage."""
        if reduce.stage is Type.PART:
            return not reduce.has[Type.PART][worker].all()
        span = self._span(worker, reduce.chunks)
        return not reduce.has[Type.MEAN][span.start : span.stop].all()

    def _expects(self, reduce: _Reduce) -> list[int]:
        """Return the other workers that send something in a reduce's stage."""
        if reduce.stage is Type.PART:
            return list(self._peers()) if len(reduce.own) else []
        return [w for w in self._peers() if len(self._span(w, reduce.chunks))]

    def _deadline(self, reduce: _Reduce) -> int:
        """Return until when a bounded stage waits for what is missing."""
        times = self._times(reduce)
        longest = reduce.started + times.longest
        if reduce.stage is Type.MEAN:  # others may take their whole first stage
            of_size = self._limits[reduce.vector.size]
            longest += of_size[Type.PART].longest + times.patience - reduce.started + reduce.begun
        if not reduce.tails[reduce.stage].issuperset(self._expects(reduce)):
            return longest
        return min(longest, reduce.last + times.patience)

    def _go_on(self, reduce: _Reduce, now: int) -> list[Action]:
        """End the stage if everything is there or its time is up; else wait."""
        if not any(self._lacks(reduce, worker) for worker in self._expects(reduce)):
            return self._end_stage(reduce, now)
        if reduce.observed:
            return []
        deadline = self._deadline(reduce)
        if now > deadline:
            return self._end_stage(reduce, now)
        return [SetTimer(reduce.first, deadline + 1)]  # after what comes at that time

    def _end_stage(self, reduce: _Reduce, now: int) -> list[Action]:
        self._learn(reduce, now)
        if reduce.stage is Type.MEAN:
            return self._deliver(reduce, now)
        data = self._summed(reduce, now)
        reduce.stage, reduce.started, reduce.last = Type.MEAN, now, now
        actions = [action for peer in self._peers() for action in self._blocks(reduce, peer, data)]
        return actions + self._go_on(reduce, now)

    def _learn(self, reduce: _Reduce, now: int) -> None:
        """Learn from the time of a stage that ends."""
        times, elapsed = self._times(reduce), now - reduce.started
        if reduce.observed:
            times.observe(self._worker, elapsed)
            return
        came = reduce.has[reduce.stage]
        times.ended(self._worker, elapsed, float(came.mean()) if came.size else 1.0)

    def _summed(self, reduce: _Reduce, now: int) -> Bytes:
        """Take the means of what came, in the workers' order; return their bytes."""
        own = slice(reduce.own.start, reduce.own.stop)
        total = zeros_of(reduce.vector, len(reduce.own) * self._values)
        has = reduce.has[Type.PART]
        for worker, part in enumerate(reduce.parts):
            total = total + self._decoded(reduce, part)
            bit = np.uint64(1 << worker)
            reduce.who[own] |= np.where(has[worker], bit, np.uint64(0))
        data = self._encoded(reduce, divided(total, has.sum(axis=0, dtype=np.float32)))
        reduce.means[own] = data
        reduce.has[Type.MEAN][own], reduce.at[own] = True, now
        return data

    def _deliver(self, reduce: _Reduce, now: int) -> list[Action]:
        self.watch(reduce.ticket, "decode")
        self._reduces.remove(reduce)
        n, came = reduce.vector.size, reduce.has[Type.MEAN]
        values = self._decoded(reduce, reduce.means)
        rotated = values[: codecs.rotated_size(n)]
        counts = np.array([w.bit_count() for w in reduce.who.tolist()], np.int64) * came
        seed = reduce_seed(self._job, reduce.ticket)
        result = Reduced(
            mean=unrotated_of(rotated, n, seed),
            counts=counts,
            missed=int(np.count_nonzero(~came)),
            gradient=digest_of(reduce.vector),
            codes=digest(*reduce.sent),
            sums=digest_of(values),
        )
        line = [] if reduce.chunks == 0 else [self._arrivals(reduce, values, counts, now)]
        return [CancelTimer(reduce.first), *line, Deliver(reduce.ticket, result)]

    def _arrivals(
        self, reduce: _Reduce, values: Floats, counts: npt.NDArray[np.int64], now: int
    ) -> Record:
        """Return the line of all chunks: who is in each mean, and which means did not come."""
        came, each = counts > 0, self._values
        starts = range(0, values.size, each)
        digests = [int(digest_of(values[k : k + each]) or "0", 16) for k in starts]
        columns: dict[str, npt.NDArray[Any]] = {
            "count": counts,
            "bitmap": np.where(came, reduce.who, np.uint64(0)),
            "attempts": np.ones(reduce.chunks, np.int64),
            "notices": np.zeros(reduce.chunks, np.int64),
            "digest": np.where(came, np.array(digests, np.uint64), np.uint64(0)),
            "at": np.where(came, reduce.at, now),
        }
        place = {"job": self._job.number, "worker": self._worker, "ticket": reduce.ticket}
        place |= {"first": reduce.first, "slots": self._job.transport.slots}
        packed = {name: pack(column) for name, column in columns.items()}
        lost = {f"{kind.name.lower()}s": self._lost(reduce, kind) for kind in Type}
        return Record("arrivals", place | {"chunks": reduce.chunks} | packed | {"lost": lost})

    def _lost(self, reduce: _Reduce, kind: Type) -> list[int]:
        """Return how many packets of a stage did not come in time, of how many."""
        came, own = reduce.has[kind], len(reduce.own)
        return [int(came.size - np.count_nonzero(came)), came.size - own]
