"""TOML files that a user writes: the kinds of their tables, places of keys, and what is wrong with
values, in words.

Values are read by tomllib, which is fast; tomlkit finds the line of a key when one is asked for,
and quotes what is written. The messages for pydantic's errors name the place, the key and what is
allowed; a field's description is its unit.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, get_args, get_origin

import tomlkit
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from tomlkit.items import AoT, InlineTable, Item, Table

from gradplane import _suggestions

Key = tuple[str | int, ...]

_MARK = "\0"  # stands in no TOML file
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "text in quotes",
    "bool": "true or false",
    "dict": "a table",
    "tuple": "a list",
    "model": "a table",
    "list": "a list",
}
_BOUNDS = {  # by pydantic's names, in the order of a message
    "from": "from",
    "ge": "at least",
    "gt": "above",
    "le": "at most",
    "lt": "below",
    "multiple_of": "a multiple of",
}


class Section(BaseModel):
    """A table with the declared keys and no others; values are of the declared kind."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class OpenSection(BaseModel):
    """A table whose further keys are parameters of what its declared keys name."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    @property
    def args(self) -> dict[str, Any]:
        """The keys beside the declared ones."""
        return dict(self.__pydantic_extra__ or {})


class DocumentError(Exception):
    """A file that cannot be read as TOML."""


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
        if not mark and isinstance(item, Table):  # only tables below it have headers
            return next(filter(None, (self._line((*key, below)) for below in item)), None)
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
        if not isinstance(container, tomlkit.container.Container) or isinstance(part, int):
            return None  # such as job.0 where the file has [job] for [[job]]
        if part not in container:
            return None
        node = container.item(part)
    if isinstance(node, AoT):
        node = node[0]
    return node if isinstance(node, Item) else None


def read(path: Path | Traversable) -> Document:
    """Return the document in a file; DocumentError if it is missing or not valid TOML."""
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        near = _suggestions.near_file(path) if isinstance(path, Path) else ""
        raise DocumentError(f"{path}: {error.strerror or error}{near}") from None
    except UnicodeDecodeError as error:
        wrong = f"byte {error.object[error.start]:#04x} at {error.start}: {error.reason}"
        raise DocumentError(f"{path}: not valid TOML, which is in UTF-8: {wrong}") from None
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(_syntax_error(path, text, str(error))) from None
    if not text.strip():
        raise DocumentError(f"{path}: the file is empty")
    return Document(str(path), values, text)


_BARE = r"""\s*([\w.-]+)\s*=\s*([^"'\[{#=\s][^"'#=,]*?)\s*(?:#.*)?$"""
"""A key and its value where that is neither text, list nor table."""


def _syntax_error(path: Path | Traversable, text: str, error: str) -> str:
    """Return an error of tomllib with its line before it, and how a bare value is written."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", error)
    if found is None:
        return f"{path}: not valid TOML: {error}"
    why, line, column = found[1], int(found[2]), found[3]
    bare = re.match(_BARE, text.splitlines()[line - 1])
    hint = ""
    if bare and (percent := re.fullmatch(r"(\d+(?:\.\d*)?)\s*%", bare[2])):
        hint = f": write a share: {bare[1]} = {float(percent[1]) / 100:g}"
    elif bare:
        hint = f': text is in quotes: {bare[1]} = "{bare[2]}"'
    return f"{path}:{line}: not valid TOML: {why}, column {column}{hint}"


# -- words ------------------------------------------------------------------------------------


def dotted(key: Key) -> str:
    """Return the key as `--set` takes it."""
    return ".".join(map(str, key))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean "x"?` if a known name is near, else the list of the known ones."""
    return _suggestions.hint(name, sorted(known), _suggestions.quoted)


def inline(value: Any) -> str:
    """Return the value as it is written after `key =`."""
    if isinstance(value, dict):
        items = (f"{quoted_name(k)} = {inline(v)}" for k, v in value.items() if v is not None)
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
def quoted_name(key: str) -> str:
    """Return a key as it is written, in quotes where it needs them."""
    return tomlkit.key(key).as_string()


# -- what is wrong ----------------------------------------------------------------------------


def explain(document: Document, model: type[BaseModel], error: ValidationError) -> str:
    """Return a line for each error of the document's values as a `model`."""
    return "\n".join(line for _, line in problems(document, model, error))


def problems(
    document: Document, model: type[BaseModel], error: ValidationError
) -> list[tuple[Key, str]]:
    """Return the key and the line of each error of the document's values as a `model`."""
    return [_problem(document, model, dict(item)) for item in error.errors()]


def faults(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Return what is wrong with the values of a `model` that are not from a document."""
    items: list[dict[str, Any]] = [dict(item) for item in error.errors()]
    return [_say(model, _key(model, item["loc"]), str(item["type"]), item) for item in items]


def _problem(document: Document, model: type[BaseModel], item: dict[str, Any]) -> tuple[Key, str]:
    key, kind = _key(model, item["loc"]), str(item["type"])
    if kind.startswith("union_tag"):
        key = (*key, item["ctx"]["discriminator"].strip("'"))
    return key, f"{document.place(key)}: {_say(model, key, kind, item)}"


def _say(model: type[BaseModel], key: Key, kind: str, item: dict[str, Any]) -> str:
    name = dotted(key)
    if kind == "contradiction":
        return str(item["msg"])
    if kind == "extra_forbidden":
        return f"unknown key {name}: {_other_key(model, key, item)}"
    if kind == "tuple_type" and isinstance(item["input"], dict):
        return f"[{name}] is a single table: write [[{name}]], as there may be several"
    if kind == "value_error":
        return ": ".join(filter(None, (name, str(item["msg"]).removeprefix("Value error, "))))
    if kind == "refused":
        return f"{name}: {item['msg']}"
    if kind in ("missing", "union_tag_not_found"):
        return f"{name} is missing"
    if kind == "union_tag_invalid":
        tags = item["ctx"]["expected_tags"].replace("'", '"').split(", ")
        return f'{name} = "{item["ctx"]["tag"]}": expected {_either(tags)}'
    given = f"{name} = {inline(item['input'])}" if name else inline(item["input"])
    return f"{given}: expected {_expected(model, kind, item)}"


def _other_key(model: type[BaseModel], key: Key, item: dict[str, Any]) -> str:
    """Return the hint for an unknown key: what the document's model says of it (`elsewhere`), a
    near key of its section, the members of its union or else the sections that have such a key, or
    the section's keys."""
    here, name = _model(model, item["loc"][:-1]), str(key[-1])
    known = here.model_fields
    elsewhere = getattr(model, "elsewhere", lambda key: "")
    if hint := elsewhere(key) or _suggestions.did_you_mean(name, known, _suggestions.quoted):
        return str(hint)
    field = model.model_fields.get(str(key[0]))
    members = [*models_in(field.annotation)] if field else []
    tags = [f'"{_tag(member)}"' for member in members if name in member.model_fields]
    if here in members and _tag(here) and tags:
        return f'it is a key of model {_either(tags)}, and this is "{_tag(here)}"'
    having = []
    for section, at in model.model_fields.items():
        if any(name in _keys(one) for one in models_in(at.annotation)):
            several = get_origin(at.annotation) is tuple
            having.append(f"[[{section}]]" if several else f"[{section}]")
    listed = " and ".join(", ".join(having).rsplit(", ", 1))
    return f"it is a key of {listed}" if having else nearest(name, known)


def _either(words: list[str]) -> str:
    return " or ".join(", ".join(words).rsplit(", ", 1))


def _keys(model: type[BaseModel]) -> set[str]:
    """Return the keys of a section, with those that are arguments of what it names."""
    further = getattr(model, "further_keys", set)
    return {*model.model_fields, *further()}


def _expected(model: type[BaseModel], kind: str, item: dict[str, Any]) -> str:
    if kind == "literal_error":
        return str(item["ctx"]["expected"]).replace("'", '"')
    if kind == "string_pattern_mismatch":
        return "letters, digits, '_', '.' and '-', a letter or digit first"
    if kind == "too_short":
        return f"at least {item['ctx']['min_length']} in the list"
    noun = _KINDS.get(kind.partition("_")[0])
    if kind.startswith("model_") and (here := _model(model, item["loc"])) and not _open(here):
        return f"the keys {', '.join(here.model_fields)}"
    at = field_at(model, item["loc"])
    allowed = _range(at, item) + _unit(at)
    if noun and kind.rpartition("_")[2] in ("type", "float", "number", "parsing"):
        return " ".join(filter(None, (noun, allowed)))
    return allowed or str(item["msg"])


def _range(field: FieldInfo | None, item: dict[str, Any]) -> str:
    """Return the bounds in words: "from 1 to 64", "above 0", "at least 0 and below 1".

    They are all of the field's, or else the one that the value violates."""
    bounds = {name: value for name, value in item.get("ctx", {}).items() if name in _BOUNDS}
    for rule in field.metadata if field else ():
        bounds |= {name: getattr(rule, name) for name in _BOUNDS if hasattr(rule, name)}
    if "ge" in bounds and "le" in bounds:
        bounds["from"] = f"{bounds.pop('ge')} to {bounds.pop('le')}"
    return " and ".join(f"{_BOUNDS[name]} {bounds[name]}" for name in _BOUNDS if name in bounds)


def _unit(at: FieldInfo | None) -> str:
    """Return the field's unit, or how to write the share that a percentage stands for."""
    if at is None:
        return ""
    bounds = {type(rule).__name__: rule for rule in at.metadata}
    lowest = getattr(bounds.get("Ge") or bounds.get("Gt"), "ge", 0)
    if at.annotation is float and "Le" in bounds and (lowest, bounds["Le"].le) == (0, 1):
        return ", a share: 0.05 is 5 %"
    return f", in {at.description}" if at.description else ""


def field_at(model: type[BaseModel], place: Key) -> FieldInfo | None:
    """Return the field of a model's key, None if there is none."""
    return _model(model, place[:-1]).model_fields.get(str(place[-1])) if place else None


def _model(model: type[BaseModel], place: Key) -> type[BaseModel]:
    """Return the model of the section at `place`, which may be pydantic's or a key of the file."""
    return _walk(model, place)[1]


def _key(model: type[BaseModel], place: Key) -> Key:
    """Return the file's key for pydantic's place, which also has the tag of a union's member."""
    return _walk(model, place)[0]


def _walk(model: type[BaseModel], place: Key) -> tuple[Key, type[BaseModel]]:
    members, key = [model], []
    for part in place:
        chosen = [member for member in members if _tag(member) == part]
        if chosen and len(members) > 1:
            members = chosen
            continue
        key.append(part)
        if part in members[0].model_fields:
            members = list(models_in(members[0].model_fields[str(part)].annotation)) or members
    return tuple(key), members[0]


def _open(member: type[BaseModel]) -> bool:
    return member.model_config.get("extra") == "allow"


def _tag(member: type[BaseModel]) -> str | None:
    """Return the value of `model` by which a union of sections chooses this one."""
    field = member.model_fields.get("model")
    return next(iter(get_args(field.annotation)), None) if field else None


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, inside tuples and unions too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)
