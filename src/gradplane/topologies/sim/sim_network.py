"""The simulated network: hosts, links and switches in one process, under virtual time.

The programs on the hosts, the switch's engine and its P4Runtime server are those of the real
network. Nothing depends on the speed of the machine: time advances from one event to the next, and
stands still while the control plane works. Equal configurations give equal runs, bit for bit.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gradplane._suggestions import quoted
from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.host import Host
from gradplane.switch.garbage_pause import collections_paused
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.network import (
    AskedFor,
    LinkCounters,
    OnRecord,
    Record,
    Restarts,
    SwitchConfig,
    check_hosts,
)
from gradplane.topologies.sim.events import NS
from gradplane.topologies.sim.fabric import Fabric, Receiver, ReferenceFabric
from gradplane.topologies.sim.sim_host import SimEnvironment
from gradplane.topologies.sim.sim_switch import compiled
from gradplane.topologies.sim.spare_cores import SpareCores
from gradplane.topologies.topology_errors import NetworkError

SIMULATORS = ("compiled", "reference")
_MANY = 256


@dataclass(frozen=True)
class _Program:
    """The program of one job on a host; several jobs may share a host."""

    config: HostConfig
    host: Host
    environment: SimEnvironment

    def end(self) -> None:
        self.host.end()
        self.environment.record("ignored", host=self.config.name, unsent=0, **self.host.ignored)


@contextmanager
def _not_visited(programs: int) -> Iterator[None]:
    """Keep Python's collections from visiting hosts and switches, where there are many: they stay.

    What was frozen no longer counts as new, so that its garbage waits for a collection by hand."""
    if programs < _MANY:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.collect()


class SimNetwork:
    """The simulated `Network`. Its program is compiled when it is entered.

    simulator: "compiled", or "reference" for the event loop in Python, which gives the same run.
    Captures and the interpreter need the reference and get it. Raises NetworkError for another.
    """

    def __init__(
        self, topology: Topology, config: SwitchConfig, simulator: str = "compiled"
    ) -> None:
        if simulator not in SIMULATORS:
            known = " or ".join(map(quoted, SIMULATORS))
            raise NetworkError(f"simulator must be {known}, got {quoted(simulator)}")
        self.topology = topology
        self._config = config
        engines = {config.of(switch.name).engine for switch in topology.switches}
        python = config.pcap is not None or engines != {"jit"}
        self._simulator = "reference" if python else simulator
        self._exit = ExitStack()
        self._fabric: Fabric
        self._programs: list[_Program] = []
        self._spare = SpareCores()
        self._norms: set[tuple[int, int, int]] = set()  # job, ticket and partition

    def __enter__(self) -> SimNetwork:
        with ExitStack() as on_failure:
            self._fabric = self._build(on_failure)
            self._spare = on_failure.enter_context(SpareCores())
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _build(self, started: ExitStack) -> Fabric:
        programs = compiled(self._config, [switch.name for switch in self.topology.switches])
        if self._simulator == "reference":
            return ReferenceFabric(self.topology, self._config, programs, started)
        from gradplane.topologies.sim.compiled_fabric import CompiledFabric

        return CompiledFabric(self.topology, self._config, programs, started)

    @property
    def switch_addresses(self) -> Mapping[str, str]:
        """See Network."""
        return {name: switch.address for name, switch in self._fabric.switches.items()}

    def run(
        self,
        hosts: Sequence[HostConfig],
        on_record: OnRecord,
        deadline: float | None = None,
        asked: AskedFor | None = None,
        restarts: Restarts | None = None,
    ) -> None:
        """See Network; the deadline is in virtual seconds."""
        check_hosts(self.topology, hosts)
        origin = self._fabric.events.now
        until = None if deadline is None else origin + round(deadline * NS)
        with collections_paused():
            self._programs = [self._program(config, on_record, origin) for config in hosts]
        try:
            self._fabric.set_receivers(_receivers(self._programs), origin)
            for program in self._programs:
                program.host.start()
            self._plan_restarts(restarts, origin)
            with _not_visited(len(self._programs)):
                self._run_to_end(self._programs, until, asked)
            for program in self._programs:
                program.end()
        finally:
            self._fabric.set_receivers([], origin)
            self._fabric.events.clear()
            for stack in self._fabric.stacks.values():
                stack.close()
            for switch in self._fabric.switches.values():
                switch.clear()

    def _plan_restarts(self, restarts: Restarts | None, origin: int) -> None:
        for planned in restarts.planned if restarts is not None else ():
            assert restarts is not None
            lost = origin + planned.at
            self._fabric.events.at(lost, self._fabric.switches[planned.switch].lose_state)
            restored = partial(self._restored, restarts, planned.switch)
            self._fabric.events.at(lost + planned.down, restored)

    def _restored(self, restarts: Restarts, switch: str) -> None:
        """Let the controller restore a switch, and tell the hosts."""
        epochs = restarts.restore(switch)
        for program in self._programs:
            if (epoch := epochs.get(program.config.job.number)) is not None:
                program.host.in_epoch(epoch)

    def _program(self, config: HostConfig, on_record: OnRecord, origin: int) -> _Program:
        stack = self._fabric.stacks[config.name]

        def crash(back: int) -> None:
            for port in host.ports:
                stack.unlisten(port)
            again = replace(config, joins=back)
            place = [program.config for program in self._programs].index(config)
            # The dead program's event is not over yet, so that the next one starts after it.
            start = partial(self._restart, place, again, on_record, origin)
            self._fabric.events.at(self._fabric.events.now, start)

        noted = partial(self._noted, on_record)
        environment = SimEnvironment(self._fabric.events, stack, noted, origin, crash, self._spare)
        host = Host(config, environment)
        for port in host.ports:
            stack.listen(port, host.receive)
        return _Program(config, host, environment)

    def _noted(self, on_record: OnRecord, record: Record) -> None:
        """Pass a record on. After the first norm of a partition all hosts begin to encode it."""
        on_record(record)
        if record["kind"] != "norm" or record["result"] != "in time":
            return
        job, ticket, partition = (record[key] for key in ("job", "ticket", "partition"))
        if (job, ticket, partition) in self._norms:
            return
        self._norms = {norm for norm in self._norms if norm[:2] == (job, ticket) or norm[0] != job}
        self._norms.add((job, ticket, partition))
        for program in self._programs:
            own = program.config.job.number == job
            if own and (work := program.host.prepared(ticket, partition, record["norm"])):
                self._spare.compute(work)

    def _restart(self, place: int, config: HostConfig, on_record: OnRecord, origin: int) -> None:
        """Start a program in the place of one that has crashed."""
        self._programs[place] = self._program(config, on_record, origin)
        self._fabric.set_receivers(_receivers(self._programs), origin)
        self._programs[place].host.start()

    def _run_to_end(
        self, programs: Sequence[_Program], until: int | None, asked: AskedFor | None
    ) -> None:
        """Run until all programs are finished; one that crashed is replaced in `programs`."""
        waiting = list(range(len(programs)))
        while waiting:
            if programs[waiting[-1]].host.finished:
                waiting.pop()
                continue
            for intervention in asked() if asked else ():
                for program in programs:
                    if program.config.name == intervention.link:
                        program.host.impair(intervention)
            if not self._fabric.step(until):
                raise self._unfinished("no events are left", programs)
            if until is not None and self._fabric.events.now > until:
                raise self._unfinished("the deadline has passed", programs)

    def _unfinished(self, what: str, programs: Sequence[_Program]) -> NetworkError:
        names = ", ".join(program.config.name for program in programs if not program.host.finished)
        return NetworkError(
            f"{what} at {self._fabric.events.now / NS:.6f} s, not finished: {names}"
        )

    def link_counters(self) -> list[LinkCounters]:
        """See Network."""
        return [self._counters(link) for link in self.topology.links]

    def queue_peaks(self) -> list[tuple[int, int]]:
        """See Network."""
        take = self._fabric.take_peak
        return [
            (take(link.a, link.a_port), take(link.b, link.b_port)) for link in self.topology.links
        ]

    def _counters(self, link: Link) -> LinkCounters:
        up = self._sent(link.a, link.a_port)
        return LinkCounters(link.name, *up, *self._sent(link.b, link.b_port))

    def _sent(self, node: str, port: int) -> tuple[int, int, int]:
        """Return frames, bytes and drops of a link's end, those in the queue before it included."""
        packets, sent, dropped = self._fabric.sent(node, port)
        switch = self._fabric.switches.get(node)
        before = 0 if switch is None else switch.queue_dropped(port)
        return packets, sent, dropped + before

    def about(self) -> dict[str, Any]:
        """See Network."""
        return {}

    def cli(self) -> None:
        """Raise NetworkError: Mininet's prompt needs Mininet's hosts."""
        raise NetworkError("the simulated network has no prompt: use --net mininet for --cli")


def _receivers(programs: Sequence[_Program]) -> list[Receiver]:
    """Return the ports whose ordinary packets kernels take."""
    found = []
    for program in programs:
        for port in program.host.ports:
            fast = program.host.fast_results(port)
            if fast is not None:
                peer = program.config.job.addresses.aggregator
                found.append(Receiver(program.config.name, port, peer, fast.address))
    return found
