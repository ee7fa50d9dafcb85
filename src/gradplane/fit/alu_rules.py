"""The operators that an ALU of an action has, and what does the work of the others.

The accesses to a register, too: what they read and set, and those that the chip's compiler refuses,
beyond the rules of the ALU that runs them.

And the conditions that a gateway decides: comparisons with constants, equality of two fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gradplane.fit.chip_resources import GATEWAY_BYTES, GATEWAY_RANGE_BITS, Impossible
from gradplane.fit.places import Place, alignment, byte_count, reads, written_by
from gradplane.fit.values import Value
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Type, bit_width
from gradplane.switch.ir.walk import nested
from gradplane.switch.source import Span

_EQUAL, _ORDER = ("==", "!="), ("<", "<=", ">", ">=")


@dataclass(slots=True)
class Compared:
    """The places that conditions compare, by their bytes or by their order.

    problems: comparisons that the chip cannot make, each as a sentence.
    """

    equal: set[Place] = field(default_factory=set)
    ordered: set[Place] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str:
        """The reason why the chip cannot decide it; empty if it can."""
        if self.problems:
            return self.problems[0]
        ranges = sum(p.bits for p in self.ordered)
        if ranges > GATEWAY_RANGE_BITS:
            return (
                f"a condition compares {ranges} bits by their order; the chip compares"
                f" {GATEWAY_RANGE_BITS}, unless with a power of two"
            )
        beyond = byte_count(self.equal) - GATEWAY_BYTES
        if beyond > 0 and 8 * beyond > GATEWAY_RANGE_BITS - ranges + 7:
            return (
                f"a condition compares {byte_count(self.equal)} bytes; the chip compares"
                f" {GATEWAY_BYTES} and {GATEWAY_RANGE_BITS - ranges} bits"
            )
        return ""


def compared(exprs: Iterable[ir.Expr], outcomes: Iterable[ir.Var] = ()) -> Compared:
    """Return what conditions compare. outcomes: variables that are tables' results."""
    found = Compared()
    for e in exprs:
        _add(e, found, set(outcomes))
    return found


def _add(e: ir.Expr, found: Compared, outcomes: set[ir.Var]) -> None:
    match e:
        case ir.Binary(op="&&" | "||", left=left, right=right):
            _add(left, found, outcomes)
            _add(right, found, outcomes)
        case ir.Unary(op="!", operand=x) | ir.Cast(operand=x):
            _add(x, found, outcomes)
        case ir.Binary(op=op, left=left, right=right) if op in _EQUAL:
            sides = [s for s in (left, right) if not isinstance(s, ir.Const | ir.Zero)]
            found.problems += [_COMPUTES for s in sides if _computes(s)]
            if len(sides) == 2 and byte_count(set(reads(sides[0]))) > GATEWAY_BYTES:
                found.problems.append(_PAIR)
            found.problems += _misaligned(*sides) if len(sides) == 2 else []
            found.equal |= set(reads(sides[0])) if sides else set()
        case ir.Binary(op=op, left=left, right=right) if op in _ORDER:
            _ordered(op, left, right, found)
        case ir.Var() if e in outcomes:
            pass
        case ir.LValue() | ir.IsValid():
            found.equal |= set(reads(e))
        case ir.Const() | ir.Zero():
            pass
        case _:
            found.problems.append(_COMPUTES)


_COMPUTES = "a condition compares, and does not compute"
_PAIR = f"a condition compares two fields of more than {GATEWAY_BYTES} bytes with each other"


def _misaligned(left: ir.Expr, right: ir.Expr) -> Iterator[str]:
    """Yield the fields of headers that are compared with each other and end at different bits."""
    for a, b in zip(reads(left), reads(right), strict=False):
        ends = alignment(a), alignment(b)
        if None not in ends and ends[0] != ends[1]:
            yield (
                f"a condition compares {a.name} with {b.name}, which end at different bits of"
                " their bytes"
            )


def _ordered(op: str, left: ir.Expr, right: ir.Expr, found: Compared) -> None:
    constant, other = (left, right) if isinstance(left, ir.Const) else (right, left)
    if not isinstance(constant, ir.Const | ir.Zero):
        found.problems.append("a condition compares two fields by their order")
        return
    if _computes(other):
        found.problems.append(_COMPUTES)
        return
    if _of_leading_bits(op, constant, constant is left):
        found.equal |= set(reads(other))
    else:
        found.ordered |= set(reads(other))


