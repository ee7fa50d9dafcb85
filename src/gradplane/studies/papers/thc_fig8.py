"""THC, figure 8: the parts of a round of VGG16 at 100 Gbit/s."""

from typing import Literal

from gradplane.studies import plot, thc_rounds
from gradplane.studies.study import Study, StudyOutcome
from gradplane.studies.thc_rounds import HOROVOD, SERVER, TOPK, Round, Sizes


class Fig8(Study):
    """Rounds of four workers; `values` are the lengths of the exchanges that are emulated."""

    name: Literal["thc-fig8"] = "thc-fig8"
    values: Sizes = thc_rounds.VALUES

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each scheme."""
        values, training = thc_rounds.MODELS["VGG16"]
        found = thc_rounds.exchanges(["100Gbit"], self.values, seed)
        made = thc_rounds.rounds(found, "100Gbit", self.values, values, training / 1e3)
        return StudyOutcome(
            title="THC, figure 8: parts of a round of VGG16, 100 Gbit/s",
            head=thc_rounds.PARTS,
            rows=thc_rounds.parts(made),
            notes=(*_said(made), *thc_rounds.NOTES[1:]),
            values=thc_rounds.plain(made),
            figure=plot.stacks(list(made), thc_rounds.bars(made), "ms a round"),
        )


def _said(made: dict[str, Round]) -> tuple[str, ...]:
    plain, served, top = (made[label] for label in (HOROVOD, SERVER, TOPK))
    return (
        f"THC through a server communicates for {served.communication / plain.communication:.1%} of"
        " the time without compression (the paper's: 32.5 %), its codec adds"
        f" {served.worker / served.training:.1%} to the worker's time (9.5 %), and a round with"
        f" TopK takes {top.whole / served.whole - 1:+.1%} (+46.5 %).",
        "Why they differ: the baseline here is the ring, whose links carry 1.5 vectors; the paper's"
        " baseline takes longer than its 100 Gbit/s would need (figure 7). Our one server answers"
        " four workers over one link. The times of TopK's server are the planner's, of CPUs that"
        " move 50 GB/s; the paper sorts there.",
    )
