"""Rules for parsers, controls and deparsers, however much room is left.

A parser's state passes by whole bytes, and moves bits without computing; a control applies a table,
and uses a counter or a meter, once for a packet; a deparser emits every valid header, and asks for
copies, digests and a resubmission by the number of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

from gradplane.fit.chip_resources import PARSER_KEY_BITS, Overrun
from gradplane.switch.arch.tna.register_access import Uses
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Field,
    Fields,
    Header,
    Stack,
    Type,
    Union,
    bit_width,
)
from gradplane.switch.ir.walk import actions, bodies, expressions, nested, statements, within
from gradplane.switch.runtime.dynamic_hashes import is_symmetric

_REQUESTS = {"Mirror": "mirror_type", "Resubmit": "resubmit_type", "Digest": "digest_type"}
"""The externs of deparsers that the number of a kind asks for, and its field."""
_UNKNOWN = (Array, Union)
"""Types of fields that the chip's compiler does not know, but for header stacks."""
_DIGEST_BYTES = 48
_COUNTER_BITS = 8
_COMPUTED = ("+", "-", "*", "/", "%", "|+|", "|-|", "&", "^", "<<", ">>", "==", "!=", "<", ">")


def broken_by_blocks(
    parser: ir.Parser | None, control: ir.Control, deparser: ir.Control | None
) -> Iterator[Overrun]:
    """Yield what a direction's blocks ask for that the chip cannot do."""
    yield from _types(control)
    yield from _used_again(control)
    yield from _indices(control)
    yield from _in_conditions(control.body)
    yield from _switches(control.body)
    yield from _hashes(control)
    yield from _casts(control)
    if parser is not None:
        yield from _casts(parser)
        for state in parser.states.values():
            yield from _state(state)
        yield from _loops(parser.states)
    if deparser is not None:
        yield from _deparser(deparser.body, ())
        yield from _packed_again(deparser)


def _types(control: ir.Control) -> Iterator[Overrun]:
    """Yield what the compiler has no containers for among the things that a control is given:
    arrays of something else than headers, on which it fails (it takes local ones), and unions."""
    for param in control.params:
        found = next((f for f in _fields(param.var.type) if isinstance(f.type, _UNKNOWN)), None)
        if found is None:
            continue
        what = f"{found.name} is a header union; the chip's compiler has none"
        way_out = "have a field for each of its headers"
        if isinstance(found.type, Array):
            what = (
                f"{found.name} is an array of {found.type.element}; the chip's compiler fails on it"
            )
            way_out = "write its elements as fields of their own, or a local array"
        yield Overrun("phv", what, control.span, way_out)


def _fields(t: Type) -> Iterator[Field]:
    """Yield the fields of a type and of those inside, header stacks as their elements."""
    for field in t.fields if isinstance(t, Fields) else ():
        inner = field.type.element if isinstance(field.type, Stack) else field.type
        yield field if inner is field.type else replace(field, type=inner)
        yield from _fields(inner)


def _casts(block: ir.Parser | ir.Control) -> Iterator[Overrun]:
    """Yield the casts inside casts that the compiler refuses: three, or one to a wider type of
    one to a narrower. It takes any in a table's key."""
    for stmt in statements(block):
        if isinstance(stmt, ir.ApplyTable):
            continue
        for e in (inside for expr in expressions(stmt) for inside in within(expr)):
            casts = list(_nested_casts(e))
            if len(casts) > 2 or (len(casts) == 2 and _widens_narrowed(*casts)):
                what = f"{expression_text(e)} has casts inside each other"
                way_out = "set a variable to the inner one before, or take a slice (field[7:0])"
                yield Overrun("instructions", what, stmt.span, way_out)
                break


def _nested_casts(e: ir.Expr) -> Iterator[ir.Cast]:
    while isinstance(e, ir.Cast):
        if e.type != e.operand.type:
            yield e
        e = e.operand


def _widens_narrowed(outer: ir.Cast, inner: ir.Cast) -> bool:
    types = (outer.type, inner.type, inner.operand.type)
    if not all(isinstance(t, Bits) and not t.signed for t in types):
        return False
    wide, narrow, source = (bit_width(t) or 0 for t in types)
    return wide > narrow <= source


# -- controls ---------------------------------------------------------------------------------

_ONCE = ("counter", "meter", "lpf", "wred")
"""The kinds of externs that have one address for a packet."""


