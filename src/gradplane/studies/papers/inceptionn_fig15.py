"""INCEPTIONN, figure 15: the time of an exchange over the number of workers, WA and ring."""

from typing import Annotated, Literal

from pydantic import Field

from gradplane.studies import plot
from gradplane.studies.exchange import WITH_HALF, Exchange, Network, Setting, exchange, recorded
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, several

Workers = Annotated[int, Field(strict=True, ge=2, le=32)]
Scheme = Literal["WA", "WA+C", "INC", "INC+C", "WA bf16", "INC bf16"]


class Fig15(Study):
    """Communication and addition, packet by packet; rate is the rate of the fabric's links."""

    name: Literal["inceptionn-fig15"] = "inceptionn-fig15"
    workers: tuple[Workers, ...] = several((4, 6, 8))
    schemes: tuple[Scheme, ...] = several(("WA", "INC", "WA bf16", "INC bf16"))
    values: int = Field(default=65_536, ge=256, le=10**6)
    bound: Literal[6, 8, 10] = 10
    rate: str = "10Gbit"
    reduce_ns_per_value: float = Field(default=0.5, ge=0)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme and number of workers."""
        setting = Setting(self.rate, self.bound, self.reduce_ns_per_value, self.net, seed)
        gradient = recorded(self.values, seed)
        found: dict[str, list[Exchange]] = {
            scheme: [exchange(setting, scheme, count, gradient) for count in self.workers]
            for scheme in WITH_HALF
            if scheme in self.schemes
        }
        return StudyOutcome(
            title=f"INCEPTIONN, figure 15: an exchange of {self.values:,} values, {self.rate}/s",
            head=("scheme", "workers", "comm., ms", "adding, ms", "growth", "ideal", "the paper's"),
            rows=tuple(_cells(one, ones[0]) for ones in found.values() for one in ones),
            notes=self._notes(found),
            values=[
                {
                    "scheme": one.scheme,
                    "workers": one.workers,
                    "communication": one.communication,
                    "reduce": one.reduce,
                    "growth": one.seconds / ones[0].seconds,
                    "paper": None,
                }
                for ones in found.values()
                for one in ones
            ],
            figure=plot.linear(
                {
                    scheme: (
                        [float(one.workers) for one in ones],
                        [1e3 * one.seconds for one in ones],
                    )
                    for scheme, ones in found.items()
                },
                "workers",
                "time of an exchange, ms",
            ),
        )

    def _notes(self, found: dict[str, list[Exchange]]) -> tuple[str, ...]:
        growth = {scheme: ones[-1].seconds / ones[0].seconds for scheme, ones in found.items()}
        said = ", ".join(f"{scheme} {factor:.2f} times" for scheme, factor in growth.items())
        first, last = self.workers[0], self.workers[-1]
        return (
            f"From {first} to {last} workers the time of an exchange grows: {said}. The ideal"
            " growth is that of the bytes on the busiest link: the aggregator's link carries every"
            " worker's vector, so WA's time grows with the workers; a ring's link carries"
            " 2 (n - 1) / n vectors, always less than 2.",
            "The paper's numbers are not in our copy; it describes the same: almost linear for WA,"
            " almost constant for the ring. Where they would differ: a ring of n workers takes"
            " 2 (n - 1) steps, and each adds the latency of three switches and of its first"
            " packets, which matters for short vectors.",
        )


def _cells(one: Exchange, first: Exchange) -> tuple[str, ...]:
    times = (f"{1e3 * seconds:.3f}" for seconds in (one.communication, one.reduce))
    growth = f"{one.seconds / first.seconds:.2f}"
    ideal = f"{_busiest(one) / _busiest(first):.2f}"
    return (one.scheme, str(one.workers), *times, growth, ideal, NOT_IN_OUR_COPY)


def _busiest(one: Exchange) -> float:
    """Return the vectors on the busiest link: WA uses both directions in turn, a ring at once."""
    n = one.workers
    return 2.0 * n if one.scheme.startswith("WA") else 2 * (n - 1) / n
