"""INCEPTIONN's organisations over racks: one aggregator, a tree, one ring, a ring in each rack."""

from dataclasses import asdict
from typing import Annotated, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane.studies import parallel, plot
from gradplane.studies.exchange import WITH_GROUPS, Exchange, Network, Setting, exchange, recorded
from gradplane.studies.study import Study, StudyOutcome, several

ORGANISATIONS = {"WA": "WA", "WA tree": "tree", "INC": "ring", "INC groups": "groups"}
"""The names of the organisations in the figure."""

Placement = Literal["even", "packed", "spread"]
Values = Annotated[int, Field(strict=True, ge=256, le=10**6)]
Case = tuple[Placement, int]
Found = dict[Case, dict[str, Exchange]]


class Groups(Study):
    """An exchange of each number of values under each placement of the workers in the racks.

    workers: of a rack; rate: of the hosts' cards; oversubscription: how many times a rack's rate is
    that of its link to the spine."""

    name: Literal["inceptionn-groups"] = "inceptionn-groups"
    racks: int = Field(default=4, ge=2, le=16)
    workers: int = Field(default=4, ge=1, le=16)
    placements: tuple[Placement, ...] = several(("even", "spread"))
    values: tuple[Values, ...] = several((65_536, 4_096))
    oversubscription: float = Field(default=4.0, gt=0)
    bound: Literal[6, 8, 10] = 10
    rate: str = "10Gbit"
    reduce_ns_per_value: float = Field(default=0.5, ge=0)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each placement, number of values and organisation."""
        cases: list[Case] = [(p, values) for values in self.values for p in self.placements]
        runs = [(self, seed, scheme, p, values) for p, values in cases for scheme in WITH_GROUPS]
        each = (
            parallel.each(_exchange, runs, "case")
            if self.net == "sim"
            else [_exchange(*one) for one in runs]
        )
        found: Found = {case: {} for case in cases}
        for (_, _, scheme, p, values), one in zip(runs, each, strict=True):
            found[p, values][scheme] = one
        return StudyOutcome(
            title=f"An exchange between {self.racks} racks of {self.workers}, {self.rate}/s,"
            f" {self.oversubscription:g} times as much as between racks",
            head=("workers", "values", "organisation", "comm., ms", "adding, ms", "all", "of WA"),
            rows=tuple(
                _cells(case, one, ones["WA"])
                for case, ones in found.items()
                for one in ones.values()
            ),
            notes=self._notes(found),
            values=[
                {"placement": case[0], "of_wa": one.seconds / ones["WA"].seconds} | asdict(one)
                for case, ones in found.items()
                for one in ones.values()
            ],
            figure=_figure(found),
        )

    def case(self, seed: int, scheme: str, placement: Placement, values: int) -> Exchange:
        """Measure one exchange."""
        setting = Setting(
            *(self.rate, self.bound, self.reduce_ns_per_value, self.net, seed),
            *(self.racks, self.oversubscription, placement),
        )
        return exchange(setting, scheme, self.racks * self.workers, recorded(values, seed))

    def _notes(self, found: Found) -> tuple[str, ...]:
        return (
            "Times in the network of one exchange, of the time under one aggregator (WA): "
            + "; ".join(_said(case, ones) for case, ones in found.items())
            + ".",
            "The paper draws these organisations (its figure 1) and measures the first and the"
            " third. A tree takes less time than one aggregator, as each server's link carries the"
            " vectors of a rack, or a sum of each rack. A ring's links carry less than two vectors"
            " however many workers there are, and of workers in the order of their racks only one"
            " a rack sends to another. So groups, whose three parts take up to five vectors' time"
            " one after another, are slower than one ring there, where vectors are long. They are"
            " faster where many neighbours of the one ring are in other racks (spread: all of"
            " them), whose links are slower, since groups are the racks whatever the placement; and"
            " where vectors are short, so that each step's latency counts: 2 (N - 1) steps of one"
            " ring beside 3 (n - 1) + 2 (G - 1) in G groups of n.",
            "Compression in the network cards (C) shortens all of a ring's ways, and only those up"
            " to an aggregator, at both levels of a tree. bf16 has 16 bits a value on all ways and"
            " nothing in the cards; a tree's servers round their sums to it once more.",
        )


def _exchange(study: Groups, seed: int, scheme: str, placement: Placement, values: int) -> Exchange:
    return study.case(seed, scheme, placement, values)


def _said(case: Case, ones: dict[str, Exchange]) -> str:
    wa = ones["WA"].communication
    shares = {name: f"{one.communication / wa:.0%}" for name, one in ones.items()}
    plain, compressed = (
        ", ".join(f"{name} {shares[name]}" for name in shares if (name[-2:] == "+C") == with_c)
        for with_c in (False, True)
    )
    return f"{case[1]:,} values, {case[0]}: {plain}; compressed {compressed}"


def _cells(case: Case, one: Exchange, wa: Exchange) -> tuple[str, ...]:
    times = (f"{1e3 * t:.3f}" for t in (one.communication, one.reduce, one.seconds))
    return (case[0], f"{case[1]:,}", one.scheme, *times, f"{one.seconds / wa.seconds:.0%}")


def _figure(found: Found) -> Figure:
    panels: dict[str, dict[str, list[float]]] = {}
    for (placement, values), ones in found.items():
        wa = ones["WA"].seconds
        panels[f"{values:,} values, workers {placement}"] = {
            label: [ones[f"{way}{more}"].seconds / wa for way in ORGANISATIONS]
            for label, more in (("float32", ""), ("compressed", "+C"), ("bf16", " bf16"))
        }
    labels = list(ORGANISATIONS.values())
    return plot.panels(panels, labels, "time of an exchange, WA = 1", beside=True)
