"""Espresso, figure 16: accuracy and time of whole trainings under a plan."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

from matplotlib.figure import Figure
from pydantic import Field

from gradplane._whole_files import write_whole
from gradplane.experiment.loading import load
from gradplane.hosts.training import models
from gradplane.planner.experiment_file import experiment
from gradplane.planner.inputs import Gradient, Model
from gradplane.planner.planning import RESTRICTED, Plan, plan, scaled
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.studies import parallel, plot
from gradplane.studies.espresso import BF16, FP32, HALF, Case
from gradplane.studies.papers.espresso_run import Network, SystemName
from gradplane.studies.papers.espresso_table5 import Codec, ModelName
from gradplane.studies.repeated import Estimate
from gradplane.studies.study import Study, StudyOutcome, several

Width = Annotated[int, Field(strict=True, ge=1)]
Rate = Annotated[float, Field(gt=0)]

PIXELS, DIGITS = 64, 10  # of scikit-learn's handwritten digits
SCHEMES: Mapping[str, tuple[str, ...]] = {
    FP32: ("compressions<=0",),
    BF16: ("compress=all",),
    "as HiPress": RESTRICTED["like HiPress"],
    "plan": (),
}
"""The constraints on each scheme's options; BF16's codec is bfloat16."""

PAPER = {"bert-base": (1.55, 0.0), "resnet101": (1.23, -0.08)}
"""The speed-up of Espresso's trainings, and the points of accuracy that they gained."""


@dataclass(frozen=True)
class Scheme:
    """The trainings under one plan: each one's final test accuracy, and seconds an iteration.

    compressed: how many of the tensors are compressed at least once."""

    name: str
    compressed: int
    tensors: int
    accuracies: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def accuracy(self) -> Estimate:
        return Estimate.of(self.accuracies)

    @property
    def time(self) -> float:
        """The mean seconds of an iteration."""
        return fmean(self.seconds)


Groups = dict[tuple[str, str], list[Scheme]]
"""The schemes by model and system."""


