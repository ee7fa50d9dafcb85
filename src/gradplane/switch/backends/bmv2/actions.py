"""Statements as lists of BMv2's primitives; control flow inside them is made of jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from gradplane.switch.backends.bmv2.expressions import (
    Expressions,
    at_index,
    both,
    number,
    op,
    run_time_index,
    truth,
)
from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    StackAt,
    Storage,
    UnionAt,
)
from gradplane.switch.bmv2_names import PARAMETER_COUNTS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.expression_builder import parts
from gradplane.switch.ir.types import BOOL, Array, Bits, Bool, Header, Stack, Struct, Union, Varbit
from gradplane.switch.ir.walk import variables
from gradplane.switch.source import Span, refuse


class ExternCalls(Protocol):
    """A translator of calls of the architecture's externs."""

    def call(self, code: PrimitiveWriter, stmt: ir.CallExtern) -> None:
        """Append the primitives of a call to `code`."""


def source_info(span: Span) -> Json:
    """Return a statement's place in the source, as a member of a JSON object."""
    if not span.line:
        return {}
    return {
        "source_info": {
            "filename": span.file,
            "line": span.line,
            "column": span.column,
            "source_fragment": "",
        }
    }


class _Label:
    """A place in a list of primitives that jumps go to; known when it is set."""

    def __init__(self) -> None:
        self.at: int | None = None


