"""Reads TensorBoard's files: records of messages in protobuf's encoding."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradplane.pages import exports


def scalars(file: Path) -> list[tuple[float, int, dict[str, float]]]:
    """Return the time, the step and the values of each event."""
    version, *events = map(dict, map(fields, records(file.read_bytes())))
    assert version == {3: b"brain.Event:2"}
    found = []
    for event in events:
        values = (tuple(dict(fields(value)).values()) for _, value in fields(event[5]))
        found.append((event[1], event[2], {name.decode(): value for name, value in values}))
    return found


def records(data: bytes) -> Iterator[bytes]:
    while data:
        (length,) = struct.unpack_from("<Q", data)
        assert data[8:12] == exports._masked(data[:8])
        yield data[12 : 12 + length]
        assert data[12 + length : 16 + length] == exports._masked(data[12 : 12 + length])
        data = data[16 + length :]


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of a protobuf message's fields."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        content, at = message[at : at + size], at + size
        yield (
            number,
            content if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", content)[0],
        )
