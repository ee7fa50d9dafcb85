"""Statements of controls and parsers as LLVM code.

The fields of a header that a program sets before it reads them need no zeros before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from gradplane.switch.interp.statements import loop_place
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import Fields, Header, Stack, Type, Union, Varbit
from gradplane.switch.ir.walk import (
    expressions,
    independent,
    operands,
    overlap,
    same_value,
    with_actions,
)
from gradplane.switch.jit.expressions import Expressions, Unit, is_scalar, may_reject
from gradplane.switch.jit.headers import wire
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.table_layout import Shape
from gradplane.switch.jit.value_layout import Context, Parts, scalar_width
from gradplane.switch.runtime.shared_memory import LINE
from gradplane.switch.source import NOWHERE

SEARCHED = 2000  # statements, so that compiling takes linear time


def set_first(header: ir.LValue, following: Iterable[ir.Stmt]) -> set[int]:
    """Return the fields of a header, by position, that the statements which follow each other set
    before one of them can read the header or leave the body."""
    assert isinstance(header.type, Fields), header.type
    found: set[int] = set()
    if not independent(header):
        return found
    for stmt in islice(following, SEARCHED):
        if len(found) == len(header.type.fields):
            break
        if isinstance(stmt, ir.Assign) and _is_field(stmt.target, header):
            if _uses(stmt.value, header):
                break
            assert isinstance(stmt.target, ir.FieldOf), stmt.target
            if not isinstance(stmt.target.type, Varbit):  # its length is the header's at once
                found.add(stmt.target.index)
        elif not _passes_by(stmt, header):
            break
    return found


def _is_field(target: ir.LValue, header: ir.LValue) -> bool:
    return isinstance(target, ir.FieldOf) and same_value(target.base, header)


def _passes_by(stmt: ir.Stmt, header: ir.LValue) -> bool:
    """Return whether a statement has no effect on a header, and always goes on to the next one."""
    return all(
        isinstance(inside, _SEEN_THROUGH) and not any(_uses(e, header) for e in expressions(inside))
        for inside in with_actions([stmt])
    )


_SEEN_THROUGH = ir.Assign | ir.If | ir.SetValid | ir.CallExtern | ir.ApplyTable
"""Statements that never leave the body; others that do not, either, rarely come between."""


def _uses(e: ir.Expr, header: ir.LValue) -> bool:
    """Return whether an expression can read or change a header, or end parsing."""
    if isinstance(e, ir.FieldOf | ir.Var):
        return overlap(e, header) or may_reject(e)
    return isinstance(e, ir.NextOf | ir.LastOf) or any(_uses(x, header) for x in operands(e))


class Calls(Protocol):
    """The calls of tables and externs that an architecture supplies."""

    def apply(self, s: ir.ApplyTable, code: Statements) -> None: ...

    def call(self, s: ir.CallExtern, code: Statements) -> None: ...

    def call_user_extern(self, s: ir.CallUserExtern, code: Statements) -> None: ...

    def fault(self, reason: str) -> int:
        """Return the number by which the engine finds the reason of a fault."""


class Lookup(NamedTuple):
    """A table's lookup, whose action is being compiled: the key's fields, and the address of the
    action part that was found."""

    table: ir.Table
    shape: Shape
    keys: Sequence[Operand]
    entry: Operand


class Statements(Expressions):
    """Compiles statements into a block's function: `c` is the packet's memory. `lookup`: the last
    one.

    The function returns an i32: 0, or a negative number for a fault, or a parser's error code.
    """

    def __init__(self, unit: Unit, function: Function, context: Context, calls: Calls) -> None:
        super().__init__(unit, function, {})
        self.context, self.c = context, context.given
        self.calls = calls
        self.exit = function.label()
        self.lookup: Lookup | None = None
        self._ends: dict[ir.Block, str] = {}
        self._following: tuple[Sequence[ir.Stmt], int] = (), 0

    def body(self, stmts: Sequence[ir.Stmt]) -> None:
        """Compile a sequence of statements."""
        before = set(self.zeros)
        for i, stmt in enumerate(stmts):
            self._following = stmts, i + 1
            if stmt.span != NOWHERE:
                self.span = stmt.span
            _STATEMENTS[type(stmt)](self, stmt)
        self.zeros &= before  # another way may lead to what follows

    def finish(self) -> None:
        """End a control's body."""
        self.f.at(self.exit)
        self.f.ret(0)

    def local(self, var: ir.Var, clear: bool = True) -> None:
        """Give a variable its place in the function's frame."""
        self.zeros.discard(var)
        place = self.layouts.of(var.type)
        self.places[var] = self.f.alloca(place.size, max(place.align, 8))
        if clear:
            self.zero(self.places[var], var.type)

    def zero(self, address: Operand, t: Type) -> None:
        """Set the value at an address to its default."""
        if is_scalar(t):
            self.put(t, "0", address)
        else:
            self.f.clear(address, self.layouts.of(t).size)

    def stand_for(self, var: ir.Var, context: Context, c: Parts, name: str) -> None:
        """Let a variable be a value of a packet."""
        if name in context.fields:
            self.parts[var] = [context.at(self.f, c, at) for at in context.fields[name]]
        else:
            self.places[var] = context.at(self.f, c, context.values[name])

    def note(self, name: str, value: Operand | int) -> None:
        """Set a slot of the packet's context."""
        self.context.set(self.f, self.c, name, value)

    def noted(self, name: str) -> Operand:
        """Return a slot of the packet's context."""
        return self.context.get(self.f, self.c, name)

    def found(self, instance: ir.ExternInstance) -> Operand:
        """Return the address of what the last lookup found for a direct counter or meter."""
        return self.context.at(self.f, self.c, self.context.direct[instance.name])

    def give_up(self, reason: str) -> None:
        """Drop the packet: return from the block with a fault."""
        self.f.ret(-self.calls.fault(reason))

    # -- assignments ----------------------------------------------------------------------------

    def _assign(self, s: ir.Assign) -> None:
        if is_scalar(s.target.type):
            value = self.value(s.value)
            self.store(s.target, value)
            if value == "0" and isinstance(s.target, ir.Var):
                self.zeros.add(s.target)
            return
        source = self.address(s.value)
        target = self.place(s.target)
        self.f.copy(target, source, self.layouts.of(s.target.type).size)
        if self._in_union(s.target):
            with self.f.when(self.valid(target, s.target.type)):
                self.keep_only(s.target)

    def _in_union(self, target: ir.LValue) -> bool:
        return isinstance(target, ir.FieldOf) and isinstance(target.base.type, Union)

    def keep_only(self, target: ir.LValue) -> None:
        """Make the other headers of a header's union invalid."""
        if not isinstance(target, ir.FieldOf) or not isinstance(target.base.type, Union):
            return
        base, t = self.place(_lvalue(target.base)), target.base.type
        for i, (field, offset) in enumerate(zip(t.fields, self.layouts.of(t).offsets, strict=True)):
            if i != target.index:
                at = offset + self.layouts.of(field.type).valid
                self.f.store("i8", 0, self.f.add(base, at))

    def _set_valid(self, s: ir.SetValid) -> None:
        t = s.target.type
        assert isinstance(t, Header), t
        stmts, start = self._following
        header = self.place(s.target)
        flag = self.f.add(header, self.layouts.of(t).valid)
        changes = self.f.compare("ne", "i8", self.f.load("i8", flag), int(s.valid))
        with self.f.when(changes):
            if s.valid:
                self._clear_fields(s.target, header, islice(stmts, start, None))
            bits = self.header_bits(header, t)
            grown = self.noted("grown")
            op = "add" if s.valid else "sub"
            self.note("grown", self.f.binary(op, "i64", grown, bits))
            self.f.store("i8", int(s.valid), flag)
        if s.valid:
            self.keep_only(s.target)

    def _clear_fields(
        self, target: ir.LValue, header: Operand, following: Iterable[ir.Stmt]
    ) -> None:
        """Set a header's fields to zero; of a large one those that need it."""
        t = target.type
        assert isinstance(t, Header), t
        place = self.layouts.of(t)
        kept = set_first(target, following) if place.size > LINE else set()
        start = 0  # of the fields to be cleared
        for i, offset in enumerate((*place.offsets, place.valid)):
            if i in kept or i == len(t.fields):
                if start < offset:
                    self.f.clear(self.f.add(header, start), offset - start)
                start = offset + (self.layouts.of(t.fields[i].type).size if i in kept else 0)

    def header_bits(self, header: Operand, t: Header) -> Operand:
        """Return a header's current size in bits, as i64."""
        form = wire(self.unit, t)
        if form.varbit is None:
            return str(form.fixed)
        length = self.f.load("i32", self.f.add(header, form.varbit))
        return self.f.binary("add", "i64", self.f.resize(length, 32, 64), form.fixed)

    def _push(self, s: ir.Push) -> None:
        t, stack = _stack(s), self.place(s.target)
        size, count = self.layouts.of(t.element).size, min(s.count, t.size)
        first = self.item(t, stack, 0)
        self.f.copy(self.f.add(first, count * size), first, (t.size - count) * size)
        self.f.clear(first, count * size)
        index = self.f.binary("add", "i32", self.f.load("i32", stack), count)
        args = (("i32", index), ("i32", t.size))
        self.f.store("i32", self.f.intrinsic("llvm.umin.i32", "i32", *args), stack)

    def _pop(self, s: ir.Pop) -> None:
        t, stack = _stack(s), self.place(s.target)
        size, count = self.layouts.of(t.element).size, min(s.count, t.size)
        first = self.item(t, stack, 0)
        self.f.copy(first, self.f.add(first, count * size), (t.size - count) * size)
        self.f.clear(self.f.add(first, (t.size - count) * size), count * size)
        args = (("i32", self.f.load("i32", stack)), ("i32", count))
        self.f.store("i32", self.f.intrinsic("llvm.usub.sat.i32", "i32", *args), stack)

    # -- control flow ---------------------------------------------------------------------------

    def _if(self, s: ir.If) -> None:
        """Compile an if; else-if chains are written flat, however long."""
        end = self.f.label()
        arm: ir.If | None = s
        while arm is not None:
            then, other = self.f.label(), self.f.label()
            self.f.branch(self.value(arm.cond), then, other)
            self.f.at(then)
            self.body(arm.then)
            self.f.go(end)
            self.f.at(other)
            rest, arm = arm.other, None
            if len(rest) == 1 and isinstance(rest[0], ir.If):
                arm = rest[0]
            else:
                self.body(rest)
        self.f.at(end)

    def _switch(self, s: ir.SwitchStmt) -> None:
        width = scalar_width(s.subject.type)
        default, end = self.f.label(), self.f.label()
        labels = [self.f.label() for _ in s.cases]
        top = 1 << width
        rows = [
            (value % top, label)
            for (values, _), label in zip(s.cases, labels, strict=True)
            for value in values
        ]
        self.f.choose(f"i{width}", self.value(s.subject), default, rows)
        bodies = [body for _, body in s.cases]
        for label, body in zip([*labels, default], [*bodies, s.default], strict=True):
            self.f.at(label)
            self.body(body)
            self.f.go(end)
        self.f.at(end)

    def _block(self, s: ir.Block) -> None:
        end = self._ends[s] = self.f.label()
        self.body(s.body)
        self.f.at(end)

    def _leave(self, s: ir.Leave) -> None:
        self.f.go(self._ends[s.block])

    def loop(self, s: ir.Loop) -> None:
        self.zeros.clear()  # the body may set what it reads in the next round
        rounds = self.f.variable("i32", 0)
        with self.f.loop():
            done = self.f.compare("uge", "i32", rounds.get(), ir.LOOP_LIMIT)
            with self.f.when(done):
                self.give_up(f"{loop_place(s)}: a loop ran more than {ir.LOOP_LIMIT} times")
            rounds.increase()
            self.body(s.body)

    def _exit(self, s: ir.Exit) -> None:
        self.f.go(self.exit)

    # -- the rest -------------------------------------------------------------------------------

    def _apply(self, s: ir.ApplyTable) -> None:
        self.body(s.table.key_setup)
        self.calls.apply(s, self)

    def _call(self, s: ir.CallExtern) -> None:
        self.calls.call(s, self)

    def _call_user_extern(self, s: ir.CallUserExtern) -> None:
        self.calls.call_user_extern(s, self)

    def _packet_length(self, s: ir.PacketLength) -> None:
        bits = self.noted("bits")
        self.store_number(s.target, self.f.binary("lshr", "i64", bits, 3), 64)

    def _verify(self, s: ir.Verify) -> None:
        with self.f.unless(self.value(s.cond)):
            self.reject(self.number(s.error, 32))

    def extract(self, s: ir.Extract) -> None:
        raise AssertionError("extract is for parsers")

    def lookahead(self, s: ir.Lookahead) -> None:
        raise AssertionError("lookahead is for parsers")

    def advance(self, s: ir.Advance) -> None:
        raise AssertionError("advance is for parsers")

    def emit(self, s: ir.Emit) -> None:
        raise AssertionError("emit is for deparsers")


