"""BMv2's expressions, which compute with integers of any size, as expressions with widths.

What is cut to some bits is computed with that many: the low bits of a sum need the low bits of its
operands only. Everything else gets a type with room for its range, which follows from the fields'
widths:

    (a + b) & 0xff      of 8-bit fields: an 8-bit addition
    a + b > c           a 9-bit addition
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradplane.switch.frontends.bmv2.items import Item
from gradplane.switch.frontends.bmv2.layout import VALID, Scope
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Fields, Header, Stack, Struct, Type, Union, Varbit

WIDEST = 1 << 16  # bits of a number; more come from shifts by an amount that has no bound
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_TRUTHS = (*_COMPARISONS, "not", "and", "or", "d2b", "valid", "valid_union")
_RING = ("+", "-", "*", "&", "|", "^")  # low bits of the result need low bits of the operands
_INDEX = Bits(32)


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a number."""

    low: int
    high: int

    @property
    def type(self) -> Bits:
        """The narrowest type with room for it; unsigned if it can be."""
        if self.low >= 0:
            return Bits(max(1, self.high.bit_length()))
        return Bits(max(self.high.bit_length(), (~self.low).bit_length()) + 1, True)

    def joined(self, other: Range) -> Range:
        """Return the range of both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def range_of(t: Type) -> Range:
    """Return the range of a type."""
    if not isinstance(t, Bits):
        return Range(0, 1)
    if t.signed:
        return Range(-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1)
    return Range(0, (1 << t.width) - 1)


def constant(t: Type, value: int) -> ir.Const:
    """Return a number of a type, modulo its width."""
    assert isinstance(t, Bits), t
    value &= (1 << t.width) - 1
    if t.signed and value >> (t.width - 1):
        value -= 1 << t.width
    return ir.Const(t, value)


def cast(e: ir.Expr, t: Type) -> ir.Expr:
    """Return a number in another type, modulo its width."""
    if e.type == t:
        return e
    if isinstance(e, ir.Const):
        return constant(t, int(e.value))
    return ir.Cast(t, e)


class Expressions:
    """Translates the expressions of one block, in an action with its parameters."""

    def __init__(self, scope: Scope, parameters: Sequence[ir.Var] = ()) -> None:
        self.scope = scope
        self._parameters = parameters
        self._ranges: dict[int, tuple[object, Range]] = {}

    # -- numbers --------------------------------------------------------------------------------

    def number(self, item: Item) -> ir.Expr:
        """Return the exact value, in the narrowest type that has room for it or a field's own."""
        item = unwrapped(item)
        if item.kind() != "expression":
            return self._leaf(item)
        t = self._range(item).type
        if t.width > WIDEST:
            raise item.refuse(f"this number can have {t.width} bits; {WIDEST} is the most")
        value = item["value"]
        op, left, right = _operands(value)
        match op:
            case ">>" | "/" | "%":
                a, b = self.number(_there(left, value)), self.number(_there(right, value))
                return self._shifted(a, b) if op == ">>" else _binary(op, *_unified(a, b))
            case "last_stack_index":
                return ir.LastIndex(_INDEX, self._stack(_there(right, value)))
            case "size_stack":
                stack = self._stack(_there(right, value))
                return _binary("+", ir.LastIndex(_INDEX, stack), ir.Const(_INDEX, 1))
            case "access_field":
                return self._accessed(value)
            case "b2d":
                return _as_bit(self.truth(_there(right, value)))
            case "usat_cast" | "sat_cast":
                return self._saturated(op, _there(left, value), _there(right, value))
            case "two_comp_mod":
                width = _width(_there(right, value))
                return cast(self.low(_there(left, value), width), Bits(width, True))
            case "?":
                cond = self.truth(value["cond"])
                then, other = _unified(
                    self.number(_there(left, value)), self.number(_there(right, value))
                )
                return ir.Mux(then.type, cond, then, other)
        return cast(self.low(item, t.width), t)

    def low(self, item: Item, width: int) -> ir.Expr:
        """Return the value modulo 2^width."""
        item, t = unwrapped(item), Bits(width)
        if item.kind() != "expression":
            return cast(self._leaf(item), t)
        value = item["value"]
        op, left, right = _operands(value)
        if op == "&":
            return self._masked(_there(left, value), _there(right, value), width)
        if op in _RING and left is not None and right is not None:
            return _binary(op, self.low(left, width), self.low(right, width))
        match op:
            case "-" | "~":
                return ir.Unary(t, op, self.low(_there(right, value), width))
            case "+":
                return self.low(_there(right, value), width)
            case "<<":
                return self._shifted_left(_there(left, value), _there(right, value), width)
            case ">>" if right is not None and _constant_of(right) is not None and left is not None:
                return self._part(self.number(left), _constant_of(right) or 0, width)
            case "two_comp_mod" if _width(_there(right, value)) >= width:
                return self.low(_there(left, value), width)
            case "?":
                cond = self.truth(value["cond"])
                then = self.low(_there(left, value), width)
                return ir.Mux(t, cond, then, self.low(_there(right, value), width))
            case _ if op in _TRUTHS:
                return cast(_as_bit(self.truth(item)), t)
        return cast(self.number(item), t)

    def index(self, item: Item) -> ir.Expr:
        """Return an index, which is not negative."""
        found = self.number(item)
        if isinstance(found.type, Bits) and found.type.signed:
            return cast(found, Bits(found.type.width))
        return found

    def _leaf(self, item: Item) -> ir.Expr:
        match item.kind():
            case "field":
                return self._bits(self.scope.field(item["value"]), item)
            case "hexstr":
                value = item["value"].hexadecimal
                return constant(Range(value, value).type, value)
            case "bool":
                return ir.Const(Bits(1), int(bool(item["value"].value)))
            case "local" | "runtime_data":
                return self._parameter(item["value"])
            case "stack_field" | "union_stack_field":
                return self._bits(self.last_field(item["value"]), item)
        raise item.refuse(f"a {item.kind()} is no number that can be read here")

    def _bits(self, e: ir.Expr, item: Item) -> ir.Expr:
        if not isinstance(e.type, Bits):
            raise item.refuse(f"a {e.type} is no number")
        return e

    def _parameter(self, item: Item) -> ir.Expr:
        if not 0 <= item.number < len(self._parameters):
            raise item.refuse(f"the action has {len(self._parameters)} parameters")
        return self._parameters[item.number]

    def last_field(self, names: Item) -> ir.Expr:
        """Return a field of the header that was added last to a stack."""
        stack, *rest = list(names)
        found: ir.LValue = self._last(self._stack_named(stack))
        for name in rest:
            index = found.type.index(name.text) if isinstance(found.type, Fields) else None
            if index is None or not isinstance(found.type, Fields):
                raise name.refuse(f"{found.type} has no member {name.text}")
            found = ir.FieldOf(found.type.fields[index].type, found, index, name.text)
        return found

    def _last(self, stack: ir.LValue) -> ir.LValue:
        assert isinstance(stack.type, Stack), stack
        t = stack.type.element
        if self.scope.block == "p":
            return ir.LastOf(t, stack)
        return ir.ElementOf(t, stack, ir.LastIndex(_INDEX, stack))

    def _accessed(self, value: Item) -> ir.LValue:
        base = self.header(value["left"])
        t, at = base.type, value["right"].number
        if not isinstance(t, Header | Struct) or not 0 <= at < len(t.fields):
            raise value.refuse(f"{t} has no field number {at}")
        field = t.fields[at]
        return ir.FieldOf(field.type, base, at, field.name)

    # -- operators ------------------------------------------------------------------------------

    def _masked(self, left: Item, right: Item, width: int) -> ir.Expr:
        """Return the low bits of a conjunction: of a mask 0..01..1, those of the other operand."""
        for mask, other in ((right, left), (left, right)):
            value = _constant_of(mask)
            if value is None:
                continue
            value &= (1 << width) - 1
            if not value:
                return ir.Const(Bits(width), 0)
            if value & (value + 1) == 0:
                return cast(self.low(other, value.bit_length()), Bits(width))
            return _binary("&", self.low(other, width), ir.Const(Bits(width), value))
        return _binary("&", self.low(left, width), self.low(right, width))

    def _shifted_left(self, left: Item, right: Item, width: int) -> ir.Expr:
        amount = _constant_of(right)
        if amount is None:
            return _binary("<<", self.low(left, width), self.index(right))
        if not 0 <= amount < width:
            return ir.Const(Bits(width), 0)
        return _binary("<<", self.low(left, width), ir.Const(Bits(32), amount))

    def _shifted(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        if not isinstance(b, ir.Const):
            if isinstance(b.type, Bits) and b.type.signed:
                b = cast(b, Bits(b.type.width))
            return _binary(">>", a, b)
        assert isinstance(a.type, Bits), a
        amount = int(b.value)
        if not a.type.signed:
            return self._part(a, amount, max(1, a.type.width - amount))
        return _binary(">>", a, ir.Const(Bits(32), min(amount, a.type.width)))

    def _part(self, e: ir.Expr, start: int, width: int) -> ir.Expr:
        """Return `width` bits of a number from bit `start` on."""
        assert isinstance(e.type, Bits), e
        own = e.type.width
        if start == 0:
            return cast(e, Bits(width))
        if start + width <= own:
            return ir.SliceOf(Bits(width), e, start + width - 1, start)
        if e.type.signed:
            return cast(_binary(">>", e, ir.Const(Bits(32), min(start, own))), Bits(width))
        if start >= own:
            return ir.Const(Bits(width), 0)
        return cast(ir.SliceOf(Bits(own - start), e, own - 1, start), Bits(width))

    def _saturated(self, op: str, left: Item, right: Item) -> ir.Expr:
        """Return a number cut to the range of a type; a sum of numbers of it is one operation."""
        t = Bits(_width(right), op == "sat_cast")
        limits = range_of(t)
        inner = unwrapped(left)
        if inner.kind() == "expression":
            name, a, b = _operands(inner["value"])
            if name in ("+", "-") and a is not None and b is not None:
                ranges = [self._range(unwrapped(x)) for x in (a, b)]
                if all(limits.low <= r.low and r.high <= limits.high for r in ranges):
                    operands = [cast(self.low(x, t.width), t) for x in (a, b)]
                    return ir.Binary(t, f"|{name}|", *operands)
        value = self.number(inner)
        own = range_of(value.type)
        found = cast(value, t)
        for beyond, limit in (
            (own.high > limits.high, limits.high),
            (own.low < limits.low, limits.low),
        ):
            if beyond:
                compare = ">" if limit == limits.high else "<"
                cond = _compared(compare, value, constant(Range(limit, limit).type, limit))
                found = ir.Mux(t, cond, constant(t, limit), found)
        return found

    # -- ranges ---------------------------------------------------------------------------------

    def _range(self, item: Item) -> Range:
        item = unwrapped(item)
        known = self._ranges.get(id(item.value))
        if known is None or known[0] is not item.value:
            known = item.value, self._new_range(item)
            self._ranges[id(item.value)] = known
        return known[1]

    def _new_range(self, item: Item) -> Range:
        if item.kind() != "expression":
            found = self._leaf(item)
            if isinstance(found, ir.Const):
                return Range(int(found.value), int(found.value))
            return range_of(found.type)
        value = item["value"]
        op, left, right = _operands(value)
        if op in _TRUTHS or op == "b2d":
            return Range(0, 1)
        if op == "access_field":
            return range_of(self._accessed(value).type)
        if op in ("last_stack_index", "size_stack"):
            return range_of(_INDEX)
        if op in ("two_comp_mod", "sat_cast", "usat_cast"):
            return range_of(Bits(_width(_there(right, value)), op != "usat_cast"))
        if op not in _RANGES:
            raise value.refuse(f"operator {op!r} is not known")
        a = Range(0, 0) if left is None else self._range(left)
        return _RANGES[op](a, self._range(_there(right, value)), value)

    # -- booleans -------------------------------------------------------------------------------

    def truth(self, item: Item) -> ir.Expr:
        """Return a boolean; a number is true if it is not 0."""
        item = unwrapped(item)
        if item.kind() == "bool":
            return ir.Const(BOOL, bool(item["value"].value))
        if item.kind() != "expression":
            return _not_zero(self._leaf(item))
        value = item["value"]
        op, left, right = _operands(value)
        if op in ("b2d", "d2b"):
            return self.truth(_there(right, value))
        if op == "not":
            return ir.Unary(BOOL, "!", self.truth(_there(right, value)))
        if op in ("and", "or"):
            a, b = self.truth(_there(left, value)), self.truth(_there(right, value))
            return ir.Binary(BOOL, "&&" if op == "and" else "||", a, b)
        if op in ("valid", "valid_union"):
            return ir.IsValid(BOOL, self.header(_there(right, value)))
        if op in _COMPARISONS:
            return self._comparison(op, _there(left, value), _there(right, value))
        if op == "?" and self._is_truth(_there(left, value)):
            cond, then = self.truth(value["cond"]), self.truth(_there(left, value))
            return ir.Mux(BOOL, cond, then, self.truth(_there(right, value)))
        return _not_zero(self.number(item))

    def _is_truth(self, item: Item) -> bool:
        item = unwrapped(item)
        if item.kind() != "expression":
            return item.kind() == "bool"
        op, left, _ = _operands(item["value"])
        if op == "?":
            return self._is_truth(_there(left, item["value"]))
        return op in _TRUTHS

    def _comparison(self, op: str, left: Item, right: Item) -> ir.Expr:
        if self._is_truth(left) and self._is_truth(right):
            return ir.Binary(BOOL, op, self.truth(left), self.truth(right))
        if _is_header(left):
            equal = _equal(self.header(left), self.header(right), left)
            return equal if op == "==" else ir.Unary(BOOL, "!", equal)
        return _compared(op, self.number(left), self.number(right))

    # -- headers --------------------------------------------------------------------------------

    def header(self, item: Item) -> ir.LValue:
        """Return a header, stack or union."""
        item = unwrapped(item)
        kind = item.kind()
        if kind in ("header", "header_stack", "header_union", "header_union_stack"):
            return self.scope.instance(item["value"])
        if kind in ("stack_field", "union_stack_field"):
            found = self.last_field(item["value"])
            if isinstance(found, ir.LValue):
                return found
        if kind == "expression":
            value = item["value"]
            op, left, right = _operands(value)
            if op in ("dereference_header_stack", "dereference_stack", "dereference_union_stack"):
                return self._element(_there(left, value), _there(right, value))
            if op == "access_union_header":
                return self._accessed_union(value)
        raise item.refuse("expected a header, stack or union")

    def _element(self, left: Item, right: Item) -> ir.LValue:
        stack, inner = self._stack(left), unwrapped(right)
        assert isinstance(stack.type, Stack), stack
        t = stack.type.element
        if inner.kind() == "expression" and inner["value"]["op"].value == "last_stack_index":
            return self._last(stack)
        return ir.ElementOf(t, stack, self.index(inner))

    def _accessed_union(self, value: Item) -> ir.LValue:
        base, at = self.header(value["left"]), value["right"].number
        if not isinstance(base.type, Union) or not 0 <= at < len(base.type.fields):
            raise value.refuse(f"{base.type} has no header number {at}")
        member = base.type.fields[at]
        return ir.FieldOf(member.type, base, at, member.name)

    def _stack(self, item: Item) -> ir.LValue:
        item = unwrapped(item)
        return self._stack_named(item["value"])

    def _stack_named(self, name: Item) -> ir.LValue:
        found = self.scope.instance(name)
        if not isinstance(found.type, Stack):
            raise name.refuse(f"{name.text} is no stack")
        return found

    # -- places ---------------------------------------------------------------------------------

    def place(self, item: Item) -> ir.LValue:
        """Return a field that can be assigned."""
        item = unwrapped(item)
        found: ir.Expr
        match item.kind():
            case "field":
                names = item["value"]
                if isinstance(names.value, list) and names.value[-1:] == [VALID]:
                    raise item.refuse(f"{VALID} cannot be assigned")
                found = self.scope.field(names)
            case "stack_field" | "union_stack_field":
                found = self.last_field(item["value"])
            case "expression" if item["value"]["op"].value == "access_field":
                found = self._accessed(item["value"])
            case _:
                raise item.refuse("expected a field, which can be assigned")
        if not isinstance(found, ir.LValue) or not isinstance(found.type, Bits | Varbit):
            raise item.refuse("expected a field, which can be assigned")
        return found


def unwrapped(item: Item) -> Item:
    """Return an expression without the outer objects that some places need."""
    while item.kind() == "expression" and item["value"].get("op") is None:
        item = item["value"]
    return item


def _operands(value: Item) -> tuple[str, Item | None, Item | None]:
    """Return an expression's operator and operands. Some are numbers, not objects."""
    right = value.get("right")
    return value["op"].text, value.get("left"), right


def _there(item: Item | None, value: Item) -> Item:
    if item is None:
        raise value.refuse(f"operator {value['op'].text!r} lacks an operand")
    return item


def _constant_of(item: Item) -> int | None:
    item = unwrapped(item)
    return item["value"].hexadecimal if item.kind() == "hexstr" else None


def _width(item: Item) -> int:
    found = _constant_of(item)
    if found is None or not 1 <= found <= WIDEST:
        raise item.refuse(f"expected a width of 1 to {WIDEST}")
    return found


def _binary(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Binary(a.type, op, a, b)


def _unified(a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Return two numbers in the narrowest type with room for both."""
    if a.type == b.type:
        return a, b
    t = _exact_range(a).joined(_exact_range(b)).type
    return cast(a, t), cast(b, t)


def _exact_range(e: ir.Expr) -> Range:
    return Range(int(e.value), int(e.value)) if isinstance(e, ir.Const) else range_of(e.type)


def _compared(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    left, right = _unified(a, b)
    return ir.Binary(BOOL, op, left, right)


def _as_bit(truth: ir.Expr) -> ir.Expr:
    if isinstance(truth, ir.Const):
        return ir.Const(Bits(1), int(truth.value))
    return ir.Cast(Bits(1), truth)


def _not_zero(e: ir.Expr) -> ir.Expr:
    if isinstance(e, ir.Cast) and e.operand.type == BOOL:
        return e.operand
    if isinstance(e, ir.Const):
        return ir.Const(BOOL, bool(e.value))
    if e.type == Bits(1):
        return ir.Cast(BOOL, e)
    return ir.Binary(BOOL, "!=", e, ir.Const(e.type, 0))


def _is_header(item: Item) -> bool:
    item = unwrapped(item)
    if item.kind() == "expression":
        return item["value"]["op"].text.startswith(("dereference_", "access_union"))
    return item.kind() in ("header", "header_union")


def _equal(a: ir.LValue, b: ir.LValue, item: Item) -> ir.Expr:
    """Compare two headers or unions: both are invalid, or both are valid and equal."""
    t = a.type
    if t != b.type or not isinstance(t, Header | Union):
        raise item.refuse(f"cannot compare a {a.type} with a {b.type}")
    if isinstance(t, Union):
        parts = [
            _equal(ir.FieldOf(f.type, a, i, f.name), ir.FieldOf(f.type, b, i, f.name), item)
            for i, f in enumerate(t.fields)
        ]
        return _all(parts)
    valid = [ir.IsValid(BOOL, x) for x in (a, b)]
    parts = [
        ir.Binary(BOOL, "==", ir.FieldOf(f.type, a, i, f.name), ir.FieldOf(f.type, b, i, f.name))
        for i, f in enumerate(t.fields)
    ]
    neither = ir.Binary(BOOL, "&&", *(ir.Unary(BOOL, "!", v) for v in valid))
    return ir.Binary(BOOL, "||", neither, _all([*valid, *parts]))


def _all(parts: Sequence[ir.Expr]) -> ir.Expr:
    found, *rest = parts
    for part in rest:
        found = ir.Binary(BOOL, "&&", found, part)
    return found


# -- ranges of operators ------------------------------------------------------------------------


def _sum(a: Range, b: Range, value: Item) -> Range:
    return Range(a.low + b.low, a.high + b.high)


def _difference(a: Range, b: Range, value: Item) -> Range:
    return Range(a.low - b.high, a.high - b.low)


def _product(a: Range, b: Range, value: Item) -> Range:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners))


def _left_shift(a: Range, b: Range, value: Item) -> Range:
    if b.high > WIDEST:
        text = f"a shift by up to {b.high} bits, without a mask around it"
        raise value.refuse(f"{text}: {WIDEST} is the most")
    shifts = (max(b.low, 0), b.high)
    corners = [x << n for x in (a.low, a.high) for n in shifts]
    return Range(min(corners), max(corners))


def _right_shift(a: Range, b: Range, value: Item) -> Range:
    most, least = (min(max(n, 0), WIDEST) for n in (b.high, b.low))
    corners = [x >> n for x in (a.low, a.high) for n in (least, most)]
    return Range(min(corners), max(corners))


def _quotient(a: Range, b: Range, value: Item) -> Range:
    most = max(abs(a.low), abs(a.high))
    negative = a.low < 0 or b.low < 0
    return Range(-most if negative else 0, most)


def _rest(a: Range, b: Range, value: Item) -> Range:
    most = max(abs(a.low), abs(a.high), abs(b.low), abs(b.high))
    return Range(-most if a.low < 0 or b.low < 0 else 0, most)


def _conjunction(a: Range, b: Range, value: Item) -> Range:
    highs = [r.high for r in (a, b) if r.low >= 0]
    if highs:
        return Range(0, min(highs))
    return range_of(Bits(max(a.type.width, b.type.width), True))


def _bitwise(a: Range, b: Range, value: Item) -> Range:
    if a.low >= 0 and b.low >= 0:
        return Range(0, (1 << max(a.high, b.high).bit_length()) - 1)
    return range_of(a.joined(b).type)


def _complement(a: Range, b: Range, value: Item) -> Range:
    return Range(~b.high, ~b.low)


def _choice(a: Range, b: Range, value: Item) -> Range:
    return a.joined(b)


_RANGES: dict[str, Callable[[Range, Range, Item], Range]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "<<": _left_shift,
    ">>": _right_shift,
    "/": _quotient,
    "%": _rest,
    "&": _conjunction,
    "|": _bitwise,
    "^": _bitwise,
    "~": _complement,
    "?": _choice,
}
