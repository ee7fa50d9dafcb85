"""Random programs: a compiled frame whose ingress is replaced by random IR.

Expressions of all operators over all widths from 1 to 129, both signs; assignments to fields,
slices, stack elements and union members; control flow.
"""

from __future__ import annotations

import random

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import BOOL, Bits, Bool, Fields, Header, Stack, Type

WIDE = (192, 255, 256, 257, 320, 512, 1000)
EDGES = (1, 2, 7, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 127, 128, 129)

FRAME = """
#include <core.p4>
#include <v1model.p4>
header fields_t {{ {fields} }}
header item_t {{ bit<8> a; int<16> b; }}
header left_t {{ bit<24> x; }}
header right_t {{ bit<8> y; bit<40> z; }}
header_union either_t {{ left_t left; right_t right; }}
struct headers_t {{ fields_t f; item_t[3] items; either_t u; }}
struct pair_t {{ bit<12> p; int<9> q; }}
struct meta_t {{ bit<32> i; bool yes; pair_t pair; bit<3> small; }}
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {{
    state start {{
        packet.extract(h.f);
        m.i = (bit<32>) h.f.f7;
        transition items;
    }}
    state items {{
        packet.extract(h.items.next);
        transition select(h.items.last.a[0:0]) {{ 0: items; default: union; }}
    }}
    state union {{ packet.extract(h.u.right); transition accept; }}
}}
control V(inout headers_t h, inout meta_t m) {{ apply {{ }} }}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}
control C(inout headers_t h, inout meta_t m) {{ apply {{ }} }}
control D(packet_out packet, in headers_t h) {{ apply {{ packet.emit(h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def random_width(rng: random.Random) -> int:
    kind = rng.randrange(20)
    if not kind:
        return rng.choice(WIDE)
    return rng.choice(EDGES) if kind % 2 else rng.randrange(1, 130)


def random_program(rng: random.Random, statements: int = 12) -> ir.Program:
    """Return a program whose ingress is random."""
    widths = [random_width(rng) for _ in range(7)]
    types = [(width, bool(rng.randrange(2)) and width > 1) for width in widths]
    total = sum(width for width, _ in types)
    types.append((8 - total % 8, False))
    names = [f"{'int' if s else 'bit'}<{w}> f{i};" for i, (w, s) in enumerate(types)]
    text = FRAME.format(fields=" ".join(names))
    program = compile_program("random.p4", text=text)
    ingress = program.package.args["ig"]
    assert isinstance(ingress, ir.Control)
    ingress.body[:] = _Writer(rng, ingress).body(statements, 3)
    ingress.body.append(_Writer(rng, ingress).port())
    return program


class _Writer:
    def __init__(self, rng: random.Random, control: ir.Control) -> None:
        self.rng = rng
        self.headers, self.meta, self.standard = (p.var for p in control.params)
        self.places = list(self._scalars(self.headers)) + list(self._scalars(self.meta))
        self.blocks: list[ir.Block] = []

    def port(self) -> ir.Stmt:
        spec = _field(self.standard, "egress_spec")
        return ir.Assign(spec, ir.Const(spec.type, 1))

    def body(self, count: int, depth: int) -> list[ir.Stmt]:
        return [self.statement(depth) for _ in range(count)]

    # -- statements -----------------------------------------------------------------------------

    def statement(self, depth: int) -> ir.Stmt:
        kinds = ["assign"] * 8 + ["slice", "item", "stack", "union", "valid", "header"]
        if depth:
            kinds += ["if", "if", "switch", "block", "leave", "loop"]
        kind = self.rng.choice(kinds)
        return getattr(self, f"_{kind}")(depth)  # type: ignore[no-any-return]

    def _assign(self, depth: int) -> ir.Stmt:
        target = self.rng.choice(self.places)
        return ir.Assign(target, self.value(target.type, 3))

    def _slice(self, depth: int) -> ir.Stmt:
        target = self.rng.choice([p for p in self.places if isinstance(p.type, Bits)])
        assert isinstance(target.type, Bits)
        lo = self.rng.randrange(target.type.width)
        hi = self.rng.randrange(lo, target.type.width)
        t = Bits(hi - lo + 1)
        return ir.Assign(ir.SliceOf(t, target, hi, lo), self.value(t, 2))

    def _item(self, depth: int) -> ir.Stmt:
        """Return a field of an element chosen while the program runs."""
        stack = _field(self.headers, "items")
        assert isinstance(stack.type, Stack)
        item = ir.ElementOf(stack.type.element, stack, self.value(Bits(3), 1))
        target = _field(item, self.rng.choice("ab"))
        return ir.Assign(target, self.value(target.type, 2))

    def _header(self, depth: int) -> ir.Stmt:
        """Return a whole header: from an element or made."""
        stack = _field(self.headers, "items")
        assert isinstance(stack.type, Stack)
        t = stack.type.element
        assert isinstance(t, Header)
        target = ir.ElementOf(t, stack, ir.Const(Bits(32), self.rng.randrange(3)))
        if self.rng.randrange(2):
            return ir.Assign(target, ir.ElementOf(t, stack, self.value(Bits(2), 1)))
        return ir.Assign(target, ir.Make(t, [self.value(f.type, 1) for f in t.fields]))

    def _stack(self, depth: int) -> ir.Stmt:
        kind = self.rng.choice([ir.Push, ir.Pop])
        return kind(_field(self.headers, "items"), self.rng.randrange(1, 5))

    def _union(self, depth: int) -> ir.Stmt:
        target = _field(_field(self.headers, "u"), self.rng.choice(["left", "right"]))
        if self.rng.randrange(2):
            return ir.SetValid(target, bool(self.rng.randrange(2)))
        t = target.type
        assert isinstance(t, Header)
        return ir.Assign(target, ir.Make(t, [self.value(f.type, 1) for f in t.fields]))

    def _valid(self, depth: int) -> ir.Stmt:
        stack = _field(self.headers, "items")
        assert isinstance(stack.type, Stack)
        index = self.value(Bits(2), 1)
        target = ir.ElementOf(stack.type.element, stack, index)
        return ir.SetValid(target, bool(self.rng.randrange(2)))

    def _if(self, depth: int) -> ir.Stmt:
        return ir.If(self.value(BOOL, 2), self.body(2, depth - 1), self.body(1, depth - 1))

    def _switch(self, depth: int) -> ir.Stmt:
        t = Bits(self.rng.choice([2, 3, 9]))
        values = self.rng.sample(range(1 << t.width), 3)
        cases = [(values[:1], self.body(1, depth - 1)), (values[1:], self.body(1, depth - 1))]
        return ir.SwitchStmt(self.value(t, 2), cases, self.body(1, depth - 1))

    def _block(self, depth: int) -> ir.Stmt:
        block = ir.Block([])
        self.blocks.append(block)
        block.body += self.body(3, depth - 1)
        self.blocks.pop()
        return block

    def _leave(self, depth: int) -> ir.Stmt:
        if not self.blocks:
            return self._assign(depth)
        return ir.If(self.value(BOOL, 1), [ir.Leave(self.rng.choice(self.blocks))], [])

    def _loop(self, depth: int) -> ir.Stmt:
        """Return a handful of rounds: a counter of four bits runs to zero."""
        counter = _field(self.meta, "small")
        end = ir.Block([])
        self.blocks.append(end)
        less = ir.Binary(counter.type, "-", counter, ir.Const(counter.type, 1))
        stop = ir.Binary(BOOL, "==", counter, ir.Const(counter.type, 0))
        places, self.places = self.places, [p for p in self.places if not _same(p, counter)]
        body = [ir.Assign(counter, less), *self.body(1, 0), ir.If(stop, [ir.Leave(end)], [])]
        self.places = places
        self.blocks.pop()
        end.body.append(ir.Loop(body))
        return end

    # -- expressions ----------------------------------------------------------------------------

    def value(self, t: Type, depth: int) -> ir.Expr:
        """Return a random expression of a scalar type."""
        if isinstance(t, Bool):
            return self._bool(depth)
        assert isinstance(t, Bits), t
        if not depth or not self.rng.randrange(6):
            return self._leaf(t)
        kinds = ["arithmetic"] * 5 + ["unary", "shift", "shift", "cast", "cast", "mux"]
        if not t.signed:
            kinds += ["slice", "slice"] + ["concat"] * 2 * (t.width > 1)
        return getattr(self, f"_{self.rng.choice(kinds)}_of")(t, depth - 1)  # type: ignore[no-any-return]

    def _leaf(self, t: Bits) -> ir.Expr:
        same = [p for p in self.places if p.type == t]
        if same and self.rng.randrange(4):
            return self.rng.choice(same)
        others = [p for p in self.places if isinstance(p.type, Bits)]
        if self.rng.randrange(2):
            return self._converted(self.rng.choice(others), t)
        low, high = limits(t)
        edges = [low, high, 0, min(1, high), max(-1, low), self.rng.randint(low, high)]
        return ir.Const(t, self.rng.choice(edges))

    def _converted(self, e: ir.Expr, t: Bits) -> ir.Expr:
        """Convert by the casts of the language: width and sign are not changed at once."""
        assert isinstance(e.type, Bits)
        if e.type.signed != t.signed and e.type.width != t.width:
            e = ir.Cast(Bits(t.width, e.type.signed), e)
        return e if e.type == t else ir.Cast(t, e)

    def _arithmetic_of(self, t: Bits, depth: int) -> ir.Expr:
        ops = ["+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"]
        return ir.Binary(t, self.rng.choice(ops), self.value(t, depth), self.value(t, depth))

    def _unary_of(self, t: Bits, depth: int) -> ir.Expr:
        return ir.Unary(t, self.rng.choice("-~"), self.value(t, depth))

    def _shift_of(self, t: Bits, depth: int) -> ir.Expr:
        op, amount = self.rng.choice(["<<", ">>"]), Bits(self.rng.choice([1, 3, 8, 9, 32, 129]))
        if self.rng.randrange(2):
            right: ir.Expr = ir.Const(Bits(32), self.rng.randrange(t.width + 3))
        else:
            right = self.value(amount, depth)
        return ir.Binary(t, op, self.value(t, depth), right)

    def _cast_of(self, t: Bits, depth: int) -> ir.Expr:
        if t.width == 1 and not t.signed and self.rng.randrange(2):
            return ir.Cast(t, self._bool(depth))
        width = random_width(self.rng)
        signed = t.signed if width != t.width else not t.signed
        return ir.Cast(t, self.value(Bits(width, signed), depth))

    def _mux_of(self, t: Bits, depth: int) -> ir.Expr:
        return ir.Mux(t, self._bool(depth), self.value(t, depth), self.value(t, depth))

    def _slice_of(self, t: Bits, depth: int) -> ir.Expr:
        lo, more = self.rng.randrange(40), self.rng.randrange(5)
        wide = Bits(t.width + lo + more, bool(self.rng.randrange(2)))
        return ir.SliceOf(t, self.value(wide, depth), lo + t.width - 1, lo)

    def _concat_of(self, t: Bits, depth: int) -> ir.Expr:
        left = self.rng.randrange(1, t.width)
        right = Bits(t.width - left, bool(self.rng.randrange(2)))
        return ir.Binary(t, "++", self.value(Bits(left), depth), self.value(right, depth))

    def _bool(self, depth: int) -> ir.Expr:
        kind = self.rng.randrange(8 if depth else 3)
        if kind == 0:
            return ir.Const(BOOL, bool(self.rng.randrange(2)))
        if kind == 1:
            return ir.IsValid(BOOL, _field(_field(self.headers, "u"), "right"))
        if kind == 2:
            return _field(self.meta, "yes")
        if kind == 3:
            op = self.rng.choice(["&&", "||"])
            return ir.Binary(BOOL, op, self._bool(depth - 1), self._bool(depth - 1))
        if kind == 4:
            return ir.Unary(BOOL, "!", self._bool(depth - 1))
        place = self.rng.choice(self.places)
        t = place.type if isinstance(place.type, Bits) else Bits(self.rng.choice(EDGES))
        op = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        return ir.Binary(BOOL, op, self.value(t, depth - 1), self.value(t, depth - 1))

    def _scalars(self, e: ir.LValue) -> list[ir.LValue]:
        """Yield every scalar inside a value, elements at fixed positions included."""
        if isinstance(e.type, Bits | Bool):
            return [e]
        if isinstance(e.type, Stack):
            element, indices = e.type.element, range(e.type.size)
            parts = [ir.ElementOf(element, e, ir.Const(Bits(32), i)) for i in indices]
            return [s for part in parts for s in self._scalars(part)]
        assert isinstance(e.type, Fields)
        return [s for f in e.type.fields for s in self._scalars(_field(e, f.name))]


def _field(base: ir.LValue, name: str) -> ir.FieldOf:
    assert isinstance(base.type, Fields)
    index = base.type.index(name)
    assert index is not None, name
    return ir.FieldOf(base.type.fields[index].type, base, index, name)


def _same(a: ir.LValue, b: ir.FieldOf) -> bool:
    return isinstance(a, ir.FieldOf) and a.base is b.base and a.name == b.name
