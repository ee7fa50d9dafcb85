"""Espresso, figure 12: throughput of three models, NVLink and 100 Gbit/s."""

from typing import Annotated, Literal

from pydantic import Field

from gradplane.studies import espresso_throughput
from gradplane.studies.papers.espresso_table5 import Codec, ModelName
from gradplane.studies.study import Study, StudyOutcome, several

Machines = Annotated[int, Field(strict=True, ge=1, le=64)]
Panel = Annotated[tuple[ModelName, Codec], Field(strict=False)]
PAPER = {
    ("bert-base", "BytePS-C."): 31,
    ("bert-base", "HiTopKComm"): 54,
    ("bert-base", "HiPress"): 40,
    ("gpt2", "BytePS-C."): 42,
    ("gpt2", "HiPress"): 33,
    ("ugatit", "FP32"): 149,
    ("ugatit", "BytePS-C."): 205,
    ("ugatit", "HiTopKComm"): 50,
    ("ugatit", "HiPress"): 35,
}


class Fig12(Study):
    """Predicted by the planner; equal parameters give equal outcomes."""

    name: Literal["espresso-fig12"] = "espresso-fig12"
    panels: tuple[Panel, ...] = several(
        (("bert-base", "randomk"), ("gpt2", "efsignsgd"), ("ugatit", "dgc"))
    )
    machines: tuple[Machines, ...] = several((1, 2, 4, 8))

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and scheme on the largest number of machines."""
        return espresso_throughput.outcome("12", "nvlink-100g", self.panels, self.machines, PAPER)
