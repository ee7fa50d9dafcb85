"""The description of a network: hosts, switches and links as plain data, checked without root.

Mininet's naming rule: hosts h1, h2, ..., switches s1, s2, ...; interface N of a node is `h1-ethN`;
a host's only interface is eth0, a switch's ports count from 1. Host N has 10.0.0.N and MAC N, from
254 on 10.1.H.L and MAC 00:00:00:01:H:L, where N is 256 H + L.
"""

from __future__ import annotations

import importlib
import inspect
import ipaddress
import math
import pkgutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gradplane._plugins import LoadError, described, is_reference, load, own, own_place, returned
from gradplane._splitmix64 import mix
from gradplane._suggestions import quoted
from gradplane.controller.plan import EqualWays, udp_flow
from gradplane.topologies.topology_errors import NoPlaceError, TopologyError, nearest

MAX_HOSTS = 32_767
"""The most hosts: a sum's count of workers has 15 bits (thc.p4)."""
_NEAR_HOSTS = 253
"""Hosts with addresses 10.0.0.1 ... 10.0.0.253; .254 is the switch's own."""
MAX_PORT = 510
"""P4 programs for v1model and TNA have ports of 9 bits, and 511 drops a packet."""

SWITCH_IP = "10.0.0.254"
SWITCH_MAC = "00:00:00:00:00:fe"
QUEUE = 1000
"""Packets that a link queues in each direction: Linux's txqueuelen for Ethernet."""

Neighbours = Mapping[str, Mapping[int, str]]
"""For each node, the node at the other end of each of its ports."""


@dataclass(frozen=True)
class HostNode:
    """A host with one interface, `name-eth0`."""

    name: str
    ip: str
    mac: str

    @classmethod
    def numbered(cls, number: int) -> HostNode:
        """Return host `number`, counted from 1, by the naming rule."""
        if number <= _NEAR_HOSTS:
            return cls(f"h{number}", f"10.0.0.{number}", f"00:00:00:00:00:{number:02x}")
        high, low = divmod(number, 256)
        return cls(f"h{number}", f"10.1.{high}.{low}", f"00:00:00:01:{high:02x}:{low:02x}")


@dataclass(frozen=True)
class SwitchNode:
    """A switch; `ip` and `mac` are its own addresses, the destination of aggregation packets."""

    name: str
    ip: str = SWITCH_IP
    mac: str = SWITCH_MAC

    @classmethod
    def forwarding(cls, number: int) -> SwitchNode:
        """Return switch `number` with an address of its own: what is sent to SWITCH_IP passes."""
        high, low = divmod(number, 256)
        return cls(f"s{number}", f"10.0.{high + 1}.{low}", f"00:00:00:00:{high + 1:02x}:{low:02x}")


@dataclass(frozen=True)
class Link:
    """A link between port `a_port` of node `a` and port `b_port` of node `b`; the same both ways.

    rate is in bit/s (None: no limit), delay in ns one way, queue in packets each way. Direction
    "up" is from a to b: from the host to the switch. Raises TopologyError for a number that no link
    has.
    """

    a: str
    b: str
    a_port: int
    b_port: int
    rate: int | None = None
    delay: int = 0
    queue: int = QUEUE

    def __post_init__(self) -> None:
        for name, (least, most, unit, made) in _UNITS.items():
            value = getattr(self, name)
            right = isinstance(value, int) and least <= value <= most
            if not right and (name, value) != ("rate", None):
                expected = f"expected a whole number {unit}{made}"
                raise TopologyError(f"link {self.name}: {name} = {value!r}: {expected}")

    @property
    def name(self) -> str:
        return f"{self.a}-{self.b}"

    def other_end(self, node: str) -> tuple[str, int]:
        """Return (node, port) at the end that is not `node`."""
        return (self.b, self.b_port) if node == self.a else (self.a, self.a_port)


