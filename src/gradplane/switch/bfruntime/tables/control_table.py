"""The interface of a table: what requests can ask of it, and the refusals where a kind has less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from gradplane.switch.bfruntime.codec import Data, Key, invalid_for
from gradplane.switch.bfruntime.schema import ActionSpec, TableSchema
from gradplane.switch.control.kind import Kind, Record, Refusal
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.control_errors import TableError


@dataclass(frozen=True, slots=True)
class Scope:
    """The pipes that a request is for, and whether it is for each of them (or names one). from_hw:
    counters and registers are read from the chip, not as they were seen last. parser: the one that
    it is for in its pipes, where parsers have something of their own."""

    pipes: range
    all: bool
    from_hw: bool = True
    parser: int = 0


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of a write. remove: MODIFY_INC takes away. reset_ttl, reset_stats: MODIFY starts
    the idle timeout and the direct counter anew."""

    remove: bool = False
    reset_ttl: bool = True
    reset_stats: bool = True


class Attribute(NamedTuple):
    """An attribute of a table: `show` writes it into a TableAttribute message, `set` takes it from
    one."""

    show: Callable[[Any], None]
    set: Callable[[Any], None]


class ControlTable:
    """A table of a program or of the device.

    The methods raise RpcError, or TableError of the switch's state. What they change is noted in
    the store's journal, which takes it back if the request fails. own_attributes: by their fields
    in messages. words: how the chip's driver words refusals of the store, by their reason.
    """

    words: ClassVar[Mapping[str, str]] = {}

    def __init__(self, schema: TableSchema, store: Store) -> None:
        self.schema = schema
        self.store = store
        self.own_attributes: dict[str, Attribute] = {}

    # -- entries --------------------------------------------------------------------------------

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        """Add an entry. Raises RpcError ALREADY_EXISTS if there is one."""
        raise self.refused("entries cannot be added")

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        """Change an entry: the fields that are given. Raises RpcError NOT_FOUND."""
        raise self.refused("entries cannot be modified")

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        """Add the given items to an entry's lists, or remove them."""
        raise self.refused("entries cannot be modified incrementally")

    def delete(self, scope: Scope, key: Key) -> None:
        """Delete an entry. Raises RpcError NOT_FOUND."""
        raise self.refused("entries cannot be deleted")

    def reset(self, scope: Scope, key: Key) -> None:
        """Set an entry to its initial values."""
        raise self.refused("entries cannot be reset")

    def clear(self, scope: Scope) -> None:
        """Delete all entries."""
        raise self.refused("it cannot be cleared")

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        """Return an entry, with its key as the table has it. Raises RpcError NOT_FOUND."""
        raise self.refused("entries cannot be read")

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        """Yield all entries."""
        raise self.refused("entries cannot be read")

    def usage(self, scope: Scope) -> int:
        """Return how many entries there are."""
        raise self.refused("it has no usage")

    def handle(self, scope: Scope, key: Key) -> int:
        """Return an entry's handle. Raises RpcError NOT_FOUND."""
        raise self.refused("its entries have no handles")

    def key_of(self, scope: Scope, handle: int) -> Key:
        """Return the key of the entry with a handle. Raises RpcError NOT_FOUND."""
        raise self.refused("its entries have no handles")

    # -- the default entry ----------------------------------------------------------------------

    def set_default(self, scope: Scope, data: Data) -> None:
        raise self.refused("it has no default entry")

    def reset_default(self, scope: Scope) -> None:
        """Set the default entry to the source's."""
        raise self.refused("it has no default entry")

    def default(self, scope: Scope) -> Data | None:
        """Return the default entry, None where there is none."""
        return None

    # -- operations and attributes --------------------------------------------------------------

    def operate(self, name: str) -> None:
        """Carry out an operation of the schema. State is always current, so most have no effect."""

    def follow(self, other: ControlTable) -> None:
        """Take over the attributes of the same table in other pipes."""

    @property
    def by_parser(self) -> bool:
        """Whether each parser of a pipe has entries of its own."""
        return False

    def set_by_parser(self, wanted: bool) -> None:
        raise self.refused("a pipe's parsers share its entries")

    def attribute(self, scope: Scope, name: str, message: Any) -> None:
        """Write the value of an attribute into a message; `name`: its field of TableAttribute."""
        self._attribute(name).show(message)

    def set_attribute(self, scope: Scope, name: str, message: Any) -> None:
        self._attribute(name).set(message)

    def _attribute(self, name: str) -> Attribute:
        if name not in self.own_attributes:
            raise self.refused(f"it has no attribute {name}")
        return self.own_attributes[name]

    def keep_attribute(self, name: str, field: str, place: str) -> None:
        """Keep a field of an attribute's message in a place: an attribute of this object."""

        def show(message: Any) -> None:
            setattr(getattr(message, name), field, getattr(self, place))

        def set(message: Any) -> None:
            self.store.journal.set(self, place, getattr(getattr(message, name), field))

        self.own_attributes[name] = Attribute(show, set)

    # -- errors ---------------------------------------------------------------------------------

    def worded(self, error: TableError) -> RpcError:
        """Return a refusal of the store for a client, in the words of the chip's driver."""
        text = self.words.get(error.reason) if isinstance(error, Refusal) else None
        return RpcError(error.code, error.message if text is None else text.format(
            error, name=self.schema.name, key=self.schema.keys[0].name, size=self.schema.size,
        ))  # fmt: skip

    def refused(self, what: str) -> RpcError:
        return RpcError("UNIMPLEMENTED", f"table {self.schema.name} ({self.schema.kind}): {what}")

    def invalid(self, what: str) -> RpcError:
        return invalid_for(self.schema, what)

    def other_pipeline(self, pipe: int, own: Iterable[int]) -> RpcError:
        """Return the refusal of a request for a pipe that runs another pipeline."""
        there = ", ".join(map(str, own))
        return self.invalid(f"pipe {pipe} runs another pipeline; use pipe {there}")

    def missing(self, what: str) -> RpcError:
        return RpcError("NOT_FOUND", f"table {self.schema.name}: {what}")

    def exists(self, what: str) -> RpcError:
        return RpcError("ALREADY_EXISTS", f"table {self.schema.name}: {what}")

    def full(self, what: str) -> RpcError:
        return RpcError("RESOURCE_EXHAUSTED", f"table {self.schema.name}: {what}")

    def check_zeros(self, data: Data) -> None:
        """Refuse to set counts to anything but 0."""
        if any(data.values.values()):
            raise self.invalid("counters can only be set to 0")

    def number(self, key: Key, name: str = "") -> int:
        """Return a number of the key, by default the first."""
        match = key[name or self.schema.keys[0].name]
        assert match is not None, name
        return int(match[0])

    def zeros(self, action: ActionSpec | None = None) -> dict[str, Any]:
        """Return the values of the fields that nobody set: 0, false, and so on."""
        fields = (*self.schema.data, *(action.data if action is not None else ()))
        return {f.name: _ZEROS.get(f.type.name, 0) for f in fields}


