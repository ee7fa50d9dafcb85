"""How workers copy each other's state: at the end of an epoch, and where a worker joins.

`Synchronisation` ends an epoch (THC, section 6). Workers report the number of results missed. If
the worst missed more than the threshold, all copy the parameters of the worker that missed fewest;
of equals, that of the lowest number. The first of the workers that take part coordinates.

`Joining` is the start of a round in which workers join that were away (absences.py). All workers
of the round wait for each other, as in a rendezvous of elastic training. A newcomer asks the donor
for its state: the donor's parameters and momentum at the start of the round. Then it announces to
all others that it is ready, and they go on together. A newcomer's error feedback is empty.
Every message may be lost with a life of its sender or receiver, as a slow worker crashes after
others have come back. So whoever waits asks again and again, whoever it waits for, and is answered
from what that one knows. Stream connections to a newcomer are those of its earlier life until it
is heard of, and given up then.

Messages travel by a Stream: SendMessage out, receive() in.
"""

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from gradplane.hosts import absences
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Deliver,
    Forget,
    Peer,
    SendMessage,
    SetTimer,
)
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import (
    Floats,
    Joined,
    ReduceError,
    Synchronised,
    checked_vector,
)


class Synchronisation:
    """One worker's side of the synchronisation and, on the first one, the coordinator's.

    Actions: SendMessage, Deliver(epoch, Synchronised). Gets messages of messages.SYNC_KINDS, of
    this and of later epochs.
    """

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._peers = job.addresses.streams
        self._everybody = job.everybody
        self._own: dict[int, Floats] = {}  # by epoch under way
        self._workers: dict[int, tuple[int, ...]] = {}  # by epoch under way: who takes part
        self._reports: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._sources: dict[int, int | None] = {}
        self._copies: dict[tuple[int, int], Floats] = {}  # by epoch and source

    def synchronise(
        self,
        epoch: int,
        missed: int,
        parameters: Floats,
        now: int,
        workers: tuple[int, ...] | None = None,
    ) -> list[Action]:
        """End `epoch`, in which `missed` results were missed, with float32[n].

        All of `workers`, ascending, or of the job's where it is None, call it, for the same n.
        Raises ReduceError for parameters that are not finite float32 or an epoch under way.
        """
        if epoch in self._own:
            raise ReduceError(f"worker {self._worker}: epoch {epoch} is being synchronised already")
        self._own[epoch] = checked_vector(parameters, self._worker, epoch)
        self._workers[epoch] = workers = workers or self._everybody
        if self._worker == workers[0]:
            return self._report(epoch, self._worker, missed)
        report = Message(Kind.REPORT, epoch, n=missed).pack()
        return [SendMessage(self._peers[workers[0]], report), *self._finish(epoch)]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from another worker. MessageError if it is not a valid one."""
        message = parse(data)
        if peer not in self._peers:
            raise MessageError(
                f"synchronisation message from {peer}, which is not a worker of this job"
            )
        sender = self._peers.index(peer)
        if message.kind is Kind.REPORT:
            return self._report(message.ticket, sender, message.n)
        if message.kind is Kind.DECISION:
            return self._decided(message, sender)
        return self._parameters(message, sender)

    def _report(self, epoch: int, worker: int, missed: int) -> list[Action]:
        reports = self._reports[epoch]
        reports[worker] = missed
        if len(reports) < len(self._workers.get(epoch, self._everybody)):
            return []
        del self._reports[epoch]
        return self._decide(epoch, reports)

    def _decide(self, epoch: int, reports: dict[int, int]) -> list[Action]:
        apart = max(reports.values()) > self._job.training.sync_threshold
        source = min(reports, key=lambda w: (reports[w], w)) if apart else None
        decision = Message(Kind.DECISION, epoch, n=source or 0, count=int(apart)).pack()
        self._sources[epoch] = source
        return [*self._to_others(epoch, decision), *self._finish(epoch)]

    def _to_others(self, epoch: int, data: bytes) -> list[Action]:
        others = [w for w in self._workers[epoch] if w != self._worker]
        return [SendMessage(self._peers[w], data) for w in others]

    def _decided(self, message: Message, sender: int) -> list[Action]:
        workers = self._workers.get(message.ticket, self._everybody)
        if sender != workers[0] or message.n >= self._job.workers:
            raise MessageError(f"decision of worker {sender} for worker {message.n}")
        self._sources[message.ticket] = message.n if message.count else None
        return self._finish(message.ticket)

    def _parameters(self, message: Message, sender: int) -> list[Action]:
        epoch = message.ticket
        if len(message.body) != 4 * message.n:
            raise MessageError(f"{message.n} parameters in {len(message.body)} bytes")
        if epoch in self._own and message.n != self._own[epoch].size:
            raise MessageError(f"{message.n} parameters, ours are {self._own[epoch].size}")
        self._copies[epoch, sender] = np.frombuffer(message.body, "<f4").astype(np.float32)
        return self._finish(epoch)

    def _finish(self, epoch: int) -> list[Action]:
        """Deliver the result if everything for it is there."""
        if epoch not in self._own or epoch not in self._sources:
            return []
        source = self._sources[epoch]
        if source is None:
            return [self._deliver(epoch, self._own[epoch], 0)]
        if source == self._worker:
            return self._give(epoch)
        copy = self._copies.pop((epoch, source), None)
        if copy is None or copy.size != self._own[epoch].size:
            return []
        return [self._deliver(epoch, copy, copy.nbytes)]

    def _give(self, epoch: int) -> list[Action]:
        own = self._own[epoch]
        data = Message(Kind.PARAMETERS, epoch, n=own.size, body=own.astype("<f4").tobytes()).pack()
        gifts = self._to_others(epoch, data)
        return [*gifts, self._deliver(epoch, own, own.nbytes * len(gifts))]

    def _deliver(self, epoch: int, parameters: Floats, nbytes: int) -> Deliver:
        del self._own[epoch], self._workers[epoch]
        return Deliver(epoch, Synchronised(parameters, self._sources.pop(epoch), nbytes))


_ASK_AGAIN = 1_000_000_000  # ns
_TIMER = "join"


class Joining:
    """One worker's side. Actions: Forget, SendMessage, SetTimer, CancelTimer, Deliver(round,
    Joined). Gets messages of messages.JOIN_KINDS, of this and of later rounds.
    """

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._peers = job.addresses.streams
        self._round: int | None = None  # whose start this worker waits for
        self._state = Joined(np.empty(0, np.float32), np.empty(0, np.float32))
        self._has_state = False
        self._asked: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._ready: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._announced = -1  # the last round in which this worker was a newcomer and ready
        self._heard: dict[int, int] = {}  # by worker: the last round it joined in

    def join(self, round: int, state: Joined, now: int) -> list[Action]:
        """Begin a round. `state` is this worker's; a newcomer's has only the right sizes."""
        self._round, self._state = round, state
        self._has_state = self._worker not in absences.joining(self._job.absences, round)
        asked = [] if self._has_state else [self._request()]
        return [*asked, SetTimer(_TIMER, now + _ASK_AGAIN), *self._give(round), *self._finish()]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from another worker. MessageError if it is not a valid one."""
        message = parse(data)
        if peer not in self._peers:
            raise MessageError(f"joining message from {peer}, which is not a worker of this job")
        sender, round = self._peers.index(peer), message.ticket
        if message.kind is Kind.STATE:
            return self._take(message, sender)
        newcomer = self._worker if message.kind is Kind.AWAIT else sender
        if newcomer not in absences.joining(self._job.absences, round):
            raise MessageError(f"worker {newcomer} does not join in round {round}")
        if message.kind is Kind.AWAIT:
            return [self._ready_message(round, sender)] if self._was_ready(round) else []
        fresh = self._fresh(sender, round)
        if message.kind is Kind.JOIN:
            self._asked[round].add(sender)
            return [*fresh, *self._give(round)]
        self._ready[round].add(sender)
        return [*fresh, *self._finish()]

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Ask again."""
        if self._round is None:
            return []
        if not self._has_state:
            asked = [self._request()]
        else:
            data = Message(Kind.AWAIT, self._round).pack()
            asked = [SendMessage(self._peers[w], data) for w in sorted(self._missing())]
        return [*asked, SetTimer(_TIMER, now + _ASK_AGAIN)]

    def _donor(self, round: int) -> int | None:
        return absences.donor(self._job.absences, self._job.workers, round)

    def _request(self) -> SendMessage:
        assert self._round is not None
        donor = self._donor(self._round)
        assert donor is not None, "an experiment is refused where nobody has the state"
        return SendMessage(self._peers[donor], Message(Kind.JOIN, self._round).pack())

    def _fresh(self, newcomer: int, round: int) -> list[Action]:
        """Give up the connections to an earlier life, at the first message of the next."""
        if self._heard.get(newcomer, -1) >= round:
            return []
        self._heard[newcomer] = round
        return [Forget(self._peers[newcomer])]

    def _give(self, round: int) -> list[Action]:
        """Send the state to the newcomers that have asked for it, where it is this worker's to."""
        if self._round != round or self._donor(round) != self._worker:
            return []
        own = self._state
        body = b"".join(part.astype("<f4").tobytes() for part in (own.parameters, own.momentum))
        data = Message(Kind.STATE, round, n=own.parameters.size, body=body).pack()
        return [SendMessage(self._peers[w], data) for w in sorted(self._asked.pop(round, ()))]

    def _take(self, message: Message, sender: int) -> list[Action]:
        round, n = message.ticket, self._state.parameters.size
        if self._round != round or self._has_state:
            return []  # asked for twice
        if sender != self._donor(round) or message.n != n or len(message.body) != 8 * n:
            raise MessageError(f"state of {message.n} values from worker {sender}, ours are {n}")
        values = np.frombuffer(message.body, "<f4").astype(np.float32)
        self._state, self._has_state = Joined(values[:n], values[n:]), True
        here = absences.present(self._job.absences, self._job.workers, round)
        self._announced = round
        others = [self._ready_message(round, w) for w in here if w != self._worker]
        return [*others, *self._finish()]

    def _was_ready(self, round: int) -> bool:
        """Whether this worker was ready in a round it joined in, be it in an earlier life."""
        return round <= self._announced or (self._round is not None and round < self._round)

    def _ready_message(self, round: int, worker: int) -> SendMessage:
        return SendMessage(self._peers[worker], Message(Kind.READY, round).pack())

    def _missing(self) -> set[int]:
        """Return the newcomers that are not known to be ready."""
        assert self._round is not None
        newcomers = set(absences.joining(self._job.absences, self._round))
        return newcomers - {self._worker} - self._ready[self._round]

    def _finish(self) -> list[Action]:
        """Deliver the state once this worker has it and all newcomers are ready."""
        if self._round is None or not self._has_state or self._missing():
            return []
        round = self._round
        del self._ready[round]
        self._round = None
        return [CancelTimer(_TIMER), Deliver(round, self._state)]
