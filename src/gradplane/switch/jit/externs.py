"""What the architectures' tables of externs are made of as native code, and what a program's
statements call: tables and externs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradplane.switch.arch.user_externs import failure
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.jit import native_rng, native_vectors
from gradplane.switch.jit.expressions import Unit, is_scalar, is_signed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import (
    crc_word,
    custom_crc,
    folded,
    hash_function,
    words_sum,
)
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.table_apply import Observe, Tables
from gradplane.switch.jit.user_extern_calls import Buffer, call_own
from gradplane.switch.jit.value_layout import container, scalar_width
from gradplane.switch.runtime.crcs import custom_crcs
from gradplane.switch.runtime.meters import CELL_WORDS
from gradplane.switch.runtime.profiles import ActionProfile
from gradplane.switch.runtime.registers import register_places


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program that tells something: kind "fault", "own" (the same, of one of the
    program's own externs), "digest" or "log"."""

    kind: str
    text: str
    type: Type | None = None
    call: ir.CallExtern | None = None


Builders = Mapping[tuple[str, str], Callable[["Call"], None]]
"""By the type of the instance ("" for a function) and the name."""


class Externs:
    """Implements statements.Calls with an architecture's externs. `sites`: what the messages of
    native code are about."""

    def __init__(
        self,
        unit: Unit,
        program: ir.Program,
        profiles: Mapping[str, ActionProfile],
        builders: Builders,
        observe: Observe,
    ) -> None:
        self.unit = unit
        self.program = program
        self.profiles = profiles
        self.builders = builders
        self.tables = Tables(unit, program, self._selection, observe)
        self.register_places, _ = register_places(program.externs)
        self.crcs = {call: name for call, (name, _) in custom_crcs(program).items()}
        self.sites: list[Site] = [Site("none", "")]
        self.own: list[Buffer] = []  # of the calls of the program's own externs
        self._faults: dict[str, int] = {}

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        self.tables.apply(s, code)

    def call(self, s: ir.CallExtern, code: Statements) -> None:
        owner = s.instance.type if s.instance else ""
        self.builders[owner, s.name](Call(s, code, self))

    def call_own(self, s: ir.CallOwn, code: Statements) -> None:
        buffer = Buffer.of(s, code.layouts)
        self.own.append(buffer)
        call_own(s, buffer, len(self.own) - 1, self.site(Site("own", failure(s))), code)

    def fault(self, reason: str) -> int:
        if reason not in self._faults:
            self._faults[reason] = self.site(Site("fault", reason))
        return self._faults[reason]

    def site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def _selection(self, table: ir.Table, code: Statements) -> Operand:
        """As gradplane.switch.arch.direct_resources.selection."""
        assert table.implementation is not None, table.name
        profile = self.profiles[table.implementation.name]
        keys = [k.expr for k in table.keys if k.match_kind == "selector"]
        if not profile.algorithm or not keys:
            return "0"
        if profile.algorithm == "random":
            return native_rng.draw(code.f)
        found = hashed(code, profile.algorithm, FieldList(code, keys))
        width = profile.output_width
        return found if width >= 64 else code.f.binary("and", "i64", found, (1 << width) - 1)


class Call:
    """A call being compiled."""

    def __init__(self, stmt: ir.CallExtern, code: Statements, externs: Externs) -> None:
        self.stmt = stmt
        self.code = code
        self.f = code.f
        self.externs = externs
        self.args = stmt.args

    @property
    def instance(self) -> ir.ExternInstance:
        assert self.stmt.instance is not None, self.stmt.name
        return self.stmt.instance

    def target(self, position: int) -> ir.LValue:
        arg = self.args[position]
        assert isinstance(arg, ir.LValue), arg
        return arg

    def number(self, position: int) -> Operand:
        """An argument as i64."""
        return self.code.number(self.args[position], 64)

    def name(self, position: int) -> str:
        arg = self.args[position]
        assert isinstance(arg, ir.Const) and isinstance(arg.value, str), arg
        return arg.value

    def index(self, position: int, size: int) -> tuple[Operand, Operand]:
        """Whether an index is below `size` (i1), and the index or else 0 (i64)."""
        e, f = self.args[position], self.f
        width = max(scalar_width(e.type), 64)
        number = self.code.number(e, width)
        inside = f.compare("ult", f"i{width}", number, size)
        return inside, f.select(inside, "i64", f.resize(number, width, 64), 0)

    def give(self, value: Operand, width: int) -> None:
        """Assigns the return value."""
        if self.stmt.result is not None:
            self.code.store_number(self.stmt.result, value, width)


# -- arrays -------------------------------------------------------------------------------------


REGISTERS = "registers"  # the word


def counter_word(name: str, part: str) -> str:
    """`part`: "packets" or "bytes"."""
    return f"counter {name}: {part}"


def meter_word(name: str) -> str:
    return f"meter {name}"


def size_of(instance: ir.ExternInstance) -> int:
    return int(instance.args[0])  # type: ignore[arg-type]


