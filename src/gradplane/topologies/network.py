"""The interface of both networks, Mininet and the simulated one.

with network as net:                        # starts switches, links, hosts
    configure(net.switch_addresses["s1"], ...)
    net.run(host_configs, on_record, deadline)
    net.link_counters()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

from gradplane.controller.plan import ControlServer
from gradplane.controller.targets import QueueSettings
from gradplane.hosts.config import HostConfig
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.topologies.description import Topology
from gradplane.topologies.topology_errors import NetworkError

EMULATED = ("mininet", "sim")
NETWORKS = (*EMULATED, "cluster")
"""The names of the networks that a run can be on."""

Record = dict[str, Any]
OnRecord = Callable[[Record], None]
AskedFor = Callable[[], Sequence[Intervention]]


@dataclass(frozen=True)
class SwitchConfig:
    """The configuration of every switch of a network but those in `only`, by name.

    program: P4 source. target: a name of `gradplane.controller.targets`; target_keys: the values of
    keys of its own. latency: ns through the pipeline; recirculation_rate: bit/s, None for no limit
    (both in the simulated network only: a real one takes its own time). pcap: a folder that gets a
    file for each port; None for none. queues: the queues of every port, if they have a rate.
    cores: those that read the ports of a real one.
    """

    program: Path
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    target: str = "embedded"
    target_keys: tuple[tuple[str, Any], ...] = ()
    engine: str = "jit"
    seed: int = 0
    latency: int = 1000
    recirculation_rate: int | None = None
    pcap: Path | None = None
    queues: QueueSettings | None = None
    cores: int = 1
    only: Mapping[str, SwitchConfig] = field(default_factory=dict)

    def of(self, switch: str) -> SwitchConfig:
        """Return the configuration of one switch."""
        return self.only.get(switch, self)


@dataclass(frozen=True)
class LinkCounters:
    """The traffic of a link; "up" is from its first end to its second, host to switch.

    Bytes are those of whole Ethernet frames, without preamble and checksum.
    """

    link: str
    up_packets: int
    up_bytes: int
    up_dropped: int
    down_packets: int
    down_bytes: int
    down_dropped: int

    def __sub__(self, earlier: LinkCounters) -> LinkCounters:
        """Return the traffic since `earlier`."""
        pairs = zip(_counts(self), _counts(earlier), strict=True)
        return LinkCounters(self.link, *(now - before for now, before in pairs))


_counts = attrgetter(*(field.name for field in fields(LinkCounters)[1:]))


@dataclass(frozen=True)
class SwitchRestart:
    """A switch that loses its state `at` ns after the hosts have begun. Its entries are there again
    `down` ns later, when the controller has noticed."""

    switch: str
    at: int
    down: int


@dataclass(frozen=True)
class Restarts:
    """The switches that lose their state in a run.

    restore: configures one again, and returns the epochs, by number, of the jobs that have another
    one from now on.
    """

    planned: Sequence[SwitchRestart]
    restore: Callable[[str], Mapping[int, int]]


class Network(Protocol):
    """A context manager; everything that it started ends with it."""

    topology: Topology
    """With the hosts' real MAC addresses, which are known once it is entered."""

    @property
    def switch_addresses(self) -> Mapping[str, str | ControlServer]:
        """Each switch's P4Runtime or BFRuntime server, HOST:PORT or all that a connection needs, by
        the switch's name."""

    def run(
        self,
        hosts: Sequence[HostConfig],
        on_record: OnRecord,
        deadline: float | None = None,
        asked: AskedFor | None = None,
        restarts: Restarts | None = None,
    ) -> None:
        """Run the hosts to their end and pass on their log records as they are written.

        deadline: seconds of the experiment's time. asked: returns the interventions that were asked
        for since the last call; the hosts are live then. restarts: of switches; the hosts are told
        of the epochs that follow. Raises NetworkError when the deadline
        passes, or when a host or a switch fails.
        """

    def link_counters(self) -> list[LinkCounters]:
        """Return the traffic of each link so far, in the topology's order."""

    def queue_peaks(self) -> list[tuple[int, int]] | None:
        """Return for each link the most frames in the queues of its two ends since the last call.

        None where the network does not keep them: Linux' queues do not."""

    def about(self) -> dict[str, Any]:
        """Return further values for summary.json."""

    def cli(self) -> None:
        """Open a prompt on the running network, until the user leaves it."""

    def __enter__(self) -> Network: ...

    def __exit__(self, *error: object) -> None: ...


def check_hosts(topology: Topology, hosts: Sequence[HostConfig]) -> None:
    """Raise NetworkError for a configuration of a host that the topology does not have."""
    for config in hosts:
        host = topology.host.get(config.name)
        if host is None or host.ip != config.ip:
            known = ", ".join(f"{h.name} {h.ip}" for h in topology.hosts)
            raise NetworkError(f"no host {config.name} {config.ip} in the topology: {known}")
