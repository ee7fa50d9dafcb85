"""The kinds of tables in an experiment file."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table with the declared keys and no others; values are of the declared kind."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class OpenSection(BaseModel):
    """A table whose further keys are parameters of what its declared keys name."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    @property
    def args(self) -> dict[str, Any]:
        """The keys beside the declared ones."""
        return dict(self.__pydantic_extra__ or {})
