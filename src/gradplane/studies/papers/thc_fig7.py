"""THC, figure 7: the throughput of VGG16's training over the links' rate."""

from typing import Literal

from gradplane.studies import thc_rounds
from gradplane.studies.study import Study, StudyOutcome, several
from gradplane.studies.thc_rounds import Case, Sizes

Rate = Literal["10Gbit", "25Gbit", "40Gbit", "100Gbit"]
_PAPER = {"25Gbit": 1.85, "40Gbit": 1.45, "100Gbit": 1.43}


class Fig7(Study):
    """VGG16 on four workers; `values` are the lengths of the exchanges that are emulated."""

    name: Literal["thc-fig7"] = "thc-fig7"
    rates: tuple[Rate, ...] = several(("25Gbit", "40Gbit", "100Gbit"))
    values: Sizes = thc_rounds.VALUES

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each rate."""
        cases = [
            Case(rate, *thc_rounds.MODELS["VGG16"], rate, _PAPER.get(rate)) for rate in self.rates
        ]
        return thc_rounds.throughputs(
            "THC, figure 7: throughput of VGG16 over Horovod's, by rate",
            cases,
            self.values,
            seed,
            (
                "Why they differ: a ring of 553 MB takes 66 ms at 100 Gbit/s and 166 ms at 40, so"
                " the slower the links, the more THC gains here. In the paper the gain is the same"
                " at 40 and 100 Gbit/s: its Horovod is limited by something else than the link"
                " there, and hides a part behind backward propagation.",
            ),
        )
