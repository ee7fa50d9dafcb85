"""The codec and parameters for recorded gradients: the fewest bytes whose error stays small.

A single round's error says little of a codec with error feedback. So each candidate sends every
recorded step ten times, with its memory: what counts is the error of the sum that arrives, over
the sum's energy. It falls where what is missing follows later, or cancels, stays where a codec
never sends some values, and grows where error feedback diverges. What a run would warn of
(gradplane.runs.codec_warnings) is never recommended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gradplane import codecs
from gradplane.codecs import Codec, CodecError, ErrorFeedback, Floats, PerTensor, RecordedGradients
from gradplane.runs.codec_warnings import codec_risk
from gradplane.studies.recorded import rounds, whole

ROUNDS = 10
ERROR = 0.1
Way = Literal["switch", "ps", "network"]
WAYS: dict[Way, str] = {
    "switch": "summed by the switch",
    "ps": "by a parameter server",
    "network": "compressed by the network",
}
_CANDIDATES: tuple[tuple[Way, str, bool, tuple[dict[str, Any], ...]], ...] = (
    ("switch", "thc", True, tuple({"granularity": g} for g in (15, 20, 30))),
    ("switch", "terngrad", False, ({},)),
    ("switch", "signsgd", True, ({},)),
    ("switch", "switchml", False, ({},)),
    ("ps", "threelc", True, tuple({"s": s} for s in (1.0, 1.5, 1.75, 1.9))),
    ("ps", "topk", True, tuple({"fraction": f} for f in (0.01, 0.05, 0.1))),
    ("ps", "randomk", True, tuple({"fraction": f} for f in (0.1, 0.3))),
    ("ps", "powersgd", True, tuple({"rank": r} for r in (1, 2, 4))),
    ("ps", "efsignsgd", True, ({},)),
    ("ps", "onebit", True, ({},)),
    ("ps", "qsgd", False, tuple({"levels": n} for n in (15, 63))),
    ("ps", "natural", False, ({},)),
    ("ps", "mxfp", True, tuple({"element": e} for e in ("e4m3", "e2m3", "e2m1"))),
    ("ps", "zeropp", True, tuple({"bits": b} for b in (4, 8))),
    ("ps", "sdp4bit", False, tuple({"bits": b} for b in (4, 8))),
    ("ps", "dynamiq", False, tuple({"bits": b} for b in (4, 5))),
    ("ps", "bfloat16", False, ({},)),
    ("network", "inceptionn", False, tuple({"bound": k} for k in codecs.ERROR_BOUNDS)),
)
"""Way, codec, whether with error feedback, and sets of parameters."""


@dataclass(frozen=True)
class Candidate:
    """A codec for a way: bytes of a worker and round, error after ROUNDS rounds, what is wrong."""

    way: Way
    codec: str
    parameters: dict[str, Any]
    error_feedback: bool
    bytes: float
    error: float
    risk: str | None
    recommended: bool = False

    @property
    def keys(self) -> str:
        """The keys of a [[job]] that ask for it."""
        if self.way == "network":
            return f'aggregation = "ring", marked = true, bound = {self.parameters["bound"]}'
        pairs = {"name": f'"{self.codec}"'} | {k: repr(v) for k, v in self.parameters.items()}
        push = ", ".join(f"{key} = {value}" for key, value in pairs.items())
        feedback = str(self.error_feedback).lower()
        return f'aggregation = "{self.way}", push = {{{push}}}, error_feedback = {feedback}'


def advise(
    recorded: RecordedGradients, error: float = ERROR, momentum: float = 0.9, seed: int = 1
) -> list[Candidate]:
    """Return all candidates, by way and bytes; of each way the smallest whose error is at most
    `error`, and of which a run would not warn, is recommended."""
    found = sorted(_measured(recorded, momentum, seed), key=lambda one: one.bytes)
    listed = []
    for way in WAYS:
        own = [one for one in found if one.way == way]
        fits = [one for one in own if one.error <= error and one.risk is None]
        listed += [Candidate(**vars(one) | {"recommended": one in fits[:1]}) for one in own]
    return listed


def _measured(recorded: RecordedGradients, momentum: float, seed: int) -> Iterator[Candidate]:
    workers, n = len(recorded.workers), sum(recorded.sizes)
    for way, name, feedback, choices in _CANDIDATES:
        for parameters in choices:
            codec = codecs.get(name, **parameters).for_workers(workers)
            fits = way != "switch" or codec.sum_bits(workers) <= max(codecs.SUM_WIDTHS)
            if not fits:
                continue
            try:
                error, size = _sent(codec, feedback, recorded, seed)
            except CodecError:  # values that grow beyond float32: it diverges
                error, size = float("inf"), float(codec.max_size(n))
            if way == "switch":  # as in its packets
                bits = codecs.code_bits(len(codec.table)) * codec.lanes(n)
                size = bits / 8 + 4 * len(codec.partitions(n))
            first = (step[0] for step in rounds(recorded))
            risks = (codec_risk(codec, x, feedback, momentum, seed=seed) for x in first)
            risk = next((text for text in risks if text is not None), None)
            yield Candidate(way, name, parameters, feedback, size, error, risk)


def _sent(
    codec: Codec, feedback: bool, recorded: RecordedGradients, seed: int
) -> tuple[float, float]:
    """Return the error of the sum of ROUNDS rounds, and the bytes of a worker's round."""
    used = _with_feedback(whole(codec, recorded)) if feedback else whole(codec, recorded)
    error = power = sent = 0.0
    for vectors in rounds(recorded):
        states = [used.start(x.size) for x in vectors]
        total = np.zeros(vectors[0].size)
        for number in range(ROUNDS):
            key = codecs.key(seed, "advice", number)
            mean, size, states = _round(used, vectors, key, states)
            total, sent = total + mean, sent + size / (ROUNDS * len(recorded.steps))
        due = ROUNDS * np.stack(vectors).astype(np.float64).mean(axis=0)
        error, power = error + float(np.sum((total - due) ** 2)), power + float(np.sum(due**2))
    return error / power if power else error, sent