@dataclass(frozen=True)
class Topology:
    """A checked network. Raises TopologyError if names repeat, a link's end does not exist, or a
    number of a link is none.

    inside: the switches that are parts of machines; to the other switches they are hosts. nics: the
    switches that stand for the network cards of the hosts that are attached to them.
    """

    kind: str
    hosts: tuple[HostNode, ...]
    switches: tuple[SwitchNode, ...]
    links: tuple[Link, ...]
    inside: frozenset[str] = frozenset()
    nics: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_unique("name", self._names())
        _check_unique("address", [host.ip for host in self.hosts])
        _check_unique("MAC address", [host.mac for host in self.hosts])
        _check_unique("link", [link.name for link in self.links])
        _check_unique("interface", [f"{node}-eth{port}" for node, port in self._ends()])
        known = dict.fromkeys(self._names())
        for node, _ in self._ends():
            if node not in known:
                text = f'a link leads to "{node}", which does not exist: {nearest(node, known)}'
                raise TopologyError(text)
        self._check_hosts()
        self._check_connected()

    def _names(self) -> list[str]:
        return [host.name for host in self.hosts] + [switch.name for switch in self.switches]

    def _ends(self) -> Iterator[tuple[str, int]]:
        for link in self.links:
            yield link.a, link.a_port
            yield link.b, link.b_port

    def _check_hosts(self) -> None:
        found: dict[str, list[int]] = {host.name: [] for host in self.hosts}
        for node, port in self._ends():
            if node in found:
                found[node].append(port)
        for host in self.hosts:
            _check_address(host)
            if (ports := found[host.name]) != [0]:
                raise TopologyError(
                    f"host {host.name} has interfaces {ports}: a host has exactly one, numbered 0"
                )

    def _check_connected(self) -> None:
        for host in self.hosts:
            distance = self._distances_to(self._edge(host.name))
            for switch in self.switches:
                if switch.name not in distance:
                    raise TopologyError(
                        f"no path leads from switch {switch.name} to host {host.name}: link them"
                    )

    @cached_property
    def host(self) -> dict[str, HostNode]:
        """The hosts by name."""
        return {host.name: host for host in self.hosts}

    @cached_property
    def arp(self) -> dict[str, str]:
        """All MAC addresses by IP address, the switches' own included."""
        hosts = {host.ip: host.mac for host in self.hosts}
        return hosts | {switch.ip: switch.mac for switch in self.switches}

    @property
    def prefix_length(self) -> int:
        """The length of the hosts' network: 10.0.0.0/24, or 10.0.0.0/8 for more of them."""
        return 24 if len(self.hosts) <= _NEAR_HOSTS else 8

    def ports(self, switch: str) -> dict[int, Link]:
        """Return the switch's links by its port number."""
        return dict(sorted(self._links[switch].items()))

    def with_switch_ports(self, renumber: Callable[[str, int, str], int]) -> Topology:
        """Return the network with other port numbers at its switches.

        renumber: returns a port's number, given the switch, the number here and the node that it
        leads to.
        """
        switches = {switch.name for switch in self.switches}
        links = []
        for link in self.links:
            a = renumber(link.a, link.a_port, link.b) if link.a in switches else link.a_port
            b = renumber(link.b, link.b_port, link.a) if link.b in switches else link.b_port
            links.append(replace(link, a_port=a, b_port=b))
        return replace(self, links=tuple(links))

    def with_host_beside(self, other: str = "") -> Topology:
        """Return the network with one more host, on the switch of another, by a link like that's.

        other: its name; none: the last host's. TopologyError where there are as many as there may
        be."""
        other = other or self.hosts[-1].name
        if len(self.hosts) == MAX_HOSTS:
            raise TopologyError(f"{MAX_HOSTS + 1} hosts: a network has {MAX_HOSTS} at most")
        switch, _ = self.attachment(other)
        host, port = HostNode.numbered(len(self.hosts) + 1), max(self._links[switch]) + 1
        like = self._links[other][0]
        link = Link(host.name, switch, 0, port, like.rate, like.delay, like.queue)
        return replace(self, hosts=(*self.hosts, host), links=(*self.links, link))

    def with_nics(self, wanted: object = True) -> Topology:
        """Return the network with a switch in each host's link that stands for its network card.

        The link of the card to the network is that of the host before; the host's to its card has
        no limit. Cards have addresses of their own: what is for the switch that sums passes.
        wanted: the option `nics`, with which nothing changes if it is false."""
        if not isinstance(wanted, bool):
            raise TopologyError(f"nics = {quoted(wanted)}: true or false", "nics")
        if not wanted:
            return self
        first, links = len(self.switches) + 1, list[Link]()
        nics = {host.name: first + n for n, host in enumerate(self.hosts)}
        for link in self.links:
            if link.a in nics:
                nic = f"s{nics[link.a]}"
                links.append(Link(link.a, nic, 0, 1))
                link = replace(link, a=nic, a_port=2)
            links.append(link)
        cards = tuple(SwitchNode.forwarding(number) for number in nics.values())
        names = frozenset(card.name for card in cards)
        return replace(self, switches=(*self.switches, *cards), links=tuple(links), nics=names)

    def rack(self, host: str) -> str:
        """Return the switch that a host, or its network card, is attached to."""
        switch, _ = self.attachment(host)
        if switch not in self.nics:
            return switch
        ends = (link.other_end(switch)[0] for link in self._links[switch].values())
        return next(end for end in ends if end != host)

    def attachment(self, host: str) -> tuple[str, int]:
        """Return (switch, port) that a host is attached to."""
        return self._links[host][0].other_end(host)

    def aggregator(self, host: str) -> str:
        """Return the switch that gets what a host sends to SWITCH_IP: the nearest one with that
        address, or where none has it the host's own."""
        edge = self._edge(host)
        distance = self._distances_to(edge)
        taking = (switch.name for switch in self.switches if switch.ip == SWITCH_IP)
        return min(taking, key=distance.__getitem__, default=edge)

    def host_ports(self, switch: str) -> dict[int, str]:
        """Return the hosts that are attached to the switch, by its port number."""
        found = self._neighbours[switch].items()
        return {port: node for port, node in found if node in self.host}

    def edge_ports(self, switch: str) -> tuple[int, ...]:
        """Return the ports at which packets enter and leave the network of switches."""
        if switch in self.inside:
            return ()
        found = self._neighbours[switch].items()
        return tuple(port for port, node in found if node in self.host or node in self.inside)

    def fabric_links(self) -> list[Link]:
        """Return the links between switches."""
        return [link for link in self.links if not {link.a, link.b} & self.host.keys()]

    def routes(self, switch: str) -> dict[str, int]:
        """Return the switch's port to each host, on a shortest path through switches.

        Among equally short paths the host's number chooses: the hosts are spread over the spines
        evenly. Programs that choose by flow have all of them, `ways`.
        """
        ways = enumerate(self.ways(switch).items())
        return {host: way.ports[number % len(way.ports)] for number, (host, way) in ways}

    def ways(self, switch: str) -> dict[str, EqualWays]:
        """Return the switch's ports on all shortest paths to each host."""
        return {host: self._ways(switch, host) for host in self.host}

    def _ways(self, switch: str, host: str) -> EqualWays:
        edge, port = self.attachment(host)
        if edge == switch:
            return EqualWays((port,), self._factors[switch])
        if (switch, edge) not in self._found_ways:
            ports = _nearer(self._neighbours, switch, self._distances_to(edge))
            self._found_ways[switch, edge] = EqualWays(tuple(ports), self._factors[switch])
        return self._found_ways[switch, edge]

    @cached_property
    def _found_ways(self) -> dict[tuple[str, str], EqualWays]:
        """The ways from one switch to another, as far as they have been asked for."""
        return {}

    @cached_property
    def _factors(self) -> dict[str, int]:
        """An odd number of 32 bits for each switch, which decides flows' ways."""
        return {node.name: mix(n) & 0xFFFFFFFF | 1 for n, node in enumerate(self.switches)}

    def port_to_host(self, switch: str, host: str) -> int:
        """Return a switch's port on a shortest path to a host."""
        return self._ways(switch, host).ports[0]

    def port_to(self, switch: str, other: str) -> int:
        """Return a switch's port on a shortest path to another switch."""
        return _nearer(self._neighbours, switch, self._distances_to(other))[0]

    def path(self, source: str, destination: str, udp_port: int) -> list[tuple[str, Link]]:
        """Return the links that a packet takes between two hosts, from that UDP port to the same,
        each behind the node from which it enters the link."""
        ends = self.host[source].ip, self.host[destination].ip
        flow, node, found = udp_flow(*ends, udp_port, udp_port), source, []
        while node != destination:
            port = 0 if node == source else self._ways(node, destination).port(flow)
            link = self._links[node][port]
            found.append((node, link))
            node, _ = link.other_end(node)
        return found

    def way(self, host: str, switch: str) -> list[Link]:
        """Return the links on a shortest path from a host to a switch."""
        node, port = self.attachment(host)
        found = [self._links[node][port]]
        while node != switch:
            found.append(self._links[node][self.port_to(node, switch)])
            node, _ = found[-1].other_end(node)
        return found

    def nearest_by_ip(self, node: str, switches: Iterable[SwitchNode]) -> list[SwitchNode]:
        """Return the switch of each address, of several ones the nearest to a switch `node`."""
        distance, found = self._distances_to(node), dict[str, SwitchNode]()
        for switch in sorted(switches, key=lambda one: distance[one.name], reverse=True):
            found[switch.ip] = switch
        return list(found.values())

    def centres(self, hosts: Iterable[str]) -> list[str]:
        """Return the switches whose farthest one of these hosts is nearest, in their order."""
        reach = [self._distances_to(edge) for edge in {self._edge(host) for host in hosts}]
        farthest = {s.name: max(distance[s.name] for distance in reach) for s in self.switches}
        least = min(farthest.values())
        return [name for name, distance in farthest.items() if distance == least]

    def _distances_to(self, node: str) -> dict[str, int]:
        if node not in self._switch_distances:
            through = frozenset(s.name for s in self.switches)
            self._switch_distances[node] = _distances(self._neighbours, node, through)
        return self._switch_distances[node]

    @cached_property
    def _switch_distances(self) -> dict[str, dict[str, int]]:
        """The distances to switches, as far as they have been asked for."""
        return {}

    def _edge(self, host: str) -> str:
        """Return the switch that a host is attached to."""
        return self.attachment(host)[0]

    @cached_property
    def _neighbours(self) -> dict[str, dict[int, str]]:
        """The node at the other end of each port of each node, in the ports' order."""
        return {
            name: {port: link.other_end(name)[0] for port, link in sorted(links.items())}
            for name, links in self._links.items()
        }

    @cached_property
    def _links(self) -> dict[str, dict[int, Link]]:
        """The links of each node, by its port."""
        found: dict[str, dict[int, Link]] = {name: {} for name in self._names()}
        for link in self.links:
            found[link.a][link.a_port] = found[link.b][link.b_port] = link
        return found


