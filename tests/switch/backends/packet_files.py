"""The ports of a BMv2 switch as files: simple_switch --use-files, which every build of it has.

For an interface NAME, BMv2 reads packets from NAME_in.pcap and appends what leaves to NAME_out.pcap
(behavioral-model, bm_sim/pcap_file.cpp). Of all its files it takes the packet with the least
timestamp, as soon as each file has one or has ended. The files with packets are pipes here: a
packet enters when the one that follows in the file of the packet before is written, and so
between any two commands of a test.
"""

import os
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

_FILE = struct.Struct(
    "=IHHiIII"
)  # of a capture: magic number, version, zone, accuracy, length, link
_RECORD = struct.Struct("=IIII")  # of a packet: seconds, microseconds, length here and on the wire
_START = _FILE.pack(0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)


class PacketFiles:
    """The interfaces of a switch whose packets, with their ports, are known beforehand."""

    def __init__(self, folder: Path, packets: Sequence[tuple[int, bytes]], ports: set[int]) -> None:
        self._ports = [port for port, _ in packets]
        self._waiting: dict[int, deque[bytes]] = {port: deque() for port in self._ports}
        for number, (port, packet) in enumerate(packets):
            self._waiting[port].append(_RECORD.pack(number, 0, *2 * [len(packet)]) + packet)
        self._folder, self._next = folder, 0
        self._pipes = {port: self._pipe(port) for port in self._waiting}
        self._read = dict.fromkeys(ports | set(self._ports), _FILE.size)
        for port in self._read.keys() - self._pipes.keys():
            self._file(port, "in").write_bytes(_START)
        for port in self._pipes.keys() - set(self._ports[:1]):
            self._write(port)

    def options(self) -> list[str]:
        """Return the switch's options."""
        pairs = [("-i", f"{port}@{self._folder / str(port)}") for port in self._read]
        return ["--use-files", "0", *(word for pair in pairs for word in pair)]

    def send(self) -> None:
        """Let the next packet in."""
        self._write(self._ports[max(0, self._next - 1)])
        self._next += 1

    def sent(self) -> Iterator[tuple[int, bytes]]:
        """Yield what has left since the last call, with its port."""
        for port, start in self._read.items():
            data = self._file(port, "out").read_bytes()
            while len(data) >= (begin := start + _RECORD.size):
                end = begin + _RECORD.unpack_from(data, start)[2]
                if len(data) < end:
                    break
                yield port, data[begin:end]
                self._read[port] = start = end

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes.values():
            os.close(pipe)

    def _pipe(self, port: int) -> int:
        os.mkfifo(path := self._file(port, "in"))
        pipe = os.open(path, os.O_RDWR)  # which does not wait for the switch
        os.write(pipe, _START)
        return pipe

    def _write(self, port: int) -> None:
        """Write the next packet of a port, or end its file."""
        if self._waiting[port]:
            os.write(self._pipes[port], self._waiting[port].popleft())
        else:
            os.close(self._pipes.pop(port))

    def _file(self, port: int, direction: str) -> Path:
        return self._folder / f"{port}_{direction}.pcap"
