"""Rules that look for constructs which p4c refuses, or reads otherwise: a function for each; and
those of its front end, for programs of every architecture.

A module of rules has one `Rules` or more, with which its functions are registered for the kind of
node that they look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard
from typing import TypeVar as Variable

from gradplane.switch.check.checker_types import ExternType, TypeVar
from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Bool,
    Error,
    Fields,
    Integer,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Type,
)
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

Found = tuple[ast.Node, str, str]  # place, message, hint
CallRule = Callable[[ast.Call, CallInfo], Iterator[Found]]
_Node = Variable("_Node", bound=ast.Node)
_Rule = Callable[[_Node], Iterator[Found]]


class Rules:
    """Functions from a node to what is wrong with it, by the type of the node."""

    def __init__(self) -> None:
        self._rules: dict[type[ast.Node], list[_Rule[Any]]] = defaultdict(list)

    def at(self, kind: type[_Node]) -> Callable[[_Rule[_Node]], _Rule[_Node]]:
        """Return a decorator for a function of the nodes of a type."""

        def register(rule: _Rule[_Node]) -> _Rule[_Node]:
            self._rules[kind].append(rule)
            return rule

        return register

    def at_calls(self, rule: CallRule) -> CallRule:
        """Decorate a function of calls, which is given their meaning as well."""

        def checked(call: ast.Call) -> Iterator[Found]:
            if isinstance(call.info, CallInfo):
                yield from rule(call, call.info)

        self._rules[ast.Call].append(checked)
        return rule

    def find(self, nodes: Sequence[ast.Node]) -> Iterator[Found]:
        """Yield what is wrong with the nodes of a declaration, in their order."""
        for node in nodes:
            for rule in self._rules.get(type(node), ()):
                yield from rule(node)


def instantiates(node: ast.Node, extern: str) -> bool:
    """Return whether a node declares an instance of an extern."""
    t = node.type if isinstance(node, ast.Instantiation) else None
    return isinstance(t, ExternType) and t.name == extern


def called_function(node: ast.Node) -> ast.FunctionDecl | None:
    """Return the P4 function that a node calls; None if it calls none."""
    info = node.info if isinstance(node, ast.Call) else None
    decl = info.decl if isinstance(info, CallInfo) and info.kind == "function" else None
    return decl if isinstance(decl, ast.FunctionDecl) else None


# -- the language -----------------------------------------------------------------------------


REFUSED = Rules()
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@REFUSED.at(ast.Ternary)
def _choice(e: ast.Ternary) -> Iterator[Found]:
    branches = (e.then, e.other)
    if e.chained:
        text = "p4c reads a ? b : c ? d : e as (a ? b : c) ? d : e"
        yield e.other, text, "put the last part in parentheses"
    if e.cond.const is None and all(isinstance(b.type, Integer) for b in branches):
        yield e, "p4c needs a width for a branch of this ?:", "write it with a width: 8w1"
    if all(isinstance(b, ast.ListExpr | ast.StructExpr) for b in branches) and (
        type(e.then) is not type(e.other) or any(map(_has_dots, branches))
    ):
        text = "p4c cannot choose between lists of different forms"
        yield e, text, "write the type before them: (S) {...}"


@REFUSED.at(ast.Slice)
def _bits_of_int(e: ast.Slice) -> Iterator[Found]:
    if isinstance(e.base.type, Integer) and e.base.const is None:
        yield e, "p4c takes bits of a bit<> only, not of an int", "cast it first"


def _has_dots(literal: ast.Expr) -> bool:
    if isinstance(literal, ast.ListExpr):
        return any(isinstance(e, ast.Dots) for e in literal.elements)
    return isinstance(literal, ast.StructExpr) and literal.dots


@REFUSED.at(ast.SwitchStmt)
def _switch(statement: ast.SwitchStmt) -> Iterator[Found]:
    subject = statement.subject
    if isinstance(subject.type, Bool | Error):
        yield subject, f"p4c cannot switch on {subject.type}", "use if"
    elif isinstance(subject.type, SerEnum):
        for case in statement.cases:
            yield from _number_for_enum(case.label, subject.type)


def _number_for_enum(value: ast.Expr, t: Type) -> Iterator[Found]:
    """A number where a member of a serializable enum is matched."""
    if isinstance(t, SerEnum) and isinstance(value.type, Bits | Integer):
        yield value, f"p4c does not compare {t} with a number here", f"cast it: ({t}) ..."


@REFUSED.at(ast.Binary)
def _binary(e: ast.Binary) -> Iterator[Found]:
    if e.op in ("/", "%") and e.const is None:
        yield from _divisor(e, e.op, e.right)
    if e.op in ("==", "!="):
        literals = [side for side in (e.left, e.right) if isinstance(side, ast.ListExpr)]
        generic = [t for t in (e.left.type, e.right.type) if isinstance(t, Fields) and t.args]
        if literals and generic:
            text = "p4c does not compare a generic struct with a list"
            yield literals[0], text, f"write its type: ({generic[0]}) {{...}}"
        arrays = [side.type for side in (e.left, e.right) if is_array(side.type)]
        if literals and arrays:
            text = "p4c does not compare an array with a list"
            yield literals[0], text, f"write its type: ({arrays[0]}) {{...}}"


@REFUSED.at(ast.ConstDecl)
def _constant_array(decl: ast.ConstDecl) -> Iterator[Found]:
    if is_array(decl.type):
        yield decl, "p4c has no constant arrays", "use a variable"


@REFUSED.at(ast.ConstDecl)
def _constant_of_parameter(decl: ast.ConstDecl) -> Iterator[Found]:
    """Only the parameters of the constructor around it can be part of a constant's value."""
    names = (node.decl for node in walk(decl.value) if isinstance(node, ast.Name))
    if any(isinstance(found, ast.Param) for found in names):
        text = "p4c takes no parameter of a constructor in a constant"
        yield decl, text, "write the expression where it is used"


