"""Tables that all pipes share, or groups of pipes have of their own: attribute EntryScope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_fields import ADJUSTMENT
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Scope
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.pipe_scopes import Groups, PipeScopes, Resources

MOST_SCOPES, SCOPE_BITS = 8, 8
"""A user-defined scope is a number: bitmaps of pipes, so many of so many bits."""
ALL, SINGLE = 0, 1
"""The other scopes: all pipes have it together, or each pipe has its own."""

Make = Callable[[Resources], ControlTable]
"""Returns the table on a pipe's resources."""
Merge = Callable[[Sequence[Data]], Data]


def _change(name: str) -> Any:
    """Return the method that carries out a change in the tables that a request is for."""

    def method(self: ScopedTable, scope: Scope, *given: Any) -> None:
        for part in self._written(scope):
            getattr(part, name)(scope, *given)

    return method


class ScopedTable(ControlTable):
    """A table, with a ControlTable for each group of pipes that share it.

    name: of the resource in the switch's state. make: returns the table on a pipe's resources.
    merge: makes one of the data in several groups, for a read of all pipes; without it, entries are
    those of one group, and requests for all pipes are refused while there are several.
    """

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        scopes: PipeScopes,
        name: str,
        make: Make,
        merge: Merge | None = None,
    ) -> None:
        super().__init__(schema, store)
        self._scopes = scopes
        self._name = name
        self._make = make
        self._merge = merge
        self._groups: Groups = scopes.together(name)
        self.first = make(scopes.pipes[self._groups[0][0]])
        self._made = [self.first]

    # -- the pipes of a request -----------------------------------------------------------------

    def parts(self) -> list[ControlTable]:
        """Return the table of each group of pipes."""
        groups = self._scopes.groups(self._name)
        if groups != self._groups:
            self._groups, self._made = groups, [self.first]
            for pipes in groups[1:]:
                made = self._make(self._scopes.pipes[pipes[0]])
                made.follow(self.first)
                self._made.append(made)
        return self._made

    def _of(self, scope: Scope) -> list[ControlTable]:
        """Return the tables of the pipes that a request is for. Raises RpcError if there are none:
        the pipe runs another pipeline."""
        parts = self.parts()
        if scope.all:
            return parts
        pairs = zip(parts, self._groups, strict=True)
        found = [part for part, pipes in pairs if not set(pipes).isdisjoint(scope.pipes)]
        if not found:
            raise self.other_pipeline(scope.pipes[0], self._scopes.homes(self._name))
        return found

    def of(self, scope: Scope, write: bool = False) -> ControlTable:
        """Return the table of a request that is for one group of pipes. Raises RpcError."""
        found = self._of(scope)
        if len(found) > 1:
            raise self.invalid("pipes have entries of their own: name one in the request's target")
        if write and not scope.all and len(self._made) == 1:
            raise self.invalid("all pipes share its entries: leave the target's pipe at 0xffff")
        return found[0]

    def _written(self, scope: Scope) -> Sequence[ControlTable]:
        """Return the tables that a change is for."""
        return (self.of(scope, write=True),) if self._merge is None else self._of(scope)

    # -- entries --------------------------------------------------------------------------------

    add, modify, modify_incrementally, delete, reset, set_default, reset_default = map(_change, (
        "add", "modify", "modify_incrementally", "delete", "reset", "set_default", "reset_default",
    ))  # fmt: skip

    def clear(self, scope: Scope) -> None:
        """Delete all entries; for all pipes those of each."""
        for part in self._of(scope):
            part.clear(scope)

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        if self._merge is None:
            return self.of(scope).find(scope, key)
        found = [part.find(scope, key) for part in self._of(scope)]
        return found[0][0], self._merge([data for _, data in found])

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        if self._merge is None:
            yield from self.of(scope).entries(scope)
            return
        for rows in zip(*(part.entries(scope) for part in self._of(scope)), strict=True):
            yield rows[0][0], self._merge([data for _, data in rows])

    def usage(self, scope: Scope) -> int:
        return max(part.usage(scope) for part in self._of(scope))

    def handle(self, scope: Scope, key: Key) -> int:
        return self.of(scope).handle(scope, key)

    def key_of(self, scope: Scope, handle: int) -> Key:
        return self.of(scope).key_of(scope, handle)

    # -- the default entry ----------------------------------------------------------------------

    def default(self, scope: Scope) -> Data | None:
        return self.of(scope).default(scope) if self._merge is None else None

    def worded(self, error: TableError) -> RpcError:
        return self.first.worded(error)

    # -- operations and attributes --------------------------------------------------------------

    def operate(self, name: str) -> None:
        for part in self.parts():
            part.operate(name)

    def attribute(self, scope: Scope, name: str, message: Any) -> None:
        if name != "entry_scope":
            part = self._of(scope)[0] if name == ADJUSTMENT else self.first
            part.attribute(scope, name, message)
            return
        show_scope(self._scopes.groups(self._name), message.entry_scope)
        message.entry_scope.prsr_scope.predef = SINGLE if self.first.by_parser else ALL

    def set_attribute(self, scope: Scope, name: str, message: Any) -> None:
        """Set an attribute: bytes that a meter's counts are adjusted by in the pipes that a request
        is for, others in all."""
        if name == "entry_scope":
            given = message.entry_scope
            for part_of in (given.pipe_scope, given.gress_scope):
                if part_of.predef not in (ALL, SINGLE):
                    raise self.invalid(f"a scope is ALL or SINGLE, not {part_of.predef}")
            parsers = given.prsr_scope
            if parsers.WhichOneof("scope") == "user_defined" or parsers.predef not in (ALL, SINGLE):
                raise self.invalid("a pipe's parsers share its entries, or each has its own")
            self._set_by_parser(parsers.predef == SINGLE)
            wanted = wanted_scope(self._scopes.homes(self._name), message.entry_scope)
            if wanted != self._scopes.groups(self._name):
                self.store.scopes.set(self._name, wanted)
            return
        for part in self._of(scope) if name == ADJUSTMENT else self.parts():
            part.set_attribute(scope, name, message)

    def _set_by_parser(self, wanted: bool) -> None:
        """Let each parser of a pipe have entries of its own, or all of them the same ones."""
        if wanted != self.first.by_parser:
            for part in self.parts():
                part.set_by_parser(wanted)


def show_scope(groups: Groups, message: Any) -> None:
    """Write groups of pipes, which have something of their own each, into an EntryScope message."""
    message.gress_scope.predef = message.prsr_scope.predef = ALL
    if len(groups) == 1:
        message.pipe_scope.predef = ALL
    elif all(len(pipes) == 1 for pipes in groups):
        message.pipe_scope.predef = SINGLE
    else:
        message.pipe_scope.user_defined = sum(
            sum(1 << pipe for pipe in pipes) << (SCOPE_BITS * at) for at, pipes in enumerate(groups)
        )


def wanted_scope(pipes: Sequence[int], message: Any) -> Groups:
    """Return the groups of these pipes that an EntryScope message asks for."""
    given = message.pipe_scope
    if given.WhichOneof("scope") == "user_defined":
        bitmaps = [given.user_defined >> (SCOPE_BITS * at) & 0xFF for at in range(MOST_SCOPES)]
        return tuple(
            tuple(pipe for pipe in range(SCOPE_BITS) if bitmap >> pipe & 1)
            for bitmap in bitmaps if bitmap
        )  # fmt: skip
    return tuple((pipe,) for pipe in pipes) if given.predef else (tuple(pipes),)
