"""Buckets in a GPU's memory, which are encoded and decoded there: codes and their sums alone cross.

Codes cross packed, and bytes as they are, through pinned memory, on a stream of their own, which
waits for the stream that filled the bucket. Bytes, sums and means are those of the codec on the
CPU, and error feedback stays on the device; a saved state has it as the CPU's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gradplane._deferred import Deferred
from gradplane.codecs import Codec, ErrorFeedback, Partition
from gradplane.codecs._base import check_vector
from gradplane.codecs._feedback import Residual
from gradplane.hosts.protocols.device_vector import DeviceVector
from gradplane.hosts.protocols.job_codec import push_codec
from gradplane.hosts.reducer import Reducer
from gradplane.torch import kernels


class DeviceError(RuntimeError):
    """A bucket's work on its device that failed: the text begins with the bucket."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Name a bucket, unless it is "", in the errors of what follows: CUDA's own name none."""
    try:
        yield
    except DeviceError:
        raise
    except RuntimeError as error:
        if not what:
            raise
        raise DeviceError(f"{what}: {error}") from error


def device_vector(values: torch.Tensor, reducer: Reducer, what: str = "") -> Vector | None:
    """Return float32 values, finite and not changed until they are reduced, as a vector that is
    encoded where it is; None where the CPU has to do it: for want of Triton, of kernels for the
    job's codec, or of a scheme that takes device vectors. what: the bucket, for errors."""
    if values.device.type not in kernels.DEVICES or not kernels.has_triton():
        return None
    if not reducer.takes_devices or not _encodes(push_codec(reducer.config.job)):
        return None
    return Vector(values.reshape(-1).contiguous(), 0, _recorded(values.device), what)


@contextmanager
def beside(device: torch.device, *after: Any, what: str = "") -> Iterator[None]:
    """Run what follows on the device's stream of ours, after events of another, or None. what: the
    bucket, for errors."""
    if device.type != "cuda":
        with named(what):
            yield
        return
    with named(what):
        stream = _stream(device)
        with torch.cuda.device(device), torch.cuda.stream(stream):
            for event in filter(None, after):
                stream.wait_event(event)
            yield


