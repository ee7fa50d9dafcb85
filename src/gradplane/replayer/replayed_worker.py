"""A worker of a replay: its training, and the timers that it has set."""

from typing import Any

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Deliver
from gradplane.hosts.training.train import Step, train

Timer = tuple[str, int]
"""A SwitchWorker's timer: "norm" or "chunk" and a chunk's number, or "status" and a slot."""


class Worker:
    """One worker's training, its timers, and its last result."""

    def __init__(self, job: JobConfig, number: int) -> None:
        self.number = number
        self._training = train(job, number)
        self.step: Step | None = next(self._training)
        self.timers: dict[Timer, None] = {}  # in the order in which they were set
        self.result: Any = None
        self.delivered = False

    def answer(self, answer: Any) -> None:
        """Answer the training's step and go to its next one, which is None at the end."""
        try:
            self.step = self._training.send(answer)
        except StopIteration:
            self.step = None

    def expect(self) -> None:
        """Start to wait for the result of a reduce or a synchronisation."""
        self.delivered, self.result = False, None
        self.timers.clear()

    def take(self, delivered: Deliver) -> None:
        """Take that result."""
        self.result, self.delivered = delivered.result, True
