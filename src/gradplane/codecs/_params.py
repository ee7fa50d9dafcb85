"""Checks of parameters that are not integers, and of a call's state."""

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

from gradplane.codecs._base import CodecError, State


class Sized(Protocol):
    """A state with the number of values of its vectors."""

    @property
    def n(self) -> int: ...


S = TypeVar("S", bound=Sized)


def check_number(what: str, value: float, allowed: str, fits: Callable[[float], bool]) -> float:
    """Return value if it is a finite number that fits; else CodecError with what is allowed."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not fits(value):
        raise CodecError(f"{what} must be a number {allowed}, got {value!r}")
    return value


def check_share(what: str, value: float) -> float:
    """Return value if it is a number above 0 and at most 1; else CodecError."""
    return check_number(what, value, "above 0 and at most 1", lambda v: 0 < v <= 1)


def check_positive(what: str, value: float | None) -> float | None:
    """Return value if it is None or a number above 0; else CodecError."""
    if value is None:
        return None
    return check_number(what, value, "above 0, or None", lambda v: v > 0)


def check_state(codec: str, state: State, kind: type[S], n: int) -> S:
    """Return state if it is of that kind and for n values; else CodecError."""
    if not isinstance(state, kind):
        raise CodecError(f"{codec} needs the state of start(n) or of the last call")
    if state.n != n:
        raise CodecError(f"{codec}: the state is for {state.n} values, the vector has {n}")
    return state
