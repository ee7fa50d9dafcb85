"""BMv2's expressions, which compute with integers of any size, as expressions with widths.

What is cut to some bits is computed with that many: the low bits of a sum need the low bits of its
operands only. Everything else gets a type with room for its range, which follows from the fields'
widths:

    (a + b) & 0xff      of 8-bit fields: an 8-bit addition
    a + b > c           a 9-bit addition

The headers, stacks, unions and fields that BMv2's expressions name, as l-values of the IR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradplane.switch.bmv2_names import COMPARISONS
from gradplane.switch.frontends.bmv2.arithmetic import (
    Range,
    as_bit,
    binary,
    bits_of,
    cast,
    compared,
    constant,
    not_zero,
    range_of,
    range_of_result,
    shifted_right,
    unified,
)
from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item, operands, present, unwrapped
from gradplane.switch.frontends.bmv2.layout import VALID, Scope
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Fields, Header, Stack, Struct, Union, Varbit

INDEX = Bits(32)
"""The type of a stack's indices."""


class Places:
    """Finds what the expressions of one block name. index: translates the index of a stack.

    The methods raise CompileError for what is not there or of another kind."""

    def __init__(self, scope: Scope, index: Callable[[Item], ir.Expr]) -> None:
        self._scope, self._index = scope, index

    def header(self, item: Item) -> ir.LValue:
        """Return a header, stack or union."""
        item = unwrapped(item)
        kind = item.kind()
        if kind in ("header", "header_stack", "header_union", "header_union_stack"):
            return self._scope.instance(item["value"])
        if kind in ("stack_field", "union_stack_field"):
            found = self.last_field(item["value"])
            if isinstance(found, ir.LValue):
                return found
        if kind == "expression":
            value = item["value"]
            op, left, right = operands(value)
            if op in ("dereference_header_stack", "dereference_stack", "dereference_union_stack"):
                return self._element(present(left, value), present(right, value))
            if op == "access_union_header":
                return self._accessed_union(value)
        raise item.refuse("expected a header, stack or union")

    def _element(self, left: Item, right: Item) -> ir.LValue:
        stack, inner = self.stack(left), unwrapped(right)
        assert isinstance(stack.type, Stack), stack
        t = stack.type.element
        if inner.kind() == "expression" and inner["value"]["op"].value == "last_stack_index":
            return self._last(stack)
        return ir.ElementOf(t, stack, self._index(inner))

    def _accessed_union(self, value: Item) -> ir.LValue:
        base, at = self.header(value["left"]), value["right"].number
        if not isinstance(base.type, Union) or not 0 <= at < len(base.type.fields):
            raise value.refuse(f"{base.type} has no header number {at}")
        member = base.type.fields[at]
        return ir.FieldOf(member.type, base, at, member.name)

    def stack(self, item: Item) -> ir.LValue:
        """Return a stack."""
        return self._stack_named(unwrapped(item)["value"])

    def _stack_named(self, name: Item) -> ir.LValue:
        found = self._scope.instance(name)
        if not isinstance(found.type, Stack):
            raise name.refuse(f"{name.text} is no stack")
        return found

    def field(self, item: Item) -> ir.LValue:
        """Return a field that can be assigned."""
        item = unwrapped(item)
        found: ir.Expr
        match item.kind():
            case "field":
                names = item["value"]
                if isinstance(names.value, list) and names.value[-1:] == [VALID]:
                    raise item.refuse(f"{VALID} cannot be assigned")
                found = self._scope.field(names)
            case "stack_field" | "union_stack_field":
                found = self.last_field(item["value"])
            case "expression" if item["value"]["op"].value == "access_field":
                found = self.numbered(item["value"])
            case _:
                raise item.refuse("expected a field, which can be assigned")
        if not isinstance(found, ir.LValue) or not isinstance(found.type, Bits | Varbit):
            raise item.refuse("expected a field, which can be assigned")
        return found

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
        if self._scope.block == "p":
            return ir.LastOf(t, stack)
        return ir.ElementOf(t, stack, ir.LastIndex(INDEX, stack))

    def numbered(self, value: Item) -> ir.LValue:
        """Return a field that an expression names by its number."""
        base = self.header(value["left"])
        t, at = base.type, value["right"].number
        if not isinstance(t, Header | Struct) or not 0 <= at < len(t.fields):
            raise value.refuse(f"{t} has no field number {at}")
        field = t.fields[at]
        return ir.FieldOf(field.type, base, at, field.name)


def is_header(item: Item) -> bool:
    """Return whether an operand is a header or union, not a number."""
    item = unwrapped(item)
    if item.kind() == "expression":
        return item["value"]["op"].text.startswith(("dereference_", "access_union"))
    return item.kind() in ("header", "header_union")


