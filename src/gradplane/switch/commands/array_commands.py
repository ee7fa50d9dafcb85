"""Commands on counters, registers and meters."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from gradplane.switch.commands import command_values
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.match_values import number
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.arrays import Counter
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import Meter, MeterConfig

MICROSECONDS = 1_000_000  # in a second: rates are per microsecond here, per second in the switch
_LONGEST_PERIOD = 10**9  # seconds; a meter has whole tokens in a period

# -- registers -----------------------------------------------------------------------------------


@command("REGISTER [INDEX]")
def register_read(target: CommandTarget, register: str, index: str | None = None) -> str:
    """Print a register's cell, or all of them."""
    found = target.switch.register(register)
    if index is not None:
        return f"{register}[{index}]= {found.read(_index(register, index))}"
    return f"{register}= {', '.join(map(str, found.cells))}"


@command("REGISTER INDEX VALUE")
def register_write(target: CommandTarget, register: str, index: str, value: str) -> None:
    """Set a register's cell."""
    found = target.switch.register(register)
    cell, word = _index(register, index), number(value, f"register {found.name}: value")
    target.switch.store.cells.set_register(found, cell, word)


@command("REGISTER")
def register_reset(target: CommandTarget, register: str) -> None:
    """Set all cells of a register to their initial values."""
    target.switch.store.cells.clear_register(target.switch.register(register))


# -- counters ------------------------------------------------------------------------------------


@command("COUNTER INDEX_OR_HANDLE")
def counter_read(target: CommandTarget, counter: str, index: str) -> str:
    """Print a counter's cell; for a direct counter, that of an entry."""
    found, cell = _counter(target, counter), _index(counter, index)
    if isinstance(found, Counter):
        packets, size = found.read(cell)
    else:
        count = found.by_handle(cell).counter
        packets, size = count.packets, count.bytes
    return f"{counter}[{index}]= ({size} bytes, {packets} packets)"


@command("COUNTER INDEX_OR_HANDLE PACKETS BYTES")
def counter_write(
    target: CommandTarget, counter: str, index: str, packets: str, bytes: str
) -> None:
    """Set a counter's cell; for a direct counter, that of an entry."""
    found, cell = _counter(target, counter), _index(counter, index)
    count = command_values.natural(packets, "packets"), command_values.natural(bytes, "bytes")
    cells = target.switch.store.cells
    if isinstance(found, Counter):
        cells.set_counter(found, cell, *count)
    else:
        cells.set_count(found.by_handle(cell).counter, *count)


@command("COUNTER")
def counter_reset(target: CommandTarget, counter: str) -> None:
    """Set all cells of a counter to 0; for a direct counter, those of all entries."""
    found, cells = _counter(target, counter), target.switch.store.cells
    if isinstance(found, Counter):
        cells.clear_counter(found)
        return
    for count in (found.default_counter, *(entry.counter for entry in found.entries())):
        cells.set_count(count, 0, 0)


# -- meters --------------------------------------------------------------------------------------


@command("METER INDEX_OR_HANDLE RATE:BURST RATE:BURST")
def meter_set_rates(target: CommandTarget, meter: str, index: str, *rates: str) -> None:
    """Set a meter's committed and peak rate, in packets or bytes per microsecond."""
    found, cell = _meter(target, meter), _index(meter, index)
    config, now = _config(rates), target.switch.state.clock()
    one = found.cell(cell) if isinstance(found, Meter) else found.by_handle(cell).meter
    target.switch.store.cells.set_meter(one, config, now)


@command("METER RATE:BURST RATE:BURST")
def meter_array_set_rates(target: CommandTarget, meter: str, *rates: str) -> None:
    """Set the rates of all of a meter's cells; for a direct meter, of all entries."""
    found, config, now = _meter(target, meter), _config(rates), target.switch.state.clock()
    cells = map(found.cell, range(found.size)) if isinstance(found, Meter) else (
        entry.meter for entry in found.entries()
    )  # fmt: skip
    for cell in cells:
        target.switch.store.cells.set_meter(cell, config, now)


@command("METER INDEX_OR_HANDLE")
def meter_get_rates(target: CommandTarget, meter: str, index: str) -> str:
    """Print a meter's rates, in packets or bytes per microsecond, and its bursts."""
    found, cell = _meter(target, meter), _index(meter, index)
    config = found.read(cell) if isinstance(found, Meter) else found.by_handle(cell).meter.config
    if config is None:
        return "no rates: every packet is green"
    rates = (config.cir, config.cburst), (config.pir, config.pburst)
    return "\n".join(
        f"{i}: info rate = {rate / (MICROSECONDS * config.period)}, burst size = {burst}"
        for i, (rate, burst) in enumerate(rates)
    )


# -- shared by all ------------------------------------------------------------------------------


def _index(name: str, word: str) -> int:
    return command_values.natural(word, f"{name}: index")


def _counter(target: CommandTarget, name: str) -> Counter | MatchTable:
    """Return an indirect counter, or the table whose entries have the direct one."""
    indirect, tables = target.switch.state.counters, target.switch.state.tables.values()
    direct = {t.table.counter.name: t for t in tables if t.table.counter}
    known = resolve("counter", name, [*indirect, *direct])
    return indirect[known] if known in indirect else direct[known]


def _meter(target: CommandTarget, name: str) -> Meter | MatchTable:
    indirect, tables = target.switch.state.meters, target.switch.state.tables.values()
    direct = {t.table.meter.name: t for t in tables if t.table.meter}
    known = resolve("meter", name, [*indirect, *direct])
    return indirect[known] if known in indirect else direct[known]


def _config(words: Sequence[str]) -> MeterConfig:
    if len(words) != 2:
        what = "committed and peak, each RATE:BURST"
        raise CommandError(f"a meter has two rates, {what}; {len(words)} are given")
    (committed, cburst), (peak, pburst) = map(_rate, words)
    # The shortest period, a power of ten in seconds, in which both rates are whole numbers.
    period = 1
    while period < _LONGEST_PERIOD and any(rate * period % 1 for rate in (committed, peak)):
        period *= 10
    cir, pir = (round(rate * period) for rate in (committed, peak))
    if (committed and not cir) or (peak and not pir):
        what = f"a rate is at least one in {_LONGEST_PERIOD} seconds"
        raise CommandError(f"{' '.join(words)}: {what}")
    return MeterConfig(cir, cburst, pir, pburst, period=period)


def _rate(word: str) -> tuple[Decimal, int]:
    """Parse RATE:BURST to the rate per second and the burst."""
    rate, _, burst = word.partition(":")
    try:
        exact, size = Decimal(rate) * MICROSECONDS, int(burst)
        if not exact.is_finite():
            raise ValueError
    except (ValueError, InvalidOperation):
        text = "packets or bytes per microsecond, for example 0.0001:10"
        raise CommandError(f"{word!r} is not RATE:BURST, with the rate in {text}") from None
    return exact, size
