"""A P4 program in the switch adds the gradients' codes in slots that all jobs share (after ATP,
NSDI '21); each job has a server, which gives the results and adds what the switch did not.

The class `SharedScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradplane.aggregations.aggregation import (
    WORKER_PORT,
    Aggregation,
    Keyed,
    PlacedJob,
    ReplayedJob,
    ReplayError,
    WrongSum,
    suggesting,
)
from gradplane.aggregations.needs import AskedJob
from gradplane.aggregations.switch import (
    codec_bits,
    indices_bytes,
    job_plan,
    one_width,
    program_limits,
)
from gradplane.controller.plan import JobPlan, Server
from gradplane.hosts.config import UDP_OVERHEAD, Addresses, JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import UDP_PORT, Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.topologies.description import SWITCH_IP, HostNode

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Action, Peer

_PATIENCE = 2
"""Packets of other chunks, for each of a job's workers, that a slot's chunk stands."""


class SharedScheme(Aggregation):
    """Workers send codes; the switch adds those that find a slot, the job's server the others."""

    worker_role = "gradplane.hosts.drivers.roles:SharedWorkerRole"
    server_role = "gradplane.hosts.drivers.roles:SharedServerRole"
    program = "shared.p4"
    no_pull = "workers get the sums as they are"
    no_quorum = "a sum is complete when every worker is in"
    only_reliability = (
        "retransmit",
        "what a switch gives up comes to the server only if workers send it again",
    )
    instead = 'aggregation = "switch"'
    restarts = True

    def check(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
        """Yield problems that prevent a run, each with its key."""
        yield from super().check(placed, others)
        job = placed.job
        ends = [*placed.members, *([placed.server] if placed.server is not None else [])]
        switches = sorted({placed.network.rack(host.name) for host in ends})
        if len(switches) > 1:
            yield (
                "workers",
                f"job {job.name}: its workers and its server are attached to switches"
                f" {', '.join(switches)}, and slots are shared in one: place them on one switch, or"
                ' use aggregation = "switch"',
            )
        yield from one_width(job, others)

    def round_trip_ns(self, placed: PlacedJob, latency_ns: float, pass_ns: float) -> float:
        """Return the longest round trip by way of the server, where all workers' windows wait.

        What passes on from all of them is less than their partials and as many results."""
        job, passes = placed.job, aggregation.passes(placed.job.sum_bits)
        window = job.slots // 2
        assert placed.server is not None
        links = max(_link_ns(placed, host, window) for host in placed.members)
        switch = latency_ns + window * job.size * pass_ns
        return links + _link_ns(placed, placed.server, window * job.size) + (passes + 2) * switch

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec whose codes the switch cannot sum."""
        with suggesting("ps"):
            summed_codec(config)

    def addresses(self, placed: PlacedJob) -> Addresses:
        """Return where the job's packets go; the server's port is of aggregation packets."""
        workers = tuple((host.ip, WORKER_PORT + placed.number) for host in placed.members)
        assert placed.server is not None, "the topology has no host for a server"
        server = placed.server.ip, WORKER_PORT + placed.number
        return Addresses((SWITCH_IP, UDP_PORT), workers, server)

    def plans(
        self, placed: PlacedJob, config: JobConfig, slots_end: Mapping[str, int]
    ) -> Iterator[tuple[str, JobPlan]]:
        """Yield what the workers' switch installs for the job."""
        (switch,), server, address = placed.switches, placed.server, config.addresses.server_address
        assert server is not None and address is not None
        port, patience = placed.network.routes(switch)[server.name], _PATIENCE * config.workers
        above = Server(port, server.mac, server.ip, address[1], patience)
        yield switch, replace(job_plan(config, placed, switch, 0), server=above)

    def code_bits(self, job: AskedJob) -> int:
        """Return the narrowest width that holds the codec's codes."""
        return codec_bits(job.push.name, job.push.args)

    def defines(self, jobs: Sequence[AskedJob]) -> dict[str, str]:
        """Return the program's widths; how many slots it has is the user's, `SLOTS` in [switch]."""
        limits = program_limits(jobs[0], 0)
        del limits["SLOTS"]
        return limits

    def result_bytes(self, job: AskedJob) -> tuple[int, int]:
        """Return the payload of a packet of indices and of one of sums."""
        return indices_bytes(job), aggregation.SUMS_SIZE

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


def _link_ns(placed: PlacedJob, host: HostNode, packets: int) -> float:
    """Return the time that a packet of sums takes on a host's link and back, as the last of so
    many, or of as many as its queue holds."""
    (link,) = (link for link in placed.network.links if host.name in (link.a, link.b))
    size = aggregation.SUMS_SIZE + aggregation.HEADER_SIZE + UDP_OVERHEAD
    waiting = 16e9 * size * min(packets, link.queue + 1)
    return 2 * link.delay + (waiting / link.rate if link.rate else 0.0)


class _ReplayedReduces:
    """Reduces through the P4 program and the server, without losses: a sum has all workers, so that
    it is the recorded one in whichever slots and on whichever way it was made."""

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.shared_server import SharedServer
        from gradplane.hosts.protocols.shared_worker import SharedWorker

        job = replayed.config
        assert job.addresses.server_address is not None
        self._replayed, self._addresses = replayed, job.addresses
        self._server_address = job.addresses.server_address
        self._machines = [SharedWorker(job, worker) for worker in range(job.workers)]
        self._server = SharedServer(job)
        self._packets: deque[tuple[Peer, bytes]] = deque()  # with the address that they come from
        self._now, self._ticket = 0, 0

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        for (worker, step), machine in zip(self._replayed.asked(), self._machines, strict=True):
            self._ticket = step.round
            self._perform(machine.reduce(step.round, step.vector, 0, step.tensor), worker.number)
        while not all(worker.delivered for worker in self._replayed.workers):
            while self._packets:
                self._send(*self._packets.popleft())
            if self._server.alarm is not None:
                # A chunk has lost its slot to another one: the server asks for what it lacks.
                self._now = max(self._now, self._server.alarm)
                self._perform(self._server.timer(None, self._now))
            elif not self._packets:
                break
        for worker in self._replayed.workers:
            if not worker.delivered:
                raise ReplayError(
                    f"round {self._ticket}, worker {worker.number} waits for a result that neither"
                    " the switch nor the server gives: this is not the recorded experiment"
                )

    def _send(self, source: Peer, payload: bytes) -> None:
        """Send a packet to the switch; hand on what arrives, but what is of another job."""
        replayed, aggregator = self._replayed, self._addresses.aggregator
        for host, port, answer in replayed.network.send(source, aggregator, payload):
            arrived = Payloads.of([answer])
            if port != self._server_address[1]:
                continue
            if host not in replayed.hosts:
                self._perform(self._server.receive(*aggregator, arrived, self._now))
                continue
            number = replayed.hosts.index(host)
            self._compare(answer)
            self._perform(self._machines[number].receive(*aggregator, arrived, 0), number)

    def _perform(self, actions: Iterable[Action], worker: int | None = None) -> None:
        from gradplane.hosts.protocols.actions import Deliver, Send

        source = self._server_address
        if worker is not None:
            source = self._addresses.worker_addresses[worker]
        for action in actions:
            if isinstance(action, Send):
                self._packets += ((source, payload) for payload in action.payloads)
            elif isinstance(action, Deliver):
                assert worker is not None, "a server reduces nothing"
                self._replayed.workers[worker].take(action)

    def _compare(self, answer: bytes) -> None:
        header, body = aggregation.parse(answer)
        place = header.slot, header.round
        if header.type is not Type.SUMS or self._replayed.wrong_sum is not None:
            return
        recorded = self._replayed.outcomes.chunks[place].digest
        if recorded not in (None, digest(aggregation.unpack_sums(body, header.sum_bits))):
            self._replayed.wrong_sum = WrongSum(*place, self._ticket)
