"""Limits of p4c's back ends for BMv2 (p4lang/p4c, backends/bmv2).

They are what it refuses for v1model and for PSA, for v1model only, and for psa_switch beyond those
of both; and constructs that it compiles to JSON which BMv2 refuses, crashes on, or runs otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from gradplane.switch.check.checker_types import ExternType, SetType, size_bits
from gradplane.switch.check.p4c_rules import (
    Found,
    Rules,
    begins,
    called_function,
    instantiates,
    is_array,
)
from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir.types import (
    Array,
    Bits,
    Bool,
    Enum,
    Error,
    Fields,
    Header,
    MatchKind,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Tuple,
    Type,
    Union,
    Varbit,
)
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

BOTH = Rules()
V1MODEL = Rules()
V1MODEL_PARSERS = Rules()
_IN_PARSERS = ("verify", "log_msg")  # extern functions
_OLD = {
    "resubmit": "resubmit_preserving_field_list",
    "recirculate": "recirculate_preserving_field_list",
    "clone3": "clone_preserving_field_list",
}
_CLONES = ("clone", "clone_preserving_field_list")
_CHECKSUMS = (
    "update_checksum",
    "update_checksum_with_payload",
    "verify_checksum",
    "verify_checksum_with_payload",
)
_COMPUTED = (ast.Binary, ast.Unary, ast.Slice, ast.Cast, ast.Ternary)
_PACKETS = ("packet_in", "packet_out")
_REGISTERS = ("register", "Register")
_VERSIONS = (20180101, 20200408)
_SHIFT_BITS, _FARTHEST = 8, 256  # the widest shift amount; the largest constant one


@BOTH.at(ast.TableDecl)
def _keys(table: ast.TableDecl) -> Iterator[Found]:
    for key in table.key:
        if isinstance(key.expr.type, Enum):
            text = f"p4c's P4Info has no match on {key.expr.type}, an enum without a width"
            yield key, text, "give the enum an underlying type: enum bit<8> ..."
        elif isinstance(key.expr.type, Error) and table.entries:
            yield key, "p4c for BMv2 has no entries for an error", "compare it in the key"
    for key in [key for key in table.key if key.match_kind == "lpm"][1:]:
        yield key, "p4c for BMv2 takes one lpm key in a table", "use ternary"
    default = [] if table.default_action is None else [table.default_action]
    for node in walk([*table.entries, *default]):
        if isinstance(node, ast.Expr) and isinstance(node.const, int) and node.const < 0:
            yield node, "p4c's P4Info has no negative numbers in tables", ""
            return


@BOTH.at(ast.TableDecl)
def _nameless(table: ast.TableDecl) -> Iterator[Found]:
    for made in table.properties:
        if not isinstance(made.value, ast.Call) or not isinstance(made.value.type, ExternType):
            continue
        if all(annotation.name != "name" for annotation in made.annotations):
            text = f"p4c's P4Info wants a @name of {made.name} made in the table"
            yield made, text, f'@name("...") {made.name} = ...'


@BOTH.at(ast.Assign)
def _bounds(stmt: ast.Assign) -> Iterator[Found]:
    target = stmt.target
    if isinstance(target, ast.Slice):
        bounds = [b for b in (target.hi, target.lo, target.width) if b is not None]
        if any(isinstance(node, ast.Name) for node in walk(bounds)):
            text = "p4c takes no constant's name as a bound of a slice that is assigned to"
            yield target, text, "write the number, or #define it"


@BOTH.at(ast.Instantiation)
def _register(decl: ast.Instantiation) -> Iterator[Found]:
    t = decl.type  # a user may have an extern of this name, without a cell
    if isinstance(t, ExternType) and t.name in _REGISTERS and t.args:
        cell = t.args[0]
        if not _is_bits(cell) and not _never_a_cell(cell):  # of which loading has an error
            text = f"p4c for BMv2 takes registers of bit<> and int<>, not of {cell}"
            yield decl, text, "use a register for each field"
        elif getattr(decl.args[0].expr, "const", None) == 0:
            yield decl, "p4c for BMv2 has no registers of size 0", ""


def _never_a_cell(t: Type) -> bool:
    """Return whether a type is, or has, a header or bits of variable length."""
    match t:
        case Header() | Union() | Varbit():
            return True
        case Fields():
            return any(_never_a_cell(field.type) for field in t.fields)
        case Tuple():
            return any(map(_never_a_cell, t.elements))
        case Array():
            return _never_a_cell(t.element)
        case NewType():
            return _never_a_cell(t.underlying)
    return False


def _is_bits(t: Type) -> bool:
    if isinstance(t, NewType):
        return _is_bits(t.underlying)
    return isinstance(t, Bits | Enum | SerEnum)


@BOTH.at(ast.ValueSetDecl)
def _members(decl: ast.ValueSetDecl) -> Iterator[Found]:
    t = decl.ref.type
    nested = isinstance(t, Struct) and any(isinstance(f.type, Fields | Tuple) for f in t.fields)
    if nested or isinstance(t, Tuple):
        text = f"p4c's P4Info has no value sets of {'nested structs' if nested else 'tuples'}"
        yield decl, text, "use a struct of bit<> fields"


def _is_for_controllers(decl: ast.StructDecl) -> bool:
    return any(note.name == "controller_header" for note in decl.annotations)


@BOTH.at(ast.StructDecl)
def _controller_header(decl: ast.StructDecl) -> Iterator[Found]:
    for field in decl.fields if _is_for_controllers(decl) else ():
        if isinstance(field.ref.type, Bool | Varbit):
            text = (
                f"p4c's P4Info has no {field.ref.type} in a header for packet-ins and packet-outs"
            )
            yield field, text, "use bit<1>" if isinstance(field.ref.type, Bool) else ""


@V1MODEL.at(ast.Binary)
def _concatenation(e: ast.Binary) -> Iterator[Found]:
    left, right = e.left.type, e.right.type
    if e.op != "++" or e.const is not None or not isinstance(right, Bits):
        return
    if isinstance(left, Bits) and left.signed != right.signed:
        text = f"p4c for BMv2 does not put together {left} and {right}, of which one is signed"
        yield e, text, f"cast the right one: ({Bits(right.width, left.signed)}) ..."


@V1MODEL.at(ast.Binary)
def _shift(e: ast.Binary) -> Iterator[Found]:
    if e.op in ("<<", ">>") and e.const is None:
        yield from _far(e, e.right, _amount(e))


@V1MODEL.at(ast.Assign)
def _shift_in_place(assign: ast.Assign) -> Iterator[Found]:
    if assign.op in ("<<=", ">>="):
        amount = assign.value.const
        yield from _far(assign, assign.value, amount if isinstance(amount, int) else 0)


def _far(place: ast.Node, right: ast.Expr, amount: int) -> Iterator[Found]:
    t = right.type
    if isinstance(t, Bits) and t.width > _SHIFT_BITS:
        text = f"p4c for BMv2 takes shift amounts of up to {_SHIFT_BITS} bits, not {t}"
        yield place, text, f"cast it: (bit<{_SHIFT_BITS}>) ..."
    elif amount > _FARTHEST:
        yield place, f"p4c for BMv2 shifts by {_FARTHEST} at most", ""


def _amount(e: ast.Binary) -> int:
    """Return a constant shift's amount with those of the shifts within it, which p4c adds up."""
    if not isinstance(e.right.const, int):
        return 0
    inner = e.left
    if isinstance(inner, ast.Binary) and inner.op == e.op and inner.const is None:
        return e.right.const + _amount(inner)
    return e.right.const


