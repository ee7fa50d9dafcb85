"""From an experiment file to a resolved and checked experiment, which a run folder keeps."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from gradplane.experiment import p4_programs
from gradplane.experiment.checks import problems_of
from gradplane.experiment.document import Document, ExperimentError, override, read
from gradplane.experiment.schema import Experiment, Job, NamedModel
from gradplane.experiment.validation_text import explain

__all__ = ["Experiment", "ExperimentError", "load", "resolve"]


def load(
    source: str | Path | Experiment, settings: Sequence[str] = (), seed: int | None = None
) -> Experiment:
    """The resolved experiment of a file (or an Experiment), with `KEY=VALUE` settings and a seed.

    The seed replaces the experiment's, every job's and every impairment's own. Raises
    ExperimentError, with a line for each thing that is wrong: place, key, what is allowed."""
    document = _document(source)
    # Settings change complete values, so that job.model.hidden=[9] finds the default model's name.
    document.values = _validated(document).values()
    override(document, settings)
    if seed is not None:
        override(document, [f"seed={seed}", f"job.seed={seed}", f"impairment.seed={seed}"])
    experiment = _with_program(resolve(_validated(document)), document, source)
    problems = [f"{document.place(key)}: {text}" for key, text in problems_of(experiment)]
    if problems:
        raise ExperimentError("\n".join(problems))
    return experiment


def resolve(experiment: Experiment) -> Experiment:
    """The experiment with every default that depends on another key filled in."""
    jobs = tuple(_resolved(experiment, n, job) for n, job in enumerate(experiment.job))
    impairments = tuple({"seed": experiment.seed} | spec for spec in experiment.impairment)
    return experiment.model_copy(update={"job": jobs, "impairment": impairments})


def _resolved(experiment: Experiment, number: int, job: Job) -> Job:
    workers = job.workers or max(1, experiment.topology.workers - job.first_host + 1)
    pull = job.pull or (NamedModel(name="float32") if job.aggregation == "ps" else None)
    return job.model_copy(
        update={
            "name": job.name or (f"job{number}" if len(experiment.job) > 1 else experiment.name),
            "workers": workers,
            "quorum": job.quorum or workers,
            "seed": experiment.seed if job.seed is None else job.seed,
            "pull": pull,
        }
    )


def _with_program(
    experiment: Experiment, document: Document, source: str | Path | Experiment
) -> Experiment:
    """One of our programs by its name, one's own by its whole path, relative to the file's."""
    folder = Path() if isinstance(source, Experiment) else Path(source).parent
    if experiment.switch.program in p4_programs.shipped():
        return experiment
    try:
        program = p4_programs.find(experiment.switch.program, folder)
    except ExperimentError as error:
        place = document.place(("switch", "program"))
        raise ExperimentError(f"{place}: {error}") from None
    switch = experiment.switch.model_copy(update={"program": str(program)})
    return experiment.model_copy(update={"switch": switch})


def _document(source: str | Path | Experiment) -> Document:
    if isinstance(source, Experiment):
        return Document("experiment", source.values())
    document = read(Path(source))
    document.values.setdefault("name", Path(source).stem)
    return document


def _validated(document: Document) -> Experiment:
    try:
        return Experiment.model_validate(document.values)
    except ValidationError as error:
        raise ExperimentError(explain(document, Experiment, error)) from None
