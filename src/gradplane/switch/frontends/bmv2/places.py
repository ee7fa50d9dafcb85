"""The headers, stacks, unions and fields that BMv2's expressions name, as l-values of the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradplane.switch.frontends.bmv2.items import Item, operands, present, unwrapped
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