def _stack(s: ir.Push | ir.Pop) -> Stack:
    assert isinstance(s.target.type, Stack), s.target.type
    return s.target.type


def _lvalue(e: ir.Expr) -> ir.LValue:
    assert isinstance(e, ir.LValue), e
    return e


_STATEMENTS: dict[type[ir.Stmt], Callable[..., None]] = by_class(
    ir.Stmt,
    {
        ir.Assign: Statements._assign,
        ir.SetValid: Statements._set_valid,
        ir.Push: Statements._push,
        ir.Pop: Statements._pop,
        ir.If: Statements._if,
        ir.SwitchStmt: Statements._switch,
        ir.Block: Statements._block,
        ir.Leave: Statements._leave,
        ir.Loop: lambda code, s: code.loop(s),
        ir.Exit: Statements._exit,
        ir.ApplyTable: Statements._apply,
        ir.CallExtern: Statements._call,
        ir.CallUserExtern: Statements._call_user_extern,
        ir.PacketLength: Statements._packet_length,
        ir.Verify: Statements._verify,
        ir.Extract: lambda code, s: code.extract(s),
        ir.Lookahead: lambda code, s: code.lookahead(s),
        ir.Advance: lambda code, s: code.advance(s),
        ir.Emit: lambda code, s: code.emit(s),
    },
)
