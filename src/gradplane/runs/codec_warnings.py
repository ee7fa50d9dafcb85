"""Warnings about codecs under which a training will not learn, by numbers of its first gradient.

Each rule is one that trainings of the digits showed: with it accuracy falls to guessing, and on the
near side of its bound training works (tests/runs/test_codec_warnings.py).

- `inceptionn` without error feedback, or a network that compresses, where the bound is at least
  8 times the gradient's root mean square and 95 % of its values become 0: nothing is ever sent.
  With error feedback the values add up until they are.
- `qsgd` with error feedback, where its error has at least 0.8 of the gradient's energy: the error
  that is fed back grows from round to round; `thc` and `uniform_thc` with rotation, which spreads
  that error over all values, from the gradient's whole energy on.
- `randomk` with error feedback and momentum m, where a value is sent in less than one round of
  1 / (2.5 (1 - m)): what was held back comes at once, and momentum repeats it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from gradplane import codecs
from gradplane.codecs import Codec, Floats
from gradplane.experiment.deployment import DeployedJob, Deployment
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.job_codec import make_codec
from gradplane.hosts.training.train import Reduce, train

_RMS, _ZEROS = 8.0, 0.95
_REPEATED = 2.5
_ENERGY = {"qsgd": 0.8, "thc": 1.0, "uniform_thc": 1.0}
_MORE = {"qsgd": "more levels", "thc": "more bits", "uniform_thc": "more bits"}
AT_RISK = ("inceptionn", "randomk", *_ENERGY)


@dataclass(frozen=True)
class _First:
    """A first gradient, and what its codec makes of it."""

    x: Floats
    decoded: Floats

    @property
    def zeros(self) -> float:
        """The share of values other than 0 that became 0."""
        lost = (self.decoded == 0) & (self.x != 0)
        return float(lost.sum()) / max(int((self.x != 0).sum()), 1)

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.x.astype(np.float64) ** 2)))

    @property
    def energy(self) -> float:
        """The energy of the error over that of the gradient."""
        error = self.x.astype(np.float64) - self.decoded
        size = float(np.sum(self.x.astype(np.float64) ** 2))
        return float(np.sum(error**2)) / size if size else 0.0


def codec_warnings(deployment: Deployment) -> Iterator[str]:
    """Yield a sentence for each job whose codec probably keeps it from learning."""
    for job in deployment.jobs:
        text = _warning(job.config) if _can_be_at_risk(job) else None
        if text is not None:
            yield f"job {job.job.name}: {text}"


def _can_be_at_risk(job: DeployedJob) -> bool:
    coding = job.config.coding
    named = coding.codec[0] in AT_RISK
    return coding.plan is None and (named or coding.bound is not None)


def _warning(job: JobConfig) -> str | None:
    """Return what is wrong with the first gradient of a job's first worker, if anything is."""
    coding, momentum = job.coding, job.training.momentum
    marked = coding.bound is not None
    named = ("inceptionn", {"bound": coding.bound}) if marked else coding.codec
    codec = make_codec(named, "codec")
    x = next(step.vector for step in train(job, 0) if isinstance(step, Reduce))
    feedback = coding.error_feedback and not marked
    return codec_risk(codec, x, feedback, momentum, marked=marked, seed=job.seed)


def codec_risk(
    codec: Codec, x: Floats, feedback: bool, momentum: float, *, marked: bool = False, seed: int = 0
) -> str | None:
    """Return why a training whose gradient is x will probably not learn, and what to do; or None.

    feedback: whether error feedback is around the codec. marked: whether the network compresses.
    """
    if codec.name not in AT_RISK:
        return None
    data, _ = codec.encode(x, codec.local(x), seed, codec.start(x.size))
    first = _First(x, codec.decode(data, x.size))
    if codec.name == "inceptionn" and not feedback:
        exponent = codec.config["bound"]
        bound = 2.0**-exponent
        times = bound / first.rms if first.rms else 0.0
        if times >= _RMS and first.zeros >= _ZEROS:
            ways = [f"bound = {larger}" for larger in codecs.ERROR_BOUNDS if larger > exponent]
            ways += [] if marked else ["error_feedback = true"]
            return (
                f"{100 * first.zeros:.1f} % of the first gradient's values became 0: the error"
                f" bound, {bound:.3g}, is {times:.3g} times their root mean square, so it will"
                f" hardly learn: use {', or '.join(ways) or 'another codec'}"
            )
    spread = codec.config.get("rotate", True)
    if feedback and spread and first.energy >= _ENERGY.get(codec.name, inf):
        return (
            f"{codec.name}'s error has {first.energy:.3g} times the energy of the first gradient,"
            " and error feedback adds it to the next one, so that it grows: use error_feedback ="
            f" false, or {_MORE[codec.name]}"
        )
    kept = 1 - first.zeros
    if codec.name == "randomk" and feedback and momentum and kept < _REPEATED * (1 - momentum):
        return (
            f"randomk sends a value in one of {1 / max(kept, 1e-9):.3g} rounds, and momentum ="
            f" {momentum:g} repeats what error feedback held back over {1 / (1 - momentum):.3g}:"
            " it may diverge: use a larger fraction, topk, or momentum = 0"
        )
    return None
