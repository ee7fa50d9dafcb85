"""Gradient compression: one file per codec, found by its name.

    from gradplane import codecs
    c = codecs.get("thc", bits=4, granularity=30, p=1 / 32)
    data, state = c.encode(x, shared=c.local(x), seed=codecs.key(1, "round", 7), worker=3)
    y = c.decode(data, x.size)

The contract is in `Codec`; `names()` lists the codecs. Imports no other room of gradplane. Modules
with a leading underscore are shared parts; every other module is a codec.
"""

from typing import TYPE_CHECKING, Any

from gradplane.codecs._base import Codec, CodecError, Context, Partition
from gradplane.codecs._feedback import ErrorFeedback
from gradplane.codecs._local_steps import LocalSteps
from gradplane.codecs._network_limits import (
    ERROR_BOUNDS,
    SUM_WIDTHS,
    ErrorBound,
    SumWidth,
    code_overflow,
    sum_overflow,
)
from gradplane.codecs._per_tensor import PerTensor
from gradplane.codecs._random import key
from gradplane.codecs._registry import get, names
from gradplane.codecs._table import optimal_table

if TYPE_CHECKING:
    from gradplane.codecs._adaptive import AdaptiveADT

__all__ = [
    "ERROR_BOUNDS",
    "SUM_WIDTHS",
    "AdaptiveADT",
    "Codec",
    "CodecError",
    "Context",
    "ErrorBound",
    "ErrorFeedback",
    "LocalSteps",
    "Partition",
    "PerTensor",
    "SumWidth",
    "code_overflow",
    "get",
    "key",
    "names",
    "optimal_table",
    "sum_overflow",
]


def __getattr__(name: str) -> Any:
    """Import on first use what needs compiled kernels, which take long to import."""
    if name == "AdaptiveADT":
        from gradplane.codecs._adaptive import AdaptiveADT

        return AdaptiveADT
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