def _of_leading_bits(op: str, constant: ir.Expr, on_left: bool) -> bool:
    """Return whether a comparison asks only if the leading bits are zero: x < 2**n."""
    value = int(constant.value) if isinstance(constant, ir.Const) else 0
    if isinstance(constant.type, Bits) and constant.type.signed:
        return value in (0, -1)  # the sign
    if on_left:
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
    bound = value if op in ("<", ">=") else value + 1
    return bound & (bound - 1) == 0


def _computes(e: ir.Expr) -> bool:
    """Return whether an operand is more than a field, bits of it, or it and a constant mask."""
    match e:
        case ir.Cast(operand=x) | ir.SliceOf(base=x):
            return _computes(x)
        case ir.Binary(op="&", left=left, right=ir.Const()):
            return _computes(left)
        case ir.Binary(op="%", left=left, right=ir.Const() as bound) if is_power_of_two(bound):
            return _computes(left)
        case ir.Binary(op="++", left=left, right=right):
            return _computes(left) or _computes(right)
        case ir.LValue() | ir.IsValid() | ir.Const() | ir.Zero():
            return False
    return True


def is_power_of_two(e: ir.Expr) -> bool:
    """Return whether an operand makes a shift or a mask of a product, quotient or remainder."""
    return isinstance(e, ir.Const) and int(e.value) > 0 and int(e.value).bit_count() == 1


FREE = ("++",)
"""Operators that the way to an ALU makes, without an operation of it."""
ARITHMETIC = ("+", "-", "|+|", "|-|")
LEAST_IN_CODE, MOST_IN_CODE = -8, 7
"""The constants that an ALU's instruction holds."""
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
CONDITION = Impossible(
    "an action has conditions on its own data only",
    "put the condition into the control, with an action for each way",
)
SHIFT = Impossible(
    "an ALU shifts by constants only", "use a table with an action for each number of places"
)
COMPARISON = Impossible(
    "an ALU does not compare",
    "make it a condition in the control, or a table, that sets the result to a constant",
)
SUBTRAHEND = Impossible(
    "an ALU does not subtract what comes with an action",
    "let the control plane (or the constant entries) give the negative number, and add it",
)
TWO_PARAMETERS = Impossible(
    "an ALU takes one operand of what comes with an action, and the other from a field",
    "let the control plane give the result, or set a field to one of them in a table before",
)
CHOICE = Impossible(
    "an ALU does not choose by a condition",
    "make the choice a condition in the control, or a table",
)
INDEX = Impossible(
    "an index is a field, a hash or a part of one, and is not computed",
    "compute it into a field in an action before, which is called",
)


def narrow_operand(name: str) -> Impossible:
    """Return why a field of a header, of this name, is no operand of a wider sum."""
    return Impossible(
        f"{name} is a field of a header, and narrower than the sum that it is an operand of",
        "set metadata of the sum's width to it in a statement before, and add this",
    )


def apply_operator(e: ir.Expr, found: Value, is_data: Callable[[ir.Expr], bool]) -> None:
    """Add what an operator takes to the value of its operands. is_data: whether an expression has
    only parameters of the action."""
    match e:
        case ir.Binary(op=op, left=left, right=right):
            shift = op in ("<<", ">>")
            found.constant |= not shift and (_large(left) or _large(right))
            if op in FREE or (isinstance(left, ir.Const) and isinstance(right, ir.Const)):
                return
            if op == "|" and _merges(left, right):
                found.sources = 2
                return
            one_masked = op == "|" and (_mask(left) is None) != (_mask(right) is None)
            found.steps += 2 if one_masked else 1
            found.carries = found.carries or op in ARITHMETIC
            shifted = op in ("<<", ">>") and not isinstance(right, ir.Const)
            powers = (left, right) if op == "*" else (right,)
            if op in ("*", "/", "%") and not any(map(is_power_of_two, powers)):
                found.impossible = _product(op)
            elif shifted:
                found.impossible = SHIFT
            elif op in _COMPARISONS:
                found.impossible = COMPARISON
            elif is_data(left) and is_data(right):
                found.impossible = TWO_PARAMETERS
            elif op in ("-", "|-|") and is_data(right):
                found.impossible = SUBTRAHEND
        case ir.Unary():
            found.steps += 1
        case ir.Mux():
            found.steps += 1
            found.impossible = CHOICE


