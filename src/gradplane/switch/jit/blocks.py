"""Controls and deparsers as functions: i32 block(ptr parts of the packet's memory...
[, ptr output])."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.interp.packet import MOST_EMITTED
from gradplane.switch.interp.statements import EMITTED_TOO_MUCH
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Fields, Header, Type
from gradplane.switch.ir.walk import statements
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.headers import HeaderCodecs, aligned, copy_bits, emitted, wire
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.statements import Calls, Statements
from gradplane.switch.jit.value_layout import Context

UNROLLED = 8  # items of a stack that are emitted without a loop


def control_function(
    unit: Unit, name: str, control: ir.Control, context: Context, calls: Calls,
    values: Sequence[str],
) -> None:  # fmt: skip
    """Compile a control that neither parses nor emits; `values`: its parameters' values."""
    f = block_function(unit, name, context)
    _control(Statements(unit, f, context, calls), control, values)


def deparser_function(
    unit: Unit, name: str, control: ir.Control, context: Context, calls: Calls,
    values: Sequence[str],
) -> int:  # fmt: skip
    """Compile a deparser; %out takes the bytes, and slot `emitted` of the state words their
    number of bits. Return the most bytes it can emit."""
    f = block_function(unit, name, context, ("ptr noalias", "%out"))
    code = Deparser(unit, f, context, calls, control)
    _control(code, control, values)
    return code.most


def block_function(unit: Unit, name: str, context: Context, *more: tuple[str, str]) -> Function:
    """Begin a block's function; `more`: parameters beside the packet's parts. It is inlined, so
    that parts whose address goes nowhere else can be in registers."""
    params = [*(("ptr", part) for part in context.given), *more]
    return unit.module.function(name, "i32", params, attributes="alwaysinline ")


def _control(code: Statements, control: ir.Control, values: Sequence[str]) -> None:
    bind(code, control.params, values)
    for var in control.locals:
        code.local(var)
    code.body(control.body)
    code.finish()


def bind(code: Statements, params: Sequence[ir.Param], values: Sequence[str]) -> None:
    """Bind the parameters to these values of the context, in order, as many as there are."""
    for param, value in zip(params, values, strict=False):
        code.stand_for(param.var, code.context, code.c, value)
    for var, value in code.context.shared.items():
        code.stand_for(var, code.context, code.c, value)


class Deparser(Statements):
    """A deparser's statements; `most`: bytes that the emits can write."""

    def __init__(
        self, unit: Unit, f: Function, context: Context, calls: Calls, control: ir.Control
    ) -> None:
        super().__init__(unit, f, context, calls)
        self.at = f.variable("i64", 0)  # in bits
        self.codecs = HeaderCodecs(unit)
        inside = list(statements(control))
        emits = [s for s in inside if isinstance(s, ir.Emit)]
        headers = [wire(unit, h) for s in emits for h in emitted(s.value.type)]
        self.aligned = aligned(unit, control)
        self.most = sum((h.most + 7) // 8 + 1 for h in headers)
        again = any(isinstance(s, ir.Loop | ir.ApplyTable) for s in inside)
        self.limited = again or self.most > MOST_EMITTED
        if self.limited:
            self.most = MOST_EMITTED

    def finish(self) -> None:
        self.f.at(self.exit)
        self.f.store("i64", self.at.get(), self.f.word_address("emitted"))
        self.f.ret(0)

    def emit(self, s: ir.Emit) -> None:
        value, t = s.value, s.value.type
        if isinstance(value, ir.Var) and value in self.parts:
            assert isinstance(t, Fields), t
            for field, address in zip(t.fields, self.parts[value], strict=True):
                self._emit(address, field.type)
        else:
            self._emit(self.address(value), t)

    def _emit(self, address: Operand, t: Type) -> None:
        if isinstance(t, Header):
            with self.f.when(self.valid(address, t)):
                self._emit_header(address, t)
        elif isinstance(t, Array) and t.size > UNROLLED:
            with self.f.count(t.size) as number:
                self._emit(self.item(t, address, number), t.element)
        elif isinstance(t, Array):
            for i in range(t.size):
                self._emit(self.item(t, address, i), t.element)
        else:
            assert isinstance(t, Fields), t
            offsets = self.layouts.of(t).offsets
            for field, offset in zip(t.fields, offsets, strict=True):
                self._emit(self.f.add(address, offset), field.type)

    def _emit_header(self, header: Operand, t: Header) -> None:
        f, at, bits = self.f, self.at.get(), self.header_bits(header, t)
        if self.limited:
            end = f.binary("add", "i64", at, bits)
            with f.when(f.compare("ugt", "i64", end, MOST_EMITTED * 8)):
                self.give_up(EMITTED_TOO_MUCH)
        target = f.add("%out", f.binary("lshr", "i64", at, 3))
        if self.aligned:
            self.codecs.encode(f, t, header, target)
        else:
            scratch = f.alloca((wire(self.unit, t).most + 7) // 8 + 1)
            self.codecs.encode(f, t, header, scratch)
            copy_bits(f, "%out", at, scratch, 0, bits)
        self.at.set(f.binary("add", "i64", at, bits))