def _used_again(control: ir.Control) -> Iterator[Overrun]:
    uses = Uses(lambda used: isinstance(used, ir.Table) or used.kind in _ONCE)
    uses.body(control.body, {})
    for used, span, first in uses.again:
        if isinstance(used, ir.Table):
            what = f"a packet may pass {used.name} a second time here, after line {first.line}"
            way_out = "write a second table, or apply it in branches of one condition"
            yield Overrun("tables", what, span, way_out)
        else:
            what = f"a packet may use {used.name} a second time here, after line {first.line}"
            way_out = "set a field to the index before, and use it once; or make two of them"
            resource = "stats_alus" if used.kind == "counter" else "meter_alus"
            yield Overrun(resource, what, span, way_out)


def _indices(control: ir.Control) -> Iterator[Overrun]:
    for action in actions(control):
        for stmt in nested(action.body):
            if isinstance(stmt, ir.If) and any(isinstance(s, ir.Leave) for s in nested([stmt])):
                what = f"action {action.name} returns on a condition"
                way_out = "put the condition into the control, with an action for each way"
                yield Overrun("instructions", what, stmt.span, way_out)
    for stmt in statements(control):
        for expr in expressions(stmt):
            for e in within(expr):
                if isinstance(e, ir.ElementOf) and not isinstance(e.index, ir.Const):
                    what = f"the index of {expression_text(e)} is no constant"
                    way_out = "use a table with an action for each element"
                    yield Overrun("instructions", what, stmt.span, way_out)


def _in_conditions(body: Sequence[ir.Stmt]) -> Iterator[Overrun]:
    """Yield the tables that are applied in a part of a condition: what comes behind has the place
    that the condition has."""
    conditions = {stmt.span for stmt in nested(body) if isinstance(stmt, ir.If)}
    for part in (body, *(inside for stmt in nested(body) for inside in bodies(stmt))):
        for applied, after in pairwise(part):
            if not isinstance(applied, ir.ApplyTable) or applied.span != after.span:
                continue
            kept = isinstance(after, ir.Assign) and applied.span in conditions
            if kept or (isinstance(after, ir.If) and _is_joined(after.cond)):
                what = f"{applied.table.name} is applied in a part of a condition"
                way_out = "write a condition inside the other (if (a) { if (t.apply().hit) ...)"
                yield Overrun("gateways", what, applied.span, way_out)


def _switches(body: Sequence[ir.Stmt]) -> Iterator[Overrun]:
    """Yield the switches on something else than the action that a table ran."""
    runs = [stmt.action_run for stmt in nested(body) if isinstance(stmt, ir.ApplyTable)]
    switches = [stmt for stmt in nested(body) if isinstance(stmt, ir.SwitchStmt)]
    for stmt in switches:
        if not any(stmt.subject is run for run in runs):
            what = f"a switch on {expression_text(stmt.subject)}; the chip has one on action_run"
            yield Overrun("gateways", what, stmt.span, "use conditions, or a table with it as key")


def _is_joined(condition: ir.Expr) -> bool:
    return any(isinstance(e, ir.Binary) and e.op in ("&&", "||") for e in within(condition))


def _hashes(control: ir.Control) -> Iterator[Overrun]:
    """Yield the hashes that are called with other fields than before: the control plane can change
    those of an instance, which are one list."""
    fields: dict[ir.ExternInstance, list[str]] = {}
    for stmt in statements(control):
        if isinstance(stmt, ir.CallExtern) and stmt.instance and stmt.instance.type == "Hash":
            instance, texts = stmt.instance, [expression_text(arg) for arg in stmt.args]
            if fields.setdefault(instance, texts) != texts and not is_symmetric(instance):
                what = f"{instance.name} is called with other fields than before"
                yield Overrun("hash_units", what, stmt.span, "make a Hash for each list of fields")


# -- parsers ----------------------------------------------------------------------------------


def _state(state: ir.State) -> Iterator[Overrun]:
    passed = 0
    for stmt in nested(state.body):
        match stmt:
            case ir.Extract(target=target, size=None):
                passed += bit_width(target.type) or 0
                yield from _whole_bytes(target, stmt)
            case ir.Advance(bits=ir.Const(value=int() as bits)):
                passed += bits
            case ir.Advance(bits=bits):
                what = f"a parser advances by {expression_text(bits)}, which is no constant"
                way_out = "loop over a header stack, with a ParserCounter"
                yield Overrun("parser", what, stmt.span, way_out)
            case ir.If():
                what = "a parser has a condition"
                yield Overrun("parser", what, stmt.span, "select the next state by a field")
            case ir.Assign(target=target, value=value):
                yield from _assigned(stmt, target, value)
            case ir.CallExtern(
                instance=ir.ExternInstance(type="ParserCounter"), name="set", args=[loaded]
            ) if (bit_width(loaded.type) or 0) > _COUNTER_BITS:
                what = f"a parser counter is set to {bit_width(loaded.type)} bits; it has"
                what += f" {_COUNTER_BITS}"
                way_out = "set it to a slice, or with the most, rotation and mask"
                yield Overrun("parser", what, stmt.span, way_out)
    if passed % 8:
        what = f"state {state.name} passes by {passed} bits, which are no whole bytes"
        way_out = "put fields of one byte into one header, with the bits between them"
        yield Overrun("parser", what, state.span, way_out)
    yield from _selected(state)


