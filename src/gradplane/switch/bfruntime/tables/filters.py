"""Low-pass filters and weighted random early drop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.arrays import ArrayTable
from gradplane.switch.bfruntime.tables.control_table import Scope, Undo
from gradplane.switch.runtime.filters import Filter, FilterConfig


class FilterTable(ArrayTable):
    """A filter's cells; `clock`, in ns, starts them. A write sets all fields of a cell."""

    def __init__(self, schema: TableSchema, filter: Filter, clock: Callable[[], int]) -> None:
        super().__init__(schema)
        self.filter = filter
        self._clock = clock

    @abstractmethod
    def config(self, values: dict[str, Any]) -> FilterConfig: ...

    @abstractmethod
    def values(self, config: FilterConfig | None) -> dict[str, Any]: ...

    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        old = self.filter.read(index)
        self.filter.write(index, self.config({**self.values(old), **data.values}), self._clock())
        return lambda: self.filter.write(index, old, self._clock())

    def read(self, scope: Scope, index: int) -> Data:
        return Data(None, self.values(self.filter.read(index)))

    def initialise(self, scope: Scope, index: int) -> Undo:
        old = self.filter.read(index)
        self.filter.write(index, None)
        return lambda: self.filter.write(index, old, self._clock())


class LpfTable(FilterTable):
    def config(self, values: dict[str, Any]) -> FilterConfig:
        return FilterConfig(
            values["$LPF_SPEC_GAIN_TIME_CONSTANT_NS"],
            values["$LPF_SPEC_DECAY_TIME_CONSTANT_NS"],
            values["$LPF_SPEC_TYPE"] == "RATE",
            values["$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"],
        )

    def values(self, config: FilterConfig | None) -> dict[str, Any]:
        return {
            "$LPF_SPEC_TYPE": "RATE" if config is not None and config.rate else "SAMPLE",
            "$LPF_SPEC_GAIN_TIME_CONSTANT_NS": 0.0 if config is None else config.gain,
            "$LPF_SPEC_DECAY_TIME_CONSTANT_NS": 0.0 if config is None else config.decay,
            "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR": 0 if config is None else config.scale,
        }


class WredTable(FilterTable):
    def config(self, values: dict[str, Any]) -> FilterConfig:
        constant = values["$WRED_SPEC_TIME_CONSTANT_NS"]
        return FilterConfig(
            constant, constant, low=values["$WRED_SPEC_MIN_THRESH_CELLS"],
            high=values["$WRED_SPEC_MAX_THRESH_CELLS"],
            most=values["$WRED_SPEC_MAX_PROBABILITY"],
        )  # fmt: skip

    def values(self, config: FilterConfig | None) -> dict[str, Any]:
        return {
            "$WRED_SPEC_TIME_CONSTANT_NS": 0.0 if config is None else config.gain,
            "$WRED_SPEC_MIN_THRESH_CELLS": 0 if config is None else config.low,
            "$WRED_SPEC_MAX_THRESH_CELLS": 0 if config is None else config.high,
            "$WRED_SPEC_MAX_PROBABILITY": 0.0 if config is None else config.most,
        }
