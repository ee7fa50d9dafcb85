"""JSON values with their places, so that an error can name one: pipelines[0].tables[2].key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gradplane.switch.source import CompileError, Diagnostic, Span

MAX_WIDTH = 1 << 16  # as in programs that are compiled from source
MAX_SIZE = (1 << 31) - 1
_DECODER = json.JSONDecoder()


class Item:
    """A value of a JSON document. The accessors raise CompileError where the value is of another
    kind."""

    __slots__ = ("value", "file", "_parent", "_key", "_text")

    def __init__(
        self, value: Any, file: str, parent: Item | None = None, key: str | int = "", text: str = ""
    ) -> None:
        self.value, self.file = value, file
        self._parent, self._key, self._text = parent, key, text

    def _steps(self) -> tuple[Item, list[str | int]]:
        """Return the document, and the keys and indices that lead from there to this value."""
        steps: list[str | int] = []
        here = self
        while here._parent is not None:
            steps.append(here._key)
            here = here._parent
        return here, steps[::-1]

    @property
    def place(self) -> str:
        """The path from the document's root."""
        _, steps = self._steps()
        texts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        return "".join(texts).lstrip(".") or "the document"

    def refuse(self, message: str, hint: str = "") -> CompileError:
        """Return the error for this place."""
        root, steps = self._steps()
        line, column = location(root._text, steps)
        found = Diagnostic(
            Span(self.file, line, column, column + 1), f"{self.place}: {message}", hint=hint
        )
        return CompileError([found], {self.file: root._text.split("\n")})

    # -- members --------------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Item:
        """Return a member of an object, which must be there."""
        found = self.get(key)
        if found is None:
            raise self.refuse(f"it has no member {key!r}")
        return found

    def get(self, key: str) -> Item | None:
        """Return a member of an object; None if there is none, or null."""
        if not isinstance(self.value, dict):
            raise self.refuse("expected an object")
        value = self.value.get(key)
        return None if value is None else Item(value, self.file, self, key)

    def __iter__(self) -> Iterator[Item]:
        """Yield the elements of an array."""
        if not isinstance(self.value, list):
            raise self.refuse("expected an array")
        for at, value in enumerate(self.value):
            yield Item(value, self.file, self, at)

    def elements(self, key: str) -> list[Item]:
        """Return the elements of a member; none if it is missing."""
        found = self.get(key)
        return [] if found is None else list(found)

    def parts(self, count: int) -> list[Item]:
        """Return the elements of an array of that many."""
        found = list(self)
        if len(found) != count:
            raise self.refuse(f"expected {count} elements, found {len(found)}")
        return found

    # -- scalars --------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The value, a string."""
        if not isinstance(self.value, str):
            raise self.refuse(f"expected a string, found {self.value!r:.40}")
        return self.value

    @property
    def number(self) -> int:
        """The value, an integer."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.refuse(f"expected a number, found {self.value!r:.40}")
        return self.value

    @property
    def width(self) -> int:
        """The value, a number of bits that a type can have."""
        if not 0 <= self.number <= MAX_WIDTH:
            raise self.refuse(f"expected a width of 0 to {MAX_WIDTH} bits, found {self.number}")
        return self.number

    @property
    def size(self) -> int:
        """The value, a number of entries that a table or value set can have."""
        if not 0 <= self.number <= MAX_SIZE:
            raise self.refuse(f"expected a size of 0 to {MAX_SIZE}, found {self.number}")
        return self.number

    @property
    def hexadecimal(self) -> int:
        """The number that a string has in hexadecimal, perhaps with a sign."""
        try:
            return int(self.text, 16)
        except ValueError:
            text = f"expected a hexadecimal number, found {self.value!r:.40}"
            raise self.refuse(text) from None

    def is_true(self, key: str, default: bool = False) -> bool:
        """Return a member that is true or false."""
        found = self.get(key)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            raise found.refuse("expected true or false")
        return found.value

    def kind(self) -> str:
        """Return the `type` of an object of type and value."""
        return self["type"].text


def location(text: str, steps: Sequence[str | int]) -> tuple[int, int]:
    """Return the line and column of a value in a document; 1, 1 if it is not there."""
    at = _after_space(text, 0)
    for step in steps:
        found = _member(text, at, step)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _member(text: str, at: int, step: str | int) -> int | None:
    """Return where a member of the object or array that starts at `at` starts."""
    if text[at : at + 1] != ("[" if isinstance(step, int) else "{"):
        return None
    at = _after_space(text, at + 1)
    count = 0
    while text[at : at + 1] not in ("]", "}", ""):
        key: str | int = count
        if isinstance(step, str):
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        if key == step:
            return at
        _, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
        count += 1
    return None


def _after_space(text: str, at: int) -> int:
    """Return the end of the white space that starts at `at`."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def span_of(item: Item) -> Span:
    """Return the place in the P4 source that an object gives in `source_info`."""
    info = item.get("source_info")
    if info is None or not isinstance(info.value, dict):
        return Span(item.file, 0, 0, 0)
    values = info.value
    line, column = values.get("line"), values.get("column")
    if not isinstance(line, int) or not isinstance(column, int):
        return Span(item.file, 0, 0, 0)
    return Span(str(values.get("filename", item.file)), line, column, column + 1)


def unwrapped(item: Item) -> Item:
    """Return an expression without the outer objects that some places need."""
    while item.kind() == "expression" and item["value"].get("op") is None:
        item = item["value"]
    return item


def operands(value: Item) -> tuple[str, Item | None, Item | None]:
    """Return an expression's operator and operands. Some are numbers, not objects."""
    right = value.get("right")
    return value["op"].text, value.get("left"), right


def present(item: Item | None, value: Item) -> Item:
    """Return an operand of an expression. Raises CompileError where it is missing."""
    if item is None:
        raise value.refuse(f"operator {value['op'].text!r} lacks an operand")
    return item
