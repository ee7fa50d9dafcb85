"""The memory of the compiled event loop: tables that grow, and the buffers of frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._addresses import address_of
from gradplane.topologies.sim import loop_layout as at
from gradplane.topologies.sim.frames import HEADERS

_PACKETS, _STRIDE, _META_STRIDE = 1024, 2048, 64
_SPARE_EVENTS = 16


class LoopMemory:
    """`words`, which the kernels get, and all that they point to.

    Grows by whole copies while no kernel runs.
    """

    def __init__(self) -> None:
        self.words = np.zeros(at.WORDS, np.int64)
        self._tables: dict[int, npt.NDArray[np.int64]] = {}
        self.words[at.PENDING] = self.words[at.FREE] = -1
        self._data = np.zeros((0, _STRIDE), np.uint8)
        self._metas = np.zeros((0, _META_STRIDE), np.uint8)
        self._place(at.HEAP, np.zeros((0, at.HEAP_COLUMNS), np.int64))
        self._place(at.PACKETS, np.zeros((0, at.PACKET_COLUMNS), np.int64))
        for which, columns in (
            (at.CHANNELS, at.CHANNEL_COLUMNS),
            (at.SWITCHES, at.SWITCH_COLUMNS),
            (at.HOSTS, at.HOST_COLUMNS),
            (at.RECEIVERS, at.RECEIVER_COLUMNS),
        ):
            self._place(which, np.zeros((0, columns), np.int64))
        self._place(at.LEAVING, np.zeros(0, np.int64))
        self._place(at.PORTS, np.zeros((0, 0), np.int64))
        self.grow_packets(_PACKETS)

    def table(self, which: int) -> npt.NDArray[np.int64]:
        """Return a table of `loop_layout`."""
        return self._tables[which]

    def append(self, which: int, row: list[int]) -> int:
        """Add a row, filled up with zeros; return its number."""
        table = self._tables[which]
        full = np.zeros((1, table.shape[1]), np.int64)
        full[0, : len(row)] = row
        self._place(which, np.concatenate([table, full]))
        return len(table)

    def replace(self, which: int, table: npt.NDArray[np.int64]) -> None:
        """Set a whole table."""
        self._place(which, np.ascontiguousarray(table, np.int64))

    def add_ring(self, places: int) -> int:
        """Add places to the table of a channel's times; return the number of the first."""
        ring = self._tables[at.LEAVING]
        self._place(at.LEAVING, np.concatenate([ring, np.zeros(places, np.int64)]))
        return len(ring)

    def _place(self, which: int, table: npt.NDArray[np.int64]) -> None:
        self._tables[which] = table
        rows = table.shape[1] if which == at.PORTS else len(table)
        self.words[which], self.words[which + 1] = address_of(table), rows

    # -- packets --------------------------------------------------------------------------------

    def need_packets(self, count: int, size: int) -> None:
        """Have so many packets free, and room for frames of `size` bytes."""
        while int(self.words[at.FREE_COUNT]) < count:
            self.grow_packets(2 * len(self._data))
        if size > self._data.shape[1]:
            self._data = self._buffers(self._data, len(self._data), -(-size // 64) * 64)

    def need_meta(self, size: int) -> None:
        """Have room for so many bytes of metadata beside each frame."""
        if size > self._metas.shape[1]:
            self._metas = self._buffers(self._metas, len(self._metas), -(-size // 64) * 64)

    def grow_packets(self, count: int) -> None:
        """Have `count` packets in all."""
        before = len(self._data)
        self._data = self._buffers(self._data, count, self._data.shape[1])
        self._metas = self._buffers(self._metas, count, self._metas.shape[1])
        packets = np.zeros((count, at.PACKET_COLUMNS), np.int64)
        packets[:before] = self._tables[at.PACKETS]
        packets[before:, at.NEXT] = np.arange(before + 1, count + 1)
        packets[-1, at.NEXT] = self.words[at.FREE]
        self._place(at.PACKETS, packets)
        self.words[at.FREE] = before
        self.words[at.FREE_COUNT] += count - before
        self.need_events(0)

    def free_packets(self) -> None:
        """Give all packets back."""
        packets = self._tables[at.PACKETS]
        packets[:, at.NEXT] = np.arange(1, len(packets) + 1)
        packets[-1, at.NEXT] = -1
        self.words[at.FREE], self.words[at.FREE_COUNT] = 0, len(packets)

    def _buffers(self, old: npt.NDArray[Any], count: int, stride: int) -> npt.NDArray[Any]:
        made = np.zeros((count, stride), np.uint8)
        made[: len(old), : old.shape[1]] = old
        kept = old is self._data
        self.words[at.DATA if kept else at.METAS] = address_of(made)
        self.words[at.STRIDE if kept else at.META_STRIDE] = stride
        return made

    def frame(self, packet: int) -> bytes:
        """Return a packet's frame."""
        size = int(self._tables[at.PACKETS][packet, at.SIZE])
        return self._data[packet, :size].tobytes()

    def payload(self, packet: int, size: int) -> npt.NDArray[np.uint8]:
        """Return a copy of the payload of a packet's datagram, uint8[1, size]."""
        data: npt.NDArray[np.uint8] = self._data[packet : packet + 1, HEADERS : HEADERS + size]
        return data.copy()

    def put_frame(self, packet: int, frame: bytes) -> None:
        """Set a packet's frame, for which there is room."""
        self._data[packet, : len(frame)] = np.frombuffer(frame, np.uint8)
        self._tables[at.PACKETS][packet, at.SIZE] = len(frame)

    def put_meta(self, packet: int, meta: bytes | None) -> None:
        """Set a packet's metadata, for which there is room, or that it has none."""
        self._tables[at.PACKETS][packet, at.HAS_META] = meta is not None
        if meta is not None:
            self._metas[packet, : len(meta)] = np.frombuffer(meta, np.uint8)

    # -- events ---------------------------------------------------------------------------------

    def need_events(self, calls: int) -> None:
        """Have room for an event of each packet and for so many calls."""
        heap = self._tables[at.HEAP]
        least = len(self._tables[at.PACKETS]) + calls + _SPARE_EVENTS
        if len(heap) < least:
            larger = np.zeros((2 * least, at.HEAP_COLUMNS), np.int64)
            larger[: len(heap)] = heap
            self._place(at.HEAP, larger)
