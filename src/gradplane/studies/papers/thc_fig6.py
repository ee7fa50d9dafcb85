"""THC, figure 6: the throughput of seven models' trainings at 100 Gbit/s."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from gradplane.studies import thc_rounds
from gradplane.studies.study import Study, StudyOutcome, several
from gradplane.studies.thc_rounds import Case, Sizes, known

_MODELS = ("VGG16", "VGG19", "BERT-base", "RoBERTa-base", "GPT-2", "RoBERTa-large", "Bart-large")
_PAPER = {"GPT-2": 1.54, "VGG16": 1.43}


class Fig6(Study):
    """Rounds of four workers; `values` are the lengths of the exchanges that are emulated."""

    name: Literal["thc-fig6"] = "thc-fig6"
    models: Annotated[tuple[str, ...], AfterValidator(known)] = several(_MODELS)
    values: Sizes = thc_rounds.VALUES

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model."""
        cases = [
            Case(model, *thc_rounds.MODELS[model], paper=_PAPER.get(model)) for model in self.models
        ]
        return thc_rounds.throughputs(
            "THC, figure 6: throughput over Horovod's, 100 Gbit/s",
            cases,
            self.values,
            seed,
            (
                "The paper has THC through the switch 25 to 54 % above Horovod over all models (the"
                " two numbers are those of its text), its server in between, TopK 11 to 37 % below"
                " THC with servers at the workers, and TernGrad first, with two bits a value.",
                "Why they differ: the time of training decides, and is not in the paper. Here it"
                " comes from operations over the rate of an A100, with 1024 tokens a batch.",
            ),
        )
