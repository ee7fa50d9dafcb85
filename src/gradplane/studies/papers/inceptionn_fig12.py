"""INCEPTIONN, figure 12: an iteration's time under WA, WA+C, INC and INC+C, and its parts."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane.studies import plot
from gradplane.studies.exchange import WITH_HALF, Exchange, Network, Setting, exchange, recorded
from gradplane.studies.study import Study, StudyOutcome

MODELS = {"AlexNet": 60_965_224, "HDR": 648_010, "ResNet-50": 25_557_032, "VGG-16": 138_357_544}
"""Values per gradient, counted from the models' published layers. The widths of HDR are not in our
copy of the paper; 784, 500, 500 and 10 are assumed."""

Milliseconds = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Row:
    """One iteration of a model under a scheme; times in ms."""

    model: str
    values: int
    scaled: bool
    scheme: str
    computing: float
    adding: float
    communication: float
    ratio: float | None

    @property
    def whole(self) -> float:
        """The time of the whole iteration."""
        return self.computing + self.adding + self.communication


class Fig12(Study):
    """An exchange of `values` values, emulated packet by packet and scaled to each model's size.

    compute_ms has a time for each of MODELS; rate is the rate of the links between switches."""

    name: Literal["inceptionn-fig12"] = "inceptionn-fig12"
    workers: int = Field(default=4, ge=2, le=16)
    values: int = Field(default=648_010, ge=256, le=10**6)
    bound: Literal[6, 8, 10] = 10
    rate: str = "10Gbit"
    compute_ms: tuple[Milliseconds, Milliseconds, Milliseconds, Milliseconds] = Field(
        default=(50.0, 1.0, 70.0, 500.0), strict=False
    )
    reduce_ns_per_value: float = Field(default=0.5, ge=0)
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and scheme."""
        setting = Setting(self.rate, self.bound, self.reduce_ns_per_value, self.net, seed)
        gradient = recorded(self.values, seed)
        found = [exchange(setting, scheme, self.workers, gradient) for scheme in WITH_HALF]
        models = {
            model: [self._row(model, size, computing, one) for one in found]
            for (model, size), computing in zip(MODELS.items(), self.compute_ms, strict=True)
        }
        return StudyOutcome(
            title=f"INCEPTIONN, figure 12: an iteration, {self.workers} workers, {self.rate}/s",
            head=("model", "scheme", "comp., ms", "adding", "commun.", "all", "of WA"),
            rows=tuple(_cells(row, rows[0]) for rows in models.values() for row in rows),
            notes=self._notes(found, models),
            values=[_plain(row, rows[0]) for rows in models.values() for row in rows],
            figure=_figure(models),
        )

    def _row(self, model: str, size: int, computing: float, one: Exchange) -> Row:
        factor = size / one.values
        times = (computing, 1e3 * one.reduce * factor, 1e3 * one.communication * factor)
        return Row(model, size, factor != 1, one.scheme, *times, one.ratio)

    def _notes(self, found: list[Exchange], models: dict[str, list[Row]]) -> tuple[str, ...]:
        wa, wac, inc, incc, *half = (one.communication for one in found)
        least, most = _range([rows[0].whole / rows[3].whole for rows in models.values()])
        faster = f"{least:.1f} to {most:.1f}" if f"{least:.1f}" != f"{most:.1f}" else f"{least:.1f}"
        where = "the simulated network" if self.net == "sim" else "Mininet"
        limits = (
            "compression takes 1 us per packet in each switch and never limits the rate"
            if self.net == "sim"
            else "the switches are processes of this machine, whose load affects the times"
        )
        return (
            f"One exchange of {self.values:,} values of recorded gradients, packet by packet on"
            f" {where}. Models of another size (marked s) take this time, scaled by their number of"
            f" values. The computing times and {self.reduce_ns_per_value:g} ns to add a value are"
            " assumptions; they are keys of the file.",
            "The paper's numbers for figure 12 are not in our copy. Its order is: WA is slowest,"
            " WA+C is limited by the half that is not compressed, INC is faster than WA without"
            f" compression, INC+C is fastest. Communication here: WA+C {wac / wa:.0%} of WA, INC"
            f" {inc / wa:.0%}, INC+C {incc / wa:.0%} ({incc / inc:.0%} of INC, at a ratio of"
            f" {found[3].ratio or 1:.1f}); an iteration is {faster} times faster under INC+C than"
            f" under WA. With 16 bits a value and nothing in the switches it is {half[0] / wa:.0%}"
            f" (WA bf16) and {half[1] / wa:.0%} (INC bf16).",
            f"Where they would differ: {limits}; packets of 256 values keep 58 bytes of headers,"
            " and acknowledgements are not compressed, so the time falls by less than the values'"
            " ratio, as in the paper, whose packets have headers too.",
        )


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _cells(row: Row, wa: Row) -> tuple[str, ...]:
    model = f"{row.model} (s)" if row.scaled else row.model
    times = (row.computing, row.adding, row.communication, row.whole)
    share = f"{row.whole / wa.whole:.0%}"
    return (model, row.scheme, *(f"{time:,.1f}" for time in times), share)


def _plain(row: Row, wa: Row) -> dict[str, Any]:
    return asdict(row) | {"whole": row.whole, "of_wa": row.whole / wa.whole, "paper": None}


def _figure(models: dict[str, list[Row]]) -> Figure:
    panels = {}
    for model, rows in models.items():
        wa = rows[0].whole
        panels[f"{model}, scaled" if rows[0].scaled else model] = {
            "computing": [row.computing / wa for row in rows],
            "adding": [row.adding / wa for row in rows],
            "communication": [row.communication / wa for row in rows],
        }
    return plot.panels(panels, list(WITH_HALF), "time of an iteration, WA = 1")