@REFUSED.at(ast.Instantiation)
def _computed_argument(decl: ast.Instantiation) -> Iterator[Found]:
    """Refuse the first part of each argument that p4c does not compute at compile time."""
    for arg in decl.args:
        if found := next(filter(_is_computed_late, walk(arg.expr)), None):
            text = "p4c has no ?: and no comparison of a constructor's parameter here"
            yield found, text, "give the constructor the result"


def _is_computed_late(node: ast.Node) -> bool:
    if isinstance(node, ast.Binary):
        return node.op in _COMPARISONS and node.const is None
    return isinstance(node, ast.Ternary) and node.cond.const is None


def is_array(t: object) -> TypeGuard[Array]:
    """Return whether a type is an array of something else than headers."""
    return isinstance(t, Array) and not isinstance(t, Stack)


@REFUSED.at(ast.Assign)
def _slice_of_signed(assign: ast.Assign) -> Iterator[Found]:
    target = assign.target
    base = target.base.type if isinstance(target, ast.Slice) else None
    if isinstance(base, Bits) and base.signed:
        yield target, f"p4c does not assign to bits of an {base}", "cast it to bit<> first"


@REFUSED.at(ast.Assign)
def _division(assign: ast.Assign) -> Iterator[Found]:
    if assign.op in ("/=", "%="):
        yield from _divisor(assign, assign.op[0], assign.value)


def _divisor(place: ast.Node, op: str, divisor: ast.Expr) -> Iterator[Found]:
    value = divisor.const
    if not isinstance(value, int) or value & (value - 1):
        yield place, f"p4c takes powers of two only at the right of {op}", ""


@REFUSED.at(ast.Call)
def _generic_argument(call: ast.Call) -> Iterator[Found]:
    """A call of a generic function among the arguments of a function."""
    if called_function(call) is None:
        return
    for inner in walk(call.args):
        decl = called_function(inner)
        if decl is not None and decl.type_params:
            text = f"p4c loses the types of {decl.name} in the arguments of another function"
            yield inner, text, "assign its result to a variable first"


