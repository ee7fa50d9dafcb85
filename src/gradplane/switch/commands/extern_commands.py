"""Commands on counters, registers, meters, parser value sets and the CRCs of hashes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.commands.command_values import natural
from gradplane.switch.commands.dumps import hexadecimal
from gradplane.switch.control.cells import Values
from gradplane.switch.control.names import entry_with_handle
from gradplane.switch.match_values import match_of, number
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.arrays import Counter
from gradplane.switch.runtime.crcs import CrcParameters
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import Meter, MeterConfig
from gradplane.switch.runtime.valuesets import ParserValueSet

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
    found.write(_index(register, index), number(value, f"register {found.name}: value"))


@command("REGISTER")
def register_reset(target: CommandTarget, register: str) -> None:
    """Set all cells of a register to their initial values."""
    target.switch.register(register).clear()


# -- counters ------------------------------------------------------------------------------------


@command("COUNTER INDEX_OR_HANDLE")
def counter_read(target: CommandTarget, counter: str, index: str) -> str:
    """Print a counter's cell; for a direct counter, that of an entry."""
    found, cell = _counter(target, counter), _index(counter, index)
    if isinstance(found, Counter):
        packets, size = found.read(cell)
    else:
        count = entry_with_handle(found, cell).counter
        packets, size = count.packets, count.bytes
    return f"{counter}[{index}]= ({size} bytes, {packets} packets)"


@command("COUNTER INDEX_OR_HANDLE PACKETS BYTES")
def counter_write(
    target: CommandTarget, counter: str, index: str, packets: str, bytes: str
) -> None:
    """Set a counter's cell; for a direct counter, that of an entry."""
    found, cell = _counter(target, counter), _index(counter, index)
    count = {"packets": natural(packets, "packets"), "bytes": natural(bytes, "bytes")}
    if isinstance(found, Counter):
        target.switch.store.counters(found).write(cell, **count)
    else:
        target.switch.store.counters(entry_with_handle(found, cell).counter).write(0, **count)


@command("COUNTER")
def counter_reset(target: CommandTarget, counter: str) -> None:
    """Set all cells of a counter to 0; for a direct counter, those of all entries."""
    found = _counter(target, counter)
    whole = [found] if isinstance(found, Counter) else [
        found.default_counter, *(entry.counter for entry in found.entries())
    ]  # fmt: skip
    for one in whole:
        target.switch.store.counters(one).clear()


# -- meters --------------------------------------------------------------------------------------


@command("METER INDEX_OR_HANDLE RATE:BURST RATE:BURST")
def meter_set_rates(target: CommandTarget, meter: str, index: str, *rates: str) -> None:
    """Set a meter's committed and peak rate, in packets or bytes per microsecond."""
    found, cell = _meter(target, meter), _index(meter, index)
    config = _config(rates)
    one = found.cell(cell) if isinstance(found, Meter) else entry_with_handle(found, cell).meter
    target.switch.store.meters(one).write(0, config=config)


@command("METER RATE:BURST RATE:BURST")
def meter_array_set_rates(target: CommandTarget, meter: str, *rates: str) -> None:
    """Set the rates of all of a meter's cells; for a direct meter, of all entries."""
    found, config = _meter(target, meter), _config(rates)
    cells = map(found.cell, range(found.size)) if isinstance(found, Meter) else (
        entry.meter for entry in found.entries()
    )  # fmt: skip
    for cell in cells:
        target.switch.store.meters(cell).write(0, config=config)


@command("METER INDEX_OR_HANDLE")
def meter_get_rates(target: CommandTarget, meter: str, index: str) -> str:
    """Print a meter's rates, in packets or bytes per microsecond, and its bursts."""
    found, cell = _meter(target, meter), _index(meter, index)
    config = (
        found.read(cell)
        if isinstance(found, Meter)
        else entry_with_handle(found, cell).meter.config
    )
    if config is None:
        return "no rates: every packet is green"
    rates = (config.cir, config.cburst), (config.pir, config.pburst)
    return "\n".join(
        f"{i}: info rate = {rate / (MICROSECONDS * config.period)}, burst size = {burst}"
        for i, (rate, burst) in enumerate(rates)
    )


# -- shared by all ------------------------------------------------------------------------------


def _index(name: str, word: str) -> int:
    return natural(word, f"{name}: index")


def _counter(target: CommandTarget, name: str) -> Counter | MatchTable:
    """Return an indirect counter, or the table whose entries have the direct one."""
    return _cells(target, "counter", name)  # type: ignore[no-any-return]


def _meter(target: CommandTarget, name: str) -> Meter | MatchTable:
    return _cells(target, "meter", name)  # type: ignore[no-any-return]


def _cells(target: CommandTarget, kind: str, name: str) -> Any:
    known = target.switch.store.names.cells(kind)
    return known[resolve(kind, name, known)]


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


# -- commands on parser value sets ----------------------------------------------------------------