class Fig16(Study):
    """A perceptron learns handwritten digits under plans, packet by packet.

    It stands for `model`: its tensors take that model's time, in proportion to their values, and
    links and codec are as much slower as it is smaller. DGC keeps what it does not send; the
    momentum is the optimizer's."""

    name: Literal["espresso-fig16"] = "espresso-fig16"
    models: tuple[ModelName, ...] = Field(default=("bert-base", "resnet101"), strict=False)
    codec: Codec = "dgc"
    systems: tuple[SystemName, ...] = Field(default=("nvlink-100g", "pcie-25g"), strict=False)
    machines: Annotated[int, Field(strict=True, ge=2, le=16)] = 2
    gpus: Annotated[int, Field(strict=True, ge=2, le=8)] = 2
    hidden: tuple[Width, ...] = several((64, 32))
    epochs: Annotated[int, Field(strict=True, ge=1)] = 12
    batch: Annotated[int, Field(strict=True, ge=1)] = 16
    lr: Rate = 0.05
    momentum: float = Field(default=0.9, ge=0, lt=1)
    repetitions: Annotated[int, Field(strict=True, ge=1)] = 3
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each system and scheme: the paper's BERT-base is on NVLink's machines,
        its ResNet101 on those with PCIe."""
        pairs = list(zip(self.models, self.systems, strict=True))
        cases = [(self, m, s, name, seed) for m, s in pairs for name in SCHEMES]
        found = parallel.each(Fig16.scheme, cases, "training", alone=self.net == "mininet")
        groups: Groups = {
            pair: found[at : at + len(SCHEMES)]
            for pair, at in zip(pairs, range(0, len(found), len(SCHEMES)), strict=True)
        }
        return StudyOutcome(
            title=f"Espresso, figure 16: trainings under plans, {self.codec}",
            head=("standing for", "scheme", "compressed", "accuracy, %", "speed-up", "the paper's"),
            rows=tuple(
                _cells(model, scheme, schemes[0])
                for (model, _), schemes in groups.items()
                for scheme in schemes
            ),
            notes=self._notes(groups),
            values=[
                {"model": model, "system": system, "scheme": one.name}
                | {"compressed": one.compressed, "accuracies": one.accuracies}
                | {"seconds": one.seconds, "paper": PAPER.get(model)}
                for (model, system), schemes in groups.items()
                for one in schemes
            ],
            figure=_figure(groups),
        )

    def scheme(self, model: str, system: str, name: str, seed: int) -> Scheme:
        """Plan, and train under the plan with each seed."""
        planned = self.planned(model, system, name)
        trained = [self._train(planned, seed + r) for r in range(self.repetitions)]
        accuracies, seconds = zip(*trained, strict=True)
        compressed = sum(row.option.compressions > 0 for row in planned.rows)
        return Scheme(name, compressed, len(planned.rows), accuracies, seconds)

    def planned(self, model: str, system: str, name: str) -> Plan:
        """Return a scheme's plan of the perceptron in the model's place."""
        constraints, case = SCHEMES[name], Case.of(model, self.codec, system, self.machines)
        if name == BF16:
            case = case._replace(compression=HALF)
        own = case.system.model_copy(update={"gpus": self.gpus, "servers": 0})
        built = models.mlp(PIXELS, DIGITS, self.hidden)
        _, compression, slower = scaled(case.model, case.compression, own, built.size)
        computing = sum(tensor.compute for tensor in case.model.tensors)
        tensors = tuple(
            Gradient(name=t.name, values=t.size, compute=computing * t.size / built.size)
            for t in reversed(built.tensors)
        )
        stands = Model(
            name=f"a perceptron for {model}", forward=case.model.forward, tensors=tensors
        )
        if "shape=hierarchical" not in constraints:
            constraints = (*constraints, "shape=hierarchical")
        if compression.codec == "dgc":  # whose own momentum would come on top of the optimizer's
            parameters = {**compression.parameters, "momentum": 0.0}
            compression = compression.model_copy(update={"parameters": parameters})
        return plan(stands, compression, slower, constraints)

    def _train(self, planned: Plan, seed: int) -> tuple[float, float]:
        """Return the final test accuracy and the mean seconds of an iteration."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_whole(folder / "plan.json", planned.to_json())
            write_whole(folder / "experiment.toml", experiment(planned, "plan.json"))
            settings = (
                f'job.model={{name="mlp", hidden={list(self.hidden)}}}',
                'job.data={name="digits"}',
                f"job.epochs={self.epochs}",
                f"job.batch={self.batch}",
                f"job.lr={self.lr}",
                f"job.momentum={self.momentum}",
            )
            made = load(folder / "experiment.toml", settings, seed=seed)
            run_experiment.measure(made, folder, self.net)
            rounds = list(run_folder.read_lines(folder / run_folder.METRICS))
        *_, last = (line for line in rounds if "test_accuracy" in line)
        times = [(line["finished"] - line["started"]) / 1e9 for line in rounds]
        return last["test_accuracy"], fmean(times)

    def _notes(self, groups: Groups) -> tuple[str, ...]:
        lost = max(
            100 * (schemes[0].accuracy.mean - one.accuracy.mean)
            for schemes in groups.values()
            for one in schemes
        )
        return (
            f"At most {max(lost, 0):.1f} points of accuracy are lost. Speed-ups are over FP32, in"
            " the mean time of an iteration: forward and backward propagation, codecs and packets."
            " BF16 sends every tensor in 16 bits on all links; to convert them takes no time.",
            "The paper: BERT-base on 8 machines of 8 V100 with NVLink is fine-tuned 1.55 times as"
            " fast, with the same F1; ResNet101 on machines with PCIe is trained 1.23 times as fast"
            " to 77.10 instead of 77.18 %.",
            f"Why they differ: {self.machines} machines of {self.gpus} GPUs, a perceptron on digits"
            " in the place of each model, which has few tensors of one kind, and times of"
            " computation and codecs of ours.",
        )


def _cells(model: str, scheme: Scheme, plain: Scheme) -> tuple[str, ...]:
    faster, gained = PAPER.get(model, (0.0, 0.0))
    paper = f"{faster:.2f}, {gained:+.2f} points" if scheme.name == "plan" and faster else "-"
    return (
        *(model, scheme.name, f"{scheme.compressed} of {scheme.tensors}"),
        *(scheme.accuracy.points, f"{plain.time / scheme.time:.2f}", paper),
    )


def _figure(groups: Groups) -> Figure:
    speeds = {
        f"{model}\n{scheme.name}": schemes[0].time / scheme.time
        for (model, _), schemes in groups.items()
        for scheme in schemes
    }
    return plot.stacks(list(speeds), {"speed-up": list(speeds.values())}, "times as fast as FP32")
