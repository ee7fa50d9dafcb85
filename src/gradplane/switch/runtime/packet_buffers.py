"""Many packets in one array, as the engines and the ports exchange them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gradplane.switch.runtime.control_errors import SwitchError

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Buffers = tuple[Ints, Bytes, Ints, Ints]
Sent = tuple[Ints, Bytes]
"""Packets that left: rows of (port, end of its bytes, cause), and the bytes one after the other.
The cause is the index of the packet from which it came."""


def pack(ports: Sequence[int], packets: Sequence[bytes]) -> tuple[Ints, Bytes, Ints]:
    """Pack lists into ports, data, offsets: packet i is data[offsets[i]:offsets[i + 1]]."""
    lengths = np.fromiter((len(p) for p in packets), dtype=np.int64, count=len(packets))
    offsets = np.zeros(len(packets) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.frombuffer(b"".join(packets) or b"\0", dtype=np.uint8)
    return np.array(ports, dtype=np.int64), data, offsets


def sent(outputs: Iterable[tuple[int, int, bytes]]) -> Sent:
    """Pack (cause, port, packet) tuples into arrays."""
    rows, data = [], bytearray()
    for cause, port, packet in outputs:
        data += packet
        rows.append((port, len(data), cause))
    return np.array(rows, dtype=np.int64).reshape(-1, 3), np.frombuffer(data, dtype=np.uint8)


def outputs(rows: Ints, data: Bytes) -> list[tuple[int, int, bytes]]:
    """Unpack arrays into (cause, port, packet) tuples."""
    whole, start, out = data.tobytes(), 0, []
    for port, end, cause in rows.tolist():
        out.append((cause, port, whole[start:end]))
        start = end
    return out


def joined(parts: Sequence[tuple[int, Sent]]) -> Sent:
    """Join the parts of a batch; each comes with the index of its first packet."""
    if len(parts) == 1 and parts[0][0] == 0:
        return parts[0][1]
    all_rows, size = [np.zeros((0, 3), dtype=np.int64)], 0
    for first, (rows, data) in parts:
        all_rows.append(rows + np.array([0, size, first]))
        size += len(data)
    whole = np.concatenate([np.zeros(0, dtype=np.uint8), *(data for _, (_, data) in parts)])
    return np.concatenate(all_rows), whole


def check_offsets(count: int, size: int, offsets: Ints) -> None:
    """Raise SwitchError for offsets that are not those of `count` packets in `size` bytes."""
    if len(offsets) != count + 1:
        raise SwitchError(f"{count} ports need {count + 1} offsets, not {len(offsets)}")
    if count and (
        offsets[0] < 0 or offsets[-1] > size or np.count_nonzero(offsets[1:] < offsets[:-1])
    ):
        what = "the offsets do not rise from 0 or more"
        raise SwitchError(f"{what} to at most {size}, the data's size")
