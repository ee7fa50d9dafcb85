"""A worker that reduces a gradient tensor by tensor, as a plan says (Espresso, section 4).

The reduce includes the iteration's computation: the forward propagation, then the tensors become
ready one after another in backward order, and communication and compression overlap with the rest
(wait-free backward propagation). Four resources - GPU, CPU, the network inside the machine and the
one between machines - serve one step at a time, each in the plan's order, which is the same for all
workers, so that no two wait for each other. Computation and codecs take the plan's times, with the
codec's real bytes; communication takes what the network takes. Where one GPU communicates for its
machine, it notifies the others when it has: they wait, because a GPU that ran ahead would have the
machine's link busy with a later step, behind which everybody's next one would wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradplane.codecs import CodecError
from gradplane.hosts.config import JobConfig, UnsuitableCodecError
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, Record, SendMessage, SetTimer
from gradplane.hosts.protocols.collectives import SWITCH, Group, Routine, Wait
from gradplane.hosts.protocols.job_codec import parts, push_codec, reduce_seed
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.planned_sums import PlannedSums
from gradplane.hosts.protocols.planned_tensor import HeldTensor
from gradplane.hosts.protocols.results import Floats, ReduceError, Summed, checked_vector
from gradplane.hosts.protocols.run_plan import (
    COMPUTATION,
    MARKED,
    RESOURCES,
    PlannedTask,
    RunPlan,
    run_plan,
)
from gradplane.hosts.wire.payloads import Payloads

_DONE = 255  # the part that says so; no routine has as many
_FORWARD = "forward"
_FORWARD_STEP = COMPUTATION - 1  # until it has ended


@dataclass
class _Lane:
    """A resource: the number of its next step in the plan's order, and the step it serves."""

    next: int = 0
    busy: bool = False
    start: int = 0
    tasks: list[PlannedTask] = field(default_factory=list)  # still to do of its step
    routine: Routine[None] | None = None
    waits: Wait | None = None


@dataclass
class _Reduce:
    ticket: int
    begun: int
    vector: Floats
    held: list[HeldTensor]
    done: list[int]  # by tensor: the next step, COMPUTATION after the forward propagation
    ready: list[int]  # by tensor: since when
    left: int  # steps
    backward: int = 0  # when it began
    lanes: dict[str, _Lane] = field(default_factory=lambda: {name: _Lane() for name in RESOURCES})
    events: list[list[int]] = field(default_factory=list)
    codes: dict[tuple[int, int, int], bytes] = field(default_factory=dict)


