"""The interface of an aggregation scheme, and what most schemes have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from gradplane.aggregations.needs import AskedJob, Network, Outcomes
from gradplane.codecs import Codec
from gradplane.controller.plan import JobPlan
from gradplane.hosts.config import (
    STREAM_PORT_OFFSET,
    UDP_OVERHEAD,
    Addresses,
    ConfigError,
    JobConfig,
    UnsuitableCodecError,
)
from gradplane.hosts.group_tree import Group, levels
from gradplane.hosts.protocols.job_codec import push_codec
from gradplane.hosts.wire.aggregation import MAX_WORKERS, UDP_PORT
from gradplane.topologies.description import SWITCH_IP, HostNode, Link, Topology

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Deliver, Peer, SendMessage
    from gradplane.hosts.training.train import Reduce, Step

WORKER_PORT = 20_000
"""The UDP port of a worker's aggregation packets is this plus the job's number."""
STREAM_PORT = WORKER_PORT + STREAM_PORT_OFFSET
"""The UDP port of a host's stream is this plus the job's number."""

Messages = tuple[str, str, int]
"""The host that sends a message, the one that gets it, and its bytes."""

Path = Sequence[tuple[str, Link]]
"""Links, each behind the node from which it is entered."""

Keyed = tuple[str, str]
"""A key of a [[job]], and what is wrong with it."""


@dataclass(frozen=True)
class PlacedJob:
    """A job of a resolved experiment with the hosts that it runs on.

    `server` is the last host for servers that the topology has; None where there is none. groups:
    of its workers, where it has such. servers: the hosts that its own servers are on, those of
    groups last, as `served_groups` has them.
    """

    number: int
    job: AskedJob
    members: tuple[HostNode, ...]
    server: HostNode | None
    network: Topology
    groups: Group
    servers: tuple[HostNode, ...]

    @property
    def switches(self) -> list[str]:
        """The switches that get the workers' aggregation packets, sorted."""
        return sorted({self.network.aggregator(host.name) for host in self.members})


class ReplayError(Exception):
    """A recorded run that cannot be re-enacted; the message says where and why."""


@dataclass(frozen=True)
class WrongSum:
    """The place where sums differ from the recorded ones."""

    slot: int
    round: int  # the slot's
    ticket: int


@dataclass(eq=False)
class ReplayedWorker:
    """A worker of a job that is replayed: the step that it asks for, and its last result."""

    number: int
    step: Step | None = None
    joins: int = 0  # the round that its life began with
    result: Any = None
    delivered: bool = False

    def expect(self) -> None:
        """Begin a reduce or a synchronisation."""
        self.delivered, self.result = False, None

    def take(self, delivered: Deliver) -> None:
        """Take the result that the worker was waiting for."""
        self.result, self.delivered = delivered.result, True


@dataclass
class ReplayedJob:
    """A job that is replayed: its workers reduce in step.

    `hosts` are the names of the workers' hosts. A reduce sets `wrong_sum` at the first sums that
    differ from the recorded ones.
    """

    config: JobConfig
    hosts: Sequence[str]
    workers: Sequence[ReplayedWorker]
    outcomes: Outcomes
    network: Network
    wrong_sum: WrongSum | None = None

    def asked(self) -> Iterator[tuple[ReplayedWorker, Reduce]]:
        """Yield the workers with the reduce that each of them asks for."""
        found = list(self.reducing())
        assert len(found) == len(self.workers), [worker.step for worker in self.workers]
        yield from found

    def reducing(self) -> Iterator[tuple[ReplayedWorker, Reduce]]:
        """Yield the workers that ask for a reduce, with it."""
        from gradplane.hosts.training.train import Reduce

        for worker in self.workers:
            if isinstance(worker.step, Reduce):
                yield worker, worker.step

    def arrived(self, source: Peer, message: SendMessage) -> bytes:
        """Return a stream's message as its receiver gets it.

        Every message arrives; values that the network compresses pass through the P4 program.
        """
        if not message.values:
            return message.data
        return message.data + self.network.carry(source, message.peer, message.values)


