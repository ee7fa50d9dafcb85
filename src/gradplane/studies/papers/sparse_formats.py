"""Baselines of today on sparse gradients: a model with a table of word vectors, beside bfloat16."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from gradplane.studies.papers.formats import Formats

_WORDS = "gradplane.studies.word_topics"


class SparseFormats(Formats):
    """A model that adds up word vectors learns the topics of texts, packet by packet, with each
    format: most rows of its table have a gradient of zero."""

    title: ClassVar[str] = "Baselines of today on sparse gradients: words"
    name: Literal["sparse-formats"] = "sparse-formats"  # type: ignore[assignment]
    lr: Annotated[float, Field(gt=0)] = 2.0
    momentum: float = Field(default=0.0, ge=0, lt=1)
    target: float = Field(default=0.85, gt=0, le=1)

    def job_keys(self) -> dict[str, Any]:
        """Return the job's keys, with what is learnt."""
        learnt = {"model": {"name": f"{_WORDS}:bag"}, "data": {"name": f"{_WORDS}:texts"}}
        return super().job_keys() | learnt