@V1MODEL.at(ast.ForIn)
def _for_in(loop: ast.ForIn) -> Iterator[Found]:
    yield loop, "p4c for BMv2 has no for-in loops", "count with a for loop, in an action"


@V1MODEL.at(ast.ConstDecl)
def _version(decl: ast.ConstDecl) -> Iterator[Found]:
    value = decl.value.const
    first, last = _VERSIONS
    if decl.name == "__v1model_version" and isinstance(value, int) and not first <= value <= last:
        yield decl, f"p4c knows V1MODEL_VERSION {first} to {last}, not {value}", ""


@V1MODEL.at(ast.Instantiation)
def _checksum16(decl: ast.Instantiation) -> Iterator[Found]:
    if instantiates(decl, "Checksum16"):
        yield decl, "p4c for BMv2 has no Checksum16", "use update_checksum or hash"


@V1MODEL.at_calls
def _extern(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if info.kind != "extern":
        return
    if info.name in _OLD:
        yield call, f"p4c's v1model has no {info.name}", f"use {_OLD[info.name]}"
    elif info.name == "mark_to_drop" and not info.args:
        yield call, "p4c's mark_to_drop needs standard_metadata", ""
    elif info.name == "hash" and isinstance(getattr(info.args[3], "type", None), Bits):
        yield call, "p4c wants a list or struct as the data of hash", "write {...}"
    elif info.name == "digest" and any(isinstance(t, Header) for t in info.type_args):
        yield call, "p4c for BMv2 sends structs in digests, not headers", ""


@V1MODEL.at_calls
def _checksum_data(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if info.kind != "extern" or info.name not in _CHECKSUMS:
        return
    data = info.args[1]
    for element in data.elements if isinstance(data, ast.ListExpr) else ():
        if isinstance(element, _COMPUTED) and element.const is None:
            text = f"p4c computes nothing in the data of {info.name}"
            yield element, text, "compute it before, in a field of metadata"


@V1MODEL.at_calls
def _log(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if (info.kind, info.name) != ("extern", "log_msg") or len(info.args) < 2:
        return
    t = getattr(info.args[1], "type", None)
    if not isinstance(t, Struct | Header | Tuple):
        yield call, "p4c wants a list as the values of log_msg", "write {...}"
    elif _mixed(t):
        text = "p4c's log_msg takes no numbers beside the structs and headers among its values"
        yield call, text, "log each in a call of its own"


def _mixed(t: Type) -> bool:
    """Return whether a struct or list has scalars beside structs or headers, at any depth."""
    if not isinstance(t, Struct | Tuple):
        return False
    parts = t.elements if isinstance(t, Tuple) else [f.type for f in t.fields]
    whole = [isinstance(part, Fields | Tuple) for part in parts]
    return any(whole) and not all(whole) or any(map(_mixed, parts))


@BOTH.at(ast.Index)
def _run_time_index(node: ast.Index) -> Iterator[Found]:
    if is_array(node.base.type) and node.index.const is None:
        text = f"p4c for BMv2 takes constant indices only of an array of {node.type}"
        yield node, text, "use an array of headers"


@BOTH.at(ast.ParserDecl)
def _arrays_of_a_packet(parser: ast.ParserDecl) -> Iterator[Found]:
    """Arrays in headers and metadata. Constant indices take those in variables apart."""
    for param in parser.params:
        if (array := _array_in(param.type)) is not None:
            text = f"p4c for BMv2 takes {array} in local variables only"
            yield param, text, "use fields, or an array of headers"


def _array_in(t: object) -> Array | None:
    """Return the first array of something else than headers in a type, at any depth."""
    if is_array(t):
        return t
    parts = [field.type for field in t.fields] if isinstance(t, Fields) else []
    parts += t.elements if isinstance(t, Tuple) else []
    parts += [t.element] if isinstance(t, Stack) else []
    return next((found for part in parts if (found := _array_in(part)) is not None), None)


@BOTH.at(ast.Instantiation)
def _array_of_instances(decl: ast.Instantiation) -> Iterator[Found]:
    if is_array(decl.type):
        element = decl.type.element
        if isinstance(element, ExternType) and not element.args:
            text = f"p4c for BMv2 makes one {element} of an array of them"
        else:
            text = f"p4c for BMv2 has no arrays of {element}"
        yield decl, text, "declare each by itself"


@BOTH.at(ast.VarDecl)
def _arrays_within(decl: ast.VarDecl) -> Iterator[Found]:
    """An array of structs with arrays."""
    if is_array(decl.type) and (inner := _array_in_struct(decl.type.element)) is not None:
        yield decl, f"p4c for BMv2 has no arrays of structs with {inner}", "use fields"


def _array_in_struct(t: Type) -> Array | None:
    return _array_in(t) if isinstance(t, Fields | Tuple) else None


@BOTH.at(ast.Ternary)
def _array_chosen(e: ast.Ternary) -> Iterator[Found]:
    if is_array(e.type):
        yield e, "p4c for BMv2 does not choose between arrays", "choose between the elements"


@BOTH.at(ast.ListExpr)
def _array_of_arrays(e: ast.ListExpr) -> Iterator[Found]:
    for element in e.elements if is_array(e.type) else ():
        if is_array(element.type) and not isinstance(element, ast.ListExpr):
            yield element, "p4c for BMv2 has no arrays within a list", "list the elements"


@BOTH.at_calls
def _array_given(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if info.kind not in ("action", "extern", "method"):
        return
    for arg in info.args:
        if (array := _array_in(getattr(arg, "type", None))) is not None:
            text = f"p4c for BMv2 gives no {array} to {info.name}"
            yield call, text, "give it the elements"
            return


def arrays_that_stay(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find variables with arrays in a declaration that p4c cannot replace by their values: they are
    changed on one way only, or both in an action or a state and outside it."""
    arrays = {n for n in nodes if isinstance(n, ast.VarDecl) and _array_in(n.type) is not None}
    if not arrays:
        return
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.decl in arrays]
    parts = [n for n in nodes if isinstance(n, ast.ActionDecl | ast.ParserState)]
    ways = [n for n in nodes if isinstance(n, ast.If | ast.SwitchStmt)]
    for decl in sorted(arrays, key=begins):
        of_it = [use for use in uses if use.decl is decl]
        if _is_shared(of_it, parts) or any(_lasts(way, of_it) for way in ways):
            text = f"p4c for BMv2 loses {decl.name}, an array that other paths or blocks use"
            yield decl, text, "use a variable for each element"


def _is_shared(uses: Sequence[ast.Name], parts: Sequence[ast.Node]) -> bool:
    """Return whether a variable is used in several states, or in an action and outside actions."""
    inside = [{id(n) for n in walk(part)} for part in parts]
    states = [
        ids for part, ids in zip(parts, inside, strict=True) if isinstance(part, ast.ParserState)
    ]
    users = [ids for ids in inside if any(id(use) in ids for use in uses)]
    outside = any(all(id(use) not in ids for ids in users) for use in uses)
    return bool(users) and (outside or len([ids for ids in users if ids in states]) > 1)


def _lasts(way: ast.Node, uses: Sequence[ast.Name]) -> bool:
    """Return whether a branch changes a variable that is used after it."""
    nodes = list(walk(way))
    inside = {id(n) for n in nodes}
    targets = [n.target for n in nodes if isinstance(n, ast.Assign)]
    changed = any(id(use) in {id(n) for t in targets for n in walk(t)} for use in uses)
    end = max(map(begins, nodes))
    declared = any(use.decl in nodes for use in uses)
    return changed and not declared and any(begins(u) > end and id(u) not in inside for u in uses)


@V1MODEL.at(ast.ActionDecl)
def _action(decl: ast.ActionDecl) -> Iterator[Found]:
    for node in walk(decl.body):
        if isinstance(node, ast.SwitchStmt) or _calls(node, ast.SwitchStmt):
            yield node, "p4c for BMv2 has no switch statements in actions", "use if"
        info = node.info if isinstance(node, ast.Call) else None
        if isinstance(info, CallInfo) and info.name.endswith("_preserving_field_list"):
            number = info.args[-1]
            if isinstance(number, ast.Name) and number.decl in decl.params:
                yield number, "p4c for BMv2 wants a constant as the number of a field list", ""
    for param in decl.params:
        odd = isinstance(param.type, Bool | Error | Fields | Array | Tuple | MatchKind)
        if odd and not param.direction:
            what = "a bool" if isinstance(param.type, Bool) else f"of type {param.type}"
            text = f"p4c for BMv2 takes bit<> and int<> as action data: {param.name} is {what}"
            yield param, text, "use bit<1>" if what == "a bool" else "use parameters of bits"


@V1MODEL.at(ast.StructDecl)
def _odd_header(decl: ast.StructDecl) -> Iterator[Found]:
    if decl.kind != "header" or decl.type_params:
        return
    sizes = [None if f.ref.type is None else size_bits(f.ref.type, False) for f in decl.fields]
    bits = sum(size or 0 for size in sizes)
    if None not in sizes and bits & 7:
        text = f"p4c for BMv2 needs headers of whole bytes; this one has {bits} bits"
        yield decl, text, f"add a field of {-bits & 7} bits"


@V1MODEL_PARSERS.at(ast.SwitchStmt)
def _switch(statement: ast.SwitchStmt) -> Iterator[Found]:
    yield statement, "p4c for BMv2 has no switch statements in parsers", "use select"


@V1MODEL_PARSERS.at(ast.TupleKey)
def _value_set(key: ast.TupleKey) -> Iterator[Found]:
    for element in key.elements:
        if isinstance(element.type, SetType) and isinstance(element, ast.Name):
            text = "p4c for BMv2 takes a value set for the select's whole key only"
            yield element, text, ""


@V1MODEL_PARSERS.at_calls
def _parser_call(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    function = called_function(call)
    if info.kind == "builtin" and info.name in ("push_front", "pop_front"):
        yield call, f"p4c has no {info.name} in parsers", ""
    elif info.kind == "method" and info.name == "length":
        yield call, "p4c for BMv2 does not know the packet's length", "use packet_length"
    elif info.kind == "extern" and info.name not in _IN_PARSERS:
        yield call, f"p4c for BMv2 has no {info.name} in parsers", ""
    elif function and any(isinstance(n, ast.If | ast.For) for n in walk(function.body)):
        yield call, f"p4c for BMv2 has no if in functions of a parser, as in {info.name}", ""


def loops_outside_actions(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find them among the nodes of a declaration: p4c takes them, and does them once."""
    inside = {id(n) for a in nodes if isinstance(a, ast.ActionDecl) for n in walk(a.body)}
    if any(isinstance(n, ast.FunctionDecl) for n in nodes[:1]):
        return
    for node in nodes:
        if id(node) not in inside and (isinstance(node, ast.For) or _calls(node, ast.For)):
            text = "p4c for BMv2 does the body of a loop outside an action once"
            yield node, text, "put it into an action"


def _calls(node: ast.Node, kind: type[ast.Stmt]) -> bool:
    """Return whether a node is a call of a function that has a statement of a kind."""
    function = called_function(node)
    body = [] if function is None else walk(function.body)
    return any(isinstance(n, kind) or _calls(n, kind) for n in body)


def different_externs(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find instances of a control or parser that are applied with different externs."""
    first: dict[tuple[ast.Decl, int], ast.Decl] = {}
    for node in nodes:
        info = node.info if isinstance(node, ast.Call) else None
        if not isinstance(info, CallInfo) or info.kind != "block":
            continue
        applied = info.base.decl if isinstance(info.base, ast.Name) else None
        for at, arg in enumerate(info.args):
            if applied is None or not isinstance(arg, ast.Name):
                continue
            if not isinstance(arg.type, ExternType) or arg.type.name in _PACKETS:
                continue
            if first.setdefault((applied, at), arg.decl) is not arg.decl:
                text = f"p4c applies {applied.name} with the same {arg.type.name} everywhere"
                yield arg, text, "instantiate it once for each"


def of_the_other_control(nodes: Sequence[ast.Node], control: str) -> Iterator[Found]:
    """Find calls in "ingress" or "egress" that p4c takes in the other one only."""
    kind, call = {"ingress": ("E2E", "recirculate"), "egress": ("I2E", "resubmit")}[control]
    for node in nodes:
        info = node.info if isinstance(node, ast.Call) else None
        if not isinstance(info, CallInfo) or info.kind != "extern":
            continue
        first = info.args[0] if info.args else None
        if info.name == f"{call}_preserving_field_list":
            yield node, f"p4c for BMv2 has no {call} in {control}", ""
        elif info.name in _CLONES and isinstance(first, ast.Member) and first.name == kind:
            yield node, f"p4c for BMv2 has no clone of type {kind} in {control}", ""


def other_than_calls(stmt: ast.Stmt, where: str, what: str) -> Iterator[Found]:
    """Find the statements of a block that are no calls; `what` calls do `where`."""
    for inner in stmt.body if isinstance(stmt, ast.Block) else [stmt]:
        if isinstance(inner, ast.Block):
            yield from other_than_calls(inner, where, what)
        elif not isinstance(inner, ast.CallStmt | ast.Empty):
            yield inner, f"p4c for BMv2: {where} can only {what}", ""


# -- constructs that BMv2 misreads ------------------------------------------------------------


MISREAD = Rules()


@MISREAD.at(ast.Member)
def _struct_chosen(field: ast.Member) -> Iterator[Found]:
    if isinstance(field.base, ast.Ternary) and isinstance(field.base.type, Struct):
        text = "p4c's JSON for a field of a struct chosen by ?: crashes BMv2"
        yield field, text, "choose between the fields"


@MISREAD.at(ast.Cast)
def _through_int(cast: ast.Cast) -> Iterator[Found]:
    """(T) (int) x, and y = (int) x: the int has 0 bits in p4c's JSON."""
    ref = cast.ref
    to_int = isinstance(ref, ast.BaseTypeRef) and ref.name == "int" and ref.width is None
    if cast.through_int or to_int and cast.const is None:
        text = "p4c's JSON has 0 for an int that depends on the packet"
        yield cast, text, "cast it to bit<> or int<>"


@MISREAD.at_calls
def _validity(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    """isValid() of an element of a stack."""
    element = info.base
    if (info.kind, info.name) != ("builtin", "isValid") or not _is_element(element):
        return
    if isinstance(element.type, Union):
        text = "p4c's JSON for isValid() of a union in a stack crashes BMv2"
        yield call, text, "call isValid() of its headers"
    elif element.index.const is None:
        text = "BMv2 refuses p4c's JSON for isValid() of an element with a run-time index"
        yield call, text, "test each index in turn"


def _is_element(e: object) -> TypeGuard[ast.Index]:
    return isinstance(e, ast.Index) and isinstance(e.base.type, Stack)


@MISREAD.at(ast.Select)
def _before_others(select: ast.Select) -> Iterator[Found]:
    """A case that matches everything without being `_`, and others behind it."""
    for at, case in enumerate(select.cases):
        if isinstance(case.keyset, ast.DefaultKey):
            return  # p4c leaves out what follows
        if _catches_all(case.keyset):
            if any(later.state != case.state for later in select.cases[at + 1 :]):
                text = "p4c's JSON has this case as the default, after those that follow"
                yield case.keyset, text, "leave out those that follow"
            return


def _catches_all(keyset: ast.Expr) -> bool:
    match keyset:
        case ast.TupleKey():
            return all(map(_catches_all, keyset.elements))
        case ast.Range(low=low, high=high):
            t = low.type
            whole = isinstance(t, Bits) and not t.signed and high.const == (1 << t.width) - 1
            return whole and low.const == 0
        case ast.Mask():
            return bool(keyset.mask.const == 0)
        case _:
            return isinstance(keyset, ast.DefaultKey)


@MISREAD.at(ast.TableDecl)
def _entry_twice(table: ast.TableDecl) -> Iterator[Found]:
    if any(key.match_kind != "exact" for key in table.key):
        return
    seen = set[object]()
    for entry in table.entries:
        keyset = entry.keyset
        values = keyset.elements if isinstance(keyset, ast.TupleKey) else [keyset]
        key = tuple(getattr(value, "const", None) for value in values)
        if key in seen and None not in key:
            yield keyset, "BMv2 ends at p4c's JSON for a second entry of one key", "leave it out"
        seen.add(key)


@MISREAD.at(ast.Select)
def _last_index(select: ast.Select) -> Iterator[Found]:
    for e in select.exprs:
        if isinstance(e, ast.Member) and e.name == "lastIndex" and isinstance(e.base.type, Stack):
            text = "p4c's JSON for a select on lastIndex crashes BMv2"
            yield e, text, "cast it: (bit<8>) ..."


@MISREAD.at(ast.ActionDecl)
def _index_in_action_data(action: ast.ActionDecl) -> Iterator[Found]:
    data = [param for param in action.params if not param.direction]
    for node in walk(action.body):
        if _is_element(node) and isinstance(node.index, ast.Name) and node.index.decl in data:
            text = "p4c's JSON for action data as the index of a stack crashes BMv2"
            yield node, text, "copy it to a field of the metadata first"


@MISREAD.at(ast.Assign)
def _list_that_reads(assign: ast.Assign) -> Iterator[Found]:
    """A list with fields of the header that it is assigned to."""
    if assign.op != "=" or not isinstance(assign.target.type, Header):
        return
    value = assign.value.operand if isinstance(assign.value, ast.Cast) else assign.value
    literal = isinstance(value, ast.ListExpr | ast.StructExpr)
    if literal and any(_same(node, assign.target) for node in walk(value)):
        text = "p4c's JSON for a list that reads the header it is assigned to makes it invalid"
        yield assign, text, "assign its fields"


def _same(a: ast.Node, b: ast.Node) -> bool:
    """Return whether two expressions certainly are the same place."""
    match a, b:
        case ast.Name(), ast.Name():
            return a.decl is b.decl
        case ast.Member(), ast.Member():
            return a.name == b.name and _same(a.base, b.base)
        case ast.Index(), ast.Index():
            known = a.index.const is not None and a.index.const == b.index.const
            return known and _same(a.base, b.base)
    return False


# -- psa_switch -------------------------------------------------------------------------------


PSA = Rules()
PSA_PARSERS = Rules()
_CALLED_IN_PSA_PARSERS = ("packet_in", "InternetChecksum")


@PSA.at(ast.Instantiation)
def _instance(decl: ast.Instantiation) -> Iterator[Found]:
    if instantiates(decl, "DirectMeter"):
        yield decl, "p4c for psa_switch has no DirectMeter", "use a Meter"
    elif instantiates(decl, "Register") and len(decl.args) > 1:
        yield decl, "p4c for psa_switch has no initial values of registers", ""


@PSA_PARSERS.at_calls
def _method(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if info.kind == "method" and info.base is not None:
        t = info.base.type
        if isinstance(t, ExternType) and t.name not in _CALLED_IN_PSA_PARSERS:
            yield call, f"p4c for psa_switch has no {t.name} in parsers", ""


def conditions(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find them among the nodes of a deparser."""
    for node in nodes:
        if isinstance(node, ast.If | ast.SwitchStmt):
            yield node, "p4c for psa_switch has no conditions in deparsers", ""
