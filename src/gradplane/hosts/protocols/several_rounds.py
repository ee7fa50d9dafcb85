"""Reduces under a codec whose workers take several means, one after another (PowerSGD).

Each round of such a reduce is a reduce of its own, of the vector that the codec yields, by a state
machine of the scheme: under `Codec.carriers[k]` in round k. Round k of ticket t of R rounds has the
ticket R t + k on the wire. A round begins when it has begun for all earlier tickets in flight, so
that tickets rise for each machine, and in the same order at all workers.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gradplane import codecs
from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, Record, SetTimer
from gradplane.hosts.protocols.job_codec import push_codec, reduce_seed
from gradplane.hosts.protocols.messages import parse
from gradplane.hosts.protocols.parameter_server import PsWorker
from gradplane.hosts.protocols.phases import Watch, unwatched
from gradplane.hosts.protocols.results import (
    TRANSIENT,
    Floats,
    Reduced,
    check_free,
    checked_vector,
)
from gradplane.hosts.protocols.ring_groups import GroupPlans, GroupRingWorker
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.protocols.served_ring import ServedRingWorker

_OF_RESULTS = ("count", "digest", "attempts", "notices")  # fields that a norm's line does not have


class Machine(Protocol):
    """A worker's state machine of a scheme, which reduces the vectors of one round."""

    watch: Watch

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]: ...
    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]: ...
    def timer(self, key: Hashable, now: int) -> list[Action]: ...
    def missing(self, ticket: int) -> list[str]: ...
    def save(self) -> Any: ...
    def restore(self, saved: Any) -> None: ...


@dataclass
class _Reduce:
    tensor: int
    gradient: str
    steps: codecs.Rounds
    vector: Floats | None  # of a round that has not begun
    round: int = 0
    done: list[Reduced] = field(default_factory=list)

    @property
    def begun(self) -> int:
        """The number of rounds that have begun."""
        return self.round + (self.vector is None)


def served_worker(job: JobConfig, worker: int) -> Machine:
    """Return the machine of a parameter server's worker; ConfigError for an unsuitable codec."""
    codec, made = push_codec(job), ServedRingWorker if job.rings else PsWorker
    if not codec.carriers:
        return made(job, worker)
    machines = [made(job, worker, carrier) for carrier in codec.carriers]
    return RoundsWorker(job, worker, codec, machines)


def ring_worker(job: JobConfig, worker: int) -> Machine:
    """Return the machine of a ring's worker, or of one in a ring over groups.

    ConfigError for an unsuitable codec."""
    carriers = push_codec(job).carriers or (None,)
    machines: list[Machine] = [_ring(job, worker, carrier) for carrier in carriers]
    if len(machines) == 1:
        return machines[0]
    return RoundsWorker(job, worker, push_codec(job), machines)


def _ring(job: JobConfig, worker: int, codec: codecs.Codec | None) -> Machine:
    if job.groups:
        return GroupRingWorker(GroupPlans.of(job, codec), worker)
    return RingWorker(RingPlan.of(job, codec), worker)