class Vector(DeviceVector):
    """A vector, or a piece of one, from its value `begin` on; ready: the event after which it is
    there; what: the bucket, for errors."""

    def __init__(
        self, tensor: torch.Tensor, begin: int = 0, ready: Any = None, what: str = ""
    ) -> None:
        self.tensor, self.begin, self.ready, self.what = tensor, begin, ready, what
        self.size = tensor.numel()

    def _beside(self, *after: Any) -> AbstractContextManager[None]:
        return beside(self.tensor.device, *after, what=self.what)

    def _made(self, tensor: torch.Tensor) -> Vector:
        return Vector(tensor, what=self.what)

    def __getitem__(self, piece: slice) -> Vector:
        """Return a piece."""
        begin = self.begin + (piece.start or 0)
        return Vector(self.tensor[piece], begin, self.ready, self.what)

    def __setitem__(self, piece: slice, values: DeviceVector) -> None:
        """Write a piece."""
        assert isinstance(values, Vector), values
        with self._beside(values.ready):
            self.tensor[piece] = values.tensor

    def __add__(self, other: DeviceVector) -> Vector:
        """Return the sums."""
        assert isinstance(other, Vector), other
        with self._beside(self.ready, other.ready):
            return self._made(self.tensor + other.tensor)

    def divided(self, by: npt.NDArray[np.float32]) -> Vector:
        """Return the quotients."""
        with self._beside(self.ready):
            # CUDA multiplies by the reciprocal of a number, or of a tensor without dimensions.
            rows = self.tensor.reshape(by.size, self.size // max(by.size, 1))
            return self._made((rows / _sent(by[:, None], self.tensor.device)).reshape(-1))

    def rotated(self, seed: int) -> Vector:
        """Return the transform."""
        from gradplane.torch import triton_thc

        with self._beside(self.ready):
            return self._made(triton_thc.rotated(self.tensor, seed))

    def unrotated(self, n: int, seed: int) -> Vector:
        """Return the n values whose transform it is."""
        from gradplane.torch import triton_thc

        with self._beside(self.ready):
            return self._made(triton_thc.unrotated(self.tensor, n, seed))

    def coder(self, codec: Any, states: Sequence[Any] | None) -> Coder:
        """Return what takes the codec's place; see DeviceVector."""
        return Coder(codec, self, states)

    def decoder(self, codec: Any) -> Decoder:
        """Return what takes the place of an answer's codec; see DeviceVector."""
        return Decoder(codec, self)

    def zeros(self, size: int) -> Vector:
        """Return so many zeros."""
        with self._beside():
            return self._made(self.tensor.new_zeros(size))

    def joined(self, pieces: Sequence[Any]) -> Vector:
        """Return the pieces as one vector."""
        with self._beside():
            return self._made(
                torch.cat([piece.tensor for piece in pieces]) if pieces else self.tensor
            )


@dataclass(frozen=True)
class _Residual(Residual):
    """A residual on a device, which `unsent` brings to the CPU's memory when it is saved."""

    values: torch.Tensor

    @classmethod
    def of(cls, values: torch.Tensor) -> _Residual:
        return cls(Deferred(_fetched, values), None, values)


class Coder:
    """A codec's work on a device, for one reduce: of a vector, or piece by piece."""

    def __init__(self, codec: Any, vector: Vector, states: Sequence[Any] | None) -> None:
        """Begin with the statistics of all pieces, of the vector and what earlier ones left
        unsent."""
        from gradplane.torch import triton_codecs

        self._triton, self._codec, self._inner = triton_codecs, codec, _inner(codec)
        self._feedback, self._device = codec is not self._inner, vector.tensor.device
        self._begin, self._what = vector.begin, vector.what
        self._statistics = None
        with beside(self._device, vector.ready, what=self._what):
            self._total, self._unsent = vector.tensor, self._kept(states)
            if self._feedback:
                self._total = self._total + self._unsent
            if triton_codecs.summed(self._inner):
                parts = self._inner.partitions(vector.size)
                self._places = {vector.begin + part.start: k for k, part in enumerate(parts)}
                self._statistics = _Fetch(triton_codecs.statistics(self._inner, self._total))

    def _kept(self, states: Sequence[Any] | None) -> Any:
        """Return what earlier reduces left unsent, a tensor; None where no state is a residual."""
        if not isinstance(self._codec.start(0), Residual):
            return None
        if not states:
            return torch.zeros(1, device=self._device)
        kept = [
            state.values if isinstance(state, _Residual) else torch.from_numpy(state.error)
            for state in states
        ]
        return torch.cat([each.to(self._device) for each in kept])

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Return the codec's partitions."""
        found: tuple[Partition, ...] = self._inner.partitions(n)
        return found

    def lanes(self, n: int) -> int:
        """Return the number of codes of n values."""
        return int(self._inner.lanes(n))

    def start(self, n: int) -> Any:
        """Return the codec's first state."""
        return self._codec.start(n)

    def skip(self, x: Vector, state: Any = None) -> Any:
        """Return the state after a reduce in which nothing of a piece was sent."""
        return _Residual.of(self._total_of(x)) if self._feedback else state

    def local(self, x: Vector, state: Any = None) -> Any:
        """Return the statistics of the vector or a piece, float32[its partitions]; or None."""
        if self._statistics is None:
            return None
        with beside(self._device, what=self._what):
            sums, n = self._statistics.get(), self._total.numel()
        found = self._triton.finished_statistics(self._inner, n, sums)
        if not np.isfinite(found).all():
            check_vector(_fetched(self._total))  # which names the value
        place = self._places.get(x.begin, 0)
        return found[place : place + len(self.partitions(x.size))]

    def codes(
        self, x: Vector, shared: Any, seed: int, state: Any = None, worker: int = 0
    ) -> tuple[Any, Any]:
        """Return a piece's codes, uint8[lanes], in the CPU's memory, and the state after them."""
        grid, norm, total = self._inner, torch.from_numpy(shared), self._total_of(x)
        with beside(self._device, what=self._what):
            packed = self._triton.packed_codes(grid, total, norm, seed, worker)
            crossing = _Fetch(packed)
            if self._feedback:
                sent = self._triton.values(grid, packed, x.size, norm, seed)
                state = _Residual.of(total - sent)
            there = crossing.get()
        return grid._fields.unpack(there, grid.lanes(x.size), grid._field_bits), state

    def encode(
        self, x: Vector, shared: Any = None, seed: int = 0, state: Any = None, worker: int = 0
    ) -> tuple[bytes, Any]:
        """Return the codec's bytes of the vector, and the state after them."""
        if not self._triton.has(self._inner):
            encoded: tuple[bytes, Any] = self._codec.encode(
                _fetched(x.tensor), shared, seed, state, worker
            )
            return encoded
        statistic = None if shared is None else torch.from_numpy(shared)
        memory = None if self._feedback else self._unsent
        with beside(self._device, what=self._what):
            data, after = kernels.encode(self._inner, self._total, statistic, seed, memory, worker)
            crossing = _Fetch(data)
            if self._feedback:
                state = _Residual.of(self._total - kernels.decode(self._inner, data, x.size))
            elif memory is not None:
                state = _Residual.of(after)
            sent = crossing.get().tobytes()
        return sent, state

    def deferred(self, state: Any) -> tuple[()]:
        """Return what codes() put off: nothing that the CPU has to do."""
        return ()

    def decode_sum(self, sums: Any, n: int, count: Any, shared: Any, seed: int = 0) -> Vector:
        """Return the mean of the vector or a piece, from sums in the CPU's memory."""
        self._inner._check_sums(sums, n, count)
        with beside(self._device, what=self._what):
            workers = _sent(count, self._device) if isinstance(count, np.ndarray) else count
            given = _sent(sums, self._device), n, workers, torch.from_numpy(shared), seed
            return Vector(self._triton.mean(self._inner, *given), what=self._what)

    def _total_of(self, x: Vector) -> torch.Tensor:
        begin = x.begin - self._begin
        return self._total[begin : begin + x.size]


class Decoder:
    """The codec of answers, whose values come to be on a device."""

    def __init__(self, codec: Any, vector: Vector) -> None:
        self._codec, self._device, self._what = codec, vector.tensor.device, vector.what

    def decode(self, data: bytes, n: int) -> Vector:
        """Return the values of bytes: decoded there, if the codec has kernels, or sent there."""
        from gradplane.torch import triton_codecs

        inner = _inner(self._codec)
        with beside(self._device, what=self._what):
            if triton_codecs.has(inner):
                given = _sent(np.frombuffer(data, np.uint8), self._device)
                return Vector(kernels.decode(inner, given, n), what=self._what)
            return Vector(_sent(self._codec.decode(data, n), self._device), what=self._what)


class _Fetch:
    """A tensor's values, which cross to the CPU's memory meanwhile."""

    def __init__(self, tensor: torch.Tensor) -> None:
        """Begin, behind what the current stream does."""
        self._values = tensor
        if tensor.is_cuda:
            self._values = torch.empty_like(tensor, device="cpu", pin_memory=True)
            self._values.copy_(tensor, non_blocking=True)
        self._done = _recorded(tensor.device)

    def get(self) -> Any:
        """Wait for them, and return the array."""
        if self._done is not None:
            self._done.synchronize()
        return self._values.numpy()


def _fetched(values: torch.Tensor) -> Any:
    with beside(values.device):
        return _Fetch(values).get()


def _recorded(device: torch.device) -> Any:
    """Return an event behind what the device's current stream does."""
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


def _sent(values: Any, device: torch.device) -> torch.Tensor:
    """Return an array on a device."""
    own = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    return own.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else own


def _inner(codec: Any) -> Any:
    """Return the codec, without error feedback."""
    return codec.codec.memoryless if isinstance(codec, ErrorFeedback) else codec


def _encodes(codec: Codec) -> bool:
    """Return whether the codec's vectors are encoded by kernels."""
    from gradplane.torch import triton_codecs

    return triton_codecs.has(_inner(codec))


@cache
def _stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
