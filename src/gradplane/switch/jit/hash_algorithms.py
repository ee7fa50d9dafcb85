"""The hash algorithms of gradplane.switch.runtime.hashes as native functions of (ptr, i64 length).

Each returns an i64.
"""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.headers import NativeHeaderCodec, clear_rest, copy_bits
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.runtime import dynamic_hashes
from gradplane.switch.runtime.crcs import FINAL, ORDER, REVERSED, SHIFT, START
from gradplane.switch.runtime.fixed_crcs import CRC8, CRC16, CRC32, CRC64, Crc, rows_of

_PARAMS = [("ptr", "%data"), ("i64", "%length")]


def hash_function(unit: Unit, name: str) -> str:
    """Return the name of the native function; it is written on first use."""
    kind = _ALIASES.get(name, name)
    function = f"hash.{kind}"
    if not unit.module.has(function):
        f = unit.module.function(function, "i64", _PARAMS, attributes="noinline ")
        _WRITERS[kind](unit, f)
    return function


def known(name: str) -> bool:
    return _ALIASES.get(name, name) in _WRITERS


def step_function(unit: Unit, name: str) -> str:
    """Return the name of the native i64 step(ptr, i64 length, i64 state), written on first use.

    It is one of gradplane.switch.runtime.hashes.STEPS."""
    kind = _ALIASES.get(name, name)
    function = f"step.{kind}"
    if not unit.module.has(function):
        params = [*_PARAMS, ("i64", "%state")]
        f = unit.module.function(function, "i64", params, attributes="noinline ")
        _STEPS[kind](f)
    return function


def crc_word(name: str) -> str:
    """Return the state word with the address of a calculation's memory."""
    return f"crc {name}"


def hash_word(name: str) -> str:
    """Return the state word with the address of a hash's memory."""
    return f"hash {name}"


def span_word(name: str) -> str:
    """Return the state word with the address of the spans that a hash takes."""
    return f"hash spans {name}"


def taken_spans(unit: Unit) -> str:
    """Return the name of the native i64 taken(ptr data, ptr spans, ptr target): it copies the bits
    of the spans and returns their bytes (dynamic_hashes)."""
    name = "hash.taken"
    if unit.module.has(name):
        return name
    params = [("ptr", "%data"), ("ptr", "%spans"), ("ptr", "%target")]
    f = unit.module.function(name, "i64", params, attributes="noinline ")

    def word(place: Operand | int) -> Operand:
        return f.load("i64", f.item("%spans", "i64", place), 8)

    f.store("i8", 0, "%target")
    at = f.variable("i64", word(dynamic_hashes.SKIPPED))
    with f.count(word(dynamic_hashes.COUNT)) as i:
        place = f.binary("add", "i64", f.binary("shl", "i64", i, 1), dynamic_hashes.FIRST)
        start, length = word(place), word(f.binary("add", "i64", place, 1))
        copy_bits(f, "%target", at.get(), "%data", start, length)
        at.increase(length)
    clear_rest(f, "%target", at.get())
    f.ret(f.binary("lshr", "i64", f.binary("add", "i64", at.get(), 7), 3))
    return name


def _by_memory(
    unit: Unit, name: str, kind: str, align: int = 0
) -> tuple[Function, Callable[[Operand | int], Operand]]:
    """Begin the native i64 crc(ptr, i64 length, ptr memory); also return what loads its words."""
    f = unit.module.function(name, "i64", [*_PARAMS, ("ptr", "%crc")], attributes="noinline ")
    return f, lambda at: f.load(kind, f.item("%crc", kind, at), align)


def dynamic_crc(unit: Unit) -> str:
    """Return the name of the native i64 crc(ptr, i64 length, ptr memory): dynamic_hashes."""
    name = "hash.dynamic"
    if unit.module.has(name):
        return name
    f, word = _by_memory(unit, name, "i64", 8)
    remainder = f.variable("i64", word(dynamic_hashes.START))
    reflected = f.compare("ne", "i64", word(dynamic_hashes.REFLECTED), 0)
    with f.count("%length") as i:
        byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
        now = remainder.get()
        first = f.select(reflected, "i64", now, f.binary("lshr", "i64", now, 56))
        at = f.binary("and", "i64", f.binary("xor", "i64", first, byte), 0xFF)
        lower, upper = f.binary("lshr", "i64", now, 8), f.binary("shl", "i64", now, 8)
        rest = f.select(reflected, "i64", lower, upper)
        remainder.set(f.binary("xor", "i64", word(at), rest))
    found = f.binary("lshr", "i64", remainder.get(), word(dynamic_hashes.SHIFT))
    f.ret(f.binary("xor", "i64", found, word(dynamic_hashes.FINAL)))
    return name


