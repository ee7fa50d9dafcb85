"""Espresso's plans run on the simulated network: predicted beside simulated times, and losses."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.studies import espresso_run, parallel, plot
from gradplane.studies.espresso import Case
from gradplane.studies.espresso_run import Network
from gradplane.studies.papers.espresso_table5 import MODELS, Codec, ModelName
from gradplane.studies.study import Study, StudyOutcome

SystemName = Literal["nvlink-100g", "pcie-25g", "switch-10g", "switch-25g", "tos-10g"]
SYSTEMS: tuple[SystemName, ...] = ("nvlink-100g", "pcie-25g", "switch-10g")


class PlansRun(Study):
    """Each model scaled to `values` values; a plan's steps run as real packets of real codecs."""

    name: Literal["espresso-run"] = "espresso-run"
    models: tuple[ModelName, ...] = Field(default=MODELS, min_length=1, strict=False)
    codec: Codec = "dgc"
    systems: tuple[SystemName, ...] = Field(default=SYSTEMS, min_length=1, strict=False)
    machines: Annotated[int, Field(strict=True, ge=1, le=16)] = 2
    gpus: Annotated[int, Field(strict=True, ge=1, le=8)] = 2
    values: Annotated[int, Field(strict=True, ge=1000)] = 1_000_000
    loss: Annotated[float, Field(ge=0, lt=0.5)] = 0.001
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and system, without losses and with them."""
        cases = [(self, m, s, seed) for m in self.models for s in self.systems]
        rows = parallel.each(PlansRun.row, cases, "plan")
        return StudyOutcome(
            title=f"Espresso: plans that run, {self.codec}, {self.machines} x {self.gpus} GPUs",
            head=("model", "system", "plan, ms", "run", "differ", "lossy", "waiting"),
            rows=tuple(
                (
                    row["model"],
                    row["system"],
                    f"{1e3 * row['predicted']:.2f}",
                    f"{1e3 * row['seconds']:.2f}",
                    f"{row['error']:+.1%}",
                    f"{1e3 * row['lossy']['seconds']:.2f}",
                    f"{row['overtaken']}, {row['lossy']['overtaken']}",
                )
                for row in rows
            ),
            notes=_notes(rows, self.values, self.loss),
            values=rows,
            figure=plot.stacks(
                [f"{row['model']}\n{row['system']}" for row in rows],
                {"run over plan": [row["seconds"] / row["predicted"] for row in rows]},
                "simulated over predicted time",
            ),
        )

    def row(self, model: str, system: str, seed: int) -> dict[str, Any]:
        """Return the plain values of a model on a system, without losses and with them."""
        case = Case.of(model, self.codec, system, self.machines)
        case = case._replace(system=case.system.model_copy(update={"gpus": self.gpus}))
        planned = espresso_run.made(case, self.values)
        plain = espresso_run.run(planned, self.net, 0.0, seed)
        lossy = espresso_run.run(planned, self.net, self.loss, seed)
        return {
            "model": model,
            "system": system,
            **espresso_run.values_of(planned, plain),
            "lossy": espresso_run.values_of(planned, lossy) | {"loss": self.loss},
            "paper": None,
        }


def _notes(rows: list[dict[str, Any]], values: int, loss: float) -> tuple[str, ...]:
    worst = max(rows, key=lambda row: abs(row["error"]))
    slower = [row["lossy"]["seconds"] / row["seconds"] - 1 for row in rows]
    before = sum(row["overtaken"] for row in rows)
    after = sum(row["lossy"]["overtaken"] for row in rows)
    steps = sum(row["steps"] for row in rows)
    return (
        f"Each model is scaled to {values:,} values, with links and codecs as much slower, so that"
        " computation, codecs and links take what they take at full size. Predicted and simulated"
        f" iterations differ by {abs(worst['error']):.1%} at most ({worst['model']},"
        f" {worst['system']}). The paper states no such comparison.",
        f"With {loss:.1%} of all packets lost, iterations take {min(slower):+.0%} to"
        f" {max(slower):+.0%} longer: a lost packet is sent again, and every later step of its"
        " link waits, since all workers keep the plan's order. Waiting are communications that"
        " were ready on a worker before one that the plan has earlier, and waited for it:"
        f" {before:,} without losses, {after:,} with them, of {steps:,}. A lost packet that no"
        " later one overtakes is sent again after a timeout, at least the time of the windows of a"
        " machine's GPUs, both ways, on the slowest"
        " link: the further a job is scaled down, the larger it is beside an iteration.",
    )