class PrimitiveWriter:
    """A list of primitives that grows statement by statement."""

    def __init__(
        self, storage: Storage, externs: ExternCalls, parameters: Sequence[ir.Var] = ()
    ) -> None:
        self.storage, self._externs = storage, externs
        self.code = Expressions(storage, {var: at for at, var in enumerate(parameters)})
        self._list: list[Json] = []
        self._jumps: list[tuple[Json, _Label]] = []
        self._ends: dict[ir.Block, _Label] = {}
        self._end = _Label()
        self._span: Span | None = None

    def __bool__(self) -> bool:
        return bool(self._list)

    def finished(self) -> list[Json]:
        """Return the primitives, with the targets of their jumps filled in."""
        self._set(self._end)
        self._drop_idle_jumps()
        for jump, label in self._jumps:
            assert label.at is not None
            jump["parameters"][-1] = number(label.at)
        return self._list

    def _drop_idle_jumps(self) -> None:
        """Remove jumps to the next primitive, such as a `return` at the end."""
        labels = [self._end, *self._ends.values(), *(label for _, label in self._jumps)]
        while True:
            where = {id(entry): at for at, entry in enumerate(self._list)}
            idle = [
                (jump, label)
                for jump, label in self._jumps
                if jump["op"] == "_jump" and label.at == where[id(jump)] + 1
            ]
            if not idle:
                return
            jump, label = idle[0]
            at = where[id(jump)]
            del self._list[at]
            self._jumps = [other for other in self._jumps if other[0] is not jump]
            for other in {id(label): label for label in labels}.values():
                if other.at is not None and other.at > at:
                    other.at -= 1

    # -- primitives -----------------------------------------------------------------------------

    def add(self, name: str, *parameters: Json) -> Json:
        """Append a primitive and return it."""
        assert len(parameters) == PARAMETER_COUNTS.get(name, len(parameters)), name
        entry: Json = {"op": name, "parameters": list(parameters)}
        if self._span is not None:
            entry |= source_info(self._span)
        self._list.append(entry)
        return entry

    def set_field(self, place: FieldAt, value: Json) -> None:
        """Append the assignment of a parameter, such as `Expressions.parameter` gives."""
        self.add("assign", {"type": "field", "value": place.reference}, value)

    def temporary(self, e: ir.Expr, name: str = "tmp") -> FieldAt:
        """Return a field that has the value of a scalar: its own one or a new one."""
        place = self.code.place(e)
        if isinstance(place, FieldAt):
            return place
        place = self.storage.temporary(e.type, name)
        self.set_field(place, self.code.parameter(e))
        return place

    def _jump(self, label: _Label) -> None:
        self._jumps.append((self.add("_jump", number(0)), label))

    def _jump_unless(self, condition: Json, label: _Label) -> None:
        jump = self.add("_jump_if_zero", {"type": "expression", "value": condition}, number(0))
        self._jumps.append((jump, label))

    def _set(self, label: _Label) -> None:
        label.at = len(self._list)

    # -- statements -----------------------------------------------------------------------------

    def body(self, stmts: Sequence[ir.Stmt]) -> None:
        """Append statements."""
        for stmt in stmts:
            self.statement(stmt)

    def statement(self, s: ir.Stmt) -> None:
        """Append a statement. Raises CompileError for what BMv2 does not have."""
        if s.span.line:
            self._span = self.code.span = s.span
        _STATEMENTS[type(s)](self, s)

    def _refused(self, s: ir.Stmt) -> None:
        raise refuse(s.span, f"BMv2's actions have no {type(s).__name__}")

    def _block(self, s: ir.Block) -> None:
        self._ends[s] = _Label()
        self.body(s.body)
        self._set(self._ends[s])

    def _loop(self, s: ir.Loop) -> None:
        start = _Label()
        self._set(start)
        self.body(s.body)
        self._jump(start)

    def _exit(self, s: ir.Exit) -> None:
        self.add("exit")
        self._jump(self._end)

    def _user_extern(self, s: ir.CallUserExtern) -> None:
        owner = f"{s.instance.type}." if s.instance else ""
        raise refuse(s.span, f"BMv2 has no extern {owner}{s.name}")

    def _if(self, condition: Json, then: Callable[[], None], other: Sequence[ir.Stmt] = ()) -> None:
        after, otherwise = _Label(), _Label()
        self._jump_unless(condition, otherwise)
        then()
        if other:
            self._jump(after)
        self._set(otherwise)
        self.body(other)
        self._set(after)

    def _switch(self, s: ir.SwitchStmt) -> None:
        after = _Label()
        subject = self.code.value(s.subject)
        for values, body in s.cases:
            following = _Label()
            found: Json | None = None
            for value in values:
                equal = op("==", subject, number(value))
                found = equal if found is None else op("or", found, equal)
            assert found is not None, s
            self._jump_unless(op("b2d", None, found), following)
            self.body(body)
            self._jump(after)
            self._set(following)
        self.body(s.default)
        self._set(after)

    def _shift(self, s: ir.Push | ir.Pop) -> None:
        """Append a push or pop. BMv2 leaves the unions valid that should become invalid."""
        name = "push" if isinstance(s, ir.Push) else "pop"
        self.add(name, self.code.stack(s.target), number(s.count))
        place = self.code.place(s.target)
        if isinstance(place, StackAt) and isinstance(place.type.element, Union):
            size = place.type.size
            moved = min(s.count, size)
            first = 0 if name == "push" else size - moved
            for index in range(first, first + moved):
                self._clear(place.element(index))

    def _set_valid(self, s: ir.SetValid) -> None:
        name = "add_header" if s.valid else "remove_header"
        self._guarded(s.target, lambda place: self.add(name, self._operand(place)))

    def _guarded(self, target: ir.LValue, act: Callable[[ir.LValue], Any]) -> None:
        """Do something with a place if its run-time index is inside the stack or array."""
        if (chosen := run_time_index(target)) is not None:
            assert isinstance(chosen.base.type, Array), chosen
            for at in range(chosen.base.type.size):
                place = at_index(target, chosen, at)
                assert isinstance(place, ir.LValue), place
                then = partial(self._guarded, place, act)
                self._if(op("b2d", None, self.code.chosen_at(chosen, at)), then)
            return
        guard = self.code.guard(target)
        if guard is None:
            act(target)
        elif guard != truth(False):
            self._if(op("b2d", None, guard), lambda: act(target) and None)

    def _operand(self, e: ir.Expr) -> Json:
        """Return a header or union as a primitive's parameter."""
        found = self.code.header(e)
        if found["type"] == "expression":
            return {"type": "expression", "value": found}
        return found

    # -- assignments ----------------------------------------------------------------------------

    def assign(self, target: ir.LValue, value: ir.Expr) -> None:
        """Append an assignment of any type; the value is read in full before anything changes."""
        t = target.type
        if isinstance(value, ir.Mux) and not isinstance(t, Bits | Bool):
            self._if(
                self.code.number(value.cond),
                lambda: self.assign(target, value.then),
                [ir.Assign(target, value.other)],
            )
        elif isinstance(t, Struct):
            self._assign_members(target, value)
        elif (chosen := run_time_index(value)) and not isinstance(t, Bits | Bool):
            self._assign_chosen(target, value, chosen)
        elif isinstance(t, Bits | Bool):
            self._guarded(target, lambda place: self._assign_scalar(place, value))
        elif isinstance(t, Varbit):
            self._guarded(target, lambda place: self._assign_varbit(place, value))
        elif isinstance(t, Header):
            self._guarded(target, lambda place: self._assign_header(place, value))
        elif isinstance(t, Union | Stack):
            self._assign_whole(target, t, value)
        elif isinstance(t, Array):
            self._assign_members(target, value)
        else:
            raise refuse(self._place(), f"BMv2 cannot assign a {t}")

    def _place(self) -> Span:
        return self._span or Span("<program>", 0, 0, 0)

    def _assign_scalar(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(target, ir.SliceOf):
            self._assign_slice(target, value)
            return
        source = self.code.parameter(value)
        destination = self.code.field(target)
        if destination["type"] == "expression":
            destination = {"type": "expression", "value": destination}
        self.add("assign", destination, source)

    def _assign_slice(self, target: ir.SliceOf, value: ir.Expr) -> None:
        base = target.base
        assert isinstance(base, ir.LValue) and isinstance(base.type, Bits), target
        ones = (1 << (target.hi - target.lo + 1)) - 1
        keep = ((1 << base.type.width) - 1) & ~(ones << target.lo)
        new = op("&", self.code.number(value), number(ones))
        if target.lo:
            new = op("<<", new, number(target.lo))
        if isinstance(base, ir.SliceOf):
            flat = ir.SliceOf(target.type, base.base, base.lo + target.hi, base.lo + target.lo)
            self._assign_slice(flat, value)
            return
        whole = op("|", op("&", self.code.value(base), number(keep)), new)
        destination = self.code.field(base)
        if destination["type"] == "expression":
            destination = {"type": "expression", "value": destination}
        self.add("assign", destination, {"type": "expression", "value": whole})

    def _assign_chosen(self, target: ir.LValue, value: ir.Expr, chosen: ir.ElementOf) -> None:
        """Assign an array's element of a type that has no expressions, by a run-time index."""
        assert isinstance(chosen.base.type, Array), chosen
        body: list[ir.Stmt] = [ir.Assign(target, ir.Zero(target.type))]
        for at in range(chosen.base.type.size):
            cond = ir.Binary(BOOL, "==", chosen.index, ir.Const(chosen.index.type, at))
            body = [ir.If(cond, [ir.Assign(target, at_index(value, chosen, at))], body)]
        self.body(body)

    def _assign_varbit(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(value, ir.Zero):
            value = ir.Var(value.type, "empty", -1)
        if not isinstance(value, ir.LValue):
            raise refuse(self._place(), "BMv2 cannot compute a varbit")
        self.add("assign_VL", self.code.field(target), self.code.field(value))

    def _assign_header(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(value, ir.Zero):
            self.add("remove_header", self._operand(target))
        elif isinstance(value, ir.Make):
            self._make(target, value, before=lambda: self.add("add_header", self._operand(target)))
        else:
            guard = self.code.guard(value)
            if guard is None:
                self._copy_header(target, value)
            elif guard == truth(False):
                self.statement(ir.SetValid(target, False))
            else:
                invalid: list[ir.Stmt] = [ir.SetValid(target, False)]
                self._if(op("b2d", None, guard), lambda: self._copy_header(target, value), invalid)

    def _copy_header(self, target: ir.LValue, value: ir.Expr) -> None:
        self.add("assign_header", self._operand(target), self._operand(value))

    def _assign_members(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(value, ir.Make):
            self._make(target, value)
            return
        for member, source in zip(parts(target), parts(value), strict=True):
            assert isinstance(member, ir.LValue), member
            self.assign(member, source)

    def _make(
        self, target: ir.LValue, value: ir.Make, before: Callable[[], Any] | None = None
    ) -> None:
        """Assign member by member, through temporaries where a member is read again."""
        changed, values = variables(target), list(value.fields)
        for index in [at for at, part in enumerate(values) if changed & variables(part)]:
            copy = ir.Var(values[index].type, "copy", -1)
            self.assign(copy, values[index])
            values[index] = copy
        if before is not None:
            before()
        for member, part in zip(parts(target), values, strict=True):
            assert isinstance(member, ir.LValue), member
            self.assign(member, part)

    def _assign_whole(self, target: ir.LValue, t: Union | Stack, value: ir.Expr) -> None:
        place = self.code.place(target)
        if isinstance(value, ir.Zero):
            self._clear(place)
            return
        source = self.code.place(value)
        if isinstance(place, UnionAt) and isinstance(source, UnionAt):
            # With assign_union BMv2 copies 0 for fields that nothing else computes with.
            for index in range(len(place.type.fields)):
                pair = (place.member(index), source.member(index))
                self.add("assign_header", *({"type": "header", "value": m.name} for m in pair))
        elif isinstance(place, StackAt) and isinstance(source, StackAt):
            unions = isinstance(place.type.element, Union)
            kind = "header_union_stack" if unions else "header_stack"
            name = "assign_union_stack" if unions else "assign_header_stack"
            pair_of_stacks = (place, source)
            self.add(name, *({"type": kind, "value": stack.name} for stack in pair_of_stacks))
        else:
            raise refuse(self._place(), f"BMv2 cannot assign a {t} by a run-time index")

    def _clear(self, place: Any) -> None:
        if isinstance(place, HeaderAt):
            self.add("remove_header", {"type": "header", "value": place.name})
        elif isinstance(place, UnionAt):
            for index in range(len(place.type.fields)):
                self._clear(place.member(index))
        elif isinstance(place, StackAt):
            kind = "header_union_stack" if isinstance(place.type.element, Union) else "header_stack"
            stack = {"type": kind, "value": place.name}
            self.add("pop", stack, number(place.type.size))
            for index in range(place.type.size) if kind == "header_union_stack" else ():
                self._clear(place.element(index))


__all__ = ["ExternCalls", "PrimitiveWriter", "both", "source_info"]


_STATEMENTS: dict[type[ir.Stmt], Callable[..., None]] = by_class(
    ir.Stmt,
    {
        ir.Assign: lambda code, s: code.assign(s.target, s.value),
        ir.SetValid: PrimitiveWriter._set_valid,
        (ir.Push, ir.Pop): PrimitiveWriter._shift,
        ir.If: lambda code, s: code._if(
            code.code.number(s.cond), lambda: code.body(s.then), s.other
        ),
        ir.SwitchStmt: PrimitiveWriter._switch,
        ir.Block: PrimitiveWriter._block,
        ir.Leave: lambda code, s: code._jump(code._ends[s.block]),
        ir.Loop: PrimitiveWriter._loop,
        ir.Exit: PrimitiveWriter._exit,
        ir.CallExtern: lambda code, s: code._externs.call(code, s),
        ir.CallUserExtern: PrimitiveWriter._user_extern,
        (ir.ApplyTable, ir.Extract, ir.Lookahead, ir.Advance): PrimitiveWriter._refused,
        (ir.PacketLength, ir.Verify, ir.Emit): PrimitiveWriter._refused,
    },
)