@REFUSED.at_calls
def _left_open(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    """An argument of a type that an instance leaves open, as programs for Tofino do."""
    for param, arg in zip(info.signature.params, info.args, strict=True):
        if arg is not None and isinstance(param.type, TypeVar) and param.type.name == "_":
            text = f"p4c finds no type for {param.name}: this instance has _ in its place"
            yield arg, text, "write the type there, such as bit<32>"


@REFUSED.at_calls
def _index_beyond(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    """A constant argument that is an index in what is called, beyond the end of the stack."""
    decl = info.decl
    if not isinstance(decl, ast.FunctionDecl | ast.ActionDecl):
        return
    given = {
        param: arg.const
        for param, arg in zip(decl.params, info.args, strict=True)
        if arg is not None and isinstance(arg.const, int)
    }
    for node in walk(decl.body) if given else ():
        if isinstance(node, ast.Index) and isinstance(node.index, ast.Name):
            value, t = given.get(node.index.decl), node.base.type
            if value is not None and isinstance(t, Stack) and value >= t.size:
                yield call, f"p4c refuses {value} as the index of {t.size} elements", ""
                return


@REFUSED.at(ast.NamedTypeRef)
def _in_itself(ref: ast.NamedTypeRef) -> Iterator[Found]:
    """A generic type inside its own arguments."""
    inner = [n for n in walk(ref.args) if isinstance(n, ast.NamedTypeRef)]
    if any(n.name == ref.name for n in inner):
        yield ref, f"p4c takes no {ref.name} among the type arguments of {ref.name}", ""


@REFUSED.at(ast.BaseTypeRef)
def _width(ref: ast.BaseTypeRef) -> Iterator[Found]:
    for part in walk(ref.width):
        inside = isinstance(part, ast.Member) and isinstance(part.base.type, Struct)
        if inside or isinstance(part, ast.Index):
            text = "p4c knows no field of a constant struct or tuple in a width"
            yield ref.width or ref, text, "declare a constant for it"
            return


@REFUSED.at(ast.Select)
def _select(select: ast.Select) -> Iterator[Found]:
    for e in select.exprs:
        if isinstance(e.type, Struct | NewType | Error):
            yield e, f"p4c cannot select on {_words(e.type)}", "select on its parts, or cast it"
    if select.one_list:
        yield select, "p4c cannot select on one list", "leave out its braces"


def _words(t: Type) -> str:
    return f"struct {t}" if isinstance(t, Struct) else str(t)


@REFUSED.at(ast.ParserDecl)
def _endless(parser: ast.ParserDecl) -> Iterator[Found]:
    """A parser that no state leaves: no way leads to accept or reject, to which p4c counts a select
    without a default."""
    states = {state.name: state for state in parser.states}
    pending, seen = ["start"], set[str]()
    while pending:
        state = states.get(name := pending.pop())
        if state is None or state.transition is None:
            return
        if name in seen:
            continue
        seen.add(name)
        if isinstance(state.transition, str):
            pending.append(state.transition)
            continue
        cases = state.transition.cases
        if not any(isinstance(case.keyset, ast.DefaultKey) for case in cases):
            return
        pending += [case.state for case in cases]
    yield parser, "p4c refuses a parser that never reaches accept or reject", ""


_WITHOUT_PRIORITIES = ("exact", "lpm")


@REFUSED.at(ast.TableDecl)
def _order(table: ast.TableDecl) -> Iterator[Found]:
    """Priorities of entries that need none, and entries before the key."""
    given = [entry for entry in table.entries if entry.priority is not None]
    if given and all(key.match_kind in _WITHOUT_PRIORITIES for key in table.key):
        text = "p4c takes no priorities of entries where all keys are exact or lpm"
        yield given[0], text, ""
    if table.entries and table.key and begins(table.entries[0]) < begins(table.key[0]):
        yield table.entries[0], "p4c takes entries only behind the key", "move the key up"
    elif table.entries and table.actions and begins(table.entries[0]) < begins(table.actions[0]):
        yield table.entries[0], "p4c takes entries only behind the actions", "move the actions up"


def begins(node: ast.Node) -> tuple[int, int]:
    """Return where a node is, to compare it with others of its file."""
    return node.span.line, node.span.column


@REFUSED.at(ast.TableDecl)
def _table(table: ast.TableDecl) -> Iterator[Found]:
    for entry in table.entries:
        if len(table.key) > 1 and isinstance(entry.keyset, ast.DefaultKey):
            text = f"p4c needs a keyset of {len(table.key)} values here"
            yield entry.keyset, text, "write (" + ", ".join("_" * len(table.key)) + ")"
        yield from _left_out(entry.action)
        yield from _numbers_for_enums(table, entry.keyset)
    if table.default_action is not None:
        yield from _left_out(table.default_action)


def _numbers_for_enums(table: ast.TableDecl, keyset: ast.Expr) -> Iterator[Found]:
    several = isinstance(keyset, ast.TupleKey | ast.ListExpr) and len(table.key) != 1
    values = getattr(keyset, "elements", [keyset]) if several else [keyset]
    for key, value in zip(table.key, values, strict=False):
        if isinstance(key.expr.type, SerEnum):
            yield from _number_for_enum(value, key.expr.type)


def _left_out(ref: ast.ActionRef) -> Iterator[Found]:
    """An action without the arguments that the table's list of actions gives it."""
    if ref.info is None:
        return
    bound = [p.name for p in ref.info.decl.params if p.direction]
    if bound and len(ref.args or []) < len(ref.info.decl.params):
        yield ref, f"p4c wants the argument for {bound[0]} repeated here", ""
