"""Measure TCP through the switch, BMv2 and a Linux bridge: python benchmarks/iperf.py.

iperf3 sends from one network namespace to another for some seconds, over two veth pairs without
offloads and what connects them, in alternating runs. router.p4 does what the program of the P4
tutorials' first exercise does (a longest prefix match, MAC addresses, time to live, checksum), and
verifies the checksum besides. All processes share the machine's cores. Everything is inside network
namespaces, which needs root or user namespaces.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from statistics import median

import bmv2
import switch_ports
from switch_memory import ROUTER

from gradplane.controller import targets

RUNS, SECONDS = 3, 4
PORT = f":{5201:04X} "  # iperf3's own, as in /proc/net/tcp6
QUIET = subprocess.DEVNULL
MAC = 2 << 40  # and the number of the host, at its port
ROUTES = [switch_ports._route(f"10.0.{i}.0/24", MAC | i, i) for i in (1, 2)]


def main() -> None:
    if shutil.which("iperf3") is None:
        print("TCP through a router: not measured: iperf3 is not on PATH: install it")
        return
    if "inside" not in sys.argv:
        command = [*switch_ports._isolated(), sys.executable, __file__, "inside"]
        sys.exit(subprocess.call(command))
    logging.disable(logging.WARNING)  # finsy's, about gNMI
    ways: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "embedded": embedded, "Linux bridge": bridge,
    }  # fmt: skip
    missing = targets.get("bmv2").missing()
    if missing is None:
        ways["simple_switch_grpc"] = simple_switch
    else:
        print(f"BMv2: not measured: {missing}")
    switch_ports._links()
    with ExitStack() as stack:
        hosts = [stack.enter_context(host(i)) for i in (1, 2)]
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                with way():
                    rates[name].append(transfer(*hosts))
    middle = {name: median(found) for name, found in rates.items()}
    for name, rate in middle.items():
        ratio = "" if name == "embedded" else f": embedded {middle['embedded'] / rate:.2f} times"
        print(f"TCP, {name:20}{rate / 1e6:8,.0f} Mbit/s{ratio}")


# -- the two hosts ------------------------------------------------------------------------------


@contextmanager
def host(number: int) -> Iterator[list[str]]:
    """Put h1 or h2 into a namespace of its own, 10.0.<number>.1, whose gateway has the other's MAC
    address, so that a bridge will do; give the words before a command that runs there."""
    name, ours = f"h{number}", Path("/proc/self/ns/net").readlink()
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as process:
        while (space := Path(f"/proc/{process.pid}/ns/net")).readlink() == ours:
            time.sleep(0.01)
        inside = ["nsenter", f"--net={space}"]
        try:
            switch_ports._ip(f"link set {name} netns {process.pid}")
            for words in (
                f"sysctl -q net.ipv6.conf.{name}.disable_ipv6=1",
                f"ip link set {name} address 02:00:00:00:00:0{number}",
                f"ip link set {name} up",
                f"ip address add 10.0.{number}.1/24 dev {name}",
                f"ip route add default via 10.0.{number}.254",
                f"ip neigh add 10.0.{number}.254 lladdr 02:00:00:00:00:0{3 - number} dev {name}",
            ):
                subprocess.run([*inside, *words.split()], check=True)
            yield inside
        finally:
            process.kill()


def transfer(first: list[str], second: list[str]) -> float:
    """Return the bits a second that reached the second host from the first."""
    command = [*second, "iperf3", "--server", "--one-off"]
    with subprocess.Popen(command, stdout=QUIET) as server:
        listening = Path(f"/proc/{server.pid}/net/tcp6")
        while server.poll() is None and PORT not in listening.read_text():
            time.sleep(0.05)
        command = [*first, "iperf3", "--client", "10.0.2.1", "--time", str(SECONDS), "--json"]
        try:
            found = subprocess.check_output(command, timeout=10 * SECONDS)
        finally:
            server.kill()
    return float(json.loads(found)["end"]["sum_received"]["bits_per_second"])


# -- what connects s1 and s2 --------------------------------------------------------------------


@contextmanager
def embedded() -> Iterator[None]:
    with switch_ports.switch(ROUTER) as live:
        asyncio.run(switch_ports.install(live.address, ROUTER, ROUTES))
        yield


@contextmanager
def simple_switch() -> Iterator[None]:
    with bmv2.simple_switch():
        asyncio.run(bmv2.install(ROUTER, ROUTES))
        yield


@contextmanager
def bridge() -> Iterator[None]:
    switch_ports._ip("link add bridge type bridge")
    for name in ("s1", "s2"):
        switch_ports._ip(f"link set {name} master bridge")
    switch_ports._ip("link set bridge up")
    yield
    switch_ports._ip("link delete bridge")


if __name__ == "__main__":
    main()
