"""Buckets in a GPU's memory, which are encoded and decoded there: codes and sums alone cross.

Codes cross packed, through pinned memory, on a stream of their own, which waits for the stream that
filled the bucket. Bytes, sums and means are those of the codec on the CPU, and error feedback stays
on the device; a saved state has it as the CPU's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from gradplane._deferred import Deferred
from gradplane.codecs import ErrorFeedback, Partition
from gradplane.codecs._feedback import Residual
from gradplane.codecs._grid import GridCodec
from gradplane.hosts.protocols.device_vector import DeviceVector
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.reducer import Reducer
from gradplane.torch import kernels

DEVICES = {"cuda"}
"""The types of devices whose vectors are encoded by Triton's kernels."""


def device_vector(values: torch.Tensor, reducer: Reducer) -> Vector | None:
    """Return float32 values, finite and not changed until they are reduced, as a vector that is
    encoded where it is; None where the CPU has to do it: for want of Triton, of kernels for the
    job's codec, or of a scheme that takes device vectors."""
    if values.device.type not in DEVICES or not reducer.takes_devices or not _has_triton():
        return None
    if _grid(summed_codec(reducer.config.job)) is None:
        return None
    return Vector(values.reshape(-1).contiguous(), 0, _recorded(values.device))


@contextmanager
def beside(device: torch.device, after: Any = None) -> Iterator[None]:
    """Run what follows on the device's stream of ours, after an event of another."""
    if device.type != "cuda":
        yield
        return
    stream = _stream(device)
    with torch.cuda.device(device), torch.cuda.stream(stream):
        if after is not None:
            stream.wait_event(after)
        yield


class Vector(DeviceVector):
    """A vector, or a piece of one, from its value `begin` on; ready: the event after which it is
    there."""

    def __init__(self, tensor: torch.Tensor, begin: int = 0, ready: Any = None) -> None:
        self.tensor, self.begin, self.ready = tensor, begin, ready
        self.size = tensor.numel()

    def __getitem__(self, piece: slice) -> Vector:
        """Return a piece."""
        return Vector(self.tensor[piece], self.begin + piece.start, self.ready)

    def coder(self, codec: Any, states: Sequence[Any] | None) -> Coder:
        """Return what takes the codec's place; see DeviceVector."""
        return Coder(codec, self, states)

    def zeros(self) -> Vector:
        """Return as many zeros."""
        with beside(self.tensor.device):
            return Vector(torch.zeros_like(self.tensor))

    def joined(self, pieces: Sequence[Any]) -> Vector:
        """Return the pieces as one vector."""
        with beside(self.tensor.device):
            return Vector(torch.cat([piece.tensor for piece in pieces]) if pieces else self.tensor)


@dataclass(frozen=True)
class _Residual(Residual):
    """A residual on a device, which `unsent` brings to the CPU's memory when it is saved."""

    values: torch.Tensor

    @classmethod
    def of(cls, values: torch.Tensor) -> _Residual:
        return cls(Deferred(_fetched, values), None, values)


class Coder:
    """A codec's work on a device, for one reduce: a SummedCodes over the pieces of a vector."""

    def __init__(self, codec: Any, vector: Vector, states: Sequence[Any] | None) -> None:
        """Begin with the norms of all pieces, of the vector and what earlier ones left unsent."""
        grid = _grid(codec)
        assert grid is not None, codec
        from gradplane.torch import triton_thc

        self._triton, self._codec, self._grid = triton_thc, codec, grid
        self._feedback, self._device = codec is not grid, vector.tensor.device
        self._places = {part.start: k for k, part in enumerate(grid.partitions(vector.size))}
        with beside(self._device, vector.ready):
            self._total = vector.tensor
            if self._feedback:
                self._total = self._total + self._unsent(states)
            self._sums = _Fetch(triton_thc.norm_sums(grid, self._total))

    def _unsent(self, states: Sequence[Any] | None) -> torch.Tensor:
        if not states:
            return torch.zeros(1, device=self._device)
        kept = [
            state.values if isinstance(state, _Residual) else torch.from_numpy(state.error)
            for state in states
        ]
        return torch.cat([each.to(self._device) for each in kept])

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Return the codec's partitions."""
        return self._grid.partitions(n)

    def lanes(self, n: int) -> int:
        """Return the number of codes of n values."""
        return self._grid.lanes(n)

    def start(self, n: int) -> Any:
        """Return the codec's first state."""
        return self._codec.start(n)

    def skip(self, x: Vector, state: Any = None) -> Any:
        """Return the state after a reduce in which nothing of a piece was sent."""
        return _Residual.of(self._total_of(x)) if self._feedback else state

    def local(self, x: Vector, state: Any = None) -> Any:
        """Return a piece's norm, float32[1]."""
        sums = self._sums.get()
        norms = self._triton.finished_norms(self._grid, self._total.numel(), sums)
        place = self._places[x.begin]
        return norms[place : place + 1]

    def codes(
        self, x: Vector, shared: Any, seed: int, state: Any = None, worker: int = 0
    ) -> tuple[Any, Any]:
        """Return a piece's codes, uint8[lanes], in the CPU's memory, and the state after them."""
        bits, norm, total = self._grid._field_bits, torch.from_numpy(shared), self._total_of(x)
        with beside(self._device):
            codes = self._triton.codes(self._grid, total, norm, seed, worker)
            packed = _Fetch(kernels.pack(codes, bits))
            if self._feedback:
                table = torch.tensor(self._grid.table, dtype=torch.int32, device=self._device)
                sent = self._triton.mean(self._grid, table[codes.int()], x.size, 1, norm, seed)
                state = _Residual.of(total - sent)
        return self._grid._fields.unpack(packed.get(), codes.numel(), bits), state

    def deferred(self, state: Any) -> tuple[()]:
        """Return what codes() put off: nothing that the CPU has to do."""
        return ()

    def decode_sum(self, sums: Any, n: int, count: Any, shared: Any, seed: int = 0) -> Vector:
        """Return the mean of a piece, from sums in the CPU's memory."""
        with beside(self._device):
            workers = self._sent(count) if isinstance(count, np.ndarray) else count
            given = self._sent(sums), n, workers, torch.from_numpy(shared), seed
            return Vector(self._triton.mean(self._grid, *given))

    def _total_of(self, x: Vector) -> torch.Tensor:
        return self._total[x.begin : x.begin + x.size]

    def _sent(self, values: Any) -> torch.Tensor:
        """Return an array on the device."""
        own = torch.from_numpy(np.ascontiguousarray(values))
        if self._device.type != "cuda":
            return own
        return own.pin_memory().to(self._device, non_blocking=True)


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


def _grid(codec: Any) -> GridCodec | None:
    """Return the codec inside error feedback, if it has kernels."""
    inner = codec.codec if isinstance(codec, ErrorFeedback) else codec
    return inner if isinstance(inner, GridCodec) and inner.rotate else None


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@cache
def _stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