def cell_of(call: Call, inside: Operand, index: Operand) -> Operand:
    """Address of a register's cell; of the spare one behind the last if the index is not
    `inside`, which is faster than a branch."""
    f, name = call.f, call.instance.name
    bits = container(scalar_width(call.instance.type_args[0]))
    safe = f.select(inside, "i64", index, size_of(call.instance))
    start = f.add(f.word(REGISTERS), f.binary("mul", "i64", safe, bits // 8))
    return f.add(start, call.externs.register_places[name])


def region_of(call: Call) -> str:
    """The memory of a register, for Function.load."""
    return f"register {call.instance.name}"


def register_read(call: Call, target: ir.LValue | None, position: int) -> None:
    """The cell at the index, which is argument `position`."""
    t, f = call.instance.type_args[0], call.f
    inside, index = call.index(position, size_of(call.instance))
    if target is None:
        return
    width = scalar_width(t)
    value = call.code.load(t, cell_of(call, inside, index), region_of(call))
    call.code.store_number(target, f.select(inside, f"i{width}", value, 0), width)


def register_write(call: Call) -> None:
    """Sets the cell at an index."""
    t, code = call.instance.type_args[0], call.code
    inside, index = call.index(0, size_of(call.instance))
    value, width = code.value(call.args[1]), scalar_width(t)
    cell, region = cell_of(call, inside, index), region_of(call)
    if is_signed(t) and width <= 64:  # NumPy's cells are sign-extended
        bits = container(width)
        extended = call.f.resize(value, width, bits, True)
        call.f.store(f"i{bits}", extended, cell, bits // 8, region)
    else:
        code.put(t, value, cell, region)


def count(call: Call) -> None:
    f, name = call.f, call.instance.name
    inside, index = call.index(0, size_of(call.instance))
    with f.when(inside):
        for part, amount in (("packets", "1"), ("bytes", length(call))):
            cell = f.item(f.word(counter_word(name, part)), "i64", index)
            f.store("i64", f.binary("add", "i64", f.load("i64", cell, 8), amount), cell, 8)


def length(call: Call) -> Operand:
    """Of the packet, in bytes."""
    bits = call.code.context.get(call.f, "%c", "bits")
    return call.f.binary("lshr", "i64", bits, 3)


def meter_colour(call: Call, position: int, before: Operand | None = None) -> Operand:
    """The colour (i32) that the meter at the index, argument `position`, gives the packet."""
    f = call.f
    inside, index = call.index(position, size_of(call.instance))
    colour = f.variable("i32", 0)
    with f.when(inside):
        word = f.binary("mul", "i64", index, len(CELL_WORDS))
        cell = f.item(f.word(meter_word(call.instance.name)), "i64", word)
        by_packets = str(call.instance.args[1]).lower() == "packets"
        colour.set(execute_meter(call.code.unit, f, cell, length(call), by_packets, before))
    return colour.get()


# -- numbers ------------------------------------------------------------------------------------


def scaled_hash(call: Call, found: Operand, base: ir.Expr, most: ir.Expr) -> tuple[Operand, int]:
    """base + hash % max, computed with room for all three, and its width; the hash is an i64."""
    f = call.f
    widths = [scalar_width(base.type), scalar_width(most.type), 64]
    width = max(widths) + 1 if max(widths) > 64 or scalar_width(base.type) > 63 else 64
    modulus = f.resize(call.code.value(most), scalar_width(most.type), width)
    rest = call.code.divide("%", f.resize(found, 64, width), modulus, width, False)
    return f.binary("add", f"i{width}", call.code.number(base, width), rest), width


def hashed(
    code: Statements, name: str, fields: FieldList, payload: tuple[Operand, Operand] | None = None
) -> Operand:
    """A hash of fields (and of the bytes behind them), as i64."""
    f = code.f
    even = all(not g.bits % 16 for g in fields.groups) or payload is None
    if name in ("csum16", "ones_complement16") and fields.fixed and even:
        total = fields.sum16()
        if payload is not None:
            rest = f.call("i64", words_sum(code.unit), ("ptr", payload[0]), ("i64", payload[1]))
            total = f.binary("add", "i64", total, rest)
        return folded(f, total)
    address, size = fields.written(payload)
    return f.call("i64", hash_function(code.unit, name), ("ptr", address), ("i64", size))


def custom_hash(call: Call, name: str, fields: FieldList) -> Operand:
    """A calculation's CRC of fields, as i64."""
    f = call.f
    address, size = fields.written(None)
    args = (("ptr", address), ("i64", size), ("ptr", f.word(crc_word(name))))
    return f.call("i64", custom_crc(call.code.unit), *args)


# -- messages -----------------------------------------------------------------------------------


def tell(f: Function, vector: str, site: int, data: Operand, size: int) -> None:
    """Appends a message to a vector: site, cause, size in memory, bytes."""
    record = native_vectors.reserve(f, vector, 24 + size)
    for i, value in enumerate((str(site), f.word("cause", "i64", fixed=False), str(size))):
        f.store("i64", value, f.add(record, 8 * i), 1)
    if size:
        f.copy(f.add(record, 24), data, size)
    native_vectors.extend(f, vector, 24 + size)


def tell_value(call: Call, vector: str, kind: str, text: str, position: int | None) -> None:
    e = None if position is None else call.args[position]
    site = call.externs.site(Site(kind, text, e.type if e else None, call.stmt))
    if e is None:
        tell(call.f, vector, site, "null", 0)
        return
    size = call.code.layouts.of(e.type).size
    if is_scalar(e.type):
        data = call.f.alloca(size)
        call.code.write(e, data)
    else:
        data = call.code.address(e)
    tell(call.f, vector, site, data, size)


def check_that(call: Call) -> None:
    with call.f.unless(call.code.value(call.args[0])):
        call.code.give_up(f"{call.stmt.span}: {call.stmt.name} failed")


def nothing(call: Call) -> None:
    """A call without effect."""
