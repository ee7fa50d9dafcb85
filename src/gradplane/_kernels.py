"""Numba's `njit`, without Numba until a kernel is called.

Many processes import modules with kernels and call none: those that check a file, and say what is
wrong with it. Numba takes them as long to import as all that they do. So a kernel here waits: its
first call has Numba compile it, or find it in the cache (`_kernel_cache`), with what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from types import CodeType
from typing import Any, overload


class Waiting:
    """An object that Numba makes when a kernel needs it: a compiled function, or an operation."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def compiled(self) -> Any:
        """The function that Numba compiled."""
        return self._make()


class Kernel(Waiting):
    """A function that Numba compiles at its first call, with `_kernel_cache.njit`'s options."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(self._compiled)
        self.py_func = function
        self._options = options

    def _compiled(self) -> Any:
        from gradplane import _kernel_cache

        made = _kernel_cache.njit(self.py_func, **self._options)
        scope = self.py_func.__globals__
        for name in _names(self.py_func.__code__):
            value = scope.get(name)
            if value is self:  # it calls itself, or its module calls it: from now on directly
                scope[name] = made
            elif isinstance(value, Waiting):
                scope[name] = value.compiled
        return made

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled function."""
        if name.startswith("__") or name == "compiled":  # what Python looks for, to copy or show it
            raise AttributeError(name)
        return getattr(self.compiled, name)


def _names(code: CodeType) -> Iterator[str]:
    """Yield a function's name and the names that it and functions in it use."""
    yield code.co_name
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@overload
def njit(function: Callable[..., Any], **options: Any) -> Any: ...
@overload
def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]: ...
def njit(function: Any = None, **options: Any) -> Any:
    """Return a function as a Kernel; without one, the decorator that does so."""
    if function is None:
        return partial(njit, **options)
    return Kernel(function, options)


def intrinsic(function: Callable[..., Any]) -> Callable[..., None]:
    """Return an operation for kernels that writes its machine code itself; see Numba's."""

    def make() -> Any:
        from numba.extending import intrinsic

        return intrinsic(function)

    operation: Any = Waiting(make)  # which kernels call, and nobody else
    return operation  # type: ignore[no-any-return]
