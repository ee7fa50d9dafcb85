"""The progress of a run: bars on a terminal, else a line now and then; with the time left."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from gradplane.runs.records.recorder import Recorder, Tally

PLAIN_SECONDS = 5.0  # between two lines where there is no terminal


class Show(AbstractContextManager["Show"], Protocol):
    """A context manager, called after each round of any job."""

    def __call__(self, recorder: Recorder, job: int) -> None: ...


def show(console: Console | None, title: str, rounds: list[int], every: bool = False) -> Show:
    """Return the display of a run whose jobs have these rounds; a silent one without a console.

    every: a line for each round, in place of bars."""
    if console is None:
        return Silent()
    if every:
        return Lines(console, title, rounds, seconds=0)
    return (
        ProgressBar(console, title, rounds)
        if console.is_terminal
        else Lines(console, title, rounds)
    )


def left(spent: float, done: int, total: int) -> str:
    """Return the time left as ", 12 s left", at the speed so far; "" before and at the end."""
    if not 0 < done < total:
        return ""
    return f", {duration(spent / done * (total - done))} left"


def duration(seconds: float) -> str:
    """Return a time as text: "42 s", "3 min", "1 h 5 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Pace:
    """How fast each job goes: since its first round, for what is before it is the start."""

    def __init__(self, rounds: Sequence[int]) -> None:
        self._rounds = rounds
        self._began: dict[int, tuple[float, int]] = {}

    def left(self, job: int, done: int) -> str:
        """Return the time left of a job that has done so many rounds, as `left` does."""
        began, first = self._began.setdefault(job, (time.monotonic(), done))
        return left(time.monotonic() - began, done - first, self._rounds[job] - first)


class Silent:
    """A display that shows nothing."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, recorder: Recorder, job: int) -> None:
        pass


class ProgressBar:
    """Shows one bar per job."""

    def __init__(self, console: Console, title: str, rounds: list[int]) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=18),
            # On a narrow terminal its text goes on in a second line, so that its end is there, too.
            TextColumn("{task.fields[facts]}", table_column=Column()),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console)
        names = [title] if len(rounds) == 1 else [f"{title} {n}" for n in range(len(rounds))]
        self._tasks = [
            self._progress.add_task(name, total=total, facts="starting")
            for name, total in zip(names, rounds, strict=True)
        ]
        self._pace = _Pace(rounds)
        self._recorder: Recorder | None = None

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        for job in range(len(self._tasks)) if self._recorder else ():
            self._update(job)  # the last epoch's accuracy came after its last round
        self._progress.stop()

    def __call__(self, recorder: Recorder, job: int) -> None:
        self._recorder = recorder
        self._update(job)

    def _update(self, job: int) -> None:
        assert self._recorder is not None
        tally = self._recorder.jobs[job]
        text = facts(tally, self._recorder.drops) + self._pace.left(job, tally.rounds)
        self._progress.update(self._tasks[job], completed=tally.rounds, facts=text)


class Lines:
    """Prints a line at the start, after the first round, every few seconds, and at the end."""

    def __init__(
        self, console: Console, title: str, rounds: list[int], seconds: float = PLAIN_SECONDS
    ) -> None:
        self._console, self._title, self._rounds = console, title, rounds
        self._seconds, self._pace = seconds, _Pace(rounds)
        self._last = float("-inf")
        self._recorder: Recorder | None = None

    def __enter__(self) -> "Lines":
        self._console.print(f"{self._title}: starting")
        return self

    def __exit__(self, *error: object) -> None:
        for job in range(len(self._rounds)) if self._recorder else ():
            self._print(job)  # the last epoch's accuracy came after its last round

    def __call__(self, recorder: Recorder, job: int) -> None:
        self._recorder, now = recorder, time.monotonic()
        if now - self._last >= self._seconds and recorder.jobs[job].rounds < self._rounds[job]:
            self._last = now
            self._print(job)

    def _print(self, job: int) -> None:
        assert self._recorder is not None
        which = f" job {job}" if len(self._rounds) > 1 else ""
        tally = self._recorder.jobs[job]
        line = facts(tally, self._recorder.drops) + self._pace.left(job, tally.rounds)
        self._console.print(f"{self._title}{which}: {line}", soft_wrap=True, highlight=False)


def facts(tally: Tally, losses: int) -> str:
    """Return training round (from 0), loss, accuracy, packets and injected losses in words."""
    accuracy = f"{tally.test_accuracy:.2%}" if tally.test_accuracy is not None else "-"
    packets = tally.traffic["packets_up"] + tally.traffic["packets_down"]
    return (
        f"training round {tally.rounds - 1} loss {tally.loss:.3f} acc {accuracy}"
        f" packets {packets:,} losses injected {losses:,}"
    )