def _mask(e: ir.Expr) -> ir.Expr | None:
    """Return the mask of an operand; None if it is whole."""
    return e.right if isinstance(e, ir.Binary) and e.op == "&" else None


def _merges(left: ir.Expr, right: ir.Expr) -> bool:
    """Return whether an ALU merges two operands: bits of the one, the others of the other."""
    masks = (_mask(left), _mask(right))
    bits = [int(m.value) for m in masks if isinstance(m, ir.Const)]
    every = (1 << (bit_width(left.type) or 0)) - 1
    return len(bits) == 2 and bits[0] ^ bits[1] == every


def _product(op: str) -> Impossible:
    way_out = "look the result up in a table, add shifted numbers in several actions, or use the"
    return Impossible(f"an ALU does not compute {op}", f"{way_out} MathUnit of a register action")


def is_extreme(e: ir.Mux) -> bool:
    """Return whether a choice is a minimum or maximum: the one of two that is less, or not."""
    if not isinstance(e.cond, ir.Binary) or e.cond.op not in ("<", "<=", ">", ">="):
        return False
    compared = {expression_text(e.cond.left), expression_text(e.cond.right)}
    return compared == {expression_text(e.then), expression_text(e.other)}


def _large(e: ir.Expr) -> bool:
    """Return whether a constant does not fit into an instruction, and comes as action data."""
    return isinstance(e, ir.Const) and not LEAST_IN_CODE <= int(e.value) <= MOST_IN_CODE


# -- accesses to registers --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """An access: the index of the cell (None: the register has no index), the variables that it
    sets, its results among them, and the places that it reads beside the cell."""

    index: ir.Expr | None
    sets: frozenset[ir.Var]
    data: tuple[Place, ...]


def access_of(block: ir.Block) -> Access:
    """Return the access that a block is: the read of a cell first, the write of it last."""
    first, last = block.body[0], block.body[-1]
    assert isinstance(first, ir.CallExtern), first
    index = first.args[0] if first.args else None
    sets = frozenset(place.var for stmt in nested(block.body) for place in written_by(stmt))
    read = (
        place
        for stmt in nested(block.body[1:])
        for e in walk.reads(stmt)
        if not (stmt is last and e is index)
        for place in reads(e)
    )
    return Access(index, sets, tuple(place for place in read if place.var not in sets))


def problem(block: ir.Block, action: ir.ExternInstance) -> Impossible | None:
    """Return why the compiler refuses an access (a block with one), None if it does not."""
    register = action.accessed
    if register is not None and not _same_size(register.type_args, action.type_args):
        return Impossible(
            f"{action.name} has cells of {action.type_args[0]}, its register {register.name} of"
            f" {register.type_args[0]}",
            "give both the same type",
        )
    seen: dict[str, list[object]] = {}
    for place, span, condition in _sets(block.body[2:-1], None):
        before = seen.setdefault(place, [])
        if before and (condition is None or None in before or condition in before):
            return Impossible(
                f"{action.name} may set {place} twice in one access, again in line {span.line}",
                "set it once in each way through the body (if, else)",
            )
        before.append(condition)
    return None


def _same_size(register: Sequence[Type], action: Sequence[Type]) -> bool:
    """Return whether an action's cells are the register's, or as many of them as more bits of an
    index choose among."""
    if len(register) < 2 or len(action) < 2:
        return True
    cells, indices = ([bit_width(types[n]) or 0 for types in (register, action)] for n in (0, 1))
    few, many = sorted(cells)
    return few == many or few << abs(indices[0] - indices[1]) == many


def _sets(body: Sequence[ir.Stmt], condition: object) -> Iterator[tuple[str, Span, object]]:
    """Yield what statements set, where, and under which condition. To set to 0 first is no
    operation."""
    for stmt in body:
        match stmt:
            case ir.Assign(target=target, value=value):
                zero = isinstance(value, ir.Zero) or (
                    isinstance(value, ir.Const) and not value.value
                )
                if condition is not None or not zero:
                    yield expression_text(target), stmt.span, condition
            case ir.If(cond=cond, then=then, other=other):
                text = f"{condition} && {expression_text(cond)}"
                yield from _sets(then, text)
                yield from _sets(other, f"!({text})")
            case ir.Block(body=inner):
                yield from _sets(inner, condition)