def _loops(states: Mapping[str, ir.State]) -> Iterator[Overrun]:
    """Yield the headers that a loop of the parser extracts again and again."""
    for state in states.values():
        reached, todo = set[str](), [case.next for case in state.cases]
        while todo:
            name = todo.pop()
            if name in states and name not in reached:
                reached.add(name)
                todo += [case.next for case in states[name].cases]
        for stmt in nested(state.body) if state.name in reached else ():
            if isinstance(stmt, ir.Extract) and not isinstance(stmt.target, ir.NextOf):
                what = f"a loop of the parser extracts {expression_text(stmt.target)} again"
                way_out = "extract the next element of a header stack"
                yield Overrun("parser", what, stmt.span, way_out)


def _whole_bytes(header: ir.Expr, stmt: ir.Stmt) -> Iterator[Overrun]:
    bits = bit_width(header.type) or 0
    if isinstance(header.type, Header) and bits % 8:
        what = f"{expression_text(header)} has {bits} bits; a header of the chip has whole bytes"
        yield Overrun("parser", what, stmt.span, "give it a field that fills the last byte")


def _assigned(stmt: ir.Stmt, target: ir.LValue, value: ir.Expr) -> Iterator[Overrun]:
    if isinstance(value, ir.Binary) and value.op == "|":
        texts = {expression_text(value.left), expression_text(value.right)}
        computed = expression_text(target) not in texts
    else:
        computed = _computes(value)
    if computed:
        what = f"a parser sets {expression_text(target)} to what is computed"
        way_out = "set it to fields or constants, and compute in the control"
        yield Overrun("parser", what, stmt.span, way_out)


def _computes(e: ir.Expr) -> bool:
    match e:
        case ir.Cast(operand=x):
            return _computes(x)
        case ir.Binary(op=op, left=left, right=right):
            constant = isinstance(left, ir.Const) and isinstance(right, ir.Const)
            return op in _COMPUTED and not constant
        case ir.Unary() | ir.Mux():
            return True
    return False


def _selected(state: ir.State) -> Iterator[Overrun]:
    for key in state.select:
        if _computes(key):
            what = f"a parser selects by {expression_text(key)}, which is computed"
            way_out = "select by fields, and compare in the control"
            yield Overrun("parser", what, state.span, way_out)
    width = sum(
        bit_width(key.type) or 0
        for n, key in enumerate(state.select)
        if any(_constrained(case, n) for case in state.cases)
    )
    if width > PARSER_KEY_BITS:
        what = f"a parser selects by {width} bits; the chip matches {PARSER_KEY_BITS} at once"
        yield Overrun(
            "parser", what, state.span, "select by parts of it, one state after the other"
        )


def _constrained(case: ir.SelectCase, n: int) -> bool:
    return n < len(case.matches) and not isinstance(case.matches[n], ir.MatchAny)


# -- deparsers --------------------------------------------------------------------------------


