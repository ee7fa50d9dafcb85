"""THC, figure 12: the throughput of ResNets, which computation limits, at 100 Gbit/s."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from gradplane.studies import thc_rounds
from gradplane.studies.study import Study, StudyOutcome, several
from gradplane.studies.thc_rounds import Case, Sizes, known


class Fig12(Study):
    """Rounds of four workers; `values` are the lengths of the exchanges that are emulated."""

    name: Literal["thc-fig12"] = "thc-fig12"
    models: Annotated[tuple[str, ...], AfterValidator(known)] = several(
        ("ResNet50", "ResNet101", "ResNet152")
    )
    values: Sizes = thc_rounds.VALUES

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model."""
        cases = [Case(model, *thc_rounds.MODELS[model]) for model in self.models]
        return thc_rounds.throughputs(
            "THC, figure 12: throughput of ResNets over Horovod's, 100 Gbit/s",
            cases,
            self.values,
            seed,
            (
                "The paper: ResNets hardly gain, 4.5 % at most, with TernGrad. Here they gain"
                " nothing where the exchange is overlapped, as the paper's frameworks do, since"
                " backward propagation is longer than the ring; without overlap they would gain.",
                "Why they differ: nothing overlaps in the other columns.",
            ),
        )
