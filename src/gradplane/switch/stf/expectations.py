"""The packets that must leave, and their comparison with those that left.

As in BMv2's runner: at the end, each port that a `packet` or `expect` names must have sent as many
packets as it has expectations, in that order. An expectation is a prefix, with `$` the whole
packet, without bytes any packet. Packets through ports that the file does not name are ignored,
unless the file has `no_packet` and expects nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected packet. `digits`: hexadecimal, `*` for any digit. `whole`: nothing may follow."""

    line: int
    digits: str
    whole: bool

    def difference(self, packet: bytes) -> str:
        """Describe how a packet differs; return "" where it fits."""
        got = packet.hex()
        if len(got) < len(self.digits):
            return f"too short: {len(got)} digits for {len(self.digits)}"
        for i, (wanted, digit) in enumerate(zip(self.digits, got, strict=False)):
            if wanted not in ("*", digit):
                return f"digit {i} (byte {i // 2}) is {digit}, not {wanted}"
        if self.whole and len(got) > len(self.digits):
            return f"too long: {len(got)} digits for {len(self.digits)}"
        return ""

    def __str__(self) -> str:
        return self.digits + "$" * self.whole or "any"


class Expectations:
    """The packets that are expected and those that were sent, by port."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.ports: set[int] = set()  # named in the file
        self.nothing = False  # no_packet
        self._expected: defaultdict[int, list[Expected]] = defaultdict(list)
        self._sent: defaultdict[int, list[bytes]] = defaultdict(list)

    def expect(self, line: int, port: int, digits: str, whole: bool) -> None:
        self.ports.add(port)
        self._expected[port].append(Expected(line, digits.lower(), whole))

    def sent(self, port: int, packet: bytes) -> None:
        self._sent[port].append(packet)

    def failures(self) -> list[str]:
        """Return a message for each port whose packets are not as expected."""
        ports = set(self.ports)
        if self.nothing and not self._expected:
            ports |= set(self._sent)
        return [message for port in sorted(ports) for message in self._port(port)]

    def _port(self, port: int) -> Iterator[str]:
        expected, sent = self._expected[port], self._sent[port]
        if len(expected) != len(sent):
            yield self._miscount(port, expected, sent)
        else:
            yield from self._differences(port, expected, sent)

    def _differences(self, port: int, expected: list[Expected], sent: list[bytes]) -> Iterator[str]:
        for i, (wanted, packet) in enumerate(zip(expected, sent, strict=True), 1):
            difference = wanted.difference(packet)
            if difference:
                what = f"{self.file}:{wanted.line}: packet {i} on port {port}: {difference}"
                yield f"{what}\n    expected {wanted}\n    received {packet.hex()}"

    def _miscount(self, port: int, expected: list[Expected], sent: list[bytes]) -> str:
        place = f"{self.file}:{expected[0].line}" if expected else self.file
        lines = [f"{place}: port {port} sent {_packets(len(sent))}, expected {len(expected)}"]
        lines += [f"    expected {wanted} (line {wanted.line})" for wanted in expected]
        lines += [f"    received {packet.hex()}" for packet in sent]
        return "\n".join(lines)


def _packets(count: int) -> str:
    return f"{count} packet" if count == 1 else f"{count} packets"
