"""Messages for what pydantic refuses in an experiment file: place, key, allowed values."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gradplane.experiment.document import Document, Key, dotted, inline, nearest

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "text in quotes",
    "bool": "true or false",
    "dict": "a table",
    "tuple": "a list",
    "model": "a table",
    "list": "a list",
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
    key: Key = item["loc"]
    return f"{document.place(key)}: {_say(model, key, item['type'], item)}"


def _say(model: type[BaseModel], key: Key, kind: str, item: dict[str, Any]) -> str:
    name = dotted(key)
    if kind == "extra_forbidden":
        section = _model(model, key[:-1])
        return f"unknown key {name}: {nearest(str(key[-1]), section.model_fields)}"
    if kind == "tuple_type" and isinstance(item["input"], dict):
        return f"[{name}] is a single table: write [[{name}]], as there may be several"
    if kind == "refused":
        return f"{name}: {item['msg']}"
    if kind == "missing":
        return f"{name} is missing"
    return f"{name} = {inline(item['input'])}: expected {_expected(model, key, kind, item)}"


def _expected(model: type[BaseModel], key: Key, kind: str, item: dict[str, Any]) -> str:
    if kind == "literal_error":
        return str(item["ctx"]["expected"]).replace("'", '"')
    if kind == "string_pattern_mismatch":
        return "letters, digits, '_', '.' and '-', a letter or digit first"
    noun = _KINDS.get(kind.partition("_")[0])
    field = _field(model, key)
    allowed = _range(field) if field else ""
    if noun and kind.rpartition("_")[2] in ("type", "float", "parsing"):
        return " ".join(filter(None, (noun, allowed)))
    return allowed or str(item["msg"])


def _range(field: FieldInfo) -> str:
    """Return the bounds in words: "from 1 to 64", "above 0", "at least 0 and below 1"."""
    bounds = {type(rule).__name__: rule for rule in field.metadata}
    low = f"at least {bounds['Ge'].ge}" if "Ge" in bounds else ""
    low = f"above {bounds['Gt'].gt}" if "Gt" in bounds else low
    high = f"at most {bounds['Le'].le}" if "Le" in bounds else ""
    high = f"below {bounds['Lt'].lt}" if "Lt" in bounds else high
    if "Ge" in bounds and "Le" in bounds:
        low, high = f"from {bounds['Ge'].ge} to {bounds['Le'].le}", ""
    multiple = f"a multiple of {bounds['MultipleOf'].multiple_of}" if "MultipleOf" in bounds else ""
    return " and ".join(filter(None, (low, high, multiple)))


def _field(model: type[BaseModel], key: Key) -> FieldInfo | None:
    return _model(model, key[:-1]).model_fields.get(str(key[-1])) if key else None


def _model(model: type[BaseModel], key: Key) -> type[BaseModel]:
    """Return the model of the section at `key`."""
    for part in key:
        if part in model.model_fields:
            model = next(_models(model.model_fields[str(part)].annotation), model)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, inside tuples and unions too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
