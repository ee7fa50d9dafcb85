"""Workers and the switch model under virtual time, with a network that misbehaves."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from switch_model import Member, SwitchModel

from gradplane import codecs
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, CancelTimer, Deliver, Record, Send, SetTimer
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import ECN_CAPABLE, ECN_MARKED, Payloads
from gradplane.runs.records.run_data import expanded

AGGREGATOR = ("10.0.0.254", 18256)
TIMEOUT = 1_000_000
HOP = 50_000

JOB = JobConfig.of(
    dict(
        number=3,
        name="test",
        workers=4,
        quorum=4,
        aggregation="switch",
        reliability="retransmit",
        codec=("thc", {"bits": 4, "granularity": 30, "p": 1 / 32}),
        pull_codec=("float32", {}),
        error_feedback=True,
        slots=4,
        sum_bits=8,
        timeout_ns=TIMEOUT,
        retries=3,
        aggregator=AGGREGATOR,
        worker_addresses=tuple((f"10.0.0.{w + 1}", 20003) for w in range(4)),
        server_address=None,
        model="mlp",
        model_args={},
        data="digits",
        data_args={},
        epochs=1,
        batch=32,
        lr=0.1,
        momentum=0.9,
        compute_ns=0,
        seed=7,
        sync=False,
        sync_threshold=0,
    )
)


def make_job(**changes: Any) -> JobConfig:
    """Return JOB with changes; addresses and quorum follow the number of workers."""
    workers = changes.get("workers", JOB.workers)
    addresses = tuple((f"10.0.0.{w + 1}", 20003) for w in range(workers))
    return JOB.changed(**{"quorum": workers, "worker_addresses": addresses} | changes)


# What the network does with a packet: the delays after which copies of it arrive; none: lost.
Fate = Callable[[str, int, bytes], list[int]]


def perfect(direction: str, worker: int, payload: bytes) -> list[int]:
    """Deliver every packet once, after HOP."""
    return [HOP]


@dataclass
class MemoryNetwork:
    """run() until nothing happens any more, or for at most `limit` events."""

    job: JobConfig
    fate: Fate = perfect
    switch: SwitchModel | None = None
    lose_pass: Callable[[int, Any, int], bool] = lambda worker, header, number: False
    marked: Callable[[], bool] = lambda: False  # of each packet from the switch
    granularity: int = 0
    now: int = 0
    delivered: dict[int, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))
    records: list[Record] = field(default_factory=list)
    sums_sent: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        job = self.job
        self.workers = [SwitchWorker(job, w, self.granularity) for w in range(job.workers)]
        table = codecs.get(job.coding.codec[0], **job.coding.codec[1]).table
        members = [Member(w, w + 1) for w in range(job.workers)]
        self.switch = self.switch or SwitchModel(
            job.number,
            members,
            job.quorum,
            job.transport.slots,
            table,
            job.transport.sum_bits,
            self.lose_pass,
            next_only=job.transport.reliability == "retransmit" and job.quorum == job.workers,
        )
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._rounds: list[list[list[Any]]] = []
        self._timers: dict[tuple[int, Hashable], int] = {}

    def reduce(self, ticket: int, vectors: list[Any], at: int = 0, tensor: int = 0) -> None:
        """Let every worker start a reduce at `at`."""
        for w, vector in enumerate(vectors):
            self.call_at(at, self._starter(w, ticket, vector, tensor))

    def train(self, rounds: list[list[list[Any]]]) -> None:
        """Train each worker by itself: reduce a round's vectors, then the next (round, tensor,
        worker).

        Tickets count up: round * tensors + tensor."""
        self._rounds = rounds
        for w in range(self.job.workers):
            self._start_round(w, 0)

    def _start_round(self, w: int, round: int) -> None:
        for tensor, vectors in enumerate(self._rounds[round]):
            ticket = round * len(self._rounds[round]) + tensor
            self.call_at(self.now, self._starter(w, ticket, vectors[w], tensor))

    def _round_done(self, w: int) -> None:
        round, left = divmod(len(self.delivered[w]), len(self._rounds[0]))
        if left == 0 and round < len(self._rounds):
            self._start_round(w, round)

    def run(self, limit: int = 200_000) -> None:
        """Run events in order of time until there are none."""
        for _ in range(limit):
            if not self._queue:
                return
            self.now, _, call = heapq.heappop(self._queue)
            call()
        raise AssertionError(f"still busy after {limit} events")

    def call_at(self, at: int, call: Callable[[], None]) -> None:
        """Put an event into the queue; of equal times the earlier call comes first."""
        self._count += 1
        heapq.heappush(self._queue, (at, self._count, call))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The fields of the records of one kind."""
        lines = [{"kind": record.kind} | record.fields for record in self.records]
        return [
            {key: value for key, value in line.items() if key != "kind"}
            for line in expanded(lines, "records")
            if line["kind"] == kind
        ]

    def _starter(self, w: int, ticket: int, vector: Any, tensor: int) -> Callable[[], None]:
        return lambda: self._perform(w, self.workers[w].reduce(ticket, vector, self.now, tensor))

    def _perform(self, w: int, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                assert (action.ip, action.port) == AGGREGATOR
                assert action.source_port == self.job.addresses.worker_addresses[w][1]
                for payload in action.payloads:
                    for delay in self.fate("up", w, payload):
                        self.call_at(self.now + delay, self._at_switch(w, payload))
            elif isinstance(action, SetTimer):
                self._set(w, action)
            elif isinstance(action, CancelTimer):
                self._timers.pop((w, action.key), None)
            elif isinstance(action, Deliver):
                assert action.ticket not in self.delivered[w], "delivered twice"
                self.delivered[w][action.ticket] = action.result
                if self._rounds:
                    self._round_done(w)
            elif isinstance(action, Record):
                self.records.append(action)

    def _at_switch(self, w: int, payload: bytes) -> Callable[[], None]:
        def arrive() -> None:
            assert self.switch is not None
            for to, answer in self.switch.receive(w + 1, payload):
                if answer[0] & 15 == Type.SUMS:
                    self.sums_sent.append(answer)
                for delay in self.fate("down", to, answer):
                    self.call_at(self.now + delay, self._at_worker(to, answer))

        return arrive

    def _at_worker(self, w: int, payload: bytes) -> Callable[[], None]:
        tos = ECN_MARKED if self.marked() else ECN_CAPABLE
        worker, payloads = self.workers[w], Payloads.of([payload]).with_tos(tos)
        return lambda: self._perform(w, worker.receive(*AGGREGATOR, payloads, self.now))

    def _set(self, w: int, action: SetTimer) -> None:
        key = (w, action.key)
        self._count += 1
        self._timers[key] = mine = self._count

        def fire() -> None:
            if self._timers.get(key) == mine:
                del self._timers[key]
                self._perform(w, self.workers[w].timer(action.key, self.now))

        self.call_at(action.at, fire)
