"""Re-enact a job of a recorded run: its outcomes, not its timing.

The workers train in step. The job's aggregation scheme re-enacts each reduce (see
gradplane/aggregations): the recorded outcomes of the slots, from arrivals.jsonl, decide what
arrives; everything else is computed again, by the workers' state machines and by the P4 program.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradplane.aggregations.aggregation import ReplayedJob, ReplayedWorker, ReplayError, WrongSum
from gradplane.aggregations.needs import Place
from gradplane.experiment.deployment import DeployedJob
from gradplane.hosts.absences import donor, of_worker
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Deliver, SendMessage
from gradplane.hosts.protocols.synchronisation import Synchronisation
from gradplane.hosts.training.train import Compute, Crash, Join, Reduce, Report, Synchronise, train
from gradplane.runs.replayer.replay_network import ReplayNetwork


@dataclass
class Outcome:
    """The outcome of a norm or a chunk: which workers are in the result, which had it in time."""

    # The workers in the result, joined from those that each switch names; None: nobody ever got it.
    bitmap: int | None = None
    digest: str | None = None  # of the sums
    count: int | None = None  # of workers in the sums
    norm: int | None = None
    in_time: set[int] = field(default_factory=set)

    def contains(self, worker: int) -> bool:
        """Return whether the worker's packet is in the result."""
        return self.bitmap is not None and bool(self.bitmap >> worker & 1)

    def add_members(self, workers: Iterable[int]) -> None:
        """Note that the packets of these workers, too, are in the result."""
        self.bitmap = (self.bitmap or 0) | sum(1 << worker for worker in workers)


