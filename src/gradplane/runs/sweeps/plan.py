"""The plan of a sweep: its points, resolved and checked, its seeds and its runs."""

import dataclasses
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane.experiment import shipped
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import ExperimentError, read
from gradplane.experiment.loading import Experiment, load_deployment
from gradplane.runs.run_experiment import check_target, choose_network
from gradplane.runs.sweeps.axes import Axis, Point, grid, settings
from gradplane.runs.sweeps.plan_file import SweepError

Values = dict[str, Any]


@dataclass(frozen=True)
class PlannedRun:
    """One run: the number of its point, from 0, its seed, and the name of its folder."""

    point: int
    seed: int
    name: str


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, as plain data.

    experiments: the values of each point's experiment, resolved; a run replaces their seeds.
    identity: marks the sweep's folder, by which a worker finds out whether it sees the same files.
    """

    name: str
    identity: str
    network: str
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    experiments: tuple[Values, ...]

    @property
    def points(self) -> list[Point]:
        """The points of the grid, in the order of `experiments`."""
        return grid(self.axes)

    @property
    def runs(self) -> list[PlannedRun]:
        """All runs: seed by seed, so that a sweep that is stopped has something of each point."""
        width = len(str(len(self.experiments)))
        return [
            PlannedRun(point, seed, f"point-{point + 1:0{width}}-seed-{seed}")
            for seed in self.seeds
            for point in range(len(self.experiments))
        ]

    @property
    def target_accuracy(self) -> float | None:
        """The target of the first point: all have the same, unless a sweep is over it."""
        target: float | None = self.experiments[0]["output"].get("target_accuracy")
        return target

    def as_json(self) -> Values:
        """Return plain values that from_json() reads."""
        return {
            "format": 1,
            "name": self.name,
            "identity": self.identity,
            "network": self.network,
            "axes": [{"key": axis.key, "values": list(axis.values)} for axis in self.axes],
            "seeds": list(self.seeds),
            "experiments": list(self.experiments),
        }

    @classmethod
    def from_json(cls, values: Values) -> "Plan":
        """Return the plan in the values of as_json(). Raises KeyError, TypeError, SweepError."""
        return cls(
            name=values["name"],
            identity=values["identity"],
            network=values["network"],
            axes=tuple(Axis(axis["key"], tuple(axis["values"])) for axis in values["axes"]),
            seeds=tuple(values["seeds"]),
            experiments=tuple(values["experiments"]),
        )


def make_plan(
    source: str | Path | Experiment,
    axes: Sequence[Axis],
    seeds: int,
    *,
    network: str | None = "sim",
    set_keys: Sequence[str] = (),
) -> Plan:
    """Return the plan of an experiment over a grid, every point of it checked.

    seeds: how many; the first is the experiment's, the next ones count up from it. set_keys:
    `KEY=VALUE` overrides of all points. Raises ExperimentError with a line for each thing that is
    wrong at any point, CompileError, and SweepError.
    """
    if seeds < 1:
        raise SweepError(f"--seeds {seeds}: at least 1 is needed")
    _refuse_study(source)
    chosen = choose_network(network, None)
    deployments = _deployments(source, axes, set_keys)
    _check_targets(deployments, chosen)
    first = deployments[0].experiment
    return Plan(
        name=first.name,
        identity=uuid.uuid4().hex,
        network=chosen,
        axes=tuple(axes),
        seeds=tuple(range(first.seed, first.seed + seeds)),
        experiments=tuple(deployment.experiment.values() for deployment in deployments),
    )


def _refuse_study(source: str | Path | Experiment) -> None:
    if not isinstance(source, Experiment) and "study" in read(shipped.find(source)).values:
        raise SweepError(f"{source}: a study has its own repetitions and is not swept")


def _deployments(
    source: str | Path | Experiment, axes: Sequence[Axis], set_keys: Sequence[str]
) -> list[Deployment]:
    """Deploy every point; raise all that is wrong, each line once."""
    found, wrong = [], dict[str, None]()
    for point in grid(axes):
        try:
            found.append(load_deployment(source, [*set_keys, *settings(point)]))
        except ExperimentError as error:
            wrong |= dict.fromkeys(str(error).splitlines())
    if wrong:
        raise ExperimentError("\n".join(wrong))
    return found


def _check_targets(deployments: Sequence[Deployment], network: str) -> None:
    """Check each program and target once."""
    checked = set()
    for deployment in deployments:
        programs = sorted(deployment.programs.items())
        of = [(name, str(one.path), tuple(sorted(one.defines.items()))) for name, one in programs]
        key = (deployment.target.name, *of)
        if key not in checked:
            check_target(deployment, network)
            checked.add(key)


def continued(stored: Plan, asked: Plan) -> Plan:
    """Return the stored plan with the asked one's seeds, for a sweep that is resumed.

    Raises SweepError if the two are not of the same points, or if seeds are fewer."""
    if stored.axes != asked.axes:
        mine, yours = (_axes_text(plan) for plan in (stored, asked))
        raise SweepError(f"the folder's sweep is over {mine}, and this one over {yours}")
    if stored.network != asked.network:
        text = f"the folder's sweep is on the network {stored.network!r}"
        raise SweepError(f"{text}, and this one on {asked.network!r}")
    if stored.experiments != asked.experiments:
        keys = ", ".join(_different(stored.experiments, asked.experiments))
        raise SweepError(f"the folder's sweep is of another experiment: it differs in {keys}")
    return with_seeds(stored, len(asked.seeds))


def with_seeds(plan: Plan, count: int) -> Plan:
    """Return the plan under `count` seeds; SweepError if that is fewer than it has."""
    if count < len(plan.seeds):
        raise SweepError(
            f"--seeds {count}: the folder's sweep has {len(plan.seeds)} seeds already: give as many"
            " or more"
        )
    first = plan.seeds[0]
    return dataclasses.replace(plan, seeds=tuple(range(first, first + count)))


def _axes_text(plan: Plan) -> str:
    texts = (f"{axis.key}={','.join(map(str, axis.values))}" for axis in plan.axes)
    return " ".join(texts) or "nothing"


def _different(one: Any, other: Any) -> list[str]:
    """Return the keys under which the values of two lists of points differ, each once."""
    found = dict[str, None]()

    def compare(mine: Any, yours: Any, key: str) -> None:
        if isinstance(mine, dict) and isinstance(yours, dict):
            for name in {**mine, **yours}:
                compare(mine.get(name), yours.get(name), f"{key}.{name}".strip("."))
        elif isinstance(mine, list) and isinstance(yours, list) and len(mine) == len(yours):
            for pair in zip(mine, yours, strict=True):
                compare(*pair, key)
        elif mine != yours:
            found[key] = None

    for pair in zip(one, other, strict=True):
        compare(*pair, "")
    return list(found)
