"""Calls of externs and tables in a program's statements, as machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gradplane.switch.interp.extern_call import constant_name
from gradplane.switch.interp.user_externs import failure
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.jit import native_memory, native_rng
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import (
    crc_function,
    dynamic_crc,
    folded,
    hash_function,
    hash_word,
    span_word,
    taken_spans,
    words_sum,
)
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.table_apply import Observe, Tables
from gradplane.switch.jit.table_layout import CELLS, DIRECT, WORDS, Shape
from gradplane.switch.jit.user_extern_calls import Buffer, call_user_extern
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.runtime.arrays import register_places
from gradplane.switch.runtime.byte_adjustments import METERS
from gradplane.switch.runtime.crcs import custom_crcs
from gradplane.switch.runtime.dynamic_hashes import (
    BITS,
    COUNT,
    USED,
    filled,
    polynomial_of,
    repetition,
    selector_hash,
)
from gradplane.switch.runtime.profiles import ActionProfile


class Site(NamedTuple):
    """A place in the program that sends a message: kind "fault", "user extern" (a fault in one),
    "storm", "pipe" (that of the digests behind it), "digest", "returned" (a packet that came back)
    or "log"."""

    kind: str
    text: str
    type: Type | None = None
    call: ir.CallExtern | None = None


Builders = Mapping[tuple[str, str], Callable[["NativeCall"], None]]
"""The functions that write calls, by the type of the instance ("" for a function) and the name."""


class Externs:
    """Compiles calls by an architecture's externs (statements.Calls). `sites`: the sources of the
    messages that native code sends."""

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
        self.register_places, self.register_bytes = register_places(program.externs)
        self.pipes_have_registers = False  # REGISTERS then changes with the pipe that runs a packet
        self.crcs = {call: name for call, (name, _) in custom_crcs(program).items()}
        self.sites: list[Site] = [Site("none", "")]
        self.python_calls: list[Buffer] = []
        self._faults: dict[str, int] = {}

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        self.tables.apply(s, code)

    def call(self, s: ir.CallExtern, code: Statements) -> None:
        owner = s.instance.type if s.instance else ""
        self.builders[owner, s.name](NativeCall(s, code, self))

    def call_user_extern(self, s: ir.CallUserExtern, code: Statements) -> None:
        buffer = Buffer.of_user_extern(s, code.layouts)
        number = self.python_call(buffer)
        call_user_extern(s, buffer, number, self.site(Site("user extern", failure(s))), code)

    def python_call(self, buffer: Buffer) -> int:
        """Return the number of a new call of Python."""
        self.python_calls.append(buffer)
        return len(self.python_calls) - 1

    def fault(self, reason: str) -> int:
        if reason not in self._faults:
            self._faults[reason] = self.site(Site("fault", reason))
        return self._faults[reason]

    def site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def _selection(self, table: ir.Table, code: Statements) -> Operand:
        """Return the action selector's hash over the table's selector keys (i64)."""
        assert table.implementation is not None, table.name
        profile = self.profiles[table.implementation.name]
        keys = [k.expr for k in table.keys if k.match_kind == "selector"]
        if not profile.algorithm or not keys:
            return "0"
        if profile.algorithm == "random":
            return native_rng.draw(code.f)
        made = selector_hash(table.implementation)
        if made is None:
            found = hashed(code, profile.algorithm, FieldList(code, keys))
        else:
            found = hashed_by(code, made, FieldList(code, filled(made, keys)))
        width = profile.output_width
        return found if width >= 64 else code.f.binary("and", "i64", found, (1 << width) - 1)


class NativeCall:
    """A call of an extern being compiled."""

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
        """Return an out argument."""
        arg = self.args[position]
        assert isinstance(arg, ir.LValue), arg
        return arg

    def number(self, position: int) -> Operand:
        """Return an argument as i64."""
        return self.code.number(self.args[position], 64)

    def name(self, position: int) -> str:
        """Return an argument that must be a constant: an enum member's name or a string."""
        return constant_name(self.stmt, position)

    def index(self, position: int, size: int) -> tuple[Operand, Operand]:
        """Return whether an index is below `size` (i1), and the index or else 0 (i64)."""
        e, f = self.args[position], self.f
        width = max(scalar_width(e.type), 64)
        number = self.code.number(e, width)
        inside = f.compare("ult", f"i{width}", number, size)
        return inside, f.select(inside, "i64", f.resize(number, width, 64), 0)

    def give(self, value: Operand, width: int, position: int | None = None) -> None:
        """Assign a number to an out argument, or to the return value (None)."""
        target = self.stmt.result if position is None else self.target(position)
        if target is not None:
            self.code.store_number(target, value, width)

    def length(self) -> Operand:
        """Return the packet's length in bytes (i64): the architecture's note of it, if there is."""
        if "length" in self.code.context.slots:
            return self.code.noted("length")
        return self.f.binary("lshr", "i64", self.code.noted("bits"), 3)


ALL_REGISTERS = "registers of all pipes"  # the state word with the address of the first pipe's
REGISTERS = "registers"  # the state word with the address of their memory
PIPE = "pipe"  # the state word with the number of the pipe that runs a packet
PARSER = "parser"  # the same of the parser of its port in the pipe, for programs with value sets


