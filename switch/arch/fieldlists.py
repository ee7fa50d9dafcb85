"""@field_list(n, ...) on metadata fields: what a copy of a packet takes along."""

from __future__ import annotations

from typing import Any

from gradplane.switch.interp.values import copier
from gradplane.switch.ir.types import Field, Fields, Header, Type

Path = tuple[int, ...]


class FieldLists:
    """The field lists of a metadata type. `paths`: for each number the positions of its fields."""

    def __init__(self, meta: Type) -> None:
        self.paths: dict[int, list[tuple[Path, Type]]] = {}
        if isinstance(meta, Fields):
            self._collect(meta, ())

    def copy(self, number: int, source: Any, target: Any) -> None:
        """Copies the fields of a list from one metadata value to another."""
        for path, t in self.paths.get(number, ()):
            holder, receiver = source, target
            for index in path[:-1]:
                holder, receiver = holder[index], receiver[index]
            receiver[path[-1]] = copier(t)(holder[path[-1]])

    def _collect(self, t: Fields, path: Path) -> None:
        for i, field in enumerate(t.fields):
            for number in _numbers(field):
                self.paths.setdefault(number, []).append(((*path, i), field.type))
            if isinstance(field.type, Fields) and not isinstance(field.type, Header):
                self._collect(field.type, (*path, i))


def _numbers(field: Field) -> list[int]:
    values = [v for a in field.annotations if a.name == "field_list" for v in a.values]
    return [int(v) for v in values if not isinstance(v, str)]
