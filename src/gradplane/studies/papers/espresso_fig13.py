"""Espresso, figure 13: throughput of three models, PCIe and 25 Gbit/s."""

from typing import Literal

from gradplane.studies.espresso_throughput import Panel, Throughput
from gradplane.studies.study import StudyOutcome, several

PAPER = {
    ("lstm", "BytePS-C."): 101,
    ("lstm", "HiTopKComm"): 73,
    ("lstm", "HiPress"): 77,
    ("vgg16", "FP32"): 269,
    ("vgg16", "BytePS-C."): 357,
    ("vgg16", "HiPress"): 55,
    ("resnet101", "FP32"): 20,
    ("resnet101", "BytePS-C."): 18,
    ("resnet101", "HiPress"): 24,
}


class Fig13(Throughput):
    """Predicted by the planner; equal parameters give equal outcomes."""

    name: Literal["espresso-fig13"] = "espresso-fig13"
    panels: tuple[Panel, ...] = several(
        (("lstm", "dgc"), ("vgg16", "efsignsgd"), ("resnet101", "dgc"))
    )

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and scheme on the largest number of machines."""
        return self.outcome("13", "pcie-25g", PAPER)
