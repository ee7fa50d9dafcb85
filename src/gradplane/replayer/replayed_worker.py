"""A worker of a replay: its training, and what it waits for."""

from typing import Any

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Deliver
from gradplane.hosts.training.train import Step, train

Timer = tuple[str, int]
"""A SwitchWorker's: "norm", "chunk" or "status"; the number of the chunk, of "status" the slot."""


class Worker:
    """One worker's training, its timers, and the result it was given last."""

    def __init__(self, job: JobConfig, number: int) -> None:
        self.number = number
        self._training = train(job, number)
        self.step: Step | None = next(self._training)
        self.timers: dict[Timer, None] = {}  # in the order in which they were set
        self.result: Any = None
        self.delivered = False

    def answer(self, answer: Any) -> None:
        """Answer the training's step and take its next one; None at its end."""
        try:
            self.step = self._training.send(answer)
        except StopIteration:
            self.step = None

    def expect(self) -> None:
        """A reduce or synchronisation begins."""
        self.delivered, self.result = False, None
        self.timers.clear()

    def take(self, delivered: Deliver) -> None:
        """What it was waiting for."""
        self.result, self.delivered = delivered.result, True