def _deparser(body: Sequence[ir.Stmt], conditions: tuple[ir.Expr | None, ...]) -> Iterator[Overrun]:
    """Yield what a deparser's statements ask for. conditions: those that they are under, outermost
    first; None: the other way of one."""
    computed = {s.result for s in body if isinstance(s, ir.CallExtern) and s.result is not None}
    for stmt in body:
        match stmt:
            case ir.Emit() if conditions:
                what = "a header is emitted on a condition; the chip emits it if it is valid"
                way_out = "make it invalid in the control where it is not to be emitted"
                yield Overrun("deparser", what, stmt.span, way_out)
            case ir.Assign(target=ir.FieldOf(base=base) as target, value=value) if (
                isinstance(base.type, Header) and value not in computed
            ):
                what = (
                    f"a deparser sets {expression_text(target)}; it sets fields to checksums only"
                )
                yield Overrun("deparser", what, stmt.span, "set it in the control")
            case ir.ApplyTable():
                what = f"a deparser applies {stmt.table.name}; it has no tables"
                yield Overrun("deparser", what, stmt.span, "apply it in the control")
            case ir.CallExtern(instance=ir.ExternInstance(type=kind) as instance) if (
                kind in _REQUESTS
            ):
                if instance.number("condition", -1) < 0:
                    yield from _asked(stmt, kind, conditions)
                for arg in stmt.args:
                    yield from _whole_bytes(arg, stmt)
                yield from _sent(stmt, kind)
            case ir.CallExtern(instance=ir.ExternInstance(type="Checksum")):
                yield from _summed(stmt)
                if conditions and _is_wide(conditions[-1]):
                    what = "a checksum is updated on a condition of more than one bit"
                    way_out = "set one bit of metadata in the control, and ask for it"
                    yield Overrun("deparser", what, stmt.span, way_out)
            case ir.If(cond=cond, then=then, other=other):
                yield from _deparser(then, (*conditions, cond))
                yield from _deparser(other, (*conditions, None))
            case _:
                for part in bodies(stmt):
                    yield from _deparser(part, conditions)


def _asked(
    call: ir.CallExtern, kind: str, conditions: tuple[ir.Expr | None, ...]
) -> Iterator[Overrun]:
    way_out = f"write if (....{_REQUESTS[kind]} == 1) {{ ... }} around it, or give its instance"
    way_out += " the number"
    if not conditions:
        what = f"{kind}.{call.name} is called on no condition"
        yield Overrun("deparser", what, call.span, way_out)
    elif conditions[-1] is not None and not _is_kind(conditions[-1], _REQUESTS[kind]):
        what = f"{kind}.{call.name} is called if {expression_text(conditions[-1])}"
        yield Overrun(
            "deparser", f"{what}, which compares no field with a constant", call.span, way_out
        )


def _is_kind(condition: ir.Expr, field: str) -> bool:
    """Return whether a condition is that a field of the deparser's metadata has a number."""
    match condition:
        case (
            ir.Binary(op="==", left=ir.FieldOf(name=name), right=ir.Const())
            | ir.Binary(op="==", left=ir.Const(), right=ir.FieldOf(name=name))
        ):
            return name == field
        case ir.Unary(op="!", operand=x):
            return _is_kind(x, field)
    return False


def _sent(call: ir.CallExtern, kind: str) -> Iterator[Overrun]:
    """Yield an overrun if a request's data are more, or other, than the chip sends."""
    size = ceil((bit_width(call.args[-1].type) or 0) / 8) + 1 if call.args else 0
    if kind == "Digest" and size > _DIGEST_BYTES:
        what = f"a digest has {size} bytes with its type; the chip sends {_DIGEST_BYTES}"
        yield Overrun("deparser", what, call.span, "send less, or an index of what a register has")
    session = call.args[0] if kind == "Mirror" and len(call.args) > 1 else None
    if isinstance(session, ir.Const) and session.value:
        what = "the session of a mirrored header is a constant"
        yield Overrun("deparser", what, call.span, "set a field of metadata to it in the control")


def _is_wide(condition: ir.Expr | None) -> bool:
    """Return whether a condition compares a field of several bits."""
    match condition:
        case ir.Binary(left=ir.FieldOf(type=t)):
            return (bit_width(t) or 0) > 1
    return False


def _packed_again(deparser: ir.Control) -> Iterator[Overrun]:
    seen: set[ir.ExternInstance] = set()
    for stmt in statements(deparser):
        if isinstance(stmt, ir.CallExtern) and stmt.instance and stmt.instance.type == "Digest":
            if stmt.instance in seen:
                what = f"{stmt.instance.name} is packed in two places"
                yield Overrun("deparser", what, stmt.span, "make a Digest for each")
            seen.add(stmt.instance)


def _summed(update: ir.CallExtern) -> Iterator[Overrun]:
    """Yield an overrun if a checksum takes a field at another bit of its byte than it has."""
    data, position = next((arg for arg in update.args if isinstance(arg, ir.Make)), None), 0
    for e in data.fields if isinstance(data, ir.Make) else ():
        if isinstance(e, ir.FieldOf) and isinstance(e.base.type, Header):
            before = e.base.type.fields[: e.index]
            offset = sum(bit_width(f.type) or 0 for f in before)
            if (offset - position) % 8:
                what = f"a checksum takes {expression_text(e)} at another bit of its byte than the"
                what += " packet has it"
                way_out = "list the bits of its byte in the order of the header"
                yield Overrun("deparser", what, update.span, way_out)
                return
        position += bit_width(e.type) or 0
