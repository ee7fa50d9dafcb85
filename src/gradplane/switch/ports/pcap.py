"""pcap files with times in nanoseconds, readable at any moment while they are written."""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

_MAGIC_NANOSECONDS = 0xA1B23C4D
_LINKTYPE_ETHERNET = 1
_SNAPLEN = 1 << 18
_FILE_HEADER = struct.Struct("<IHHiIII")
_RECORD_HEADER = struct.Struct("<IIII")
_SECOND = 1_000_000_000


class PcapWriter:
    """Writes Ethernet packets to `path`, each with one system call.

    `clock` gives the time of a packet in nanoseconds since 1970. On a full disk the file ends with
    a whole packet, and OSError names it.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._path, self._size = path, 0
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
        header = (_MAGIC_NANOSECONDS, 2, 4, 0, 0, _SNAPLEN, _LINKTYPE_ETHERNET)
        self._append(_FILE_HEADER.pack(*header))

    def write(self, packet: bytes) -> None:
        seconds, nanoseconds = divmod(self._clock(), _SECOND)
        size = len(packet)
        self._append(_RECORD_HEADER.pack(seconds, nanoseconds, size, size) + packet)

    def _append(self, data: bytes) -> None:
        try:
            if self._file.write(data) < len(data):
                self._file.truncate(self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            error.filename = str(self._path)
            raise
        self._size += len(data)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PcapWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
