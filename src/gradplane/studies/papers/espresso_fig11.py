"""Espresso, figure 11 and table 4: the models' tensors, their sizes, and how many are equal."""

from collections import Counter
from typing import Any, Literal

from gradplane.planner.inputs import Model, load
from gradplane.studies import plot
from gradplane.studies.papers.espresso_table5 import MODELS, ModelName
from gradplane.studies.study import Study, StudyOutcome, several

PAPER_MB = {
    "vgg16": 528,
    "resnet101": 170,
    "ugatit": 2559,
    "bert-base": 420,
    "gpt2": 475,
    "lstm": 328,
}
PAPER_TENSORS = {
    "vgg16": 32,
    "resnet101": 314,
    "ugatit": 148,
    "bert-base": 207,
    "gpt2": 148,
    "lstm": 10,
}


class Fig11(Study):
    """Counted in the shipped models, whose tensors are those of the architectures."""

    name: Literal["espresso-fig11"] = "espresso-fig11"
    models: tuple[ModelName, ...] = several(MODELS)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model."""
        values = [_row(model) for model in self.models]
        return StudyOutcome(
            title="Espresso, table 4 and figure 11: sizes of tensors",
            head=("model", "MB", "paper's MB", "tensors", "paper's tensors", "sizes", "most equal"),
            rows=tuple(tuple(str(cell) for cell in row.values()) for row in values),
            notes=(
                "MB are 2^20 bytes of float32 values. `sizes`: how many different ones there are;"
                " `most equal`: the tensors of the most frequent size.",
                "The paper says of BERT-base that its tensors have only a few different sizes, so"
                " that few combinations are left for Algorithm 2. Where they would differ: the"
                " figure's bars are not in our copy.",
            ),
            values=values,
            figure=plot.pairs(
                [row["model"] for row in values],
                [float(row["mb"]) for row in values],
                [float(row["paper_mb"]) for row in values],
                "MB",
                log=True,
            ),
        )


def _row(model: ModelName) -> dict[str, Any]:
    sizes = Counter(tensor.values for tensor in load(Model, model).tensors)
    return {
        "model": model,
        "mb": round(4 * sum(n * count for n, count in sizes.items()) / 2**20),
        "paper_mb": PAPER_MB[model],
        "tensors": sum(sizes.values()),
        "paper_tensors": PAPER_TENSORS[model],
        "sizes": len(sizes),
        "most_equal": max(sizes.values()),
    }
