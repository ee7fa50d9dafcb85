"""Several hosts in one process, each with its sockets in a network namespace of its own.

What costs most of a host with little to do is to be a process: its memory, and a processor's time
to come back to it. Arguments are CONFIG.json@PID: the host's configuration, and a process in its
network namespace. Lines of commands begin with the host's place among the arguments, as do the
values of answers; for the rest both are those of `host_process`.
"""

import contextlib
import ctypes
import json
import os
import select
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.host import Host
from gradplane.hosts.drivers.host_process import (
    exempt_loaded_objects,
    follow,
    keep_memory,
    load_kernels,
)
from gradplane.hosts.drivers.ordinary_exchange import NEVER
from gradplane.hosts.drivers.socket_environment import SocketEnvironment

_NEW_NET = 0x40000000  # linux/sched.h
_LONGEST = 1 << 16  # bytes that are read at once
_libc = ctypes.CDLL(None, use_errno=True)


class _Member:
    """A host of the group, from its sockets on."""

    def __init__(self, place: int, argument: str, opened: contextlib.ExitStack) -> None:
        path, _, pid = argument.rpartition("@")
        self.place, self.reported = place, False
        self.config = HostConfig.from_json(Path(path).read_text())
        _enter(int(pid))
        log = opened.enter_context(open(self.config.log, "w", buffering=1))  # noqa: SIM115
        self.env = opened.enter_context(SocketEnvironment(self.config.ip, log, shared=True))
        self.host = Host(self.config, self.env)
        for port in self.host.ports:
            fast, peer = self.host.fast_results(port), self.config.job.addresses.aggregator
            self.env.listen(port, self.host.receive, fast, peer)

    def end(self) -> None:
        """Write the last record."""
        self.host.end()
        counts = {"unsent": self.env.unsent, "too_long": self.env.too_long}
        self.env.record("ignored", host=self.config.name, **counts, **self.host.ignored)


def _enter(pid: int) -> None:
    """Let this thread's next sockets be in the network namespace of a process."""
    with open(f"/proc/{pid}/ns/net") as file:
        if _libc.setns(file.fileno(), _NEW_NET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), file.name)


def run(arguments: Sequence[str], commands: int, answers: TextIO) -> None:
    """Run the hosts to the end of `commands`, a descriptor. Raises as `host_process.run` does."""
    keep_memory()
    with contextlib.ExitStack() as opened:
        members = [_Member(place, each, opened) for place, each in enumerate(arguments)]
        load_kernels(members[0].config)
        exempt_loaded_objects()
        for member in members:
            _say(answers, "ready", member)
        if not (line := os.read(commands, _LONGEST)):
            return
        for member in members:
            member.env.origin = int(line.split()[-1])
        _loop(members, commands, answers)


def _loop(members: Sequence[_Member], commands: int, answers: TextIO) -> None:
    poll, by_file = select.epoll(), {member.env.fileno(): member for member in members}
    part = b""
    for file in (commands, *by_file):
        poll.register(file, select.EPOLLIN)
    for member in members:
        member.host.start()
        _report(answers, member)
    while True:
        ready = [file for file, _ in poll.poll(_patience(members))]
        if commands in ready:
            if not (data := os.read(commands, _LONGEST)):
                break
            *lines, part = (part + data).split(b"\n")
            for line in lines:
                place, _, command = line.decode().partition(" ")
                follow(members[int(place)].host, command)
                _say(answers, "told", members[int(place)])
        due = [member for member in members if member.env.due]
        for member in dict.fromkeys([*(by_file[f] for f in ready if f in by_file), *due]):
            member.env.step(wait=False)
            _report(answers, member)
    for member in members:
        member.end()


def _patience(members: Sequence[_Member]) -> float:
    """Return the seconds until the next timer, or -1."""
    until = [member.env.until for member in members if member.env.until != NEVER]
    return max(0, min(until) - members[0].env.now()) / 1e9 if until else -1


def _report(answers: TextIO, member: _Member) -> None:
    if member.host.finished and not member.reported:
        member.reported = True
        _say(answers, "finished", member)


def _say(answers: TextIO, event: str, member: _Member) -> None:
    print(json.dumps({event: member.place}), file=answers, flush=True)