def custom_crc(unit: Unit) -> str:
    """Return the name of the native i64 crc(ptr, i64 length, ptr memory): crcs.CustomCrc."""
    name = "hash.custom"
    if unit.module.has(name):
        return name
    f, word = _by_memory(unit, name, "i32")
    remainder = f.variable("i32", word(START))
    with f.count("%length") as i:
        byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
        bits = word(f.binary("add", "i64", byte, ORDER))
        at = f.binary("xor", "i32", bits, f.binary("lshr", "i32", remainder.get(), 24))
        row = word(f.resize(at, 32, 64))
        rest = f.binary("shl", "i32", remainder.get(), 8)
        remainder.set(f.binary("xor", "i32", row, rest))
    turned = f.intrinsic("llvm.bitreverse.i32", "i32", ("i32", remainder.get()))
    moved = f.binary("lshr", "i32", remainder.get(), word(SHIFT))
    chosen = f.select(f.compare("ne", "i32", word(REVERSED), 0), "i32", turned, moved)
    f.ret(f.resize(f.binary("xor", "i32", chosen, word(FINAL)), 32, 64))
    return name


def folded(f: Function, total: Operand) -> Operand:
    """Return the internet checksum of a sum of 16-bit words in an i64."""
    return f.binary("xor", "i64", ones_sum(f, total), 0xFFFF)


def ones_sum(f: Function, total: Operand) -> Operand:
    """Return the ones' complement sum of a sum of 16-bit words in an i64.

    A number and itself with its halves exchanged have a sum whose high half is that of the halves,
    with the carry."""
    for width in (64, 32):
        kind, half = f"i{width}", width // 2
        args = ((kind, total), (kind, total), (kind, half))
        turned = f.intrinsic(f"llvm.fshl.{kind}", kind, *args)
        both = f.binary("lshr", kind, f.binary("add", kind, total, turned), half)
        total = f.resize(both, width, half if width == 64 else 64)
    return total


def words_sum(unit: Unit, exact: bool = False) -> str:
    """Return the name of i64 sum(ptr, i64 length), the sum of the big-endian 16-bit words.

    An odd last byte is a high half. Unless `exact`, the function returns any number with the same
    ones' complement sum."""
    name = "sum16.exact" if exact else "sum16"
    if unit.module.has(name):
        return name
    f = unit.module.function(name, "i64", _PARAMS, attributes="noinline ")
    codec, total = NativeHeaderCodec(unit, f), f.variable("i64", 0)
    rest: Operand = "0"
    if not exact:
        with f.count(f.binary("lshr", "i64", "%length", 2)) as i:
            total.increase(codec.big_endian(f.add("%data", f.binary("shl", "i64", i, 2)), 4))
        rest = f.binary("and", "i64", "%length", -4)
    with f.count("%length", rest) as i:
        byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
        odd = f.binary("and", "i64", i, 1)
        shift = f.binary("sub", "i64", 8, f.binary("shl", "i64", odd, 3))
        total.increase(f.binary("shl", "i64", byte, shift))
    f.ret(total.get())
    return name


def _csum16(unit: Unit, f: Function) -> None:
    total = f.call("i64", words_sum(unit), ("ptr", "%data"), ("i64", "%length"))
    f.ret(folded(f, total))


def _xor(size: int) -> Callable[[Unit, Function], None]:
    """Write the exclusive or of words of `size` bytes: 1, 2 or 4."""

    def write(unit: Unit, f: Function) -> None:
        result = f.variable("i64", 0)
        with f.count("%length") as i:
            byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
            place = f.binary("shl", "i64", f.binary("and", "i64", i, size - 1), 3)
            shift = f.binary("sub", "i64", 8 * (size - 1), place)
            result.set(f.binary("xor", "i64", result.get(), f.binary("shl", "i64", byte, shift)))
        f.ret(result.get())

    return write


