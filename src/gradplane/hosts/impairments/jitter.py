"""Jitter: every packet is delayed by a time of its own."""

from statistics import NormalDist

from gradplane.hosts.impairments.impairment_models import (
    ImpairmentModel,
    PacketIdentity,
    Ruling,
    Spec,
)

_NORMAL = NormalDist()
_LEAST = 2.0**-64  # the normal distribution has no quantile of 0


class Jitter(ImpairmentModel):
    """Each packet is delayed by `delay_ms`, more or less by up to `jitter_ms`, never below 0.

    distribution: "uniform" between both ends, or "normal" with the deviation `jitter_ms`. Packets
    whose delays differ by more than the time between them change places."""

    def take(self, spec: Spec) -> None:
        """Take delay_ms, jitter_ms and distribution."""
        self._delay_ns = spec["delay_ms"] * 1e6
        self._jitter_ns = spec["jitter_ms"] * 1e6
        self._normal: bool = spec["distribution"] == "normal"

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Delay by the packet's random value."""
        share = packet.random_value(self._seed, "jitter")
        shift = _NORMAL.inv_cdf(max(share, _LEAST)) if self._normal else 2 * share - 1
        delay = round(max(0.0, self._delay_ns + self._jitter_ns * shift))
        return ("delay", delay) if delay else None
