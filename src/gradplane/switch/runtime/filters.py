"""Low-pass filters and weighted random early drop: averages that forget with time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradplane.switch.runtime.control_errors import TableError

CELL = ("configured", "value", "last", "gain", "decay", "rate", "low", "high", "most", "scale")
"""The numbers of a filter's cell, all float64."""

_AT = {name: i for i, name in enumerate(CELL)}


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """The settings of a filter: time constants in ns, for values above and below the average.

    rate: sum up values that decay, instead of an average. scale: bits by which results are shifted
    right. low, high, most: for early drop, the averages between which packets are dropped with
    growing probability, and the greatest of it.
    """

    gain: float
    decay: float
    rate: bool = False
    scale: int = 0
    low: int = 0
    high: int = 0
    most: float = 0.0

    def __post_init__(self) -> None:
        if not (self.gain > 0 and self.decay > 0):
            what = f"time constants {self.gain} and {self.decay} ns: both must be above 0"
            raise TableError("INVALID_ARGUMENT", f"filter: {what}")
        if not 0 <= self.most <= 1 or self.low > self.high:
            what = f"thresholds {self.low} to {self.high}, probability {self.most}"
            raise TableError("INVALID_ARGUMENT", f"filter: {what}: expected low to high, 0 to 1")
        if not 0 <= self.scale < 32:
            raise TableError("INVALID_ARGUMENT", f"filter: scale {self.scale} is not 0 to 31")


class Filter:
    """An array of filters. Without a config the result is the value itself, and nothing drops."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.cells = np.zeros((max(size, 1), len(CELL)), dtype=np.float64)
        self._configs: dict[int, FilterConfig] = {}

    def read(self, index: int) -> FilterConfig | None:
        """Return a cell's config; raises TableError OUT_OF_RANGE."""
        self._check(index)
        return self._configs.get(index)

    def write(self, index: int, config: FilterConfig | None, now: int = 0) -> None:
        """Set a cell's config (None: none) and start anew at a time in ns."""
        self._check(index)
        self.cells[index] = 0
        self._configs.pop(index, None)
        if config is not None:
            self._configs[index] = config
            c = config
            self.cells[index] = (
                1, 0, now, c.gain, c.decay, c.rate, c.low, c.high, c.most, c.scale
            )  # fmt: skip

    def clear(self) -> None:
        """Remove the config of all cells."""
        self.cells.fill(0)
        self._configs.clear()

    def execute(self, index: int, value: int, now: int) -> int:
        """Filter a value; return the average or, beyond the end or unconfigured, the value."""
        if not 0 <= index < self.size or not self.cells[index, _AT["configured"]]:
            return value
        return int(self._average(index, value, now)) >> int(self.cells[index, _AT["scale"]])

    def drops(self, index: int, value: int, now: int, draw: int) -> bool:
        """Filter a value; return whether the packet drops. draw: 64 random bits."""
        if not 0 <= index < self.size or not self.cells[index, _AT["configured"]]:
            return False
        average = self._average(index, value, now)
        low, high, most = self.cells[index, _AT["low"] : _AT["scale"]].tolist()
        if average < low:
            return False
        if average >= high:
            return True
        return bool((draw >> 11) * 2.0**-53 * (high - low) < most * (average - low))

    def _average(self, index: int, value: int, now: int) -> float:
        cell = self.cells[index]
        former, last = float(cell[1]), float(cell[2])
        passed = float(now) - last
        if cell[_AT["rate"]]:
            average = former * math.exp(-passed / float(cell[_AT["decay"]])) + value
        else:
            constant = float(cell[_AT["gain" if value > former else "decay"]])
            average = former + (value - former) * (1.0 - math.exp(-passed / constant))
        cell[1], cell[2] = average, now
        return average

    def _check(self, index: int) -> None:
        if not 0 <= index < self.size:
            what = f"index {index} is not within 0 to {self.size - 1}"
            raise TableError("OUT_OF_RANGE", f"filter {self.name}: {what}")
