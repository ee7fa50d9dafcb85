"""Experiment files: read, changed by `--set`, written."""

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane import _toml_documents
from gradplane._toml_documents import Document, DocumentError, Key, dotted, inline, quoted_name

__all__ = ["Document", "ExperimentError", "Key", "Setting", "dumps", "inline", "override", "read"]


class ExperimentError(Exception):
    """An experiment that cannot be run; the message has a line for each thing that is wrong."""


def read(path: Path) -> Document:
    """Return the document in a file; ExperimentError if it is missing or not valid TOML."""
    try:
        return _toml_documents.read(path)
    except DocumentError as error:
        raise ExperimentError(str(error)) from None


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
        name, equals, text = setting.text.partition("=")
        if not equals or not name.strip():
            raise ExperimentError(f"{setting.place}: expected KEY=VALUE, such as job.quorum=3")
        key = tuple(int(p) if p.isdigit() else p for p in name.strip().split("."))
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


def dumps(values: dict[str, Any]) -> str:
    """Return plain values as TOML text: scalars first, then tables, without None."""
    return "\n".join(_table(values, ())).lstrip("\n") + "\n"


def _table(values: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [
        f"{quoted_name(k)} = {inline(v)}" for k, v in values.items() if _stands_inline(v, path)
    ]
    for key, value in values.items():
        if value is None or _stands_inline(value, path):
            continue
        below = (*path, quoted_name(key))
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
