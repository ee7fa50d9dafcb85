"""The kinds of objects of the control plane, and the operations that all of them have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from gradplane.switch.control.journal import Journal
from gradplane.switch.runtime.control_errors import TableError

Record = dict[str, Any]
"""The data fields of an object, by name."""

K = TypeVar("K", bound=Hashable)


class Refusal(TableError):
    """A request that a kind of objects refuses. A notation that words it in its own way looks at:

    `reason`: "exists", "missing", "full", "range", "twice", "used", "one shot" or "reference".
    `kind`: of the object that the refusal is about. `number`: its key. `field`, `value`: the
    field's, if it is about one, and the value that it cannot have.
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


class Field(NamedTuple):
    """A data field of a kind. `default`: its value in objects of notations that do not know it.
    `numbers`: those that it can have, None where it is no number. `words`: it in messages."""

    name: str
    default: Any = None
    numbers: range | None = None
    words: str = ""


class Kind(ABC, Generic[K]):
    """The objects of one kind, by key: of a switch, or of one table, profile or array.

    The objects are the engines' own memory: `get` makes a record of one, `put` writes it, with the
    journal's steps.
    """

    name: str
    in_pi: ClassVar[str] = ""  # the object in the messages of PI, BMv2's P4Runtime library
    fields: ClassVar[tuple[Field, ...]] = ()
    passing: ClassVar[Record] = {}  # fields that a write resets which does not give them

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    # -- the memory -----------------------------------------------------------------------------

    @abstractmethod
    def existing(self) -> Iterable[K]:
        """Return the keys of the objects that there are, oldest first."""

    @abstractmethod
    def get(self, key: K) -> Record | None:
        """Return the record of an object; None if there is none."""

    @abstractmethod
    def put(self, key: K, record: Record | None) -> None:
        """Write an object's memory, None: remove it. A step of the journal restores it."""

    def check_key(self, key: K) -> None:  # noqa: B027 (most kinds need none)
        """Refuse a key that no object can have."""

    def check(self, key: K, record: Record) -> None:  # noqa: B027 (most kinds need none)
        """Refuse a record that refers to what is not there, and the like."""

    def check_room(self, key: K) -> None:  # noqa: B027 (most kinds need none)
        """Refuse one more object."""

    def check_unused(self, key: K) -> None:  # noqa: B027 (most kinds need none)
        """Refuse to delete an object that others refer to."""

    # -- the operations -------------------------------------------------------------------------

    def insert(self, key: K, /, **values: Any) -> None:
        """Add an object; fields that are not given have their defaults."""
        self.need_absent(key)
        self.check_room(key)
        self._write(key, {**self.defaults(), **values})

    def insert_all(self, records: Iterable[tuple[K, Record]]) -> None:
        """Add many objects, all of them or, where one is refused, none."""
        with self.journal.batch():
            for key, record in records:
                self.insert(key, **record)

    def modify(self, key: K, /, **values: Any) -> None:
        """Set the fields of an object that are given."""
        self._write(key, {**self.read(key), **self.passing, **values})

    def write(self, key: K, /, **values: Any) -> None:
        """Insert or modify an object."""
        if self.has(key):
            self.modify(key, **values)
        else:
            self.insert(key, **values)

    def delete(self, key: K) -> None:
        """Remove an object that no other refers to."""
        self.read(key)
        self.check_unused(key)
        self.put(key, None)

    def read(self, key: K) -> Record:
        """Return the record of an object, which must be there."""
        found = self.get(key)
        if found is None:
            pi_text = f"{self.in_pi} does not exist" if self.in_pi else ""
            raise self.refusal("NOT_FOUND", key, "does not exist", "missing", pi_text=pi_text)
        return found

    def records(self) -> Iterator[tuple[K, Record]]:
        """Iterate over all objects."""
        for key in list(self.existing()):
            found = self.get(key)
            if found is not None:
                yield key, found

    def clear(self) -> None:
        """Remove all objects."""
        for key in list(self.existing()):
            self.delete(key)

    def usage(self) -> int:
        """Return how many objects there are."""
        return sum(1 for _ in self.existing())

    def has(self, key: K) -> bool:
        """Return whether there is an object of a key."""
        return self.get(key) is not None

    def need_absent(self, key: K) -> None:
        """Refuse a key that cannot be, or that an object has."""
        self.check_key(key)
        if self.has(key):
            pi_text = f"{self.in_pi} already exists" if self.in_pi else ""
            raise self.refusal("ALREADY_EXISTS", key, "exists", "exists", pi_text=pi_text)

    def defaults(self) -> Record:
        """Return the record of an object for which nothing is given."""
        return {f.name: f.default for f in self.fields}

    # -- parts ----------------------------------------------------------------------------------

    def _write(self, key: K, record: Record) -> None:
        self.check_key(key)
        self._check_ranges(key, record)
        self.check(key, record)
        self.put(key, record)

    def _check_ranges(self, key: K, record: Mapping[str, Any]) -> None:
        for f in self.fields:
            if f.numbers is not None and record[f.name] not in f.numbers:
                low, high = f.numbers[0], f.numbers[-1]
                what = f"{f.words or f.name} {record[f.name]} is not within {low} to {high}"
                raise Refusal("INVALID_ARGUMENT", f"{self.name} {key}: {what}", "range",
                              self.name, _number(key), f.name, record[f.name])  # fmt: skip

    def refusal(self, code: str, key: K, what: str, reason: str, pi_text: str = "") -> Refusal:
        """Return the refusal of a request for one object."""
        message = f"{self.name} {key} {what}"
        return Refusal(code, message, reason, self.name, _number(key), pi_text=pi_text)


class Numbered(Kind[int]):
    """A kind whose keys are numbers. `numbers`: those that there can be; `capacity`: how many of
    them at a time."""

    def __init__(self, journal: Journal, numbers: range, capacity: int | None = None) -> None:
        super().__init__(journal)
        self.numbers = numbers
        self.capacity = len(numbers) if capacity is None else capacity

    def used(self) -> int:
        """Return how many of its capacity are in use."""
        return self.usage()

    def check_key(self, key: int) -> None:
        if key not in self.numbers:
            what = f"is not within {self.numbers[0]} to {self.numbers[-1]}"
            raise self.refusal("INVALID_ARGUMENT", key, what, "range")

    def check_room(self, key: int) -> None:
        if self.capacity < len(self.numbers) and self.used() >= self.capacity:
            what = f"all {self.capacity} are in use"
            raise self.refusal("RESOURCE_EXHAUSTED", key, what, "full")


def _number(key: object) -> int:
    return key if isinstance(key, int) else 0
