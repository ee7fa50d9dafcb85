"""Espresso, table 1: scaling factors when every tensor is compressed, with GPUs or with CPUs."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.planner.planning import quickest_alone
from gradplane.studies import plot
from gradplane.studies.espresso import BF16, Case, halved
from gradplane.studies.papers.espresso_table5 import Codec, ModelName
from gradplane.studies.study import Study, StudyOutcome, several

Row = Annotated[tuple[ModelName, Codec, Literal["nvlink-100g", "pcie-25g"]], Field(strict=False)]
ROWS: tuple[Row, ...] = (
    ("gpt2", "dgc", "nvlink-100g"),
    ("bert-base", "efsignsgd", "nvlink-100g"),
    ("lstm", "dgc", "pcie-25g"),
)
COLUMNS = {
    "FP32": ("compressions<=0",),
    "GPU": ("device=gpu", "compress=all", "compress=inter", "shape=hierarchical"),
    "CPU": ("device=cpu", "compress=all", "compress=inter", "shape=hierarchical"),
}
PAPER = {"gpt2": (0.58, 0.67, 0.64), "bert-base": (0.51, 0.55, 0.61), "lstm": (0.46, 0.43, 0.42)}


class Table1(Study):
    """Predicted by the planner: each tensor takes its own quickest option, 64 GPUs.

    The computing times are stretched until FP32 has the paper's factor."""

    name: Literal["espresso-table1"] = "espresso-table1"
    cases: tuple[Row, ...] = several(ROWS)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model with a codec on a system."""
        values = [_row(*case) for case in self.cases]
        longer = ", ".join(f"{row['stretch']:.1f}" for row in values)
        return StudyOutcome(
            title="Espresso, table 1: scaling factors without a plan, 64 GPUs",
            head=("model", "codec", "FP32", *(f"{name}, paper" for name in COLUMNS), BF16),
            rows=tuple(
                (
                    *(row["model"], row["codec"], f"{row['unstretched']:.2f}"),
                    *(
                        f"{ours:.2f}, {theirs:.2f}"
                        for ours, theirs in zip(row["factors"], row["paper"], strict=True)
                    ),
                    f"{row['half']:.2f}",
                )
                for row in values
            ),
            notes=(
                "A scaling factor is the computation's share of an iteration. The first column has"
                " our computing times, operations over a rate; in the others these are longer by a"
                f" factor ({longer}) that gives FP32 the paper's number. GPU and CPU compress every"
                " tensor between machines; BF16 sends 16 bits a value without compression.",
                "Why they differ: 475 MB in 8 machines take two times 38 ms at 100 Gbit/s, so a"
                " factor of 0.58 is no iteration of 80 tokens, for which we compute 9 ms; the"
                " paper's batches must be larger than its table 4 says. The codecs' times are ours"
                " (bytes over rates), and our GPUs compress faster than the paper's.",
            ),
            values=values,
            figure=plot.pairs(
                [f"{row['model']}\n{name}" for row in values for name in COLUMNS],
                [factor for row in values for factor in row["factors"]],
                [factor for row in values for factor in row["paper"]],
                "scaling factor",
            ),
        )


def _row(model: ModelName, codec: Codec, system: str) -> dict[str, Any]:
    case = Case.of(model, codec, system)
    stretch = _stretch(case, PAPER[model][0])
    slowed = _slowed(case, stretch)
    return {
        "model": model,
        "codec": codec,
        "system": system,
        "unstretched": _factor(case, COLUMNS["FP32"]),
        "stretch": stretch,
        "factors": [_factor(slowed, constraints) for constraints in COLUMNS.values()],
        "half": _factor(halved(slowed), COLUMNS["FP32"]),
        "paper": list(PAPER[model]),
    }


def _factor(case: Case, constraints: tuple[str, ...]) -> float:
    return case.computing / case.seconds(quickest_alone, constraints)


def _slowed(case: Case, stretch: float) -> Case:
    tensors = tuple(
        t.model_copy(update={"compute": stretch * t.compute}) for t in case.model.tensors
    )
    update = {"forward": stretch * case.model.forward, "tensors": tensors}
    return case._replace(model=case.model.model_copy(update=update))


def _stretch(case: Case, wanted: float) -> float:
    """Return by how much computation must be longer for FP32 to have the wanted factor."""
    low, high = 1e-2, 1e3
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        if _factor(_slowed(case, middle), COLUMNS["FP32"]) < wanted:
            low = middle
        else:
            high = middle
    return high
