"""A job's codecs, checked against what its network can do; and the seeds of its reduces."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from gradplane import codecs
from gradplane.hosts.config import ConfigError, JobConfig, UnsuitableCodecError
from gradplane.hosts.wire.marked_values import Marked

SUMS = "sums"
"""The codec of a server that answers with the sums of the workers' codes, not decoded."""


def answers_sums(job: JobConfig) -> bool:
    """Return whether a job's server answers with sums."""
    return job.coding.pull_codec[0] == SUMS


def sums_type(codec: codecs.Codec, workers: int) -> np.dtype[Any]:
    """Return the type of a server's sums over so many workers, 8 or 16 bits, little-endian.

    UnsuitableCodecError for a codec whose codes a server cannot add, or not in 16 bits."""
    if not codec.summable or codec.carriers:
        raise UnsuitableCodecError(
            f'pull = "sums" with push = "{codec.name}": its codes cannot be summed before they are'
            ' decoded: use a summable codec such as thc, or pull = "float32"',
            "pull_codec",
        )
    lanes = np.zeros(0, np.uint8)
    try:
        codec.add_codes(b"", 0, np.zeros(0, np.float32), lanes)
    except codecs.CodecError as error:
        raise UnsuitableCodecError(str(error), "pull_codec") from error
    bits = codec.sum_bits(workers)
    if bits > 16:
        raise UnsuitableCodecError(
            f"a sum of {workers} workers needs {bits} bits, and a server answers with 16 at most:"
            ' use fewer bits or a smaller granularity, or pull = "float32"',
            "pull_codec",
        )
    return np.dtype("u1" if bits <= 8 else "<u2")


def make_codec(named: tuple[str, dict[str, Any]], what: str) -> codecs.Codec:
    """Return the codec of (name, parameters); ConfigError if there is none."""
    name, params = named
    if name == SUMS:  # of which only the sum decodes to values
        return codecs.get("float32")
    try:
        if name == "per_tensor":
            return codecs.PerTensor(tuple((n, codecs.get(**kind)) for n, kind in params["parts"]))
        if "policy" in params:
            return adaptive(params)
        return codecs.get(name, **params)
    except codecs.CodecError as error:
        raise ConfigError(f"{what}: {error}", what) from error


def adaptive(params: dict[str, Any]) -> codecs.AdaptiveADT:
    """Return the codec of weights under AWP; `params` as in its configuration."""
    from gradplane.codecs import AWP

    own = {key: value for key, value in params.items() if key not in ("name", "policy", "tensors")}
    return codecs.AdaptiveADT(AWP(**own), tuple((size, layer) for size, layer in params["tensors"]))


def pull_codec(job: JobConfig) -> codecs.Codec:
    """Return the codec of the server's answers, with error feedback and local steps where the job
    has them for its answers."""
    codec = make_codec(job.coding.pull_codec, "pull_codec")
    if not job.coding.pull_feedback:
        return codec
    codec = _with_feedback(codec)
    return codecs.LocalSteps(codec, job.coding.local_steps) if job.coding.local_steps > 1 else codec


def push_codec(job: JobConfig) -> codecs.Codec:
    """Return the workers' codec, with the job's error feedback and local steps around it.

    A codec with a memory gets no error feedback. A marked job has neither: hosts do not see the
    network's error. With a plan, that concerns only the tensors that the network compresses.
    """
    if job.coding.marked and job.coding.plan is None:
        return Marked()
    codec = make_codec(job.coding.codec, "codec").for_workers(job.workers)
    if job.coding.error_feedback:
        for part in parts(codec):
            _check_feedback(part)
        codec = _with_feedback(codec)
    return codecs.LocalSteps(codec, job.coding.local_steps) if job.coding.local_steps > 1 else codec


def _check_feedback(codec: codecs.Codec) -> None:
    if codec.unfit_for_feedback:
        raise ConfigError(
            f"error_feedback = true with codec {codec.name}: {codec.unfit_for_feedback}:"
            " use error_feedback = false",
            "error_feedback",
        )


