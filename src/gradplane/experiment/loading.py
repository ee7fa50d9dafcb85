"""Load an experiment file: read, overridden, validated, resolved and deployed.

The messages for pydantic's errors in a file are made here, too: place, key, allowed values.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gradplane import _shipped_programs
from gradplane.experiment import p4_programs, shipped
from gradplane.experiment.compute_times import with_trace
from gradplane.experiment.deploying import DeploymentError, deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import (
    Document,
    ExperimentError,
    Key,
    Setting,
    dotted,
    inline,
    nearest,
    override,
    read,
)
from gradplane.experiment.planned_jobs import with_plan
from gradplane.experiment.schema import Experiment

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


__all__ = ["Experiment", "ExperimentError", "load", "load_deployment"]


def load(
    source: str | Path | Experiment, settings: Sequence[str | Setting] = (), seed: int | None = None
) -> Experiment:
    """Return the resolved and checked experiment that `load_deployment` deploys."""
    return load_deployment(source, settings, seed).experiment


def load_deployment(
    source: str | Path | Experiment,
    settings: Sequence[str | Setting] = (),
    seed: int | None = None,
    recorded: bool = False,
) -> Deployment:
    """Deploy the experiment of a file (or an Experiment), with `KEY=VALUE` settings and a seed.

    The seed replaces the experiment's, every job's and every impairment's own. recorded: the file
    is a run folder's, so probable mistakes are not refused. Raises ExperimentError,
    with a line for each thing that is wrong: place, key, what is allowed."""
    document = _document(source)
    everywhere = [f"seed={seed}", f"job.seed={seed}", f"impairment.seed={seed}"]
    everywhere.append(f"traffic.seed={seed}")
    changes = [*settings, *([] if seed is None else everywhere)]
    override(document, changes, partial(completed, Experiment))
    experiment = resolve(_with_plans(_validated(document), document))
    experiment = _with_program(experiment, document, source)
    experiment = _with_traces(experiment, document)
    try:
        return deploy(experiment, advise=not recorded)
    except DeploymentError as error:
        lines = [f"{document.place(*p.keys)}: {p.text}" for p in error.problems]
        raise ExperimentError("\n".join(lines)) from None


def _with_program(
    experiment: Experiment, document: Document, source: str | Path | Experiment
) -> Experiment:
    """Return the experiment with its program: a shipped one by name, a user's by its whole path."""
    folder = Path() if isinstance(source, Experiment) else Path(document.name).parent
    if experiment.switch.program in _shipped_programs.shipped():
        return experiment
    try:
        program = p4_programs.find(experiment.switch.program, folder)
    except ExperimentError as error:
        place = document.place(("switch", "program"))
        raise ExperimentError(f"{place}: {error}") from None
    switch = experiment.switch.model_copy(update={"program": str(program)})
    return experiment.model_copy(update={"switch": switch})


def _with_plans(experiment: Experiment, document: Document) -> Experiment:
    """Return the experiment with the content of its jobs' plans, not their files' names."""
    jobs = []
    for number, job in enumerate(experiment.job):
        try:
            jobs.append(with_plan(job, Path(document.name).parent))
        except ExperimentError as error:
            place = document.place(("job", number, "plan"))
            raise ExperimentError(f"{place}: {error}") from None
    return experiment.model_copy(update={"job": tuple(jobs)})


def _with_traces(experiment: Experiment, document: Document) -> Experiment:
    """Return the experiment with the rows of its traces of compute times, not their files' names.

    A file is looked for from the experiment file's folder."""
    jobs = []
    for number, job in enumerate(experiment.job):
        try:
            times = with_trace(job.compute_ms, Path(document.name).parent)
        except ExperimentError as error:
            place = document.place(("job", number, "compute_ms"))
            raise ExperimentError(f"{place}: {error}") from None
        jobs.append(job.model_copy(update={"compute_ms": times}))
    return experiment.model_copy(update={"job": tuple(jobs)})


def _document(source: str | Path | Experiment) -> Document:
    if isinstance(source, Experiment):
        return Document("experiment", source.values())
    path = shipped.find(source)
    document = read(path)
    document.values.setdefault("name", path.stem)
    return document


def _validated(document: Document) -> Experiment:
    try:
        return Experiment.model_validate(document.values)
    except ValidationError as error:
        raise ExperimentError(explain(document, Experiment, error)) from None
