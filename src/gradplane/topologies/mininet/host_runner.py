"""The process of a host in a Mininet host: handshake, log records, end."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from pathlib import Path

from gradplane.hosts.config import HostConfig
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.topologies.mininet.child_process import Process, Start
from gradplane.topologies.mininet.forks import PYTHON
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
        self._process = Process(
            f"host {self.name}", [*PYTHON, "gradplane.hosts", str(path)], self._start_fork
        )

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
