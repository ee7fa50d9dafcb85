"""Incast: all workers' packets meet at one server's link, with and without marks of its queue."""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from gradplane.studies import parallel, plot
from gradplane.studies.job_rates import Rates, exchanging, measured
from gradplane.studies.study import Study, StudyOutcome, several

Workers = Annotated[int, Field(strict=True, ge=2, le=64)]


@dataclass(frozen=True)
class Measured:
    """One number of workers, with windows that do not adapt and with windows that do."""

    workers: int
    static: Rates
    marked: Rates


class Incast(Study):
    """A job whose switch has one slot, and of whose workers one is late: nearly all packets of the
    others go to their server.

    window: chunks that a worker has in flight at most. queue: packets at each link; threshold:
    packets in it from which on they are marked."""

    name: Literal["incast"] = "incast"
    workers: tuple[Workers, ...] = several((2, 4, 8, 16))
    window: int = Field(default=16, ge=1, le=512)
    queue: int = Field(default=32, ge=2, le=10_000)
    threshold: int = Field(default=20, ge=1, le=10_000)
    values: int = Field(default=32_768, ge=1024, le=10**6)
    rounds: int = Field(default=5, ge=2, le=1000)
    late_ms: float = Field(default=1.0, gt=0)
    rate_mbit: int = Field(default=100, ge=1, le=10_000)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each number of workers, without and with marks."""
        found = parallel.each(_case, [(self, seed, count) for count in self.workers], "case")
        both = [(one.workers, way, rates) for one in found for way, rates in _ways(one)]
        x = [float(one.workers) for one in found]
        return StudyOutcome(
            title="Incast at a server's link, without and with marks (ECN)",
            head=("workers", "windows", "rounds/s", "dropped", "sent again", "window"),
            rows=tuple(self._cells(*one) for one in both),
            notes=self._notes(found),
            values=[{"workers": w, "windows": way} | asdict(rates) for w, way, rates in both],
            figure=plot.linear(
                {
                    "static windows": (x, [one.static.total for one in found]),
                    "ECN": (x, [one.marked.total for one in found]),
                },
                "workers",
                "rounds/s",
            ),
        )

    def case(self, seed: int, workers: int) -> Measured:
        """Measure so many workers."""
        rates = (self._rates(seed, workers, threshold) for threshold in (None, self.threshold))
        return Measured(workers, *rates)

    def _rates(self, seed: int, workers: int, threshold: int | None) -> Rates:
        job = exchanging(
            self.values, self.rounds, workers, aggregation="shared", slots=2 * self.window
        )
        marking = {} if threshold is None else {"ecn_threshold": threshold}
        links = {"rate": f"{self.rate_mbit}Mbit", "delay": "20us", "queue": self.queue}
        return measured(
            "incast",
            seed,
            {"kind": "star", "workers": workers} | links,
            {"program": "shared.p4", "defines": {"SLOTS": 1}} | marking,
            [job],
            [{"model": "straggler", "count": 1, "delay_ms": self.late_ms}],
        )

    def _cells(self, workers: int, way: str, rates: Rates) -> tuple[str, ...]:
        window = f"{rates.window or self.window:.1f}"
        counts = f"{rates.dropped:,}", f"{rates.sent_again:,}"
        return (str(workers), way, f"{rates.total:.1f}", *counts, window)

    def _notes(self, found: list[Measured]) -> tuple[str, ...]:
        last = found[-1]
        return (
            f"A worker has {self.window} chunks in flight at most, a queue holds {self.queue}"
            f" packets and marks from {self.threshold} on. With {last.workers} workers the queues"
            f" drop {last.static.dropped:,} packets without marks and {last.marked.dropped:,} with"
            f" them, and a round takes {last.static.total / last.marked.total:.2f} of the time.",
        )


def _ways(one: Measured) -> list[tuple[str, Rates]]:
    return [("static", one.static), ("ECN", one.marked)]


def _case(study: Incast, seed: int, workers: int) -> Measured:
    return study.case(seed, workers)
