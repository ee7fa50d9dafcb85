"""From an experiment file to a resolved and checked experiment, which a run folder keeps."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from gradplane.experiment import p4_programs
from gradplane.experiment.deploying import DeploymentError, deploy, resolve
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import Document, ExperimentError, override, read
from gradplane.experiment.schema import Experiment
from gradplane.experiment.validation_text import explain

__all__ = ["Experiment", "ExperimentError", "load", "load_deployment"]


def load(
    source: str | Path | Experiment, settings: Sequence[str] = (), seed: int | None = None
) -> Experiment:
    """Return the resolved and checked experiment that `load_deployment` deploys."""
    return load_deployment(source, settings, seed).experiment


def load_deployment(
    source: str | Path | Experiment, settings: Sequence[str] = (), seed: int | None = None
) -> Deployment:
    """Deploy the experiment of a file (or an Experiment), with `KEY=VALUE` settings and a seed.

    The seed replaces the experiment's, every job's and every impairment's own. Raises
    ExperimentError, with a line for each thing that is wrong: place, key, what is allowed."""
    document = _document(source)
    # Settings change complete values, so that job.model.hidden=[9] finds the default model's name.
    document.values = _validated(document).values()
    override(document, settings)
    if seed is not None:
        override(document, [f"seed={seed}", f"job.seed={seed}", f"impairment.seed={seed}"])
    experiment = _with_program(resolve(_validated(document)), document, source)
    try:
        return deploy(experiment)
    except DeploymentError as error:
        lines = [f"{document.place(*p.keys)}: {p.text}" for p in error.problems]
        raise ExperimentError("\n".join(lines)) from None


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