ALL_PIPES = "words of all pipes"  # the address of a copy of the pipes' words for each; 0: none
RUNNING_PIPE = "running pipe"  # the pipe whose words are in place; -1: none


def pipe_words(program: ir.Program, shapes: Iterable[Shape]) -> list[str]:
    """Return the state words that differ where pipes have tables and externs of their own."""
    names = [DIRECT]
    for instance in program.externs:
        name = instance.name
        if instance.kind == "counter":
            names += [counter_word(name, "packets"), counter_word(name, "bytes")]
        elif instance.kind == "meter":
            names.append(meter_word(name))
        elif instance.kind in ("lpf", "wred"):
            names.append(filter_word(name))
        if instance.kind in METERS:
            names.append(adjustment_word(name))
    for value_set in program.value_sets:
        names += [value_set_word(value_set.name, part) for part in VALUE_SET_PARTS]
    for shape in shapes:
        own = WORDS if shape.entry.register is None else (*WORDS, CELLS)
        names += [shape.word(part) for part in own]
    return names


VALUE_SET_PARTS = ("members", "count", "own members", "own count")
"""The state words of a value set; own: the members of single parsers."""


def value_set_word(name: str, part: str) -> str:
    """Return the state word of a parser value set; `part`: "members" or "count"."""
    return f"value set {name}: {part}"


def counter_word(name: str, part: str) -> str:
    """Return the state word of a counter's cells; `part`: "packets" or "bytes"."""
    return f"counter {name}: {part}"


def adjustment_word(name: str) -> str:
    """Return the state word of the bytes that are added to what a meter measures."""
    return f"meter adjustment {name}"


def meter_word(name: str) -> str:
    """Return the state word of a meter's cells."""
    return f"meter {name}"


def filter_word(name: str) -> str:
    """Return the state word of a filter's cells."""
    return f"filter {name}"


def hashed(
    code: Statements, name: str, fields: FieldList, payload: tuple[Operand, Operand] | None = None
) -> Operand:
    """Return a hash of fields (and of the bytes behind them), as i64."""
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


def hashed_by(code: Statements, instance: ir.ExternInstance, fields: FieldList) -> Operand:
    """Return the hash of fields by an instance of one, whose algorithm may be replaced, as i64."""
    f, spans = code.f, code.f.word(span_word(instance.name))
    memory, result = f.word(hash_word(instance.name)), f.variable("i64", 0)
    used = f.load("i64", f.item(memory, "i64", USED), 8)
    count = f.load("i64", f.item(spans, "i64", COUNT), 8)
    changed = f.compare("ne", "i64", f.binary("or", "i64", used, count), 0)
    with f.when(changed):
        address, size = _taken(code, fields, spans)
        args = (("ptr", address), ("i64", size))
        replaced = f.compare("ne", "i64", used, 0)
        with f.when(replaced):
            result.set(f.call("i64", dynamic_crc(code.unit), *args, ("ptr", memory)))
        with f.unless(replaced):
            own = f.call("i64", _own_function(code, instance), *args)
            result.set(_repeated(code, instance, own))
    with f.unless(changed):
        if polynomial_of(instance) is None:
            own = hashed(code, instance.word("algorithm"), fields)
        else:
            address, size = fields.written()
            function = _own_function(code, instance)
            own = f.call("i64", function, ("ptr", address), ("i64", size))
        result.set(_repeated(code, instance, own))
    return result.get()


def _repeated(code: Statements, instance: ir.ExternInstance, found: Operand) -> Operand:
    factor = repetition(instance)
    return found if factor == 1 else code.f.binary("mul", "i64", found, factor)


def _own_function(code: Statements, instance: ir.ExternInstance) -> str:
    """Return the function of the program's algorithm of a hash."""
    crc = polynomial_of(instance)
    if crc is not None:
        return crc_function(code.unit, crc)
    return hash_function(code.unit, instance.word("algorithm"))


def _taken(code: Statements, fields: FieldList, spans: Operand) -> tuple[Operand, Operand]:
    """Return address and size of the bytes to hash: of all fields, or of the spans."""
    f = code.f
    address, size = fields.written()
    bits = f.load("i64", f.item(spans, "i64", BITS), 8)
    whole = f.binary("lshr", "i64", f.binary("add", "i64", bits, 7), 3)
    chosen, length = f.variable("ptr", address), f.variable("i64", size)
    target = f.alloca(fields.most + 16)
    fits = f.compare("eq", "i64", whole, size)
    with f.when(f.binary("and", "i1", fits, f.compare("ne", "i64", bits, 0))):
        args = (("ptr", address), ("ptr", spans), ("ptr", target))
        length.set(f.call("i64", taken_spans(code.unit), *args))
        chosen.set(target)
    return chosen.get(), length.get()


def post(f: Function, vector: str, site: int, data: Operand, size: int) -> None:
    """Append a message to a vector: site, cause, size in memory, bytes."""
    record = native_memory.reserve(f, vector, 24 + size)
    for i, value in enumerate((str(site), f.word("cause", "i64", fixed=False), str(size))):
        f.store("i64", value, f.add(record, 8 * i), 1)
    if size:
        f.copy(f.add(record, 24), data, size)
    native_memory.extend(f, vector, 24 + size)
