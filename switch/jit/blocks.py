"""Controls and deparsers as functions: i32 block(ptr context [, ptr output])."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.arch.calls import refuse
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Header, Stack, Type
from gradplane.switch.ir.walk import children
from gradplane.switch.jit.codecs import HeaderCodecs
from gradplane.switch.jit.context import Context
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.headers import copy_bits, emitted, wire
from gradplane.switch.jit.statements import Calls, Statements
from gradplane.switch.jit.text import Function, Operand


def control_function(
    unit: Unit, name: str, control: ir.Control, context: Context, calls: Calls
) -> None:
    """Compiles a control that neither parses nor emits."""
    f = unit.module.function(name, "i32", [("ptr noalias", "%c")])
    _control(Statements(unit, f, context, calls), control)


def deparser_function(
    unit: Unit, name: str, control: ir.Control, context: Context, calls: Calls
) -> int:
    """Compiles a deparser; %out takes the bytes, and slot `emitted` of the state words their
    number of bits. -> the most bytes it can emit."""
    f = unit.module.function(name, "i32", [("ptr noalias", "%c"), ("ptr noalias", "%out")])
    code = Deparser(unit, f, context, calls, control)
    _control(code, control)
    return code.most


def _control(code: Statements, control: ir.Control) -> None:
    bind(code, control.params)
    for var in control.locals:
        code.local(var)
    code.body(control.body)
    code.finish()


def bind(code: Statements, params: Sequence[ir.Param]) -> None:
    """The parameters are the context's values, in order."""
    for which, param in enumerate(params):
        code.places[param.var] = code.context.value(code.f, "%c", which)


class Deparser(Statements):
    """`most`: bytes that all emits so far can write."""

    def __init__(
        self, unit: Unit, f: Function, context: Context, calls: Calls, control: ir.Control
    ) -> None:
        super().__init__(unit, f, context, calls)
        self.most = 0
        self.at = f.variable("i64", 0)  # in bits
        self.codecs = HeaderCodecs(unit)
        emits = _emits(control.body)
        self.aligned = all(wire(unit, h).aligned for s in emits for h in emitted(s.value.type))

    def finish(self) -> None:
        self.f.at(self.exit)
        self.f.store("i64", self.at.get(), self.f.word_address("emitted"))
        self.f.ret(0)

    def emit(self, s: ir.Emit) -> None:
        self._emit(self.address(s.value), s.value.type)

    def loop(self, s: ir.Loop) -> None:
        found = _emits(s.body)
        if found:
            raise refuse(found[0].span, "the JIT engine cannot emit inside a loop",
                         "unroll the loop, or use engine interpreter")  # fmt: skip
        super().loop(s)

    def _emit(self, address: Operand, t: Type) -> None:
        if isinstance(t, Header):
            self.most += (wire(self.unit, t).most + 7) // 8 + 1
            with self.f.when(self.valid(address, t)):
                self._emit_header(address, t)
        elif isinstance(t, Stack):
            for i in range(t.size):
                self._emit(self.item(t, address, i), t.element)
        else:
            assert isinstance(t, Fields), t
            offsets = self.layouts.of(t).offsets
            for field, offset in zip(t.fields, offsets, strict=True):
                self._emit(self.f.add(address, offset), field.type)

    def _emit_header(self, header: Operand, t: Header) -> None:
        f, at, bits = self.f, self.at.get(), self.header_bits(header, t)
        target = f.add("%out", f.binary("lshr", "i64", at, 3))
        if self.aligned:
            self.codecs.encode(f, t, header, target)
        else:
            scratch = f.alloca((wire(self.unit, t).most + 7) // 8 + 1)
            self.codecs.encode(f, t, header, scratch)
            copy_bits(f, "%out", at, scratch, 0, bits)
        self.at.set(f.binary("add", "i64", at, bits))


def _emits(stmts: Sequence[ir.Stmt]) -> list[ir.Emit]:
    out: list[ir.Emit] = []
    for stmt in stmts:
        if isinstance(stmt, ir.Emit):
            out.append(stmt)
        for body in children(stmt):
            out += _emits(body)
        if isinstance(stmt, ir.ApplyTable):
            for choice in stmt.table.actions:
                out += _emits(choice.action.body)
    return out