class PlannedWorker:
    """One worker's reduces, one at a time. Gets messages of messages.PLAN_KINDS.

    Actions: SendMessage, SetTimer, Deliver(ticket, Summed), Record (arrival, timeline); with
    routines of the switch also Send and CancelTimer. `sums` has these routines.
    """

    def __init__(self, job: JobConfig, worker: int, granularity: int = 0) -> None:
        """Set up worker number `worker`; no timeout of the switch's sums is below `granularity`."""
        assert job.coding.plan is not None, "the job has no plan"
        self._job, self._worker, self._plan = job, worker, run_plan(job.coding.plan)
        workers = (job.addresses.stream(w) for w in range(job.workers))
        self._peers = [*workers, *job.addresses.servers]
        self._servers = range(job.workers, len(self._peers))
        self._notices = [job.addresses.notice(w) for w in range(job.workers)]
        self._codec = push_codec(job)
        self.sums = PlannedSums(job, self._plan, worker, granularity)
        self._states: dict[tuple[int, int, int], Any] = {}  # by tensor, task and first value
        self._mail: dict[tuple[int, int, int, int, int], bytes] = {}
        self._reduce: _Reduce | None = None
        self._newest = -1
        self._actions: list[Action] = []

    def reduce(self, ticket: int, vector: Floats, now: int) -> list[Action]:
        """Begin an iteration whose gradient is `vector`, finite float32[n].

        Raises ReduceError for another size, or while the last one lasts.
        """
        plan, vector = self._plan, checked_vector(vector, self._worker, ticket)
        if self._reduce is not None or ticket <= self._newest or vector.size != plan.values:
            raise ReduceError(
                f"worker {self._worker}, ticket {ticket}: {vector.size} values: the plan has"
                f" {plan.values}, tickets must rise, and one reduce is in flight at a time"
            )
        self._newest = ticket
        held = [
            HeldTensor(vector[t.offset : t.offset + t.values], self._encoder(number))
            for number, t in enumerate(plan.tensors)
        ]
        steps = sum(map(len, plan.order.values()))
        count = len(plan.tensors)
        self._reduce = _Reduce(
            ticket, now, vector, held, [_FORWARD_STEP] * count, [0] * count, steps
        )
        return [SetTimer(_FORWARD, now + plan.forward_ns)]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a part from a worker or a server. MessageError if nothing waits or will wait for
        it."""
        message = parse(data)
        if peer not in (peers := self._notices if message.count == _DONE else self._peers):
            raise MessageError(f"a part from {peer}, which is no worker or server")
        key = message.ticket, message.tensor, message.bitmap, peers.index(peer), message.count
        if message.ticket < self._newest or key in self._mail:
            raise MessageError(f"part {message.count} of ticket {message.ticket}: late, or again")
        self._mail[key] = message.body
        if self._reduce is not None and message.ticket == self._reduce.ticket:
            self._resume(now)
        return self._taken()

    def receive_sums(
        self, port: int, ip: str, source_port: int, payloads: Payloads, now: int
    ) -> list[Action]:
        """Take datagrams for a port of `sums`."""
        self._actions += self.sums.receive(port, ip, source_port, payloads, now)
        self._take_sums(now)
        return self._taken()

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the task of a resource, the forward propagation, or that of
        a routine of the switch, whose key is a tuple."""
        if isinstance(key, tuple):
            self._actions += self.sums.timer(key, now)
            self._take_sums(now)
            return self._taken()
        reduce = self._reduce
        assert reduce is not None
        if key == _FORWARD:
            reduce.backward = now
            reduce.ready = [now] * len(reduce.ready)
            reduce.done = [COMPUTATION] * len(reduce.done)
        else:
            lane = reduce.lanes[str(key)]
            self._worked(reduce, str(key), lane)
            self._proceed(reduce, str(key), now)
        self._begin_steps(reduce, now)
        return self._taken()

    # The resources

    def _begin_steps(self, reduce: _Reduce, now: int) -> None:
        """Let each idle resource begin its next step in the plan's order, if it is ready."""
        changed = True
        while changed and reduce is self._reduce:
            changed = False
            for name, lane in reduce.lanes.items():
                order = self._plan.order[name]
                if lane.busy or lane.next == len(order):
                    continue
                tensor, step = order[lane.next].tensor, order[lane.next].step
                if reduce.done[tensor] != step:
                    continue
                lane.busy, lane.start, changed = True, now, True
                if step == COMPUTATION:
                    ns = self._plan.tensors[tensor].compute_ns
                    self._actions.append(SetTimer(name, now + ns))
                else:
                    lane.tasks = list(self._plan.tensors[tensor].steps[step])
                    self._proceed(reduce, name, now)

    def _proceed(self, reduce: _Reduce, name: str, now: int) -> None:
        """Go on with a resource's step until it waits for time or for a part, or is done."""
        lane = reduce.lanes[name]
        tensor = self._plan.order[name][lane.next].tensor
        while lane.tasks:
            task = lane.tasks[0]
            if not task.kind.startswith("comm"):
                self._actions.append(SetTimer(name, now + task.ns))
                return
            if not self._communicated(reduce, lane, tensor, task, now):
                return
            lane.tasks.pop(0)
        self._finish(reduce, name, now)

    def _worked(self, reduce: _Reduce, name: str, lane: _Lane) -> None:
        """Do what a resource has taken its time for."""
        if not lane.tasks:
            return  # a tensor's computation
        task, tensor = lane.tasks.pop(0), self._plan.order[name][lane.next].tensor
        held = reduce.held[tensor]
        if not held.active:
            return
        planned = self._plan.tensors[tensor]
        if task.kind == "decomp":
            held.decompress(self.sums.decode if planned.of_sums(task) else self._codec.decode)
            return
        later = [t for step in planned.steps for t in step]
        following = [(t, len(self._members(t))) for t in later if t.number > task.number]
        held.compress(task, following)

    def _finish(self, reduce: _Reduce, name: str, now: int) -> None:
        lane = reduce.lanes[name]
        served = self._plan.order[name][lane.next]
        times = (reduce.ready[served.tensor], lane.start, now)
        reduce.events.append(
            [
                RESOURCES.index(name),
                served.tensor,
                served.step,
                *(t - reduce.backward for t in times),
            ]
        )
        reduce.done[served.tensor] += 1
        reduce.ready[served.tensor] = now
        if served.step == COMPUTATION and served.tensor + 1 < len(reduce.ready):
            reduce.ready[served.tensor + 1] = now
        lane.busy, lane.next = False, lane.next + 1
        reduce.left -= 1
        if not reduce.left:
            self._deliver(reduce, now)

    # Communication

    def _communicated(
        self, reduce: _Reduce, lane: _Lane, tensor: int, task: PlannedTask, now: int
    ) -> bool:
        """Take a routine as far as its parts have arrived; return whether it is done."""
        if lane.routine is None:
            lane.routine = self._routine(reduce, tensor, task, now)
            lane.waits = next(lane.routine, None)
        while lane.waits is not None:
            key = (reduce.ticket, tensor, task.number, *lane.waits)
            if key not in self._mail:
                return False
            try:
                lane.waits = lane.routine.send(self._mail.pop(key))
            except StopIteration:
                lane.waits = None
            except CodecError as error:
                raise self._failed(reduce.ticket, tensor, error) from error
        lane.routine = None
        return True

    def _routine(self, reduce: _Reduce, tensor: int, task: PlannedTask, now: int) -> Routine[None]:
        """Communicate, or wait for the GPU that does so for this machine."""

        def send(to: int, part: int, body: bytes) -> None:
            message = Message(Kind.PLANNED, reduce.ticket, 0, tensor, part, task.number)
            if part == _DONE:
                _, port = self._notices[self._worker]
                action = SendMessage(self._notices[to], message.pack(), port=port)
            elif bound is not None:
                action = SendMessage(self._peers[to], message.pack(), body)
            else:
                action = SendMessage(self._peers[to], message.pack() + body)
            self._actions.append(action)

        def sum_values(values: Floats) -> None:
            self._actions += self.sums.reduce(task.choice, reduce.ticket, tensor, values, now)

        bound = self._job.coding.bound if task.choice == MARKED else None
        held, members = reduce.held[tensor], self._members(task)
        root, *others = self._plan.members(self._worker, "intra1")
        if not held.communicates(task):
            held.skip(task)
            yield root, _DONE
            return
        place = members.index(self._worker)
        group = Group(members, place, send, bound, self._servers, sum_values)
        yield from held.communicate(task, group)
        if self._plan.tensors[tensor].by_root(task):
            for other in others:
                send(other, _DONE, b"")

    def _take_sums(self, now: int) -> None:
        """Take what the switch has summed, as a part that its routine waits for."""
        reduce = self._reduce
        if reduce is None:
            return
        for name, lane in reduce.lanes.items():
            if lane.waits is None or lane.waits[0] != SWITCH:
                continue
            task, tensor = lane.tasks[0], self._plan.order[name][lane.next].tensor
            result = self.sums.take(task.choice, reduce.ticket, tensor)
            if result is not None:
                key = (reduce.ticket, tensor, task.number, *lane.waits)
                self._mail[key] = self.sums.packed(task.choice, result)
                reduce.codes[tensor, task.number, SWITCH] = result.codes.encode()
        self._resume(now)

    def _resume(self, now: int) -> None:
        """Go on with the routines that a part may have come for."""
        reduce = self._reduce
        assert reduce is not None
        for name, lane in reduce.lanes.items():
            if lane.waits is not None:
                self._proceed(reduce, name, now)
        self._begin_steps(reduce, now)

    def _members(self, task: PlannedTask) -> tuple[int, ...]:
        return self._plan.members(self._worker, task.phase)

    # Codes and results

    def _encoder(self, tensor: int) -> Any:
        def encode(task: PlannedTask, low: int, values: Floats) -> bytes:
            reduce = self._reduce
            assert reduce is not None
            key = tensor, task.number, low
            state = self._states[key] if key in self._states else self._codec.start(values.size)
            seed = reduce_seed(self._job, reduce.ticket, (tensor << 8) + task.number)
            # After the exchange between machines, GPUs of one number hold the same values: they
            # must round alike, or the machines' results would differ.
            who = self._worker % self._plan.gpus if task.phase == "intra2" else self._worker
            try:
                # Pieces are decoded one by one, so each may have a statistic of its own.
                own = self._codec.local(values, state)
                data, state = self._codec.encode(values, own, seed, state, who)
            except CodecError as error:
                raise self._failed(reduce.ticket, tensor, error) from error
            self._states[key] = state
            reduce.codes[key] = data
            return data

        return encode

    def _failed(self, ticket: int, tensor: int, error: CodecError) -> ReduceError:
        name = self._plan.tensors[tensor].name
        return ReduceError(f"worker {self._worker}, ticket {ticket}, tensor {name}: {error}")

    def _deliver(self, reduce: _Reduce, now: int) -> None:
        self._reduce = None
        sums = np.zeros(reduce.vector.size, np.float32)
        for tensor, held in zip(self._plan.tensors, reduce.held, strict=True):
            sums[tensor.offset : tensor.offset + tensor.values] = held.values
        n = self._job.workers
        gpu = [e for e in reduce.events if e[0] == RESOURCES.index("gpu")]
        computing = sum(end - start for _, _, step, _, start, end in gpu if step == COMPUTATION)
        coding = sum(end - start for _, _, step, _, start, end in gpu if step != COMPUTATION)
        result = Summed(
            mean=sums / np.float32(n),
            counts=np.array([n], np.int64),
            missed=0,
            gradient=digest(reduce.vector),
            codes=digest(*(reduce.codes[key] for key in sorted(reduce.codes))),
            sums=digest(sums),
            total=sums,
            compute_ns=reduce.backward - reduce.begun + computing,
            codec_ns=coding,  # of the GPU: the CPU works beside it
        )
        who = {"job": self._job.number, "ticket": reduce.ticket, "worker": self._worker}
        place = {"slot": None, "use": None, "result": "in time", "count": n}
        bitmap = {"bitmap": f"{(1 << n) - 1:016x}", "digest": result.sums}
        more = {"attempts": 1, "notices": 0, "at": now}
        timeline = {"forward": reduce.backward - reduce.begun, "events": reduce.events}
        self._actions += [
            Record("arrival", who | place | bitmap | more),
            Record("timeline", who | timeline),
            Deliver(reduce.ticket, result),
        ]

    def _taken(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions


def check_plan(job: JobConfig) -> RunPlan:
    """Return a job's plan; ConfigError if its workers cannot run it."""
    assert job.coding.plan is not None, "the job has no plan"
    for codec in parts(push_codec(job)):
        if not codec.averages:
            raise UnsuitableCodecError(
                f"codec {codec.name}: a plan's workers add decoded values part by part, and these"
                " are not averaged (a majority's vote needs all workers' at once): use vote ="
                ' false, or aggregation = "switch" or "ps"',
                "codec",
            )
    return run_plan(job.coding.plan)
