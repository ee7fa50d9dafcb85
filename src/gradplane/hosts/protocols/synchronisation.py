"""The synchronisation at the end of an epoch (THC, section 6).

Workers report the number of results missed. If the worst missed more than the threshold, all copy
the parameters of the worker that missed fewest; of equals, that of the lowest number.

The first of the workers that take part coordinates. Messages travel by a Stream: SendMessage out,
receive() in.
"""

from collections import defaultdict

import numpy as np

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, SendMessage
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import Floats, ReduceError, Synchronised, checked_vector


class Synchronisation:
    """One worker's side of the synchronisation and, on the first one, the coordinator's.

    Actions: SendMessage, Deliver(epoch, Synchronised). Gets messages of messages.SYNC_KINDS, of
    this and of later epochs.
    """

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._everybody = tuple(range(job.workers))
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
