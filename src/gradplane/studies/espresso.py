"""Espresso's evaluation (EuroSys 2023, section 5) by our planner: schemes and iteration times.

Times are predicted by the planner's timeline, with computation and codec times of ours (see
docs/planner.md); the paper measured trainings on 64 V100.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradplane.planner import search
from gradplane.planner.compiled import Timeline, evaluate
from gradplane.planner.inputs import Compression, Curve, Model, PlannerError, System, load
from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Builder, Candidates
from gradplane.planner.options import Constraint
from gradplane.planner.planning import RESTRICTED, quickest_alone
from gradplane.planner.search import choose

ESPRESSO = "Alg. 1, 2"
OURS = "our search"
FP32, BF16 = "FP32", "BF16"
BASELINES = {
    "BytePS-C.": "like BytePS-Compress",
    "HiTopKComm": "like HiTopKComm",
    "HiPress": "like HiPress",
}
"""The paper's names of the restricted searches."""
SCHEMES = (FP32, BF16, *BASELINES, ESPRESSO, OURS)
FREE = Curve(values=(1.0, 2.0), compress=(0.0, 0.0), decompress=(0.0, 0.0))
HALF = Compression(codec="bfloat16", ratio=0.5, gpu=FREE, cpu=FREE)
"""16 bits a value as a plan's codec; to convert them takes no time."""

Strategist = Callable[[Candidates], Sequence[int]]


class Case(NamedTuple):
    """A model with a codec on a system."""

    model: Model
    compression: Compression
    system: System

    @classmethod
    def of(cls, model: str, codec: str, system: str, machines: int | None = None) -> Case:
        """Return the case of shipped files, where given with another number of machines."""
        loaded = load(System, system)
        if machines is not None:
            loaded = loaded.model_copy(update={"machines": machines})
        return cls(load(Model, model), load(Compression, codec), loaded)

    @property
    def gpus(self) -> int:
        """The number of GPUs of all machines."""
        return self.system.machines * self.system.gpus

    @property
    def computing(self) -> float:
        """The seconds of forward and backward propagation: an iteration on one GPU."""
        return self.model.forward + sum(tensor.compute for tensor in self.model.tensors)

    def job(self, constraints: Sequence[str | Constraint] = ()) -> Candidates:
        """Return the planner's job; PlannerError where the constraints leave no option."""
        return self._builder(constraints).job(*self._tensors)

    def choice(self, constraints: Sequence[str | Constraint] = ()) -> Timeline:
        """Return the timeline of our choice under constraints; PlannerError as `job`."""
        return choose(self._builder(constraints), *self._tensors)

    def seconds(
        self, strategist: Strategist | None = None, constraints: Sequence[str | Constraint] = ()
    ) -> float:
        """Return the iteration's time with the strategy that is chosen under constraints.

        strategist: chooses it; without one it is our choice.
        """
        if strategist is None:
            return self.model.forward + self.choice(constraints).time
        job = self.job(constraints)
        return self.model.forward + evaluate(job, strategist(job))

    def _builder(self, constraints: Sequence[str | Constraint]) -> Builder:
        return Builder(self.compression, self.system, constraints)

    @property
    def _tensors(self) -> tuple[list[float], list[int]]:
        tensors = self.model.tensors
        return [t.compute for t in tensors], [t.values for t in tensors]


def algorithms(job: Candidates) -> Sequence[int]:
    """Return the strategy of Algorithms 1 and 2 (every offload up to 1000 combinations).

    Where no option compresses with the GPU alone, Algorithm 1 chooses among the others."""
    kinds = (PLAIN, ON_GPU if (job.kind == ON_GPU).any() else MIXED)
    return search.algorithm2(job, search.algorithm1(job, kinds=kinds), search.COMBINATIONS)


def times(case: Case) -> dict[str, float]:
    """Return the iteration's seconds by scheme.

    A baseline without options on this system, such as hierarchical ones with a single machine,
    does not compress.
    """
    plain = case.seconds(quickest_alone, ["compressions<=0"])
    found = {FP32: plain, BF16: halved(case).seconds(quickest_alone, ["compressions<=0"])}
    for name, restricted in BASELINES.items():
        try:
            found[name] = case.seconds(quickest_alone, RESTRICTED[restricted])
        except PlannerError:
            found[name] = plain
    return found | {ESPRESSO: case.seconds(algorithms), OURS: case.seconds()}


def halved(case: Case) -> Case:
    """Return the case with values of 16 bits; to convert them takes no time."""
    tensors = tuple(
        t.model_copy(update={"values": max(t.values // 2, 1)}) for t in case.model.tensors
    )
    return case._replace(model=case.model.model_copy(update={"tensors": tensors}))


def upper_bound(case: Case) -> float:
    """Return the seconds behind the paper's Upper Bound: compression takes no time at all.

    As in the paper it is the strategy that a search finds then; the best one may be quicker still.
    """
    costless = case.compression.model_copy(update={"gpu": FREE, "cpu": FREE})
    return case._replace(compression=costless).seconds()
