"""What a kind of object of the control plane is, and the operations that all kinds have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gradplane.switch.control.journal import Journal
from gradplane.switch.runtime.control_errors import TableError

Record = dict[str, Any]
"""The data fields of an object, by name."""


class Refusal(TableError):
    """A request that a kind of objects refuses. A notation that words it in its own way looks at:

    `reason`: "exists", "missing", "full", "range", "twice", "used" or "reference". `kind`: of the
    object that the refusal is about. `number`: its key. `field`, `value`: the field's, if it is
    about one, and the value that it cannot have.
    """

    def __init__(
        self,
        code: str,
        message: str,
        reason: str,
        kind: str,
        number: int = 0,
        field: str = "",
        value: Any = None,
        pi_text: str = "",
    ) -> None:
        super().__init__(code, message, pi_text)
        self.reason, self.kind, self.number = reason, kind, number
        self.field, self.value = field, value


@dataclass(frozen=True, slots=True)
class Field:
    """A data field of a kind. `default`: its value in objects of notations that do not know it.
    `numbers`: those that it can have, None where it is no number. `words`: it in messages."""

    name: str
    default: Any = None
    numbers: range | None = None
    words: str = ""


class Kind(ABC):
    """The objects of one kind, by number.

    `numbers`: those that there can be; `capacity`: how many of them at a time. The objects are the
    engines' own memory: `get` makes a record of one, `put` writes it, with the journal's steps.
    """

    name: str
    in_pi: ClassVar[str] = ""  # the object in the messages of PI, BMv2's P4Runtime library
    fields: ClassVar[tuple[Field, ...]] = ()
    passing: ClassVar[Record] = {}  # fields that a write resets which does not give them

    def __init__(self, journal: Journal, numbers: range, capacity: int | None = None) -> None:
        self.journal = journal
        self.numbers = numbers
        self.capacity = len(numbers) if capacity is None else capacity

    # -- the memory -----------------------------------------------------------------------------

    @abstractmethod
    def existing(self) -> Iterable[int]:
        """Return the numbers of the objects that there are, oldest first."""

    @abstractmethod
    def get(self, number: int) -> Record | None:
        """Return the record of an object; None if there is none."""

    @abstractmethod
    def put(self, number: int, record: Record | None) -> None:
        """Write an object's memory, None: remove it. A step of the journal restores it."""

    def check(self, number: int, record: Record) -> None:  # noqa: B027 (most kinds need none)
        """Refuse a record that refers to what is not there, and the like."""

    def check_unused(self, number: int) -> None:  # noqa: B027 (most kinds need none)
        """Refuse to delete an object that others refer to."""

    # -- the operations -------------------------------------------------------------------------

    def insert(self, number: int, /, **values: Any) -> None:
        """Add an object; fields that are not given have their defaults."""
        self.need_absent(number)
        if self.capacity < len(self.numbers) and self.used() >= self.capacity:
            what = f"all {self.capacity} are in use"
            raise self._refusal("RESOURCE_EXHAUSTED", number, what, "full")
        self._write(number, {**self.defaults(), **values})

    def modify(self, number: int, /, **values: Any) -> None:
        """Set the fields of an object that are given."""
        self._write(number, {**self.read(number), **self.passing, **values})

    def write(self, number: int, /, **values: Any) -> None:
        """Insert or modify an object."""
        former = self.get(number)
        self._write(number, {**(former or self.defaults()), **self.passing, **values})

    def delete(self, number: int) -> None:
        """Remove an object that no other refers to."""
        self.read(number)
        self.check_unused(number)
        self.put(number, None)

    def read(self, number: int) -> Record:
        """Return the record of an object, which must be there."""
        found = self.get(number)
        if found is None:
            pi_text = f"{self.in_pi} does not exist" if self.in_pi else ""
            raise self._refusal("NOT_FOUND", number, "does not exist", "missing", pi_text=pi_text)
        return found

    def records(self) -> Iterator[tuple[int, Record]]:
        """Iterate over all objects."""
        for number in list(self.existing()):
            found = self.get(number)
            if found is not None:
                yield number, found

    def clear(self) -> None:
        """Remove all objects."""
        for number in list(self.existing()):
            self.delete(number)

    def usage(self) -> int:
        """Return how many objects there are."""
        return sum(1 for _ in self.existing())

    def used(self) -> int:
        """Return how many of its capacity are in use."""
        return self.usage()

    def has(self, number: int) -> bool:
        """Return whether there is an object of a number."""
        return self.get(number) is not None

    def need_absent(self, number: int) -> None:
        """Refuse a number that cannot be, or that an object has."""
        self.check_number(number)
        if self.has(number):
            pi_text = f"{self.in_pi} already exists" if self.in_pi else ""
            raise self._refusal("ALREADY_EXISTS", number, "exists", "exists", pi_text=pi_text)

    def check_number(self, number: int) -> None:
        """Refuse a number that no object can have."""
        if number not in self.numbers:
            what = f"is not within {self.numbers[0]} to {self.numbers[-1]}"
            raise self._refusal("INVALID_ARGUMENT", number, what, "range")

    def defaults(self) -> Record:
        """Return the record of an object for which nothing is given."""
        return {f.name: f.default for f in self.fields}

    # -- parts ----------------------------------------------------------------------------------

    def _write(self, number: int, record: Record) -> None:
        self.check_number(number)
        self._check_ranges(number, record)
        self.check(number, record)
        self.put(number, record)

    def _check_ranges(self, number: int, record: Mapping[str, Any]) -> None:
        for f in self.fields:
            if f.numbers is not None and record[f.name] not in f.numbers:
                low, high = f.numbers[0], f.numbers[-1]
                what = f"{f.words or f.name} {record[f.name]} is not within {low} to {high}"
                raise Refusal("INVALID_ARGUMENT", f"{self.name} {number}: {what}", "range",
                              self.name, number, f.name, record[f.name])  # fmt: skip

    def _refusal(
        self, code: str, number: int, what: str, reason: str, pi_text: str = ""
    ) -> Refusal:
        message = f"{self.name} {number} {what}"
        return Refusal(code, message, reason, self.name, number, pi_text=pi_text)
