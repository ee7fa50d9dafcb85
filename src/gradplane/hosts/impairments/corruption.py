"""Corruption: bits of a packet are flipped on the link, and its other end finds that."""

from gradplane.hosts.impairments.impairment_models import (
    ImpairmentModel,
    PacketIdentity,
    Ruling,
    Spec,
)

MOST_BITS = 15
"""The length of the burst of flipped bits that the Internet checksum always finds (RFC 1071): a
shorter one changes the sum of the 16-bit words by something that is no multiple of 2^16 - 1."""


class Corruption(ImpairmentModel):
    """Each packet is damaged with probability `rate`, in a burst of up to MOST_BITS bits.

    The receiving stack drops a datagram whose UDP checksum is wrong, and so does the end of a link
    with a frame check sequence: the verdict "corrupt" drops the packet and counts it."""

    def take(self, spec: Spec) -> None:
        """Take rate."""
        self._rate: float = spec["rate"]

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Drop by the packet's random value."""
        damaged = packet.random_value(self._seed, "corruption") < self._rate
        return ("corrupt", 0) if damaged else None
