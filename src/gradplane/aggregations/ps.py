"""A software parameter server on the job's last host adds the gradients; or one for each group of
workers does, and the one on the last host adds their sums.

The class `ServerScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from gradplane.aggregations.aggregation import (
    STREAM_PORT,
    Aggregation,
    Keyed,
    Messages,
    PlacedJob,
    ReplayedJob,
    quorum_problems,
    reliability_problems,
)
from gradplane.aggregations.needs import AskedJob
from gradplane.aggregations.ring import RELIABILITY, round_of
from gradplane.codecs import Codec
from gradplane.hosts.config import Addresses, ConfigError, JobConfig
from gradplane.hosts.group_tree import levels, workers_of
from gradplane.hosts.protocols.job_codec import (
    SUMS,
    answers_sums,
    check_group_sums,
    make_codec,
    push_codec,
    sums_type,
)
from gradplane.hosts.protocols.messages import SERVER_KINDS, Kind, parse
from gradplane.topologies.description import MAX_HOSTS, HostNode

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Action, Peer


class ServerScheme(Aggregation):
    """Workers push to the server and pull the mean, or the weights, each with a codec."""

    worker_role = "gradplane.hosts.drivers.roles:ServedWorkerRole"
    server_role = "gradplane.hosts.drivers.roles:ParameterServerRole"
    most_workers = MAX_HOSTS
    marks = skips_rounds = sums_by_tensor = takes_groups = group_servers = True

    def takes_tensors(self, codec: Codec) -> bool:
        """Return whether the codec's paper takes tensors by themselves."""
        return codec.by_tensor

    def defaults(self) -> dict[str, Any]:
        """Return the default codec of the answers."""
        return {"pull": {"name": "float32"}}

    def addresses(self, placed: PlacedJob) -> Addresses:
        """Return where the job's packets go, with the servers of its groups."""
        rings = levels(placed.groups)[: placed.job.rings]
        leaders = [placed.members[workers_of(ring)[0]] for ring in chain.from_iterable(rings)]
        hosts = (*leaders, *placed.servers[1:])
        own = tuple((host.ip, STREAM_PORT + placed.number) for host in hosts)
        return replace(super().addresses(placed), servers=own)

    def check(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
        """Yield problems that prevent a run, each with its key."""
        yield from super().check(placed, others)
        job = placed.job
        if not placed.groups:
            return
        sums = job.pull is not None and job.pull.name == SUMS
        if job.rings:
            yield from _rings_problems(job, sums)
        else:
            rows = levels(placed.groups)
            where = f"{sum(map(len, rows))} groups have a server each, below the job's"
            fewest = [*(min(map(len, row)) for row in rows), len(placed.groups)]
            yield from quorum_problems(job, fewest, where, "servers")
        if job.quorums is not None and job.local_steps > 1:
            yield (
                "local_steps",
                f"local_steps = {job.local_steps} with quorums: a group that is left out would lose"
                " its step: use quorums of all, or local_steps = 1",
            )
        if job.between is not None and (job.marked or sums):
            yield (
                "between",
                f"between with {'pull = sums' if sums else 'marked = true'}: groups' sums travel as"
                f" {'integers' if sums else 'float32, which the network compresses'}: leave it out",
            )

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec that the server cannot take, or not with its weights."""
        from gradplane.hosts.protocols.several_rounds import served_worker

        codec = push_codec(config)
        if config.groups and not answers_sums(config):
            check_group_sums(config, codec)
        if config.rings:
            served_worker(config, 0)
        if codec.carriers and config.coding.served_steps:
            raise ConfigError(
                f"codec {codec.name}: its workers take several means a step, and this server makes"
                " the step itself, with one: leave out pull_deltas and the policy of pull, or use"
                " another codec",
                "codec",
            )

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return all messages to servers, and their answers."""
        names = {host.ip: host.name for host in (*placed.members, *placed.servers)}
        codec = push_codec(config)
        push = codec.most_bytes(values)
        pull = make_codec(config.coding.pull_codec, "pull_codec").most_bytes(values)
        if answers_sums(config):
            pull = codec.lanes(values) * sums_type(codec, config.most).itemsize
        found = list[Messages]()
        for group, address in config.servers.items():
            below = [names[ip] for ip, _ in map(config.address, group)]
            if config.rings and group in levels(placed.groups)[0]:
                found += round_of(below, config, values)
                found += [(one, other, pull) for one, other in pairwise(below)]
                continue
            assert address is not None
            above = names[address[0]]
            found += [(name, above, push) for name in below]
            found += [(above, name, pull) for name in below]
        return found

    def marked_receivers(self, placed: PlacedJob) -> tuple[HostNode, ...]:
        """Return the servers, and members of rings: answers are never marked."""
        return (*placed.servers, *(placed.members if placed.job.rings else ()))

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


def _rings_problems(job: AskedJob, sums: bool) -> Iterator[Keyed]:
    """Yield what is wrong with a job whose groups are rings. sums: its server would answer so."""
    yield from reliability_problems(job, "rings = true", *RELIABILITY)
    if job.quorums is not None or (job.quorum is not None and job.quorum < job.size):
        key = "quorum" if job.quorums is None else "quorums"
        text = "a group's sum passes through all of its workers, so none can be left out"
        yield key, f"{key} with rings = true: {text}: leave out {key}, or rings"
    if sums:
        yield "pull", 'pull = "sums" with rings = true: rings add values, not codes: leave out one'
    if job.local_steps > 1:
        text = "a ring's workers send values in every round"
        yield "local_steps", f"local_steps = {job.local_steps} with rings = true: {text}: use 1"


class _ReplayedReduces:
    """Reduces through the servers: late messages come after the answers."""

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.server_tree import server
        from gradplane.hosts.protocols.several_rounds import served_worker
        from gradplane.hosts.training.sgd import served

        job = replayed.config
        root = job.addresses.server_address
        assert root is not None
        self._replayed = replayed
        self._workers = [served_worker(job, w) for w in range(job.workers)]
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._machines = {root: server(job, root, served(job)).receive}
        for peer, worker in zip(self._peers, self._workers, strict=True):
            self._machines[peer] = worker.receive
        self._behind = {peer: 1 << worker for worker, peer in enumerate(self._peers)}
        for address, group in zip(
            job.addresses.servers, chain.from_iterable(levels(job.groups)), strict=True
        ):
            self._behind[address] = sum(1 << worker for worker in workers_of(group))
            if address not in self._machines:  # of a leader
                self._machines[address] = server(job, address).receive
        self._rounds = len(push_codec(job).carriers) or 1
        self._everyone = (1 << job.workers) - 1
        self._in_time: deque[tuple[Peer, Peer, bytes]] = deque()  # source, receiver, message
        self._late: deque[tuple[Peer, Peer, bytes]] = deque()

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        for (worker, step), machine in zip(self._replayed.asked(), self._workers, strict=True):
            asked = machine.reduce(step.round, step.vector, 0, step.tensor)
            self._perform(self._peers[worker.number], asked)
        while self._in_time or self._late:
            source, receiver, data = (self._in_time or self._late).popleft()
            self._perform(receiver, self._machines[receiver](source, data, 0))

    def _perform(self, here: Peer, actions: Iterable[Action]) -> None:
        from gradplane.hosts.protocols.actions import Deliver, SendMessage

        for action in actions:
            if isinstance(action, SendMessage):
                data = self._replayed.arrived(here, action)
                queue = self._in_time if self._counts(here, data) else self._late
                queue.append((here, action.peer, data))
            elif isinstance(action, Deliver):
                self._replayed.workers[self._peers.index(here)].take(action)

    def _counts(self, source: Peer, data: bytes) -> bool:
        """Return whether what a worker or a group's server sends up is in the answer; what comes
        down always counts."""
        message, outcomes = parse(data), self._replayed.outcomes
        if message.kind not in SERVER_KINDS:
            return True
        ticket, round = divmod(message.ticket, self._rounds)
        early = message.kind is Kind.STAT or round < self._rounds - 1
        answers = outcomes.stats if early else outcomes.pushes
        return bool(answers.get(ticket, self._everyone) & self._behind[source])