def between_codec(job: JobConfig, push: codecs.Codec) -> codecs.Codec:
    """Return the codec of the sums that a group's server sends on, with the job's error feedback
    and local steps: that of its workers, `push`, unless the job names another.

    Sums have no statistic for workers to agree on, so codecs that need one are float32 here. Of a
    codec with a memory of gradients (DGC's momentum) only the error is fed back: the workers' has
    done the rest."""
    if job.coding.marked:
        return Marked()
    if job.coding.between is None:
        return codecs.get("float32") if agrees(push) else _of_sums(push)
    codec = make_codec(job.coding.between, "between")
    if agrees(codec):
        raise ConfigError(
            f"codec {codec.name}: workers agree on a statistic before they encode, and sums have"
            " none: use another codec, such as float32",
            "between",
        )
    if job.coding.error_feedback:
        codec = _with_feedback(codec)
    return codecs.LocalSteps(codec, job.coding.local_steps) if job.coding.local_steps > 1 else codec


def _of_sums(codec: codecs.Codec) -> codecs.Codec:
    if isinstance(codec, codecs.LocalSteps):
        return codecs.LocalSteps(_of_sums(codec.codec), codec.steps)
    if isinstance(codec, codecs.PerTensor):
        return codec.each(_of_sums)
    return codecs.ErrorFeedback(codec) if codec.memoryless != codec else codec


def keeps_sums(job: JobConfig) -> bool:
    """Return whether groups' servers keep a state of the codec of their sums."""
    push = push_codec(job)
    codecs_of = (between_codec(job, codec) for codec in push.carriers or (push,))
    kept = (part.start(1) is not None for codec in codecs_of for part in parts(codec))
    return not answers_sums(job) and (job.coding.local_steps > 1 or any(kept))


def check_group_sums(job: JobConfig, push: codecs.Codec) -> None:
    """Raise ConfigError where groups' sums do not stand for their workers' vectors."""
    one, three = np.ones(1, np.float32), np.full(1, 3, np.float32)
    for codec in push.carriers or (push,):
        between_codec(job, codec)
        if any(part.merge([one, three])[0] != 2 for part in parts(codec)):
            raise ConfigError(
                f"codec {codec.name}: its server counts votes, and a group's server sends a sum:"
                ' use pull = "sums", which adds the votes of all, or leave out groups',
                "codec",
            )


def agrees(codec: codecs.Codec) -> bool:
    """Return whether a codec's workers agree on a statistic before they encode."""
    one = np.ones(1, np.float32)
    return any(part.local(one, part.start(1)) is not None for part in parts(codec))


def parts(codec: codecs.Codec) -> Iterator[codecs.Codec]:
    """Yield the codecs that a job's codec consists of, with their error feedback."""
    if isinstance(codec, codecs.LocalSteps):
        yield from parts(codec.codec)
    elif isinstance(codec, codecs.PerTensor):
        yield from (part for _, part in codec.parts)
    elif isinstance(codec, codecs.AdaptiveADT):
        yield codec.policy.codec(codec.policy.initial)
    else:
        yield codec


def _with_feedback(codec: codecs.Codec) -> codecs.Codec:
    if isinstance(codec, codecs.PerTensor):
        return codec.each(_with_feedback)
    has_memory = codec.memoryless != codec
    return codec if has_memory else codecs.ErrorFeedback(codec)


def summed_codec(job: JobConfig) -> codecs.Codec:
    """Return push_codec(); UnsuitableCodecError if the switch cannot sum its codes."""
    codec = push_codec(job)
    if not codec.summable:
        raise UnsuitableCodecError(
            f"codec {codec.name}: its codes cannot be summed in the switch: use a summable codec"
            " such as thc",
            "codec",
        )
    if overflow := codecs.code_overflow(len(codec.table), job.transport.code_bits):
        raise UnsuitableCodecError(f"codec {codec.name}: {overflow}", "codec")
    if overflow := codecs.sum_overflow(codec.table[-1], job.quorum, job.transport.sum_bits):
        raise UnsuitableCodecError(overflow, "codec")
    return codec


class Seeded(Protocol):
    """The part of a job that reduce_seed() uses."""

    @property
    def number(self) -> int:
        """The job's number."""

    @property
    def seed(self) -> int:
        """The job's seed."""


def reduce_seed(job: Seeded, ticket: int, part: int = 0) -> int:
    """Return the seed that all workers of a reduce share; it differs between partitions."""
    return codecs.key(job.seed, "job", job.number, "reduce", ticket, part)


def codec_ns(job: JobConfig, named: tuple[str, dict[str, Any]]) -> float:
    """Return the emulated time to encode or decode a value; plain float32 takes none."""
    return 0.0 if named[0] == "float32" else job.coding.codec_ns
