"""The interface of a table: what requests can ask of it, and the refusals where a kind has less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key, invalid
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.p4runtime.status_errors import RpcError

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Scope:
    """The pipes that a request is for, and whether it is for each of them (or names one)."""

    pipes: range
    all: bool


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of a write. remove: MODIFY_INC takes away. reset_ttl, reset_stats: MODIFY starts
    the idle timeout and the direct counter anew."""

    remove: bool = False
    reset_ttl: bool = True
    reset_stats: bool = True


def nothing() -> None:
    """Undo a change that needs no undoing."""


class ControlTable:
    """A table of a program or of the device.

    The methods raise RpcError, or TableError of the switch's state. Those that change something
    return a function that changes it back.
    """

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema

    # -- entries --------------------------------------------------------------------------------

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        """Add an entry. Raises RpcError ALREADY_EXISTS if there is one."""
        raise self.refused("entries cannot be added")

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        """Change an entry: the fields that are given. Raises RpcError NOT_FOUND."""
        raise self.refused("entries cannot be modified")

    def modify_incrementally(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        """Add the given items to an entry's lists, or remove them."""
        raise self.refused("entries cannot be modified incrementally")

    def delete(self, scope: Scope, key: Key) -> Undo:
        """Delete an entry. Raises RpcError NOT_FOUND."""
        raise self.refused("entries cannot be deleted")

    def reset(self, scope: Scope, key: Key) -> Undo:
        """Set an entry to its initial values."""
        raise self.refused("entries cannot be reset")

    def clear(self, scope: Scope) -> Undo:
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

    def set_default(self, scope: Scope, data: Data) -> Undo:
        raise self.refused("it has no default entry")

    def reset_default(self, scope: Scope) -> Undo:
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

    def attribute(self, name: str, message: Any) -> None:
        """Write the value of an attribute into a message; `name`: its field of TableAttribute."""
        raise self.refused(f"it has no attribute {name}")

    def set_attribute(self, name: str, message: Any) -> Undo:
        raise self.refused(f"it has no attribute {name}")

    # -- errors ---------------------------------------------------------------------------------

    def refused(self, what: str) -> RpcError:
        return RpcError("UNIMPLEMENTED", f"table {self.schema.name} ({self.schema.kind}): {what}")

    def invalid(self, what: str) -> RpcError:
        return invalid(self.schema, what)

    def other_pipeline(self, pipe: int, own: Iterable[int]) -> RpcError:
        """Return the refusal of a request for a pipe that runs another pipeline."""
        there = ", ".join(map(str, own))
        return self.invalid(f"pipe {pipe} runs another pipeline; use pipe {there}")

    def missing(self, what: str) -> RpcError:
        return RpcError("NOT_FOUND", f"table {self.schema.name}: {what}")

    def number(self, key: Key, name: str) -> int:
        """Return a number of the key."""
        match = key[name]
        assert match is not None, name
        return int(match[0])


class SettingsTable(ControlTable):
    """A table without keys: its default entry, which is always there, has the settings."""

    def clear(self, scope: Scope) -> Undo:
        """Set the settings to the source's."""
        return self.reset_default(scope)

    def usage(self, scope: Scope) -> int:
        """Return how many entries there are: the default one."""
        return 1
