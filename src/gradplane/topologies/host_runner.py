"""A network whose hosts are processes, on this machine or on others: handshake, log records, end.

hosts.drivers.host_process describes the handshake.
"""

from __future__ import annotations

import dataclasses
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from gradplane.hosts.config import HostConfig
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.topologies.child_process import PYTHON, Process, Start
from gradplane.topologies.description import Topology
from gradplane.topologies.network import (
    AskedFor,
    OnRecord,
    Record,
    Restarts,
    SwitchRestart,
    check_hosts,
)
from gradplane.topologies.topology_errors import NetworkError

_POLL = 0.02  # seconds between reads of the hosts' logs


class StartedHost(Protocol):
    """The process of a host at its place. Methods raise NetworkError where it has failed."""

    @property
    def ended(self) -> bool:
        """Whether it has ended; what it logged is complete then."""

    def send(self, line: str) -> None:
        """Write a line to its standard input."""

    def answers(self) -> list[dict[str, Any]]:
        """Return its answers since the last call."""

    def lines(self) -> list[str]:
        """Return the lines of its log since the last call."""

    def check(self) -> None:
        """Raise NetworkError, with its last messages, if it has ended."""

    def wait_for(self, key: str) -> dict[str, Any]:
        """Return the first answer with that key, however long it takes."""

    def end(self) -> None:
        """Close its standard input and wait until it ends."""

    def close(self) -> None:
        """Ask it to end, then kill it."""


class Place(Protocol):
    """Where the processes of a host run."""

    @property
    def clock_ahead(self) -> int:
        """The ns by which time.monotonic_ns() there is ahead of it here."""

    def begin(self, name: str, config: HostConfig) -> StartedHost:
        """Start a process for the configuration. name: for messages."""


class LoggedProcess(Process):
    """The process of a host on this machine. folder: takes its configuration and log."""

    def __init__(self, name: str, config: HostConfig, folder: Path, start: Start) -> None:
        role = "server" if config.worker is None else "worker"
        if config.flows:
            role = "traffic"
        file = folder / f"{config.name}-{config.job.number}-{role}-{config.joins}"
        log, path = file.with_suffix(".jsonl"), file.with_suffix(".json")
        path.write_text(dataclasses.replace(config, log=str(log)).to_json())
        self._tail = LogTail(log)
        super().__init__(f"host {name}", [*PYTHON, "gradplane.hosts", str(path)], start)

    def lines(self) -> list[str]:
        """Return the lines of its log since the last call."""
        return self._tail.lines()

    def close(self) -> None:
        """Ask it to end, then kill it."""
        super().close()
        self._tail.close()


@dataclasses.dataclass(frozen=True)
class LocalPlace:
    """A host of this machine. start: starts a process there."""

    folder: Path
    start: Start
    clock_ahead: int = 0

    def begin(self, name: str, config: HostConfig) -> LoggedProcess:
        """See Place."""
        return LoggedProcess(name, config, self.folder, self.start)


class HostProcess:
    """The process of one HostConfig.

    A process that crashes, as the schedule of its job says, is followed by another. A context
    manager: ends the process.
    """

    def __init__(self, config: HostConfig, place: Place) -> None:
        self.name = f"{config.name} (job {config.job.number})"
        self.host, self.job = config.name, config.job.number
        self.finished = False
        self._config, self._place = config, place
        self._origin = 0
        self._back: int | None = None  # the round that it is back in, once it has crashed
        self._asked: deque[str] = deque()  # lines for it
        self._telling = False  # it has not answered yet
        self._process = place.begin(self.name, config)

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def wait_ready(self) -> None:
        """Wait until it is loaded and listens. Raises NetworkError where it fails."""
        self._process.wait_for("ready")

    def go(self, origin: int) -> None:
        """Let it start; all hosts count time from `origin`, a value of time.monotonic_ns()."""
        self._origin = origin + self._place.clock_ahead
        self._process.send(f"go {self._origin}")

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
        self.read(on_record)
        self._send_asked()
        if ended and self._back is None:
            self._process.check()
        elif ended:
            self._restart()

    def read(self, on_record: OnRecord) -> None:
        """Pass on its new log records."""
        for line in self._process.lines():
            record: Record = json.loads(line)
            if record["kind"] == "crash":
                self._back = record["back"]
            on_record(record)

    def _restart(self) -> None:
        """Start the next life of a worker, whose process has killed itself."""
        assert self._back is not None
        self._process.close()
        self._config = dataclasses.replace(self._config, joins=self._back)
        self._back = None
        self._telling = True  # until it is ready
        self._process = self._place.begin(self.name, self._config)

    def end(self, on_record: OnRecord) -> None:
        """Let it end and pass on the remaining records. Raises NetworkError if it fails."""
        self._process.end()
        self.read(on_record)


