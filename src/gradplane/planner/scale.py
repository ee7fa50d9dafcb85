"""Jobs scaled down, so that an emulated network of packets runs them in the same time.

With fewer values, links slower by the same factor and a codec that takes its time for as many
values more, computation, codecs and links take what they take at full size; latencies stay. Only
the packets are larger beside the tensors, which the framing accounts for.
"""

from __future__ import annotations

from typing import Any

from gradplane import codecs
from gradplane.planner.inputs import Compression, Curve, Framing, Model, Network, System

STREAMS = Framing(payload=1400, packet=70, acknowledgement=98, message=20, piece=12)
"""The framing of gradplane's streams: segments of 1400 bytes behind 70 bytes of headers, each
acknowledged in the other direction by a packet of 98 bytes."""


def scaled(
    model: Model, compression: Compression, system: System, values: int
) -> tuple[Model, Compression, System]:
    """Return a model of about so many values with a codec and a system that fit it.

    A tensor keeps at least one value.
    """
    total = sum(tensor.values for tensor in model.tensors)
    tensors = tuple(
        tensor.model_copy(update={"values": max(round(tensor.values * values / total), 1)})
        for tensor in model.tensors
    )
    factor = sum(tensor.values for tensor in tensors) / total
    links: dict[str, Any] = {
        name: _slower(getattr(system, name), factor) for name in ("intra", "inter")
    }
    if system.switch and system.switch.fabric_gbit:
        fabric = {"fabric_gbit": system.switch.fabric_gbit * factor}
        links |= {"switch": system.switch.model_copy(update=fabric)}
    curves = {"gpu": _curve(compression.gpu, factor), "cpu": _curve(compression.cpu, factor)}
    widths = {"sum_bits": _sum_bits(compression, system.machines), "code_bits": 4}
    return (
        model.model_copy(update={"tensors": tensors}),
        compression.model_copy(update=curves | widths),
        system.model_copy(update={**links, "framing": STREAMS}),
    )


def _sum_bits(compression: Compression, machines: int) -> int:
    """Return the width of a switch's sums over machines of the codec's codes, and of digits."""
    known = [codecs.get("switchml", workers=machines)]
    if compression.sums:
        known.append(codecs.get(compression.codec, **compression.parameters))
    needed = max(codec.sum_bits(machines) for codec in known)
    return min((width for width in codecs.SUM_WIDTHS if width >= needed), default=needed)


def _slower(network: Network, factor: float) -> Network:
    return network.model_copy(update={"gbit": network.gbit * factor})


def _curve(curve: Curve, factor: float) -> Curve:
    return curve.model_copy(update={"values": tuple(size * factor for size in curve.values)})
