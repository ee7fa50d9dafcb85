"""A child process that ends with its parent: its answers, and its last messages when it fails.

A start has no time limit, since a slow or busy machine takes minutes for what others do in a
second: it fails when the process ends, or when it has not worked at all for a long time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from gradplane.topologies.topology_errors import NetworkError

PATIENCE = 5.0
"""Seconds to end after SIGTERM."""

STALLED = 300.0
"""Seconds with less than WORK seconds of processor time after which a start counts as stuck."""

WORK = 1.0

FIRST_NOTE = 15.0
"""Seconds of a start after which a note says what is waited for; the next ones after twice that."""

PYTHON = (sys.executable, "-P", "-m")
"""The head of the command lines that run a module; a fork can stand for them."""

LEASH = ("setpriv", "--pdeathsig", "KILL", "--")
"""A prefix of command lines: the process is killed when its parent dies."""


class Running(Protocol):
    """The interface of a started process, a part of subprocess.Popen's."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """The end that writes to its standard input."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """The end that reads its standard output."""

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended. Raises subprocess.TimeoutExpired."""

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""


Start = Callable[..., Running]

log = logging.getLogger(__name__)


class Process:
    """A running command. It answers in lines of JSON on stdout; stderr is kept for `last_words`.

    name: for messages. start: subprocess.Popen, or a Mininet node's popen. A context manager: ends
    the process.
    """

    def __init__(
        self, name: str, argv: Sequence[str], start: Start = subprocess.Popen, **options: Any
    ) -> None:
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log}
        self._popen = start(list(argv), **pipes, **options)
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._part = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, line: str) -> None:
        """Write a line to its stdin. Raises NetworkError if it has ended."""
        try:
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            self._popen.wait()
            self.check()

    def answers(self) -> list[dict[str, Any]]:
        """Return its answers since the last call."""
        try:
            data = os.read(self._stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return []
        *lines, self._part = (self._part + data).split(b"\n")
        return [json.loads(line) for line in lines]

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._popen.poll()

    @property
    def ended(self) -> bool:
        """True once the process has ended."""
        return self.status is not None

    def check(self) -> None:
        """Raise NetworkError, with its last messages, if it has ended."""
        check_running(self)

    def last_words(self, lines: int = 40) -> str:
        """Return the end of its stderr."""
        # The process shares this file's position, so it must not be moved: no seek.
        log = os.pread(self._log.fileno(), 1 << 20, 0)
        said = log.decode(errors="replace").strip().splitlines()
        return "\n".join(said[-lines:]) or "it printed nothing"

    def wait_for(self, key: str) -> dict[str, Any]:
        """Return the first answer with that key, however slow the machine is.

        Raises NetworkError when the process ends or is stuck.
        """
        return wait_for(self, key, self._stdout)

    def processor_time(self) -> float:
        """Return the seconds of processor time that it used, with its ended children's."""
        try:
            status = Path(f"/proc/{self._popen.pid}/stat").read_text()
        except OSError:  # it has just ended
            return 0.0
        return sum(map(int, status.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")

    def close_input(self) -> None:
        """Close its stdin, so that it ends by itself."""
        self._stdin.close()

    def end(self) -> None:
        """Close its stdin and wait until it ends. Raises NetworkError where it fails."""
        self.close_input()
        if self._popen.wait() != 0:
            self.check()

    def close(self) -> None:
        """Ask it to end (stdin closed, SIGTERM), then kill it."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._popen.terminate()
        try:
            self._popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._stdout.close()
        self._log.close()


class Watched(Protocol):
    """The interface of a process that is watched, here or on another machine."""

    name: str

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""

    def answers(self) -> list[dict[str, Any]]:
        """Return its answers since the last call."""

    def check(self) -> None:
        """Raise NetworkError, with its last messages, if it has ended."""

    def last_words(self) -> str:
        """Return the end of its stderr."""

    def processor_time(self) -> float:
        """Return the seconds of processor time that it used."""


def check_running(process: Watched) -> None:
    """Raise NetworkError, with the last messages of the process, if it has ended."""
    if process.status is not None:
        raise NetworkError(
            f"{process.name} ended with status {process.status}: {process.last_words()}"
        )


def wait_for(process: Watched, key: str, *files: IO[bytes]) -> dict[str, Any]:
    """Return the first answer with that key, however slow the machine is.

    files: have data when there is an answer. Raises NetworkError when the process ends or is
    stuck."""
    waiting = _Waiting(process, f"the answer {key}")
    while True:
        for answer in process.answers():
            if key in answer:
                return answer
        waiting.go_on(*files)


def free_port() -> int:
    """Return a TCP port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def check_free(name: str, protocol: str, address: str) -> None:
    """Check that nothing listens on HOST:PORT, which a process is to take.

    Raises NetworkError if something does.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
    except OSError as error:
        raise NetworkError(
            f"{name}: its {protocol} server cannot listen on {address}: {error.strerror};"
            " end the process that listens there, or choose another port"
        ) from error


def wait_for_port(process: Process, address: str) -> None:
    """Wait until HOST:PORT takes connections, however slow the machine is.

    Raises NetworkError when the process ends first or is stuck.
    """
    host, _, port = address.rpartition(":")
    waiting = _Waiting(process, f"a server at {address}")
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        waiting.go_on()


class _Waiting:
    """A wait for what a starting process is to do; from time to time a note says so."""

    def __init__(self, process: Watched, awaited: str) -> None:
        self._process, self._awaited = process, awaited
        self._begun = self._worked = time.monotonic()
        self._note, self._time = FIRST_NOTE, process.processor_time()

    def go_on(self, *files: IO[bytes]) -> None:
        """Sleep a moment, or until a file has data.

        Raises NetworkError when the process has ended or is stuck.
        """
        self._process.check()
        now, used = time.monotonic(), self._process.processor_time()
        if used >= self._time + WORK:
            self._time, self._worked = used, now
        if now - self._worked > STALLED:
            raise NetworkError(
                f"{self._process.name}: no {self._awaited.partition(' ')[2]} after"
                f" {now - self._begun:.0f} s, and the process has been idle for {STALLED:g} s:"
                f" {self._process.last_words()}"
            )
        if now - self._begun > self._note:
            log.warning(
                "%s: waiting for %s for %.0f s; it is still at work (Ctrl-C ends it)",
                self._process.name, self._awaited, now - self._begun,
            )  # fmt: skip
            self._note *= 2
        select.select(files, [], [], 0.02)
