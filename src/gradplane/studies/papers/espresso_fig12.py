"""Espresso, figure 12: throughput of three models, NVLink and 100 Gbit/s."""

from typing import Literal

from gradplane.studies.espresso_throughput import Panel, Throughput
from gradplane.studies.study import StudyOutcome, several

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


class Fig12(Throughput):
    """Predicted by the planner; equal parameters give equal outcomes."""

    name: Literal["espresso-fig12"] = "espresso-fig12"
    panels: tuple[Panel, ...] = several(
        (("bert-base", "randomk"), ("gpt2", "efsignsgd"), ("ugatit", "dgc"))
    )

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and scheme on the largest number of machines."""
        return self.outcome("12", "nvlink-100g", PAPER)
