"""Checks of users' codecs whose codes are summed: what their methods return, wherever it is asked
for. Shipped codecs are not checked."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradplane._plugins import own_methods, returned, returned_array
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Codes,
    Floats,
    Partition,
    State,
    check_state_returned,
    check_vector,
)


def check_table(codec: Codec) -> None:
    """Raise LoadError unless a codec's table is one."""
    table = codec.table
    right = isinstance(table, tuple) and all(type(number) is int for number in table)
    right = right and table[:1] == (0,) and all(a < b for a, b in zip(table, table[1:]))  # noqa: B905
    expected = "a tuple of int, strictly increasing from 0"
    returned(f"codec {codec.name}", "table", table, right, expected)


def watch_sums(kind: type[Codec]) -> None:
    """Check what the methods of a user's class return, for sums: LoadError, CodecError."""
    for owner, method in own_methods(kind, _CHECKS):
        setattr(owner, method.__name__, _checked(method, _CHECKS[method.__name__]))


def try_sums(codec: Codec, x: Floats, seed: int = 0) -> None:
    """Code and sum a vector as a job does, a partition at a time, so that a user's codec is
    checked. LoadError, CodecError."""
    codec.sum_bits(2)
    for part in codec.partitions(x.size):
        own = x[part.start : part.stop]
        shared = codec.local(own, codec.start(own.size))
        codes, _ = codec.codes(own, shared, seed, codec.start(own.size))
        codec.decode_sum(np.array(codec.table)[codes], own.size, 1, shared, seed)


def _checked(method: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        codec, *given = signature.bind(*arguments, **named).arguments.values()
        check(codec, found, *given)
        return found

    return checked


def _check_sum_bits(codec: Codec, found: int, workers: int) -> None:
    least = (workers * codec.table[-1]).bit_length()
    right = isinstance(found, int | np.integer) and found >= least
    expected = f"the bits of {workers} * {codec.table[-1]}, {least}"
    returned(f"codec {codec.name}", f"sum_bits({workers})", found, right, expected)


def _check_partitions(codec: Codec, found: tuple[Partition, ...], n: int) -> None:
    """Check that partitions cover values and lanes, one after another, none of them empty."""
    what, method = f"codec {codec.name}", f"partitions({n})"
    right = isinstance(found, tuple) and all(isinstance(part, Partition) for part in found)
    returned(what, method, found, right, "a tuple of Partition")
    value = lane = 0
    for number, part in enumerate(found):
        fits = value == part.start < part.stop <= n and part.lane == lane and part.lanes > 0
        if not fits and n:
            following = f"start={value}, stop from {value + 1} to {n}, lane={lane}, lanes from 1 on"
            expected = following if value < n else "none more, as the others have all values"
            raise CodecError(
                f"{what}: {method}[{number}] is {part}; expected {expected}"
                " (it has the values [start, stop) and the lanes [lane, lane + lanes))"
            )
        value, lane = part.stop, part.lane + part.lanes
    if value != n:
        raise CodecError(f"{what}: {method} covers {value} of the {n} values; expected all")
    if len(found) > 1:
        _check_alone(codec, {part.stop - part.start: part for part in found})


def _check_alone(codec: Codec, parts: dict[int, Partition]) -> None:
    """Check that each partition, which is coded as a vector of its own, is one partition then."""
    for size, part in parts.items():
        alone = codec.partitions(size)
        if len(alone) != 1 or alone[0].lanes != part.lanes:
            raise CodecError(
                f"codec {codec.name}: partitions({size}) is {alone}; expected one of"
                f" {part.lanes} lanes, like {part}: each is coded as a vector of its own"
            )


def _check_local(codec: Codec, found: Floats | None, x: Floats, state: State) -> None:
    if found is not None and codec.summable:
        shape = (len(codec.partitions(x.size)),)
        returned_array(f"codec {codec.name}", f"_local of {x.size} values", found, "float32", shape)


def _check_codes(codec: Codec, found: tuple[Codes, State], x: Floats, context: Any) -> None:
    what = f"codec {codec.name}"
    pair = isinstance(found, tuple) and len(found) == 2
    returned(what, "_codes", found, pair, "(codes, state), such as (codes, context.state)")
    check_state_returned(what, "_codes", found[1])
    returned_array(what, "_codes", found[0], "uint8", (codec.lanes(x.size),))
    most = int(found[0].max(initial=0))
    if most >= len(codec.table):
        raise CodecError(
            f"{what}: _codes returned the code {most}; expected codes below {len(codec.table)}, the"
            " length of the table"
        )


def _check_decode_sum(codec: Codec, found: Floats, sums: Any, n: int, *rest: Any) -> None:
    what, method = f"codec {codec.name}", f"decode_sum(sums, {n})"
    returned_array(what, method, found, "float32", (n,))
    try:
        check_vector(found)
    except CodecError as error:
        raise CodecError(f"{what}: {method}: {error}") from error


_CHECKS: dict[str, Callable[..., None]] = {
    "sum_bits": _check_sum_bits,
    "partitions": _check_partitions,
    "_local": _check_local,
    "_codes": _check_codes,
    "decode_sum": _check_decode_sum,
}
