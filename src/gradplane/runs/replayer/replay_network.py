"""The network of a replay: embedded switches, set up over P4Runtime as for the run.

Links and queues lose nothing and take no time."""

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from gradplane.aggregations.needs import Answer
from gradplane.controller import targets
from gradplane.controller.blocking import configure
from gradplane.experiment.deployment import Deployment
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.stream import segments
from gradplane.switch.ir import nodes as ir
from gradplane.switch.switch import Switch
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.events import EventQueue
from gradplane.topologies.sim.sim_switch import SimSwitch, compiled


class ReplayNetwork:
    """A context manager. `send` returns everything that arrives because of a host's datagram."""

    def __init__(self, deployment: Deployment) -> None:
        # Whatever the target of the run was, the embedded switch re-enacts it.
        self._deployment, self._target = deployment, targets.get("embedded")
        self._topology = deployment.topology
        self._host_of = {host.ip: host for host in self._topology.hosts}
        self._events = EventQueue()
        self._under_way: deque[tuple[str, int, bytes]] = deque()  # node and port that sends, frame
        self._links = {
            (node, port): link
            for link in self._topology.links
            for node, port in ((link.a, link.a_port), (link.b, link.b_port))
        }
        config, names = deployment.switch_config(latency=0), list(deployment.setups)
        programs = compiled(config, names)
        self._switches = {n: self._switch(n, config.of(n), programs[n]) for n in names}
        self._exit = ExitStack()

    def _switch(self, name: str, config: SwitchConfig, program: ir.Program) -> SimSwitch:
        ports, transmit = self._topology.ports(name), partial(self._transmit, name)
        config = replace(config, target=self._target.name, target_keys=(), queues=None)
        return SimSwitch(name, ports, config, program, self._events, transmit)

    def _transmit(self, node: str, port: int, frame: bytes) -> None:
        self._under_way.append((node, port, frame))

    def __enter__(self) -> "ReplayNetwork":
        with ExitStack() as on_failure:
            pipelines = self._deployment.pipelines_for(self._target)
            for name, setup in self._deployment.setups.items():
                switch = on_failure.enter_context(self._switches[name])
                configure(switch.address, pipelines[name], setup)
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    @property
    def switches(self) -> list[str]:
        """The switches' names."""
        return list(self._switches)

    def switch(self, name: str) -> Switch:
        """Return the embedded switch of that name."""
        return self._switches[name].running

    def send(self, source: Peer, to: Peer, payload: bytes, tos: int = 0) -> list[Answer]:
        """Send a datagram to a host, or to the address of the switches; return what arrives."""
        sender = self._host_of[source[0]]
        frame = frames.build(
            frames.Address(sender.mac, *source),
            frames.Address(self._topology.arp[to[0]], *to),
            payload,
            tos,
        )
        self._transmit(sender.name, 0, frame)
        return list(self._run())

    def carry(self, source: Peer, to: Peer, values: bytes) -> bytes:
        """Return a message's marked values as they arrive, cut into packets as in the run.

        A switch's output depends on a packet's values alone, not on its place in a stream.
        """
        arrived = []
        for start in range(0, len(values), segments.VALUES):
            piece = segments.ValuesSegment(1, 0, values[start : start + segments.VALUES])
            ((_, _, payload),) = self.send(source, to, piece.pack(), piece.tos)
            segment = segments.parse(payload)
            assert isinstance(segment, segments.ValuesSegment), segment
            arrived.append(segment.payload)
        return b"".join(arrived)

    def held(self, source: Peer, payload: bytes) -> None:
        """Take note of a datagram that a host sends and that does not arrive, or not yet."""

    def _pass(self, switch: str, port: int, frame: bytes) -> None:
        """Let a switch process a frame, with all that follows from it there."""
        self._switches[switch].receive(port, frame)
        while self._events.step():
            pass

    def _run(self) -> Iterator[Answer]:
        """Forward frames until none is under way; yield what reaches hosts."""
        while self._under_way:
            node, port, frame = self._under_way.popleft()
            other, other_port = self._links[node, port].other_end(node)
            if other in self._switches:
                self._pass(other, other_port, frame)
            else:
                datagram = frames.parse(frame, self._topology.host[other].mac)
                yield other, datagram.port, datagram.payload
