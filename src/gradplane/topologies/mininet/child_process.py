"""A child process that ends with its parent: its answers, and its last messages when it fails."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from gradplane.topologies.topology_errors import NetworkError

PATIENCE = 5.0
"""Seconds to end after SIGTERM."""

LEASH = ("setpriv", "--pdeathsig", "KILL", "--")
"""A prefix of command lines: the process is killed when its parent dies."""

Start = Callable[..., "subprocess.Popen[bytes]"]


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
    def ended(self) -> bool:
        """True once the process has ended."""
        return self._popen.poll() is not None

    def check(self) -> None:
        """Raise NetworkError, with its last messages, if it has ended."""
        status = self._popen.poll()
        if status is not None:
            raise NetworkError(f"{self.name} ended with status {status}: {self.last_words()}")

    def last_words(self, lines: int = 40) -> str:
        """Return the end of its stderr."""
        # The process shares this file's position, so it must not be moved: no seek.
        log = os.pread(self._log.fileno(), 1 << 20, 0)
        said = log.decode(errors="replace").strip().splitlines()
        return "\n".join(said[-lines:]) or "it printed nothing"

    def wait_for(self, key: str, seconds: float) -> dict[str, Any]:
        """Return the first answer with that key.

        Raises NetworkError when it ends, or takes longer.
        """
        end = time.monotonic() + seconds
        while True:
            for answer in self.answers():
                if key in answer:
                    return answer
            self.check()
            if time.monotonic() > end:
                raise NetworkError(
                    f"{self.name} is not {key} after {seconds:g} s: {self.last_words()}"
                )
            time.sleep(0.02)

    def end(self) -> None:
        """Close its stdin and wait until it ends. Raises NetworkError where it fails."""
        self._stdin.close()
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


def wait_for_port(process: Process, address: str, seconds: float) -> None:
    """Wait until HOST:PORT takes connections.

    Raises NetworkError when the process ends first, or takes longer.
    """
    host, _, port = address.rpartition(":")
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        process.check()
        if time.monotonic() > end:
            words = process.last_words()
            raise NetworkError(f"{process.name}: nothing at {address} after {seconds:g} s: {words}")
        time.sleep(0.02)
