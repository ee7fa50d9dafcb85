"""Weights through ADT, at the precision that AWP chooses for each layer (A2DTWP, section III)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_int
from gradplane.codecs.adt import bitpack, bitunpack
from gradplane.codecs.policies.awp import AWP, Precision

FULL = 4
"""Bytes of a value that no policy shortens."""


@dataclass(frozen=True)
class AdaptiveADT(Codec):
    """A model's parameters: the tensors of a layer at that layer's precision, the rest as float32.

    tensors: the size (at least 1) of each tensor in order, and its layer, from 0, or -1 for
    float32. Tensors of one layer share a precision (the paper: Resnet's blocks). The state is the
    policy's: encode() shows it the weights, which may raise a layer's precision, and sends them
    with what results. Bytes: for each tensor the bytes kept of a value (uint8, 1 to 4), then the
    tensors as `adt.bitpack` makes them. Error: ADT's. Codes cannot be summed in the network.
    """

    policy: AWP
    tensors: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for size, layer in self.tensors:
            check_int("a tensor's size", size, 1)
            check_int("a tensor's layer", layer, -1)

    @property
    def name(self) -> str:
        """The name "adt"."""
        return "adt"

    @property
    def config(self) -> dict[str, Any]:
        """The name, the policy and its parameters, and each tensor's size and layer."""
        return {"name": self.name, "policy": "awp", **vars(self.policy), "tensors": self.tensors}

    @property
    def size(self) -> int:
        """The only length of vectors that this codec takes, n."""
        return sum(size for size, _ in self.tensors)

    @property
    def compressed(self) -> int:
        """The number of values that belong to a layer."""
        return sum(size for size, layer in self.tensors if layer >= 0)

    def start(self, n: int) -> Precision:
        """Return the policy's state before the first batch."""
        self._check(n)
        return self.policy.start(1 + max((layer for _, layer in self.tensors), default=-1))

    def max_size(self, n: int) -> int:
        """Return 1 byte a tensor and 4 a value."""
        self._check(n)
        return len(self.tensors) + FULL * n

    def precision(self, data: bytes) -> tuple[int, ...]:
        """Return the bytes that encoded `data` keeps of each tensor's values."""
        return tuple(Reader(data).array("u1", len(self.tensors), "bytes of each tensor").tolist())

    def encoded_size(self, precision: Sequence[int]) -> int:
        """Return the bytes of a vector that keeps so many bytes of each tensor's values."""
        pairs = zip(self.tensors, precision, strict=True)
        return len(self.tensors) + sum(size * keep for (size, _), keep in pairs)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        state = context.state
        if not isinstance(state, Precision):
            raise CodecError("adt with a policy needs the state of start(n) or of the last call")
        pieces = self._pieces(x)
        layers: list[list[Floats]] = [[] for _ in state.bits]
        for piece, (_, layer) in zip(pieces, self.tensors, strict=True):
            if layer >= 0:
                layers[layer].append(piece)
        state = self.policy.update(state, layers)
        keeps = [self._keep(state, layer) for _, layer in self.tensors]
        packed = (bitpack(piece, keep) for piece, keep in zip(pieces, keeps, strict=True))
        return bytes(keeps) + b"".join(part.tobytes() for part in packed), state

    def _decode(self, data: bytes, n: int) -> Floats:
        self._check(n)
        reader, out = Reader(data), np.empty(n, np.float32)
        keeps = reader.array("u1", len(self.tensors), "bytes of each tensor").tolist()
        for piece, keep in zip(self._pieces(out), keeps, strict=True):
            if not 1 <= keep <= FULL:
                raise CodecError(f"corrupted: {keep} bytes of a value, 1 to {FULL} are possible")
            packed = reader.array("u1", keep * piece.size, f"{piece.size} values")
            bitunpack(np.ascontiguousarray(packed), keep, piece)
        reader.end()
        return out

    def _keep(self, state: Precision, layer: int) -> int:
        return FULL if layer < 0 else -(-state.bits[layer] // 8)

    def _pieces(self, x: Floats) -> list[Floats]:
        self._check(x.size)
        ends = np.cumsum([size for size, _ in self.tensors])
        pairs = zip(self.tensors, ends, strict=True)
        return [x[end - size : end] for (size, _), end in pairs]

    def _check(self, n: int) -> None:
        if check_int("n", n, 0) != self.size:
            raise CodecError(f"the tensors have {self.size} values, the vector {n}")
