"""A job's whole training through a software parameter server, without the packets.

Workers train in step; each vector is encoded and decoded, and the mean is taken in worker order, as
hosts/protocols/parameter_server.py does it. A run in which everything arrives ends with the same
weights, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gradplane.codecs import Codec
from gradplane.experiment.deploying import deploy, resolve
from gradplane.experiment.schema import Experiment, Job, TopologySection
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.job_codec import push_codec, reduce_seed
from gradplane.hosts.protocols.results import Floats, Reduced
from gradplane.hosts.training.train import Reduce, Report, train
from gradplane.studies.nmse import nmse

Mean = Callable[[int, Sequence[Floats]], Floats]
"""Returns the mean of a round that all workers get, float32[n], given its number and vectors."""


class WithCurve:
    """A training with a curve: after each epoch, the seconds since its start and the accuracy."""

    curve: tuple[tuple[float, float], ...]

    @property
    def accuracy(self) -> float:
        """The test accuracy after the last epoch."""
        return self.curve[-1][1]

    def time_to(self, accuracy: float) -> float | None:
        """Return the end of the first epoch with at least that accuracy; None if there is none."""
        return next((at for at, reached in self.curve if reached >= accuracy), None)


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    accuracies: worker 0's, on the test rows after each epoch; all workers have the same weights.
    weights: the final ones' digest. ratio: bytes of the gradients as float32 over bytes sent, 1
    where nothing is encoded. rounds: worker 0's record of each."""

    accuracies: tuple[float, ...]
    weights: str
    ratio: float
    rounds: tuple[dict[str, Any], ...]

    @property
    def accuracy(self) -> float:
        """The test accuracy after the last epoch."""
        return self.accuracies[-1]


def job(workers: int, **keys: Any) -> JobConfig:
    """Return the job of an experiment through a parameter server: `keys` as in [[job]]."""
    wanted = Job(aggregation="ps", **keys)
    made = Experiment(topology=TopologySection(workers=workers), job=(wanted,))
    return deploy(resolve(made)).jobs[0].config


def run(job: JobConfig, mean: Mean | None = None) -> Trained:
    """Train all workers to the end, where given with a `mean` instead of the job's codec.

    Raises what train(), the codec and `mean` raise."""
    server = _Server(job)
    reduce = server.reduce if mean is None else partial(_given, mean)
    workers = [train(job, worker, tested=worker == 0) for worker in range(job.workers)]
    answers: Sequence[Reduced | None] = [None] * job.workers
    accuracies, rounds = [], []
    while True:
        steps = [worker.send(a) for worker, a in zip(workers, answers, strict=True)]
        first = steps[0]
        answers = [None] * job.workers
        if isinstance(first, Reduce):
            vectors = [step.vector for step in steps if isinstance(step, Reduce)]
            answers = [reduce(first.round, vectors)] * job.workers
        elif isinstance(first, Report) and first.kind == "round":
            rounds.append(first.fields)
        elif isinstance(first, Report) and first.kind == "epoch":
            accuracies.append(first.fields["test_accuracy"])
        elif isinstance(first, Report) and first.kind == "done":
            weights = first.fields["weights"]
            return Trained(tuple(accuracies), weights, server.ratio, tuple(rounds))


def first_error(workers: int, **keys: Any) -> float:
    """Return the NMSE of the mean of the first round's gradients, of a job as `job` makes it.

    The answers' codec has no part in it."""
    made = job(workers, **keys)
    vectors = []
    for worker in range(workers):
        step = next(step for step in train(made, worker) if isinstance(step, Reduce))
        vectors.append(step.vector)
    exact = np.asarray(np.mean(vectors, axis=0, dtype=np.float64), np.float32)
    return nmse(exact, _Server(made).reduce(0, vectors).mean)


def _given(mean: Mean, ticket: int, vectors: Sequence[Floats]) -> Reduced:
    counts = np.array([len(vectors)], np.int64)
    return Reduced(mean(ticket, vectors), counts, 0, "", "", "")


class _Server:
    """Encodes each worker's vector, decodes it and merges them."""

    def __init__(self, job: JobConfig, codec: Codec | None = None) -> None:
        self._job, self._codec = job, codec or push_codec(job)
        self._states: list[Any] = []
        self._sent = self._values = 0
        self._rounds = [_Server(job, carrier) for carrier in self._codec.carriers]

    @property
    def ratio(self) -> float:
        sent = sum(s._sent for s in self._rounds or [self])
        return 4 * self._values / sent if sent else 1.0

    def reduce(self, ticket: int, vectors: Sequence[Floats]) -> Reduced:
        n = vectors[0].size
        self._states = self._states or [self._codec.start(n) for _ in vectors]
        if self._rounds:
            return self._in_rounds(ticket, vectors)
        shared = self._shared(vectors)
        decoded = []
        for worker, vector in enumerate(vectors):
            data, self._states[worker] = self._codec.encode(
                vector, shared, reduce_seed(self._job, ticket), self._states[worker], worker
            )
            decoded.append(self._codec.decode(data, n))
            self._sent += len(data)
            self._values += n
        counts = np.array([len(vectors)], np.int64)
        return Reduced(self._codec.merge(decoded), counts, 0, "", "", "")

    def _in_rounds(self, ticket: int, vectors: Sequence[Floats]) -> Reduced:
        """Let the workers take the means of their vectors, round by round."""
        self._values += sum(vector.size for vector in vectors)
        seed = reduce_seed(self._job, ticket)
        steps = [
            self._codec.reduce(vector, seed, self._states[worker], worker)
            for worker, vector in enumerate(vectors)
        ]
        sent = [next(step) for step in steps]
        for number, server in enumerate(self._rounds):
            reduced = server.reduce(ticket * len(self._rounds) + number, sent)
            sent = []
            for worker, step in enumerate(steps):
                try:
                    sent.append(step.send(reduced.mean))
                except StopIteration as end:
                    mean, self._states[worker] = end.value
        return replace(reduced, mean=mean)

    def _shared(self, vectors: Sequence[Floats]) -> Floats | None:
        pairs = zip(vectors, self._states, strict=True)
        stats = [self._codec.local(vector, state) for vector, state in pairs]
        known = [stat for stat in stats if stat is not None]
        return self._codec.combine(known) if known else None