@command("VALUE_SET VALUE...")
def pvs_add(target: CommandTarget, value_set: str, value: str, *more: str) -> None:
    """Add a member: one number with all fields concatenated, or one number for each field."""
    found, members = _value_set(target, value_set)
    member = _member(found, [value, *more])
    if not members.has(member):
        members.insert(member)


@command("VALUE_SET VALUE...")
def pvs_remove(target: CommandTarget, value_set: str, value: str, *more: str) -> None:
    """Remove a member, if it exists."""
    found, members = _value_set(target, value_set)
    member = _member(found, [value, *more])
    if members.has(member):
        members.delete(member)


@command("VALUE_SET")
def pvs_clear(target: CommandTarget, value_set: str) -> None:
    """Remove all members."""
    _value_set(target, value_set)[1].clear()


@command("VALUE_SET")
def pvs_get(target: CommandTarget, value_set: str) -> str:
    """Print the members, each as one number in hexadecimal."""
    found, _ = _value_set(target, value_set)
    return "\n".join(_shown(found, member) for member in found.members)


@command()
def show_pvs(target: CommandTarget) -> str:
    """Print the program's parser value sets and the widths of their members."""
    sets = target.switch.state.value_sets
    return "\n".join(
        f"{name:30} [compressed bitwidth:{_width(sets[name])}]" for name in sorted(sets)
    )


def _value_set(target: CommandTarget, name: str) -> tuple[ParserValueSet, Values]:
    found: ParserValueSet = target.switch.value_set(name).state
    return found, target.switch.store.values(found)


def _width(value_set: ParserValueSet) -> int:
    return sum(field.width for field in value_set.fields)


def _member(value_set: ParserValueSet, words: Sequence[str]) -> tuple[Match, ...]:
    fields, where = value_set.fields, f"value set {value_set.name}"
    if len(words) == len(fields):
        values = [number(w, f"{where}: {f.name}") for f, w in zip(fields, words, strict=True)]
    elif len(words) == 1:
        values = _split(value_set, natural(words[0], where))
    else:
        what = f"{len(words)} values for {len(fields)} fields: give one a field, or one number"
        raise CommandError(f"{where}: {what}")
    return tuple(match_of(field, value) for field, value in zip(fields, values, strict=True))


def _split(value_set: ParserValueSet, whole: int) -> list[int]:
    """Split a number by the fields' widths."""
    left = _width(value_set)
    if whole >> left:
        raise CommandError(f"value set {value_set.name}: {whole:#x} does not fit {left} bits")
    parts = []
    for field in value_set.fields:
        left -= field.width
        parts.append(whole >> left & field.full)
    return parts


def _shown(value_set: ParserValueSet, member: tuple[Match, ...]) -> str:
    """Format a member without masks and prefixes, which only a controller can set."""
    whole = 0
    for field, match in zip(value_set.fields, member, strict=True):
        whole = whole << field.width | (match[0] if match else 0)
    return hexadecimal(whole, _width(value_set))


# -- commands on the CRCs of hash's custom algorithms ---------------------------------------------

_USAGE = "CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER"


@command(_USAGE)
def set_crc16_parameters(
    target: CommandTarget, calculation: str, polynomial: str, initial: str, final: str, data: str,
    remainder: str,
) -> None:  # fmt: skip
    """Set the CRC of a hash call with crc16_custom: calc, calc_0, calc_1 ... in source order."""
    _set_crc(target, 16, calculation, (polynomial, initial, final), (data, remainder))


@command(_USAGE)
def set_crc32_parameters(
    target: CommandTarget, calculation: str, polynomial: str, initial: str, final: str, data: str,
    remainder: str,
) -> None:  # fmt: skip
    """Set the CRC of a hash call with crc32_custom: calc, calc_0, calc_1 ... in source order."""
    _set_crc(target, 32, calculation, (polynomial, initial, final), (data, remainder))


def _set_crc(
    target: CommandTarget, width: int, calculation: str, words: Sequence[str], flags: Sequence[str]
) -> None:
    crcs = target.switch.store.crcs
    known = crcs.of_width(width)
    found = resolve(f"crc{width}_custom calculation", calculation, known)
    polynomial, initial, final = (_number(calculation, word, width) for word in words)
    reflect_data, reflect_remainder = map(_flag, flags)
    parameters = CrcParameters(polynomial, initial, final, reflect_data, reflect_remainder)
    crcs.modify(found, parameters=parameters)


def _number(calculation: str, word: str, width: int) -> int:
    value = natural(word, calculation)
    if value >> width:
        raise CommandError(f"{calculation}: {word} does not fit {width} bits")
    return value


def _flag(word: str) -> bool:
    flags = {"true": True, "false": False, "1": True, "0": False}
    if word.lower() not in flags:
        raise CommandError(f"{word!r} is not true or false")
    return flags[word.lower()]
