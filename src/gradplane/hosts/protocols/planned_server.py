"""A server of a plan: it adds the parts of tensors that workers send it, and answers with the sums.

A part is of a task of a tensor, and of a group: the workers between which the task communicates.
With its last member's part it is added in the members' order, so every order of arrival gives the
same bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, Peer, SendMessage
from gradplane.hosts.protocols.messages import Message, MessageError, parse
from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.protocols.run_plan import SERVER, PlannedTask, run_plan

_Key = tuple[int, int, int, int, int]  # ticket, tensor, task, part, first member of the group


class PlannedServer:
    """One server of a planned job. Gets messages of messages.PLAN_KINDS; actions: SendMessage."""

    def __init__(self, job: JobConfig) -> None:
        assert job.coding.plan is not None, "the job has no plan"
        self._plan = run_plan(job.coding.plan)
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._parts: dict[_Key, dict[int, Floats]] = {}

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a part; answer its group if it is the last. MessageError if the plan has no such."""
        message = parse(data)
        if peer not in self._peers:
            raise MessageError(f"a part from {peer}, which is no worker")
        worker, task = self._peers.index(peer), self._task(message)
        members = self._plan.members(worker, task.phase)
        key = message.ticket, message.tensor, message.bitmap, message.count, members[0]
        if len(message.body) % 4:
            raise MessageError(f"a part of {len(message.body)} bytes is not float32 values")
        values = np.frombuffer(message.body, "<f4").astype(np.float32)
        parts = self._parts.setdefault(key, {})
        if worker in parts:
            raise MessageError(f"part {message.count} of ticket {message.ticket}: again")
        if any(part.size != values.size for part in parts.values()):
            raise MessageError(f"part {message.count} of ticket {message.ticket}: sizes differ")
        parts[worker] = values
        if len(parts) < len(members):
            return []
        del self._parts[key]
        total = parts[members[0]].copy()
        for member in members[1:]:
            total += parts[member]
        answer = replace(message, body=total.astype("<f4").tobytes()).pack()
        return [SendMessage(self._peers[member], answer) for member in members]

    def _task(self, message: Message) -> PlannedTask:
        if message.tensor < len(self._plan.tensors):
            for step in self._plan.tensors[message.tensor].steps:
                for task in step:
                    if task.number == message.bitmap and task.choice == SERVER:
                        return task
        raise MessageError(
            f"task {message.bitmap} of tensor {message.tensor} is not one of the server"
        )
