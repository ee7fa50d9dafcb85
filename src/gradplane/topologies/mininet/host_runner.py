"""The process of a host in a Mininet host: handshake, log records, end.

All are forks of one `python -m gradplane.hosts --forks`, which hosts.drivers.host_forks describes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from gradplane.hosts.config import HostConfig
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.topologies.mininet.child_process import Process, Start
from gradplane.topologies.network import OnRecord, Record


class HostProcess:
    """The process of one HostConfig; hosts.drivers.host_process describes the handshake.

    A process that crashes, as the schedule of its job says, is followed by another. folder takes
    configurations and logs. A context manager: ends the process.
    """

    def __init__(self, config: HostConfig, folder: Path, start: Start) -> None:
        self.name = f"{config.name} (job {config.job.number})"
        self.host, self.job = config.name, config.job.number
        self.finished = False
        self._config, self._folder, self._start_fork = config, folder, start
        self._origin = 0
        self._back: int | None = None  # the round that it is back in, once it has crashed
        self._asked: deque[str] = deque()  # lines for it
        self._telling = False  # it has not answered yet
        self._start()

    def _start(self) -> None:
        config = self._config
        role = "server" if config.worker is None else "worker"
        if config.flows:
            role = "traffic"
        file = self._folder / f"{config.name}-{config.job.number}-{role}-{config.joins}"
        log, path = file.with_suffix(".jsonl"), file.with_suffix(".json")
        path.write_text(dataclasses.replace(config, log=str(log)).to_json())
        self._records = _Tail(log)
        self._process = Process(f"host {self.name}", [str(path)], self._start_fork)

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        self._records.close()

    def wait_ready(self) -> None:
        """Wait until it is loaded and listens. Raises NetworkError where it fails."""
        self._process.wait_for("ready")

    def go(self, origin: int) -> None:
        """Let it start; all hosts count time from `origin`, a value of time.monotonic_ns()."""
        self._origin = origin
        self._process.send(f"go {origin}")

    def impair(self, intervention: Intervention) -> None:
        """Have it impair its link, once it runs and has begun with those before."""
        self._asked.append(f"impair {intervention.to_json()}")

    def in_epoch(self, epoch: int) -> None:
        """Have it go on in an epoch of its job."""
        self._asked.append(f"epoch {epoch}")

    def _send_asked(self) -> None:
        if self._asked and not self._telling and not self._process.ended:
            self._process.send(self._asked.popleft())
            self._telling = True

    def poll(self, on_record: OnRecord) -> None:
        """Pass on its new log records and read its answers.

        Raises NetworkError if it has ended without a crash of the schedule."""
        ended = self._process.ended  # before its log is read, which is then complete
        for answer in self._process.answers():
            self.finished |= "finished" in answer
            self._telling &= "told" not in answer
            if "ready" in answer:  # of a later life: the first one's is awaited
                self._process.send(f"go {self._origin}")
                self._telling = False
        self._read(on_record)
        self._send_asked()
        if ended and self._back is None:
            self._process.check()
        elif ended:
            self._restart()

    def _read(self, on_record: OnRecord) -> None:
        def take(record: Record) -> None:
            if record["kind"] == "crash":
                self._back = record["back"]
            on_record(record)

        self._records.read(take)

    def _restart(self) -> None:
        """Start the next life of a worker, whose process has killed itself."""
        assert self._back is not None
        self._process.close()
        self._records.close()
        self._config = dataclasses.replace(self._config, joins=self._back)
        self._back = None
        self._telling = True  # until it is ready
        self._start()

    def end(self, on_record: OnRecord) -> None:
        """Let it end and pass on the remaining records. Raises NetworkError if it fails."""
        self._process.end()
        self._read(on_record)


class Forks:
    """The process whose forks are the hosts of a network; it loads what they share once.

    A context manager: ends the process. The hosts end by themselves.
    """

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-P", "-m", "gradplane.hosts", "--forks", str(theirs.fileno())]
            options: dict[str, Any] = {"pass_fds": [theirs.fileno()], "start_new_session": True}
            self._process = Process("the process that starts the hosts", argv, **options)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._process.close()

    def start(
        self, namespaces: int, argv: Sequence[str], *, stdin: int, stdout: int, stderr: IO[bytes]
    ) -> Fork:
        """Start the host of a configuration, argv, in the namespaces of a process.

        stdin and stdout are subprocess.PIPE. Raises NetworkError where the process has ended."""
        (commands, to_host), (from_host, answers), (status, told) = (os.pipe() for _ in range(3))
        request = {"config": argv[0], "namespaces": namespaces}
        given = commands, answers, stderr.fileno(), told
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], given)
        except BrokenPipeError:
            self._process.wait_for("pid")  # raises what it said at its end
        for descriptor in (commands, answers, told):
            os.close(descriptor)
        pid = self._process.wait_for("pid")["pid"]
        return Fork(pid, open(to_host, "wb"), open(from_host, "rb"), open(status, "rb"))


class Fork:
    """A host's process, child of another, as child_process.Running."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], status: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._status = status
        self._returned: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended. Raises subprocess.TimeoutExpired."""
        if self._returned is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"host {self.pid}", timeout or 0)
            # Nothing was written if the process that forked it was killed.
            self._returned = int(self._status.read() or -signal.SIGKILL)
            self._status.close()
        return self._returned

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class _Tail:
    """A reader of a JSON-lines file that another process writes."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._part = b""

    def read(self, on_record: OnRecord) -> None:
        """Pass on each complete line."""
        *lines, self._part = (self._part + self._file.read()).split(b"\n")
        for line in lines:
            on_record(json.loads(line))

    def close(self) -> None:
        self._file.close()
