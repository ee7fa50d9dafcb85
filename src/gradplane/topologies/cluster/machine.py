"""The part of a run that is on one machine: its network interface, and its hosts' processes.

A `Machine` is an actor of Dask: it is made in a worker's process, and the run calls its methods.
None of them waits for long, since a worker has one thread for its actors.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gradplane._version import __version__
from gradplane.hosts.config import HostConfig
from gradplane.switch.ports import offload
from gradplane.topologies.host_runner import LoggedProcess
from gradplane.topologies.topology_errors import NetworkError


class News(NamedTuple):
    """The news of a process. `lines` are from its log, and complete once there is a status."""

    answers: list[dict[str, Any]]
    lines: list[str]
    status: int | None
    last_words: str
    processor_time: float


class Clock(NamedTuple):
    """The clocks of a machine: time.monotonic_ns() and time.time_ns()."""

    monotonic: int
    wall: int


class Traffic(NamedTuple):
    """The traffic of an interface since it was made."""

    sent_packets: int
    sent_bytes: int
    sent_dropped: int
    received_packets: int
    received_bytes: int


def version() -> str:
    """Return the version of gradplane."""
    return __version__


class Machine:
    """A machine whose network interface stands for a host's. Methods raise NetworkError.

    When it is thrown away, its processes are ended and the interface is as before. Its folder, with
    the processes' logs, goes after `close`; it stays where the run has left without that.
    """

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._folder = tempfile.mkdtemp(prefix="gradplane-host-")
        self._processes: dict[int, LoggedProcess] = {}
        self._undo: list[list[str]] = []
        self._closed = weakref.finalize(self, _leave, self._processes, self._undo)

    def about(self) -> tuple[str, str]:
        """Return the folder, and the interface's MAC address."""
        return self._folder, str(self._shown("link")["address"])

    def clock(self) -> Clock:
        """Return the time now."""
        return Clock(time.monotonic_ns(), time.time_ns())

    def set_up(self, address: str, neighbours: Mapping[str, str]) -> None:
        """Give the interface a host's address, such as 10.0.0.1/24, and the MAC addresses of all
        others.

        What is there already is left as it is, so that a worker without the right to change it can
        do with what an administrator has set."""
        link = self._shown("link", "-d")
        if "UP" not in link["flags"]:
            self._ip("link", "set", self._interface, "up")
            self._undo.append(["ip", "link", "set", self._interface, "down"])
        if link.get("linkinfo", {}).get("info_kind") == "veth":
            offload.switch_off(self._interface)  # there is no wire for which it would be undone
        addresses = {one["local"] for one in self._shown("address")["addr_info"]}
        if address.partition("/")[0] not in addresses:
            self._add("address", address)
        known = {
            one["dst"]: one.get("lladdr")
            for one in self._asked("neighbour", "show", "dev", self._interface, "nud", "permanent")
        }
        for other, mac in neighbours.items():
            if known.get(other) != mac:
                self._add("neighbour", other, "lladdr", mac, "nud", "permanent")

    def _add(self, kind: str, *words: str) -> None:
        """Set an address of the interface, until it is left."""
        dev = "dev", self._interface
        self._ip(kind, "replace", *words, *dev)
        self._undo.append(["ip", kind, "delete", words[0], *dev])

    def _ip(self, *words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NetworkError(
                f"its Dask worker may not set up {self._interface}"
                f" ({done.stderr.strip() or done.returncode}): start the worker with the capability"
                f" NET_ADMIN, or run there as root: ip {' '.join(words)}"
            )

    def _shown(self, kind: str, *options: str) -> dict[str, Any]:
        """Return what `ip` says about the interface."""
        try:
            found: dict[str, Any] = self._asked(*options, kind, "show", "dev", self._interface)[0]
        except subprocess.CalledProcessError:
            there = ", ".join(one["ifname"] for one in self._asked("link", "show"))
            raise NetworkError(f"it has no interface {self._interface}, but {there}") from None
        return found

    def _asked(self, *words: str) -> list[dict[str, Any]]:
        done = subprocess.run(["ip", "-j", *words], capture_output=True, check=True)
        found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
        return found

    def traffic(self) -> Traffic:
        """Return what the interface has sent and received."""
        stats = self._shown("link", "-s")["stats64"]
        sent, received = stats["tx"], stats["rx"]
        return Traffic(
            *(sent["packets"], sent["bytes"], sent["dropped"]),
            *(received["packets"], received["bytes"]),
        )

    def begin(self, number: int, name: str, config: str) -> None:
        """Start a process of that number, for a HostConfig as JSON."""
        host = HostConfig.from_json(config)
        folder = Path(self._folder)
        self._processes[number] = LoggedProcess(name, host, folder, subprocess.Popen)

    def exchange(self, commands: Mapping[int, Sequence[str | None]]) -> dict[int, News]:
        """Give processes lines for their standard inputs, None for its end; return all news."""
        for number, lines in commands.items():
            process = self._processes[number]
            for line in lines:
                if line is None:
                    process.close_input()
                else:
                    with suppress(NetworkError):  # its status says so
                        process.send(line)
        return {number: _news(process) for number, process in self._processes.items()}

    def close(self, number: int) -> None:
        """End a process."""
        self._processes.pop(number).close()

    def leave(self) -> None:
        """End all, and leave nothing on this machine."""
        self._closed()
        shutil.rmtree(self._folder, ignore_errors=True)


def _news(process: LoggedProcess) -> News:
    status = process.status  # before its log is read, which is then complete
    words = "" if status is None else process.last_words()
    return News(*(process.answers(), process.lines(), status, words), process.processor_time())


def _leave(processes: dict[int, LoggedProcess], undo: list[list[str]]) -> None:
    for process in processes.values():
        process.close()
    processes.clear()
    for command in reversed(undo):
        subprocess.run(command, capture_output=True, check=False)
    undo.clear()
