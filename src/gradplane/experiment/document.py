"""Experiment files as text: places of keys, `--set` overrides, nearest names, writing TOML.

Values are read by tomllib, which is fast; tomlkit finds the line of a key when one is asked for,
and quotes what is written.
"""

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT, InlineTable, Item, Table

from gradplane import _suggestions

Key = tuple[str | int, ...]

_MARK = "\0"  # stands in no TOML file


class ExperimentError(Exception):
    """An experiment that cannot be run; the message has a line for each thing that is wrong."""


@dataclass
class Document:
    """The values of a TOML file, and for each key the place to name when it is wrong.

    text: the file's, empty where the values are not from a file. settings: by key, the `--set` that
    changed it.
    """

    name: str
    values: dict[str, Any]
    text: str = ""
    settings: dict[Key, str] = field(default_factory=dict)

    def place(self, *keys: Key) -> str:
        """Return the place of the first key that a setting changed, else of the first one.

        If that key has no line of its own, return the place of the nearest table around it."""
        places = [self._place(key) for key in keys]
        return next((place for place in places if place.startswith("--")), places[0])

    def _place(self, key: Key) -> str:
        for end in range(len(key), 0, -1):
            if key[:end] in self.settings:
                return self.settings[key[:end]]
            if line := self._line(key[:end]):
                return f"{self.name}:{line}"
        return self.name

    def _line(self, key: Key) -> int | None:
        """Return the line of a key or of a table's header; None if it is not in the text.

        The item is marked, and the mark found in the whole text."""
        item = _item(self._parsed, key)
        if item is None:
            return None
        indent = item.trivia.indent
        item.trivia.indent = indent + _MARK
        before, mark, _ = self._parsed.as_string().partition(_MARK)
        item.trivia.indent = indent
        return before.count("\n") + 1 if mark else None

    @cached_property
    def _parsed(self) -> tomlkit.TOMLDocument:
        return tomlkit.parse(self.text)


def _item(document: tomlkit.TOMLDocument, key: Key) -> Item | None:
    """Return what tomlkit has at a key, None if there is nothing."""
    node: Any = document
    for part in key:
        if isinstance(node, AoT) and isinstance(part, int) and part < len(node):
            node = node[part]
            continue
        container = node.value if isinstance(node, Table | InlineTable) else node
        if not isinstance(container, tomlkit.container.Container) or part not in container:
            return None
        node = container.item(str(part))
    if isinstance(node, AoT):
        node = node[0]
    return node if isinstance(node, Item) else None


def read(path: Path) -> Document:
    """Return the document in a file; ExperimentError if it is missing or not valid TOML."""
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: not valid TOML: {error}") from None
    return Document(str(path), values, text)


@dataclass(frozen=True)
class Setting:
    """A `KEY=VALUE` text, and the command-line option that it comes from, for messages."""

    text: str
    option: str = "--set"

    @property
    def place(self) -> str:
        """The place that messages name."""
        return f"{self.option} {self.text}"


Complete = Callable[[Key, Any], Any]
"""Returns the table or list that a key has once it is complete, from the file's value or None."""


def _as_it_is(key: Key, value: Any) -> Any:
    return {} if value is None else value


def override(
    document: Document, settings: Iterable[str | Setting], complete: Complete = _as_it_is
) -> None:
    """Apply `KEY=VALUE` settings in place. VALUE is a TOML value, or plain text.

    In `job.quorum=3` every job is meant, in `job.0.quorum=3` the first. `complete` gives the value
    of a key that a setting reaches into and that is no table or list in the file. Raises
    ExperimentError if a setting is no KEY=VALUE or points beyond what is there."""
    for given in settings:
        setting = given if isinstance(given, Setting) else Setting(given)
        dotted, equals, text = setting.text.partition("=")
        if not equals or not dotted.strip():
            raise ExperimentError(f"{setting.place}: expected KEY=VALUE, such as job.quorum=3")
        key = tuple(int(p) if p.isdigit() else p for p in dotted.strip().split("."))
        setter = _Setter(document, parse_value(text), setting.place, complete)
        setter.assign(document.values, key, ())


def parse_value(text: str) -> Any:
    """Return the TOML value that a text is, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


@dataclass(frozen=True)
class _Setter:
    """One setting: its value, its text for messages."""

    document: Document
    value: Any
    place: str
    complete: Complete

    def assign(self, node: Any, key: Key, done: Key) -> None:
        """Set `key` below a node, in every element of a list that the key does not index."""
        head, rest = key[0], key[1:]
        if isinstance(node, list):
            for index in self._indices(node, head, done):
                below = rest if isinstance(head, int) else key
                self._assign_item(node, index, below, done)
        elif isinstance(node, dict):
            if rest and not isinstance(node.get(head), dict | list):
                if head not in node:
                    self.document.settings[(*done, head)] = self.place
                node[head] = self.complete((*done, head), node.get(head))
            self._assign_item(node, head, rest, done)
        else:
            raise ExperimentError(f"{self.place}: {dotted(done)} is a value and has no {head}")

    def _assign_item(self, node: Any, head: Any, rest: Key, done: Key) -> None:
        # A section keeps its own place; an inline table is now where the setting says.
        if not rest or (done and isinstance(head, str)):
            self.document.settings[(*done, head)] = self.place
        if rest:
            self.assign(node[head], rest, (*done, head))
        else:
            node[head] = self.value

    def _indices(self, node: list[Any], head: str | int, done: Key) -> Sequence[int]:
        if not isinstance(head, int):
            return range(len(node))
        if head >= len(node):
            names = [dotted((*done, index)) for index in range(len(node))]
            raise ExperimentError(
                f"{self.place}: unknown key {dotted((*done, head))}: known: {', '.join(names)}"
            )
        return [head]


def dotted(key: Key) -> str:
    """Return the key as `--set` takes it."""
    return ".".join(map(str, key))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean "x"?` if a known name is near, else the list of the known ones."""
    return _suggestions.hint(name, sorted(known), _suggestions.quoted)


def dumps(values: dict[str, Any]) -> str:
    """Return plain values as TOML text: scalars first, then tables, without None."""
    return "\n".join(_table(values, ())).lstrip("\n") + "\n"


def _table(values: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"{_name(k)} = {inline(v)}" for k, v in values.items() if _stands_inline(v, path)]
    for key, value in values.items():
        if value is None or _stands_inline(value, path):
            continue
        below = (*path, _name(key))
        many = isinstance(value, list)
        head = f"[[{'.'.join(below)}]]" if many else f"[{'.'.join(below)}]"
        for item in value if many else [value]:
            lines += ["", head, *_table(item, below)]
    return lines


def _stands_inline(value: Any, path: tuple[str, ...]) -> bool:
    """Return whether a value is written inline, as all but tables at the top level are."""
    tables = isinstance(value, dict) or (isinstance(value, list) and _all_tables(value))
    return value is not None and not (tables and not path)


def _all_tables(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(item, dict) for item in value)


def inline(value: Any) -> str:
    """Return the value as it is written after `key =`."""
    if isinstance(value, dict):
        items = (f"{_name(k)} = {inline(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(items) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


@lru_cache(4096)
def _quoted(value: str) -> str:
    return tomlkit.string(value).as_string()


@lru_cache(4096)
def _name(key: str) -> str:
    return tomlkit.key(key).as_string()
