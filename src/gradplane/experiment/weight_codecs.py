"""Weights at a precision that a policy chooses: `pull` with a policy, and the key `device`."""

from collections.abc import Sequence
from typing import Any

from gradplane.codecs import CodecError
from gradplane.codecs._base import check_int
from gradplane.experiment.schema import DeviceSection, Job, NamedModel
from gradplane.experiment.tensor_codecs import Named, host_codec, tensors_of
from gradplane.hosts.config import ConfigError
from gradplane.hosts.protocols.job_codec import adaptive
from gradplane.hosts.training.tensor import Tensor
from gradplane.topologies.link_options import parse_rate

_KEYS = ("threshold", "interval", "step", "initial")
_POLICY = "awp"


def pull_codec(named: NamedModel, job: Job) -> Named:
    """Return name and parameters of a server's codec, with a policy's layers where it has one.

    Raises ConfigError, CodecError and LoadError for what does not fit or does not exist."""
    if "policy" not in named.args:
        return host_codec(named, job)
    if named.name != "adt":
        raise ConfigError(f'policy with codec {named.name}: a policy is for "adt"')
    if job.pull_feedback:
        raise ConfigError("pull_feedback with a policy: what is left of weights is not fed back")
    if job.pull_deltas:
        raise ConfigError("pull_deltas with a policy: a policy is for weights, not for changes")
    return "adt", _adaptive(named.args["policy"], named.args, job)


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