def reliability_problems(
    job: AskedJob, what: str, needed: str, why: str, instead: str = ""
) -> Iterator[Keyed]:
    """Yield what is wrong with a job that is reliable in another way than is needed."""
    if job.reliability != needed:
        asked = f'{what} with reliability = "{job.reliability}"'
        yield "reliability", f'{asked}: {why}: use reliability = "{needed}"{instead}'


class Aggregation(ABC):
    """An aggregation scheme, frozen and without state: equal jobs are deployed equally."""

    worker_role: ClassVar[str]
    """Return the role of a worker's host as "module:object" (gradplane.hosts.drivers.host)."""
    server_role: ClassVar[str | None] = None
    """The role of the job's server, likewise; None for a scheme without one."""
    program: ClassVar[str | None] = None
    """The shipped P4 program that the scheme needs; None for any that forwards."""
    most_workers: ClassVar[int] = MAX_WORKERS
    """Workers of a job on one switch."""
    baseline: ClassVar[str] = "ps"
    """The scheme that trains this one's baseline, without compression and losses."""

    marks: ClassVar[bool] = False
    """Gradients may be sent as marked float32, which the network compresses."""
    skips_rounds: ClassVar[bool] = False
    """A worker may send nothing in a round (local_steps)."""
    sums_by_tensor: ClassVar[bool] = False
    """Each tensor may have a codec of its own."""
    has_levels: ClassVar[bool] = False
    """Several switches may sum a job, each at a quorum of its children (quorums)."""
    restarts: ClassVar[bool] = False
    """A job goes on where a switch loses its state."""
    leaves_out_zeros: ClassVar[bool] = False
    """Blocks of zeros may travel as headers (nonzero_blocks)."""
    takes_groups: ClassVar[bool] = False
    """Groups of workers are summed first, and then their sums (groups)."""
    group_servers: ClassVar[bool] = False
    """Where there are groups, each has a server of its own, or is a ring (rings)."""
    no_pull: ClassVar[str | None] = None
    """Why nothing is encoded on the way back to the workers; None if `pull` says how."""
    no_quorum: ClassVar[str | None] = None
    """Why each sum is of all workers; None if `quorum` may leave some out."""
    only_reliability: ClassVar[tuple[str, str] | None] = None
    """The only `reliability` that a job can have, and why; None if it may have any."""
    instead: ClassVar[str | None] = None
    """The keys of another scheme, which takes the quorum and reliability refused here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def needed_program(self, job: AskedJob) -> str | None:
        """Return the shipped P4 program that the job needs; None for any that forwards."""
        return self.program

    def takes_tensors(self, codec: Codec) -> bool:
        """Return whether its workers use a codec tensor by tensor where the job does not say."""
        return False

    def servers(self, job: AskedJob) -> int:
        """Return the number of hosts that the job's servers need, the network's last ones."""
        return int(self.server_role is not None)

    def served_groups(self, job: AskedJob, groups: Group) -> tuple[Group, ...]:
        """Return the groups of a job that have a server of their own, level by level."""
        return tuple(chain.from_iterable(levels(groups)[job.rings :])) if self.group_servers else ()

    def has_rings(self, job: AskedJob) -> bool:
        """Return whether values are added round rings, in one of two orders (sum_order)."""
        return job.rings

    def defaults(self) -> dict[str, Any]:
        """Return the values of keys of a [[job]] that default to None and are not given."""
        return {}

    def check(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
        """Yield problems that prevent a run, by key. `others`: the jobs before this one."""
        job = placed.job
        for key in ("pull", "pull_feedback", "pull_deltas"):
            if getattr(job, key) and self.no_pull is not None:
                yield key, f'{self.no_pull}: {key} is for aggregation = "ps"'
        what = f'aggregation = "{self.name}"'
        instead = f", or {self.instead}" if self.instead else ""
        if self.no_quorum is not None and job.quorum is not None and job.quorum < job.size:
            asked = f"{what} with quorum = {job.quorum} of {job.size} workers"
            yield "quorum", f"{asked}: {self.no_quorum}: use quorum = {job.size}{instead}"
        if self.only_reliability is not None:
            yield from reliability_problems(job, what, *self.only_reliability, instead)
        if job.groups is not None and not self.takes_groups:
            yield "groups", f'groups with {what}: they are of "ring" and "ps"'
        if job.between is not None and (job.groups is None or not self.group_servers):
            yield "between", 'between applies to aggregation = "ps" with groups only: leave it out'
        if job.rings and (job.groups is None or not self.group_servers):
            yield "rings", 'rings applies to aggregation = "ps" with groups only: leave it out'
        if job.sum_order is not None and not self.has_rings(job):
            of_rings = 'applies to aggregation = "ring" and to rings only'
            yield "sum_order", f"sum_order {of_rings}: leave it out"
        if not (self.has_levels and len(placed.switches) > 1):
            of_levels = "of switches that sum a job in levels, and here they do not"
            if job.quorums is not None and (job.groups is None or not self.group_servers):
                yield "quorums", f"quorums are {of_levels}: use quorum"
            if job.roots is not None:
                yield "roots", f"roots are {of_levels}: leave it out"
        if job.marked and not self.marks:
            yield (
                "marked",
                f"marked = true with {what}: its workers do not send float32"
                ' values: use aggregation = "ring" or "ps"',
            )
        if job.nonzero_blocks and not self.leaves_out_zeros:
            yield (
                "nonzero_blocks",
                f"nonzero_blocks = true with {what}: only the switch of"
                ' aggregation = "switch" fills in the blocks that workers leave out: leave it out',
            )
        if job.local_steps > 1 and (job.marked or not self.skips_rounds):
            how = "marked = true" if job.marked else what
            yield (
                "local_steps",
                f"local_steps = {job.local_steps} with {how}: only a parameter server's workers"
                ' may send nothing in a round: use aggregation = "ps" without marked, or'
                " local_steps = 1",
            )
        if (job.push.name == "per_tensor" or job.by_tensor is True) and not self.sums_by_tensor:
            yield (
                "push" if job.push.name == "per_tensor" else "by_tensor",
                f"codec by tensor with {what}: its workers sum whole vectors"
                ' under one codec: use aggregation = "ps", or one codec',
            )

    def advise(self, placed: PlacedJob, latency_ns: float) -> Iterator[Keyed]:
        """Yield warnings about probable mistakes, by key. Recorded runs are not checked.

        latency_ns: the time of a packet's pass through a switch.
        """
        yield from ()

    def round_trip_ns(self, placed: PlacedJob, latency_ns: float, pass_ns: float) -> float:
        """Return the longest time from a worker to the switch that sums and back, with as many
        packets before it in the queues as the job has under way; 0 where hosts need no such time.

        pass_ns: the time of a switch's work on a pass, while which others wait.
        """
        return 0.0

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return the messages of streams that are under way at the same time: by default those in
        which a worker gives all others its parameters, where the job has such.

        values: of the gradient."""
        if not (config.training.sync or config.absences):
            return ()
        first, *others = (host.name for host in placed.members)
        return [(first, other, 4 * values) for other in others]

    def stream_trip_ns(
        self, placed: PlacedJob, messages: Sequence[Messages], others: Sequence[Messages] = ()
    ) -> float:
        """Return the longest round trip of a packet of a job's streams by the links; 0 without any.

        It waits for all messages that are under way, those of other jobs on its links too, but in
        one direction only: while they come, hosts have sent few answers that its acknowledgement
        would have to wait for."""
        from gradplane.hosts.stream import segments

        packet = segments.SEGMENT + segments.HEADER_SIZE + UDP_OVERHEAD
        pairs = [(a, b) for a, b, _ in (*messages, *others)]
        port = STREAM_PORT + placed.number
        paths = {(a, b): placed.network.path(a, b, port) for a, b in pairs}
        paths |= {(b, a): placed.network.path(b, a, port) for a, b in pairs}
        load: Counter[tuple[str, str]] = Counter()  # packets, by node and link
        for source, destination, size in (*messages, *others):
            packets = min(-(-size // segments.SEGMENT), segments.BEYOND)
            for node, link in paths[source, destination]:
                load[node, link.name] += packets

        def wait(node: str, link: Link) -> float:
            packets = min(load[node, link.name], link.queue + 1)
            return 8e9 * packet * packets / link.rate if link.rate else 0.0

        def trip(there: Path, back: Path) -> float:
            whole = (*there, *back)
            return sum(link.delay for _, link in whole) + max(wait(*place) for place in whole)

        trips = [trip(paths[a, b], paths[b, a]) for a, b, _ in messages]
        return max(trips, default=0.0)

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError if the scheme's hosts cannot run the job."""
        push_codec(config)

    def addresses(self, placed: PlacedJob) -> Addresses:
        """Return where the job's packets go."""
        server = None
        if self.servers(placed.job):
            assert placed.server is not None, "the topology has no host for a server"
            server = placed.server.ip, STREAM_PORT + placed.number
        workers = tuple((host.ip, WORKER_PORT + placed.number) for host in placed.members)
        return Addresses((SWITCH_IP, UDP_PORT), workers, server)

    def marked_receivers(self, placed: PlacedJob) -> tuple[HostNode, ...]:
        """Return the hosts that marked transfers go to."""
        return placed.members

    def aggregators(self, placed: PlacedJob) -> Sequence[str]:
        """Return the switches that sum for the job, if any do."""
        return placed.switches[:1]

    def racks(self, placed: PlacedJob) -> tuple[tuple[int, ...], ...]:
        """Return the workers of each switch with workers, by their numbers there, where several
        switches sum; nothing where one does."""
        return ()

    def plans(
        self, placed: PlacedJob, config: JobConfig, slots_end: Mapping[str, int]
    ) -> Iterator[tuple[str, JobPlan]]:
        """Yield the switches and what they install for the job; nothing where they only forward.

        slots_end: by switch, the first slot that no other job of it has; 0 where there is no job.
        """
        yield from ()

    def code_bits(self, job: AskedJob) -> int | None:
        """Return the width that the job's codes need in packets, None if no switch sums them.

        Raises CodecError for a codec that does not exist."""
        return None

    def defines(self, jobs: Sequence[AskedJob]) -> dict[str, str]:
        """Return the macros that the program is compiled with for these jobs of the scheme."""
        return {}

    def result_bytes(self, job: AskedJob) -> tuple[int, int]:
        """Return the payload up and down of a result's packets that are sent without a stream.

        A stream sends again what is lost, so what it needs is what it carries: 0."""
        return 0, 0

    @abstractmethod
    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce.

        Each worker's step is a Reduce when it is called, and `take` has been called on each worker
        when it returns.
        """


def quorum_problems(job: AskedJob, fewest: Sequence[int], where: str, what: str) -> Iterator[Keyed]:
    """Yield what is wrong with the quorums of a job that is summed in levels.

    fewest: by level, how many children each node has at least. where, what: the nodes, in words."""
    if job.quorums is None:
        if job.quorum is not None and job.quorum < job.size:
            yield (
                "quorum",
                f"quorum = {job.quorum} of {job.size} workers: {where}, and each of these waits for"
                f" children of its own: use quorums = {list(fewest)}, from the leaves to the root,"
                " or less",
            )
        return
    if len(job.quorums) != len(fewest) or any(
        q > few for q, few in zip(job.quorums, fewest, strict=False)
    ):
        yield (
            "quorums",
            f"quorums = {list(job.quorums)}: {where}; there are {len(fewest)} levels of {what},"
            f" from the leaves to the root, with {list(fewest)} children or more: use as many of"
            " each, or fewer",
        )
    elif job.quorum is not None and job.quorum > (reached := prod(job.quorums)):
        yield (
            "quorum",
            f"quorum = {job.quorum} with quorums = {list(job.quorums)}: a result has"
            f" {' × '.join(map(str, job.quorums))} = {reached} workers: use quorum = {reached}, or"
            " larger quorums",
        )


@contextmanager
def suggesting(scheme: str) -> Iterator[None]:
    """Add another scheme to the ways out of a codec that a protocol refuses inside."""
    try:
        yield
    except UnsuitableCodecError as error:
        raise ConfigError(f'{error}, or aggregation = "{scheme}"', error.key) from None


def reference(kind: type[object]) -> str:
    """Return "module:object" for a class."""
    return f"{kind.__module__}:{kind.__qualname__}"
