"""Experiment files as text: places of keys, `--set` overrides, nearest names, writing TOML."""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradplane import _suggestions

Key = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_PAIR = re.compile(r"\s*([A-Za-z0-9_\-.\" ]+?)\s*=")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class ExperimentError(Exception):
    """An experiment that cannot be run; the message has a line for each thing that is wrong."""


@dataclass
class Document:
    """The values of a TOML file, and for each key the place to name when it is wrong."""

    name: str
    values: dict[str, Any]
    places: dict[Key, str] = field(default_factory=dict)

    def place(self, key: Key) -> str:
        """The place of the key, or of what is nearest around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.places:
                return self.places[key[:end]]
        return self.name


def read(path: Path) -> Document:
    """The document in a file; ExperimentError if it is not there or is no TOML."""
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: no valid TOML: {error}") from None
    return Document(str(path), values, _places(text, str(path)))


def _places(text: str, name: str) -> dict[Key, str]:
    """file:line of each table header and each key that starts a line."""
    places: dict[Key, str] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                places.setdefault(table, f"{name}:{number}")
                table = (*table, counts[table])
            places[table] = f"{name}:{number}"
        elif pair := _PAIR.match(line):
            places[(*table, *_parts(pair[1]))] = f"{name}:{number}"
    return places


def _parts(dotted: str) -> Key:
    return tuple(part.strip().strip('"') for part in dotted.split("."))


def override(document: Document, settings: Iterable[str]) -> None:
    """Apply `KEY=VALUE` settings in place. VALUE is a TOML value, or plain text.

    In `job.quorum=3` every job is meant, in `job.0.quorum=3` the first. ExperimentError if a
    setting is no KEY=VALUE or points beyond what is there."""
    for setting in settings:
        dotted, equals, text = setting.partition("=")
        if not equals or not dotted.strip():
            raise ExperimentError(f"--set {setting}: expected KEY=VALUE, such as job.quorum=3")
        key = tuple(int(p) if p.isdigit() else p for p in dotted.strip().split("."))
        _assign(document, document.values, key, (), _value(text), f"--set {setting}")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _assign(document: Document, node: Any, key: Key, done: Key, value: Any, place: str) -> None:
    """Set `key` below node, in every element of an array that the key does not index."""
    head, rest = key[0], key[1:]
    if isinstance(node, list):
        for index in _indices(node, head, done, place):
            below = rest if isinstance(head, int) else key
            _assign_item(document, node, index, below, done, value, place)
    elif isinstance(node, dict):
        if rest:
            node.setdefault(head, {})
        _assign_item(document, node, head, rest, done, value, place)
    else:
        raise ExperimentError(f"{place}: {dotted(done)} is a value and has no {head}")


def _assign_item(
    document: Document, node: Any, head: Any, rest: Key, done: Key, value: Any, place: str
) -> None:
    # A section keeps its own place; an inline table is now where the setting says.
    if not rest or (done and isinstance(head, str)):
        document.places[(*done, head)] = place
    if rest:
        _assign(document, node[head], rest, (*done, head), value, place)
    else:
        node[head] = value


def _indices(node: list[Any], head: str | int, done: Key, place: str) -> Sequence[int]:
    if not isinstance(head, int):
        return range(len(node))
    if head >= len(node):
        raise ExperimentError(f"{place}: there are {len(node)} of {dotted(done)}, from 0 on")
    return [head]


def dotted(key: Key) -> str:
    """The key as `--set` takes it."""
    return ".".join(map(str, key))


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean "x"?` where a known name is near, else the list of the known ones."""
    return _suggestions.hint(name, sorted(known), lambda near: f'"{near}"')


def dumps(values: dict[str, Any]) -> str:
    """TOML text of plain values: scalars first, then tables. None is left out."""
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
    """Tables are written out at the top level only; a list of tables too."""
    tables = isinstance(value, dict) or (isinstance(value, list) and _all_tables(value))
    return value is not None and not (tables and not path)


def _all_tables(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(item, dict) for item in value)


def inline(value: Any) -> str:
    """The value as it stands behind `key =`."""
    if isinstance(value, dict):
        items = (f"{_name(k)} = {inline(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(items) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _name(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    """A TOML basic string, which is JSON's but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
