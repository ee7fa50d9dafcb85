"""A host as a process: start-up, the runner's start signal, the loop, the end.

On standard output the process prints a line {"ready": NAME} when everything is loaded and its
ports are open, and {"finished": NAME} when it has nothing more to do by itself. On standard input
it waits for a line "go ORIGIN": the time.monotonic_ns() that all hosts count from. Then it takes
lines "epoch NUMBER", in which its job goes on, and a live host "impair INTERVENTION"; it answers
each with {"told": NAME}, and the next may be sent only then. It runs until standard input ends,
which also happens when its parent process dies.
"""

import ctypes
import gc
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from gradplane._plugins import LoadError, load
from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.drivers.host import Host
from gradplane.hosts.drivers.roles import SwitchWorkerRole
from gradplane.hosts.drivers.socket_environment import SocketEnvironment
from gradplane.hosts.drivers.training_host import HostError
from gradplane.hosts.drivers.warm_up import exercise_switch_worker, warm_up
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.training.train import TrainingError

EXPECTED = (ConfigError, LoadError, TrainingError, ReduceError, HostError, OSError)
"""The errors that end a host with a message."""


class OpenHost:
    """A host whose log and sockets are open until `opened` is closed.

    name: what answers call it. shared: other hosts run in this thread. Raises what Host raises, and
    OSError for a port or the log."""

    def __init__(
        self, config: HostConfig, name: str | int, opened: ExitStack, shared: bool = False
    ) -> None:
        self.config, self._name, self._reported = config, name, False
        log = opened.enter_context(open(config.log, "w", buffering=1))  # noqa: SIM115
        self.env = opened.enter_context(SocketEnvironment(config.ip, log, shared=shared))
        self.host = Host(config, self.env)
        for port in self.host.ports:
            fast = self.host.fast_results(port)
            self.env.listen(port, self.host.receive, fast, config.job.addresses.aggregator)

    def say(self, answers: TextIO, event: str) -> None:
        """Write an answer."""
        print(json.dumps({event: self._name}), file=answers, flush=True)

    def obey(self, command: str, answers: TextIO) -> None:
        """Do what a line of commands says, after the first one, and answer it."""
        word, _, value = command.partition(" ")
        if word == "epoch":
            self.host.in_epoch(int(value))
        else:
            self.host.impair(Intervention.from_json(value))
        self.say(answers, "told")

    def report(self, answers: TextIO) -> None:
        """Say once that the host has finished."""
        if self.host.finished and not self._reported:
            self._reported = True
            self.say(answers, "finished")

    def end(self) -> None:
        """Write the last record."""
        self.host.end()
        counts = {"unsent": self.env.unsent, "too_long": self.env.too_long}
        self.env.record("ignored", host=self.config.name, **counts, **self.host.ignored)


def run(path: Path, commands: TextIO, answers: TextIO) -> None:
    """Run the host that the file at `path` describes, to the end of `commands`.

    Raises ConfigError, LoadError, OSError (a port or the log) before "ready", and what Host raises.
    """
    keep_memory()
    interrupt_nobody()
    config = HostConfig.from_json(path.read_text())
    with ExitStack() as opened:
        host = OpenHost(config, config.name, opened)
        load_kernels(config)
        exempt_loaded_objects()
        host.say(answers, "ready")
        if (origin := _origin(commands.readline())) is not None:
            host.env.origin = origin
            _loop(host, commands, answers)


def load_kernels(config: HostConfig) -> None:
    """Load the compiled kernels that the host's role uses. Raises what Host raises for them."""
    if config.flows:
        return
    warm_up(config.job)
    role = load("role", config.role)
    if isinstance(role, type) and issubclass(role, SwitchWorkerRole):
        exercise_switch_worker(config.job)


def _loop(own: OpenHost, commands: TextIO, answers: TextIO) -> None:
    running = True

    def obey() -> None:
        nonlocal running
        line = commands.readline()
        running = bool(line)
        if running:
            own.obey(line, answers)

    own.env.watch(commands, obey)
    own.host.start()
    while running:
        own.report(answers)
        own.env.step()
    own.end()


def _origin(line: str) -> int | None:
    """Return the time in a "go" line, or None at the end of input."""
    if not line:
        return None
    words = line.split()
    if len(words) != 2 or words[0] != "go" or not words[1].isdigit():
        raise ConfigError(f"expected a line 'go ORIGIN' with a time in ns, got {line!r}")
    return int(words[1])


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h
_KEPT = 1 << 30  # bytes of free memory


def keep_memory() -> None:
    """Keep freed memory for the next array, where the C library is glibc: also that of large ones,
    which would be mapped each by itself, and whose pages the kernel would clear each time."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT)
        set_option(_MMAP_MAX, 0)


def interrupt_nobody() -> None:
    """Let a datagram that arrives wait while the switch or another host computes on the processor:
    more of them are handled at once then. A policy that the user chose stays."""
    if os.sched_getscheduler(0) == os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def exempt_loaded_objects() -> None:
    """Exempt all objects so far, most of them of libraries, from Python's garbage collection."""
    gc.collect()
    gc.freeze()
