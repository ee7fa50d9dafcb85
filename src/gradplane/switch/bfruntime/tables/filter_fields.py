"""The fields of low-pass filters and weighted random early drop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gradplane.switch.runtime.filters import FilterConfig

Values = dict[str, Any]


def _lpf_config(values: Mapping[str, Any]) -> FilterConfig:
    return FilterConfig(
        values["$LPF_SPEC_GAIN_TIME_CONSTANT_NS"],
        values["$LPF_SPEC_DECAY_TIME_CONSTANT_NS"],
        values["$LPF_SPEC_TYPE"] == "RATE",
        values["$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"],
    )


def _lpf_values(config: FilterConfig | None) -> Values:
    return {
        "$LPF_SPEC_TYPE": "RATE" if config is not None and config.rate else "SAMPLE",
        "$LPF_SPEC_GAIN_TIME_CONSTANT_NS": 0.0 if config is None else config.gain,
        "$LPF_SPEC_DECAY_TIME_CONSTANT_NS": 0.0 if config is None else config.decay,
        "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR": 0 if config is None else config.scale,
    }


def _wred_config(values: Mapping[str, Any]) -> FilterConfig:
    constant = values["$WRED_SPEC_TIME_CONSTANT_NS"]
    return FilterConfig(
        constant, constant, low=values["$WRED_SPEC_MIN_THRESH_CELLS"],
        high=values["$WRED_SPEC_MAX_THRESH_CELLS"],
        most=values["$WRED_SPEC_MAX_PROBABILITY"],
    )  # fmt: skip


def _wred_values(config: FilterConfig | None) -> Values:
    return {
        "$WRED_SPEC_TIME_CONSTANT_NS": 0.0 if config is None else config.gain,
        "$WRED_SPEC_MIN_THRESH_CELLS": 0 if config is None else config.low,
        "$WRED_SPEC_MAX_THRESH_CELLS": 0 if config is None else config.high,
        "$WRED_SPEC_MAX_PROBABILITY": 0.0 if config is None else config.most,
    }


@dataclass(frozen=True, slots=True)
class FilterFields:
    """The fields of one kind of filter: a config of their values, and their values in a config."""

    config: Callable[[Mapping[str, Any]], FilterConfig]
    values: Callable[[FilterConfig | None], Values]

    def changed(self, old: FilterConfig | None, given: Mapping[str, Any]) -> FilterConfig | None:
        """Return a config with the given fields changed, the old one if none is given; raises
        TableError if it is none."""
        known = self.values(old)
        if not known.keys() & given.keys():
            return old
        return self.config({**known, **given})


LPF = FilterFields(_lpf_config, _lpf_values)
WRED = FilterFields(_wred_config, _wred_values)
FIELDS = {"lpf": LPF, "direct_lpf": LPF, "wred": WRED, "direct_wred": WRED}
"""By the kind of the instance."""