_KINDS = {"hosts": HostNode, "switches": SwitchNode, "links": Link}
_UNITS = {
    "a_port": (0, MAX_PORT, f"from 0 to {MAX_PORT}", ""),
    "b_port": (0, MAX_PORT, f"from 0 to {MAX_PORT}", ""),
    "rate": (1, math.inf, "of bit/s", ', such as parse_rate("25Mbit", "rate") returns'),
    "delay": (0, math.inf, "of ns", ', such as parse_time("2ms", "delay") returns'),
    "queue": (1, math.inf, "of packets, 1 or more", ""),
}
"""The least and the largest value of each number of a link, and how a message says them."""


def _check_kinds(topology: Topology) -> None:
    for name, kind in _KINDS.items():
        for member in getattr(topology, name):
            if not isinstance(member, kind):
                raise TopologyError(
                    f"{topology.kind}: among the {name} is {described(member)}: expected a"
                    f" {kind.__name__}"
                )


_IMPAIRMENTS = {
    "loss": '"bernoulli" or "burst"',
    "drop": '"bernoulli" or "drop list"',
    "corrupt": '"corruption"',
    "duplicate": '"duplication"',
    "reorder": '"reordering"',
    "jitter": '"jitter"',
    "straggler": '"straggler"',
}
"""Options of a link in netem and Mininet, and the impairment models that do the same here."""
_OTHER_NAMES = {
    "bandwidth": "rate", "bw": "rate", "latency": "delay", "max_queue_size": "queue",
    "queue_size": "queue", "limit": "queue",
}  # fmt: skip


