"""CounterData, MeterConfig and array indices."""

from __future__ import annotations

from gradplane._p4runtime import p4i, p4r
from gradplane.switch.p4runtime.catalog import Extern
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.meters import ColourCounts, MeterConfig

_INT64 = 1 << 63
_UINT64 = 1 << 64


def counter_values(message: p4r.CounterData, owner: str) -> tuple[int, int]:
    """Return the packets and bytes to write; raise RpcError if one is negative."""
    for name in ("packet_count", "byte_count"):
        if getattr(message, name) < 0:
            raise invalid(f"{owner}: {name} {getattr(message, name)} is below 0")
    return message.packet_count, message.byte_count


def show_counter(packets: int, nbytes: int) -> p4r.CounterData:
    """Return the message of unsigned 64-bit counts; the message's numbers are signed."""
    return p4r.CounterData(packet_count=_signed(packets), byte_count=_signed(nbytes))


def _signed(value: int) -> int:
    return value if value < _INT64 else value - _UINT64


def read_meter_config(p: Pipeline, name: str, message: p4r.MeterConfig) -> MeterConfig:
    """Return the rates of meter `name`; raise RpcError where its type does not allow them."""
    kind = p.catalog.meter_types[name]
    one_rate = message.cir == message.pir and message.cburst == message.pburst
    if kind != p4i.MeterSpec.TWO_RATE_THREE_COLOR and not one_rate:
        raise invalid(f"meter {name}: a single-rate meter needs cir = pir and cburst = pburst")
    if kind != p4i.MeterSpec.SINGLE_RATE_THREE_COLOR and message.eburst:
        raise invalid(f"meter {name}: only a single-rate three-colour meter has an eburst")
    return MeterConfig(message.cir, message.cburst, message.pir, message.pburst, message.eburst)


def show_meter_config(config: MeterConfig) -> p4r.MeterConfig:
    return p4r.MeterConfig(
        cir=config.cir // config.period,
        cburst=config.cburst,
        pir=config.pir // config.period,
        pburst=config.pburst,
        eburst=config.eburst,
    )


def check_zero(message: p4r.MeterCounterData, owner: str) -> None:
    """Refuse counts other than 0: the counters per colour can only be cleared."""
    for colour in ("green", "yellow", "red"):
        if any(counter_values(getattr(message, colour), f"{owner}: {colour}")):
            raise invalid(
                f"{owner}: the count of {colour} packets is not 0; the counts per colour can only"
                " be set to 0"
            )


def show_colours(counts: ColourCounts) -> p4r.MeterCounterData:
    green, yellow, red = (show_counter(*count) for count in counts)
    return p4r.MeterCounterData(green=green, yellow=yellow, red=red)


def indices(extern: Extern, what: str, message: p4r.Index | None) -> range:
    """Return the indices that a message is about: one, or all without an index."""
    if message is None:
        return range(extern.size)
    if message.index < 0:
        raise invalid(f"{what} {extern.name}: index {message.index} is below 0")
    if message.index >= extern.size:
        raise RpcError(
            "OUT_OF_RANGE",
            f"{what} {extern.name}: index {message.index} is not within 0 to {extern.size - 1}",
        )
    return range(message.index, message.index + 1)
