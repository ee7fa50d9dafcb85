"""Expressions and places as LLVM code.

`value(e)` gives the operand of a scalar, `address(e)` a composite's address for reading,
`place(lvalue)` the address for writing. Varbits are composites here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import Array, Bits, Bool, Header, Stack, Type, Union, Varbit
from gradplane.switch.ir.walk import within
from gradplane.switch.jit.llvm_text import Function, Module, Operand, bring_division, bring_wide
from gradplane.switch.jit.value_layout import Layouts, container, scalar_width
from gradplane.switch.source import NOWHERE

INLINE = 128  # bits up to which products and quotients are computed in line
WIDEST = 2048  # bits up to which LLVM computes them: its code for them grows with the square


@dataclass(slots=True)
class Unit:
    """A program being compiled, which its functions share. groups, sessions: how many multicast
    groups and clone sessions can exist."""

    module: Module
    layouts: Layouts
    errors: dict[str, int]
    drop_port: int
    groups: int
    sessions: int
    _numbers: dict[int, tuple[Type, int]] = field(default_factory=dict)

    def number(self, t: Type) -> int:
        """Return a number that is unique to a type object."""
        return self._numbers.setdefault(id(t), (t, len(self._numbers)))[1]


class Expressions:
    """Compiles expressions into a function. `places`: the addresses of variables; `parts`: those of
    the fields of structs that lie by themselves; `zeros`: scalar variables that are 0 for certain.
    """

    def __init__(self, unit: Unit, function: Function, places: dict[ir.Var, Operand]) -> None:
        self.unit = unit
        self.layouts = unit.layouts
        self.f = function
        self.places = places
        self.parts: dict[ir.Var, Sequence[Operand]] = {}
        self.zeros: set[ir.Var] = set()
        self.span = NOWHERE  # of the statement being compiled

    # -- scalars --------------------------------------------------------------------------------

    def value(self, e: ir.Expr) -> Operand:
        """Return an operand of type i<scalar_width>."""
        operand: Operand = _VALUES[type(e)](self, e)
        return operand

    def number(self, e: ir.Expr, width: int) -> Operand:
        """Return a value as an integer of another width, extended by its own sign."""
        signed = isinstance(e.type, Bits) and e.type.signed
        return self.f.resize(self.value(e), scalar_width(e.type), width, signed)

    def load(self, t: Type, address: Operand, region: str = "") -> Operand:
        """Return the scalar at an address; `region` as in Function.load."""
        width, bits = scalar_width(t), container(scalar_width(t))
        loaded = self.f.load(f"i{bits}", address, min(bits // 8, 8), region)
        return self.f.resize(loaded, bits, width)

    def put(self, t: Type, value: Operand, address: Operand, region: str = "") -> None:
        """Write a scalar to an address."""
        width, bits = scalar_width(t), container(scalar_width(t))
        number = self.f.resize(value, width, bits)
        self.f.store(f"i{bits}", number, address, min(bits // 8, 8), region)

    def store(self, target: ir.LValue, value: Operand) -> None:
        """Write a scalar to a place."""
        if isinstance(target, ir.SliceOf):
            self._store_slice(target, value)
        else:
            self.put(target.type, value, self.place(target))

    def store_number(self, target: ir.LValue, value: Operand, width: int) -> None:
        """Write an unsigned number of some width, cut or extended to the target's."""
        if isinstance(target.type, Bool):
            self.store(target, self.f.compare("ne", f"i{width}", value, 0))
        else:
            self.store(target, self.f.resize(value, width, scalar_width(target.type)))

    def _store_slice(self, target: ir.SliceOf, value: Operand) -> None:
        base, width = target.base, scalar_width(target.base.type)
        assert isinstance(base, ir.LValue), base
        size = target.hi - target.lo + 1
        kind, keep = f"i{width}", ~(((1 << size) - 1) << target.lo)
        old = self.f.binary("and", kind, self.value(base), _signed(keep, width))
        new = self.f.binary("shl", kind, self.f.resize(value, size, width), target.lo)
        self.store(base, self.f.binary("or", kind, old, new))

    def lengths_equal(self, e: ir.Binary) -> Operand:
        """Compare two varbits: equal if their lengths and values are."""
        a, b = self.address(e.left), self.address(e.right)
        same = self.f.compare("eq", "i32", self.f.load("i32", a), self.f.load("i32", b))
        t = Bits(_varbit_width(e.left.type))
        left, right = (self.load(t, self.f.add(x, 8)) for x in (a, b))
        equal = self.f.compare("eq", f"i{scalar_width(t)}", left, right)
        return self.f.binary("and", "i1", same, equal)

    # -- composites -----------------------------------------------------------------------------

    def address(self, e: ir.Expr) -> Operand:
        """Return the address of a composite value, which the next statement may change."""
        match e:
            case ir.Zero():
                return self.f.module.zeros(self.layouts.of(e.type).size)
            case ir.Make():
                return self._make(e)
            case ir.Mux():
                return self._choose(e, "ptr", self.address)
        assert isinstance(e, ir.LValue), e
        return self._locate(e, self._zeros)

    def place(self, target: ir.LValue) -> Operand:
        """Return the address to write to; beyond the end of a stack, one that is not read."""
        if isinstance(target, ir.Var):
            self.zeros.discard(target)
        return self._locate(target, self._scratch)

    def _locate(self, e: ir.Expr, beyond: Callable[[Type], Operand]) -> Operand:
        match e:
            case ir.Var():
                return self.places[e]
            case ir.FieldOf(base=ir.Var() as base, index=index) if base in self.parts:
                return self.parts[base][index]
            case ir.FieldOf(base=base, index=index):
                inner = base if isinstance(base, ir.LValue) else None
                start = self.address(base) if inner is None else self._locate(inner, beyond)
                return self.f.add(start, self.layouts.of(base.type).offsets[index])
            case ir.ElementOf():
                return self._element(e, beyond)
            case ir.NextOf() | ir.LastOf():
                return self._stack_end(e, beyond)
        return self.address(e)

    def _element(self, e: ir.ElementOf, beyond: Callable[[Type], Operand]) -> Operand:
        assert isinstance(e.base.type, Array), e.base.type
        size = e.base.type.size
        if isinstance(e.index, ir.Const):
            at = int(e.index.value)
            if not 0 <= at < size:
                return beyond(e.type)
            return self.item(e.base.type, self._locate(e.base, beyond), at)
        width = scalar_width(e.index.type)
        number = self.value(e.index)
        stack = self._locate(e.base, beyond)
        # Compared unsigned, so a negative index is out of range too.
        if not size:
            return beyond(e.type)
        wide = max(width, 64)
        index = self.f.resize(number, width, wide, is_signed(e.index.type))
        if 1 << width <= size and not is_signed(e.index.type):  # always inside
            return self.item(e.base.type, stack, self.f.resize(index, wide, 64))
        inside = self.f.compare("ult", f"i{wide}", index, size)
        safe = self.f.select(inside, "i64", self.f.resize(index, wide, 64), 0)
        item = self.item(e.base.type, stack, safe)
        return self.f.select(inside, "ptr", item, beyond(e.type))

    def item(self, t: Array, stack: Operand, index: Operand | int) -> Operand:
        """Return the address of an array's or a stack's item."""
        start, size = self.layouts.of(t).offsets[0], self.layouts.of(t.element).size
        if isinstance(index, int):
            return self.f.add(stack, start + index * size)
        return self.f.add(self.f.add(stack, start), self.f.binary("mul", "i64", index, size))

    def _stack_end(self, e: ir.NextOf | ir.LastOf, beyond: Callable[[Type], Operand]) -> Operand:
        assert isinstance(e.base.type, Stack), e.base.type
        stack = self._locate(e.base, beyond)
        index = self.f.resize(self.f.load("i32", stack), 32, 64)
        if isinstance(e, ir.LastOf):
            index = self.f.binary("sub", "i64", index, 1)
        inside = self.f.compare("ult", "i64", index, e.base.type.size)
        with self.f.unless(inside):
            self.reject(self.unit.errors.get("StackOutOfBounds", 0))
        return self.item(e.base.type, stack, index)

    def reject(self, code: Operand | int) -> None:
        """End parsing with an error; for parsers only."""
        raise AssertionError("stack.next and stack.last are for parsers")

    def _zeros(self, t: Type) -> Operand:
        return self.f.module.zeros(self.layouts.of(t).size)

    def _scratch(self, t: Type) -> Operand:
        place = self.layouts.of(t)
        scratch = self.f.alloca(place.size)
        self.f.clear(scratch, place.size)
        return scratch

    def _make(self, e: ir.Make) -> Operand:
        place = self.layouts.of(e.type)
        target = self.f.alloca(place.size)
        offsets = place.offsets
        if isinstance(e.type, Array):
            offsets = tuple(range(0, place.size, self.layouts.of(e.type.element).size))
        for part, offset in zip(e.fields, offsets, strict=True):
            self.write(part, self.f.add(target, offset))
        if isinstance(e.type, Header):
            self.f.store("i8", 1, self.f.add(target, place.valid))
        return target

    def write(self, e: ir.Expr, target: Operand) -> None:
        """Write any value to an address."""
        if is_scalar(e.type):
            self.put(e.type, self.value(e), target)
        else:
            self.f.copy(target, self.address(e), self.layouts.of(e.type).size)

    def valid(self, header: Operand, t: Type) -> Operand:
        """Return whether the header at an address is valid, as i1."""
        flag = self.f.load("i8", self.f.add(header, self.layouts.of(t).valid))
        return self.f.compare("ne", "i8", flag, 0)

    # -- one a node -----------------------------------------------------------------------------

    def _const(self, e: ir.Const) -> Operand:
        assert not isinstance(e.value, str), e.value
        return str(_signed(int(e.value), scalar_width(e.type)))

    def _zero(self, e: ir.Zero) -> Operand:
        return "0"

    def _read(self, e: ir.LValue) -> Operand:
        return self.load(e.type, self._locate(e, self._zeros))

    def _slice(self, e: ir.SliceOf) -> Operand:
        width = scalar_width(e.base.type)
        shifted = self.f.binary("lshr", f"i{width}", self.value(e.base), e.lo)
        return self.f.resize(shifted, width, e.hi - e.lo + 1)

    def _last_index(self, e: ir.LastIndex) -> Operand:
        return self.f.binary("sub", "i32", self.f.load("i32", self.address(e.base)), 1)

    def _is_valid(self, e: ir.IsValid) -> Operand:
        base, t = self.address(e.base), e.base.type
        if not isinstance(t, Union):
            return self.valid(base, t)
        found: Operand = "false"
        for member, offset in zip(t.fields, self.layouts.of(t).offsets, strict=True):
            one = self.valid(self.f.add(base, offset), member.type)
            found = self.f.binary("or", "i1", found, one)
        return found

    def _unary(self, e: ir.Unary) -> Operand:
        kind, operand = f"i{scalar_width(e.type)}", self.value(e.operand)
        if e.op == "-":
            return self.f.op(f"sub {kind} 0, {operand}")
        if e.op == "+":
            return operand
        return self.f.binary("xor", kind, operand, -1 if kind != "i1" else "true")

    def _binary(self, e: ir.Binary) -> Operand:
        if e.op in ("&&", "||"):
            return self._logical(e)
        if e.op == "++":
            return self._concat(e)
        if isinstance(e.left.type, Varbit):
            equal = self.lengths_equal(e)
            return equal if e.op == "==" else self.f.binary("xor", "i1", equal, "true")
        if isinstance(e.type, Bits) and e.type.width == 0:
            return "0"
        left, right = self.value(e.left), self.value(e.right)
        signed = isinstance(e.left.type, Bits) and e.left.type.signed
        width = scalar_width(e.left.type)
        if e.op in _COMPARISONS:
            how = _COMPARISONS[e.op]
            prefix = "" if how in ("eq", "ne") else "s" if signed else "u"
            return self.f.compare(prefix + how, f"i{width}", left, right)
        if e.op in ("<<", ">>"):
            return self._shift(e, left, right, width, signed)
        if e.op in ("/", "%"):
            return self.divide(e.op, left, right, width, signed)
        if e.op in _SATURATING:
            name = f"llvm.{'s' if signed else 'u'}{_SATURATING[e.op]}.sat.i{width}"
            return self.f.intrinsic(name, f"i{width}", (f"i{width}", left), (f"i{width}", right))
        return self._instruction(_PLAIN[e.op], width, left, right)

    def _logical(self, e: ir.Binary) -> Operand:
        """Compute && or ||: both operands, which are pure, unless the second may end parsing."""
        if not may_reject(e.right):
            op = "and" if e.op == "&&" else "or"
            return self.f.binary(op, "i1", self.value(e.left), self.value(e.right))
        result = self.f.variable("i1", self.value(e.left))
        guard = self.f.when if e.op == "&&" else self.f.unless
        with guard(result.get()):
            result.set(self.value(e.right))
        return result.get()

    def _concat(self, e: ir.Binary) -> Operand:
        left, right = self.value(e.left), self.value(e.right)
        assert isinstance(e.left.type, Bits) and isinstance(e.right.type, Bits), e
        if not e.right.type.width or not e.left.type.width:
            return left if e.left.type.width else right
        to, kind = scalar_width(e.type), f"i{scalar_width(e.type)}"
        high = self.f.resize(left, e.left.type.width, to)
        low = self.f.resize(right, e.right.type.width, to)
        return self.f.binary("or", kind, self.f.binary("shl", kind, high, e.right.type.width), low)

    def _shift(
        self, e: ir.Binary, left: Operand, right: Operand, width: int, signed: bool
    ) -> Operand:
        amount_width, kind = scalar_width(e.right.type), f"i{width}"
        amount = self.f.resize(right, amount_width, width)
        inside: Operand = "true"
        if (1 << amount_width) > width:
            inside = self.f.compare("ult", f"i{amount_width}", right, width)
        if e.op == ">>" and signed:
            amount = self.f.select(inside, kind, amount, width - 1)
            return self.f.binary("ashr", kind, left, amount)
        # The amount is made harmless before the shift: a shift too far is undefined in LLVM.
        amount = self.f.select(inside, kind, amount, 0)
        shifted = self.f.binary("shl" if e.op == "<<" else "lshr", kind, left, amount)
        return self.f.select(inside, kind, shifted, 0)

    def divide(self, op: str, left: Operand, right: Operand, width: int, signed: bool) -> Operand:
        """Return the quotient or remainder, 0 where the divisor is 0; truncates toward zero."""
        kind = f"i{width}"
        usable = self.f.compare("ne", kind, right, 0)
        if signed:  # the least value by -1 overflows: -1 is handled separately
            minus = self.f.compare("eq", kind, right, _signed(-1, width))
            usable = self.f.select(minus, "i1", "false", usable)
        divisor = self.f.select(usable, kind, right, 1)
        instruction = ("s" if signed else "u") + ("div" if op == "/" else "rem")
        if width > 64:
            bring_division(self.unit.module)
        result = self._instruction(instruction, width, left, divisor)
        result = self.f.select(usable, kind, result, 0)
        if signed and op == "/":
            negated = self.f.op(f"sub {kind} 0, {left}")
            result = self.f.select(minus, kind, negated, result)
        return result

    def _instruction(self, op: str, width: int, left: Operand, right: Operand) -> Operand:
        """Write one instruction; a long expansion for wide numbers becomes a function."""
        kind = f"i{width}"
        if op not in _LONG or width <= INLINE:
            return self.f.binary(op, kind, left, right)
        name, module = f"{op}.{kind}", self.unit.module
        if width > WIDEST:
            name = bring_wide(module, op, width)
        elif not module.has(name):
            f = module.function(name, kind, [(kind, "%a"), (kind, "%b")], attributes="noinline ")
            f.ret(f.binary(op, kind, "%a", "%b"))
        return self.f.call(kind, name, (kind, left), (kind, right))

    def _mux(self, e: ir.Mux) -> Operand:
        return self._choose(e, f"i{scalar_width(e.type)}", self.value)

    def _choose(self, e: ir.Mux, kind: str, get: Callable[[ir.Expr], Operand]) -> Operand:
        cond = self.value(e.cond)
        if not (may_reject(e.then) or may_reject(e.other)):
            return self.f.select(cond, kind, get(e.then), get(e.other))
        result = self.f.variable(kind, "zeroinitializer")
        then, other, end = (self.f.label() for _ in range(3))
        self.f.branch(cond, then, other)
        for label, part in ((then, e.then), (other, e.other)):
            self.f.at(label)
            result.set(get(part))
            self.f.go(end)
        self.f.at(end)
        return result.get()

    def _cast(self, e: ir.Cast) -> Operand:
        source, target = e.operand.type, e.type
        operand = self.value(e.operand)
        if isinstance(target, Bool) or isinstance(source, Bool):
            width = scalar_width(source)
            if isinstance(target, Bool):
                return self.f.compare("ne", f"i{width}", operand, 0)
            return self.f.resize(operand, 1, scalar_width(target))
        assert isinstance(source, Bits) and isinstance(target, Bits), e
        if not source.width or not target.width:
            return "0"
        return self.f.resize(operand, source.width, target.width, source.signed)


