"""A worker's side of reduces through the P4 program (DESIGN.md, the worker's rules; THC, section 6
and C.1).

A job's chunks are numbered over its life. Chunk c uses slot c mod S in round c div S + 1 and is
sent when chunk c - S/2 is done, so the chunks form S/2 chains, each with one chunk in flight. A
slot is free when it is reused: with a full quorum, a worker that sends c has the result of c - S/2,
so all workers sent c - S/2, so all have the result of c - S, which is the slot's last.

A partition's norm is exchanged in the slot and round of its first chunk, when that chunk's turn
comes; the partition's other chunks wait for it.

A chunk is done when its result is in hand or when it is given up. In lossy mode it is given up at
its timeout, or as soon as a result shows that the others have gone on to a later reduce; in lossy
mode and where results leave at a quorum, also when the slot is seen in a later round. A result of a
chunk that was given up is still used until the reduce is delivered. A worker that never got the
norm gives up chunk after chunk at their timeouts, without sending them, and so keeps in step with
the others. The states and events are the tables of `switch_states`.

A reduce-scatter is cut into the parts of the workers first, so that a partition is of one worker
that needs its sums. All workers send all chunks; a result without sums ends a chunk at the others.

A switch that loses its state gives the job a later epoch of its life. With a full quorum the worker
then sends again what it waits for, and what others may lack (`switch_redo`). With a smaller one
nobody may be left who would send what it waits for: from then on it gives up after `retries`.

Where switches mark packets at their queues, a window that adapts (`congestion_window`) says how
many chunks are in flight: the others wait, though it is their turn. The first chunk of all in turn
never does, so that no two workers with different windows wait for each other.

What need not delay packets, such as the error feedback, is computed after they are sent (Defer).

Timeouts are measured (RFC 6298), with the job's `timeout_ns` as their ceiling: the time after
which a norm, or a chunk that is retransmitted, is sent again. Their first value is what the RFC
makes of a first measurement, three round trips, of the round trip that the links give with all
windows under way (`round_trip_ns`), which is their least one, too: after many packets that met few
others, an estimate would be below it. A lossy job gives a chunk up after two timeouts, together at
most `timeout_ns`. Where hosts wait for a processor, timeouts are at least `granularity`; but not
those of norms, which may well be sent twice, and of a lossy job's chunks once a later one has its
result. The worker asks the switch for the state of such a chunk's slot; the one that was sent last
has no later one, and is asked about soon after another result of its batch, or after the time in
which to ask again for a norm. Where the answer is that the sum is complete, its result was sent
before and is lost; where it is not, its packets may be lost (_hopeless). Packets come and go in
batches: a batch of results makes one batch of what they let out.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane.hosts.config import JobConfig, Transport
from gradplane.hosts.protocols import chunk_table
from gradplane.hosts.protocols.actions import Action, CancelTimer, Defer, Deliver, SetTimer
from gradplane.hosts.protocols.chunk_table import AFTER, ALL, Ints
from gradplane.hosts.protocols.congestion_window import CongestionWindow
from gradplane.hosts.protocols.device_vector import coder_of
from gradplane.hosts.protocols.fast_results import NO_ALARM, WorkerRecord
from gradplane.hosts.protocols.integer_digits import IntegerDigits
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.partition import SummedCodes, WorkerPartition
from gradplane.hosts.protocols.phases import Watch, unwatched
from gradplane.hosts.protocols.results import (
    CUT,
    LARGE,
    TRANSIENT,
    Floats,
    ReduceError,
    checked_vector,
    is_integers,
    own_part,
)
from gradplane.hosts.protocols.switch_log import SlotStatus, SwitchLog
from gradplane.hosts.protocols.switch_packets import NUMBER, WORKERS, Results, SwitchPackets
from gradplane.hosts.protocols.switch_redo import Redo, restamp
from gradplane.hosts.protocols.switch_reduce import SwitchReduce
from gradplane.hosts.protocols.switch_states import PartitionEvent, PartitionState
from gradplane.hosts.retransmission_timeout import NEVER, RetransmissionTimeout
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads

TIMER = "wait"
"""The key of a worker's only timer."""

INEXACT = (
    'integers are summed where nothing is left out: with reliability = "retransmit" and the quorum'
    " of all workers"
)
"""Why other jobs take no integers."""

Wait = tuple[str, int]
"""The reason of a wait: "norm" and the number of its partition's first chunk, or "chunk" and
the chunk's number."""

