"""A P4 program in the switches adds the gradients' codes (THC): in the one that all workers are
attached to, or in a tree of them.

The class `SwitchScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, combinations, product
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradplane import codecs
from gradplane.aggregations.aggregation import (
    Aggregation,
    Keyed,
    PlacedJob,
    ReplayedJob,
    ReplayedWorker,
    ReplayError,
    WrongSum,
    quorum_problems,
    suggesting,
)
from gradplane.aggregations.needs import AskedJob, Outcome, Place
from gradplane.controller.plan import JobPlan, Level, Member, Parent
from gradplane.hosts.config import UDP_OVERHEAD, JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.topology_errors import TopologyError
from gradplane.topologies.tree import TreeNode, switch_trees

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Action
    from gradplane.hosts.protocols.switch_worker import SwitchWorker
    from gradplane.hosts.training.train import Reduce


_KINDS = {"norm": Type.NORM, "chunk": Type.INDICES}
"""The packets that a wait is about."""


class SwitchScheme(Aggregation):
    """Workers send codes; the switch sums them and multicasts the sums at the quorum."""

    worker_role = "gradplane.hosts.drivers.roles:SwitchWorkerRole"
    program = "thc.p4"
    has_levels = restarts = leaves_out_zeros = True
    no_pull = "a switch answers with the sums as they are"

    def check(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
        """Yield problems that prevent a run, each with its key."""
        yield from super().check(placed, others)
        job = placed.job
        if len(placed.switches) > 1:
            yield from _level_problems(placed)
        yield from one_width(job, others)

    def advise(self, placed: PlacedJob, latency_ns: float) -> Iterator[Keyed]:
        """Yield warnings about a timeout that ends before any result can arrive, and about zeros
        that a codec spreads."""
        job = placed.job
        if job.nonzero_blocks and getattr(
            codecs.get(job.push.name, **job.push.args), "rotate", False
        ):
            yield (
                "nonzero_blocks",
                f'nonzero_blocks = true with push = "{job.push.name}": its rotation leaves no block'
                ' of zeros: use push = "switchml", or leave it out',
            )
        passes = aggregation.passes(job.sum_bits)
        ways = _ways_up(placed)
        switches = max(len(way) for _, way in ways)
        through = passes * switches + switches - 1  # up, and down through all but the last
        slowest, host = max((_round_trip_ns(job, way), host) for host, way in ways)
        slowest += through * latency_ns
        if job.timeout_ms * 1e6 <= slowest:
            yield (
                "timeout_ms",
                f"timeout_ms = {job.timeout_ms:g} is not above {slowest / 1e6:.3g} ms, the least"
                f" time from {host} to the switch{'es' if switches > 1 else ''}, {passes} times"
                f" through {'each' if switches > 1 else 'its'} pipeline and back: no"
                f" result would ever be in time: use timeout_ms = {2 * slowest / 1e6:.3g} or more",
            )

    def round_trip_ns(self, placed: PlacedJob, latency_ns: float, pass_ns: float) -> float:
        """Return the longest round trip, with the windows of all workers before a packet."""
        job, passes = placed.job, aggregation.passes(placed.job.sum_bits)
        window, ways = job.slots // 2, [way for _, way in _ways_up(placed)]
        links = max(_round_trip_ns(job, way, window) for way in ways)
        switches = max(
            sum(latency_ns + hop.packets(window) * hop.children * pass_ns for hop in way)
            for way in ways
        )
        return links + passes * switches

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec whose codes the switch cannot sum."""
        fits = config.workers <= aggregation.MAX_WORKERS  # of a server
        with suggesting("ps") if fits else nullcontext():
            summed_codec(config)

    def aggregators(self, placed: PlacedJob) -> Sequence[str]:
        """Return the workers' switch, or those of the tree over them."""
        if len(placed.switches) == 1:
            return placed.switches
        try:
            return [node.switch for node in _trees(placed)]
        except TopologyError:  # which `check` reports
            return placed.switches

    def racks(self, placed: PlacedJob) -> tuple[tuple[int, ...], ...]:
        """Return the workers of each leaf; nothing where one switch sums."""
        if len(placed.switches) == 1:
            return ()
        number = {host.name: worker for worker, host in enumerate(placed.members)}
        leaves = (node.children for node in _trees(placed) if node.leaf)
        return tuple(tuple(number[host] for host in hosts) for hosts in leaves)

    def plans(
        self, placed: PlacedJob, config: JobConfig, slots_end: Mapping[str, int]
    ) -> Iterator[tuple[str, JobPlan]]:
        """Yield what each switch of the trees over the workers installs for the job."""
        if not config.leaves:
            (switch,) = placed.switches
            yield switch, job_plan(config, placed, switch, slots_end.get(switch, 0))
            return
        nodes = {node.switch: node for node in _trees(placed)}
        for node in nodes.values():
            base = slots_end.get(node.switch, 0)
            yield node.switch, _level_plan(config, placed, nodes, node, base)

    def code_bits(self, job: AskedJob) -> int:
        """Return the narrowest width that holds the codec's codes."""
        return codec_bits(job.push.name, job.push.args)

    def defines(self, jobs: Sequence[AskedJob]) -> dict[str, str]:
        """Return the widths and the number of slots that the program has."""
        limits = program_limits(jobs[0], sum(job.slots for job in jobs))
        if any(job.nonzero_blocks for job in jobs):
            limits["NONZERO_BLOCKS"] = "1"
        return limits

    def result_bytes(self, job: AskedJob) -> tuple[int, int]:
        """Return the payload of a packet of indices and of one of sums, where all are whole."""
        if job.nonzero_blocks:
            return 0, 0
        return indices_bytes(job), aggregation.SUMS_SIZE

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


