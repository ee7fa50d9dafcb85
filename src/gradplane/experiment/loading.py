"""Load an experiment file: read, overridden, validated, resolved and deployed."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gradplane import _shipped_programs, aggregations
from gradplane._captures import CaptureError
from gradplane._plugins import LoadError, beside, is_reference, located
from gradplane._toml_documents import field_at, models_in, problems
from gradplane.experiment import checks, own_entries, p4_programs, shipped, tensor_codecs
from gradplane.experiment.checks import Problem
from gradplane.experiment.compute_times import with_trace
from gradplane.experiment.deploying import DeploymentError, deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import Document, ExperimentError, Key, Setting, override, read
from gradplane.experiment.impairment_sections import DropListSection, Impairment, RecordedSection
from gradplane.experiment.planned_jobs import with_plan
from gradplane.experiment.recorded_losses import drop_lists
from gradplane.experiment.schema import Experiment, NamedModel, with_capture
from gradplane.switch.runtime_json import Entries

Model = TypeVar("Model", bound=BaseModel)

_PROGRAM = "thc.p4"  # in place of one that is wrong

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
    copies: Mapping[str, Path] | None = None,
) -> Deployment:
    """Deploy the experiment of a file (or an Experiment), with `KEY=VALUE` settings and a seed.

    The seed replaces the experiment's, every job's and every impairment's own. recorded: the file
    is a run folder's, so probable mistakes are not refused. copies: of users' files, by the paths
    that the file names; what is named there is looked for in the copy. Raises ExperimentError,
    with a line for each thing that is wrong: place, key, what is allowed."""
    document = _document(source)
    everywhere = [f"seed={seed}", f"job.seed={seed}", f"impairment.seed={seed}"]
    everywhere.append(f"traffic.seed={seed}")
    changes = [*settings, *([] if seed is None else everywhere)]
    override(document, changes, partial(completed, Experiment))
    _leave_lists(document)
    for file, copy in (copies or {}).items():
        document.values = _copied(document.values, file, str(copy.resolve()))
    loading = _Loading(document, source)
    with beside(loading.folder):
        return _loaded(loading, recorded)


def _leave_lists(document: Document) -> None:
    """Take the packets of a list, which a run's folder has in place of a file's name, out of an
    impairment that a setting gave another model."""
    for number, section in enumerate(document.values.get("impairment", ())):
        if ("impairment", number, "model") in document.settings and isinstance(section, dict):
            section.pop("packets", None)


def _loaded(loading: "_Loading", recorded: bool) -> Deployment:
    experiment = loading.with_own_parts(loading.validated())
    if recorded:
        jobs = tuple(tensor_codecs.as_recorded(job) for job in experiment.job)
        experiment = _with(experiment, {"job": jobs})
    experiment = loading.resolved(loading.with_plans(experiment))
    experiment = loading.with_traces(loading.with_program(experiment))
    experiment = loading.with_captures(loading.with_losses(experiment))
    experiment = loading.with_entries(experiment)
    if not recorded:  # a run folder has the paths of another time, perhaps of another machine
        experiment = loading.with_certificates(experiment)
    return loading.deployed(experiment, advise=not recorded)


class _Loading:
    """An experiment on its way from a document to a Deployment, and what was found wrong so far.

    What is wrong gets a value that is right, so that the next steps find more; what they say of
    such a key is not true and left out.
    """

    def __init__(self, document: Document, source: str | Path | Experiment) -> None:
        self._document = document
        self._from_code = isinstance(source, Experiment)
        self.folder = Path() if self._from_code else Path(document.name).parent
        self._lines: list[str] = []
        self._mended: list[Key] = []

    def _add(self, text: str, *keys: Key, mended: Key | None = None) -> None:
        """Note a problem of some keys. mended: the key, or the table, whose value is replaced."""
        known = any(key[: len(done)] == done for key in keys for done in self._mended)
        lines = [f"{self._document.place(*keys)}: {line}" for line in text.split("\n")]
        self._lines += [] if known else lines
        if mended is not None:
            self._mended.append(mended)

    def _refuse(self) -> ExperimentError:
        """Return the error with all that is wrong, in the order of the file's lines."""
        head = f"{self._document.name}:"

        def line(text: str) -> int:
            number = text.removeprefix(head).partition(":")[0]
            return int(number) if text.startswith(head) and number.isdecimal() else 0

        return ExperimentError("\n".join(sorted(dict.fromkeys(self._lines), key=line)))

    def validated(self) -> Experiment:
        """Return the experiment, without the keys whose values are wrong."""
        values = deepcopy(self._document.values)
        try:
            return Experiment.model_validate(values)
        except ValidationError as error:
            for key, line in problems(self._document, Experiment, error):
                self._lines.append(line)
                self._mended.append(key)
                _remove(values, key)
        try:
            return Experiment.model_validate(values)
        except ValidationError as error:
            for key, _ in problems(self._document, Experiment, error):
                self._mended.append(key[:2])
                _replace(values, key[:2])
        try:
            return Experiment.model_validate(values)
        except ValidationError:
            raise self._refuse() from None

    def with_own_parts(self, experiment: Experiment) -> Experiment:
        """Return the experiment with users' objects by the paths of their files, where these are
        in its folder. Raises ExperimentError if a scheme cannot be loaded."""
        topology = self._named(experiment.topology, "kind")
        switch = self._named(experiment.switch, "target")
        jobs = []
        for number, job in enumerate(experiment.job):
            own = {key: self._named(getattr(job, key), "name") for key in ("push", "pull")}
            for key in ("model", "data"):
                named = getattr(job, key)
                in_current = located(named.name, Path()) != named.name
                own[key] = named if in_current else self._named(named, "name")
            own["aggregation"] = located(job.aggregation, self.folder)
            jobs.append(_with(job, own))
            try:
                aggregations.get(jobs[-1].aggregation)
            except LoadError as error:
                self._add(str(error), ("job", number, "aggregation"))
        if self._lines and any(is_reference(job.aggregation) for job in jobs):
            raise self._refuse()
        return _with(experiment, {"topology": topology, "switch": switch, "job": tuple(jobs)})

    def _named(self, section: Any, key: str) -> Any:
        """Return a section whose key names a user's object by its file's path."""
        if section is None:
            return None
        update: dict[str, Any] = {key: located(getattr(section, key), self.folder)}
        if isinstance(section, NamedModel) and isinstance(section.args.get("tensors"), list):
            update["tensors"] = [self._tensor_rule(rule) for rule in section.args["tensors"]]
        return _with(section, update)

    def _tensor_rule(self, rule: Any) -> Any:
        match rule:
            case [pattern, str(name)]:
                return [pattern, located(name, self.folder)]
            case [pattern, {"name": str(name)} as codec]:
                return [pattern, codec | {"name": located(name, self.folder)}]
        return rule

    def with_plans(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the content of its jobs' plans, not their files' names."""
        jobs = []
        for number, job in enumerate(experiment.job):
            try:
                jobs.append(with_plan(job, self.folder))
            except ExperimentError as error:
                self._add(str(error), ("job", number, "plan"), mended=("job", number))
                jobs.append(job.model_copy(update={"plan": None}))
        return experiment.model_copy(update={"job": tuple(jobs)})

    def resolved(self, experiment: Experiment) -> Experiment:
        """Return the experiment with all defaults; a job with too many workers has one."""
        try:
            return resolve(experiment)
        except DeploymentError as error:
            self._add_all(error.problems)
        jobs = tuple(_with(job, {"workers": job.workers or 1}) for job in experiment.job)
        self._mended += [("job", number, "workers") for number in range(len(jobs))]
        return resolve(_with(experiment, {"job": jobs}))

    def with_program(self, experiment: Experiment) -> Experiment:
        """Return the experiment with its programs: shipped ones by name, users' by their paths."""
        return self._each_switch(experiment, "program", self._program)

    def with_entries(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the entries of own tables, not their files' names."""
        return self._each_switch(experiment, "entries", self._entries)

    def _each_switch(
        self, experiment: Experiment, key: str, found: Callable[[Any, Key], Any]
    ) -> Experiment:
        """Return the experiment with what is found for a key of all switches, or of one."""
        section = experiment.switch
        update = {key: found(getattr(section, key), ("switch", key))}
        if section.only is not None:
            update["only"] = {
                name: _with(part, {key: found(getattr(part, key), ("switch", "only", name, key))})
                for name, part in section.only.items()
            }
        return _with(experiment, {"switch": _with(section, update)})

    def _program(self, program: str | None, key: Key) -> str | None:
        if program is None or program in _shipped_programs.shipped():
            return program
        try:
            return str(p4_programs.find_program(program, self.folder))
        except ExperimentError as error:
            self._add(str(error), key, mended=key)
            return _PROGRAM

    def _entries(self, entries: str | Entries | None, key: Key) -> Entries | None:
        if not isinstance(entries, str):
            return entries
        try:
            return own_entries.read(entries, self.folder)
        except ExperimentError as error:
            self._add(str(error), key, mended=key)
            return None

    def with_traces(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the rows of its traces of compute times, not their names."""
        jobs = []
        for number, job in enumerate(experiment.job):
            try:
                times = with_trace(job.compute_ms, self.folder)
            except ExperimentError as error:
                key = ("job", number, "compute_ms")
                self._add(str(error), key, mended=key)
                times = 1.0
            jobs.append(job.model_copy(update={"compute_ms": times}))
        return experiment.model_copy(update={"job": tuple(jobs)})

    def with_losses(self, experiment: Experiment) -> Experiment:
        """Return the experiment with its recorded losses as drop lists, not their files' names."""
        sections: list[Impairment] = []
        further: list[Impairment] = []  # at the end, so that the others keep their numbers
        for number, section in enumerate(experiment.impairment):
            if not isinstance(section, RecordedSection):
                sections.append(section)
                continue
            try:
                first, *others = drop_lists(section, self.folder)
                sections.append(first)
                further += others
            except ExperimentError as error:
                key = ("impairment", number, "file")
                self._add(str(error), key, mended=key)
                sections.append(DropListSection(model="drop list", packets=(), seed=0))
        return experiment.model_copy(update={"impairment": (*sections, *further)})

    def with_certificates(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the paths of its TLS files, which are looked for from its
        folder."""
        section = experiment.cluster
        if section is None or section.tls is None:
            return experiment
        found = {}
        for key, name in section.tls.model_dump(exclude_none=True).items():
            found[key] = str((self.folder / name).resolve())
            if not Path(found[key]).is_file():
                self._add(f"no file {found[key]}", ("cluster", "tls", key))
        tls = section.tls.model_copy(update=found)
        return experiment.model_copy(update={"cluster": section.model_copy(update={"tls": tls})})

    def with_captures(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the packets of its background traffic's captures."""
        flows = []
        for number, flow in enumerate(experiment.traffic):
            try:
                flows.append(with_capture(flow, self.folder))
            except CaptureError as error:
                self._add(str(error), ("traffic", number, "file"), mended=("traffic", number))
                flows.append(flow)
        return experiment.model_copy(update={"traffic": tuple(flows)})

    def deployed(self, experiment: Experiment, advise: bool) -> Deployment:
        """Return the deployment. Raises ExperimentError with all that is wrong.

        advise: refuse probable mistakes; a rate without a unit is none in an Experiment's code."""
        bare = [] if self._from_code or not advise else list(checks.rates(experiment))
        self._add_all(bare)
        if bare:  # times that follow from them would be reported as well
            self._mended += [problem.keys[0] for problem in bare]
            experiment = _in_megabits(experiment, [problem.keys[0][-1] for problem in bare])
        try:
            deployment = deploy(experiment, advise=advise)
        except DeploymentError as error:
            self._add_all(error.problems)
        if self._lines:
            raise self._refuse() from None
        return deployment

    def _add_all(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            self._add(problem.text, *problem.keys)


def _copied(values: Any, file: str, copy: str) -> Any:
    """Return plain values with references into a file as those into its copy."""
    if isinstance(values, dict):
        return {key: _copied(value, file, copy) for key, value in values.items()}
    if isinstance(values, list):
        return [_copied(value, file, copy) for value in values]
    if isinstance(values, str) and (values == file or values.startswith(f"{file}:")):
        return copy + values.removeprefix(file)
    return values


def _remove(values: Any, key: Key) -> None:
    """Remove a key from plain values, as far as it is there."""
    for part in key[:-1]:
        inside = isinstance(values, dict) and part in values
        if not inside and not (isinstance(values, list) and isinstance(part, int)):
            return
        values = values[part]
    if isinstance(values, dict):
        values.pop(key[-1], None)


_SUBSTITUTES: dict[str, Any] = {
    "impairment": {"model": "drop list", "packets": []},
    "traffic": {"source": "h1", "destination": "h2", "rate": "1Mbit"},
    "job": {},
}
"""Stand-ins for a table that cannot be read, one of several of its name."""


def _replace(values: dict[str, Any], key: Key) -> None:
    """Replace a table of a list, and remove any other."""
    if isinstance(values.get(str(key[0])), list) and len(key) > 1:
        values[str(key[0])][key[1]] = deepcopy(_SUBSTITUTES[str(key[0])])
    else:
        values.pop(str(key[0]), None)


def _in_megabits(experiment: Experiment, names: Sequence[str | int]) -> Experiment:
    """Return the experiment with a unit at the topology's rates of these names."""
    args = {name: _megabits(value) for name, value in experiment.topology.args.items()
            if name in names}  # fmt: skip
    return _with(experiment, {"topology": experiment.topology.model_copy(update=args)})


def _megabits(value: Any) -> Any:
    if isinstance(value, list):
        return [_megabits(one) for one in value]
    return f"{value}Mbit" if type(value) is int else value


def _document(source: str | Path | Experiment) -> Document:
    if isinstance(source, Experiment):
        return Document("experiment", source.values())
    path = shipped.find(source)
    document = read(path)
    document.values.setdefault("name", path.stem)
    return document


def completed(model: type[BaseModel], key: Key, value: Any) -> Any:
    """Return the value of a model's key as a table or list, plain, for settings to reach into.

    A missing one has its default, a name in quotes stands for a table with that name."""
    field = field_at(model, key)
    if field is None:
        return {} if value is None else value
    if value is None:
        return _plain(field.get_default(call_default_factory=True))
    named = any("name" in kind.model_fields for kind in models_in(field.annotation))
    return {"name": value} if named and isinstance(value, str) else value


def _with(model: Model, values: Mapping[str, Any]) -> Model:
    """Return a model with values in place of others; what stays the same is no more given than
    before."""
    update = {key: value for key, value in values.items() if getattr(model, key, None) != value}
    return model.model_copy(update=update)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {} if value is None else value
