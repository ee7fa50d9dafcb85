"""A job's codecs, checked against what its network can do; and the seeds of its reduces."""

from typing import Any

from gradplane import codecs
from gradplane.hosts.config import ConfigError, JobConfig


def make_codec(named: tuple[str, dict[str, Any]], what: str) -> codecs.Codec:
    """The codec of (name, parameters); ConfigError says what is wrong with them."""
    name, params = named
    try:
        return codecs.get(name, **params)
    except codecs.CodecError as error:
        raise ConfigError(f"{what}: {error}") from error


def push_codec(job: JobConfig) -> codecs.Codec:
    """What the job's workers encode with, with error feedback where the job asks for it and the
    codec has no memory of its own.
    """
    codec = make_codec(job.codec, "codec")
    has_memory = codec.memoryless != codec
    return codecs.ErrorFeedback(codec) if job.error_feedback and not has_memory else codec


def summed_codec(job: JobConfig) -> codecs.Codec:
    """push_codec(), or ConfigError if the switch cannot sum its codes."""
    codec = push_codec(job)
    if not codec.summable:
        raise ConfigError(
            f"codec {codec.name}: its codes cannot be summed in the switch: "
            'use a summable codec such as thc, or aggregation = "ps"'
        )
    if len(codec.table) > 16:
        raise ConfigError(
            f"codec {codec.name}: {len(codec.table)} codes do not fit the packets' 4-bit fields: "
            'use bits <= 4, or aggregation = "ps"'
        )
    _check_width(codec.table[-1], job)
    return codec


def reduce_seed(job: JobConfig, ticket: int, part: int = 0) -> int:
    """What all workers of one reduce share; each partition has its own."""
    return codecs.key(job.seed, "job", job.number, "reduce", ticket, part)


def _check_width(largest: int, job: JobConfig) -> None:
    # A slot closes at the quorum, so no sum has more summands.
    total, limit = largest * job.quorum, 2**job.sum_bits - 1
    if total <= limit:
        return
    wider = "sum_bits = 16 or " if job.sum_bits == 8 and total < 2**16 else ""
    raise ConfigError(
        f"granularity {largest} × {job.quorum} workers = {total} does not fit {job.sum_bits}-bit "
        f"sums: use {wider}granularity ≤ {limit // job.quorum}"
    )