def is_scalar(t: Type) -> bool:
    return isinstance(t, Bits | Bool)


def is_signed(t: Type) -> bool:
    return isinstance(t, Bits) and t.signed


def may_reject(e: ir.Expr) -> bool:
    """Return whether evaluating an expression can end parsing: stack.next and stack.last can."""
    return any(isinstance(part, ir.NextOf | ir.LastOf) for part in within(e))


def _varbit_width(t: Type) -> int:
    assert isinstance(t, Varbit), t
    return t.width


def _signed(value: int, width: int) -> int:
    """Return a constant as LLVM reads it: modulo 2^width, from -2^(width-1)."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SATURATING = {"|+|": "add", "|-|": "sub"}
_LONG = frozenset({"mul", "udiv", "urem", "sdiv", "srem"})
_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}

_VALUES: dict[type[ir.Expr], Callable[..., Operand]] = by_class(
    ir.Expr,
    {
        ir.Const: Expressions._const,
        ir.Zero: Expressions._zero,
        ir.LValue: Expressions._read,
        ir.SliceOf: Expressions._slice,
        ir.LastIndex: Expressions._last_index,
        ir.IsValid: Expressions._is_valid,
        ir.Unary: Expressions._unary,
        ir.Binary: Expressions._binary,
        ir.Mux: Expressions._mux,
        ir.Cast: Expressions._cast,
        ir.Make: Expressions._zero,
    },
)
