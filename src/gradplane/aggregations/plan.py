"""Each tensor goes its own way, as a plan of `gradplane plan` has it (Espresso).

The class `PlanScheme` is the scheme; `_ReplayedReduces` re-enacts its reduces.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradplane.aggregations.aggregation import (
    STREAM_PORT,
    Aggregation,
    Keyed,
    Messages,
    PlacedJob,
    ReplayedJob,
    reference,
)
from gradplane.aggregations.needs import AskedJob
from gradplane.aggregations.switch import codec_bits, job_plan, program_limits
from gradplane.controller.plan import JobPlan
from gradplane.hosts.config import Addresses, JobConfig
from gradplane.hosts.drivers import roles
from gradplane.hosts.protocols.actions import Action, Deliver, Send, SendMessage, SetTimer
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.planned_server import PlannedServer
from gradplane.hosts.protocols.planned_sums import switch_jobs
from gradplane.hosts.protocols.planned_worker import PlannedWorker, check_plan
from gradplane.hosts.protocols.run_plan import SWITCH_CODES, SWITCH_VALUES, RunPlan, run_plan
from gradplane.hosts.wire.payloads import Payloads


class PlanScheme(Aggregation):
    """The workers are a plan's GPUs, machine by machine; they exchange tensors by collectives, or
    have the switch between all machines sum them."""

    worker_role = reference(roles.PlannedWorkerRole)
    server_role = reference(roles.PlannedServerRole)
    baseline = "ring"
    marks = True
    no_pull = "a plan says where tensors are compressed"
    no_quorum = "its collectives need every worker"
    only_reliability = "retransmit", "a lost part would stop a collective, so hosts send it again"

    def servers(self, job: AskedJob) -> int:
        """Return how many servers the plan's tensors go to."""
        plan = _plan(job)
        return 0 if plan is None else plan.servers

    def needed_program(self, job: AskedJob) -> str | None:
        """Return the program that sums, where tensors of the plan go to the switch."""
        plan = _plan(job)
        return "thc.p4" if plan is not None and plan.summed else None

    def addresses(self, placed: PlacedJob) -> Addresses:
        """Return where the job's packets go, with the plan's servers."""
        found, port = super().addresses(placed), STREAM_PORT + placed.number
        addresses = tuple((host.ip, port) for host in placed.servers)
        return replace(found, server_address=None, servers=addresses)

    def aggregators(self, placed: PlacedJob) -> Sequence[str]:
        """Return the switch in the middle of the workers."""
        return placed.network.centres(host.name for host in placed.members)[:1]

    def plans(
        self, placed: PlacedJob, config: JobConfig, slots_end: Mapping[str, int]
    ) -> Iterator[tuple[str, JobPlan]]:
        """Yield a job on the switch for each of its routines and each number of a GPU."""
        (switch,), slots = self.aggregators(placed), config.transport.slots
        for number, job in enumerate(_switch_jobs(config)):
            yield switch, job_plan(job, placed, switch, slots_end.get(switch, 0) + number * slots)

    def code_bits(self, job: AskedJob) -> int | None:
        """Return the width of the codes of the plan's routines that the switch sums, if any."""
        plan = _plan(job)
        if plan is None or not plan.summed:
            return None
        codec = job.push.name, job.push.args
        named = {SWITCH_VALUES: ("switchml", {}), SWITCH_CODES: codec}
        return max(codec_bits(*named[routine]) for routine in plan.summed)

    def defines(self, jobs: Sequence[AskedJob]) -> dict[str, str]:
        """Return the limits of the program, where it sums for one of the jobs."""
        slots = [job.slots * len(plan.summed) * plan.gpus for job in jobs if (plan := _plan(job))]
        return program_limits(jobs[0], sum(slots)) if any(slots) else {}

    def check(self, placed: PlacedJob, others: Sequence[PlacedJob]) -> Iterator[Keyed]:
        """Yield problems that prevent a run, each with its key."""
        yield from super().check(placed, others)
        job = placed.job
        parsed = _plan(job)
        if parsed is None:
            yield "plan", "plan is missing: the plan.json of gradplane plan ... --out DIR"
            return
        if parsed.marked and not job.marked:
            yield (
                "marked",
                "marked = false with a plan whose tensors the edge switches compress: leave out"
                " marked, or plan again with --constraint without=tos",
            )

    def streams(self, placed: PlacedJob, config: JobConfig, values: int) -> Sequence[Messages]:
        """Return none: its hosts bound their timeouts by the plan's own rates."""
        return ()

    def check_hosts(self, config: JobConfig) -> None:
        """Raise ConfigError if the workers cannot run the plan."""
        if config.coding.plan is not None:
            check_plan(config)
            for job in _switch_jobs(config):
                summed_codec(job)

    def replay(self, replayed: ReplayedJob) -> Callable[[], None]:
        """Return a function that re-enacts one reduce."""
        return _ReplayedReduces(replayed).reduce


