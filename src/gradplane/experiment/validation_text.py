"""Messages for pydantic's errors in an experiment file: place, key, allowed values."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gradplane.experiment.document import Document, Key, dotted, inline, nearest

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


def explain(document: Document, model: type[BaseModel], error: ValidationError) -> str:
    """Return a line for each error of the document's values as a `model`."""
    return "\n".join(_line(document, model, dict(item)) for item in error.errors())


def completed(model: type[BaseModel], key: Key, value: Any) -> Any:
    """Return the value of a model's key as a table or list, plain, for settings to reach into.

    A missing one has its default, a name in quotes stands for a table with that name."""
    field = _field(model, key)
    if field is None:
        return {} if value is None else value
    if value is None:
        return _plain(field.get_default(call_default_factory=True))
    named = any("name" in kind.model_fields for kind in _models(field.annotation))
    return {"name": value} if named and isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {} if value is None else value


def _line(document: Document, model: type[BaseModel], item: dict[str, Any]) -> str:
    key, kind = _key(model, item["loc"]), str(item["type"])
    if kind.startswith("union_tag"):
        key = (*key, item["ctx"]["discriminator"].strip("'"))
    return f"{document.place(key)}: {_say(model, key, kind, item)}"


def _say(model: type[BaseModel], key: Key, kind: str, item: dict[str, Any]) -> str:
    name = dotted(key)
    if kind == "contradiction":
        return str(item["msg"])
    if kind == "extra_forbidden":
        section = _model(model, item["loc"][:-1])
        return f"unknown key {name}: {nearest(str(key[-1]), section.model_fields)}"
    if kind == "tuple_type" and isinstance(item["input"], dict):
        return f"[{name}] is a single table: write [[{name}]], as there may be several"
    if kind == "refused":
        return f"{name}: {item['msg']}"
    if kind in ("missing", "union_tag_not_found"):
        return f"{name} is missing"
    if kind == "union_tag_invalid":
        tags = item["ctx"]["expected_tags"].replace("'", '"')
        return f'{name} = "{item["ctx"]["tag"]}": expected {" or ".join(tags.rsplit(", ", 1))}'
    return f"{name} = {inline(item['input'])}: expected {_expected(model, kind, item)}"


def _expected(model: type[BaseModel], kind: str, item: dict[str, Any]) -> str:
    if kind == "literal_error":
        return str(item["ctx"]["expected"]).replace("'", '"')
    if kind == "string_pattern_mismatch":
        return "letters, digits, '_', '.' and '-', a letter or digit first"
    noun = _KINDS.get(kind.partition("_")[0])
    allowed = _range(_field(model, item["loc"]), item)
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


def _field(model: type[BaseModel], place: Key) -> FieldInfo | None:
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
            members = list(_models(members[0].model_fields[str(part)].annotation)) or members
    return tuple(key), members[0]


def _tag(member: type[BaseModel]) -> str | None:
    """Return the value of `model` by which a union of sections chooses this one."""
    field = member.model_fields.get("model")
    return next(iter(get_args(field.annotation)), None) if field else None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, inside tuples and unions too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
