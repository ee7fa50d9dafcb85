"""The process `python -m gradplane.hosts` in a Mininet host: handshake, log records, end."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from gradplane.hosts.config import HostConfig
from gradplane.topologies.mininet.child_process import Process, Start
from gradplane.topologies.network import OnRecord

START_TIME = 300.0
"""Seconds in which the program must load."""


class HostProcess:
    """The process of one HostConfig; hosts.drivers.host_process describes the handshake.

    folder takes its configuration and log. A context manager: ends the process.
    """

    def __init__(self, config: HostConfig, folder: Path, popen: Start) -> None:
        self.name = f"{config.name} (job {config.job.number})"
        self.finished = False
        role = "server" if config.worker is None else "worker"
        if config.flows:
            role = "traffic"
        file = folder / f"{config.name}-{config.job.number}-{role}"
        log, path = file.with_suffix(".jsonl"), file.with_suffix(".json")
        path.write_text(dataclasses.replace(config, log=str(log)).to_json())
        self._records = _Tail(log)
        argv = [sys.executable, "-m", "gradplane.hosts", str(path)]
        self._process = Process(f"host {self.name}", argv, popen)

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        self._records.close()

    def wait_ready(self) -> None:
        """Wait until it is loaded and listens. Raises NetworkError where it fails."""
        self._process.wait_for("ready", START_TIME)

    def go(self, origin: int) -> None:
        """Let it start; all hosts count time from `origin`, a value of time.monotonic_ns()."""
        self._process.send(f"go {origin}")

    def poll(self, on_record: OnRecord) -> None:
        """Pass on its new log records and read its answers. Raises NetworkError if it has ended."""
        self.finished |= any("finished" in answer for answer in self._process.answers())
        self._records.read(on_record)
        self._process.check()

    def end(self, on_record: OnRecord) -> None:
        """Let it end and pass on the remaining records. Raises NetworkError if it fails."""
        self._process.end()
        self._records.read(on_record)


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