def equal_headers(a: ir.LValue, b: ir.LValue, item: Item) -> ir.Expr:
    """Compare two headers or unions: both are invalid, or both are valid and equal."""
    t = a.type
    if t != b.type or not isinstance(t, Header | Union):
        raise item.refuse(f"cannot compare a {a.type} with a {b.type}")
    if isinstance(t, Union):
        parts = [
            equal_headers(ir.FieldOf(f.type, a, i, f.name), ir.FieldOf(f.type, b, i, f.name), item)
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


_TRUTHS = (*COMPARISONS, "not", "and", "or", "d2b", "valid", "valid_union")
_RING = ("+", "-", "*", "&", "|", "^")  # low bits of the result need low bits of the operands


class Expressions:
    """Translates the expressions of one block, in an action with its parameters."""

    def __init__(self, scope: Scope, parameters: Sequence[ir.Var] = ()) -> None:
        self.scope = scope
        self.places = Places(scope, self.index)
        self._parameters = parameters
        self._ranges: dict[int, tuple[object, Range]] = {}

    # -- numbers --------------------------------------------------------------------------------

    def number(self, item: Item) -> ir.Expr:
        """Return the exact value, in the narrowest type that has room for it or a field's own."""
        item = unwrapped(item)
        if item.kind() != "expression":
            return self._leaf(item)
        t = self._range(item).type
        if t.width > MAX_WIDTH:
            raise item.refuse(f"this number can have {t.width} bits; {MAX_WIDTH} is the most")
        value = item["value"]
        op, left, right = operands(value)
        match op:
            case ">>" | "/" | "%":
                a, b = self.number(present(left, value)), self.number(present(right, value))
                return shifted_right(a, b) if op == ">>" else binary(op, *unified(a, b))
            case "last_stack_index":
                return ir.LastIndex(INDEX, self.places.stack(present(right, value)))
            case "size_stack":
                stack = self.places.stack(present(right, value))
                return binary("+", ir.LastIndex(INDEX, stack), ir.Const(INDEX, 1))
            case "access_field":
                return self.places.numbered(value)
            case "b2d":
                return as_bit(self.truth(present(right, value)))
            case "usat_cast" | "sat_cast":
                return self._saturated(op, present(left, value), present(right, value))
            case "two_comp_mod":
                width = _width(present(right, value))
                return cast(self.low(present(left, value), width), Bits(width, True))
            case "?":
                cond = self.truth(value["cond"])
                then, other = unified(
                    self.number(present(left, value)), self.number(present(right, value))
                )
                return ir.Mux(then.type, cond, then, other)
        return cast(self.low(item, t.width), t)

    def low(self, item: Item, width: int) -> ir.Expr:
        """Return the value modulo 2^width."""
        item, t = unwrapped(item), Bits(width)
        if item.kind() != "expression":
            return cast(self._leaf(item), t)
        value = item["value"]
        op, left, right = operands(value)
        if op == "&":
            return self._masked(present(left, value), present(right, value), width)
        if op in _RING and left is not None and right is not None:
            return binary(op, self.low(left, width), self.low(right, width))
        match op:
            case "-" | "~":
                return ir.Unary(t, op, self.low(present(right, value), width))
            case "+":
                return self.low(present(right, value), width)
            case "<<":
                return self._shifted_left(present(left, value), present(right, value), width)
            case ">>" if right is not None and _constant_of(right) is not None and left is not None:
                return bits_of(self.number(left), _constant_of(right) or 0, width)
            case "two_comp_mod" if _width(present(right, value)) >= width:
                return self.low(present(left, value), width)
            case "?":
                cond = self.truth(value["cond"])
                then = self.low(present(left, value), width)
                return ir.Mux(t, cond, then, self.low(present(right, value), width))
            case _ if op in _TRUTHS:
                return cast(as_bit(self.truth(item)), t)
        return cast(self.number(item), t)

    def index(self, item: Item) -> ir.Expr:
        """Return an index, which is not negative."""
        found = self.number(item)
        if isinstance(found.type, Bits) and found.type.signed:
            return cast(found, Bits(found.type.width))
        return found

    def _leaf(self, item: Item) -> ir.Expr:
        match item.kind():
            case "field" if isinstance(item["value"].value, list) and _is_computed(item["value"]):
                return self._validity(item["value"])
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
                return self._bits(self.places.last_field(item["value"]), item)
        raise item.refuse(f"a {item.kind()} is no number that can be read here")

    def _validity(self, names: Item) -> ir.Expr:
        """Return the validity of a header with a run-time index, as p4c writes it."""
        header, field = names.parts(2)
        if field.value != VALID:
            raise field.refuse(f"expected {VALID}")
        whole = Item({"type": "expression", "value": header.value}, names.file, names, 0)
        return ir.Cast(Bits(1), ir.IsValid(BOOL, self.places.header(whole)))

    def _bits(self, e: ir.Expr, item: Item) -> ir.Expr:
        if not isinstance(e.type, Bits):
            raise item.refuse(f"a {e.type} is no number")
        return e

    def _parameter(self, item: Item) -> ir.Expr:
        if not 0 <= item.number < len(self._parameters):
            raise item.refuse(f"the action has {len(self._parameters)} parameters")
        return self._parameters[item.number]

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
            return binary("&", self.low(other, width), ir.Const(Bits(width), value))
        return binary("&", self.low(left, width), self.low(right, width))

    def _shifted_left(self, left: Item, right: Item, width: int) -> ir.Expr:
        amount = _constant_of(right)
        if amount is None:
            return binary("<<", self.low(left, width), self.index(right))
        if not 0 <= amount < width:
            return ir.Const(Bits(width), 0)
        return binary("<<", self.low(left, width), ir.Const(Bits(32), amount))

    def _saturated(self, op: str, left: Item, right: Item) -> ir.Expr:
        """Return a number cut to the range of a type; a sum of numbers of it is one operation."""
        t = Bits(_width(right), op == "sat_cast")
        limits = range_of(t)
        inner = unwrapped(left)
        if inner.kind() == "expression":
            name, a, b = operands(inner["value"])
            if name in ("+", "-") and a is not None and b is not None:
                ranges = [self._range(unwrapped(x)) for x in (a, b)]
                if all(limits.low <= r.low and r.high <= limits.high for r in ranges):
                    both = [cast(self.low(x, t.width), t) for x in (a, b)]
                    return ir.Binary(t, f"|{name}|", *both)
        value = self.number(inner)
        own = range_of(value.type)
        found = cast(value, t)
        for beyond, limit in (
            (own.high > limits.high, limits.high),
            (own.low < limits.low, limits.low),
        ):
            if beyond:
                compare = ">" if limit == limits.high else "<"
                cond = compared(compare, value, constant(Range(limit, limit).type, limit))
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
        op, left, right = operands(value)
        if op in _TRUTHS or op == "b2d":
            return Range(0, 1)
        if op == "access_field":
            return range_of(self.places.numbered(value).type)
        if op in ("last_stack_index", "size_stack"):
            return range_of(INDEX)
        if op in ("two_comp_mod", "sat_cast", "usat_cast"):
            return range_of(Bits(_width(present(right, value)), op != "usat_cast"))
        a = Range(0, 0) if left is None else self._range(left)
        return range_of_result(op, a, self._range(present(right, value)), value)

    # -- booleans -------------------------------------------------------------------------------

    def truth(self, item: Item) -> ir.Expr:
        """Return a boolean; a number is true if it is not 0."""
        item = unwrapped(item)
        if item.kind() == "bool":
            return ir.Const(BOOL, bool(item["value"].value))
        if item.kind() != "expression":
            return not_zero(self._leaf(item))
        value = item["value"]
        op, left, right = operands(value)
        if op in ("b2d", "d2b"):
            return self.truth(present(right, value))
        if op == "not":
            return ir.Unary(BOOL, "!", self.truth(present(right, value)))
        if op in ("and", "or"):
            a, b = self.truth(present(left, value)), self.truth(present(right, value))
            return ir.Binary(BOOL, "&&" if op == "and" else "||", a, b)
        if op in ("valid", "valid_union"):
            return ir.IsValid(BOOL, self.places.header(present(right, value)))
        if op in COMPARISONS:
            return self._comparison(op, present(left, value), present(right, value))
        if op == "?" and self._is_truth(present(left, value)):
            cond, then = self.truth(value["cond"]), self.truth(present(left, value))
            return ir.Mux(BOOL, cond, then, self.truth(present(right, value)))
        return not_zero(self.number(item))

    def _is_truth(self, item: Item) -> bool:
        item = unwrapped(item)
        if item.kind() != "expression":
            return item.kind() == "bool"
        op, left, _ = operands(item["value"])
        if op == "?":
            return self._is_truth(present(left, item["value"]))
        return op in _TRUTHS

    def _comparison(self, op: str, left: Item, right: Item) -> ir.Expr:
        if self._is_truth(left) and self._is_truth(right):
            return ir.Binary(BOOL, op, self.truth(left), self.truth(right))
        if is_header(left):
            equal = equal_headers(self.places.header(left), self.places.header(right), left)
            return equal if op == "==" else ir.Unary(BOOL, "!", equal)
        if op in ("==", "!=") and (of_variable_length := self._variable_fields(left, right)):
            return ir.Binary(BOOL, op, *of_variable_length)
        return compared(op, self.number(left), self.number(right))

    def _variable_fields(self, *items: Item) -> list[ir.Expr]:
        """Return the fields of variable length that operands are; none if they are others.

        They are equal as in P4_16 ("Operations on variable-size bit types"): of one length, too.
        """
        operands = [unwrapped(item) for item in items]
        if any(o.kind() != "field" or _is_computed(o["value"]) for o in operands):
            return []
        found = [self.scope.field(operand["value"]) for operand in operands]
        same = all(field.type == found[0].type for field in found)
        return found if same and isinstance(found[0].type, Varbit) else []


def _is_computed(names: Item) -> bool:
    """Return whether a field's header is an expression in place of a name."""
    first = next(iter(names), None)
    return first is not None and isinstance(first.value, dict)


def _constant_of(item: Item) -> int | None:
    item = unwrapped(item)
    return item["value"].hexadecimal if item.kind() == "hexstr" else None


def _width(item: Item) -> int:
    found = _constant_of(item)
    if found is None or not 1 <= found <= MAX_WIDTH:
        raise item.refuse(f"expected a width of 1 to {MAX_WIDTH}")
    return found
