"""The real network: Mininet's namespaces and veth links, our switch, a process for each host,
or, of many hosts, a few for all.

Enter it in isolated namespaces (runs.isolation): the switches, and their ends of the links, are
in the namespace of the process that enters.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from mininet.node import Switch

from gradplane.controller import targets
from gradplane.controller.targets import Target
from gradplane.hosts.config import HostConfig
from gradplane.switch.daemon.clients import CommandClient
from gradplane.switch.ports import offload
from gradplane.topologies.child_process import Start
from gradplane.topologies.description import Link, Topology
from gradplane.topologies.host_runner import LocalPlace, Place, Places, ProcessNetwork
from gradplane.topologies.mininet.forks import Forks
from gradplane.topologies.mininet.netns import switch_off_offloads, within
from gradplane.topologies.network import LinkCounters, SwitchConfig, SwitchRestart
from gradplane.topologies.shared_process import SharedPlace, SharedProcess
from gradplane.topologies.topology_errors import NetworkError

_PACKAGES = {"mnexec": "mininet", "ifconfig": "net-tools", "ip": "iproute2", "tc": "iproute2"}
_IPV6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")


class MininetNetwork(ProcessNetwork):
    """The `Network` of Mininet. Needs root in its namespaces, and mnexec.

    forks: starts its processes; None: one of its own.
    """

    def __init__(
        self, topology: Topology, config: SwitchConfig, forks: Forks | None = None
    ) -> None:
        self.topology = topology
        self._forks = forks
        self._config = config
        self._exit = ExitStack()
        self._net: Any = None
        self._before: list[LinkCounters] = []

    def __enter__(self) -> MininetNetwork:
        check_tools()
        with ExitStack() as on_failure:
            self._forks = self._forks or on_failure.enter_context(Forks())
            self._net = self._build()
            on_failure.callback(self._stop)
            for host in self._net.hosts:
                self._set_neighbours(host)
            for link in self.topology.links:
                self._set_up(link)
            for switch in self._net.switches:
                switch.launch()  # they compile in parallel
            for switch in self._net.switches:
                switch.wait_ready()
            self._before = self._count()
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _build(self) -> Any:
        from mininet.net import Mininet

        # Mininet would raise limits of the whole machine permanently.
        Mininet.inited = True
        _disable_ipv6()
        return Mininet(self._topo(), host=_host_class(), controller=None, ipBase="10.0.0.0/8")

    def _topo(self) -> Any:
        from mininet.topo import Topo

        topo = Topo()
        for host in self.topology.hosts:
            topo.addHost(host.name, ip=f"{host.ip}/{self.topology.prefix_length}", mac=host.mac)
        for switch in self.topology.switches:
            topo.addSwitch(switch.name, **self._switch_params(switch.name))
        for link in self.topology.links:
            topo.addLink(link.a, link.b, link.a_port, link.b_port)
        return topo

    def _switch_params(self, name: str) -> dict[str, Any]:
        from gradplane.topologies.mininet.mininet_network import DrivenSwitch
        from gradplane.topologies.mininet.p4switch import P4Switch

        config = self._config.of(name)
        target = targets.get(config.target, **dict(config.target_keys))
        if target.lasting:
            return {"cls": DrivenSwitch, "target": target}
        return {
            "cls": P4Switch,
            "program": config.program,
            "include_dirs": config.include_dirs,
            "defines": dict(config.defines),
            "target": target,
            "start": self._forks and self._forks.start,
            "options": [
                *target.options(config.engine, config.seed, config.pcap, config.queues),
                *(["--cores", str(config.cores)] if config.cores > 1 else []),
            ],
        }

    def _set_neighbours(self, node: Any) -> None:
        """Set all addresses from the start, so that no host sends ARP requests."""
        lines = [
            f"neigh replace {ip} lladdr {mac} nud permanent dev {node.name}-eth0\n"
            for ip, mac in self.topology.arp.items()
            if ip != self.topology.host[node.name].ip
        ]
        batch = node.popen(["ip", "-batch", "-"], stdin=subprocess.PIPE)
        output, errors = batch.communicate("".join(lines).encode())
        if batch.returncode != 0:
            raise NetworkError(f"{node.name}: ip neigh: {(output + errors).decode().strip()}")

    def _set_up(self, link: Link) -> None:
        for pid, interface in self._ends(link):
            switch_off_offloads(pid, interface)
            shape(link, pid, interface)

    def _ends(self, link: Link) -> list[tuple[int, str]]:
        ends = ((link.a, link.a_port), (link.b, link.b_port))
        return [(self._net[node].pid, f"{node}-eth{port}") for node, port in ends]

    def _stop(self) -> None:
        """Stop switches first, so that they do not see their interfaces disappear."""
        for switch in self._net.switches:
            switch.stop(deleteIntfs=False)
        self._net.stop()

    @property
    def switch_addresses(self) -> Mapping[str, str]:
        """See Network."""
        return {switch.name: switch.address for switch in self._net.switches}

    @contextmanager
    def _places(self, hosts: Sequence[HostConfig]) -> Iterator[Places]:
        """See ProcessNetwork; the processes are forks. Of many hosts those that do not crash share
        some: each would cost memory, and time to come back to it."""
        assert self._forks is not None, "outside of a with statement"
        forks, nodes = self._forks, self._net
        with tempfile.TemporaryDirectory() as folder:
            shared = _shared(hosts, Path(folder), forks.start)

            def place(config: HostConfig) -> Place:
                pid = nodes[config.name].pid
                if (process := shared.get(id(config))) is not None:
                    return SharedPlace(process, pid)
                return LocalPlace(Path(folder), partial(forks.start, namespaces=pid))

            yield place

    def _check(self) -> None:
        for switch in self._net.switches:
            switch.check()

    def _restart(self, planned: SwitchRestart) -> None:
        """Start a switch's process anew."""
        switch = self._net[planned.switch]
        switch.kill()
        time.sleep(planned.down / 1e9)
        switch.launch()
        switch.wait_ready()

    def link_counters(self) -> list[LinkCounters]:
        """See Network; counted by the kernel, from the start of the network."""
        return [now - before for now, before in zip(self._count(), self._before, strict=True)]

    def queue_peaks(self) -> None:
        """See Network."""
        return None

    def _count(self) -> list[LinkCounters]:
        return [self._counters(link) for link in self.topology.links]

    def _counters(self, link: Link) -> LinkCounters:
        (pid_a, a), (pid_b, b) = self._ends(link)
        up, down = _received(pid_b, b), _received(pid_a, a)
        lost_up = dropped(pid_a, a) + self._dropped_before(link.a, link.a_port)
        lost_down = dropped(pid_b, b) + self._dropped_before(link.b, link.b_port)
        return LinkCounters(link.name, *up, lost_up, *down, lost_down)

    def _dropped_before(self, node: str, port: int) -> int:
        """Return the packets that the switch's own queues in front of a port have dropped."""
        if self._config.of(node).queues is None or node not in self.switch_addresses:
            return 0
        with CommandClient(self.switch_addresses[node]) as client:
            return client.queue_drops().get(port, 0)

    def start(self, host: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program on a host, with its standard output in a pipe.

        options: Popen's, which may say otherwise."""
        pipes = {"stdout": subprocess.PIPE, "stderr": None}
        process: subprocess.Popen[bytes] = self._net[host].popen(list(argv), **pipes | options)
        return process

    def export(self, host: str, variables: Mapping[str, str]) -> None:
        """Set environment variables in a host's shell, which the prompt's commands run in."""
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        self._net.getNodeByName(host).cmd(f"export {words}")

    def cli(self) -> None:
        """Open Mininet's prompt, for any commands on the hosts."""
        from mininet.cli import CLI

        CLI(self._net)


_OWN = 64
"""Hosts up to which each has a process of its own."""


def _processes() -> int:
    """Return how many processes keep the processors busy."""
    return 2 * len(os.sched_getaffinity(0))


def _shared(hosts: Sequence[HostConfig], folder: Path, start: Start) -> dict[int, SharedProcess]:
    """Return the processes that hosts share, by the configurations' ids: workers of equal jobs that
    do not crash, where there are many of them; as many processes as keep the processors busy."""
    found: dict[int, SharedProcess] = {}
    jobs: dict[int, list[HostConfig]] = {}
    for config in hosts:
        if config.worker is not None and not config.job.absences:
            jobs.setdefault(config.job.number, []).append(config)
    for workers in jobs.values() if len(hosts) > _OWN else ():
        count = min(_processes(), len(workers))
        for first in range(count):
            some = workers[first::count]
            process = SharedProcess(len(some), folder, start)
            found |= {id(config): process for config in some}
    return found


def check_tools() -> None:
    """Raise NetworkError, with the packages to install, where Mininet lacks a program."""
    missing = {package for tool, package in _PACKAGES.items() if shutil.which(tool) is None}
    if missing:
        names = " ".join(sorted(missing))
        raise NetworkError(f"Mininet needs programs that are missing here: apt-get install {names}")


def _host_class() -> type[Any]:
    """Return Mininet's host without IPv6, which is disabled before it has interfaces."""
    from mininet.node import Host

    class QuietHost(Host):  # type: ignore[misc]  # mininet has no types
        def __init__(self, name: str, **params: Any) -> None:
            super().__init__(name, **params)
            within(self.pid, _disable_ipv6)

    return QuietHost


def _disable_ipv6() -> None:
    """Disable IPv6, with its advertisements, on this namespace's new interfaces."""
    with suppress(FileNotFoundError):  # a kernel without IPv6
        _IPV6.write_text("1")


def _received(pid: int, interface: str) -> tuple[int, int]:
    """Return the packets and bytes that have arrived at an interface."""
    show = ["ip", "-s", "-j", "link", "show", "dev", interface]
    output = within(pid, lambda: subprocess.run(show, capture_output=True, check=True).stdout)
    counts = json.loads(output)[0]["stats64"]["rx"]
    return counts["packets"], counts["bytes"]


# Rates, delays and queues on real interfaces, by tc: a token bucket, and netem where available


_FRAME = 1514
_BURST = 0.001
"""Seconds of data that may leave in a burst; the kernel's timers are finer than that."""


def check_shapes(topology: Topology, isolated: Callable[[list[str]], list[str]]) -> None:
    """Raise NetworkError unless the kernel can shape the links, before anything is started.

    Tried on the loopback interface of a network namespace that ends at once; `isolated` returns a
    command that runs another as root in namespaces."""
    delayed = [link for link in topology.links if link.delay]
    limited = [link for link in topology.links if link.rate is not None]
    tbf = ["tbf", "rate", "1mbit", "burst", "4kb", "limit", "4kb"]
    for links, queue, why in (
        (delayed, ["netem", "delay", "1ms"], _NO_NETEM),
        (limited, tbf, _NO_TBF),
    ):
        if links:
            add = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", *queue]
            tried = subprocess.run(isolated(add), capture_output=True, text=True, check=False)
            _check_added(links[0], tried, why)


def shape(link: Link, pid: int, interface: str) -> None:
    """Shape what `interface`, an end of the link in the namespace of `pid`, sends.

    Raises NetworkError where the kernel cannot: many have no netem, which a delay needs.
    """
    parent = "root"
    if link.delay:
        limit = ["limit", str(link.queue)]
        netem = ["handle", "1:", "netem", "delay", f"{link.delay / 1000:.3f}us", *limit]
        _add(link, pid, interface, parent, netem, _NO_NETEM)
        parent = "parent 1:1"
    if link.rate is not None:
        burst = max(2 * _FRAME, round(link.rate / 8 * _BURST))
        size = ["burst", str(burst), "limit", str(link.queue * _FRAME)]
        tbf = ["handle", "2:", "tbf", "rate", f"{link.rate}bit", *size]
        _add(link, pid, interface, parent, tbf, _NO_TBF)
        queue = ["handle", "3:", "pfifo", "limit", str(link.queue)]
        _add(link, pid, interface, "parent 2:1", queue, _NO_TBF)


def dropped(pid: int, interface: str) -> int:
    """Return the number of packets that the queues of `interface` have dropped."""
    show = ["tc", "-s", "-j", "qdisc", "show", "dev", interface]
    output = within(pid, lambda: subprocess.run(show, capture_output=True, check=True).stdout)
    # The root's count includes the drops of its children.
    drops = [queue["drops"] for queue in json.loads(output) if queue.get("root")]
    return int(sum(drops))


_NO_NETEM = (
    "a delay needs the kernel's netem, which this kernel refuses: leave the delay out or 0, or use"
    " --net sim, where delays are virtual"
)
_NO_TBF = (
    "a rate needs the kernel's tbf, which this kernel refuses: leave the rate out, or use"
    " --net sim, where rates are virtual"
)


def _add(link: Link, pid: int, interface: str, parent: str, queue: list[str], why: str) -> None:
    command = ["tc", "qdisc", "add", "dev", interface, *parent.split(), *queue]
    run: Callable[[], subprocess.CompletedProcess[str]] = partial(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    _check_added(link, within(pid, run), why)


def _check_added(link: Link, done: subprocess.CompletedProcess[str], why: str) -> None:
    if done.returncode != 0:
        raise NetworkError(f"link {link.name}: {why} (tc: {done.stderr.strip()})")


# A switch that a driver outside the network runs; its ports are bridged to Mininet's links


_BETWEEN_LOOKS = 1.0  # seconds
_PATIENCE = 5.0  # seconds for the driver to take a connection
# A hub of two interfaces: nothing is learned, since a packet may come back by its own port.
_HUB = ("type", "bridge", "ageing_time", "0", "mcast_snooping", "0", "stp_state", "0")


class DrivenSwitch(Switch):  # type: ignore[misc]  # mininet has no types
    """The driver's switch as a node: it starts no process, and leaves the driver as it is.

    A host's link ends at NAME-ethPORT. A bridge joins that end with the interface that leads to
    the driver's port; the interface keeps its name and stays where it is. After a run that was
    killed, bridges of the same name are replaced.
    """

    def __init__(self, name: str, target: Target, **params: Any) -> None:
        super().__init__(name, **params)
        self.address = target.address
        self._interfaces = {place.port: place.interface for place in target.attachments.values()}
        self._bridges: list[str] = []
        self._looked = 0.0

    def launch(self) -> None:
        """Join the links with the driver's ports. Raises NetworkError where that fails."""
        for end in self.intfList():
            if end.link is not None:
                port = self.ports[end]
                self._join(f"{self.name}-br{port}", end.name, self._interfaces[port])

    def wait_ready(self) -> None:
        """Check that the driver answers."""
        self.check()

    def check(self) -> None:
        """Raise NetworkError if the driver takes no connections; it is asked once a second."""
        now = time.monotonic()
        if now - self._looked < _BETWEEN_LOOKS:
            return
        self._looked = now
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
        except OSError as error:
            raise NetworkError(
                f"switch {self.name}: the driver at {self.address} is gone: {error.strerror}"
            ) from error

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Take the bridges away."""
        for bridge in self._bridges:
            subprocess.run(["ip", "link", "delete", bridge], check=False)
        self._bridges = []
        super().stop(deleteIntfs)

    def _join(self, bridge: str, link: str, port: str) -> None:
        subprocess.run(["ip", "link", "delete", bridge], check=False, stderr=subprocess.DEVNULL)
        _ip("add", "name", bridge, *_HUB)
        self._bridges.append(bridge)
        offload.switch_off(port)
        for name in (link, port):
            _ip("set", name, "master", bridge)
        for name in (link, port, bridge):
            _ip("set", name, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", "link", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"ip link {' '.join(words)}: {done.stderr.strip()}")
