"""Switches in levels, with the P4 program in each, and real workers, under any order of events.

What is under way is a list of frames of which any may arrive next, be lost or arrive twice, on all
links alike. A switch may lose its state; then the controller shuts the job out on all switches and
lets it in under its next epoch, an entry at a time, between other events, and tells the workers.
`Network.run` ends when all workers have all results; the results are checked against the codes that
the workers sent.
"""

from __future__ import annotations

import functools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import finsy
import numpy as np

from gradplane.controller import thc
from gradplane.controller.connection import parse_p4info
from gradplane.controller.plan import Setup
from gradplane.experiment.deploying import deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.schema import Experiment
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Deliver, Record, Send
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.results import TRANSIENT
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.runs.records.run_data import expanded
from gradplane.switch import Recirculated, Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.runtime.control_errors import TableError
from gradplane.topologies.description import HostNode, Link, SwitchNode, Topology
from gradplane.topologies.sim import frames

SLOTS, VALUES, PATIENCE = 4, 4000, 100_000
CROWD = 40  # frames under way from which on no timer runs out early


class Faults(NamedTuple):
    """How likely what is: that a frame is lost, arrives twice, a timer runs out before that.

    restarts: how often a switch loses its state. late: workers begin a reduce at any time. passes:
    other frames come between the passes of a frame in a switch, which keep their order. cuts: that
    a frame is lost between two of them.
    """

    losses: float = 0.0
    copies: float = 0.0
    timers: float = 0.0
    restarts: int = 0
    late: bool = False
    passes: bool = False
    cuts: float = 0.0


@functools.cache
def _compiled(
    path: Path, defines: tuple[tuple[str, str], ...]
) -> tuple[ir.Program, finsy.P4Schema]:
    program = compile_program(path, defines=dict(defines))
    return program, finsy.P4Schema(parse_p4info(p4info_text(build_p4info(program)).encode()))


def _program(deployed: Deployment, name: str) -> tuple[ir.Program, finsy.P4Schema]:
    """Return a switch's program with fewer slots, and its names."""
    program = deployed.program(name)
    return _compiled(program.path, tuple({**program.defines, "SLOTS": "16"}.items()))


def three_levels(workers: int, servers: int = 0) -> Topology:
    """Return a root s1, below it s2 and s3, and below these three leaves, of 2, 1 and 1 workers."""
    assert workers == 4
    pairs = [("s1", "s2"), ("s1", "s3"), ("s2", "s4"), ("s2", "s5"), ("s3", "s6")]
    pairs += [("s4", "h1"), ("s4", "h2"), ("s5", "h3"), ("s6", "h4")]
    pairs += [("s1", f"h{n}") for n in range(5, 5 + servers)]
    used: Counter[str] = Counter()
    links = []
    for above, below in pairs:
        used.update((above, below))
        links.append(Link(below, above, 0 if below[0] == "h" else used[below], used[above]))
    hosts = tuple(HostNode.numbered(n) for n in range(1, 5 + servers))
    switches = tuple(SwitchNode(f"s{n}") for n in range(1, 7))
    return Topology("three levels", hosts, switches, tuple(links))


@functools.cache
def deployment(
    workers: int,
    leaves: int,
    spines: int = 2,
    placement: str = "",
    target: str = "embedded",
    bits: int = 4,
    **keys: object,
) -> Deployment:
    """Return a job of so many workers on so many leaves; on one: a star, on none: three_levels, or
    a fat-tree with that placement. bits: of a code."""
    racks = {"kind": "leaf-spine", "leaves": leaves, "spines": spines}
    kind = racks if leaves > 1 else {"kind": "star"}
    kind = kind if leaves else {"kind": "levels_network:three_levels"}
    kind = {"kind": "fat-tree", "placement": placement} if placement else kind
    push = {"name": "thc", "bits": bits, "granularity": {1: 1, 2: 6, 4: 30, 8: 255}[bits]}
    job = {"push": push, "slots": SLOTS, "reliability": "retransmit"} | keys
    network = {"topology": kind | {"workers": workers}, "output": {"baseline": False}}
    network["switch"] = {"target": target}
    document = {"name": "levels", "job": [job]} | network
    return deploy(resolve(Experiment.model_validate(document)))