class LogTail:
    """A reader of a file that another process writes line by line."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._part = b""

    def lines(self) -> list[str]:
        """Return the new complete lines."""
        *lines, self._part = (self._part + self._file.read()).split(b"\n")
        return [line.decode() for line in lines]

    def close(self) -> None:
        self._file.close()


Places = Callable[[HostConfig], Place]
"""The place of each host."""


class ProcessNetwork(ABC):
    """The part of a `Network` that starts and follows its hosts' processes."""

    topology: Topology

    @abstractmethod
    def _places(self, hosts: Sequence[HostConfig]) -> AbstractContextManager[Places]:
        """Return the hosts' places for some processes, which end before it does."""

    def _fetch(self) -> None:  # noqa: B027 - most networks have nothing to do
        """Bring the news of processes that are elsewhere."""

    @abstractmethod
    def _check(self) -> None:
        """Raise NetworkError if a switch has failed."""

    @abstractmethod
    def _restart(self, planned: SwitchRestart) -> None:
        """Let a switch lose its state. Raises NetworkError where that is not possible."""

    def _returned(self) -> Sequence[str]:
        """Return the switches that have lost their state and are there again since the last call.

        Raises NetworkError where one stays away."""
        return ()

    def about(self) -> dict[str, Any]:
        """See Network."""
        return {}

    def run(
        self,
        hosts: Sequence[HostConfig],
        on_record: OnRecord,
        deadline: float | None = None,
        asked: AskedFor | None = None,
        restarts: Restarts | None = None,
    ) -> None:
        """See Network; the deadline is in seconds of the wall clock, and a switch is down for as
        long as its process takes to start."""
        with self._started(hosts) as processes:
            try:
                self._follow(processes, on_record, deadline, asked, restarts)
            except NetworkError:
                for process in processes:  # the records that have come meanwhile
                    with suppress(NetworkError):
                        process.read(on_record)
                raise
            for process in processes:
                process.end(on_record)

    @contextmanager
    def beside(
        self, hosts: Sequence[HostConfig], on_record: OnRecord
    ) -> Iterator[Callable[[], None]]:
        """Run hosts that have no end of their own, such as servers, until the block ends.

        Yields a function that passes on their new records, and raises NetworkError if one of them,
        or a switch, has failed."""
        with self._started(hosts) as processes:
            yield lambda: self._poll(processes, on_record)
            for process in processes:
                process.end(on_record)

    @contextmanager
    def _started(self, hosts: Sequence[HostConfig]) -> Iterator[list[HostProcess]]:
        """Start the hosts' processes, which count time from the same moment."""
        check_hosts(self.topology, hosts)
        with self._places(hosts) as place, ExitStack() as running:
            processes = []
            for config in hosts:
                processes.append(running.enter_context(HostProcess(config, place(config))))
            for process in processes:
                process.wait_ready()
            origin = time.monotonic_ns()
            for process in processes:
                process.go(origin)
            yield processes

    def _follow(
        self,
        processes: Sequence[HostProcess],
        on_record: OnRecord,
        deadline: float | None,
        asked: AskedFor | None,
        restarts: Restarts | None,
    ) -> None:
        """Follow the hosts until all have finished."""
        begun = time.monotonic()
        end = None if deadline is None else begun + deadline
        planned = sorted(restarts.planned if restarts else (), key=lambda restart: restart.at)
        while not all(process.finished for process in processes):
            time.sleep(_POLL)
            for intervention in asked() if asked else ():
                for process in processes:
                    if process.host == intervention.link:
                        process.impair(intervention)
            while planned and time.monotonic() - begun >= planned[0].at / 1e9:
                assert restarts is not None
                self._restart(planned[0])
                _tell(processes, restarts.restore(planned.pop(0).switch))
            for switch in self._returned():
                if restarts is None:
                    raise NetworkError(
                        f"switch {switch} was away and has lost its state, and a job does not go"
                        " on without"
                    )
                _tell(processes, restarts.restore(switch))
            self._poll(processes, on_record)
            if end is not None and time.monotonic() > end:
                names = "; ".join(p.name for p in processes if not p.finished)
                raise NetworkError(
                    f"the deadline has passed at {deadline:g} s, not finished: {names}"
                )

    def _poll(self, processes: Sequence[HostProcess], on_record: OnRecord) -> None:
        self._fetch()
        for process in processes:
            process.poll(on_record)
        self._check()


def _tell(processes: Sequence[HostProcess], epochs: Mapping[int, int]) -> None:
    """Tell the jobs' hosts the epochs, by job, in which they go on."""
    for process in processes:
        if process.job in epochs:
            process.in_epoch(epochs[process.job])