def _plan(job: AskedJob) -> RunPlan | None:
    return None if job.plan is None else run_plan(json.loads(job.plan))


def _switch_jobs(config: JobConfig) -> list[JobConfig]:
    assert config.coding.plan is not None, "the job has no plan"
    return list(switch_jobs(config, run_plan(config.coding.plan)).values())


class _ReplayedReduces:
    """Planned reduces without time: the order in which parts and timers come changes nothing."""

    def __init__(self, replayed: ReplayedJob) -> None:
        job = replayed.config
        self._replayed = replayed
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._notices = [job.addresses.notice(w) for w in range(job.workers)]
        self._machines = [PlannedWorker(job, w) for w in range(job.workers)]
        self._servers = {address: PlannedServer(job) for address in job.addresses.servers}
        self._events: deque[tuple[int, Callable[..., list[Action]], tuple[Any, ...]]] = deque()

    def reduce(self) -> None:
        """Re-enact the reduce that all workers ask for."""
        for (worker, step), machine in zip(self._replayed.asked(), self._machines, strict=True):
            self._perform(worker.number, machine.reduce(step.round, step.vector, 0))
        while self._events:
            number, event, arguments = self._events.popleft()
            self._perform(number, event(*arguments, 0))

    def _sum(self, number: int, send: Send, payload: bytes) -> None:
        """Pass a packet through the switch; its answers, if it has any, are events."""
        source = self._peers[number][0], send.source_port
        sent = self._replayed.network.send(source, (send.ip, send.port), payload)
        for host, port, answer in sent:
            receiver = self._replayed.hosts.index(host)
            machine = self._machines[receiver]
            arguments = (port, *(send.ip, send.port), Payloads.of([answer]))
            self._events.append((receiver, machine.receive_sums, arguments))

    def _perform(self, number: int, actions: Iterable[Action]) -> None:
        arguments: tuple[Hashable, ...]
        for action in actions:
            if isinstance(action, SendMessage):
                addresses = self._peers if action.port is None else self._notices
                data = self._replayed.arrived(addresses[number], action)
                if action.peer in self._servers:
                    server = self._servers[action.peer]
                    for answer in server.receive(addresses[number], data, 0):
                        assert isinstance(answer, SendMessage), answer
                        receiver = self._peers.index(answer.peer)
                        arguments = action.peer, answer.data
                        self._events.append((receiver, self._machines[receiver].receive, arguments))
                    continue
                receiver = addresses.index(action.peer)
                arguments = addresses[number], data
                self._events.append((receiver, self._machines[receiver].receive, arguments))
            elif isinstance(action, Send):
                for payload in action.payloads:
                    self._sum(number, action, payload)
            elif isinstance(action, SetTimer) and not isinstance(action.key, tuple):
                self._events.append((number, self._machines[number].timer, (action.key,)))
            elif isinstance(action, Deliver):
                self._replayed.workers[number].take(action)
