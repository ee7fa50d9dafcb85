"""Counts in native memory, and gradplane.switch.runtime.meters.MeterCell.execute as a function."""

from __future__ import annotations

from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.runtime.meters import CELL_WORDS, COUNTS, GREEN, RED, SECOND, YELLOW

_AT = {name: 8 * i for i, name in enumerate(CELL_WORDS)}


def count(f: Function, cells: Operand, size: Operand) -> None:
    """Count a packet of so many bytes; `cells`: the address of two words, packets and bytes."""
    for at, amount in ((cells, "1"), (f.add(cells, 8), size)):
        f.store("i64", f.binary("add", "i64", f.load("i64", at, 8), amount), at, 8)


def execute_meter(
    unit: Unit,
    f: Function,
    cell: Operand,
    size: Operand,
    by_packets: bool,
    before: Operand | None = None,
) -> Operand:
    """Return the colour (i32) of a packet of `size` bytes; take its tokens and count it.

    before (i32): the colour it had; None: green."""
    if not unit.module.has("meter"):
        _Writer(unit).write()
    given = ("i32", str(GREEN) if before is None else before)
    amount = ("i64", "1" if by_packets else size)
    args = (("ptr", cell), ("i64", f.word("now", "i64")), amount, given)
    colour = f.call("i32", "meter", *args)
    of_colour = f.binary("shl", "i64", f.resize(colour, 32, 64), 4)
    count(f, f.add(f.add(cell, of_colour), 8 * COUNTS), size)
    return colour


class _Writer:
    """Token counts are computed with 128 bits: a rate times a time needs that many."""

    def __init__(self, unit: Unit) -> None:
        params = [("ptr", "%cell"), ("i64", "%now"), ("i64", "%amount"), ("i32", "%before")]
        self.f = unit.module.function("meter", "i32", params, attributes="noinline ")
        self.unit = unit

    def write(self) -> None:
        f = self.f
        with f.when(f.compare("eq", "i64", self._get("configured"), 0)):
            f.ret(GREEN)
        committed = self._plus("committed", self._gained("cir"))
        single, double = f.label(), f.label()
        f.branch(f.compare("ne", "i64", self._get("eburst"), 0), single, double)
        f.at(double)
        self._two_rates(committed)
        f.at(single)
        self._single_rate(committed)

    def _two_rates(self, committed: Operand) -> None:
        f = self.f
        self._set("committed", self._least(committed, "cburst"))
        self._set("excess", self._least(self._plus("excess", self._gained("pir")), "pburst"))
        self._advance()
        with f.unless(self._has("excess", YELLOW)):
            f.ret(RED)
        self._take("excess")
        with f.unless(self._has("committed", GREEN)):
            f.ret(YELLOW)
        self._take("committed")
        f.ret(GREEN)

    def _single_rate(self, total: Operand) -> None:
        f = self.f
        committed = self._least(total, "cburst")
        over = f.binary("sub", "i128", total, f.resize(committed, 64, 128))
        excess = f.binary("add", "i128", f.resize(self._get("excess"), 64, 128), over)
        self._set("committed", committed)
        self._set("excess", self._least(excess, "eburst"))
        self._advance()
        for bucket, colour in (("committed", GREEN), ("excess", YELLOW)):
            with f.when(self._has(bucket, colour)):
                self._take(bucket)
                f.ret(colour)
        f.ret(RED)

    def _get(self, name: str) -> Operand:
        return self.f.load("i64", self.f.add("%cell", _AT[name]), 8)

    def _set(self, name: str, value: Operand) -> None:
        self.f.store("i64", value, self.f.add("%cell", _AT[name]), 8)

    def _plus(self, bucket: str, more: Operand) -> Operand:
        return self.f.binary("add", "i128", self.f.resize(self._get(bucket), 64, 128), more)

    def _least(self, total: Operand, burst: str) -> Operand:
        most = self.f.resize(self._get(burst), 64, 128)
        less = self.f.intrinsic("llvm.umin.i128", "i128", ("i128", total), ("i128", most))
        return self.f.resize(less, 128, 64)

    def _gained(self, rate: str) -> Operand:
        """Return rate * now // unit - rate * last // unit, at least 0; unit: SECOND * period."""
        f = self.f
        now, last = (self._tokens(rate, time) for time in ("%now", self._get("last")))
        return f.intrinsic("llvm.usub.sat.i128", "i128", ("i128", now), ("i128", last))

    def _tokens(self, rate: str, time: Operand) -> Operand:
        f = self.f
        wide = [f.resize(x, 64, 128) for x in (self._get(rate), time)]
        tokens = f.variable("i128", _divided(f, f.binary("mul", "i128", *wide), SECOND))
        period = self._get("period")
        with f.when(f.compare("ne", "i64", period, 1)):
            tokens.set(_divided(f, tokens.get(), period))
        return tokens.get()

    def _advance(self) -> None:
        args = (("i64", self._get("last")), ("i64", "%now"))
        self._set("last", self.f.intrinsic("llvm.umax.i64", "i64", *args))

    def _has(self, bucket: str, colour: int) -> Operand:
        """Return whether the bucket has the tokens and the packet was not worse than `colour`."""
        enough = self.f.compare("uge", "i64", self._get(bucket), "%amount")
        good = self.f.compare("ule", "i32", "%before", colour)
        return self.f.binary("and", "i1", enough, good)

    def _take(self, bucket: str) -> None:
        self._set(bucket, self.f.binary("sub", "i64", self._get(bucket), "%amount"))


def _divided(f: Function, number: Operand, divisor: Operand | int) -> Operand:
    """Divide an i128 by a number below 2^32, in digits of 32 bits (LLVM would call a library)."""
    rest: Operand = "0"
    quotient: Operand = "0"
    for shift in (96, 64, 32, 0):
        digit = f.resize(f.binary("lshr", "i128", number, shift), 128, 32)
        high = f.binary("shl", "i64", rest, 32)
        current = f.binary("or", "i64", high, f.resize(digit, 32, 64))
        part = f.resize(f.binary("udiv", "i64", current, divisor), 64, 128)
        rest = f.binary("urem", "i64", current, divisor)
        quotient = f.binary("or", "i128", f.binary("shl", "i128", quotient, 32), part)
    return quotient
