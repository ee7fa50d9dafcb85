"""A job's codec as its hosts use it: patterns of tensor names become sizes and codecs."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from gradplane import codecs
from gradplane.experiment.document import inline
from gradplane.experiment.schema import PER_TENSOR, Job, NamedModel
from gradplane.hosts.config import ConfigError
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models
from gradplane.hosts.training.tensor import Tensor

Named = tuple[str, dict[str, Any]]
Rule = tuple[str, dict[str, Any]]
_FORM = 'a list such as [["*.weights", "threelc"], ["*", "float32"]]'


def host_codec(named: NamedModel, job: Job) -> Named:
    """Return a codec's name and parameters; for a list of patterns, those of each tensor in order.

    Raises ConfigError, CodecError and LoadError for what does not fit or does not exist."""
    if named.name != PER_TENSOR:
        codecs.get(named.name, **named.args)
        return named.name, named.args
    tensors = tensors_of(job)
    rules = _rules(named)
    for pattern, _ in rules:
        if not any(fnmatchcase(tensor.name, pattern) for tensor in tensors):
            known = ", ".join(tensor.name for tensor in tensors)
            raise ConfigError(
                f'no tensor is called "{pattern}": model {job.model.name} has {known}'
            )
    return PER_TENSOR, {"parts": [[t.size, _rule(t, rules)] for t in tensors]}


def _rules(named: NamedModel) -> list[Rule]:
    """Return patterns and codec configurations."""
    rules = named.args.get("tensors")
    if set(named.args) != {"tensors"} or not isinstance(rules, list) or not rules:
        raise ConfigError(f"expected {_FORM}")
    return [_checked(rule) for rule in rules]


def _checked(rule: Any) -> Rule:
    match rule:
        case [str(pattern), str(name)]:
            config = {"name": name}
        case [str(pattern), {"name": str()} as config]:
            pass
        case _:
            raise ConfigError(f"{inline(rule)}: expected a pattern and a codec, as in {_FORM}")
    return pattern, codecs.get(**config).config


def tensors_of(job: Job) -> Sequence[Tensor]:
    """Return the tensors of a job's model in order, without gaps; ConfigError if there are any."""
    assert job.seed is not None, "not resolved"
    data = datasets.build(job.data.name, job.data.args, job.seed)
    model = models.build(job.model.name, job.model.args, data.features, data.classes)
    tensors = sorted(model.tensors, key=lambda tensor: tensor.offset)
    end = 0
    for tensor in tensors:
        if tensor.offset != end:
            raise ConfigError(
                f"model {job.model.name}: tensor {tensor.name} begins at value {tensor.offset}, the"
                f" one before it ends at {end}: codecs by tensor need them next to each other"
            )
        end += tensor.size
    return tensors


def _rule(tensor: Tensor, rules: Sequence[Rule]) -> dict[str, Any]:
    """Return the configuration of the first codec whose pattern matches."""
    for pattern, config in rules:
        if fnmatchcase(tensor.name, pattern):
            return config
    raise ConfigError(f'no pattern fits tensor {tensor.name}: add ["*", "float32"] as the last')
