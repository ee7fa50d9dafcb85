"""Work that workers of one process need not repeat: on a simulated network all of them receive the
same sums."""

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Result = TypeVar("Result")

_LARGEST = 1 << 16  # bytes: a larger array that may change is rarely shared, and comparing costs
_CALLS = 16  # of the partitions of a vector, say
_KEPT = 1 << 24  # bytes
_FIRST = 1 << 10  # bytes that are compared first, as different arrays mostly differ there
_constants: dict[int, "weakref.ref[Array]"] = {}  # by id, of arrays that own their memory


def constant(array: Array) -> Array:
    """Return the array, whose memory nobody changes from now on as long as it exists."""
    owner = _owner(array)
    known = id(owner)
    _constants[known] = weakref.ref(owner, lambda _: _constants.pop(known, None))
    return array


def is_constant(array: Array) -> bool:
    """Return whether nobody changes the array's memory any more."""
    owner = _owner(array)
    known = _constants.get(id(owner))
    return known is not None and known() is owner


def _owner(array: Array) -> Array:
    return array.base if isinstance(array.base, np.ndarray) else array


class Common:
    """The one array in the place of equal ones that come one after the other."""

    def __init__(self) -> None:
        self._last: Callable[[], Array | None] = _nothing

    def __call__(self, array: Array) -> Array:
        """Return the last array if it is equal, and still there; else this one, which is constant
        then. Both are contiguous."""
        last = self._last()
        if last is not None and _equal(last, array):
            return last
        self._last = _kept(array)
        return array


def _nothing() -> None:
    return None


def _kept(array: Array) -> Callable[[], Array | None]:
    """Return what gives an array again, which is constant; a very large one while somebody has
    it."""
    constant(array)
    return weakref.ref(array) if array.nbytes > _KEPT else lambda: array


def _equal(a: Array, b: Array) -> bool:
    """Return whether two contiguous arrays are equal in type, shape and bytes."""
    if a is b or a.dtype != b.dtype or a.shape != b.shape:
        return a is b
    first, second = a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)
    words = first.size // 8 * 8  # of 8 bytes, which are compared at once
    return all(
        np.array_equal(one.view(kind), other.view(kind))
        for one, other, kind in (
            (first[:_FIRST], second[:_FIRST], np.uint8),
            (first[words:], second[words:], np.uint8),
            (first[:words], second[:words], np.uint64),
        )
    )


class Once(Generic[Result]):
    """A pure function of positional arguments that remembers its last calls, a few.

    Arrays are compared by type, shape and value, constant ones by their memory; a call with a large
    one that is not constant is not remembered. A result that is an array is the caller's own; a
    large one that is remembered is constant. It is kept while somebody has it, and longer only once
    a call was repeated whose result was gone: where a process has one worker, none is.
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._repeated = False
        self._calls: deque[tuple[list[Any], Callable[[], Result | None]]] = deque(maxlen=_CALLS)

    def __call__(self, *arguments: Any) -> Result:
        """Return the function's result."""
        key = _key(arguments)
        found = self._found(key)
        return self._noted(key, self._function(*arguments)) if found is None else found

    def _found(self, key: list[Any] | None) -> Result | None:
        for asked, answer in () if key is None else tuple(self._calls):
            if asked == key:
                if (known := answer()) is not None:
                    return known
                self._repeated = True
        return None

    def _noted(self, key: list[Any] | None, result: Result) -> Result:
        if key is not None:
            self._calls.appendleft((key, _remembered(result, self._repeated)))
        return result


def _key(arguments: tuple[Any, ...]) -> list[Any] | None:
    """Return what calls are compared by; None for one that is not remembered."""
    key: list[Any] = []
    for argument in arguments:
        if not isinstance(argument, np.ndarray):
            key.append(argument)
        elif argument.nbytes <= _LARGEST:
            key += argument.dtype, argument.shape, argument.tobytes()
        elif is_constant(argument):
            key += argument.dtype, argument.shape, argument.strides
            key += argument.__array_interface__["data"], weakref.ref(_owner(argument))
        else:
            return None
    return key


def _remembered(result: Any, repeated: bool) -> Callable[[], Any]:
    """Return what gives a result again."""
    if not isinstance(result, np.ndarray):
        return lambda: result
    if result.nbytes <= _LARGEST:
        return result.copy().copy
    return _kept(result) if repeated else weakref.ref(constant(result))
