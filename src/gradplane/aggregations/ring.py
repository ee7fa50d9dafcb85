"""The workers add the gradients themselves, block by block round a ring (INCEPTIONN), or round
rings of groups whose leaders have one of their own.

The class `RingScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise

from gradplane.aggregations.aggregation import (
    Aggregation,
    Messages,
    PlacedJob,
    ReplayedJob,
    suggesting,
)
from gradplane.aggregations.needs import AskedJob
from gradplane.codecs import Codec
from gradplane.hosts.config import JobConfig
from gradplane.hosts.group_tree import levels, members_of
from gradplane.hosts.protocols.actions import Action, Deliver, SendMessage
from gradplane.hosts.protocols.job_codec import push_codec

RELIABILITY = "retransmit", "a lost partial sum would stop the ring, so hosts send it again"
"""How a job is reliable of which rings sum all vectors, or a part of them, and why."""


class RingScheme(Aggregation):
    """Each worker adds its values to a block and passes it to its right neighbour (protocols
    ring_worker and, with `groups`, ring_groups)."""

    worker_role = "gradplane.hosts.drivers.roles:RingWorkerRole"
    baseline = "ring"
    marks = sums_by_tensor = takes_groups = True
    no_pull = "a ring has no server that answers"
    no_quorum = "every partial sum passes through all workers, so no worker can be left out"
    only_reliability = RELIABILITY
    instead = 'aggregation = "switch" or "ps"'

    def has_rings(self, job: AskedJob) -> bool:
        """Return True: all values are added round rings."""
        return True

    def takes_tensors(self, codec: Codec) -> bool:
        """Return whether the codec's paper takes tensors by themselves, and a ring can."""
        return codec.by_tensor and bool(codec.carriers)

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return what each worker sends to its right neighbour at once; over groups likewise each
        leader among these, and down each group."""
        names = [host.name for host in placed.members]
        if not placed.groups:
            return list(round_of(names, config, values))
        found = list[Messages]()
        below = list(chain.from_iterable(levels(placed.groups)))
        block = _block(len(placed.groups), config, values)
        for group in (*below, placed.groups):
            members = [names[worker] for worker in members_of(group)]
            found += round_of(members, config, values)
            if group != placed.groups:
                found += [(a, b, block) for a, b in pairwise(members)]
        return found

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec that does not encode partial sums."""
        from gradplane.hosts.protocols.several_rounds import ring_worker

        with suggesting("ps"):
            ring_worker(config, 0)

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


def _block(places: int, config: JobConfig, values: int) -> int:
    """Return the bytes that each host of a ring sends at once: a block, or, where all blocks start
    at one place and follow each other, all of them."""
    together = places if config.sum_order == "rotated" else 1
    return -(-push_codec(config).most_bytes(values) // together)


def round_of(names: Sequence[str], config: JobConfig, values: int) -> Iterator[Messages]:
    """Yield what each host of a ring sends to its right neighbour at once."""
    block = _block(len(names), config, values)
    for place, name in enumerate(names):
        if len(names) > 1:
            yield name, names[(place + 1) % len(names)], block


class _ReplayedReduces:
    """Reduces round the ring: the order in which messages arrive changes nothing."""

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.several_rounds import ring_worker

        job = replayed.config
        self._replayed = replayed
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._machines = [ring_worker(job, w) for w in range(job.workers)]
        self._mail: deque[tuple[int, int, bytes]] = deque()  # sender, receiver, message

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        for (worker, step), machine in zip(self._replayed.asked(), self._machines, strict=True):
            self._perform(worker.number, machine.reduce(step.round, step.vector, 0, step.tensor))
        while self._mail:
            sender, number, data = self._mail.popleft()
            received = self._machines[number].receive(self._peers[sender], data, 0)
            self._perform(number, received)

    def _perform(self, number: int, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, SendMessage):
                data = self._replayed.arrived(self._peers[number], action)
                self._mail.append((number, self._peers.index(action.peer), data))
            elif isinstance(action, Deliver):
                self._replayed.workers[number].take(action)
