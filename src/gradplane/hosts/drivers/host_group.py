"""Several hosts in one process, each with its sockets in a network namespace of its own.

What costs most of a host with little to do is to be a process: its memory, and a processor's time
to come back to it. Arguments are CONFIG.json@PID: the host's configuration, and a process in its
network namespace. Lines of commands begin with the host's place among the arguments, as do the
values of answers; for the rest both are those of `host_process`.
"""

import ctypes
import os
import select
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.host_process import (
    OpenHost,
    exempt_loaded_objects,
    interrupt_nobody,
    keep_memory,
    load_kernels,
)
from gradplane.hosts.drivers.ordinary_exchange import NEVER

_NEW_NET = 0x40000000  # linux/sched.h
_LONGEST = 1 << 16  # bytes that are read at once
_libc = ctypes.CDLL(None, use_errno=True)


def _member(place: int, argument: str, opened: ExitStack) -> OpenHost:
    path, _, pid = argument.rpartition("@")
    config = HostConfig.from_json(Path(path).read_text())
    _enter(int(pid))
    return OpenHost(config, place, opened, shared=True)


def _enter(pid: int) -> None:
    """Let this thread's next sockets be in the network namespace of a process."""
    with open(f"/proc/{pid}/ns/net") as file:
        if _libc.setns(file.fileno(), _NEW_NET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), file.name)


def run(arguments: Sequence[str], commands: int, answers: TextIO) -> None:
    """Run the hosts to the end of `commands`, a descriptor. Raises as `host_process.run` does."""
    keep_memory()
    interrupt_nobody()
    with ExitStack() as opened:
        members = [_member(place, each, opened) for place, each in enumerate(arguments)]
        load_kernels(members[0].config)
        exempt_loaded_objects()
        for member in members:
            member.say(answers, "ready")
        if not (line := os.read(commands, _LONGEST)):
            return
        for member in members:
            member.env.origin = int(line.split()[-1])
        _loop(members, commands, answers)


def _loop(members: Sequence[OpenHost], commands: int, answers: TextIO) -> None:
    poll, by_file = select.epoll(), {member.env.fileno(): member for member in members}
    part = b""
    for file in (commands, *by_file):
        poll.register(file, select.EPOLLIN)
    for member in members:
        member.host.start()
        member.report(answers)
    while True:
        ready = [file for file, _ in poll.poll(_patience(members))]
        if commands in ready:
            if not (data := os.read(commands, _LONGEST)):
                break
            *lines, part = (part + data).split(b"\n")
            for line in lines:
                place, _, command = line.decode().partition(" ")
                members[int(place)].obey(command, answers)
        due = [member for member in members if member.env.due]
        for member in dict.fromkeys([*(by_file[f] for f in ready if f in by_file), *due]):
            member.env.step(wait=False)
            member.report(answers)
    for member in members:
        member.end()


def _patience(members: Sequence[OpenHost]) -> float:
    """Return the seconds until the next timer, or -1."""
    until = [member.env.until for member in members if member.env.until != NEVER]
    return max(0, min(until) - members[0].env.now()) / 1e9 if until else -1
