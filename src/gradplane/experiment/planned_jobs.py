"""A job with a plan: the key `plan`, and the keys whose values follow from the plan."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradplane._suggestions import near_file
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.schema import Job
from gradplane.hosts.config import ConfigError
from gradplane.hosts.protocols.run_plan import COMPUTATION, RESOURCES, RunPlan, run_plan

__all__ = ["COMPUTATION", "RESOURCES", "RunPlan", "computing_ms", "parsed", "problems", "with_plan"]

SCHEME = "plan"  # of aggregations/


def with_plan(job: Job, folder: Path) -> Job:
    """Return a job with the content of its plan's file, looked for from a folder, in the file's
    place, and with the keys that follow from it where they are not given.

    Raises ExperimentError for a file that is no plan.
    """
    if job.plan is None:
        return job
    content = _content(job.plan, folder)
    given = job.model_fields_set
    codec = {"name": content.get("codec"), **(content.get("codec_parameters") or {})}
    defaults = {
        "aggregation": SCHEME,
        "reliability": "retransmit",
        "push": codec,
        "marked": run_plan(content).marked,
        "compute_ms": 0.0,
    }
    follows = {key: value for key, value in defaults.items() if key not in given}
    changed = job.changed({"plan": json.dumps(content), **follows})
    if changed.push.name != content.get("codec"):
        raise ExperimentError(
            f'push is "{changed.push.name}", and the plan is made for "{content.get("codec")}":'
            " leave out push, or plan with that codec"
        )
    return changed


def _content(plan: str, folder: Path) -> dict[str, Any]:
    if plan.lstrip().startswith("{"):  # a run folder's experiment holds the plan itself
        text, name = plan, "plan"
    else:
        path = folder / plan
        name = f"plan {path}"
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = f"{getattr(error, 'strerror', None) or error}{near_file(path)}"
            raise ExperimentError(f"{name}: {reason}") from None
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ExperimentError(f"{name}: {error}") from None
    if not isinstance(content, dict):
        raise ExperimentError(f"{name}: not a plan: write it with gradplane plan ... --out DIR")
    try:
        run_plan(content)
    except ConfigError as error:
        raise ExperimentError(f"{name}: {str(error).removeprefix('plan: ')}") from None
    return content


def parsed(job: Job) -> RunPlan:
    """Return the plan of a job that has one, read before."""
    assert job.plan is not None
    return run_plan(json.loads(job.plan))


def computing_ms(job: Job) -> float:
    """Return the milliseconds of an iteration's computation in a plan."""
    plan = parsed(job)
    return (plan.forward_ns + sum(tensor.compute_ns for tensor in plan.tensors)) / 1e6


def problems(job: Job, values: int) -> Iterator[tuple[str, str]]:
    """Yield what does not fit between a job and its plan, by key. values: of the gradient."""
    if job.plan is None:
        return
    plan = parsed(job)
    if job.size != plan.workers:
        yield (
            "workers",
            f"{job.size} workers, and the plan is for {plan.machines} machines with {plan.gpus}"
            f" GPUs, each a worker: use workers = {plan.workers}",
        )
    if values != plan.values:
        yield (
            "model",
            f"model {job.model.name} has {values} values, and the plan {plan.values}: use model ="
            f' {{ name = "synthetic", values = {plan.values} }}, or plan for this model',
        )
    if job.aggregation != SCHEME:
        yield "aggregation", f'aggregation = "{job.aggregation}" with plan: use "{SCHEME}"'
