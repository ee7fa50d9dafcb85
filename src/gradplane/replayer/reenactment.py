"""Re-enact a job of a recorded run: its outcomes, not its timing.

The workers train in step. The job's aggregation scheme re-enacts each reduce (see
gradplane/aggregations): the recorded outcomes decide what arrives; everything else is
computed again, by the workers' state machines and by the P4 program.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from gradplane.aggregations.aggregation import ReplayedJob, ReplayError, WrongSum
from gradplane.experiment.deployment import DeployedJob
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Deliver, SendMessage
from gradplane.hosts.protocols.synchronisation import Synchronisation
from gradplane.hosts.training.train import Compute, Reduce, Report, Step, Synchronise, train
from gradplane.replayer.outcomes import JobOutcomes
from gradplane.replayer.replay_network import ReplayNetwork

__all__ = ["Reenactment", "ReplayError", "WrongSum"]

Line = dict[str, Any]


class Worker:
    """One worker of a replay: its training, and the result it was given last."""

    def __init__(self, job: JobConfig, number: int) -> None:
        self.number = number
        self._training = train(job, number)
        self.step: Step | None = next(self._training)
        self.result: Any = None
        self.delivered = False

    def answer(self, answer: Any) -> None:
        """Answer the training's step; the next one is None at the training's end."""
        try:
            self.step = self._training.send(answer)
        except StopIteration:
            self.step = None

    def expect(self) -> None:
        """Begin a reduce or a synchronisation."""
        self.delivered, self.result = False, None

    def take(self, delivered: Deliver) -> None:
        """Take the result that the worker was waiting for."""
        self.result, self.delivered = delivered.result, True


class Reenactment:
    """One job, re-enacted. Iterating trains it and yields its round, epoch and done records."""

    def __init__(
        self, deployed: DeployedJob, outcomes: JobOutcomes, network: ReplayNetwork
    ) -> None:
        # Nothing takes time in a replay, nor does work that took time in the run.
        self._job = job = replace(deployed.config, codec_ns=0.0, reduce_ns=0.0)
        hosts = [host.name for host in deployed.placed.members]
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
            steps = [worker.step for worker in self._workers]
            if all(step is None for step in steps):
                return
            if isinstance(steps[0], Reduce):
                self._together(self._reduce)
            else:
                self._together(self._synchronise)

    def _reports(self, worker: Worker) -> Iterator[Line]:
        """Advance the worker to its next reduce or synchronisation, or to its end."""
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
