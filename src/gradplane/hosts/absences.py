"""Workers that are away for some rounds of their training: crashed, or not there yet.

All hosts know the schedule, as members of a job learn from its membership service who is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Absence:
    """Worker number `worker` takes no part in training rounds `first` to `back` - 1."""

    worker: int
    first: int  # 0: it joins late, and was never there
    back: int

    def holds(self, round: int) -> bool:
        """Return whether it is the worker's in that round."""
        return self.first <= round < self.back


def present(absences: Sequence[Absence], workers: int, round: int) -> tuple[int, ...]:
    """Return the workers that take part in a training round, ascending."""
    if not absences:
        return tuple(range(workers))
    away = {absence.worker for absence in absences if absence.holds(round)}
    return tuple(worker for worker in range(workers) if worker not in away)


def joining(absences: Sequence[Absence], round: int) -> tuple[int, ...]:
    """Return the workers that are back from that training round on, ascending."""
    return tuple(sorted({absence.worker for absence in absences if absence.back == round}))


def of_worker(absences: Sequence[Absence], worker: int) -> list[Absence]:
    """Return a worker's absences in their order."""
    return sorted(absence for absence in absences if absence.worker == worker)


def donor(absences: Sequence[Absence], workers: int, round: int) -> int | None:
    """Return the worker whose state those take that join in a round: of those that were there
    before, the one with the lowest number. None if nobody was."""
    newcomers = joining(absences, round)
    stay = (w for w in present(absences, workers, round) if w not in newcomers)
    return next(stay, None)
