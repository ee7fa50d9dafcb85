"""THC, figure 2b: the error of the workers' mean under four compressors."""

from typing import Literal

from pydantic import Field

from gradplane.studies import nmse, plot
from gradplane.studies.study import Study, StudyOutcome, number


class Fig2b(Study):
    """Gradients of `values` values from lognormal(0, 1), of which each worker has a copy; and those
    recorded in two trainings, each worker's own."""

    name: Literal["thc-fig2b"] = "thc-fig2b"
    workers: int = Field(default=4, ge=1)
    values: int = Field(default=2**20, ge=1)
    repetitions: int = Field(default=3, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme."""
        rows = nmse.figure_2b(self.workers, self.values, self.repetitions, seed)
        labels = [row.label for row in rows]
        errors, paper = [row.nmse for row in rows], [row.paper for row in rows]
        return StudyOutcome(
            title=f"THC, figure 2b: NMSE of the mean, {self.workers} workers",
            head=("scheme", nmse.LOGNORMAL, *rows[0].recorded, "the paper's, 4 workers"),
            rows=tuple(_cells(row) for row in rows),
            notes=_notes({row.label: row for row in rows}),
            values=[
                {"scheme": row.label, "codec": row.config, "nmse": row.nmse, "paper": row.paper}
                | {"recorded": row.recorded}
                for row in rows
            ],
            figure=plot.pairs(labels, errors, paper, "NMSE", log=True),
        )


def _cells(row: nmse.SchemeRow) -> tuple[str, ...]:
    return (row.label, *map(number, (row.nmse, *row.recorded.values(), row.paper)))


def _notes(rows: dict[str, nmse.SchemeRow]) -> tuple[str, ...]:
    tern, top, thc = (rows[label] for label in ("TernGrad", "TopK 10%", "THC"))
    assert tern.paper and top.paper
    return (
        f"TernGrad's error is {tern.nmse / top.nmse:.0f} times TopK's here,"
        f" {tern.paper / top.paper:.0f} times in the paper; THC's is"
        f" {top.nmse / thc.nmse:.0f} times below TopK's.",
        "Why they differ: the paper does not say which gradients it took; ours are drawn from"
        " lognormal(0, 1) as in its appendix D.4. TopK's error is the part of the squared norm"
        f" outside the largest tenth of the values, {top.nmse:.0%} of ours and {top.paper:.0%} of"
        " the paper's; TernGrad's grows with the largest value, and so with the gradient's length.",
        "The recorded gradients, of a network of convolutions and of a transformer, are shorter"
        " (10,000 and 20,000 values) and each worker has its own. Where these differ, their mean is"
        " smaller than they are, and so the error is larger beside it. The order is the same.",
        "In its first round DGC sends the same values as TopK, so their errors are equal; in later"
        " rounds it adds the values it kept, for which no NMSE is defined.",
    )