_ZEROS: Mapping[str, Any] = {"bool": False, "string": "", "float": 0.0}


class RowTable(ControlTable):
    """A table of rows: whatever stands for an entry to the class that derives from this one."""

    def row(self, scope: Scope, key: Key) -> Any:
        """Return the row that a key names, in a request's pipes. Raises RpcError."""
        raise NotImplementedError

    def rows(self, scope: Scope) -> Iterable[Any]:
        """Return the rows that there are, in order."""
        raise NotImplementedError

    def key(self, row: Any) -> Key:
        """Return the key of a row; by default it is the only number of the key."""
        return {self.schema.keys[0].name: (row,)}

    def shown(self, scope: Scope, row: Any) -> Data:
        """Return the data of a row, in a request's pipes."""
        raise NotImplementedError

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        row = self.row(scope, key)
        return self.key(row), self.shown(scope, row)

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        for row in self.rows(scope):
            yield self.key(row), self.shown(scope, row)

    def usage(self, scope: Scope) -> int:
        return sum(1 for _ in self.rows(scope))


class KindTable(RowTable):
    """A notation over a kind of the store: the rows are the keys of its objects.

    A class that derives from this one translates a key (`place`, and `key` back) and data
    (`record`, and `values` back). first_handle: the handle of the object 0, None if objects have
    none. resets: whether to reset an entry deletes it, if there is one.
    """

    first_handle: int | None = None
    resets = False

    def __init__(self, schema: TableSchema, store: Store, kind: Kind[Any]) -> None:
        super().__init__(schema, store)
        self.kind = kind

    def place(self, key: Key) -> Any:
        """Return the kind's key that a key names. Raises RpcError for one that cannot be."""
        return self.number(key)

    def record(self, place: Any, data: Data) -> Record:
        """Return the fields that data set of an object. Raises RpcError."""
        return {}

    def values(self, place: Any, record: Record) -> Data:
        """Return the data of an object."""
        return Data()

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        place = self.place(key)
        self.kind.need_absent(place)
        self.kind.insert(place, **self.record(place, data))

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        place = self.row(scope, key)
        self.kind.modify(place, **self.record(place, data))

    def delete(self, scope: Scope, key: Key) -> None:
        self.kind.delete(self.row(scope, key))

    def reset(self, scope: Scope, key: Key) -> None:
        if not self.resets:
            return super().reset(scope, key)
        return self.kind.put(self.place(key), None)

    def clear(self, scope: Scope) -> None:
        for place in list(self.rows(scope)):
            self.kind.delete(place)

    def rows(self, scope: Scope) -> Iterable[Any]:
        return list(self.kind.existing())

    def row(self, scope: Scope, key: Key) -> Any:
        place = self.place(key)
        self.kind.read(place)
        return place

    def shown(self, scope: Scope, row: Any) -> Data:
        return self.values(row, self.kind.read(row))

    def handle(self, scope: Scope, key: Key) -> int:
        if self.first_handle is None:
            return super().handle(scope, key)
        return int(self.row(scope, key)) + self.first_handle

    def key_of(self, scope: Scope, handle: int) -> Key:
        if self.first_handle is None:
            return super().key_of(scope, handle)
        key = self.key(handle - self.first_handle)
        self.row(scope, key)
        return key


class SettingsTable(ControlTable):
    """A table without keys: its default entry, which is always there, has the settings."""

    def clear(self, scope: Scope) -> None:
        """Set the settings to the source's."""
        return self.reset_default(scope)

    def usage(self, scope: Scope) -> int:
        """Return how many entries there are: the default one."""
        return 1
