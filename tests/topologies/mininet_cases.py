"""The parts of the Mininet tests that run inside namespaces (gradplane.runs.isolation.call)."""

import contextlib
import dataclasses
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from network_cases import hosts, job, run, set_up, switch_config

from gradplane.runs import isolation
from gradplane.topologies import NetworkError, build
from gradplane.topologies.mininet import mininet_network
from gradplane.topologies.mininet.mininet_network import MininetNetwork, dropped, shape
from gradplane.topologies.network import SwitchConfig


def network(config=None, **star):
    return MininetNetwork(build("star", **({"workers": 2} | star)), config or switch_config())


def train(pcap, *jobs):
    """Train the jobs on one network one after the other, each with its number as the folder of its
    captures in `pcap`; return records and link counters of each."""
    found = []
    for number, current in enumerate(jobs):
        folder = pcap / str(number)
        folder.mkdir()
        with network(switch_config(pcap=folder)) as net:
            set_up(net, current)
            found.append((run(net, current), net.link_counters()))
    return found


def train_shared(wanted):
    """Train a job whose hosts share a process; return the records."""
    mininet_network._OWN, mininet_network._processes = 1, lambda: 1
    with network() as net:
        set_up(net, wanted)
        names = set()

        def note(record):
            records.append(record)
            names.update(subprocess.getoutput("ps -e -o comm=").split("\n"))

        records = []
        net.run(hosts(wanted), note, 60)
    return records, [name for name in names if "-worker-" in name or name.endswith("-shared")]


def shared_host_that_fails():
    """Run a job whose data does not exist, its hosts in one process."""
    mininet_network._OWN, mininet_network._processes = 1, lambda: 1
    return host_that_fails()


def inspect():
    """Return what the kernel and Mininet's nodes show of a running network."""
    with network(servers=1) as net:
        set_up(net)
        node = net._net["h1"]
        return {
            "addresses": node.cmd("ip -br address").split("\n"),
            "neighbours": sorted(map(str.strip, node.cmd("ip neigh").strip().split("\n"))),
            "offloads": node.cmd("ethtool -k h1-eth0"),
            "switch offloads": subprocess.getoutput("ethtool -k s1-eth1"),
            "ping": node.cmd("ping -c 3 -i 0.01 10.0.0.3"),
            "links": net.link_counters(),
            "root": subprocess.getoutput("ip -br link"),
        }


def inspect_isolated():
    print(isolation.call(inspect)["ping"])


def left_after():
    """Return processes and interfaces that a network leaves behind."""
    inspect()
    children = subprocess.getoutput("ps -e -o args=").split("\n")
    return children, subprocess.getoutput("ip -br link").split("\n")


def burst(count, **star):
    """Send `count` datagrams of 1000 bytes from h1 at once; return h1's link when its queue is
    empty."""
    with network(**star) as net:
        set_up(net)
        h1 = net._net["h1"]
        code = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            f"for _ in range({count}): s.sendto(bytes(958), ('10.0.0.254', 9))"
        )
        h1.popen([sys.executable, "-c", code]).wait()
        while True:
            link = net.link_counters()[0]
            if link.up_packets + link.up_dropped == count:
                return link


def enter(**star):
    """Enter a network that cannot be built; return the error's text."""
    try:
        with network(**star):
            return "it could be"
    except NetworkError as error:
        return str(error)


def enter_program(path):
    """Enter a network with a P4 program that cannot be compiled; return the error's text."""
    try:
        with MininetNetwork(build("star", workers=1), SwitchConfig(Path(path))):
            return "it could be"
    except NetworkError as error:
        return str(error)


def host_that_fails():
    """Run a job whose data does not exist."""
    with network() as net:
        try:
            run(net, job(data="nothing-of-the-kind"))
        except NetworkError as error:
            return str(error)
    return "it could run"


def host_killed():
    """Kill a host in the middle of a run."""
    with network() as net:
        set_up(net, job())

        def kill(record):
            for pid in subprocess.getoutput("pgrep '^h2-0-worker'").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

        try:
            net.run(hosts(job(epochs=50)), kill, 60)
        except NetworkError as error:
            return str(error)
    return "it could run"


def switch_killed():
    """Kill a switch in the middle of a run."""
    with network() as net:
        set_up(net, job())
        try:
            net.run(hosts(job(epochs=50)), lambda record: kill_switch(net), 60)
        except NetworkError as error:
            return str(error)
    return "it could run"


def kill_switch(net):
    with contextlib.suppress(ProcessLookupError):  # for the records after the first
        os.kill(net._net["s1"].process._popen.pid, signal.SIGKILL)


def past_deadline():
    with network() as net:
        set_up(net, job())
        try:
            run(net, job(epochs=1000), deadline=0.2)
        except NetworkError as error:
            return str(error)
    return "it could run"


def prompt():
    with network() as net:
        set_up(net)
        net.cli()


def stay():
    """Run a network that trains for long, to be killed from outside."""
    with network() as net:
        set_up(net, job())
        namespaces = [os.readlink(f"/proc/{n.pid}/ns/net") for n in net._net.hosts]
        print(os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/pid"), *namespaces)
        print(os.environ["TMPDIR"], flush=True)
        printed = []

        def once(record):
            if not printed:
                printed.append(print("training", flush=True))

        net.run(hosts(job(epochs=10**6)), once)


if __name__ == "__main__":
    globals()[sys.argv[1]]()


def queues():
    """Return what the queues that a link gets do: docs/experiments.md, "Two networks"."""
    made = ["ip", "link", "add", "qa", "type", "veth", "peer", "name", "qb"]
    subprocess.run(made, check=True)
    for name in ("qa", "qb"):
        subprocess.run(["ip", "link", "set", name, "addrgenmode", "none", "up"], check=True)
    pid, seen = os.getpid(), {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("qa", 0))

        def sent(count, size):
            """Send frames; return how many were taken, and why the last one was not."""
            frame = bytes.fromhex("ffffffffffff0200000000011234").ljust(size, b"\0")
            for taken in range(count):
                try:
                    sender.send(frame)
                except OSError as error:
                    return taken, errno.errorcode[error.errno]
            return count, ""

        def shaped(name, count, size, rate=800):
            link = dataclasses.replace(build("star", workers=1).links[0], rate=rate, queue=5)
            shape(link, pid, "qa")
            seen[name] = (*sent(count, size), dropped(pid, "qa"))
            subprocess.run(["tc", "qdisc", "del", "dev", "qa", "root"], check=True)

        shaped("whole frames", 20, 1514)
        shaped("small frames", 200, 60)
        shaped("odd rate", 1, 60, rate=1001)
        subprocess.run(["ip", "link", "set", "qb", "down"], check=True)
        shown = ["ip", "-o", "link", "show", "qa"]
        while b"LOWERLAYERDOWN" not in subprocess.check_output(shown):
            time.sleep(0.05)  # the kernel notices later; meanwhile a frame may get ENOBUFS
        seen["no carrier"] = sent(1, 60)
        subprocess.run(["ip", "link", "set", "qa", "down"], check=True)
        seen["down"] = sent(1, 60)
    subprocess.run(["ip", "link", "del", "qa"], check=True)
    return seen
