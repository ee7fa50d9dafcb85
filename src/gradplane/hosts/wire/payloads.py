"""UDP payloads in batches: the rows of one array.

State machines, host links and networks pass packets on in this form; a single packet is a batch of
one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ECN_CAPABLE, ECN_MARKED = 2, 3
"""The ECN bits of IP's ToS byte: ECT(0), as all hosts send that heed marks, and a mark."""

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Payloads:
    """Payloads of UDP datagrams: payload i is `data[i, : sizes[i]]`.

    data: uint8[n, stride], rows contiguous. sizes: int64[n], none above the stride. marked: of
    those that arrived, which a switch marked at a queue (ECN), bool[n]; None: none.
    """

    data: Bytes
    sizes: Ints
    marked: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Payloads:
        """Return a batch of these payloads."""
        sizes = np.array([len(payload) for payload in payloads], np.int64)
        if len(payloads) == 1:
            # A writable copy, so that kernels see one type of array.
            return cls(np.frombuffer(bytearray(payloads[0]), np.uint8)[None], sizes)
        data = np.zeros((len(payloads), int(sizes.max(initial=0))), np.uint8)
        for row, payload in zip(data, payloads, strict=True):
            row[: len(payload)] = np.frombuffer(payload, np.uint8)
        return cls(data, sizes)

    def with_tos(self, tos: int) -> Payloads:
        """Return the payloads as they arrived in packets with this ToS byte."""
        if tos & ECN_MARKED != ECN_MARKED:
            return self
        return Payloads(self.data, self.sizes, np.ones(len(self), bool))

    @classmethod
    def equal(cls, data: Bytes) -> Payloads:
        """Return the batch whose payloads are the whole rows of `data`, uint8[n, size]."""
        return cls(data, np.full(len(data), data.shape[1], np.int64))

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: int) -> bytes:
        """Return payload i."""
        return self.data[i, : self.sizes[i]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[i] for i in range(len(self)))

    def select(self, rows: npt.NDArray[Any]) -> Payloads:
        """Return a copy of some payloads, by a mask or by their numbers."""
        marked = None if self.marked is None else self.marked[rows]
        return Payloads(self.data[rows], self.sizes[rows], marked)

    def part(self, first: int, end: int) -> Payloads:
        """Return payloads `first` to `end` - 1, which are not copied."""
        marked = None if self.marked is None else self.marked[first:end]
        return Payloads(self.data[first:end], self.sizes[first:end], marked)

    @property
    def nbytes(self) -> int:
        """The bytes of all payloads."""
        return self.bytes_behind(0)

    def bytes_behind(self, header: int) -> int:
        """Return the bytes of all payloads without the first `header` bytes of each."""
        if len(self.sizes) == 1:  # most batches; a kernel's call takes longer
            return max(int(self.sizes[0]) - header, 0)
        from gradplane._vector_kernels import sum_beyond

        return int(sum_beyond(self.sizes, header))
