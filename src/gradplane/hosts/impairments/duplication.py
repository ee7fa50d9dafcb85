"""Duplication: a packet arrives twice."""

from gradplane.hosts.impairments.impairment_models import (
    ImpairmentModel,
    PacketIdentity,
    Ruling,
    Spec,
)


class Duplication(ImpairmentModel):
    """Each packet arrives twice with probability `rate`, the copy `delay_ms` after the packet."""

    def take(self, spec: Spec) -> None:
        """Take rate and delay_ms."""
        self._rate: float = spec["rate"]
        self._delay_ns = round(spec["delay_ms"] * 1e6)

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Duplicate by the packet's random value."""
        twice = packet.random_value(self._seed, "duplication") < self._rate
        return ("duplicate", self._delay_ns) if twice else None
