"""Load an experiment file: read, overridden, validated, resolved and deployed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from gradplane import _shipped_programs
from gradplane.experiment import p4_programs, shipped
from gradplane.experiment.compute_times import with_trace
from gradplane.experiment.deploying import DeploymentError, deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import (
    Document,
    ExperimentError,
    Setting,
    override,
    read,
)
from gradplane.experiment.planned_jobs import with_plan
from gradplane.experiment.schema import Experiment
from gradplane.experiment.validation_text import completed, explain

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