class Network:
    """The switches and workers of a job. `seed` decides what happens, and the vectors."""

    def __init__(
        self,
        deployed: Deployment,
        seed: int = 0,
        faults: Faults | None = None,
        engine: str = "jit",
    ) -> None:
        self._topology, (job,) = deployed.topology, deployed.jobs
        self.job, self._random, self._faults = job.config, random.Random(seed), faults or Faults()
        self._members = job.members
        self._made = {
            n: _made(deployed, n, engine) for n in deployed.setups if deployed.setups[n].jobs
        }
        self.switches = {name: made.switch for name, made in self._made.items()}
        links = self._topology.links
        self.ends = {(link.a, link.a_port): (link.b, link.b_port) for link in links}
        self.ends |= {(link.b, link.b_port): (link.a, link.a_port) for link in links}
        self.worker_of = {host.name: worker for worker, host in enumerate(self._members)}
        self.workers = [SwitchWorker(self.job, w) for w in range(self.job.workers)]
        # The node and port that each reaches.
        self.under_way: list[tuple[str, int, bytes | Recirculated]] = []
        self.now, self.results = 0, [{} for _ in self.workers]
        self._delivered = Counter[int]()  # results of workers, by ticket
        self.sent: dict[tuple[int, int, int], bytes] = {}  # codes by worker, slot and round
        # Of each result that a worker might take, by epoch, slot and round: count, sums, workers.
        self.seen: dict[tuple[int, int, int], tuple[int, bytes]] = {}
        self.joined: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self.arrivals: list[dict] = []
        self.epoch, self.restarts = self.job.transport.epoch, 0
        self._changes = []  # those that the controller has yet to make
        self._starts: list[tuple[int, int, np.ndarray, int]] = []  # of reduces
        self._last: dict[int, bytes] = {}
        # What has been worked out: of payloads that workers send, and of frames that they receive.
        self._frames: dict[tuple[int, bytes], bytes] = {}
        self._received: dict[tuple[int, bytes], tuple] = {}
        self.sparse = self.job.transport.nonzero_blocks
        self.sums: Counter[tuple[int, bool]] = Counter()  # results by worker, and whether with sums
        self.frames: list[tuple[str, str, bytes]] = []  # all of them: from a node to another

    def reduce(
        self, ticket: int, seed: int, workers: Iterable[int] | None = None, tensor: int = 0
    ) -> None:
        for w in range(self.job.workers) if workers is None else workers:
            self._starts.append((w, ticket, _vector(seed, ticket, w, self.sparse), tensor))
        while self._starts and not self._faults.late:
            self._start(0)

    def _start(self, place: int) -> None:
        worker, ticket, vector, tensor = self._starts.pop(place)
        self._perform(worker, self.workers[worker].reduce(ticket, vector, self.now, tensor))

    def reduce_integers(self, ticket: int, seed: int, tensor: int = TRANSIENT) -> np.ndarray:
        """Let all workers reduce integers; return their sum."""
        draw = np.random.default_rng([seed, ticket])
        vectors = draw.integers(-(10**6), 10**6, (self.job.workers, VALUES), np.int32)
        for w, vector in enumerate(vectors):
            self._perform(w, self.workers[w].reduce(ticket, vector, self.now, tensor))
        return vectors.sum(axis=0)

    def run(self, ticket: int) -> None:
        """Let things happen until all workers have the result of a ticket."""
        events = 0
        while not self._ended(ticket):
            events += 1
            assert events < PATIENCE, f"stuck: {[w.waits for w in self.workers]}"
            self.step()

    def _ended(self, ticket: int) -> bool:
        return self._delivered[ticket] == len(self.workers)

    def step(self) -> None:
        """Let one thing happen."""
        early = len(self.under_way) < CROWD and self._random.random() < self._faults.timers
        if self._controls():
            return
        if not self.under_way or early:
            self._timer(self._random.randrange(len(self.workers)))
        else:
            self._event()

    def _controls(self) -> bool:
        """Let a worker begin, a switch lose its state or the controller change something, now and
        then, and at the latest when nothing is under way; return whether it was so."""
        chance, idle = self._random.random(), not self.under_way
        if self._starts and (idle or chance < 0.02):
            self._start(self._random.randrange(len(self._starts)))
        elif self.restarts < self._faults.restarts and chance < 0.03:
            self.lose_state(self._random.choice(list(self.switches)))
        elif self._changes and (idle or chance < 0.2):
            self._change(self._changes.pop(0))
        else:
            return False
        return True

    def lose_state(self, switch: str) -> None:
        """Empty a switch, of what is between two passes, too, and let the controller give the job
        its next epoch: all switches shut it out, an entry at a time, and then let it in again."""
        self.restarts += 1
        self.epoch += 1
        self._lose_passes(switch)
        self._made[switch].forget()
        opened = [
            (name, entity) for name, made in self._made.items() for entity in made.gates(self.epoch)
        ]
        gates = [(name, entity) for name, entity in opened if entity.table_id != thc.MEMBERS]
        shut = [(name, (entity.table_id, dict(entity.match))) for name, entity in gates]
        members = [(name, entity) for name, entity in opened if entity.table_id == thc.MEMBERS]
        shut += [(name, thc.shut(entity)) for name, entity in members if name != switch]
        self._random.shuffle(opened)
        self._random.shuffle(shut)
        told = [(w, self.epoch) for w in range(len(self.workers))]
        self._changes = [*shut, *opened, *told]

    def _lose_passes(self, switch: str) -> None:
        self.under_way = [
            (node, port, frame)
            for node, port, frame in self.under_way
            if node != switch or not isinstance(frame, Recirculated)
        ]

    def _change(self, change) -> None:
        where, what = change
        if isinstance(where, str) and isinstance(what, tuple):
            table, match = what
            with suppress(TableError):  # the switch that lost its state has none
                self.switches[where].table(table).remove(match)
        elif isinstance(where, str):
            _put(self.switches[where], what)
        else:
            self._perform(where, self.workers[where].in_epoch(what, self.now))

    def settle(self) -> None:
        """Let all that is under way arrive."""
        while self.under_way:
            self._event()

    def _event(self) -> None:
        drawn = self._random.randrange(len(self.under_way))
        if recirculated := isinstance(self.under_way[drawn][2], Recirculated):
            node = self.under_way[drawn][0]
            passes = ((of, isinstance(what, Recirculated)) for of, _, what in self.under_way)
            drawn = next(place for place, each in enumerate(passes) if each == (node, True))
        frame = self.under_way.pop(drawn)
        if recirculated and self._faults.cuts and self._random.random() < self._faults.cuts:
            return
        chance = 1.0 if recirculated else self._random.random()
        if chance < self._faults.losses:
            return
        if chance < self._faults.losses + self._faults.copies:
            self.under_way.append(frame)
        self.now += 1000
        self.arrive(*frame)

    def _timer(self, worker: int) -> None:
        alarm = self.workers[worker].record.alarm
        if alarm >= 0:
            self.now = max(self.now, alarm)
            self._perform(worker, self.workers[worker].timer("wait", self.now))

    def arrive(self, node: str, port: int, frame: bytes | Recirculated) -> None:
        if node in self.switches:
            switch, again = self.switches[node], []
            if self._faults.passes:
                sent, again = switch.run_once(port, frame)
            else:
                sent = switch.process(port, frame)
            self.under_way += ((node, port, each) for each in again)
            for out, packet in sent:
                self._leave(node, out, packet)
            return
        if node in self.worker_of:  # and not a switch of no job
            self._receive(self.worker_of[node], frame)

    def _receive(self, worker: int, frame: bytes) -> None:
        if (worker, frame) not in self._received:
            datagram = frames.parse(frame, self._members[worker].mac)
            counter = self._see(worker, datagram.payload)
            source = datagram.source_ip, datagram.source_port
            self._received[worker, frame] = *source, datagram.payload, counter
        *source, payload, counter = self._received[worker, frame]
        self.sums.update(counter)
        received = self.workers[worker].receive(*source, Payloads.of([payload]), self.now)
        self._perform(worker, received)

    def _see(self, worker: int, payload: bytes) -> tuple[tuple[int, bool], ...]:
        """Note who is in a result that a worker gets; return what counts it."""
        header, body = aggregation.parse(payload)
        if header.type is Type.SUMS:
            place = header.epoch, header.slot, header.round
            if body:
                found = header.count, body
                assert self.seen.setdefault(place, found) == found, f"two results of {place}"
            children = header.path if self.job.leaves else header.bitmap
            if not header.flags & aggregation.UNCOUNTED:
                for child, member in enumerate(self.job.rack(worker)):
                    self.joined[place] |= (children >> child & 1) << member
            return ((worker, bool(body)),)
        return ()

    def _leave(self, node: str, port: int, frame: bytes) -> None:
        end = self.ends[node, port]
        self.frames.append((node, end[0], frame))
        self.under_way.append((*end, frame))

    def _perform(self, worker: int, actions: Sequence[object]) -> None:
        for action in actions:
            if isinstance(action, Send):
                for payload in action.payloads:
                    self._send(worker, payload)
            elif isinstance(action, Deliver):
                self.results[worker][action.ticket] = action.result
                self._delivered[action.ticket] += 1
            elif isinstance(action, Record):
                self._note(worker, {"kind": action.kind} | action.fields)

    def _send(self, worker: int, payload: bytes) -> None:
        if payload[0] & 15 == Type.INDICES:
            self._last[worker] = payload
        if (worker, payload) not in self._frames:
            self._frames[worker, payload] = self.frame(worker, payload)
            header, codes = aggregation.parse(payload)
            if header.type is Type.INDICES:
                known = self.sent.setdefault((worker, header.slot, header.round), codes)
                assert known == codes, "other codes in one use of a slot"
        self._leave(self._members[worker].name, 0, self._frames[worker, payload])

    def again(self, worker: int) -> None:
        """Send a worker's last packet of codes once more."""
        self._leave(self._members[worker].name, 0, self.frame(worker, self._last[worker]))

    def frame(self, worker: int, payload: bytes) -> bytes:
        host, (ip, port) = self._members[worker], self.job.addresses.aggregator
        source = frames.Address(host.mac, *self.job.addresses.worker_addresses[worker])
        to = frames.Address(self._topology.arp[ip], ip, port)
        return frames.build(source, to, payload)

    def adds(self, switch: str) -> bool:
        """Return whether a switch adds sums of others."""
        return self._made[switch].setup.jobs[0].adds

    def sent_for(self, switch: str, place: float, frame: bytes) -> list[tuple[str, str, bytes]]:
        """Return what a switch sends for a frame, from where and to where.

        place: the port that the frame comes in by, from 0 for the first to below 1."""
        ports = sorted(self._topology.ports(switch))
        sent = self.switches[switch].process(ports[int(place * len(ports))], frame)
        ends = [(self.ends[switch, out][0], data) for out, data in sent]
        return [(switch, end, data) for end, data in sorted(ends)]

    def events(self, switch: str) -> dict[str, int]:
        """Return what a switch has counted, by the names of events."""
        counter = self.switches[switch].counter("events")
        counts = {name: counter.read(n)[0] for n, name in enumerate(thc.EVENT_NAMES)}
        return {name: count for name, count in counts.items() if count}

    def _note(self, worker: int, record: dict) -> None:
        for line in expanded([record], "records"):
            if line["kind"] == "arrival" and line["result"] != "lost":
                self.arrivals.append(line)

    def check(self) -> int:
        """Compare each result with the sum of those who are in; return of how many that workers
        have taken that was possible."""
        width, checked = self.job.transport.sum_bits, defaultdict(set)
        kind, code_bits = f"<u{width // 8}", self.job.transport.code_bits
        table = np.zeros(1 << code_bits, int)
        table[: len(summed_codec(self.job).table)] = summed_codec(self.job).table

        @functools.cache
        def values(*sent: int) -> np.ndarray:
            return table[aggregation.unpack_indices(self.sent[sent], code_bits)]

        for (epoch, *place), (count, found) in self.seen.items():
            joined = self.joined[epoch, *place]
            who = [w for w in range(self.job.workers) if joined >> w & 1]
            if len(who) != count:
                assert len(who) < count, (epoch, place, who)
                continue  # nobody of some rack has the result
            assert all((w, *place) in self.sent for w in who), (epoch, place, who)
            right = digest(np.asarray(sum(values(w, *place) for w in who), kind))
            assert digest(aggregation.unpack_sums(found, width)) == right, (epoch, place, who)
            checked[tuple(place)].add(right)
        arrivals = [line for line in self.arrivals if line["digest"]]
        taken = [(line["digest"], checked[line["slot"], line["use"]]) for line in arrivals]
        return sum(found in right for found, right in taken)


