"""The simulated network: hosts, links and switches in one process, under virtual time.

The programs on the hosts, the switch's engine and its P4Runtime server are those of the real
network. Nothing depends on the speed of the machine: time advances from one event to the next, and
stands still while the control plane works. Equal configurations give equal runs, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.host import Host
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.network import LinkCounters, OnRecord, SwitchConfig, check_hosts
from gradplane.topologies.sim.channel import NS, Channel
from gradplane.topologies.sim.events import EventQueue
from gradplane.topologies.sim.sim_host import HostStack, SimEnvironment
from gradplane.topologies.sim.sim_switch import SimSwitch, compiled
from gradplane.topologies.topology_errors import NetworkError

Deliver = Callable[[bytes], None]


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
    """The simulated `Network`. Its program is compiled when it is entered."""

    def __init__(self, topology: Topology, config: SwitchConfig) -> None:
        self.topology = topology
        self._config = config
        self._events = EventQueue()
        self._exit = ExitStack()
        self._stacks: dict[str, HostStack] = {}
        self._switches: dict[str, SimSwitch] = {}
        self._channels: dict[tuple[str, int], Channel[bytes]] = {}  # by the end that sends

    def __enter__(self) -> SimNetwork:
        with ExitStack() as on_failure:
            self._build(on_failure)
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _build(self, started: ExitStack) -> None:
        arp = self.topology.arp
        for host in self.topology.hosts:
            self._stacks[host.name] = HostStack(host, arp, partial(self._transmit, host.name, 0))
        config, program = self._config, compiled(self._config)
        for switch in self.topology.switches:
            ports = self.topology.ports(switch.name)
            transmit = partial(self._transmit, switch.name)
            simulated = SimSwitch(switch.name, ports, config, program, self._events, transmit)
            self._switches[switch.name] = started.enter_context(simulated)
        for link in self.topology.links:
            self._channels[link.a, link.a_port] = self._channel(link, link.b, link.b_port)
            self._channels[link.b, link.b_port] = self._channel(link, link.a, link.a_port)

    def _channel(self, link: Link, node: str, port: int) -> Channel[bytes]:
        return Channel(self._events, link.rate, link.delay, link.queue, self._receiver(node, port))

    def _receiver(self, node: str, port: int) -> Deliver:
        if node in self._stacks:
            return self._stacks[node].receive
        return partial(self._switches[node].receive, port)

    def _transmit(self, node: str, port: int, frame: bytes) -> None:
        self._channels[node, port].send(frame, len(frame))

    @property
    def switch_addresses(self) -> Mapping[str, str]:
        """See Network."""
        return {name: switch.address for name, switch in self._switches.items()}

    def run(
        self, hosts: Sequence[HostConfig], on_record: OnRecord, deadline: float | None = None
    ) -> None:
        """See Network; the deadline is in virtual seconds."""
        check_hosts(self.topology, hosts)
        programs = [self._program(config, on_record) for config in hosts]
        until = None if deadline is None else self._events.now + round(deadline * NS)
        try:
            for program in programs:
                program.host.start()
            self._run_to_end(programs, until)
            for program in programs:
                program.end()
        finally:
            self._events.clear()
            for stack in self._stacks.values():
                stack.close()
            for switch in self._switches.values():
                switch.clear()

    def _program(self, config: HostConfig, on_record: OnRecord) -> _Program:
        stack = self._stacks[config.name]
        environment = SimEnvironment(self._events, stack, on_record)
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
            if not self._events.step():
                raise self._unfinished("no events are left", waiting)
            if until is not None and self._events.now > until:
                raise self._unfinished("the deadline has passed", waiting)

    def _unfinished(self, what: str, programs: Sequence[_Program]) -> NetworkError:
        names = ", ".join(program.name for program in programs if not program.host.finished)
        return NetworkError(f"{what} at {self._events.now / NS:.6f} s, not finished: {names}")

    def link_counters(self) -> list[LinkCounters]:
        """See Network."""
        return [self._counters(link) for link in self.topology.links]

    def _counters(self, link: Link) -> LinkCounters:
        up = self._sent(link.a, link.a_port)
        return LinkCounters(link.name, *up, *self._sent(link.b, link.b_port))

    def _sent(self, node: str, port: int) -> tuple[int, int, int]:
        """Return frames, bytes and drops of a link's end, those in the queue before it included."""
        channel = self._channels[node, port]
        before = self._switches[node].queue_dropped(port) if node in self._switches else 0
        return channel.packets, channel.bytes, channel.dropped + before

    def cli(self) -> None:
        """Raise NetworkError: Mininet's prompt needs Mininet's hosts."""
        raise NetworkError("the simulated network has no prompt: use --net mininet for --cli")
