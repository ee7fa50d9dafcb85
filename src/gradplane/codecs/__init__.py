"""Gradient compression: one file per codec, found by its name.

    from gradplane import codecs
    c = codecs.get("thc", bits=4, granularity=30, p=1 / 32)
    data, state = c.encode(x, shared=c.local(x), seed=codecs.key(1, "round", 7), worker=3)
    y = c.decode(data, x.size)

The contract is in `Codec`; `names()` lists the codecs. Imports no other room of gradplane. Modules
with a leading underscore are shared parts; every other module is a codec. The folder policies/
holds public modules that are not codecs.
"""

import dataclasses
import importlib
import inspect
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from gradplane import _plugins
from gradplane._lazy_names import lazy_names
from gradplane._plugins import LoadError, is_reference, load, own
from gradplane._suggestions import did_you_mean, quoted
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Partition,
    Reader,
    Rounds,
    State,
    check_int,
)
from gradplane.codecs._feedback import ErrorFeedback
from gradplane.codecs._local_steps import LocalSteps
from gradplane.codecs._network_limits import (
    CODE_WIDTHS,
    ERROR_BOUNDS,
    SUM_WIDTHS,
    CodeWidth,
    ErrorBound,
    SumWidth,
    code_bits,
    code_overflow,
    sum_overflow,
)
from gradplane.codecs._own_sums import check_table, watch_sums
from gradplane.codecs._per_tensor import PerTensor
from gradplane.codecs._random import key
from gradplane.codecs._table import optimal_table

if TYPE_CHECKING:
    from gradplane.codecs._adaptive import AdaptiveADT
    from gradplane.codecs._recorded import RecordedGradients
    from gradplane.codecs._rotation import rotated, rotated_size, unrotated
    from gradplane.codecs.policies.awp import AWP


__all__ = [
    "AWP", "CODE_WIDTHS", "ERROR_BOUNDS", "SUM_WIDTHS", "AdaptiveADT", "CodeWidth", "Codec",
    "CodecError", "Context", "ErrorBound", "ErrorFeedback", "Floats", "LocalSteps", "Partition",
    "PerTensor", "Reader", "RecordedGradients", "Rounds", "State", "SumWidth", "check_int",
    "code_bits", "code_overflow", "get", "key", "names", "optimal_table", "rotated", "rotated_size",
    "sum_overflow", "unrotated",
]  # fmt: skip


__getattr__ = lazy_names(  # what few need, or what needs kernels, which take long to import
    __name__,
    {"AWP": "policies.awp", "AdaptiveADT": "_adaptive", "RecordedGradients": "_recorded"}
    | dict.fromkeys(("rotated", "rotated_size", "unrotated"), "_rotation"),
)


def names() -> list[str]:
    """Return the names that get() knows, sorted, without importing the codecs."""
    return [name for name in _plugins.names(__path__) if not name.startswith("_")]


def get(name: str, **params: Any) -> Codec:
    """Return the codec of that name, or a user's ("module:object", "file.py").

    CodecError lists what exists if a name is unknown; LoadError for a user's that is none."""
    known = names()
    if is_reference(name):
        kind: type[Codec] = load("codec", name, Codec)
        _check_own(name, kind, params)
    elif name not in known:
        listed = f"there are {', '.join(known)}, {own(name)}"
        raise CodecError(f"no codec {_hinted(name, known)} {listed}")
    else:
        kind = _load(name)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for param in params:
        if param not in known:
            listed = f"its parameters: {', '.join(known)}" if known else "it has none"
            raise CodecError(f"{name} has no parameter {_hinted(param, known)} {listed}")
    codec = kind(**params)
    if is_reference(name) and codec.summable:
        check_table(codec)
    return codec


_OTHER_NAMES = {  # in papers and PyTorch
    "3lc": "threelc",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "int32": "switchml",
    "a2dtwp": "adt",
    "mxfp4": "mxfp",
    "mxfp6": "mxfp",
    "mxfp8": "mxfp",
    "zero++": "zeropp",
}
_METHODS = {"max_size": ("n",), "_encode": ("x", "context"), "_decode": ("data", "n")}
"""The methods that every codec has to define, with the arguments of each."""
_CHECKING = {"local": "state", "encode": "context", "decode": "n", "codes": "context"}
"""The methods that check their arguments and call the one with an underscore, with what it takes
behind the vector or the data."""
_SUMMED = ("table", "sum_bits", "partitions", "_codes", "decode_sum")
"""The further attributes of a codec whose codes may be summed."""


def _check_own(name: str, kind: type[Codec], params: Collection[str]) -> None:
    """Raise LoadError unless a user's class can be a codec with these parameters."""
    made = getattr(kind, "__dataclass_params__", None)
    if made is None or not made.frozen:
        raise LoadError(
            f"codec {name}: found the class {kind.__name__}; expected a frozen dataclass:"
            " write @dataclass(frozen=True) before it"
        )
    for method, arguments in _METHODS.items():
        expected = f"def {method}({', '.join(('self', *arguments))})"
        if method in kind.__abstractmethods__:
            raise LoadError(f"codec {name}: {kind.__name__} has no {method}: write {expected}")
        signature = inspect.signature(getattr(kind, method))
        try:
            signature.bind(None, *arguments)
        except TypeError:
            raise LoadError(
                f"codec {name}: {kind.__name__}.{method}{signature}: write {expected}"
            ) from None
    _check_overridden(name, kind)
    watch_sums(kind)
    lacking = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in params
        and field.default is field.default_factory is dataclasses.MISSING
    ]
    if lacking:
        raise LoadError(
            f"codec {name} needs {', '.join(lacking)}: give the parameter, or the field a default"
        )


def _check_overridden(name: str, kind: type[Codec]) -> None:
    """Raise LoadError if a user's class defines too much, or half of what sums need."""
    for method, last in _CHECKING.items():
        if getattr(kind, method) is not getattr(Codec, method):
            expected = f"def _{method}(self, {'data' if method == 'decode' else 'x'}, {last})"
            raise LoadError(
                f"codec {name}: {kind.__name__}.{method} is what calls _{method}, and is not asked"
                f" everywhere: write {expected}"
            )
    if kind.summable is Codec.summable:
        return
    for member in _SUMMED:
        if getattr(kind, member) is getattr(Codec, member):
            raise LoadError(
                f"codec {name}: {kind.__name__} is summable and has no {member}: it needs"
                f" {', '.join(_SUMMED)}"
            )


def _load(name: str) -> type[Codec]:
    module = importlib.import_module(f"gradplane.codecs.{name}")
    kinds = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Codec)
        and value.__module__ == module.__name__
    ]
    assert len(kinds) == 1, f"{module.__file__} defines {len(kinds)} codecs, expected one"
    return kinds[0]


def _hinted(word: str, known: list[str]) -> str:
    hint = did_you_mean(_OTHER_NAMES.get(word.lower(), word), known, quoted)
    return f"{quoted(word)}, {hint}" if hint else f"{quoted(word)};"
