"""The axes of a sweep: `--over KEY=V1,V2,...`, each a key as in `--set` with TOML values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from gradplane.experiment.document import Setting, inline, parse_value
from gradplane.runs.sweeps.plan_file import SweepError

_SEEDS = re.compile(r"(?:(?:job|impairment|traffic)\.(?:\d+\.)?)?seed")
_OPENING, _CLOSING = "[{", "]}"
_FORM = "expected KEY=V1,V2,..., such as job.quorum=3,4"

Point = Mapping[str, Any]
"""A point of the grid: a value for each axis's key."""


@dataclass(frozen=True)
class Axis:
    """A key of the experiment and the values that it takes, plain ones as in a TOML file.

    Raises SweepError for no values, equal values, and for a seed's key."""

    key: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        where = f"--over {self.key}"
        if not self.key.strip():
            raise SweepError(f"--over: no key: {_FORM}")
        if _SEEDS.fullmatch(self.key):
            raise SweepError(f"{where}: every point runs under the same seeds: use --seeds N")
        if not self.values:
            raise SweepError(f"{where}: no values: {_FORM}")
        texts = [inline(value) for value in self.values]
        for text in texts:
            if texts.count(text) > 1:
                raise SweepError(f"{where}: {text} is given twice")

    @classmethod
    def parse(cls, text: str) -> "Axis":
        """Return the axis of a text KEY=V1,V2,...; brackets and quotes protect commas."""
        key, equals, values = text.partition("=")
        if not equals or not key.strip():
            raise SweepError(f"--over {text}: {_FORM}")
        pieces = divided(values) if values.strip() else []
        return cls(key.strip(), tuple(parse_value(piece) for piece in pieces))


def divided(text: str) -> list[str]:
    """Return the pieces of a text between its commas, outside of brackets and quotes."""
    pieces, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            escaped = quote == '"' and text[place - 1] == "\\"
            quote = quote if letter != quote or escaped else ""
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and not depth:
            pieces.append(text[start:place].strip())
            start = place + 1
    return [*pieces, text[start:].strip()]


def axes(over: Sequence[str] | Mapping[str, Sequence[Any]]) -> tuple[Axis, ...]:
    """Return the axes of `--over` texts, or of a mapping from keys to values.

    Raises SweepError for an invalid axis, and for a key that is given twice."""
    if isinstance(over, Mapping):
        found = tuple(Axis(key, _plain(key, values)) for key, values in over.items())
    else:
        found = tuple(Axis.parse(text) for text in over)
    keys = [axis.key for axis in found]
    for key in keys:
        if keys.count(key) > 1:
            raise SweepError(f"--over {key}: given twice: write all its values behind one --over")
    return found


def _plain(key: str, values: Any) -> tuple[Any, ...]:
    """Return a caller's values, NumPy's too, as plain ones."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise SweepError(f"over: {key} = {values!r}: expected a list of values")
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    return tuple(item.item() if hasattr(item, "item") else item for item in items)


def grid(found: Sequence[Axis]) -> list[Point]:
    """Return all points, the last axis's values changing fastest; without axes, one point."""
    keys = [axis.key for axis in found]
    return [
        dict(zip(keys, values, strict=True)) for values in product(*(axis.values for axis in found))
    ]


def settings(point: Point) -> list[Setting]:
    """Return the point as settings of an experiment."""
    return [Setting(f"{key}={inline(value)}", "--over") for key, value in point.items()]


def label(value: Any) -> str:
    """Return a value as tables and figures show it."""
    return value if isinstance(value, str) else inline(value)


def short_names(keys: Sequence[str]) -> list[str]:
    """Return for each key its last parts, as many as distinguish it from the others."""
    return [_short(key, [other for other in keys if other != key]) for key in keys]


def _short(key: str, others: Sequence[str]) -> str:
    parts = key.split(".")
    ends = (".".join(parts[start:]) for start in reversed(range(len(parts))))
    alone = (end for end in ends if not any(f".{key}".endswith(f".{end}") for key in others))
    return next(alone, key)
