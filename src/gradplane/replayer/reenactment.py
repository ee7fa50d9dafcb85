"""Re-enacts a job of a recorded run: its outcomes, not its timing.

The workers train in step. Of each reduce the switch gets, slot by slot, the packets of the recorded
bitmap, then those that came late; workers get the results that they had in time; what they wait for
in vain ends by its timer (or, where results leave at a quorum and are asked for again until they
come, by the notice that the slot is used anew). Everything else is computed again, by the workers'
own state machines and by the P4 program.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from gradplane.hosts.config import HostConfig, JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Deliver,
    Send,
    SendMessage,
    SetTimer,
)
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.protocols.synchronisation import Sync
from gradplane.hosts.training.train import Compute, Reduce, Report, Synchronise
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.replayer.outcomes import JobOutcomes, Outcome, Place
from gradplane.replayer.replay_network import ReplayNetwork
from gradplane.replayer.replayed_worker import Timer, Worker
from gradplane.replayer.stream_reduces import ThroughRing, ThroughServer

Line = dict[str, Any]


class ReplayError(Exception):
    """A recorded run that cannot be re-enacted; the message says where and why."""


@dataclass(frozen=True)
class WrongSum:
    """The first sums that are not the recorded ones."""

    slot: int
    round: int  # the slot's
    ticket: int


class Reenactment:
    """One job. Iterating it trains, and yields its records of kind round, epoch and done."""

    def __init__(
        self, job: JobConfig, hosts: list[HostConfig], outcomes: JobOutcomes, network: ReplayNetwork
    ) -> None:
        # Work that took time in the run takes none here, as nothing does.
        self._job = job = replace(job, codec_ns=0.0, reduce_ns=0.0)
        self._outcomes, self._network = outcomes, network
        self._hosts = [config.name for config in hosts if config.role == "worker"]
        self._workers = [Worker(job, number) for number in range(job.workers)]
        self._syncs = [Sync(job, number) for number in range(job.workers)]
        self._reduce = self._reducer()
        self.wrong_sum: WrongSum | None = None

    def _reducer(self) -> Callable[[], None]:
        job = self._job
        if job.aggregation == "ps":
            return ThroughServer(job, self._workers, self._outcomes, self._network).reduce
        if job.aggregation == "ring":
            return ThroughRing(job, self._workers, self._network).reduce
        return _ThroughSwitch(job, self._hosts, self._workers, self._outcomes, self).reduce

    @property
    def network(self) -> ReplayNetwork:
        """Where aggregation packets go."""
        return self._network

    def __iter__(self) -> Iterator[Line]:
        while True:
            for worker in self._workers:
                yield from self._reports(worker)
            steps = [worker.step for worker in self._workers]
            if all(step is None for step in steps):
                return
            if isinstance(steps[0], Reduce):
                self._together(self._reduce)
            else:
                self._together(self._synchronise)

    def _reports(self, worker: Worker) -> Iterator[Line]:
        """Take the worker to its next reduce or synchronisation, or to its end."""
        while isinstance(worker.step, Compute | Report):
            step = worker.step
            if isinstance(step, Report):
                who = {"kind": step.kind, "job": self._job.number, "worker": worker.number}
                yield who | step.fields
            worker.answer(None)

    def _together(self, act: Callable[[], None]) -> None:
        for worker in self._workers:
            worker.expect()
        act()
        for worker in self._workers:
            worker.answer(worker.result)

    def _synchronise(self) -> None:
        addresses = [self._job.stream_address(w) for w in range(self._job.workers)]
        mail: deque[tuple[int, SendMessage]] = deque()

        def perform(worker: int, actions: Iterable[Action]) -> None:
            for action in actions:
                if isinstance(action, SendMessage):
                    mail.append((worker, action))
                elif isinstance(action, Deliver):
                    self._workers[worker].take(action)

        for worker, sync in zip(self._workers, self._syncs, strict=True):
            step = worker.step
            assert isinstance(step, Synchronise), step
            actions = sync.synchronise(step.epoch, step.missed, step.parameters, 0)
            perform(worker.number, actions)
        while mail:
            sender, message = mail.popleft()
            receiver = addresses.index(message.peer)
            data = self._syncs[receiver].receive(addresses[sender], message.data, 0)
            perform(receiver, data)


class _ThroughSwitch:
    """Reduces through the P4 program."""

    def __init__(
        self,
        job: JobConfig,
        hosts: list[str],
        workers: list[Worker],
        outcomes: JobOutcomes,
        whole: Reenactment,
    ) -> None:
        self._job, self._hosts, self._workers, self._whole = job, hosts, workers, whole
        self._outcomes = {Type.NORM: outcomes.norms, Type.INDICES: outcomes.chunks}
        self._machines = [SwitchWorker(job, w) for w in range(job.workers)]
        self._packets: deque[tuple[int, bytes]] = deque()
        self._held: defaultdict[tuple[Type, Place], list[tuple[int, bytes]]] = defaultdict(list)
        self._ticket = 0

    def reduce(self) -> None:
        """The reduce that all workers ask for."""
        self._held.clear()
        for worker, machine in zip(self._workers, self._machines, strict=True):
            step = worker.step
            assert isinstance(step, Reduce), step
            self._ticket = step.round
            self._perform(worker, machine.reduce(step.round, step.vector, 0))
        while not all(worker.delivered for worker in self._workers):
            while self._packets:
                self._send(*self._packets.popleft())
            waiting = [worker for worker in self._workers if not worker.delivered]
            if waiting and not any([self._end_waiting(worker) for worker in waiting]):
                raise ReplayError(self._stuck(waiting[0]))

    def _perform(self, worker: Worker, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Send(payload=payload):
                    self._packets.append((worker.number, payload))
                case SetTimer(key):
                    worker.timers[cast(Timer, key)] = None
                case CancelTimer(key):
                    worker.timers.pop(cast(Timer, key), None)
                case Deliver():
                    worker.take(action)

    def _send(self, number: int, payload: bytes) -> None:
        """Give the switch a packet, if it is one of those that were summed; others wait."""
        header, _ = aggregation.parse(payload)
        if header.type not in self._outcomes:
            return
        place = header.slot, header.round
        if self._outcomes[header.type][place].contains(number):
            self._through_switch(number, payload)
        else:
            self._held[header.type, place].append((number, payload))

    def _through_switch(self, number: int, payload: bytes) -> None:
        source, to = self._job.worker_addresses[number], self._job.aggregator
        for host, _, answer in self._whole.network.send(source, to, payload):
            self._receive(self._hosts.index(host), answer)

    def _receive(self, number: int, payload: bytes) -> None:
        """An answer of the switch reaches a worker that had it in time, and lets late ones go."""
        header, body = aggregation.parse(payload)
        kind = {Type.NORM_RESULT: Type.NORM, Type.SUMS: Type.INDICES}.get(header.type)
        if kind is None:
            return
        place = header.slot, header.round
        outcome = self._outcomes[kind][place]
        if kind is Type.INDICES:
            self._compare(outcome, place, digest(aggregation.unpack_sums(body, header.sum_bits)))
        if number in outcome.in_time:
            worker = self._workers[number]
            received = self._machines[number].receive(*self._job.aggregator, payload, 0)
            self._perform(worker, received)
        for late in self._held.pop((kind, place), ()):
            self._through_switch(*late)

    def _compare(self, outcome: Outcome, place: Place, found: str) -> None:
        if outcome.digest not in (None, found) and self._whole.wrong_sum is None:
            self._whole.wrong_sum = WrongSum(*place, self._ticket)

    def _end_waiting(self, worker: Worker) -> bool:
        """End what the worker waits for in vain; False if there is nothing such."""
        ended = False
        for timer in list(worker.timers):
            kind, number = timer
            if kind == "status" or worker.number in self._awaited(kind, number).in_time:
                continue
            if timer in worker.timers:
                del worker.timers[timer]
                self._end(worker, timer)
                ended = True
        return ended

    def _end(self, worker: Worker, timer: Timer) -> None:
        machine = self._machines[worker.number]
        if self._job.reliability == "lossy":
            actions = machine.timer(timer, 0)
        else:
            slot, round = self._place(timer[1])
            notice = aggregation.Header(
                Type.STRAGGLER, self._job.number, 0, slot, round + 1, self._job.sum_bits
            )
            actions = machine.receive(*self._job.aggregator, notice.pack(), 0)
        self._perform(worker, actions)

    def _awaited(self, kind: str, number: int) -> Outcome:
        kinds = {"norm": Type.NORM, "chunk": Type.INDICES}
        return self._outcomes[kinds[kind]][self._place(number)]

    def _place(self, number: int) -> Place:
        """Slot and round of a chunk."""
        return number % self._job.slots, number // self._job.slots + 1

    def _stuck(self, worker: Worker) -> str:
        waits = [timer for timer in worker.timers if timer[0] != "status"]
        assert waits, f"worker {worker.number} waits for nothing and has no result"
        kind, number = waits[0]
        slot, round = self._place(number)
        return (
            f"round {self._ticket}, worker {worker.number} had the {kind} of slot {slot}, round"
            f" {round} in time, but the switch does not give it: arrivals.jsonl is not this"
            " experiment's, or not complete"
        )