def build(kind: str, /, **options: Any) -> Topology:
    """Build the topology of that kind: `build("star", workers=4)`.

    A kind is a file of this folder with a function of the file's name; "leaf-spine" is in
    leaf_spine.py; or a user's function ("module:object", "file.py"). Raises TopologyError for an
    unknown kind or option, with the nearest known one, and for invalid values; LoadError for a
    user's function that is none or returns something else. Any kind has `nics` (with_nics).
    """
    nics = options.pop("nics", False)
    function = _find(kind)
    known = inspect.signature(function).parameters
    for option in options:
        if option not in known and is_reference(kind):
            takes = ", ".join(known) or "nothing"
            text = f'topology {kind} has no option "{option}": its function takes {takes}'
            if option in ("workers", "servers"):
                text += ", and every topology's takes workers and servers"
            raise TopologyError(text, option)
        if option not in known:
            raise TopologyError(
                f'topology {kind} has no option "{option}": {_elsewhere(option, {*known, "nics"})}',
                option,
            )
    missing = [name for name, p in known.items() if p.default is p.empty and name not in options]
    if missing:
        raise TopologyError(f"topology {kind} needs {', '.join(missing)}")
    try:
        network = function(**options)
    except TopologyError as error:
        if error.key or not (place := own_place(error)):
            raise
        raise TopologyError(f"{place}: {error}") from None
    right = isinstance(network, Topology)
    returned(
        f"topology {kind}", f"the call with {', '.join(options)}", network, right, "a Topology"
    )
    asked = {name: options.get(name, 0) for name in ("workers", "servers")}
    if len(network.hosts) < sum(asked.values()):
        listed = " and ".join(f"{name} = {count}" for name, count in asked.items())
        raise NoPlaceError(
            f"topology {kind} has {len(network.hosts)} hosts: {listed} need {sum(asked.values())}"
        )
    return network.with_nics(nics)