@dataclass
class RecordedOutcomes:
    """The outcomes of one job. A missing outcome had no effect: no worker waited for it."""

    norms: dict[Place, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    chunks: dict[Place, Outcome] = field(default_factory=lambda: defaultdict(Outcome))
    stats: dict[int, int] = field(default_factory=dict)  # by ticket: who is in a server's maximum
    pushes: dict[int, int] = field(default_factory=dict)  # by ticket: who is in a server's mean
    sources: dict[int, int | None] = field(default_factory=dict)  # by epoch: whose parameters

    def add(self, line: dict[str, Any]) -> None:
        """Add a line of arrivals.jsonl."""
        if line["kind"] == "epoch":
            self.sources[line["epoch"]] = line["source"]
        elif line["kind"] in ("norm", "arrival") and line["slot"] is None:
            through_server = self.stats if line["kind"] == "norm" else self.pushes
            through_server[line["ticket"]] = int(line["bitmap"], 16)
        elif line["kind"] == "norm":
            self._result(self.norms, line)
        elif line["kind"] == "arrival":
            self._result(self.chunks, line)

    def _result(self, outcomes: dict[Place, Outcome], line: dict[str, Any]) -> None:
        outcome = outcomes[line["slot"], line["use"]]
        if line["result"] != "lost":
            outcome.bitmap = (outcome.bitmap or 0) | int(line["bitmap"], 16)
            outcome.digest = line.get("digest") or outcome.digest  # a reduce-scatter's: one has it
            outcome.count, outcome.norm = line.get("count"), line.get("norm")
        if line["result"] == "in time":
            outcome.in_time.add(line["worker"])


def read_outcomes(lines: Iterable[dict[str, Any]]) -> dict[int, RecordedOutcomes]:
    """Return the outcomes of each job, by its number."""
    jobs: dict[int, RecordedOutcomes] = defaultdict(RecordedOutcomes)
    for line in lines:
        jobs[line["job"]].add(line)
    return jobs


__all__ = ["Reenactment", "ReplayError", "WrongSum"]

Line = dict[str, Any]


class Worker(ReplayedWorker):
    """A worker that trains again."""

    def __init__(self, job: JobConfig, number: int) -> None:
        super().__init__(number)
        self._job = job
        absences = of_worker(job.absences, number)
        late = next((absence.back for absence in absences if absence.first == 0), 0)
        self.begin(late)

    def begin(self, joins: int) -> None:
        """Begin a life with that round."""
        self.joins = joins  # the round of its first step
        self._training = train(self._job, self.number, joins)
        self.step = next(self._training)

    def answer(self, answer: Any) -> None:
        """Answer the training's step; the next one is None at the training's end."""
        try:
            self.step = self._training.send(answer)
        except StopIteration:
            self.step = None


class Reenactment:
    """One job, re-enacted. Iterating trains it and yields its round, epoch and done records."""

    def __init__(
        self, deployed: DeployedJob, outcomes: RecordedOutcomes, network: ReplayNetwork
    ) -> None:
        # Nothing takes time in a replay, nor does work that took time in the run, and nothing waits
        # in queues.
        self._job = job = deployed.config.changed(codec_ns=0.0, reduce_ns=0.0, ecn=False)
        hosts = [host.name for host in deployed.members]
        self._workers = [Worker(job, number) for number in range(job.workers)]
        self._syncs = [Synchronisation(job, number) for number in range(job.workers)]
        self._replayed = ReplayedJob(job, hosts, self._workers, outcomes, network)
        self._reduce = deployed.scheme.replay(self._replayed)

    @property
    def wrong_sum(self) -> WrongSum | None:
        """The place of the first sums that differ from the recorded ones; None while none do."""
        return self._replayed.wrong_sum

    def __iter__(self) -> Iterator[Line]:
        while True:
            for worker in self._workers:
                yield from self._reports(worker)
            here = [worker for worker in self._workers if not _waits(worker)]
            if all(worker.step is None for worker in self._workers):
                return
            match here[0].step:
                case Join(round):
                    self._join(round)
                case Reduce():
                    self._together(here, self._reduce)
                case _:
                    self._together(here, self._synchronise)

    def _join(self, round: int) -> None:
        """Give each worker of a round its own state, and the donor's to those that join."""
        number = donor(self._job.absences, self._job.workers, round)
        assert number is not None, "an experiment is refused where nobody has the state"
        given = self._workers[number].step
        assert isinstance(given, Join)
        for worker in self._workers:
            if isinstance(worker.step, Join) and worker.step.round == round:
                worker.answer(given.state if _waits(worker) else worker.step.state)

    def _reports(self, worker: Worker) -> Iterator[Line]:
        """Advance the worker to its next reduce or synchronisation, or to its end."""
        while isinstance(worker.step, Compute | Report | Crash):
            step = worker.step
            if isinstance(step, Crash):
                worker.begin(step.back)
                return
            if isinstance(step, Report):
                who = {"kind": step.kind, "job": self._job.number, "worker": worker.number}
                yield who | step.fields
            worker.answer(None)

    def _together(self, workers: list[Worker], act: Callable[[], None]) -> None:
        for worker in workers:
            worker.expect()
        act()
        for worker in workers:
            worker.answer(worker.result)

    def _synchronise(self) -> None:
        addresses = [self._job.addresses.stream(w) for w in range(self._job.workers)]
        mail: deque[tuple[int, SendMessage]] = deque()

        def perform(worker: int, actions: Iterable[Action]) -> None:
            for action in actions:
                if isinstance(action, SendMessage):
                    mail.append((worker, action))
                elif isinstance(action, Deliver):
                    self._workers[worker].take(action)

        for worker, sync in zip(self._workers, self._syncs, strict=True):
            if _waits(worker):
                continue
            step = worker.step
            assert isinstance(step, Synchronise), step
            actions = sync.synchronise(step.epoch, step.missed, step.parameters, 0, step.workers)
            perform(worker.number, actions)
        while mail:
            sender, message = mail.popleft()
            receiver = addresses.index(message.peer)
            data = self._syncs[receiver].receive(addresses[sender], message.data, 0)
            perform(receiver, data)


def _waits(worker: Worker) -> bool:
    """Return whether a worker is away: its next step is the round that it joins in."""
    return isinstance(worker.step, Join) and worker.step.round == worker.joins