def play(
    deployed: Deployment,
    seed: int,
    faults: Faults,
    reduces: int = 2,
    tensor: int = 0,
    engine: str = "jit",
    kind: type[Network] = Network,
) -> Network:
    """Let all workers reduce, one vector after the other, the same ones whatever the seed."""
    network = kind(deployed, seed, faults, engine)
    for ticket in range(reduces):
        network.reduce(ticket, 7, tensor=tensor)
        network.run(ticket)
    return network


@functools.cache
def _vector(seed: int, ticket: int, worker: int, sparse: bool) -> np.ndarray:
    draw = np.random.default_rng([seed, ticket, worker])
    vector = draw.normal(size=VALUES)
    if sparse:
        vector *= np.repeat(draw.random(VALUES // 100) < 0.05, 100)
    return vector.astype(np.float32)


# Switches, which are made once for all trees, as they take longer than a schedule

OF_EPOCHS = thc.MEMBERS, thc.PARENTS
"""The tables whose entries have the job's epoch."""


@dataclass
class Made:
    """A switch in a job's tree. kind: its program and engine. entries: actions by table and match,
    without those of OF_EPOCHS."""

    kind: tuple[int, str]
    switch: Switch
    schema: finsy.P4Schema
    entries: dict[tuple[object, ...], tuple[object, ...]] = field(default_factory=dict)
    setup: Setup | None = None
    by_epoch: dict[int, list[finsy.P4TableEntry]] = field(default_factory=dict)

    def place(self, setup: Setup) -> None:
        """Let it be a switch of another tree: change the entries that differ."""
        self.setup, wanted = setup, {}
        self.by_epoch.clear()
        for entity in (*thc.local(setup.ip, self.schema), *self._entities()):
            if isinstance(entity, finsy.P4MulticastGroupEntry):
                replicas = [tuple(replica) for replica in entity.replicas]
                self.switch.multicast(entity.multicast_group_id, replicas)
            elif entity.table_id not in OF_EPOCHS:
                match, action = _what(entity)
                key = entity.table_id, tuple(sorted(match.items()))
                wanted[key] = action[0], tuple(sorted(action[1].items()))
        for table, match in self.entries.keys() - wanted.keys():
            self.switch.table(table).remove(dict(match))
        for (table, match), (action, data) in wanted.items():
            known = self.entries.get((table, match))
            if known != (action, data):
                change = self.switch.table(table).modify if known else self.switch.table(table).add
                change(dict(match), action, dict(data))
        self.entries = wanted

    def gates(self, epoch: int) -> list[finsy.P4TableEntry]:
        """Return the entries of OF_EPOCHS in an epoch."""
        if epoch not in self.by_epoch:
            entities = self._entities(epoch)
            tables = [one for one in entities if isinstance(one, finsy.P4TableEntry)]
            self.by_epoch[epoch] = [one for one in tables if one.table_id in OF_EPOCHS]
        return self.by_epoch[epoch]

    def forget(self) -> None:
        """Empty registers and counters, and the tables without which all packets are dropped."""
        state = self.switch.state
        for cells in (*state.registers.values(), *state.counters.values()):
            cells.clear()
        for table in thc.gates(self.schema):
            self.switch.table(table).clear()

    def _entities(self, epoch: int = 0):
        (plan,) = self.setup.jobs
        plan = replace(plan, epoch=epoch or plan.epoch)
        return thc.job_entries(plan, self.schema, self.setup.ip, self.setup.mac)


_PLACED: dict[tuple[int, str, str], Made] = {}
_IDLE: defaultdict[tuple[int, str], list[Made]] = defaultdict(list)
"""Those of no tree, by their program."""


def _made(deployed: Deployment, name: str, engine: str) -> Made:
    """Return a switch with a job's entries and empty registers."""
    setup, (program, schema) = deployed.setups[name], _program(deployed, name)
    place = id(deployed), name, engine
    if place not in _PLACED:
        kind = id(program), engine
        idle = _IDLE[kind]
        made = idle.pop() if idle else Made(kind, Switch(program, engine=engine), schema)
        made.place(setup)
        _PLACED[place] = made
    made = _PLACED[place]
    made.forget()
    for entity in made.gates(0):
        _put(made.switch, entity)
    return made


def discard() -> None:
    """Discard all jobs; their switches may be of others."""
    deployment.cache_clear()
    for made in _PLACED.values():
        _IDLE[made.kind].append(made)
    _PLACED.clear()


def _what(entry: finsy.P4TableEntry) -> tuple[dict, tuple[str, dict]]:
    """Return an entry's match, and its action with its data."""
    match = dict(entry.match or {})
    if "hdr.ipv4.dst_addr" in match:
        match["hdr.ipv4.dst_addr"] = (match["hdr.ipv4.dst_addr"].split("/")[0], 32)
    return match, (entry.action.name, dict(entry.action.args))


def _put(switch: Switch, entry: finsy.P4TableEntry) -> None:
    """Add an entry, or change it."""
    (match, action), table = _what(entry), switch.table(entry.table_id)
    try:
        table.modify(match, *action)
    except TableError:
        table.add(match, *action)
