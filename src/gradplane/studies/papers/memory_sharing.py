"""Throughput of jobs against the switch memory given to them: slots that they share, and slots of
their own."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import parallel, plot
from gradplane.studies.job_rates import Rates, exchanging, measured
from gradplane.studies.study import Study, StudyOutcome, several

Count = Annotated[int, Field(strict=True, ge=1, le=16)]
Slots = Annotated[int, Field(strict=True, ge=1, le=1024)]


@dataclass(frozen=True)
class Measured:
    """One case; ours is None where so little memory cannot be divided among so many jobs."""

    jobs: int
    slots: int
    shared: Rates
    own: Rates | None


class MemorySharing(Study):
    """Each job has `window` chunks in flight where it can, and one worker that is `late_ms` late.

    A job with n slots of its own has n / 2 chunks in flight. rate: of each worker's link; the
    server's, which all jobs share, has that of all workers' together."""

    name: Literal["memory-sharing"] = "memory-sharing"
    jobs: tuple[Count, ...] = several((1, 2, 4, 8))
    slots: tuple[Slots, ...] = several((2, 4, 8, 16, 32, 64))
    workers: int = Field(default=3, ge=2, le=16)
    window: int = Field(default=4, ge=1, le=64)
    values: int = Field(default=16_384, ge=1024, le=10**6)
    rounds: int = Field(default=6, ge=2, le=1000)
    late_ms: float = Field(default=2.0, ge=0)
    rate_mbit: int = Field(default=25, ge=1, le=10_000)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each number of jobs and of slots."""
        cases = [(self, seed, jobs, slots) for jobs in self.jobs for slots in self.slots]
        found = parallel.each(_case, cases, "case")
        return StudyOutcome(
            title="Rounds a second of jobs against the slots of their switch",
            head=("jobs", "slots", "shared, rounds/s", "own, rounds/s", "shared, of enough"),
            rows=tuple(self._cells(one, found) for one in found),
            notes=self._notes(found),
            values=[_plain(one) for one in found],
            figure=plot.doublings(self._lines(found), "slots of the switch", "rounds/s, all jobs"),
        )

    def case(self, seed: int, jobs: int, slots: int) -> Measured:
        """Measure jobs that share so many slots, and the same with a part of them each."""
        own = min(2 * self.window, slots // jobs // 2 * 2)
        return Measured(
            jobs,
            slots,
            self._rates(seed, jobs, slots, "shared"),
            self._rates(seed, jobs, own, "switch") if own else None,
        )

    def _rates(self, seed: int, jobs: int, slots: int, scheme: str) -> Rates:
        shared, hosts = scheme == "shared", jobs * self.workers
        rates = [self.rate_mbit] * hosts + [hosts * self.rate_mbit]
        job = exchanging(self.values, self.rounds, self.workers, aggregation=scheme)
        job["slots"] = 2 * self.window if shared else slots
        switch: dict[str, Any] = {"program": "thc.p4"}
        if shared:
            switch = {"program": "shared.p4", "defines": {"SLOTS": slots}}
        late = {"model": "straggler", "count": 1, "delay_ms": self.late_ms}
        return measured(
            "memory-sharing",
            seed,
            {"kind": "star", "workers": hosts, "rate": [f"{rate}Mbit" for rate in rates]},
            switch,
            [job | {"name": f"j{n}", "first_host": 1 + n * self.workers} for n in range(jobs)],
            [late] if self.late_ms else [],
        )

    def _enough(self, found: list[Measured], jobs: int) -> float:
        """Return what jobs that share come to with the most slots."""
        return next(one.shared.total for one in reversed(found) if one.jobs == jobs)

    def _cells(self, one: Measured, found: list[Measured]) -> tuple[str, ...]:
        own = "-" if one.own is None else f"{one.own.total:.1f}"
        share = one.shared.total / self._enough(found, one.jobs)
        return (str(one.jobs), str(one.slots), f"{one.shared.total:.1f}", own, f"{share:.2f}")

    def _lines(self, found: list[Measured]) -> dict[str, tuple[list[float], list[float]]]:
        lines: dict[str, tuple[list[float], list[float]]] = {}
        for jobs in self.jobs:
            mine = [one for one in found if one.jobs == jobs]
            label = f"{jobs} job{'s' if jobs > 1 else ''}"
            lines[f"{label}, shared"] = (
                [float(one.slots) for one in mine], [one.shared.total for one in mine]
            )  # fmt: skip
            divided = [(float(one.slots), one.own.total) for one in mine if one.own is not None]
            lines[f"{label}, own"] = [x for x, _ in divided], [y for _, y in divided]
        return lines

    def _notes(self, found: list[Measured]) -> tuple[str, ...]:
        in_flight = {jobs: jobs * self.window for jobs in self.jobs}
        halves = [
            f"{one.jobs} jobs {one.shared.total / self._enough(found, one.jobs):.2f}"
            for one in found
            if one.jobs > 1 and 2 * one.slots == in_flight[one.jobs]
        ]
        said = f" With a slot for two chunks in flight: {', '.join(halves)}."
        return (
            f"Each job has {self.workers} workers and, where its memory allows it, {self.window}"
            f" chunks in flight, which is {2 * self.window} slots; one of the workers is"
            f" {self.late_ms:g} ms late in each round. The last column is of the same jobs' rounds"
            f" with the most slots.{said if halves else ''}",
            "A job with slots of its own waits for no server, and needs two slots for each chunk in"
            " flight; in shared slots a chunk takes one, while it waits for its last worker, and"
            " what finds no slot is added by the job's server.",
        )


def _case(study: MemorySharing, seed: int, jobs: int, slots: int) -> Measured:
    return study.case(seed, jobs, slots)


def _plain(one: Measured) -> dict[str, Any]:
    own = None if one.own is None else asdict(one.own)
    return {"jobs": one.jobs, "slots": one.slots, "shared": asdict(one.shared), "own": own}