_LEAST_TIMEOUT = 1_000_000  # ns
# Lossy: a chunk is given up after so many timeouts, as the other workers, who may have to ask for
# the norm again first, send theirs later than usual.
_PATIENCE = 2


class SwitchWorker:
    """One worker's reduces, several in flight at once.

    Actions: Send, SetTimer, CancelTimer, Deliver(ticket, Reduced), Record (arrivals, arrival, norm,
    redo, stall). `refused` counts packets that were foreign or invalid, by reason. Raises
    ConfigError if the switch cannot sum the job's codes.
    """

    scatters = True
    """Whether of a reduce-scatter a worker takes the sums of its own part alone."""

    def __init__(self, job: JobConfig, worker: int, granularity: int = 0) -> None:
        """Set up worker number `worker`; no timeout is below `granularity`, ns."""
        self._job, self._worker = job, worker
        self._transport = job.transport
        self._codec = summed_codec(job)
        self.watch: Watch = unwatched
        self.refused: Counter[str] = Counter()
        self._packets = SwitchPackets(job, worker, self.refused)
        self._log = SwitchLog(job, worker)
        self._status = SlotStatus(job, worker, self._packets, self._log)
        self._lossy = job.transport.reliability == "lossy"
        self._patience = _PATIENCE if self._lossy else 1
        ceiling = max(job.transport.timeout_ns // self._patience, 1)
        self._least = max(_LEAST_TIMEOUT, job.transport.round_trip_ns)
        self._timeout = RetransmissionTimeout(
            _first_timeout(job.transport, granularity) or ceiling,
            max(self._least, granularity),
            ceiling,
        )
        self._hurries = self._lossy and granularity > 0
        self._asks = self._hurries and not job.leaves  # a leaf's sum is not the result
        # Where the switch waits for all workers, none is left behind: only its result ends a chunk.
        self._exact = not self._lossy and job.quorum == job.workers
        self._reduces: list[SwitchReduce] = []  # undelivered, in the order of their chunks
        self._states: dict[int, list[Any]] = {}  # by tensor: the codec's, one a partition
        self._sizes: dict[int, int] = {}  # by tensor: n
        self._allocated = 0  # chunks so far
        self._bounded = False  # where it may wait for what nobody sends any more
        self._turns: Ints = np.arange(job.transport.window)  # by chain: the chunk whose turn it is
        self._window = CongestionWindow(job.transport.window) if job.transport.ecn else None
        self._released = np.empty(job.transport.window, np.int64)  # for the kernels' answers
        self._out: list[Action] = []
        self._deferred: list[Deferred[Any]] = []
        most = self._codec.table[-1]
        self.record = WorkerRecord(job, worker, most, self._turns, self._patience, self._timeout)
        """The record on which a kernel may take ordinary results between two events."""
        self._redo = Redo(self._turns, self.record.answer_size)

    def skip(self, reduces: int, n: int) -> None:
        """Begin after `reduces` reduces of n values, in which this worker took no part.

        Call it before the first reduce()."""
        assert not self._sizes, "the worker has reduced vectors"
        lanes = aggregation.LANES[self._transport.sum_bits]
        chunks = sum(-(-part.lanes // lanes) for part in self._codec.partitions(n))
        self._allocated = first = reduces * chunks
        self._turns[:] = (
            first + (np.arange(self._transport.window) - first) % self._transport.window
        )

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return self._states, self._sizes

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        self._states, self._sizes = saved

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start reducing float32[n]. All workers use the same tickets, in the same order, equal n.

        Integers, int32[n] or int64[n], are summed exactly where no worker and no result is left
        out; Deliver has a Summed then. `tensor` says which error feedback is used; a tensor keeps
        its n and has one reduce in flight at a time. Raises ReduceError where these rules break,
        and for non-finite values.
        """
        if not is_integers(vector):
            vector = checked_vector(vector, self._worker, ticket)
        elif not self._exact:
            raise ReduceError(f"worker {self._worker}, ticket {ticket}: {INEXACT}")
        self._check(ticket, tensor, vector.size)
        self._reduces.append(self._cut(ticket, tensor, vector))
        self._note_only()
        self._go_on(now)
        return self._taken()

    def receive(self, ip: str, source_port: int, payloads: Payloads, now: int) -> list[Action]:
        """Take datagrams for the worker's aggregation port; invalid ones are counted.

        Raises ReduceError if the switch says that the job goes on without this worker.
        """
        near = self._reduces[0].first if self._reduces else self._allocated
        epoch = self._packets.epoch
        for results in self._packets.parse((ip, source_port), payloads, near):
            if self._packets.epoch == epoch or results.kind is Type.EPOCH:
                self._handlers[results.kind](self, results, now)
        self._go_on(now)
        return self._taken()

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle the timer: end what has waited long enough, or ask again."""
        self.record.alarm = NO_ALARM
        for reduce in list(self._reduces):
            for part in reduce.parts:
                if part.stage is PartitionState.NORM and part.deadline <= now:
                    self._norm_timeout(reduce, part, now)
            indices = chunk_table.due(reduce.table, now)
            if len(indices):
                self._chunk_timeouts(reduce, indices, now)
        self._out += self._status.timer(now)
        if self._redo.deadline is not None and self._redo.deadline <= now:
            self._send_again(now)
        for reduce in self._reduces:
            if self._question_time(reduce) <= now:
                self._ask(reduce, [chunk_table.tail(reduce.table)], now)
        self._go_on(now)
        self._rearm()
        return self._taken()

    def prepared(self, ticket: int, partition: int, norm: int) -> Deferred[Any] | None:
        """Return the encoding of a partition that waits for its norm, which will probably be this;
        None where nothing is to be gained."""
        for reduce in self._reduces:
            if reduce.ticket == ticket and partition < len(reduce.parts):
                return reduce.parts[partition].prepared(norm, self._worker)
        return None

    def in_epoch(self, epoch: int, now: int) -> list[Action]:
        """Go on in an epoch of the job, as the controller says; in an earlier one of its life, or
        the same, nothing happens.

        Raises ReduceError for an epoch of another life."""
        self._enter(epoch, now)
        self._go_on(now)
        return self._taken()

    @property
    def waits(self) -> list[Wait]:
        """Return the waits of the worker, in the order of the chunks."""
        found: list[Wait] = []
        for reduce in self._reduces:
            stages = [part for part in reduce.parts if part.stage is PartitionState.NORM]
            found += [("norm", part.first) for part in stages]
            pending = np.flatnonzero(chunk_table.pending(reduce.table))
            found += [("chunk", reduce.first + index) for index in pending.tolist()]
        return found

    def give_up(self, wait: Wait, now: int) -> list[Action]:
        """End one of `waits` as its last timeout would."""
        kind, number = wait
        reduce = self._find(number)
        assert reduce is not None, f"{wait} of no reduce in flight"
        if kind == "norm":
            part = reduce.part_of(number - reduce.first)
            part.step(PartitionEvent.EXPIRY)
            self._norm_lost(reduce, part, now)
        else:
            self._end(reduce, np.array([number - reduce.first]), expired=True)
        self._go_on(now)
        return self._taken()

    # Reduces

    def _check(self, ticket: int, tensor: int, n: int) -> None:
        where = f"worker {self._worker}, ticket {ticket}, tensor {tensor}"
        for other in self._reduces:
            if ticket == other.ticket or tensor == other.tensor:
                raise ReduceError(
                    f"{where}: ticket {other.ticket} is reducing tensor {other.tensor}: "
                    "wait for its result"
                )
        if tensor < TRANSIENT and self._sizes.setdefault(tensor, n) != n:
            raise ReduceError(
                f"{where}: {n} values, earlier {self._sizes[tensor]}: use another tensor number"
            )

    def _cut(self, ticket: int, tensor: int, vector: Floats) -> SwitchReduce:
        """Cut the vector into partitions, each of which the codec treats as a separate vector."""
        kept, parts = self._states.get(tensor), list[WorkerPartition]()
        for piece, owner in self._owned(tensor, vector):
            codec: SummedCodes = coder_of(self._codec, piece, kept)
            if is_integers(vector):
                codec = IntegerDigits(tuple(self._codec.table), vector.itemsize)
            pieces = [piece[cut.start : cut.stop] for cut in codec.partitions(piece.size)]
            states = kept or [codec.start(x.size) for x in pieces]
            for x, state in zip(pieces, states, strict=True):
                place = ticket, len(parts), self._allocated
                parts.append(WorkerPartition(self._job, codec, *place, x, state, owner))
                self._allocated = parts[-1].stop
        return SwitchReduce(self._job, self._worker, ticket, tensor, vector, parts)

    def _owned(self, tensor: int, vector: Floats) -> list[tuple[Floats, int | None]]:
        """Return the pieces of a vector that a single worker needs the sums of, each with it; the
        vector, with None, where all do."""
        workers = self._job.workers
        if tensor < CUT or not self.scatters:
            return [(vector, None)]
        return [(vector[own_part(vector.size, w, workers)], w) for w in range(workers)]

    def _find(self, number: int) -> SwitchReduce | None:
        """Return the reduce in flight that a chunk belongs to."""
        for reduce in self._reduces:
            if reduce.first <= number < reduce.stop:
                return reduce
        return None

    def _go_on(self, now: int) -> None:
        """Give chunks their turns, start partitions, and deliver what is complete."""
        for reduce in list(self._reduces):
            self._advance(reduce, now)
            while self._start_partitions(reduce, now):
                self._advance(reduce, now)
            if reduce.left == 0:
                self._deliver(reduce, now)

    def _note_only(self) -> None:
        """Note the only reduce in flight, whose results a kernel may take."""
        self.record.reduce = self._reduces[0].address if len(self._reduces) == 1 else 0

    def _deliver(self, reduce: SwitchReduce, now: int) -> None:
        self._reduces.remove(reduce)
        self._note_only()
        if self._exact:
            self._redo.keep(reduce)
        if reduce.tensor < TRANSIENT:
            self._states[reduce.tensor] = [part.state for part in reduce.parts]
        reduce.settle()
        self._out += self._log.arrivals(reduce, now)
        if self._window is not None:
            self._out.append(self._log.window(reduce, self._window.take(), now))
        self.watch(reduce.ticket, "decode")
        self._out.append(Deliver(reduce.ticket, reduce.result()))

    # Chunks and their turns

    def _advance(self, reduce: SwitchReduce, now: int) -> None:
        """Send the chunks whose turn has come; those of silent partitions only wait."""
        place = (reduce.first, reduce.table, self._turns, AFTER, self._released)
        if self._window is None:
            start = reduce.first % self._transport.window if self._asks else 0  # in their order
            pending, ended = chunk_table.advance(*place, start, ALL)
            reduce.left -= ended
            if pending:
                self._attempt(reduce, self._released[:pending].copy(), now)
            return
        ended = 1
        while ended:  # by chunks whose turn comes another may be the first of all
            in_flight = sum(int(chunk_table.pending(r.table).sum()) for r in self._reduces)
            free = max(self._window.size - in_flight, 0)
            pending, ended = chunk_table.advance(*place, int(self._turns.argmin()), free)
            reduce.left -= ended
            if pending:
                self._attempt(reduce, self._released[:pending].copy(), now)

    def _attempt(self, reduce: SwitchReduce, indices: Ints, now: int) -> None:
        """Send chunks that are pending, and set their deadlines."""
        table = reduce.table
        if reduce.any_silent:
            silent = reduce.silent(indices)
            table["deadline"][indices[silent]] = now + self._transport.timeout_ns
            self._wake(now + self._transport.timeout_ns)
            indices = indices[~silent]
        if len(indices):
            deadline = now + self._patience * self._timeout.value
            chunk_table.send(table, indices, now, deadline)
            self._wake(min(deadline, self._question_time(reduce)))
            self._out.append(self._packets.send_indices(reduce.packets(indices)))

    def _question_time(self, reduce: SwitchReduce) -> int:
        """Return when to ask about the chunk that was sent last, ns; NEVER if nobody does."""
        index = chunk_table.tail(reduce.table) if self._asks else None
        if index is None:
            return NEVER
        times, asked_at = reduce.asked.get(index, (0, 0))
        wait = self._timeout.prompt(self._least)
        if times:
            return asked_at + (wait << times - 1)
        sent_at = int(reduce.table["sent_at"][index])
        if index < self._at_once(reduce):
            heard = int(reduce.table["at"][:index].max(initial=0))
            if heard > sent_at:
                return heard + self._least
        return sent_at + wait

    def _at_once(self, reduce: SwitchReduce) -> int:
        """Return how many of the first chunks all workers send at once, in their order: none has to
        wait for its chain."""
        if len(self._sizes) > 1 or self._window is not None:
            return 0
        return min(self._transport.window, int(reduce.ends[0]))

    def _ask(self, reduce: SwitchReduce, indices: Iterable[Any], now: int) -> None:
        """Ask the switch for the states of these chunks' slots."""
        for index in indices:
            times, _ = reduce.asked.get(index, (0, 0))
            reduce.asked[index] = times + 1, now
            self._out.append(self._packets.make(Type.STATUS, reduce.first + index))

    def _end(self, reduce: SwitchReduce, indices: Ints, expired: bool) -> None:
        """Give up pending chunks: their timeout has come, or their slot is in a later round."""
        place = (reduce.first, reduce.table, indices, expired, self._turns, AFTER)
        reduce.left -= chunk_table.give_up(*place)

    def _chunk_timeouts(self, reduce: SwitchReduce, indices: Ints, now: int) -> None:
        silent = reduce.silent(indices)
        since = None
        if not silent.all():
            sent_at = reduce.table["sent_at"][indices[~silent]]
            since = int(sent_at.min())
            if not self._hurries or now - since >= self._patience * self._timeout.value:
                self._timeout.back_off(int(sent_at.max()), now)
            if self._window is not None:
                self._window.lost(int(sent_at.max()), now)
        given_up = silent | self._lossy | self._is_last(reduce.table["attempts"][indices])
        again = indices[~given_up]
        stage = "sums" if len(again) else "given up"
        numbers = (reduce.first + indices).tolist()
        self._out.append(self._log.timeout(reduce, stage, numbers, since, now))
        if len(again):  # data first: a short queue may have room for only one packet
            chunk_table.retry(reduce.table, again, AFTER)
            self._attempt(reduce, again, now)
        self._out += self._status.ask(reduce.first + int(indices[0]), now)
        self._end(reduce, indices[given_up], expired=True)

    # Results

    def _sums(self, results: Results, now: int) -> None:
        """Take sums into the reduces in flight, and as late results of earlier ones."""
        parsed = results.parsed
        found, refused = np.full(len(parsed), chunk_table.OUTSIDE, np.int64), 0
        for reduce in self._reduces:
            refused += self._accept(reduce, results, found, now)
            if self._hurries:
                numbers = parsed[found == chunk_table.NEW, NUMBER]
                self._hurry(reduce, numbers - reduce.first, now)
        if self._window is not None:
            self._adapt(self._window, results, found == chunk_table.NEW, now)
        if refused:
            self._count_refused(found)
        for i in (found == chunk_table.OUTSIDE).nonzero()[0].tolist():
            self._out += self._log.late(results, i, now)
        if self._redo.deadline is not None:
            self._redo.answered(parsed[:, NUMBER].tolist())
        self._moved_on(results, now)

    def _accept(self, reduce: SwitchReduce, results: Results, found: Ints, now: int) -> int:
        """Take sums into a reduce, and note what was found of each packet; return how many are
        refused."""
        refused, start, measured = 0, 0, -1
        while True:
            place = (reduce.first, reduce.table, reduce.own, reduce.ends, reduce.norms)
            packets = (results.packets[start:], self.record.body, results.parsed[start:])
            sums = (reduce.sums, reduce.known, self._turns)
            ended, sent_at, wrong, taken = chunk_table.accept(
                *place, self._codec.table[-1], *packets, *sums, now, AFTER, found[start:]
            )
            reduce.left -= ended
            measured = sent_at if sent_at >= 0 else measured
            refused += int(wrong)
            start += taken
            if start == len(found):
                break
            reduce.separate()
        if measured >= 0:
            self._timeout.measure(measured, now)
        return refused

    def _hurry(self, reduce: SwitchReduce, indices: Ints, now: int) -> None:
        """Ask about chunks that were sent before one of these, whose results are new, and give them
        up sooner.

        As they come in the order of the packets, what is still missing is lost, or another worker
        sends it later; that a host waits for a processor is no reason any more."""
        indices = indices[(indices >= 0) & (indices < len(reduce.table))]
        if not len(indices):
            return
        last = int(indices.max())
        rows = reduce.table[:last]
        sent = (rows["attempts"] > 0) & (rows["sent_at"] <= reduce.table["sent_at"][last])
        late = np.flatnonzero(sent & chunk_table.pending(rows))
        self._give_up_at(reduce, late, now + self._patience * self._timeout.prompt(self._least))
        if self._asks:
            self._ask(reduce, [index for index in late.tolist() if index not in reduce.asked], now)

    def _give_up_at(self, reduce: SwitchReduce, indices: Ints, deadline: int) -> None:
        """Wait for these chunks until then, where they would be waited for longer."""
        late = indices[reduce.table["deadline"][indices] > deadline]
        if len(late):
            reduce.table["deadline"][late] = deadline
            self._wake(deadline)

    def _adapt(
        self, window: CongestionWindow, results: Results, new: npt.NDArray[np.bool_], now: int
    ) -> None:
        """Tell the window of results of chunks that were sent."""
        marked = np.zeros(len(new), bool) if results.marked is None else results.marked
        for number, mark in zip(
            results.parsed[new, NUMBER].tolist(), marked[new].tolist(), strict=True
        ):
            reduce = self._find(number)
            assert reduce is not None, "a new result is of a reduce in flight"
            row = reduce.table[number - reduce.first]
            if row["attempts"]:
                window.result(int(row["sent_at"]), mark, now)

    def _count_refused(self, found: Ints) -> None:
        for reason, number in (
            ("another norm", chunk_table.OTHER_NORM),
            ("sums beyond the table", chunk_table.BEYOND_TABLE),
            ("no sums", chunk_table.WITHOUT_SUMS),
        ):
            if count := int((found == number).sum()):
                self.refused[reason] += count

    # Slots that are in a later round, and workers that are in a later reduce

    def _notice(self, results: Results, now: int) -> None:
        for number in results.parsed[:, NUMBER].tolist():
            reduce, index = self._current(number % self._transport.slots)
            if reduce is not None:
                reduce.table["notices"][index] += 1
            self._redo.overtaken(number, self._transport.slots)
        self._moved_on(results, now)

    def _current(self, slot: int) -> tuple[SwitchReduce | None, int]:
        """Return the chunk in this slot whose turn it is, as its reduce and its index there."""
        number = int(self._turns[slot % self._transport.window])
        reduce = self._find(number)
        if reduce is None or number % self._transport.slots != slot:
            return None, 0
        return reduce, number - reduce.first

    def _moved_on(self, results: Results, now: int) -> None:
        """End what waits for an earlier round than a slot's, which is that of these packets."""
        numbers = results.parsed[:, NUMBER]
        turns = self._turns[numbers % self._transport.window]
        later = (numbers > turns) & ((numbers - turns) % self._transport.slots == 0)
        if self._exact:
            if results.kind is Type.STRAGGLER and later.any():
                raise self._displaced(int(numbers[later][0]), int(turns[later][0]))
            return
        for number in turns[later].tolist():
            if (reduce := self._find(number)) is not None:
                self._overtaken(reduce, number - reduce.first, results.kind, now)
        if self._lossy:
            self._catch_up(int(numbers.max()), now)

    def _displaced(self, number: int, turn: int) -> ReduceError:
        """Return the error of a slot that has a later round than one that waits for this worker."""
        slot, round = aggregation.place(number, self._transport.slots)
        own = aggregation.place(turn, self._transport.slots)[1]
        return self._error(
            f"slot {slot} is in round {round}, which needs all workers, and this one is in round"
            f" {own}: it was started anew, or another has its number. Start the job's workers"
            " together, under a new epoch if the switch has not forgotten the last ones"
        )

    # Epochs

    def _other_epoch(self, results: Results, now: int) -> None:
        for epoch in results.parsed[:, WORKERS].tolist():
            self._enter(epoch, now)

    def _enter(self, epoch: int, now: int) -> None:
        """Go on in an epoch, if it is a later one, and send again what switches may have lost."""
        lives = aggregation.lives_ahead(epoch, self._packets.epoch)
        if lives < 0:
            return  # of a packet of an earlier life, and came late
        if lives > 0:
            raise self._error(
                f"the switch has the job in epoch {epoch}, and this worker is of epoch"
                f" {self._packets.epoch}: it is left of an earlier life of the job"
            )
        if epoch <= self._packets.epoch:
            return
        self._packets.epoch = self.record.epoch = epoch
        self._bounded = not self._exact
        self._out.append(self._log.redo(epoch, now))
        if self._exact:
            self._redo.begin(self._reduces, epoch)
            self._send_again(now)
        for reduce in self._reduces:
            for part in reduce.parts:
                if part.stage is PartitionState.NORM:
                    self._ask_norm(part, now)
                elif part.stage is PartitionState.SENDING and not self._exact:
                    restamp(part.packets, epoch)
            pending = np.flatnonzero(chunk_table.pending(reduce.table))
            pending = pending[~reduce.silent(pending)]
            if len(pending):
                chunk_table.retry(reduce.table, pending, AFTER)
                self._attempt(reduce, pending, now)

    def _is_last(self, attempts: Any) -> Any:
        """Return whether a packet is given up after so many attempts, bool or bool[n]."""
        return self._bounded & (attempts > self._transport.retries)

    def _send_again(self, now: int) -> None:
        """Send what others may still lack in this epoch, now and at the next timeout."""
        packets, norms = self._redo.pending()
        if packets:
            self._out.append(self._packets.send_indices(np.concatenate(packets)))
        for number, norm in norms:
            self._out.append(self._packets.make(Type.NORM, number, norm))
            packets.append(np.empty(0, np.uint8))
        self._redo.deadline = now + self._timeout.value if packets else None
        if self._redo.deadline is not None:
            self._wake(self._redo.deadline)

    def _error(self, what: str) -> ReduceError:
        return ReduceError(f"job {self._job.number}, worker {self._worker}: {what}")

    def _overtaken(self, reduce: SwitchReduce, index: int, kind: Type, now: int) -> None:
        if reduce.table["state"][index] == chunk_table.PENDING:
            self._end(reduce, np.array([index]), expired=False)
        elif kind is Type.STRAGGLER:
            part = reduce.part_of(index)
            if part.step(PartitionEvent.OVERTAKEN) is PartitionState.NORM:
                self._norm_lost(reduce, part, now)

    def _catch_up(self, number: int, now: int) -> None:
        """Give up every reduce, once a chunk is heard of that no reduce of this worker has yet.

        The others are in a later reduce, and, as long as the job has only one tensor, have
        delivered the earlier ones: nobody is left who would send what this worker waits for.
        """
        if number < self._allocated or len(self._sizes) > 1:
            return
        for reduce in self._reduces:
            for part in reduce.parts:
                self._overrun(reduce, part, now)
            self._end_all(reduce, now)

    def _overrun(self, reduce: SwitchReduce, part: WorkerPartition, now: int) -> None:
        """End the norm stage of a partition whose reduce the others have left."""
        if part.stage is PartitionState.NEW:
            self._begin(reduce, part)
        if part.stage is PartitionState.NORM:
            part.step(PartitionEvent.OVERTAKEN)
            self._norm_lost(reduce, part, now)

    def _end_all(self, reduce: SwitchReduce, now: int) -> None:
        """Give up all chunks without a result, each in its turn, without sending them."""
        while reduce.left:
            pending = np.flatnonzero(chunk_table.pending(reduce.table))
            self._end(reduce, pending, expired=False)
            place = (reduce.first, reduce.table, self._turns, AFTER, self._released)
            released, ended = chunk_table.advance(*place, 0, ALL)
            reduce.left -= ended
            if not released and not ended and not len(pending):
                return  # its chains have not come to it yet

    # The norm stage

    def _start_partitions(self, reduce: SwitchReduce, now: int) -> bool:
        """Start the partitions whose first chunk's turn has come; return whether one may send."""
        opened = False
        for part in reduce.parts:
            if part.stage is not PartitionState.NEW:
                continue
            if self._turns[part.first % self._transport.window] != part.first:
                continue
            if self._begin(reduce, part):
                self._ask_norm(part, now)
            else:
                opened = True
        return opened

    def _begin(self, reduce: SwitchReduce, part: WorkerPartition) -> bool:
        """Begin a partition; return whether its codec needs a common norm."""
        norm = part.local_norm()
        part.step(PartitionEvent.NO_NORM if norm is None else PartitionEvent.TURN)
        if norm is None:
            self._open(reduce, part, None)
            return False
        part.own_norm = norm
        return True

    def _open(self, reduce: SwitchReduce, part: WorkerPartition, norm: int | None) -> None:
        """Encode a partition and let its chunks take their turns."""
        self.watch(reduce.ticket, "encode")
        part.encode(norm, self._worker)
        self.watch(reduce.ticket, "network")
        reduce.norms[part.index] = norm or 0
        self._packets.indices(part.first, part.codes, norm or 0, part.packets, part.owner)
        reduce.open(part)
        if reduce.vector.size >= LARGE:
            self._deferred += part.deferred()

    def _ask_norm(self, part: WorkerPartition, now: int) -> None:
        if part.attempts == 0:
            part.asked_at = now
        part.attempts += 1
        part.sent_at = now
        part.deadline = now + self._timeout.after(part.attempts, self._least)
        self._out.append(self._packets.make(Type.NORM, part.first, part.own_norm))
        self._wake(part.deadline)

    def _norm_timeout(self, reduce: SwitchReduce, part: WorkerPartition, now: int) -> None:
        patience = (self._transport.retries + 1) * self._transport.timeout_ns
        expired = self._is_last(part.attempts) or (self._lossy and now - part.asked_at >= patience)
        stage = "given up" if expired else "norm"
        self._out.append(self._log.timeout(reduce, stage, [part.first], part.sent_at, now))
        if expired:
            part.step(PartitionEvent.EXPIRY)
            self._norm_lost(reduce, part, now)
        else:
            part.step(PartitionEvent.RETRY)
            self._ask_norm(part, now)
        self._out += self._status.ask(part.first, now, aggregation.STATUS_NORM)

    def _norm_lost(self, reduce: SwitchReduce, part: WorkerPartition, now: int) -> None:
        part.fall_silent()
        reduce.rows_of(part)["open"] = 1
        self._out.append(self._log.norm("lost", reduce, part, now))

    def _norm_result(self, results: Results, now: int) -> None:
        for number, _, bitmap, norm in results.parsed[:, NUMBER:].tolist():
            self._redo.answered_norm(number)
            reduce = self._find(number)
            if reduce is None:
                continue
            part = reduce.part_of(number - reduce.first)
            if number != part.first:
                continue
            if not aggregation.is_norm(norm) or reduce.norms[part.index] not in (-1, norm):
                self.refused["another norm"] += 1
                continue
            left = part.step(PartitionEvent.NORM_RESULT)
            if left is PartitionState.NORM:
                self._open(reduce, part, norm)
                self._out.append(self._log.norm("in time", reduce, part, now, norm, bitmap))
            elif left is PartitionState.SILENT:
                self._out.append(self._log.norm("late", reduce, part, now, norm, bitmap))
        if self._lossy:
            self._catch_up(int(results.parsed[:, NUMBER].max()), now)

    # The status of a slot, for the log and about chunks that may be lost

    def _answered(self, results: Results, now: int) -> None:
        for number, workers, bitmap, _ in results.parsed[:, NUMBER:].tolist():
            self._out += self._status.answer(number, bitmap, now)
            for reduce in self._reduces if self._asks else ():
                pending = chunk_table.pending(reduce.table)
                for index in reduce.asked:
                    beyond = number - reduce.first - index
                    if beyond % self._transport.slots or not pending[index]:
                        continue
                    complete = beyond > 0 or (beyond == 0 and workers >= self._job.quorum)
                    if complete or self._hopeless(reduce, index, 0 if beyond else bitmap):
                        self._give_up_at(reduce, np.array([index]), now)

    def _hopeless(self, reduce: SwitchReduce, index: int, here: int) -> bool:
        """Return whether a sum is not waited for, as the switch had only the packets of the workers
        `here`, a bitmap, when it was asked.

        This worker's went before the question: if it is missing, it is lost. So are those of the
        workers that another result of the batch has; the others are late, as results leave without
        them, and had a round trip more."""
        if self._job.quorum == self._job.workers and not here >> self._worker & 1:
            return True
        batch = self._at_once(reduce)
        return index < batch and bool(reduce.table["count"][:batch].any())

    # The timer

    def _wake(self, at: int) -> None:
        """Let the timer run out at `at` or before."""
        if self.record.alarm == NO_ALARM or at < self.record.alarm:
            self.record.alarm = at
            self._out.append(SetTimer(TIMER, at))

    def _rearm(self) -> None:
        """Set the timer to the first deadline; cancel it where there is none."""
        others = self._status.deadline, self._redo.deadline
        deadlines = [deadline for deadline in others if deadline is not None]
        for reduce in self._reduces:
            stages = [part for part in reduce.parts if part.stage is PartitionState.NORM]
            deadlines += [part.deadline for part in stages]
            pending = reduce.table["deadline"][chunk_table.pending(reduce.table)]
            if len(pending):
                deadlines.append(min(int(pending.min()), self._question_time(reduce)))
        if deadlines:
            self._wake(min(deadlines))
        elif self.record.alarm != NO_ALARM:
            self.record.alarm = NO_ALARM
            self._out.append(CancelTimer(TIMER))

    def _taken(self) -> list[Action]:
        if self.record.alarm == NO_ALARM or not self._reduces:
            self._rearm()
        out, self._out = self._out, []
        if self._deferred:
            out.append(Defer(tuple(self._deferred)))
            self._deferred.clear()
        return out

    _handlers: ClassVar[dict[Type, Callable[["SwitchWorker", Results, int], None]]] = {
        Type.NORM_RESULT: _norm_result,
        Type.SUMS: _sums,
        Type.STRAGGLER: _notice,
        Type.STATUS: _answered,
        Type.EPOCH: _other_epoch,
    }


def _first_timeout(transport: Transport, granularity: int) -> int:
    """Return the timeout before anything is measured, ns; 0 if the links' round trip is not known.

    A first measurement R makes it R + 4 R/2 (RFC 6298); hosts may wait for a processor as well.
    """
    if not transport.round_trip_ns:
        return 0
    return max(3 * transport.round_trip_ns + 4 * granularity, _LEAST_TIMEOUT)
