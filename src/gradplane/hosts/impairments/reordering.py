"""Reordering: a packet is held back, so that later ones overtake it."""

from gradplane.hosts.impairments.impairment_models import (
    ImpairmentModel,
    PacketIdentity,
    Ruling,
    Spec,
)


class Reordering(ImpairmentModel):
    """Each packet is held back for `delay_ms` with probability `rate`; the others are not."""

    def take(self, spec: Spec) -> None:
        """Take rate and delay_ms."""
        self._rate: float = spec["rate"]
        self._delay_ns = round(spec["delay_ms"] * 1e6)

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Delay by the packet's random value."""
        held = packet.random_value(self._seed, "reordering") < self._rate
        return ("delay", self._delay_ns) if held else None