def _round(
    codec: Codec, vectors: list[Floats], key: int, states: list[Any]
) -> tuple[Floats, float, list[Any]]:
    """Return the mean that a round finds, a worker's bytes, and the states after it."""
    if codec.carriers:
        return _in_steps(codec, vectors, key, states)
    pairs = list(zip(vectors, states, strict=True))
    known = [stat for x, state in pairs if (stat := codec.local(x, state)) is not None]
    shared = codec.combine(known) if known else None
    sent = [codec.encode(x, shared, key, state, w) for w, (x, state) in enumerate(pairs)]
    mean = codec.merge([codec.decode(data, vectors[0].size) for data, _ in sent])
    return mean, sum(len(data) for data, _ in sent) / len(sent), [state for _, state in sent]


def _in_steps(
    codec: Codec, vectors: list[Floats], key: int, states: list[Any]
) -> tuple[Floats, float, list[Any]]:
    """Run a round of several means, which travel by the codec's carriers (PowerSGD, DynamiQ)."""
    pairs = enumerate(zip(vectors, states, strict=True))
    running = [codec.reduce(x, key, state, w) for w, (x, state) in pairs]
    parts, size = [next(steps) for steps in running], 0.0
    ended: list[tuple[Floats, Any]] = []
    for number, carrier in enumerate(codec.carriers):
        own = codecs.key(key, number)
        answer, sent, _ = _round(carrier, parts, own, [None] * len(parts))
        size += sent
        parts = []
        for steps in running:
            try:
                parts.append(steps.send(answer))
            except StopIteration as end:
                ended.append(end.value)
    return ended[0][0], size, [state for _, state in ended]


def _with_feedback(codec: Codec) -> Codec:
    """Put error feedback around a codec, unless it has a memory; around each of a vector's."""
    if isinstance(codec, PerTensor):
        return codec.each(_with_feedback)
    return ErrorFeedback(codec) if codec.memoryless == codec else codec
