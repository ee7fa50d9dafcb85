"""A codec for a vector of tensors, each with a codec of its own."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    Reader,
    Rounds,
    State,
    check_array,
    check_int,
)
from gradplane.codecs._random import key

NAME = "per_tensor"


def _in_one_round(x: Floats, state: State) -> Rounds:
    """Reduce a tensor whose codec has no rounds: its carrier does all."""
    return (yield x), state


@dataclass(frozen=True)
class PerTensor(Codec):
    """Cuts a vector into consecutive tensors, each with its own codec and state.

    parts: the size (at least 1) and codec of each tensor; n is the sum of the sizes. Bytes, for
    each tensor: the length of what follows (uint32), its codec's bytes. Error and bias are each
    codec's. The shared statistic is the tensors' statistics, one after another; each tensor's seed
    is different. Codes cannot be summed in the network, whose packets know one table a job. Error
    feedback goes around the tensors' codecs, so that those with a memory keep it.
    """

    parts: tuple[tuple[int, Codec], ...]

    def __post_init__(self) -> None:
        for size, _ in self.parts:
            check_int("a tensor's size", size, 1)

    @property
    def name(self) -> str:
        """The name "per_tensor"."""
        return NAME

    @property
    def config(self) -> dict[str, Any]:
        """The name, and each tensor's size and codec configuration."""
        return {"name": NAME, "parts": [[size, codec.config] for size, codec in self.parts]}

    @property
    def size(self) -> int:
        """The only length of vectors that this codec takes, n."""
        return sum(size for size, _ in self.parts)

    def each(self, change: Callable[[Codec], Codec]) -> "PerTensor":
        """Return a copy in which each tensor's codec is changed."""
        changed = tuple((size, change(codec)) for size, codec in self.parts)
        return dataclasses.replace(self, parts=changed)

    def for_workers(self, count: int) -> "PerTensor":
        """Return a copy with each tensor's codec for so many workers."""
        return self.each(lambda codec: codec.for_workers(count))

    def start(self, n: int) -> tuple[State, ...]:
        """Return each tensor's state."""
        self._check(n)
        return tuple(codec.start(size) for size, codec in self.parts)

    def skip(self, x: Floats, state: State = None) -> tuple[State, ...]:
        """Return each tensor's state after skip()."""
        cuts = self._cuts(self._admit(x), state)
        return tuple(codec.skip(piece, own) for codec, piece, own in cuts)

    def _local(self, x: Floats, state: State) -> Floats | None:
        """Return the concatenated statistics of the tensors; None if none has any."""
        found = [codec.local(piece, own) for codec, piece, own in self._cuts(x, state)]
        known = [stat for stat in found if stat is not None]
        return np.concatenate(known) if known else None

    @functools.cached_property
    def carriers(self) -> tuple[Codec, ...]:
        """The carriers of the tensors' rounds; a tensor without any travels in the first round.

        CodecError where tensors' rounds differ: they are the same rounds."""
        rounds = [codec.carriers for _, codec in self.parts]
        longest = max(rounds, key=len, default=())
        if any(own not in ((), longest) for own in rounds):
            names = dict.fromkeys(codec.name for _, codec in self.parts if codec.carriers)
            raise CodecError(
                f"tensors by {' and '.join(names)}: their rounds differ, and all tensors have the"
                " same: use one of these, with the same parameters where they change the rounds"
            )
        if not longest or all(
            codec.carriers or codec.name == longest[0].name == "float32" for _, codec in self.parts
        ):
            return longest
        first = []
        for size, codec in self.parts:
            if codec.carriers:
                zeros = np.zeros(size, np.float32)
                size, codec = next(codec.reduce(zeros, 0, codec.start(size))).size, longest[0]
            first.append((size, codec))
        return (PerTensor(tuple(first)), *longest[1:])

    def reduce(self, x: Floats, seed: int = 0, state: State = None, worker: int = 0) -> Rounds:
        """Reduce all tensors in the same rounds, their vectors one after another."""
        running = []
        for i, (codec, piece, own) in enumerate(self._cuts(self._admit(x), state)):
            tensor = key(seed, "tensor", i)
            by_rounds = codec.reduce(piece, tensor, own, worker) if codec.carriers else None
            running.append(by_rounds or _in_one_round(piece, own))
        sent = [next(rounds) for rounds in running]
        found: dict[int, tuple[Floats, State]] = {}
        while len(found) < len(running):
            answer = yield np.concatenate(sent)
            pieces = np.split(answer, np.cumsum([vector.size for vector in sent])[:-1])
            for i, rounds in enumerate(running):
                if i in found:
                    continue
                try:
                    sent[i] = rounds.send(pieces[i])
                except StopIteration as end:
                    found[i], sent[i] = end.value, np.empty(0, np.float32)
        means, states = zip(*(found[i] for i in range(len(running))), strict=True)
        return np.concatenate(means), states

    def merge(self, vectors: Sequence[Floats]) -> Floats:
        """Merge each tensor as its codec does."""
        out, start = np.empty(self.size, np.float32), 0
        for size, codec in self.parts:
            span = slice(start, start + size)
            out[span] = codec.merge([vector[span] for vector in vectors])
            start += size
        return out

    def max_size(self, n: int) -> int:
        """Return 4 bytes per tensor, plus the largest size of each tensor's encoding."""
        self._check(n)
        return sum(4 + codec.most_bytes(size) for size, codec in self.parts)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, tuple[State, ...]]:
        out, states = [], []
        stats = self._split(context.shared)
        for i, (codec, piece, own) in enumerate(self._cuts(x, context.state)):
            seed = key(context.seed, "tensor", i)
            tensor = Context(stats[i], seed, own, context.worker)
            data, after = codec.encode_checked(piece, tensor)
            out += [len(data).to_bytes(4, "little"), data]
            states.append(after)
        return b"".join(out), tuple(states)

    def _decode(self, data: bytes, n: int) -> Floats:
        self._check(n)
        reader, out, start = Reader(data), np.empty(n, np.float32), 0
        for i, (size, codec) in enumerate(self.parts):
            length = int(reader.array("<u4", 1, f"length of tensor {i}")[0])
            piece = reader.array("u1", length, f"bytes of tensor {i}").tobytes()
            try:
                out[start : start + size] = codec.decode(piece, size)
            except CodecError as error:
                raise CodecError(f"tensor {i}: {error}") from error
            start += size
        reader.end()
        return out

    def _check(self, n: int) -> None:
        if check_int("n", n, 0) != self.size:
            raise CodecError(f"the tensors have {self.size} values, the vector {n}")

    def _cuts(self, x: Floats, state: State) -> Iterator[tuple[Codec, Floats, State]]:
        """Yield each tensor's codec, values and state."""
        self._check(x.size)
        states = (None,) * len(self.parts) if state is None else state
        start = 0
        for (size, codec), own in zip(self.parts, states, strict=True):
            yield codec, x[start : start + size], own
            start += size

    def _split(self, shared: Floats | None) -> Sequence[Floats | None]:
        """Return each tensor's part of the shared statistic."""
        if shared is None:
            return [None] * len(self.parts)
        sizes = self._statistics
        check_array("the tensors' shared statistic", shared, "float32", (sum(sizes),))
        ends = np.cumsum(sizes)
        pairs = zip(sizes, ends, strict=True)
        return [shared[end - size : end] if size else None for size, end in pairs]

    @functools.cached_property
    def _statistics(self) -> tuple[int, ...]:
        """The number of elements of each tensor's statistic."""
        sizes = []
        for size, codec in self.parts:
            stat = codec.local(np.zeros(size, np.float32), codec.start(size))
            sizes.append(0 if stat is None else stat.size)
        return tuple(sizes)
