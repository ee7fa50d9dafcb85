"""The operations of a run of statements: what the chip's ALUs do at once.

A variable that only carries a value from one statement of a run to another takes no container: the
value's source is read where the variable is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from gradplane.fit import alu_rules
from gradplane.fit.alu_rules import (
    ARITHMETIC,
    CONDITION,
    INDEX,
    apply_operator,
    is_extreme,
    narrow_operand,
)
from gradplane.fit.chip_resources import Impossible
from gradplane.fit.places import Place, count_reads, header_bytes, leaves, reads
from gradplane.fit.values import (
    KnownValues,
    Operation,
    Use,
    Value,
    accesses,
    all_of,
    by_hash,
    hashable,
    is_given,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, bit_width
from gradplane.switch.ir.walk import operands
from gradplane.switch.source import NOWHERE, Span

USER_EXTERN = Impossible(
    "the chip has no user-defined externs", "compute it in tables and actions, or at a host"
)
COPY_INVALIDATED = Impossible(
    "invalidate is called for a field that was set before; the compiler puts there what it was set"
    " to",
    "invalidate it where it is not set, by conditions in the control",
)


@dataclass(slots=True)
class Run:
    """Reads statements one after another; `operations` has what they do.

    everywhere: how often each variable is read in the whole control; inside: in these statements.
    resolve: gives the place that a place stands for. In an action, what an extern gives can be
    taken twice. called_actions: as in ir.Program; called: the one that
    is read. in_hash: as in ir.Program; block: the one that is read. place: of the statement.
    values: of the variables that take no container; known: of fields that were set. across:
    variables that several actions use, so that what an extern gives them is kept in a container.
    indices: variables that hand an index on to an access.
    """

    everywhere: Counter[ir.Var]
    inside: Counter[ir.Var]
    params: frozenset[ir.Var]
    resolve: Callable[[Place], Place]
    known: KnownValues
    called_actions: Mapping[Span, Span] = field(default_factory=dict)
    in_hash: Mapping[Span, Span] = field(default_factory=dict)
    called: Span | None = None
    block: Span | None = None
    place: Span = NOWHERE
    operations: list[Operation] = field(default_factory=list)
    values: dict[ir.Var, Value] = field(default_factory=dict)
    across: Collection[ir.Var] = ()
    indices: Collection[ir.Var] = ()

    @property
    def in_action(self) -> bool:
        return self.known.in_action

    def take(self, stmts: Iterable[ir.Stmt]) -> None:
        """Read statements. An `if` inside is taken as both of its ways, computed by condition."""
        for stmt in stmts:
            if not self.in_action:
                called = self.called_actions.get(stmt.span)
                if called != self.called:
                    self.known.hashes.clear()
                self.called = called
            self.block = self.in_hash.get(stmt.span)
            self._statement(stmt)

    def again_from(self, at: int, copies: Mapping[object, Value]) -> None:
        """Drop the operations from a number on, and the values known since then."""
        del self.operations[at:]
        self.known.restore(copies)

    def _statement(self, stmt: ir.Stmt) -> None:
        self.place = stmt.span
        match stmt:
            case ir.Assign(target=ir.Var(), value=ir.Zero()):
                pass  # an out parameter that has no value yet
            case ir.Assign(target=target, value=ir.LValue() as e) if isinstance(e.type, Fields):
                self._copy_fields(target, e, stmt.span)
            case ir.Assign(target=target, value=e):
                value = self.value(e)
                if self.block is not None and hashable(value):
                    self._store(target, by_hash(value, stmt), stmt.span)
                    self.known.remember(self._leaves(target), value, self.called is not None)
                elif self._is_in_pieces(target, e, value):
                    self._set_pieces(target, e, stmt.span)
                else:
                    self._store(target, value, stmt.span)
            case ir.SetValid(target=target):
                self._add([p for p in self._leaves(target) if p.of_header], Value(), stmt.span)
            case ir.Push(target=target) | ir.Pop(target=target):
                places = tuple(self._leaves(target))
                self._add(list(places), Value(places), stmt.span)
            case ir.Block(access=ir.ExternInstance() as action):
                self._access(stmt, action)
            case ir.Block(name=ir.SWEEP, body=[ir.Loop(body=[access, *_])]):
                self._statement(access)
            case ir.Block(body=body) | ir.Loop(body=body):
                self.take(body)
            case ir.If(cond=cond, then=then, other=other):
                found = self.value(cond)
                at = len(self.operations)
                self.take(then)
                self.take(other)
                if not found.places or any(p.var not in self.params for p in found.places):
                    for operation in self.operations[at:]:
                        operation.value.places += found.places
                        operation.value.impossible = CONDITION
            case ir.CallExtern():
                self._call(stmt)
            case ir.CallUserExtern():
                self._add([], Value(impossible=USER_EXTERN), stmt.span)

    def value(self, e: ir.Expr) -> Value:
        """Return the value of an expression, read where it comes from."""
        match e:
            case ir.Const() | ir.Zero():
                return Value(sources=1)
            case ir.Var() if e in self.values:
                return self.values[e]
            case ir.SliceOf(base=base) if not any(True for _ in leaves(e)):
                return self.value(base)
            case ir.SliceOf(base=ir.Var() as base) if base in self.values:
                return self.values[base]
            case ir.SliceOf(base=ir.FieldOf() | ir.Var() as base) if self._is_copy(base):
                return self.value(base)
            case ir.Cast(operand=x):
                return self.value(x)
            case ir.Binary(op="+" | "-", left=ir.Binary(op="+" | "-") as first, right=ir.Const()):
                if isinstance(first.right, ir.Const):
                    return self.value(first)  # the compiler adds the numbers up
            case ir.FieldOf() | ir.Var() if (copy := self._copy(e)) is not None:
                return copy
            case ir.LValue() | ir.IsValid():
                places = tuple(self._reads(e))
                return Value(places, sources=1, ages=dict.fromkeys(places, len(self.operations)))
        if isinstance(e, ir.Mux) and is_extreme(e):
            found = all_of(self._operands([e.then, e.other]))
            found.steps += 1
            return found
        found = all_of(self._operands(list(operands(e))))
        apply_operator(e, found, self._is_data)
        if isinstance(e, ir.Binary) and e.op in ARITHMETIC:
            self._refuse_widened([e.left, e.right], found)
        return found

    def _refuse_widened(self, exprs: Sequence[ir.Expr], found: Value) -> None:
        """Note that an operation cannot have an operand that is a narrower field of a header: in
        its container, other fields are where the leading zeros would be."""
        for e in exprs:
            if not isinstance(e, ir.Cast) or isinstance(e.operand, ir.SliceOf):
                continue
            for place in leaves(e.operand):
                place = self.resolve(place)
                wider = place.width < (bit_width(e.type) or 0) and place.bits % 8 == 0
                own = "intrinsic" not in str(place.var.type)
                if wider and own and header_bytes(place) is not None:
                    found.impossible = narrow_operand(place.name)

    def _operands(self, exprs: Sequence[ir.Expr]) -> list[Value]:
        """Return the values of operands. In a statement, one that a hash or an access gives goes
        with a field into an operation, unless a statement before has accessed it; others are put
        into variables first."""
        values = [self.value(e) for e in exprs]
        if self.in_action or self.called is not None:
            return values
        given = [n for n, value in enumerate(values) if is_given(value)]
        field_ = any(value.places for n, value in enumerate(values) if n not in given)
        for n in given:
            use = values[n].uses[-1]
            before = use.instance.kind != "hash" and not _within(use.span, self.place)
            if before or n != given[-1] or not field_:
                field_ = True
                values[n] = self._kept(exprs[n], use.span)
                if isinstance(name := exprs[n], ir.Var):
                    self.values[name] = values[n]
        return values

    def _is_data(self, e: ir.Expr) -> bool:
        """Return whether an expression has only parameters of the action."""
        places = self.value(e).places
        return bool(places) and all(p.var in self.params for p in places)

    def _store(self, target: ir.LValue, value: Value, span: Span) -> None:
        if isinstance(target, ir.Var):
            if not self.everywhere[target] and accesses(value):
                self._add([], value, span)  # nothing reads what the access gives
                return
            if self._is_inline(target, value):
                self.values[target] = value
                return
            self.values.pop(target, None)
        places = self._leaves(target)
        if list(value.places) == places and not value.steps and not value.uses:
            return  # a place that stands for itself
        self._add(places, value, span)
        self.known.forget(places)
        self.known.remember(places, value, self.called is not None)

    def _is_inline(self, target: ir.Var, value: Value) -> bool:
        """Return whether a value is read where its variable is, which takes no container then."""
        if self.everywhere[target] != self.inside[target] or (value.uses and target in self.across):
            return False
        once = self.inside[target] == 1 and not value.uses and not value.called
        return value.steps == 0 or value.impossible is not None or once

    def _is_in_pieces(self, target: ir.LValue, e: ir.Expr, value: Value) -> bool:
        """Return whether a statement sets a field in pieces, to what the compiler does not put into
        later statements: to fields put together, a wider one, or bits of a hash. What an action
        does so happens at once."""
        if self.in_action or self.called is not None or target in self.indices:
            return False
        hashed = any(use.instance.kind == "hash" for use in value.uses) and not value.steps
        return len(list(_pieces(e))) > 1 or (hashed and not isinstance(e, ir.Var))

    def _set_pieces(self, target: ir.LValue, e: ir.Expr, span: Span) -> None:
        """Set a field to pieces: those of whole bytes at once, others in a stage each. The zeros in
        front of metadata are there already."""
        places = self._leaves(target)
        pieces = list(_pieces(e))
        if len(pieces) == 1:
            self._add(places, self.value(e), span)
        else:
            widths = (bit_width(piece.type) or 0 for piece in reversed(pieces))
            whole = all((places[0].low + end) % 8 == 0 for end in accumulate(widths, initial=0))
            there = header_bytes(places[0]) is None
            values = [
                self._kept(piece, span)
                for piece in pieces
                if not (there and isinstance(piece, ir.Zero))
            ]
            for value in [all_of(values)] if whole else values:
                self._add(places, value, span)
        self.known.forget(places)

    def _kept(self, piece: ir.Expr, span: Span) -> Value:
        """Return a piece's value; what an extern gives is kept in a variable before."""
        value = self.value(piece)
        if not value.uses:
            return value
        places = tuple(leaves(ir.Var(piece.type, "piece", -1)))
        self._add(list(places), value, span)
        return Value(places, sources=1, called=True)

    def _copy_fields(self, target: ir.LValue, e: ir.LValue, span: Span) -> None:
        """Copy a struct or header, but for the fields that stand for themselves."""
        pairs = zip(self._leaves(target), self._leaves(e), strict=True)
        moved = [(to, source) for to, source in pairs if to != source]
        if moved:
            sources = tuple(source for _, source in moved)
            self._add([to for to, _ in moved], Value(sources, sources=1), span)

    def _copy(self, e: ir.LValue) -> Value | None:
        """Return the value that a statement before has copied to a field."""
        places = self._leaves(e)
        return self.known.get(places[0], self.called is not None) if len(places) == 1 else None

    def _is_copy(self, e: ir.LValue) -> bool:
        """Return whether a field was set to another, or to a hash, without an operation."""
        copy = self._copy(e)
        return copy is not None and not copy.steps

    def _add(self, writes: list[Place], value: Value, span: Span) -> None:
        number = len(self.operations)
        self.operations.append(Operation(writes, value, span, self.called, number, self.block))

    def _leaves(self, e: ir.Expr) -> list[Place]:
        return [self.resolve(place) for place in leaves(e)]

    def _reads(self, e: ir.Expr) -> list[Place]:
        return [self.resolve(place) for place in reads(e)]

    def _index(self, e: ir.Expr | None) -> tuple[str, Value]:
        if e is None:
            return "direct", Value()
        if isinstance(e, ir.Const):
            return "constant", Value()
        found = self.value(e)
        if self._is_data(e):
            return "data", found
        return ("constant" if not found.places and not found.uses else "field"), found

    def _use(
        self,
        instance: ir.ExternInstance,
        index: ir.Expr | None,
        data: Iterable[Place],
        bits: int,
        span: Span,
    ) -> Value:
        """Return the value that an extern gives, which reads its index and data."""
        kind, found = self._index(index)
        width = bit_width(index.type) or 0 if index is not None else 0
        hashed = any(use.instance.kind == "hash" for use in found.uses)
        places = tuple(p for p in found.places if p.var not in self.params)
        inputs = (*places, *data)
        hashes = tuple(u.instance for u in found.uses if u.instance.kind == "hash")
        use = Use(instance, kind, width, inputs, hashed, bits, span, places, hashes)
        given = Value((*found.places, *data), 0, (*found.uses, use), 1)
        if found.steps and kind != "direct":
            given.impossible = INDEX
        return given

    def _access(self, block: ir.Block, action: ir.ExternInstance) -> None:
        """Read the access of a register action: index, packet's numbers, results."""
        register = action.accessed
        assert register is not None, action.name
        access = alu_rules.access_of(block)
        index = access.index
        data = list(dict.fromkeys(p for place in access.data for p in self._sources(place)))
        data = [p for p in data if p.var not in self.params]
        if index is not None:
            known = set(self._reads(index))
            data = [p for p in data if p not in known]
        found = self._use(register, index, data, 32, block.span)
        found.impossible = found.impossible or alu_rules.problem(block, action)
        inside = count_reads(block.body)
        outside = [v for v in access.sets if self.everywhere[v] > inside[v]]
        for var in outside:
            self.values[var] = found
        if not outside:
            self._add([], found, block.span)

    def _sources(self, place: Place) -> tuple[Place, ...]:
        """Return the places that are read for a place: those that it is a copy of."""
        if place.var in self.values:
            return self.values[place.var].places
        place = self.resolve(place)
        copy = self.known.copies.get(place.field) if self.called is None else None
        return (place,) if copy is None or copy.steps or copy.uses else copy.places

    def _call(self, stmt: ir.CallExtern) -> None:
        ins = [a for a, d in zip(stmt.args, stmt.directions, strict=True) if d != "out"]
        outs = [a for a, d in zip(stmt.args, stmt.directions, strict=True) if "out" in d]
        if stmt.instance is None and stmt.name == "invalidate":
            for a in ins:
                copied = isinstance(a, ir.LValue) and self._copy(a) is not None
                value = Value(impossible=COPY_INVALIDATED if copied else None)
                self._add(self._leaves(a), value, stmt.span)
            return
        found = self._given(stmt, ins)
        writes = [p for out in outs for p in self._leaves(out)]
        if stmt.result is not None:
            self._store(stmt.result, found, stmt.span)
        if writes or stmt.result is None:
            self._add(writes, found, stmt.span)

    def _given(self, stmt: ir.CallExtern, ins: Sequence[ir.Expr]) -> Value:
        """Return the value that a function (min, max) or a method of an extern gives."""
        instance = stmt.instance
        if instance is None:
            found = all_of(self._operands(ins))
            self._refuse_widened(ins, found)
            found.steps += 1
            found.sources = 2
            found.carries = found.called = True
            return found
        bits = (bit_width(stmt.result.type) or 32) if stmt.result is not None else 0
        if instance.kind == "hash":
            data = [p for a in ins for p in self.value(a).places]
            use = Use(instance, "field", 0, tuple(dict.fromkeys(data)), True, bits, stmt.span)
            return Value(tuple(data), 0, (use,), 1)
        direct = instance.kind.startswith("direct")
        indexed = instance.kind in ("register", "counter", "meter", "lpf", "wred")
        index = ins[0] if indexed and not direct and ins else None
        if instance.kind in ("lpf", "wred") and len(ins) > 1:
            index = ins[1]
        rest = [a for a in ins if a is not index]
        data = [p for a in rest for p in self.value(a).places if p.var not in self.params]
        return self._use(instance, index, data, bits, stmt.span)


def _pieces(e: ir.Expr) -> Iterator[ir.Expr]:
    """Yield what is put together with `++` or by a cast to a wider type, leading bits first."""
    match e:
        case ir.Binary(op="++", left=left, right=right):
            yield from _pieces(left)
            yield from _pieces(right)
        case ir.Cast(type=Bits(width=wide, signed=False), operand=x) if (
            isinstance(x.type, Bits) and not x.type.signed and x.type.width < wide
        ):
            yield ir.Zero(Bits(wide - x.type.width, False))
            yield from _pieces(x)
        case _:
            yield e


def _within(inner: Span, outer: Span) -> bool:
    """Return whether a place begins in a statement, on its first line."""
    return (inner.file, inner.line) == (outer.file, outer.line) and inner.column >= outer.column