def _elsewhere(option: str, known: Iterable[str]) -> str:
    """Return the hint for an option that a kind does not have, and other kinds may."""
    if hint := impairment_hint(option):
        return hint
    if option in _OTHER_NAMES:
        return f'did you mean "{_OTHER_NAMES[option]}"?'
    having = [kind for kind in kinds() if option in inspect.signature(_find(kind)).parameters]
    if having:
        return f"it is one of {' and '.join(having)}; known: {', '.join(sorted(known))}"
    return nearest(option, known)


def impairment_hint(option: str) -> str:
    """Return the hint for a key such as loss or packet_loss where impairments are not; else ""."""
    models = [_IMPAIRMENTS[word] for word in option.split("_") if word in _IMPAIRMENTS]
    return f"it is an [[impairment]] of the experiment, with model = {models[0]}" if models else ""


def kinds() -> list[str]:
    """Return the names of all kinds of topology."""
    package = importlib.import_module("gradplane.topologies")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return sorted(name.replace("_", "-") for name in names if _function(name) is not None)


def options() -> set[str]:
    """Return the options of all kinds, and `nics`, which is none of a kind's own (with_nics)."""
    own = (inspect.signature(_find(kind)).parameters for kind in kinds())
    return {"nics"}.union(*own)


def _find(kind: str) -> Callable[..., Topology]:
    if is_reference(kind):
        users: Callable[..., Topology] = load("topology", kind, takes=("workers", "servers"))
        if not callable(users):
            raise LoadError(f"topology {kind}: found {described(users)}; expected a function")
        return users
    name = kind.replace("-", "_")
    function = _function(name) if name.isidentifier() else None
    if function is None:
        raise TopologyError(f'no topology "{kind}": {nearest(kind, kinds())}, {own(kind)}', "kind")
    return function


def _function(kind: str) -> Callable[..., Topology] | None:
    path = f"gradplane.topologies.{kind}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name == path:
            return None
        raise
    function: Callable[..., Topology] | None = getattr(module, kind, None)
    return function


def _check_address(host: HostNode) -> None:
    try:
        ipaddress.IPv4Address(host.ip)
    except ValueError:
        raise TopologyError(f'host {host.name}: "{host.ip}" is not an IPv4 address') from None


def _check_unique(what: str, values: Sequence[str]) -> None:
    for value, times in Counter(values).items():
        if times > 1:
            raise TopologyError(f"{what} {value} is used {times} times, once is allowed")


def _distances(neighbours: Neighbours, to: str, through: frozenset[str]) -> dict[str, int]:
    """Return each node's distance in links from `to`, on paths through `through` only."""
    found, waiting = {to: 0}, deque([to])
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node].values():
            if other not in found:
                found[other] = found[node] + 1
                if other in through:
                    waiting.append(other)
    return found


def _nearer(neighbours: Neighbours, node: str, distance: Mapping[str, int]) -> list[int]:
    """Return the ports of `node` whose other end is one link nearer, in order."""
    ports = neighbours[node].items()
    return sorted(p for p, other in ports if distance.get(other) == distance[node] - 1)
