"""The progress of a sweep: a bar with the time left, or a line now and then."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

PLAIN_SECONDS = 5.0  # between two lines where there is no terminal


class SweepProgress:
    """A context manager; done() is called after each run. Shows nothing without a console.

    total: runs to carry out; the time left is that of the runs so far, divided by their number."""

    def __init__(
        self, console: Console | None, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._total, self._clock = console, total, clock
        self._finished = self._failed = 0
        self._started = self._printed = clock()
        self._bar: Progress | None = None
        if console is not None and console.is_terminal:
            columns = (
                TextColumn("runs"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[facts]}"),
            )
            self._bar = Progress(*columns, console=console)

    def __enter__(self) -> "SweepProgress":
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("runs", total=self._total, facts=self.facts())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, failed: bool) -> None:
        """Count a run that has ended."""
        self._finished += 1
        self._failed += failed
        if self._bar is not None:
            self._bar.update(self._task, completed=self._finished, facts=self.facts())
        elif self._console is not None:
            self._print()

    def _print(self) -> None:
        now = self._clock()
        if now - self._printed >= PLAIN_SECONDS or self._finished == self._total:
            self._printed = now
            self._console_line(f"runs: {self.facts()}")

    def _console_line(self, text: str) -> None:
        assert self._console is not None
        self._console.print(text, soft_wrap=True, highlight=False)

    def facts(self) -> str:
        """Return runs done and failed, and the time left, in words."""
        text = f"{self._finished} of {self._total}"
        if self._failed:
            text += f", {self._failed} failed"
        if 0 < self._finished < self._total:
            spent = self._clock() - self._started
            text += f", {duration(spent / self._finished * (self._total - self._finished))} left"
        return text


def duration(seconds: float) -> str:
    """Return a time as text: "42 s", "3 min", "1 h 5 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