class RoundsWorker:
    """One worker's reduces, several in flight at once; actions and messages are its machines'.

    The line of a reduce's last round is its arrival; those of earlier ones are of kind "norm".
    """

    def __init__(
        self, job: JobConfig, worker: int, codec: codecs.Codec, machines: Sequence[Machine]
    ) -> None:
        self._job, self._worker, self._codec, self._machines = job, worker, codec, machines
        self.watch: Watch = unwatched
        self._states: dict[int, Any] = {}
        self._reduces: dict[int, _Reduce] = {}

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return self._states, [machine.save() for machine in self._machines]

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        self._states, machines = saved
        for machine, own in zip(self._machines, machines, strict=True):
            machine.restore(own)

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start a reduce as the machines do; later tickets have higher numbers."""
        vector = checked_vector(vector, self._worker, ticket)
        check_free(self._worker, ticket, tensor, self._reduces)
        state = self._states.get(tensor)
        state = self._codec.start(vector.size) if state is None else state
        seed = reduce_seed(self._job, ticket)
        steps = self._codec.reduce(vector, seed, state, self._worker)
        self.watch(ticket, "encode")
        self._reduces[ticket] = _Reduce(tensor, digest(vector), steps, next(steps))
        self.watch(ticket, "network")
        return self._go_on(now)

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message of the machine of its round."""
        number = parse(data).ticket % len(self._machines)
        return self._own(number, self._machines[number].receive(peer, data, now), now)

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle the timer of a machine."""
        assert isinstance(key, tuple), key
        number, own = key
        return self._own(number, self._machines[number].timer(own, now), now)

    def missing(self, ticket: int) -> list[str]:
        """Name the messages that a reduce in flight waits for, for people."""
        reduce, rounds = self._reduces.get(ticket), len(self._machines)
        if reduce is None or reduce.vector is not None:
            return []
        return self._machines[reduce.round].missing(ticket * rounds + reduce.round)

    def _go_on(self, now: int) -> list[Action]:
        """Begin the rounds that are ready and may begin."""
        actions: list[Action] = []
        before = len(self._machines)  # rounds that all earlier tickets have begun
        for ticket, reduce in sorted(self._reduces.items()):
            if reduce.vector is not None and reduce.round < before:
                vector, reduce.vector = reduce.vector, None
                before = reduce.begun
                number = ticket * len(self._machines) + reduce.round
                machine = self._machines[reduce.round]
                found = machine.reduce(number, vector, now, reduce.tensor)
                actions += self._own(reduce.round, found, now)
            before = min(before, reduce.begun)
        return actions

    def _own(self, number: int, found: Iterable[Action], now: int) -> list[Action]:
        """Return a machine's actions as this one's; take its results."""
        actions: list[Action] = []
        for action in found:
            match action:
                case Deliver(ticket, result):
                    actions += self._answered(ticket // len(self._machines), result, now)
                case SetTimer(key, at):
                    actions.append(SetTimer((number, key), at))
                case Record(kind, fields):
                    actions.append(self._record(number, kind, fields))
                case _:
                    actions.append(action)
        return actions

    def _answered(self, ticket: int, result: Reduced, now: int) -> list[Action]:
        reduce = self._reduces[ticket]
        reduce.done.append(result)
        self.watch(ticket, "decode" if len(reduce.done) == len(self._machines) else "encode")
        try:
            reduce.vector = reduce.steps.send(result.mean)
        except StopIteration as end:
            return [self._result(ticket, reduce, *end.value), *self._go_on(now)]
        self.watch(ticket, "network")
        reduce.round += 1
        return self._go_on(now)

    def _result(self, ticket: int, reduce: _Reduce, mean: Floats, state: Any) -> Deliver:
        del self._reduces[ticket]
        if reduce.tensor < TRANSIENT:
            self._states[reduce.tensor] = state
        last = reduce.done[-1]
        result = Reduced(
            mean=mean,
            counts=last.counts,
            missed=last.missed,
            gradient=reduce.gradient,
            codes=digest(*(done.codes.encode() for done in reduce.done)),
            sums=digest(*(done.sums.encode() for done in reduce.done)),
            codec_ns=sum(done.codec_ns for done in reduce.done),
            reduce_ns=sum(done.reduce_ns for done in reduce.done),
        )
        return Deliver(ticket, result)

    def _record(self, number: int, kind: str, fields: dict[str, Any]) -> Record:
        rounds = len(self._machines)
        fields = fields | {"ticket": fields["ticket"] // rounds}
        if kind == "arrival" and number < rounds - 1:
            fields = {key: value for key, value in fields.items() if key not in _OF_RESULTS}
            return Record("norm", fields | {"partition": 0, "norm": None})
        return Record(kind, fields)
