"""Fields of the metadata structs that an architecture sets and reads."""

from __future__ import annotations

from typing import Any

from gradplane.switch.ir.types import Fields, Type


class Metadata:
    """Positions of a struct's fields by name; programs may bring a struct of their own that lacks
    some: `put` skips these, `get` gives 0."""

    def __init__(self, t: Type) -> None:
        assert isinstance(t, Fields), t
        self._index = {f.name: i for i, f in enumerate(t.fields)}

    def put(self, fields: list[Any], **values: int) -> None:
        for name, value in values.items():
            if name in self._index:
                fields[self._index[name]] = value

    def get(self, fields: list[Any], name: str) -> int:
        return int(fields[self._index[name]]) if name in self._index else 0
