"""THC, figure 15: error over granularity, for several numbers of bits."""

from typing import Annotated, Literal

from pydantic import Field

from gradplane import codecs
from gradplane.studies import nmse, plot
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome, number, several

Bits = Annotated[int, Field(strict=True, ge=1, le=8)]
Granularity = Annotated[int, Field(strict=True, ge=1, le=4095)]


class Fig15(Study):
    """The mean NMSE over `repetitions` gradients of `values` values, and over the recorded ones.

    The paper takes 100 gradients, of a size that our copy does not give."""

    name: Literal["thc-fig15"] = "thc-fig15"
    bits: tuple[Bits, ...] = several((2, 3, 4))
    granularities: tuple[Granularity, ...] = several(nmse.FIGURE_15_GRANULARITIES)
    workers: int = Field(default=10, ge=1)
    p: float = Field(default=1 / 1024, gt=0, lt=1)
    values: int = Field(default=2**14, ge=1)
    repetitions: int = Field(default=10, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each kind of gradients and granularity, with a column for each b.

        A cell is "-" where g < 2^b - 1, which allows no table."""
        points = nmse.figure_15(
            self.bits, self.granularities, self.workers, self.p, self.values, self.repetitions, seed
        )
        half = {
            kind: nmse.of_kind(codecs.get("bfloat16"), kind, self.workers, self.values, seed)
            for kind in dict.fromkeys(point.gradients for point in points)
        }
        kinds: dict[str, dict[tuple[int, int], float]] = {}
        for point in points:
            kinds.setdefault(point.gradients, {})[point.granularity, point.bits] = point.nmse
        found = kinds[nmse.LOGNORMAL]
        return StudyOutcome(
            title=f"THC, figure 15: NMSE, {self.workers} workers, granularity g, p = {self.p:.3g}",
            head=("gradients", "g", *(f"b = {b}" for b in self.bits), "the paper's"),
            rows=tuple(
                (kind, *self._row(of, g)) for kind, of in kinds.items() for g in self.granularities
            ),
            notes=self._notes(found, half),
            values=[
                {"gradients": p.gradients, "bits": p.bits, "granularity": p.granularity}
                | {"nmse": p.nmse, "paper": None}
                for p in points
            ]
            + [
                {"gradients": kind, "codec": "bfloat16", "nmse": error, "paper": None}
                for kind, error in half.items()
            ],
            figure=plot.curves(self._lines(found), "granularity", "NMSE"),
        )

    def _row(self, found: dict[tuple[int, int], float], g: int) -> tuple[str, ...]:
        cells = (number(found[g, b]) if (g, b) in found else "-" for b in self.bits)
        return (str(g), *cells, NOT_IN_OUR_COPY)

    def _lines(
        self, found: dict[tuple[int, int], float]
    ) -> dict[str, tuple[list[float], list[float]]]:
        lines = {}
        for b in self.bits:
            places = [g for g in self.granularities if (g, b) in found]
            lines[f"b = {b}"] = ([float(g) for g in places], [found[g, b] for g in places])
        return lines

    def _notes(
        self, found: dict[tuple[int, int], float], half: dict[str, float]
    ) -> tuple[str, ...]:
        most = max(self.granularities)
        falls = [
            f"{found[most, low] / found[most, high]:.1f} times from {low} to {high}"
            for low, high in zip(self.bits, self.bits[1:], strict=False)
            if (most, low) in found and found.get((most, high))
        ]
        errors = ", ".join(f"{error:.2g} ({kind})" for kind, error in half.items())
        said = f"At g = {most} the error falls {' and '.join(falls)} bits. " if falls else ""
        return (
            f"{said}The paper says that each bit reduces the error by almost an order of magnitude"
            " and that a larger granularity helps a little; its curves' values are not in our"
            f" copy. bf16, four times the bits of b = 4, has errors of {errors}.",
            "Why they differ: one more bit roughly halves the distance between neighbouring values"
            " of the table, and so divides the variance of rounding by four, or by more at few"
            " bits, but not by ten. Our gradients are drawn from lognormal(0, 1), like the paper's;"
            " the size of the paper's is not in our copy. On gradients recorded in trainings of a"
            " network of convolutions and of a transformer, the curves have the same shape.",
        )
