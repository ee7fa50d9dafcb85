"""Helpers of the tests of several switches: routes, and traffic over real links."""

import subprocess
import sys

from network_cases import pipeline, switch_config

from gradplane.controller import Route, Setup, configure
from gradplane.topologies import build
from gradplane.topologies.mininet.mininet_network import MininetNetwork

_RECEIVE = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
s.bind(("", 9000))
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: arrival, however late this is read
s.settimeout(60)
print("ready", flush=True)
times = []
for _ in range(int(sys.argv[1])):
    _, [(_, _, stamp)], _, _ = s.recvmsg(2000, 64)
    seconds, nanoseconds = struct.unpack("qq", stamp)
    times.append(seconds * 10**9 + nanoseconds)
print((times[-1] - times[0]) / 1e9)
"""
_SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[3])):
    s.sendto(bytes(int(sys.argv[2])), (sys.argv[1], 9000))
"""


def route(net):
    """Install routes to every host in every switch."""
    topology = net.topology
    for switch in topology.switches:
        routes = [
            Route(topology.host[name].ip, 32, port, topology.host[name].mac)
            for name, port in topology.routes(switch.name).items()
        ]
        setup = Setup(switch.ip, switch.mac, routes, [])
        configure(net.switch_addresses[switch.name], pipeline(), setup)


def pings(kind, options):
    """Return whether every host reaches every other, and the traffic of each link between
    switches."""
    with MininetNetwork(build(kind, **options), switch_config()) as net:
        route(net)
        hosts = net._net.hosts
        lost = [
            (a.name, b.name)
            for a in hosts
            for b in hosts
            if a is not b and " 1 received" not in a.cmd(f"ping -c 1 -W 5 {b.IP()}")
        ]
        fabric = [link.name for link in net.topology.fabric_links()]
        return lost, {c.link: c.up_packets for c in net.link_counters() if c.link in fabric}


def transfer(kind, options, source, destination, count, payload):
    """Return the seconds from the first to the last of `count` datagrams sent at once."""
    with MininetNetwork(build(kind, **options), switch_config()) as net:
        route(net)
        a, b = net._net[source], net._net[destination]
        command = [sys.executable, "-u", "-c", _RECEIVE, str(count)]
        receiver = b.popen(command, stdout=subprocess.PIPE, text=True)
        assert receiver.stdout.readline() == "ready\n"
        a.popen([sys.executable, "-c", _SEND, b.IP(), str(payload), str(count)]).wait()
        return float(receiver.communicate()[0])
