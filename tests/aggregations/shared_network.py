"""Jobs that share the slots of p4/shared.p4 or shared_tna.p4, with real workers and servers, in any
order of events.

What is under way is a list of frames, and of packets between two passes of the switch, of which any
may go on next, be lost or be copied. The switch may lose its registers, and a job may die or begin
another life while its old packets are still under way. `Network.run` ends when all workers of all
jobs have all results; each result that arrives is compared with the sum of what the workers sent.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import finsy
import numpy as np

from gradplane import codecs
from gradplane.controller import thc
from gradplane.controller.connection import parse_p4info
from gradplane.experiment.deploying import deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.schema import Experiment
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import CancelTimer, Deliver, Send, SetTimer
from gradplane.hosts.protocols.results import TRANSIENT
from gradplane.hosts.protocols.shared_server import SharedServer
from gradplane.hosts.protocols.shared_worker import SharedWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.topologies.sim import frames

VALUES, PATIENCE = 4000, 20_000
CROWD = 60  # packets under way from which on no timer runs out early


class Faults(NamedTuple):
    """How likely what is: that a packet is lost (between two passes: at a tenth of that), arrives
    twice, a timer runs out before that; that a worker begins late.

    restarts: how often the switch loses its registers. lives, deaths: how often a job begins anew,
    or ends for ever."""

    losses: float = 0.0
    copies: float = 0.0
    timers: float = 0.0
    late: bool = False
    restarts: int = 0
    lives: int = 0
    deaths: int = 0


@functools.cache
def deployment(
    jobs: int, workers: int, slots: int, target: str = "embedded", **keys: object
) -> Deployment:
    """Return jobs of so many workers on one switch with so many slots."""
    job = {"push": {"name": "thc"}, "slots": 4, "reliability": "retransmit", "workers": workers}
    document = {
        "name": "shared",
        "topology": {"kind": "star", "workers": jobs * workers},
        "switch": {"program": "shared.p4", "target": target, "defines": {"SLOTS": slots}},
        "job": [
            job | {"aggregation": "shared", "name": f"j{n}", "first_host": 1 + n * workers} | keys
            for n in range(jobs)
        ],
        "output": {"baseline": False},
    }
    return deploy(resolve(Experiment.model_validate(document)))


@functools.cache
def _made(path: Path, defines: tuple[tuple[str, str], ...]) -> tuple[Switch, finsy.P4Schema]:
    program = compile_program(path, defines=dict(defines))
    info = p4info_text(build_p4info(program)).encode()
    return Switch(program, engine="jit"), finsy.P4Schema(parse_p4info(info))


@dataclass
class Life:
    """A job in one of its lives: its machines, their alarms, its results."""

    config: JobConfig
    server: SharedServer
    workers: list[SharedWorker]
    starts: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    results: list[dict] = field(default_factory=list)
    alarms: dict[int, tuple[object, int]] = field(default_factory=dict)  # by worker; -1: the server

    @classmethod
    def of(cls, config: JobConfig) -> Life:
        workers = [SharedWorker(config, worker) for worker in range(config.workers)]
        return cls(config, SharedServer(config), workers, results=[{} for _ in workers])


class Network:
    """The switch and the jobs. `seed` decides what happens, and the vectors."""

    def __init__(self, deployed: Deployment, seed: int = 0, faults: Faults | None = None) -> None:
        (self._setup,) = deployed.setups.values()
        self._topology = deployed.topology
        (program,) = deployed.used_programs
        self.switch, self._schema = _made(program.path, tuple(program.defines.items()))
        self._faults, self._random, self._seed = faults or Faults(), random.Random(seed), seed
        self.jobs: list[Life | None] = [Life.of(job.config) for job in deployed.jobs]
        self.plans = list(self._setup.jobs)
        self.under_way: list[tuple[str, int, object]] = []  # to: "switch", "pass" or a host
        self.now, self.tickets, self.happened = 0, range(0), Faults()._asdict()
        self.sent: dict[
            tuple[int, ...], np.ndarray
        ] = {}  # values by job, epoch, slot, round, worker
        self.checked = 0
        self._port = {
            host.name: deployed.topology.attachment(host.name)[1] for host in self._topology.hosts
        }
        self._host_at = {port: name for name, port in self._port.items()}
        self._host_of = {host.ip: host for host in self._topology.hosts}
        self._install()

    def _install(self) -> None:
        """Put the jobs' entries into the switch, whose tables and registers are emptied."""
        self.forget()
        for cells in self.switch.state.counters.values():
            cells.clear()
        for name in (thc.ROUTES, *thc.job_tables(self._schema)):
            self.switch.table(name).clear()
        (_, *others) = thc.local(self._setup.ip, self._schema)
        match = {"hdr.ipv4.dst_addr": (self._setup.ip, 32)}
        self.switch.table(thc.ROUTES).add(match, "ThcIngress.aggregate", {})
        for entity in chain(others, *map(self._entities, self.plans)):
            if isinstance(entity, finsy.P4MulticastGroupEntry):
                replicas = [tuple(replica) for replica in entity.replicas]
                self.switch.multicast(entity.multicast_group_id, replicas)
            else:
                self._add(entity)

    def _entities(self, plan):
        return list(thc.job_entries(plan, self._schema, self._setup.ip, self._setup.mac))

    def _add(self, entry: finsy.P4TableEntry) -> None:
        action = entry.action.name, dict(entry.action.args)
        self.switch.table(entry.table_id).add(dict(entry.match or {}), *action)

    def _members(self, plan) -> list[finsy.P4TableEntry]:
        entries = [e for e in self._entities(plan) if isinstance(e, finsy.P4TableEntry)]
        return [entry for entry in entries if entry.table_id == thc.MEMBERS]

    # -- what jobs do -----------------------------------------------------------------------------

    def reduce(self, tickets: int, integers: bool = False) -> None:
        """Let all workers reduce so many vectors, one after the other."""
        self.tickets, self._integers = range(tickets), integers
        for job in range(len(self.jobs)):
            self._starts(job)

    def vector(self, job: int, worker: int, ticket: int) -> np.ndarray:
        epoch = self.plans[job].epoch
        rng = np.random.default_rng([self._seed, job, epoch, worker, ticket])
        if self._integers:
            return rng.integers(-(10**6), 10**6, VALUES, np.int32)
        return rng.normal(size=VALUES).astype(np.float32)

    def _starts(self, job: int) -> None:
        life = self.jobs[job]
        for worker in range(life.config.workers):
            self._start(job, worker, 0)

    def _start(self, job: int, worker: int, ticket: int) -> None:
        if ticket in self.tickets:
            vector = self.vector(job, worker, ticket)
            self.jobs[job].starts.append((worker, ticket, vector))
            if not self._faults.late:
                self._begin(job)

    def _begin(self, job: int) -> None:
        """Let a worker begin a reduce that it has not begun."""
        life = self.jobs[job]
        worker, ticket, vector = life.starts.pop(self._random.randrange(len(life.starts)))
        tensor = (TRANSIENT,) if self._integers else ()
        self._perform(job, worker, life.workers[worker].reduce(ticket, vector, self.now, *tensor))

    def run(self) -> None:
        """Let things happen until all workers of jobs that live have all results."""
        events = 0
        while not self.ended():
            events += 1
            assert events < PATIENCE, [[w.waits for w in life.workers] for life in self.living]
            self.step()

    @property
    def living(self) -> list[Life]:
        return [life for life in self.jobs if life is not None]

    def ended(self) -> bool:
        return all(
            len(found) == len(self.tickets) for life in self.living for found in life.results
        )

    # -- what happens -----------------------------------------------------------------------------

    def step(self) -> None:
        """Let one thing happen."""
        chance, idle = self._random.random(), not self.under_way
        waiting = [n for n, life in enumerate(self.jobs) if life is not None and life.starts]
        if waiting and (idle or chance < 0.02):
            self._begin(self._random.choice(waiting))
        elif self._control():
            pass
        elif idle or (len(self.under_way) < CROWD and self._random.random() < self._faults.timers):
            self._timer()
        else:
            self._event()

    def _control(self) -> bool:
        """Let the switch lose its registers, a job die or begin anew; return whether it was so."""
        for fault, act in (("restarts", self.forget), ("lives", self.anew), ("deaths", self.die)):
            left = getattr(self._faults, fault) - self.happened[fault]
            if left and self._random.random() < 0.005:
                self.happened[fault] += 1
                act()
                return True
        return False

    def forget(self) -> None:
        """Empty the switch's registers."""
        for cells in self.switch.state.registers.values():
            cells.clear()

    def die(self, job: int = 0) -> None:
        """End a job for ever: its hosts are silent, and the controller removes it."""
        self.jobs[job] = None
        for entry in self._members(self.plans[job]):
            self.switch.table(thc.MEMBERS).remove(dict(entry.match))

    def anew(self, job: int = 1) -> None:
        """Let a job begin another life, with other vectors."""
        for entry in self._members(self.plans[job]):
            self.switch.table(thc.MEMBERS).remove(dict(entry.match))
        self.plans[job] = plan = self.plans[job].anew([], self.plans[job].epoch)
        for entry in self._members(plan):
            self._add(entry)
        self.jobs[job] = Life.of(self.jobs[job].config.changed(epoch=plan.epoch))
        self._starts(job)

    def _timer(self) -> None:
        """Let a timer run out, now or when its time has come."""
        alarms = [
            (n, machine, *alarm)
            for n, life in enumerate(self.jobs)
            if life is not None
            for machine, alarm in life.alarms.items()
        ]
        if not alarms:
            return
        job, machine, key, at = self._random.choice(alarms)
        self.now = max(self.now, at)
        life = self.jobs[job]
        del life.alarms[machine]
        found = life.server if machine < 0 else life.workers[machine]
        self._perform(job, machine, found.timer(key, self.now))

    def _event(self) -> None:
        where, port, what = self.under_way.pop(self._random.randrange(len(self.under_way)))
        chance, losses = self._random.random(), self._faults.losses
        if chance < (losses / 10 if where == "pass" else losses):
            return
        if losses <= chance < losses + self._faults.copies and where != "pass":
            self.under_way.append((where, port, what))
        self.now += 1000
        if where in ("switch", "pass"):
            outputs, again = self.switch.run_once(port, what)
            self.under_way += [("pass", 0, packet) for packet in again]
            self.under_way += [(self._host_at[out], 0, packet) for out, packet in outputs]
        else:
            self._arrive(where, what)

    def _arrive(self, name: str, frame: bytes) -> None:
        host = self._topology.host[name]
        datagram = frames.parse(frame, host.mac)
        job = datagram.port - 20_000
        life = self.jobs[job]
        if life is None:
            return
        packet = (datagram.source_ip, datagram.source_port, Payloads.of([datagram.payload]))
        if (host.ip, datagram.port) == life.config.addresses.server_address:
            self._perform(job, -1, life.server.receive(*packet, self.now))
            return
        worker = life.config.addresses.worker_addresses.index((host.ip, datagram.port))
        self._check(life.config, datagram.payload)
        self._perform(job, worker, life.workers[worker].receive(*packet, self.now))

    def _check(self, config: JobConfig, payload: bytes) -> None:
        """Compare a result of the job's present life with the sum of what its workers sent."""
        header, body = aggregation.parse(payload)
        if header.type is not Type.SUMS or header.epoch != config.transport.epoch:
            return
        place = (header.job, header.epoch, header.slot, header.round)
        right = sum(self.sent[*place, worker] for worker in range(config.workers))
        assert (aggregation.unpack_sums(body, header.sum_bits) == right).all(), place
        assert header.count == config.workers and header.bitmap == (1 << config.workers) - 1
        self.checked += 1

    def _perform(self, job: int, machine: int, actions: Sequence[object]) -> None:
        life = self.jobs[job]
        for action in actions:
            if isinstance(action, Send):
                for payload in action.payloads:
                    self._send(job, machine, payload)
            elif isinstance(action, SetTimer):
                life.alarms[machine] = action.key, action.at
            elif isinstance(action, CancelTimer):
                life.alarms.pop(machine, None)
        for action in actions:
            if isinstance(action, Deliver):
                life.results[machine][action.ticket] = action.result
                self._start(job, machine, action.ticket + 1)

    def _send(self, job: int, machine: int, payload: bytes) -> None:
        addresses = self.jobs[job].config.addresses
        ip, port = addresses.server_address if machine < 0 else addresses.worker_addresses[machine]
        header, body = aggregation.parse(payload)
        if header.type is Type.INDICES:
            table = np.array([*codecs.get("thc").table, *[0] * 16][:16])
            values = table[aggregation.unpack_indices(body, 4)]
            place = (job, header.epoch, header.slot, header.round, machine)
            assert (self.sent.setdefault(place, values) == values).all(), "other codes of a chunk"
        host, aggregator = self._host_of[ip], addresses.aggregator
        to = frames.Address(self._topology.arp[aggregator[0]], *aggregator)
        frame = frames.build(frames.Address(host.mac, ip, port), to, payload)
        self.under_way.append(("switch", self._port[host.name], frame))

    def events(self) -> dict[str, int]:
        """Return what the switch has counted of all jobs, by the names of events."""
        counter = self.switch.counter("shared_events")
        jobs = range(len(self.jobs))
        names = enumerate(thc.SHARED_EVENT_NAMES)
        return {
            name: total
            for n, name in names
            if (total := sum(counter.read(job * 16 + n)[0] for job in jobs))
        }


def play(
    deployed: Deployment, seed: int, faults: Faults, tickets: int = 2, integers: bool = False
) -> Network:
    """Let all workers of all jobs reduce; the vectors follow from the seed."""
    network = Network(deployed, seed, faults)
    network.reduce(tickets, integers)
    network.run()
    for life in network.living:
        for ticket in network.tickets:
            assert len({found[ticket].sums for found in life.results}) == 1
    return network
