"""A job's codec as its hosts use it: patterns of tensor names become sizes and codecs."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from gradplane import aggregations, codecs
from gradplane._plugins import LoadError
from gradplane.codecs import Codec, CodecError
from gradplane.codecs._base import check_int
from gradplane.experiment.document import inline
from gradplane.experiment.schema import PER_TENSOR, DeviceSection, Job, NamedModel
from gradplane.hosts.config import ConfigError
from gradplane.hosts.protocols.job_codec import SUMS, adaptive, sums_type
from gradplane.hosts.training import datasets as datasets
from gradplane.hosts.training import models
from gradplane.hosts.training.models import Tensor
from gradplane.hosts.wire.aggregation import CODE_BITS
from gradplane.topologies.link_options import parse_rate

Named = tuple[str, dict[str, Any]]
Rule = tuple[str, dict[str, Any]]
_VERSIONED = ("thc", "uniform_thc")  # codecs with a version of their format
_FORM = 'a list such as [["*.weights", "threelc"], ["*", "float32"]]'


def host_codec(named: NamedModel, job: Job) -> Named:
    """Return a codec's name and parameters; for a list of patterns, those of each tensor in order,
    and for a codec that takes tensors by themselves (the key by_tensor), too.

    Raises ConfigError, CodecError and LoadError for what does not fit or does not exist."""
    if named.name != PER_TENSOR:
        codec = codecs.get(named.name, **named.args)
        if not _is_by_tensor(codec, job):
            return named.name, named.args
    tensors = tensors_of(job)
    rules = _rules(named) if named.name == PER_TENSOR else [("*", codec.config)]
    for pattern, _ in rules:
        if not any(fnmatchcase(tensor.name, pattern) for tensor in tensors):
            known = ", ".join(tensor.name for tensor in tensors)
            raise ConfigError(
                f'no tensor is called "{pattern}": model {job.model.name} has {known}'
            )
    parts: list[list[Any]] = [[t.size, _rule(t, rules)] for t in tensors]
    if named.name != PER_TENSOR and all(config["name"] == "float32" for _, config in parts):
        return (
            "float32",
            {},
        )  # PowerSGD with tensors that are all too small, which a ring takes, too
    return PER_TENSOR, {"parts": parts}


def _is_by_tensor(codec: Codec, job: Job) -> bool:
    if job.by_tensor == "paper":
        scheme = aggregations.get("ring" if job.rings else job.aggregation)
        return not job.marked and scheme.takes_tensors(codec)
    return bool(job.by_tensor) and codec.name != "float32"


def may_be_by_tensor(job: Job) -> bool:
    """Return whether a codec of a job takes tensors by themselves in its paper.

    Such a job's run folder says what by_tensor was; older versions took whole vectors."""
    for named in (job.push, job.pull):
        if named is None:
            continue
        try:
            rules = _rules(named) if named.name == PER_TENSOR else [("*", _config(named))]
            if any(codecs.get(**config).by_tensor for _, config in rules):
                return True
        except (CodecError, ConfigError, LoadError):  # reported where they are made
            continue
    return False


def code_bits(job: Job) -> int | None:
    """Return the width that a job's codes need in packets, None if no switch sums them."""
    scheme = aggregations.get(job.aggregation)
    try:
        codecs.get(job.push.name, **job.push.args)
    except (CodecError, LoadError):  # reported where the job's codec is made
        return None
    try:
        return scheme.code_bits(job)
    except ConfigError:  # of a plan, likewise
        return None


def _config(named: NamedModel) -> dict[str, Any]:
    args = {key: value for key, value in named.args.items() if key != "policy"}
    return {"name": named.name} | args


def with_version(named: NamedModel | None, version: int = 3) -> NamedModel | None:
    """Return a codec that names the version of its format where it has one and says none."""
    if named is None:
        return None
    if named.name in _VERSIONED:
        return NamedModel(name=named.name, **({"version": version} | named.args))
    rules = named.args.get("tensors")
    if named.name != PER_TENSOR or not isinstance(rules, list):
        return named
    tensors = [_versioned(rule, version) for rule in rules]
    return NamedModel.model_validate({"name": PER_TENSOR, "tensors": tensors})


def _versioned(rule: Any, version: int) -> Any:
    match rule:
        case [pattern, str(name)] if name in _VERSIONED:
            return [pattern, {"name": name, "version": version}]
        case [pattern, {"name": name} as config] if name in _VERSIONED:
            return [pattern, {"version": version} | config]
    return rule


def as_recorded(job: Job) -> Job:
    """Return the job of a run folder with the defaults of the version that wrote it.

    What concerns no codec of the folder stays open: a setting that brings another codec gets what a
    new run would."""
    ways: dict[str, Any] = {way: with_version(getattr(job, way), 1) for way in ("push", "pull")}
    if job.by_tensor is None and may_be_by_tensor(job):
        ways = {way: _old(named) for way, named in ways.items()} | {"by_tensor": False}
    if job.code_bits is None and code_bits(job) is not None:
        ways["code_bits"] = CODE_BITS
    return job.changed(ways)


