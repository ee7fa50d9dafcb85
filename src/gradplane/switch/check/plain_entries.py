"""Check the entries of large tables fast: one key and action data that are integers of few bits.

What an entry of another form, or with a mistake, means or lacks is left to the general rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from gradplane.switch.ir.types import Bits, Type
from gradplane.switch.syntax import ast

Use = TypeVar("Use")


class PlainEntries(Generic[Use]):
    """The rules of one table for its plain entries."""

    def __init__(
        self,
        keys: Sequence[Type],
        data: Mapping[str, Sequence[Type] | None],
        use: Callable[[str, list[ast.Expr]], Use],
    ) -> None:
        """Set the types of the keys, and of the data of each action by its name.

        data: None for an action whose entries may repeat bound arguments. use: makes the record of
        an action's use with its data.
        """
        self._key = _unsigned(keys[0]) if len(keys) == 1 else None
        self._data = {name: _all_unsigned(types) for name, types in data.items()}
        self._use = use

    def take(self, entry: ast.TableEntry) -> bool:
        """Check an entry that the parser marked as plain; return whether it is right."""
        action, key = entry.action, entry.keyset
        types = self._data.get(action.name)
        if self._key is None or types is None or action.dot:
            return False
        args = action.args or []
        if len(args) != len(types) or not _fits(key, self._key):
            return False
        values: list[ast.Expr] = []
        for argument, t in zip(args, types, strict=True):
            value = argument.expr
            if value is None or not _fits(value, t):
                return False
            values.append(value)
        action.info = self._use(action.name, values)
        return True


def _unsigned(t: Type) -> Bits | None:
    return t if isinstance(t, Bits) and not t.signed else None


def _all_unsigned(types: Sequence[Type] | None) -> list[Bits] | None:
    found = [t for t in types or () if isinstance(t, Bits) and not t.signed]
    return found if types is not None and len(found) == len(types) else None


def _fits(e: ast.Expr, t: Bits) -> bool:
    """Give an integer its type, if it fits; return whether it does."""
    assert isinstance(e, ast.IntLit), e
    same = e.width is None or e.width == t.width and not e.signed
    if not same or e.value >> t.width:
        return False
    e.type, e.const = t, e.value
    return True