def _identity(unit: Unit, f: Function) -> None:
    result = f.variable("i64", 0)
    args = (("i64", "%length"), ("i64", 8))
    with f.count(f.intrinsic("llvm.umin.i64", "i64", *args)) as i:
        byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
        result.set(f.binary("or", "i64", f.binary("shl", "i64", result.get(), 8), byte))
    f.ret(result.get())


def _identity_step(f: Function) -> None:
    """Write the step of the identity: the last eight bytes."""
    result = f.variable("i64", "%state")
    with f.count("%length") as i:
        byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
        result.set(f.binary("or", "i64", f.binary("shl", "i64", result.get(), 8), byte))
    f.ret(result.get())


def _crc_step(kind: Crc, final: int) -> Callable[[Function], None]:
    """Write a reflected CRC, byte by byte; the state is the CRC of the data before, 0 for none."""

    def write(f: Function) -> None:
        rows = f.module.constant("i32", rows_of(kind))
        start = f.binary("xor", "i32", f.resize("%state", 64, 32), final)
        crc = f.variable("i32", start)
        with f.count("%length") as i:
            byte = f.resize(f.load("i8", f.add("%data", i)), 8, 32)
            at = f.binary("and", "i32", f.binary("xor", "i32", crc.get(), byte), 0xFF)
            row = f.load("i32", f.item(rows, "i32", f.resize(at, 32, 64)))
            crc.set(f.binary("xor", "i32", row, f.binary("lshr", "i32", crc.get(), 8)))
        f.ret(f.resize(f.binary("xor", "i32", crc.get(), final), 32, 64))

    return write


def _whole(name: str) -> Callable[[Unit, Function], None]:
    """Write a hash that is one step."""

    def write(unit: Unit, f: Function) -> None:
        args = (("ptr", "%data"), ("i64", "%length"), ("i64", 0))
        f.ret(f.call("i64", step_function(unit, name), *args))

    return write


_ALIASES = {
    "crc32_custom": "crc32",
    "crc16_custom": "crc16",
    "ones_complement16": "csum16",
    "target_default": "crc32",
}


def fixed_crc(crc: Crc) -> Callable[[Unit, Function], None]:
    """Write a CRC whose parameters are known: gradplane.switch.runtime.fixed_crcs."""

    def write(unit: Unit, f: Function) -> None:
        rows = f.module.constant("i64", rows_of(crc))
        remainder = f.variable("i64", crc.start)
        with f.count("%length") as i:
            byte = f.resize(f.load("i8", f.add("%data", i)), 8, 64)
            now = remainder.get()
            if crc.reflected:
                at = f.binary("and", "i64", f.binary("xor", "i64", now, byte), 0xFF)
                rest = f.binary("lshr", "i64", now, 8)
            else:
                at = f.binary("xor", "i64", f.binary("lshr", "i64", now, 56), byte)
                rest = f.binary("shl", "i64", now, 8)
            row = f.load("i64", f.item(rows, "i64", at))
            remainder.set(f.binary("xor", "i64", row, rest))
        found = f.binary("lshr", "i64", remainder.get(), crc.shift)
        f.ret(f.binary("xor", "i64", found, crc.final))

    return write


def crc_function(unit: Unit, crc: Crc) -> str:
    """Return the name of the native function of a CRC; it is written on first use."""
    name = f"hash.crc.{crc.width}.{crc.polynomial}.{crc.initial}.{crc.final}.{int(crc.reflected)}"
    if not unit.module.has(name):
        fixed_crc(crc)(unit, unit.module.function(name, "i64", _PARAMS, attributes="noinline "))
    return name


_STEPS: dict[str, Callable[[Function], None]] = {
    "identity": _identity_step,
    "crc16": _crc_step(CRC16, 0),
    "crc32": _crc_step(CRC32, -1),
}
_WRITERS: dict[str, Callable[[Unit, Function], None]] = {
    "csum16": _csum16,
    "xor8": _xor(1),
    "xor16": _xor(2),
    "xor32": _xor(4),
    "crc8": fixed_crc(CRC8),
    "crc64": fixed_crc(CRC64),
    "identity": _identity,
    "crc16": _whole("crc16"),
    "crc32": _whole("crc32"),
}
