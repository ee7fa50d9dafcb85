"""A process that several hosts of this machine share: see hosts/drivers/host_group.py."""

from __future__ import annotations

import dataclasses
from collections import deque
from pathlib import Path
from typing import Any

from gradplane.hosts.config import HostConfig
from gradplane.topologies.child_process import PYTHON, Process, Start, wait_for
from gradplane.topologies.host_runner import LogTail, StartedHost


class SharedProcess:
    """The process of `count` hosts, which starts when all of them have begun.

    folder: takes their configurations and logs."""

    def __init__(self, count: int, folder: Path, start: Start) -> None:
        self._count, self._folder, self._start = count, folder, start
        self._arguments: list[str] = []
        self._answers: list[deque[dict[str, Any]]] = []
        self._going = 0
        self.process: Process | None = None

    def begin(self, config: HostConfig, pid: int) -> StartedHost:
        """Let a host begin, with its sockets in the network namespace of a process."""
        file = self._folder / f"{config.name}-{config.job.number}-shared"
        log, path = file.with_suffix(".jsonl"), file.with_suffix(".json")
        path.write_text(dataclasses.replace(config, log=str(log)).to_json())
        place, tail = len(self._arguments), LogTail(log)
        self._arguments.append(f"{path}@{pid}")
        self._answers.append(deque())
        if len(self._arguments) == self._count:
            argv = [*PYTHON, "gradplane.hosts", *self._arguments]
            names = f"{config.name} and {self._count - 1} hosts beside it"
            self.process = Process(f"hosts {names}", argv, self._start)
        return _Member(config.name, self, place, tail)

    @property
    def started(self) -> Process:
        """The process."""
        assert self.process is not None, "not all hosts have begun"
        return self.process

    def send(self, place: int, line: str) -> None:
        """Write a line for one host; they go together."""
        if line.startswith("go "):
            self._going += 1
            if self._going == self._count:
                self.started.send(line)
        else:
            self.started.send(f"{place} {line}")

    def answers(self, place: int) -> list[dict[str, Any]]:
        """Return the answers of one host since the last call."""
        for answer in self.started.answers():
            for number in answer.values():
                self._answers[number].append(answer)
        found = [*self._answers[place]]
        self._answers[place].clear()
        return found


@dataclasses.dataclass(frozen=True)
class SharedPlace:
    """The place of a host in a shared process; pid: of a process in its network namespace."""

    process: SharedProcess
    pid: int
    clock_ahead: int = 0

    def begin(self, name: str, config: HostConfig) -> StartedHost:
        """See Place."""
        return self.process.begin(config, self.pid)


class _Member:
    """A host in a shared process, as StartedHost."""

    def __init__(self, name: str, shared: SharedProcess, place: int, tail: LogTail) -> None:
        self.name = f"host {name}"
        self._shared, self._place, self._tail = shared, place, tail

    @property
    def status(self) -> int | None:
        return self._shared.started.status

    @property
    def ended(self) -> bool:
        return self._shared.started.ended

    def send(self, line: str) -> None:
        self._shared.send(self._place, line)

    def answers(self) -> list[dict[str, Any]]:
        return self._shared.answers(self._place)

    def lines(self) -> list[str]:
        return self._tail.lines()

    def check(self) -> None:
        self._shared.started.check()

    def last_words(self) -> str:
        return self._shared.started.last_words()

    def processor_time(self) -> float:
        return self._shared.started.processor_time()

    def wait_for(self, key: str) -> dict[str, Any]:
        return wait_for(self, key)

    def end(self) -> None:
        self._shared.started.end()

    def close(self) -> None:
        if self._shared.process is not None:
            self._shared.process.close()
        self._tail.close()
