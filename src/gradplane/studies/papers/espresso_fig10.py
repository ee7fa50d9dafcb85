"""Espresso, figure 10: what compression saves of communication over what it takes, by size."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane.planner.costs import CostModel
from gradplane.planner.options import Option, tree
from gradplane.studies import plot
from gradplane.studies.espresso import Case
from gradplane.studies.papers.espresso_table5 import CODECS, Codec
from gradplane.studies.study import Study, StudyOutcome, number, several

Megabytes = Annotated[float, Field(gt=0)]
_PLAIN = "reduce-scatter@intra1 > allreduce@inter > allgather@intra2"
_COMPRESSED = (
    "reduce-scatter@intra1 > compress:gpu > allgather*@inter > decompress:gpu > allgather@intra2"
)


class Fig10(Study):
    """By the planner's costs: NVLink, 100 Gbit/s, 64 GPUs; compressed between machines, on GPUs."""

    name: Literal["espresso-fig10"] = "espresso-fig10"
    codecs: tuple[Codec, ...] = several(CODECS)
    megabytes: tuple[Megabytes, ...] = several((0.0625, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0))

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each size."""
        sizes = list(self.megabytes)
        ratios = {str(codec): [_ratio(codec, size) for size in sizes] for codec in self.codecs}
        rising = all(sorted(found) == found for found in ratios.values())
        return StudyOutcome(
            title="Espresso, figure 10: communication saved over compression time",
            head=("MB", *self.codecs),
            rows=tuple(
                (f"{size:g}", *(number(ratios[codec][n]) for codec in self.codecs))
                for n, size in enumerate(sizes)
            ),
            notes=(
                f"The ratio {'grows' if rising else 'does not always grow'} with the size, as the"
                " paper says: small tensors pay the launches of kernels. Above 1 compression by"
                " itself is worth it.",
                "Why the numbers would differ: the figure's are not in our copy, and the times of"
                " the codecs are ours.",
            ),
            values=_plain(sizes, ratios),
            figure=plot.curves({codec: (sizes, found) for codec, found in ratios.items()}, *_AXES),
        )


_AXES = ("MB", "saved over spent")


def _option(text: str) -> Option:
    return next(option for option in tree() if str(option) == text)


def _ratio(codec: str, megabytes: float) -> float:
    """Return the communication time that is saved over the compression time."""
    case = Case.of("vgg16", codec, "nvlink-100g")
    costs, values = CostModel(case.compression, case.system), round(megabytes * 2**20 / 4)
    plain = sum(seconds for *_, seconds in costs.task_times(_option(_PLAIN), values))
    times = costs.task_times(_option(_COMPRESSED), values)
    coding = sum(seconds for task, _, seconds in times if task.kind in ("comp", "decomp"))
    return (plain - (sum(seconds for *_, seconds in times) - coding)) / coding


def _plain(sizes: list[float], ratios: dict[str, list[float]]) -> list[dict[str, Any]]:
    return [
        {"codec": codec, "megabytes": size, "ratio": ratio, "paper": None}
        for codec, found in ratios.items()
        for size, ratio in zip(sizes, found, strict=True)
    ]
