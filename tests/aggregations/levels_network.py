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
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import finsy
import numpy as np

from gradplane.controller import thc
from gradplane.controller.connection import parse_p4info
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
    **keys: object,
) -> Deployment:
    """Return a job of so many workers on so many leaves; on one: a star, on none: three_levels, or
    a fat-tree with that placement."""
    racks = {"kind": "leaf-spine", "leaves": leaves, "spines": spines}
    kind = racks if leaves > 1 else {"kind": "star"}
    kind = kind if leaves else {"kind": "levels_network:three_levels"}
    kind = {"kind": "fat-tree", "placement": placement} if placement else kind
    job = {"push": {"name": "thc"}, "slots": SLOTS, "reliability": "retransmit"} | keys
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
        self.switches = {
            n: _switch(deployed, n, engine) for n in deployed.setups if deployed.setups[n].jobs
        }
        self._ends = {(link.a, link.a_port): link for link in self._topology.links}
        self._ends |= {(link.b, link.b_port): link for link in self._topology.links}
        self.workers = [SwitchWorker(self.job, w) for w in range(self.job.workers)]
        # The node and port that each reaches.
        self.under_way: list[tuple[str, int, bytes | Recirculated]] = []
        self.now, self.results = 0, [{} for _ in self.workers]
        self.sent: dict[tuple[int, int, int], np.ndarray] = {}  # values by worker, slot and round
        # Of each result that a worker might take, by epoch, slot and round: count, digest, workers.
        self.seen: dict[tuple[int, int, int], tuple[int, str]] = {}
        self.joined: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self.arrivals: list[dict] = []
        self.epoch, self.restarts = self.job.transport.epoch, 0
        self._deployed, self._changes = deployed, []  # those that the controller has yet to make
        self._starts: list[tuple[int, int, np.ndarray, int]] = []  # of reduces
        self._last: dict[int, bytes] = {}
        self.sparse, self.bytes = self.job.transport.nonzero_blocks, 0  # of all frames
        self.links: list[str] = []  # that frames were sent on, as node they left
        self.sums: Counter[tuple[int, bool]] = Counter()  # results by worker, and whether with sums
        self.frames: list[tuple[str, str, bytes]] = []  # all of them: from a node to another

    def reduce(
        self, ticket: int, seed: int, workers: Iterable[int] | None = None, tensor: int = 0
    ) -> None:
        for w in range(self.job.workers) if workers is None else workers:
            draw = np.random.default_rng([seed, ticket, w])
            vector = draw.normal(size=VALUES)
            if self.sparse:
                vector *= np.repeat(draw.random(VALUES // 100) < 0.05, 100)
            self._starts.append((w, ticket, vector.astype(np.float32), tensor))
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
        while any(ticket not in found for found in self.results):
            events += 1
            assert events < PATIENCE, f"stuck: {[w.waits for w in self.workers]}"
            self.step()

    def step(self) -> None:
        """Let one thing happen."""
        early = len(self.under_way) < CROWD and self._random.random() < self._faults.timers
        if self._controls():
            return
        if not self.under_way or early:
            self._timers()
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
        self.under_way = [
            (node, port, frame)
            for node, port, frame in self.under_way
            if node != switch or not isinstance(frame, Recirculated)
        ]
        _forget(self.switches[switch], _program(self._deployed, switch)[1])
        opened = [
            (name, entity)
            for name in self.switches
            for entity in _entities(self._deployed, name, self.epoch)
            if isinstance(entity, finsy.P4TableEntry) and entity.table_id in OF_EPOCHS
        ]
        gates = [(name, entity) for name, entity in opened if entity.table_id != thc.MEMBERS]
        shut = [(name, (entity.table_id, dict(entity.match))) for name, entity in gates]
        members = [(name, entity) for name, entity in opened if entity.table_id == thc.MEMBERS]
        shut += [(name, thc.shut(entity)) for name, entity in members if name != switch]
        self._random.shuffle(opened)
        self._random.shuffle(shut)
        told = [(w, self.epoch) for w in range(len(self.workers))]
        self._changes = [*shut, *opened, *told]

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

    def _timers(self) -> None:
        worker = self._random.randrange(len(self.workers))
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
        if node not in {host.name for host in self._members}:
            return  # a switch of no job
        worker = next(n for n, host in enumerate(self._members) if host.name == node)
        datagram = frames.parse(frame, self._members[worker].mac)
        self._see(worker, datagram.payload)
        source, payloads = (datagram.source_ip, datagram.source_port), [datagram.payload]
        received = self.workers[worker].receive(*source, Payloads.of(payloads), self.now)
        self._perform(worker, received)

    def _see(self, worker: int, payload: bytes) -> None:
        header, body = aggregation.parse(payload)
        if header.type is Type.SUMS:
            place = header.epoch, header.slot, header.round
            width = self.job.transport.sum_bits
            self.sums[worker, bool(body)] += 1
            if body:
                found = header.count, digest(aggregation.unpack_sums(body, width))
                assert self.seen.setdefault(place, found) == found, f"two results of {place}"
            children = header.path if self.job.leaves else header.bitmap
            if not header.flags & aggregation.UNCOUNTED:
                for child, member in enumerate(self.job.rack(worker)):
                    self.joined[place] |= (children >> child & 1) << member

    def _leave(self, node: str, port: int, frame: bytes) -> None:
        self.links.append(node)
        self.bytes += len(frame)
        end = self._ends[node, port].other_end(node)
        self.frames.append((node, end[0], frame))
        self.under_way.append((*end, frame))

    def _perform(self, worker: int, actions: Sequence[object]) -> None:
        for action in actions:
            if isinstance(action, Send):
                for payload in action.payloads:
                    self._send(worker, payload)
            elif isinstance(action, Deliver):
                self.results[worker][action.ticket] = action.result
            elif isinstance(action, Record):
                self._note(worker, {"kind": action.kind} | action.fields)

    def _send(self, worker: int, payload: bytes) -> None:
        header, body = aggregation.parse(payload)
        if header.type is Type.INDICES:
            table = np.array([*summed_codec(self.job).table, *[0] * 16][:16])
            values = table[aggregation.unpack_indices(body, 4)]
            known = self.sent.setdefault((worker, header.slot, header.round), values)
            assert (known == values).all(), "other codes in one use of a slot"
            self._last[worker] = payload
        self._leave(self._members[worker].name, 0, self.frame(worker, payload))

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
        return self._deployed.setups[switch].jobs[0].adds

    def sent_for(self, switch: str, place: float, frame: bytes) -> list[tuple[str, str, bytes]]:
        """Return what a switch sends for a frame, from where and to where.

        place: the port that the frame comes in by, from 0 for the first to below 1."""
        ports = sorted(self._topology.ports(switch))
        sent = self.switches[switch].process(ports[int(place * len(ports))], frame)
        ends = [(self._ends[switch, out].other_end(switch)[0], data) for out, data in sent]
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
        kind, checked = f"<u{self.job.transport.sum_bits // 8}", defaultdict(set)
        for (epoch, *place), (count, found) in self.seen.items():
            joined = self.joined[epoch, *place]
            who = [w for w in range(self.job.workers) if joined >> w & 1]
            if len(who) != count:
                assert len(who) < count, (epoch, place, who)
                continue  # nobody of some rack has the result
            assert all((w, *place) in self.sent for w in who), (epoch, place, who)
            sums = sum(self.sent[w, *place] for w in who)
            assert found == digest(np.asarray(sums, kind)), (epoch, place, who)
            checked[tuple(place)].add(found)
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
) -> Network:
    """Let all workers reduce, one vector after the other, the same ones whatever the seed."""
    network = Network(deployed, seed, faults, engine)
    for ticket in range(reduces):
        network.reduce(ticket, 7, tensor=tensor)
        network.run(ticket)
    return network


_MADE: dict[tuple[int, str, str], Switch] = {}


def _switch(deployed: Deployment, name: str, engine: str) -> Switch:
    """Return a switch with a job's entries and empty registers; it is made once."""
    setup, (program, schema) = deployed.setups[name], _program(deployed, name)
    place = id(deployed), name, engine
    switch = _MADE[place] = _MADE.get(place) or Switch(program, engine=engine)
    if not switch.table("routes").entries():
        local = thc.local(setup.ip, schema)
        for entity in (*local, *_entities(deployed, name)):
            if isinstance(entity, finsy.P4MulticastGroupEntry):
                replicas = [tuple(replica) for replica in entity.replicas]
                switch.multicast(entity.multicast_group_id, replicas)
            elif entity.table_id not in OF_EPOCHS:
                _put(switch, entity)
    _forget(switch, schema)
    for entity in _entities(deployed, name):
        if isinstance(entity, finsy.P4TableEntry) and entity.table_id in OF_EPOCHS:
            _put(switch, entity)
    return switch


OF_EPOCHS = thc.MEMBERS, thc.PARENTS
"""The tables whose entries have the job's epoch."""


def discard() -> None:
    """Discard all jobs and switches that were made."""
    deployment.cache_clear()
    _MADE.clear()


def _forget(switch: Switch, schema: finsy.P4Schema) -> None:
    """Empty registers and counters, and the tables without which all packets are dropped."""
    for cells in (*switch.state.registers.values(), *switch.state.counters.values()):
        cells.clear()
    for table in thc.gates(schema):
        switch.table(table).clear()


def _entities(deployed: Deployment, name: str, epoch: int = 0):
    setup = deployed.setups[name]
    (plan,) = setup.jobs
    plan = replace(plan, epoch=epoch or plan.epoch)
    return thc.job_entries(plan, _program(deployed, name)[1], setup.ip, setup.mac)


def _put(switch: Switch, entry: finsy.P4TableEntry) -> None:
    """Add an entry, or change it."""
    match, table = dict(entry.match or {}), switch.table(entry.table_id)
    if "hdr.ipv4.dst_addr" in match:
        match["hdr.ipv4.dst_addr"] = (match["hdr.ipv4.dst_addr"].split("/")[0], 32)
    what = match, entry.action.name, dict(entry.action.args)
    try:
        table.modify(*what)
    except TableError:
        table.add(*what)
