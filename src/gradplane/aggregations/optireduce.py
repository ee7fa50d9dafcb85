"""The workers exchange blocks of the gradient in bounded time, without a switch (OptiReduce,
NSDI 2025).

The class `OptiReduceScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gradplane.aggregations.aggregation import (
    Aggregation,
    Messages,
    PlacedJob,
    ReplayedJob,
    suggesting,
)
from gradplane.hosts.config import JobConfig
from gradplane.hosts.wire import bounded
from gradplane.hosts.wire.bounded import Type
from gradplane.hosts.wire.payloads import Payloads

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Action

Bools = npt.NDArray[np.bool_]


class OptiReduceScheme(Aggregation):
    """Each worker sums a block of the rotated gradient, of what comes in time."""

    worker_role = "gradplane.hosts.drivers.roles:BoundedWorkerRole"
    baseline = "ring"
    no_pull = "workers answer each other as they push"
    no_quorum = "a sum waits for a time, not for a number of workers"
    only_reliability = "lossy", "nothing is sent again"
    instead = 'aggregation = "ps"'

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return the blocks that all workers send each other, while times are observed."""
        names = [host.name for host in placed.members]
        block = 4 * -(-values // len(names))
        return [(a, b, block) for a in names for b in names if a != b]

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError for a codec whose values have no bytes of their own."""
        from gradplane.hosts.protocols.bounded_worker import plain_codec

        with suggesting("ring"):
            plain_codec(config)

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


class _ReplayedReduces:
    """Reduces of the packets that came in time in the run; the streams' messages all arrive."""

    def __init__(self, replayed: ReplayedJob) -> None:
        from gradplane.hosts.protocols.bounded_worker import BoundedWorker

        job = replayed.config
        self._replayed, self._job = replayed, job
        never = job.transport.timeout_ns
        self._machines = [BoundedWorker(job, worker, never) for worker in range(job.workers)]
        self._addresses = job.addresses.worker_addresses
        self._streams = [job.addresses.stream(worker) for worker in range(job.workers)]
        self._mail: deque[tuple[int, int, bytes]] = deque()  # sender, receiver, message
        self._sent: deque[tuple[int, int, Payloads]] = deque()  # datagrams

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        asked = list(self._replayed.asked())
        for worker, step in asked:
            machine = self._machines[worker.number]
            self._perform(worker.number, machine.reduce(step.round, step.vector, 0, step.tensor))
        self._arrive()
        for stage in Type:
            for worker, step in asked:
                found = self._machines[worker.number].expire(step.round, stage, 0)
                self._perform(worker.number, found)
            self._arrive()

    def _arrive(self) -> None:
        while self._mail or self._sent:
            if self._mail:
                sender, number, data = self._mail.popleft()
                found = self._machines[number].message(self._streams[sender], data, 0)
            else:
                sender, number, payloads = self._sent.popleft()
                here = payloads.select(self._in_time(number, sender, payloads))
                found = self._machines[number].receive(*self._addresses[sender], here, 0)
            self._perform(number, found)

    def _in_time(self, receiver: int, sender: int, payloads: Payloads) -> Bools:
        """Return which packets came in time to a worker, bool[n]."""
        header, chunks = bounded.parse(payloads).header, self._replayed.outcomes.chunks
        found = []
        for one in header:
            outcome = chunks[int(one["slot"]), int(one["round"])]
            part = one["type"] == Type.PART
            found.append(outcome.contains(sender) if part else receiver in outcome.in_time)
        return np.array(found, bool)

    def _perform(self, number: int, actions: Iterable[Action]) -> None:
        from gradplane.hosts.protocols.actions import Deliver, Send, SendMessage

        for action in actions:
            if isinstance(action, SendMessage):
                self._mail.append((number, self._streams.index(action.peer), action.data))
            elif isinstance(action, Send):
                to = self._addresses.index((action.ip, action.port))
                self._sent.append((number, to, replace(action.payloads)))
            elif isinstance(action, Deliver):
                self._replayed.workers[number].take(action)