def one_width(job: AskedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
    """Yield the widths in which a job differs from the first one of its scheme."""
    first = next((one.job for one in others if one.job.aggregation == job.aggregation), job)
    for key in ("sum_bits", "code_bits"):
        own, other = getattr(job, key), getattr(first, key)
        if own != other:
            yield (
                key,
                f"{key} = {own} beside {other} of job {first.name}: the switch's program has one"
                " width for all jobs",
            )


@dataclass(frozen=True)
class _Hop:
    """A link on a way up, which a share of a job's slots takes, above 1 where several workers'
    packets do; children: of the switch above."""

    link: Link
    children: int
    share: Fraction = Fraction(1)

    def packets(self, window: int) -> int:
        """Return how many packets of a worker's window take the link."""
        return ceil(window * self.share)


def _round_trip_ns(job: AskedJob, way: Sequence[_Hop], window: int = 1) -> float:
    """Return the time that a packet of indices up and its sums down take on the links of a way.

    window: as many are sent at once, of which a link's queue holds some; this one is the last."""
    total, up = 0.0, indices_bytes(job)
    for hop in way:
        link, size = hop.link, up + aggregation.SUMS_SIZE
        size += 2 * (aggregation.HEADER_SIZE + UDP_OVERHEAD)
        size *= min(hop.packets(window), link.queue + 1)
        total += 2 * link.delay + (8e9 * size / link.rate if link.rate else 0.0)
        up = aggregation.SUMS_SIZE + aggregation.PATH_SIZE  # what switches send each other
    return total


def _ways_up(placed: PlacedJob) -> list[tuple[str, list[_Hop]]]:
    """Return the ways from each host to each switch that gives results."""
    network, found = placed.network, []
    try:
        nodes = {node.switch: node for node in _trees(placed)}
    except TopologyError:  # which `check` reports
        nodes = {}
    to_leaf = {
        host.name: network.way(host.name, network.aggregator(host.name)) for host in placed.members
    }
    sharing = Counter(link for way in to_leaf.values() for link in way)
    for host in placed.members:
        leaf = network.aggregator(host.name)
        node = nodes.get(leaf)
        children = len(node.children) if node else placed.job.size
        *passed, last = to_leaf[host.name]
        first = [_Hop(link, 1, Fraction(sharing[link])) for link in passed]
        first.append(_Hop(last, children, Fraction(sharing[last])))
        roots = len(node.parents) if node else 0
        ways = [_hops_up(network, nodes, leaf, root) for root in range(roots)] or [[]]
        found += [(host.name, [*first, *way]) for way in ways]
    return found


def _hops_up(
    network: Topology, nodes: Mapping[str, TreeNode], switch: str, root: int
) -> list[_Hop]:
    """Return the hops from a switch to a root."""
    way = []
    while (parents := nodes[switch].parents) and (above := parents[root]) is not None:
        link = network.ports(switch)[network.port_to(switch, above)]
        share = Fraction(parents.count(above), len(parents))
        way.append(_Hop(link, len(nodes[above].children), share))
        switch = above
    return way


class _ReplayedReduces:
    """Reduces through the P4 program.

    The switch gets, slot by slot, the packets of the recorded bitmap, then those that came late;
    workers get the results that they had in time. What they wait for and never got is given up.

    Several switches with a smaller quorum: of a rack none of whose workers got a result, the
    records do not say who is in it. Those are found whose packets make the recorded sums or norm.
    """

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.switch_worker import SwitchWorker

        self._replayed, self._job = replayed, replayed.config
        outcomes = replayed.outcomes
        self._outcomes = {Type.NORM: outcomes.norms, Type.INDICES: outcomes.chunks}
        self._new_machine: Callable[[int], SwitchWorker] = partial(SwitchWorker, self._job)
        self._machines = [self._new_machine(worker) for worker in range(self._job.workers)]
        self._lives = [0] * self._job.workers  # by worker: the round that its machine began with
        self._packets: deque[tuple[int, bytes]] = deque()
        self._held: defaultdict[tuple[Type, Place], list[tuple[int, bytes]]] = defaultdict(list)
        # That the switch has given, those with sums before those without.
        self._results: dict[tuple[Type, Place], bytes] = {}
        self._ticket = 0
        self._names_all = not self._job.leaves or self._job.quorum == self._job.workers
        self._sent: defaultdict[tuple[Type, Place], dict[int, bytes]] = defaultdict(dict)

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        self._held.clear()
        self._results.clear()
        self._sent.clear()
        asked = list(self._replayed.reducing())
        workers = [worker for worker, _ in asked]
        for worker, step in asked:
            self._ticket = step.round
            machine = self._machine(worker, step)
            self._perform(worker, machine.reduce(step.round, step.vector, 0, step.tensor))
        while not all(worker.delivered for worker in workers):
            while self._packets:
                self._send(*self._packets.popleft())
            waiting = [worker for worker in workers if not worker.delivered]
            if waiting and not any(
                any([self._end_waiting(worker, names) for worker in waiting])
                for names in (self._names, lambda *place: True)
            ):
                raise ReplayError(self._stuck(waiting[0]))

    def _machine(self, worker: ReplayedWorker, step: Reduce) -> SwitchWorker:
        """Return a worker's state machine, a new one where it has just joined."""
        number = worker.number
        if self._lives[number] != worker.joins:
            self._lives[number] = worker.joins
            self._machines[number] = self._new_machine(number)
            self._machines[number].skip(step.round, step.vector.size)
        return self._machines[number]

    def _perform(self, worker: ReplayedWorker, actions: Iterable[Action]) -> None:
        from gradplane.hosts.protocols.actions import Deliver, Send

        for action in actions:
            if isinstance(action, Send):
                self._packets += ((worker.number, payload) for payload in action.payloads)
            elif isinstance(action, Deliver):
                worker.take(action)

    def _send(self, number: int, payload: bytes) -> None:
        """Give the switch a packet if it is one of those that were summed, or comes after them;
        hold it if not.

        A worker that asks for a norm after its result has passed by gets it, as in the run, even if
        the slot is in a later round here."""
        header, _ = aggregation.parse(payload)
        if header.type not in self._outcomes:
            return
        place = header.slot, header.round
        self._sent[header.type, place][number] = payload
        contained = self._outcomes[header.type][place].contains(number)
        result = self._results.get((header.type, place))
        if contained or result is not None:
            self._through_switch(number, payload)
        else:
            self._held[header.type, place].append((number, payload))
            self._replayed.network.held(self._job.addresses.worker_addresses[number], payload)
        if result is not None:
            self._take(number, self._outcomes[header.type][place], result)

    def _through_switch(self, number: int, payload: bytes) -> None:
        source, to = self._job.addresses.worker_addresses[number], self._job.addresses.aggregator
        for host, _, answer in self._replayed.network.send(source, to, payload):
            self._receive(self._replayed.hosts.index(host), answer)

    def _receive(self, number: int, payload: bytes) -> None:
        """Deliver an answer to a worker that had it in time, and release the late packets."""
        header, body = aggregation.parse(payload)
        kind = {Type.NORM_RESULT: Type.NORM, Type.SUMS: Type.INDICES}.get(header.type)
        if kind is None:
            return
        place = header.slot, header.round
        outcome = self._outcomes[kind][place]
        if body:
            self._compare(outcome, place, digest(aggregation.unpack_sums(body, header.sum_bits)))
            self._results[kind, place] = payload
        self._results.setdefault((kind, place), payload)
        self._take(number, outcome, payload)
        for late in self._held.pop((kind, place), ()):
            self._through_switch(*late)

    def _take(self, number: int, outcome: Outcome, payload: bytes) -> None:
        """Give a worker a result if it had it in time."""
        if number in outcome.in_time:
            arrived = Payloads.of([payload])
            received = self._machines[number].receive(*self._job.addresses.aggregator, arrived, 0)
            self._perform(self._replayed.workers[number], received)

    def _compare(self, outcome: Outcome, place: Place, found: str) -> None:
        if outcome.digest not in (None, found) and self._replayed.wrong_sum is None:
            self._replayed.wrong_sum = WrongSum(*place, self._ticket)

    def _end_waiting(self, worker: ReplayedWorker, names: Callable[[Type, Place], bool]) -> bool:
        """End each wait of the worker that was never answered, unless it is for a result of which
        `names` says that not all are known who are in it; return whether there was one."""
        machine, ended = self._machines[worker.number], False
        for wait in machine.waits:
            kind, place = _KINDS[wait[0]], self._place(wait[1])
            if worker.number in self._outcomes[kind][place].in_time or not names(kind, place):
                continue
            if wait in machine.waits:
                self._perform(worker, machine.give_up(wait, 0))
                ended = True
        return ended

    def _names(self, kind: Type, place: Place) -> bool:
        """Return whether all are known who are in a result; if they are found now, their packets
        go to the switch."""
        outcome, sent = self._outcomes[kind][place], self._sent[kind, place]
        if self._names_all or outcome.norm is outcome.digest is None:
            return True
        counts = (chunk.count for chunk in self._outcomes[Type.INDICES].values())
        count = outcome.count or max((n for n in counts if n), default=0)
        known = [w for w in range(self._job.workers) if outcome.contains(w)]
        if len(known) >= count or not all(worker in sent for worker in known):
            return len(known) >= count
        for found in _unnamed(self._job.leaves, known, count, sent):
            if self._makes(kind, outcome, [sent[worker] for worker in (*known, *found)]):
                outcome.add_members(found)
                held = self._held[kind, place]
                held[:] = [packet for packet in held if packet[0] not in found]
                for worker in found:
                    self._through_switch(worker, sent[worker])
                return True
        return False

    def _makes(self, kind: Type, outcome: Outcome, payloads: Sequence[bytes]) -> bool:
        """Return whether these packets of workers make a recorded norm, or recorded sums."""
        packets = [aggregation.parse(payload) for payload in payloads]
        if kind is Type.NORM:
            return max(header.norm for header, _ in packets) == outcome.norm
        numbers = np.array(summed_codec(self._job).table, f"u{self._job.transport.sum_bits // 8}")
        code_bits = self._job.transport.code_bits
        sums = sum(numbers[aggregation.unpack_indices(body, code_bits)] for _, body in packets)
        return bool(digest(np.asarray(sums, numbers.dtype)) == outcome.digest)

    def _place(self, number: int) -> Place:
        """Return slot and round of a chunk."""
        return aggregation.place(number, self._job.transport.slots)

    def _stuck(self, worker: ReplayedWorker) -> str:
        waits = self._machines[worker.number].waits
        assert waits, f"worker {worker.number} waits for nothing and has no result"
        kind, number = waits[0]
        slot, round = self._place(number)
        return (
            f"round {self._ticket}, worker {worker.number} had the {kind} of slot {slot}, use"
            f" {round} in time, but the switch does not give it: arrivals.jsonl is not this"
            " experiment's, or not complete"
        )


def _unnamed(
    racks: Sequence[Sequence[int]], known: Sequence[int], count: int, senders: Container[int]
) -> Iterator[tuple[int, ...]]:
    """Yield who may be in a result of `count` workers besides the known ones: of racks of which
    none is known, as many as of the other racks."""
    named = [sum(worker in known for worker in rack) for rack in racks]
    others = [
        [w for w in rack if w in senders] for rack, n in zip(racks, named, strict=True) if not n
    ]
    each = max(named)
    for chosen in combinations(others, (count - len(known)) // each):
        for members in product(*(combinations(rack, each) for rack in chosen)):
            yield tuple(chain.from_iterable(members))


# A job whose codes a switch sums, as the controller installs it there


def job_plan(config: JobConfig, placed: PlacedJob, switch: str, slot_base: int) -> JobPlan:
    """Return the plan of a job of `placed` on a switch. config: its members are some of placed's.

    slot_base: the first slot that no other job of the switch has.
    """
    ports = placed.network.routes(switch)
    host_of = {host.ip: host for host in placed.members}
    members = []
    for worker, (ip, udp_port) in enumerate(config.addresses.worker_addresses):
        host = host_of[ip]
        members.append(Member(worker, ports[host.name], host.mac, ip, udp_port))
    return _job_plan(config, members, slot_base)


def _job_plan(
    config: JobConfig, members: Sequence[Member], slot_base: int, level: Level | None = None
) -> JobPlan:
    table = tuple(summed_codec(config).table)
    return JobPlan(
        number=config.number,
        workers=tuple(members),
        quorum=config.quorum if level is None else len(members),
        slots=config.transport.slots,
        slot_base=slot_base,
        sum_bits=config.transport.sum_bits,
        table=table,
        granularity=table[-1],
        epoch=config.transport.epoch,
        next_only=config.transport.reliability == "retransmit" and config.quorum == config.workers,
        level=level,
        code_bits=config.transport.code_bits,
    )


def _trees(placed: PlacedJob) -> tuple[TreeNode, ...]:
    job, hosts = placed.job, [host.name for host in placed.members]
    return switch_trees(placed.network, hosts, min(job.roots or job.slots, job.slots))


def _level_problems(placed: PlacedJob) -> Iterator[Keyed]:
    """Yield why several switches cannot sum a job."""
    job, out = placed.job, 'or use aggregation = "ps", or "ring" with "retransmit"'
    where = f"job {job.name}: its workers are attached to switches {', '.join(placed.switches)}"
    try:
        tree = _trees(placed)
    except TopologyError as error:
        yield "workers", f"{where}, and {error}, place the workers on one switch, {out}"
        return
    yield from _quorum_problems(job, tree, where)
    if job.roots is not None and job.roots > (found := sum(not node.parents for node in tree)):
        yield (
            "roots",
            f"roots = {job.roots}: {where}, and {found} above them can share {job.slots} slots:"
            f" use roots = {found}, or leave it out",
        )
    for node in tree:
        if len(node.children) > aggregation.MAX_WORKERS:
            yield (
                "workers",
                f"{where}, and switch {node.switch} has {len(node.children)} children, of at most"
                f" {aggregation.MAX_WORKERS}",
            )


def _quorum_problems(job: AskedJob, tree: Sequence[TreeNode], where: str) -> Iterator[Keyed]:
    """Yield what is wrong with a job's quorums: those of each level, and the total."""
    levels = tree[-1].level + 1
    fewest = [min(len(n.children) for n in tree if n.level == level) for level in range(levels)]
    yield from quorum_problems(job, fewest, where, "switches")


def _waits_for(job: AskedJob, node: TreeNode) -> int:
    """Return how many of its children a switch waits for."""
    return len(node.children) if job.quorums is None else job.quorums[node.level]


def _workers_below(nodes: Mapping[str, TreeNode], node: TreeNode) -> int:
    """Return how many workers a switch sums if all of its children are in."""
    if node.leaf:
        return len(node.children)
    return sum(_workers_below(nodes, nodes[child]) for child in node.children)


def _level_plan(
    config: JobConfig,
    placed: PlacedJob,
    nodes: Mapping[str, TreeNode],
    node: TreeNode,
    slot_base: int,
) -> JobPlan:
    """Return what one switch of a tree installs: what one alone would, for its own children."""
    network, worker = placed.network, {host.name: n for n, host in enumerate(placed.members)}
    switches = {switch.name: switch for switch in network.switches}
    members = []
    for number, child in enumerate(node.children):
        if node.leaf:
            host, port = network.host[child], network.port_to_host(node.switch, child)
            udp_port = config.addresses.worker_addresses[worker[child]][1]
            members.append(Member(number, port, host.mac, host.ip, udp_port))
        else:
            below, port = switches[child], network.port_to(node.switch, child)
            members.append(Member(number, port, below.mac, below.ip, aggregation.UDP_PORT))
    parents: list[Parent | None] = []
    for name in node.parents:
        parent = None
        if name is not None:
            above, port = switches[name], network.port_to(node.switch, name)
            number = nodes[name].children.index(node.switch)
            parent = Parent(port, number, above.mac, above.ip)
        parents.append(parent)
    job = placed.job
    asks = any(_waits_for(job, each) < len(each.children) for each in nodes.values())
    every = _workers_below(nodes, node)
    summed = every if job.quorums is None else prod(job.quorums[: node.level + 1])
    level = Level(tuple(parents), not node.leaf, asks, summed)
    plan = _job_plan(config, members, slot_base, level)
    return replace(plan, quorum=_waits_for(job, node), next_only=plan.next_only and not asks)


def codec_bits(name: str, parameters: Mapping[str, Any]) -> int:
    """Return the narrowest width that holds a codec's codes; the usual one of a codec without,
    which another check refuses."""
    codec = codecs.get(name, **parameters)
    known = codec.summable and isinstance(codec.table, tuple)
    return codecs.code_bits(len(codec.table)) if known else aggregation.CODE_BITS


def program_limits(job: AskedJob, slots: int) -> dict[str, str]:
    """Return the macros of a program with a job's widths and room for so many slots; without the
    usual width of codes, which programs of before have no macro for."""
    limits = {"SUM_BITS": job.sum_bits, "SLOTS": max(256, 1 << (slots - 1).bit_length())}
    if job.code_bits not in (None, aggregation.CODE_BITS):
        limits["CODE_BITS"] = job.code_bits
    return {name: str(limit) for name, limit in limits.items()}


def indices_bytes(job: AskedJob) -> int:
    """Return the payload of a packet of indices."""
    width = job.code_bits or aggregation.CODE_BITS
    return aggregation.body_size(Type.INDICES, job.sum_bits, width)
