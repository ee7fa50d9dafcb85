"""Two racks whose codes are summed in one level, the spine, and in two: leaves and spine."""

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from gradplane.studies import parallel, plot
from gradplane.studies.job_rates import Rates, exchanging, measured
from gradplane.studies.study import Study, StudyOutcome, several

Workers = Annotated[int, Field(strict=True, ge=1, le=32)]
WAYS = {"one level": True, "two levels": False}  # whether leaves only forward


class SumLevels(Study):
    """Racks of so many workers under one spine; the racks' links have a worker's rate.

    threshold: of marks, so that windows adapt to the links between switches."""

    name: Literal["sum-levels"] = "sum-levels"
    workers: tuple[Workers, ...] = several((1, 2, 4, 8))
    racks: int = Field(default=2, ge=2, le=8)
    slots: int = Field(default=64, ge=2, le=1024, multiple_of=2)
    threshold: int = Field(default=16, ge=1, le=10_000)
    values: int = Field(default=65_536, ge=1024, le=10**6)
    rounds: int = Field(default=4, ge=2, le=1000)
    rate_mbit: int = Field(default=100, ge=1, le=10_000)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each size of a rack, in one level and in two."""
        cases = [(self, seed, count, way) for count in self.workers for way in WAYS]
        rates = parallel.each(_case, cases, "case")
        both = [(count, way, one) for (_, _, count, way), one in zip(cases, rates, strict=True)]
        x = [float(count) for count in self.workers]
        return StudyOutcome(
            title=f"{self.racks} racks, summed in one level and in two",
            head=("workers a rack", "sums", "rounds/s", "MB between switches a round"),
            rows=tuple(self._cells(*one) for one in both),
            notes=self._notes(both),
            values=[{"workers": w, "sums": way} | asdict(one) for w, way, one in both],
            figure=plot.linear(
                {way: (x, [one.total for _, own, one in both if own == way]) for way in WAYS},
                "workers a rack",
                "rounds/s",
            ),
        )

    def case(self, seed: int, workers: int, way: str) -> Rates:
        """Measure racks of so many workers."""
        count, rate = self.racks * workers, f"{self.rate_mbit}Mbit"
        racks = {"kind": "leaf-spine", "leaves": self.racks, "hosts_per_leaf": workers, "spines": 1}
        links = {"workers": count, "rate": rate, "fabric_rate": rate}
        return measured(
            "sum-levels",
            seed,
            racks | links | {"forwarding_leaves": WAYS[way]},
            {"program": "thc.p4", "ecn_threshold": self.threshold},
            [exchanging(self.values, self.rounds, count, slots=self.slots)],
        )

    def _cells(self, workers: int, way: str, one: Rates) -> tuple[str, ...]:
        return (str(workers), way, f"{one.total:.1f}", f"{self._megabytes(one):.3f}")

    def _megabytes(self, one: Rates) -> float:
        return one.between / 1e6 / self.rounds

    def _notes(self, both: list[tuple[int, str, Rates]]) -> tuple[str, ...]:
        largest = self.workers[-1]
        found = {way: one for count, way, one in both if count == largest}
        once, twice = (found[way] for way in WAYS)
        faster, left = twice.total / once.total, twice.between / once.between
        return (
            f"In one level the {self.racks} links between leaves and spine carry each worker's"
            " codes and its own copy of the sums; in two each leaf's sums, and one copy. With"
            f" {largest} workers a rack two levels make {faster:.2f} times as many rounds a second,"
            f" and send {left:.2f} of the bytes between switches. The sums are equal, bit for bit.",
        )


def _case(study: SumLevels, seed: int, workers: int, way: str) -> Rates:
    return study.case(seed, workers, way)
