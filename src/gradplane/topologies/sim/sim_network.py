"""The simulated network: hosts, links and switches in one process, under virtual time.

The programs on the hosts, the switch's engine and its P4Runtime server are those of the real
network. Nothing depends on the speed of the machine: time advances from one event to the next, and
stands still while the control plane works. Equal configurations give equal runs, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from gradplane._suggestions import quoted
from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.host import Host
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.network import LinkCounters, OnRecord, SwitchConfig, check_hosts
from gradplane.topologies.sim.channel import NS
from gradplane.topologies.sim.fabric import Fabric, Receiver
from gradplane.topologies.sim.reference_fabric import ReferenceFabric
from gradplane.topologies.sim.sim_host import SimEnvironment
from gradplane.topologies.sim.sim_switch import compiled
from gradplane.topologies.topology_errors import NetworkError

SIMULATORS = ("compiled", "reference")


@dataclass(frozen=True)
class _Program:
    """The program of one job on a host; several jobs may share a host."""

    name: str
    host: Host
    environment: SimEnvironment

    def end(self) -> None:
        self.host.end()
        self.environment.record("ignored", host=self.name, unsent=0, **self.host.ignored)


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
        python = config.pcap is not None or config.engine != "jit"
        self._simulator = "reference" if python else simulator
        self._exit = ExitStack()
        self._fabric: Fabric

    def __enter__(self) -> SimNetwork:
        with ExitStack() as on_failure:
            self._fabric = self._build(on_failure)
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _build(self, started: ExitStack) -> Fabric:
        program = compiled(self._config)
        if self._simulator == "reference":
            return ReferenceFabric(self.topology, self._config, program, started)
        from gradplane.topologies.sim.compiled_fabric import CompiledFabric

        return CompiledFabric(self.topology, self._config, program, started)

    @property
    def switch_addresses(self) -> Mapping[str, str]:
        """See Network."""
        return {name: switch.address for name, switch in self._fabric.switches.items()}

    def run(
        self, hosts: Sequence[HostConfig], on_record: OnRecord, deadline: float | None = None
    ) -> None:
        """See Network; the deadline is in virtual seconds."""
        check_hosts(self.topology, hosts)
        programs = [self._program(config, on_record) for config in hosts]
        until = None if deadline is None else self._fabric.events.now + round(deadline * NS)
        try:
            self._fabric.set_receivers(_receivers(programs, hosts))
            for program in programs:
                program.host.start()
            self._run_to_end(programs, until)
            for program in programs:
                program.end()
        finally:
            self._fabric.set_receivers([])
            self._fabric.events.clear()
            for stack in self._fabric.stacks.values():
                stack.close()
            for switch in self._fabric.switches.values():
                switch.clear()

    def _program(self, config: HostConfig, on_record: OnRecord) -> _Program:
        stack = self._fabric.stacks[config.name]
        environment = SimEnvironment(self._fabric.events, stack, on_record)
        host = Host(config, environment)
        for port in host.ports:
            stack.listen(port, host.receive)
        return _Program(config.name, host, environment)

    def _run_to_end(self, programs: Sequence[_Program], until: int | None) -> None:
        waiting = list(programs)
        while waiting:
            if waiting[-1].host.finished:
                waiting.pop()
                continue
            if not self._fabric.step(until):
                raise self._unfinished("no events are left", waiting)
            if until is not None and self._fabric.events.now > until:
                raise self._unfinished("the deadline has passed", waiting)

    def _unfinished(self, what: str, programs: Sequence[_Program]) -> NetworkError:
        names = ", ".join(program.name for program in programs if not program.host.finished)
        return NetworkError(
            f"{what} at {self._fabric.events.now / NS:.6f} s, not finished: {names}"
        )

    def link_counters(self) -> list[LinkCounters]:
        """See Network."""
        return [self._counters(link) for link in self.topology.links]

    def _counters(self, link: Link) -> LinkCounters:
        up = self._sent(link.a, link.a_port)
        return LinkCounters(link.name, *up, *self._sent(link.b, link.b_port))

    def _sent(self, node: str, port: int) -> tuple[int, int, int]:
        """Return frames, bytes and drops of a link's end, those in the queue before it included."""
        packets, sent, dropped = self._fabric.sent(node, port)
        switch = self._fabric.switches.get(node)
        before = 0 if switch is None else switch.queue_dropped(port)
        return packets, sent, dropped + before

    def cli(self) -> None:
        """Raise NetworkError: Mininet's prompt needs Mininet's hosts."""
        raise NetworkError("the simulated network has no prompt: use --net mininet for --cli")


def _receivers(programs: Sequence[_Program], configs: Sequence[HostConfig]) -> list[Receiver]:
    """Return the ports whose ordinary packets kernels take."""
    found = []
    for program, config in zip(programs, configs, strict=True):
        for port in program.host.ports:
            fast = program.host.fast_results(port)
            if fast is not None:
                peer = config.job.aggregator
                found.append(Receiver(program.name, port, peer, fast.address))
    return found
