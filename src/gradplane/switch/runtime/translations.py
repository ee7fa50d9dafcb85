"""Names in place of numbers: values of a `type` with @p4runtime_translation(uri, string).

Source: P4Runtime 1.5, section "Translation of Port Numbers and User-Defined Types": the switch
chooses what a string of the controller stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gradplane.switch.runtime.control_errors import TableError


class Translation:
    """The names of a type's values, of `width` bits. Each stands for one number, as long as the
    program runs.

    A name of decimal digits stands for that number if no other name does; every other name gets the
    smallest number from 1 on that none stands for. `fixed`: names that have their numbers.
    `meant`: numbers that mean something already, which come to names by `fixed` or digits alone.
    `record`: told how to take a name back, for requests that fail or only ask.
    """

    def __init__(self, type_name: str, width: int, fixed: Mapping[str, int] | None = None) -> None:
        self.type_name = type_name
        self.width = width
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._next = 1
        self.meant: set[int] = set()
        self.record: Callable[..., object] = lambda step, *args: None
        for name, number in (fixed or {}).items():
            self.fix(name, number)

    def fix(self, name: str, number: int) -> None:
        """Let a name stand for a number. Raises TableError if either has another."""
        if not 0 <= number < 1 << self.width:
            raise self._error("OUT_OF_RANGE", f"{number} does not fit bit<{self.width}>")
        if self._numbers.get(name, number) != number or self._names.get(number, name) != name:
            there = self._names.get(number, self._numbers.get(name))
            raise self._error("ALREADY_EXISTS", f"{name!r} = {number} is beside {there!r}")
        self._numbers[name], self._names[number] = number, name

    def number(self, name: str) -> int:
        """Return what a name stands for. Raises TableError if no number is left."""
        known = self._numbers.get(name)
        if known is not None:
            return known
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 40 else -1
        if not 0 <= number < 1 << self.width or number in self._names:
            number = self._free()
        self.fix(name, number)
        self.record(self._forget, name, number)
        return number

    def name(self, number: int) -> str:
        """Return the name of a number; one that no controller named is its decimal digits."""
        known = self._names.get(number)
        if known is not None:
            return known
        name = str(number)
        while name in self._numbers:
            name += "_"
        self.fix(name, number)
        return name

    def known(self, number: int) -> str | None:
        """Return the name of a number, without giving it one."""
        return self._names.get(number)

    def items(self) -> Iterable[tuple[str, int]]:
        """Return the names and their numbers, in the order in which they came."""
        return self._numbers.items()

    def _forget(self, name: str, number: int) -> None:
        if self._numbers.get(name) == number:
            del self._numbers[name], self._names[number]
            self._next = max(1, min(self._next, number))

    def _free(self) -> int:
        while self._next in self._names or self._next in self.meant:
            self._next += 1
        if self._next < 1 << self.width:
            return self._next
        if 0 not in self._names and 0 not in self.meant:
            return 0
        raise self._error("RESOURCE_EXHAUSTED", f"all {1 << self.width} numbers have names")

    def _error(self, code: str, what: str) -> TableError:
        return TableError(code, f"type {self.type_name}: {what}")


class ErrorNames(Translation):
    """The names of a program's errors, which are all that there are."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("error", 32, {name: number for number, name in enumerate(errors)})

    def number(self, name: str) -> int:
        """Return an error's number, by its name or by decimal digits. Raises TableError."""
        number = self._numbers.get(name)
        if number is None and name.isascii() and name.isdigit() and len(name) <= 10:
            number = int(name)
        if number is None or number >> self.width:
            known = ", ".join(self._numbers)
            raise TableError("INVALID_ARGUMENT", f"there is no error {name!r}; known: {known}")
        return number

    def name(self, number: int) -> str:
        """Return an error's name; the decimal digits of a number that is none's."""
        return self._names.get(number, str(number))