def _old(named: NamedModel | None) -> NamedModel | None:
    """Return a codec with PowerSGD as older versions had it: a worker's own P and Q."""
    if named is None or named.name not in ("powersgd", PER_TENSOR):
        return named
    if named.name == "powersgd":
        return NamedModel(name=named.name, **({"rounds": 1} | named.args))
    rules = [(pattern, codec) for pattern, codec in _rules(named)]
    old = [[p, c | {"rounds": 1} if c["name"] == "powersgd" else c] for p, c in rules]
    return NamedModel.model_validate({"name": PER_TENSOR, "tensors": old})


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
    data = datasets.build(job.data.name, job.data.args, job.seed or 0, read=False)
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
            return codecs.get(**config).for_tensor(tensor.shape).config
    raise ConfigError(f'no pattern fits tensor {tensor.name}: add ["*", "float32"] as the last')


# Weights at a precision that a policy chooses: `pull` with a policy, and the key `device`


_KEYS = ("threshold", "interval", "step", "initial")
_POLICY = "awp"


def pull_codec(named: NamedModel, job: Job) -> Named:
    """Return name and parameters of a server's codec, with a policy's layers where it has one.

    Raises ConfigError, CodecError and LoadError for what does not fit or does not exist."""
    if named.name == SUMS:
        return _sums(named, job)
    if "policy" not in named.args:
        return host_codec(named, job)
    if named.name != "adt":
        raise ConfigError(f'policy with codec {named.name}: a policy is for "adt"')
    if job.pull_feedback:
        raise ConfigError("pull_feedback with a policy: what is left of weights is not fed back")
    if job.pull_deltas:
        raise ConfigError("pull_deltas with a policy: a policy is for weights, not for changes")
    return "adt", _adaptive(named.args["policy"], named.args, job)


def _sums(named: NamedModel, job: Job) -> Named:
    """Check that a job's server may answer with the sums of codes."""
    if named.args:
        raise ConfigError(f'{inline(named.args)}: pull = "sums" has no parameters')
    for key in ("pull_feedback", "pull_deltas", "marked", "plan"):
        if getattr(job, key):
            raise ConfigError(
                f'{key} with pull = "sums": sums are answered as they are: leave out {key}, or use'
                ' pull = "float32"'
            )
    name, params = host_codec(job.push, job)
    if name == PER_TENSOR or job.local_steps > 1:
        what = "codecs by tensor" if name == PER_TENSOR else "local_steps"
        raise ConfigError(
            f'pull = "sums" with {what}: a sum has one table: leave them out'
            ' (by_tensor = false), or use pull = "float32"'
        )
    assert job.quorum is not None, "not resolved"
    sums_type(codecs.get(name, **params), job.quorum)
    return SUMS, {}


def device(job: Job) -> dict[str, Any] | None:
    """Return a job's JobConfig.device; None where its workers have none.

    Raises as pull_codec()."""
    section = job.device
    if section is None:
        return None
    policy = section.policy
    return {
        "rate": parse_rate(section.rate, "rate"),
        "back_rate": parse_rate(section.back_rate or section.rate, "back_rate"),
        "pack_ns": section.pack_ns_per_value,
        "unpack_ns": section.unpack_ns_per_value,
        "norm_ns": section.norm_ns_per_value,
        "policy": None if policy is None else _adaptive(policy.name, policy.args, job),
    }


def plain_device(job: Job) -> DeviceSection | None:
    """Return a device that weights reach as float32, on the same bus."""
    own = job.device
    return None if own is None else DeviceSection(rate=own.rate, back_rate=own.back_rate)


def _adaptive(policy: Any, args: dict[str, Any], job: Job) -> dict[str, Any]:
    """Return a configuration of AdaptiveADT for the job's model."""
    if policy != _POLICY:
        raise ConfigError(f'no policy "{policy}": there is "{_POLICY}"')
    unknown = args.keys() - {*_KEYS, "policy", "block"}
    if unknown:
        known = ", ".join((*_KEYS, "block"))
        raise CodecError(f'policy awp has no parameter "{min(unknown)}"; its parameters: {known}')
    block = check_int("block", args.get("block", 1), 1)
    own = {key: args[key] for key in _KEYS if key in args}
    if isinstance(own.get("threshold"), int):
        own["threshold"] = float(own["threshold"])
    config = {"policy": _POLICY, **own, "tensors": _layers(tensors_of(job), block)}
    adaptive(config)
    return config


def _layers(tensors: Sequence[Tensor], block: int) -> list[list[int]]:
    """Return each tensor's size and layer: biases, of one dimension, belong to none.

    A model of nothing else has a layer for each tensor. `block` neighbours are one layer."""
    own = [tensor for tensor in tensors if len(tensor.shape) > 1] or list(tensors)
    layers = {tensor.name: place // block for place, tensor in enumerate(own)}
    return [[tensor.size, layers.get(tensor.name, -1)] for tensor in tensors]
