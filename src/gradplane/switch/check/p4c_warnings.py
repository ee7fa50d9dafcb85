"""Warnings about what this compiler takes and p4c refuses, or reads otherwise.

The limits of its back end for BMv2 (p4lang/p4c, backends/bmv2) are looked for in programs of
v1model only. The warnings' kind is "p4c".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from gradplane.switch.check import p4c_json, p4c_language
from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.checker_types import BlockType, ExternType, SetType
from gradplane.switch.check.p4c_language import Found
from gradplane.switch.check.wire_sizes import size_bits
from gradplane.switch.ir.types import Bits, Bool, Enum, Error, Header
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

KIND = "p4c"
_PACKAGE, _PSA = "V1Switch", "PSA_Switch"
_PSA_PARSERS = ("packet_in", "InternetChecksum")
_CHECKSUMS, _DEPARSER = (1, 4), 5  # positions among the package's arguments
_IN_PARSERS = ("verify", "log_msg")  # extern functions
_OLD = {
    "resubmit": "resubmit_preserving_field_list",
    "recirculate": "recirculate_preserving_field_list",
    "clone3": "clone_preserving_field_list",
}
_PACKETS = ("packet_in", "packet_out")
_SHIFT_BITS, _FARTHEST = 8, 256  # the widest shift amount; the largest constant one


def warn_p4c(c: Checker, program: ast.Program) -> None:
    """Warn of what p4c refuses, each at its place in a declaration of the program."""
    package, blocks = _package(program), _blocks(program)
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            _report(c, p4c_language.refused(c.nodes[decl]))
            if blocks is not None:
                _report(c, _in_declaration(decl, c.nodes[decl], blocks))
            elif package == _PSA:
                _report(c, _in_psa(decl, c.nodes[decl]))


def _report(c: Checker, found: Iterator[Found]) -> None:
    for node, message, hint in found:
        c.warn(node, KIND, message, hint)


def _package(program: ast.Program) -> str:
    """Return the name of the package that `main` is; "" if there is none."""
    info = _main(program)
    return "" if info is None else info.name


def _main(program: ast.Program) -> CallInfo | None:
    mains = [
        d for d in program.declarations if isinstance(d, ast.Instantiation) and d.name == "main"
    ]
    return mains[-1].info if mains else None


def _blocks(program: ast.Program) -> Sequence[ast.Decl | None] | None:
    """Return the declarations of the package's blocks; None if it is no V1Switch."""
    main = _main(program)
    if main is None or main.name != _PACKAGE:
        return None
    types = (None if arg is None else arg.type for arg in main.args)
    return [t.decl if isinstance(t, BlockType) else None for t in types]


def _in_psa(decl: ast.Decl, nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Limits of p4c's back end for psa_switch."""
    if isinstance(decl, ast.ParserDecl):
        for node in nodes:
            info = node.info if isinstance(node, ast.Call) else None
            if isinstance(info, CallInfo) and info.kind == "method" and info.base is not None:
                t = info.base.type
                if isinstance(t, ExternType) and t.name not in _PSA_PARSERS:
                    yield node, f"p4c for psa_switch has no {t.name} in parsers", ""
    elif isinstance(decl, ast.ControlDecl) and any(_is_packet_out(p) for p in decl.params):
        for node in nodes:
            if isinstance(node, ast.If | ast.SwitchStmt):
                yield node, "p4c for psa_switch has no conditions in deparsers", ""
    for node in nodes:
        if isinstance(node, ast.TableDecl):
            yield from _keys(node)
        elif _instantiates(node, "DirectMeter"):
            yield node, "p4c for psa_switch has no DirectMeter", "use a Meter"
        elif _instantiates(node, "Register") and len(node.args) > 1:
            yield node, "p4c for psa_switch has no initial values of registers", ""


def _instantiates(node: ast.Node, extern: str) -> TypeGuard[ast.Instantiation]:
    t = node.type if isinstance(node, ast.Instantiation) else None
    return isinstance(t, ExternType) and t.name == extern


def _is_packet_out(param: ast.Param) -> bool:
    return isinstance(param.type, ExternType) and param.type.name == "packet_out"


def _in_declaration(
    decl: ast.Decl, nodes: Sequence[ast.Node], blocks: Sequence[ast.Decl | None]
) -> Iterator[Found]:
    yield from _shifts(nodes)
    yield from _loops(nodes)
    yield from _externs(nodes)
    yield from _extern_arguments(nodes)
    yield from p4c_json.misread(nodes)
    for node in nodes:
        if isinstance(node, ast.TableDecl):
            yield from _keys(node)
        elif isinstance(node, ast.ActionDecl):
            yield from _action(node)
    match decl:
        case ast.StructDecl(kind="header", type_params=[]):
            yield from _odd_header(decl)
        case ast.ParserDecl():
            yield from _parser(nodes)
        case ast.ControlDecl() if decl in blocks:
            at = blocks.index(decl)
            if at == _DEPARSER:
                yield from _only_calls(decl.body, "a deparser", "emit")
            elif at in _CHECKSUMS:
                yield from _only_calls(decl.body, "a checksum block", "verify and update checksums")


def _shifts(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        if isinstance(node, ast.Binary) and node.op in ("<<", ">>") and node.const is None:
            amount, t = node.right.const, node.right.type
            if isinstance(amount, int):
                if amount > _FARTHEST:
                    yield node, f"p4c for BMv2 shifts by {_FARTHEST} at most", ""
            elif isinstance(t, Bits) and t.width > _SHIFT_BITS:
                text = f"p4c for BMv2 takes shift amounts of up to {_SHIFT_BITS} bits, not {t}"
                yield node, text, f"cast it: (bit<{_SHIFT_BITS}>) ..."


def _loops(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Loops outside actions are taken, and done once."""
    inside = {id(n) for a in nodes if isinstance(a, ast.ActionDecl) for n in walk(a.body)}
    function = any(isinstance(n, ast.FunctionDecl) for n in nodes[:1])
    for node in nodes:
        outside = not function and id(node) not in inside
        if isinstance(node, ast.ForIn):
            yield node, "p4c for BMv2 has no for-in loops", "count with a for loop, in an action"
        elif outside and (isinstance(node, ast.For) or _calls_loop(node)):
            text = "p4c for BMv2 does the body of a loop outside an action once"
            yield node, text, "put it into an action"


def _calls_loop(node: ast.Node) -> bool:
    """Return whether a node is a call of a function that has a loop."""
    info = node.info if isinstance(node, ast.Call) else None
    if not isinstance(info, CallInfo) or not isinstance(info.decl, ast.FunctionDecl):
        return False
    return any(isinstance(n, ast.For) or _calls_loop(n) for n in walk(info.decl.body))


def _externs(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        info = node.info if isinstance(node, ast.Call) else None
        if _instantiates(node, "Checksum16"):
            yield node, "p4c for BMv2 has no Checksum16", "use update_checksum or hash"
        elif isinstance(info, CallInfo) and info.kind == "extern":
            if info.name in _OLD:
                yield node, f"p4c's v1model has no {info.name}", f"use {_OLD[info.name]}"
            elif info.name == "mark_to_drop" and not info.args:
                yield node, "p4c's mark_to_drop needs standard_metadata", ""
            elif info.name == "hash" and isinstance(getattr(info.args[3], "type", None), Bits):
                yield node, "p4c wants a list or struct as the data of hash", "write {...}"
            elif info.name == "digest" and any(isinstance(t, Header) for t in info.type_args):
                yield node, "p4c for BMv2 sends structs in digests, not headers", ""


def _extern_arguments(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """An instance of a control or parser applied with different externs."""
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


def _keys(table: ast.TableDecl) -> Iterator[Found]:
    for key in table.key:
        if isinstance(key.expr.type, Enum):
            text = f"p4c's P4Info has no match on {key.expr.type}, an enum without a width"
            yield key, text, "give the enum an underlying type: enum bit<8> ..."
        elif isinstance(key.expr.type, Error) and table.entries:
            yield key, "p4c for BMv2 has no entries for an error", "compare it in the key"
    for node in walk([*table.entries, *_some(table.default_action)]):
        if isinstance(node, ast.Expr) and isinstance(node.const, int) and node.const < 0:
            yield node, "p4c's P4Info has no negative numbers in tables", ""
            return


def _some(ref: ast.ActionRef | None) -> list[ast.ActionRef]:
    return [] if ref is None else [ref]


def _action(decl: ast.ActionDecl) -> Iterator[Found]:
    for node in walk(decl.body):
        if isinstance(node, ast.SwitchStmt):
            yield node, "p4c for BMv2 has no switch statements in actions", "use if"
    for param in decl.params:
        if isinstance(param.type, Bool) and not param.direction:
            text = f"p4c for BMv2 takes bit<> and int<> as action data: {param.name} is a bool"
            yield param, text, "use bit<1>"


def _odd_header(decl: ast.StructDecl) -> Iterator[Found]:
    sizes = [None if f.ref.type is None else size_bits(f.ref.type, False) for f in decl.fields]
    bits = sum(size or 0 for size in sizes)
    if None not in sizes and bits & 7:
        text = f"p4c for BMv2 needs headers of whole bytes; this one has {bits} bits"
        yield decl, text, f"add a field of {-bits & 7} bits"


def _parser(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    for node in nodes:
        info = node.info if isinstance(node, ast.Call) else None
        if isinstance(node, ast.SwitchStmt):
            yield node, "p4c for BMv2 has no switch statements in parsers", "use select"
        elif isinstance(node, ast.TupleKey):
            for element in node.elements:
                if isinstance(element.type, SetType) and isinstance(element, ast.Name):
                    text = "p4c for BMv2 takes a value set for the select's whole key only"
                    yield element, text, ""
        elif isinstance(info, CallInfo):
            yield from _parser_call(node, info)


def _parser_call(node: ast.Node, info: CallInfo) -> Iterator[Found]:
    if info.kind == "builtin" and info.name in ("push_front", "pop_front"):
        yield node, f"p4c has no {info.name} in parsers", ""
    elif info.kind == "method" and info.name == "length":
        yield node, "p4c for BMv2 does not know the packet's length", "use packet_length"
    elif info.kind == "extern" and info.name not in _IN_PARSERS:
        yield node, f"p4c for BMv2 has no {info.name} in parsers", ""
    elif info.kind == "function" and isinstance(info.decl, ast.FunctionDecl):
        branches = [n for n in walk(info.decl.body) if isinstance(n, ast.If | ast.For)]
        if branches:
            yield node, f"p4c for BMv2 has no if in functions of a parser, as in {info.name}", ""


def _only_calls(stmt: ast.Stmt, where: str, what: str) -> Iterator[Found]:
    for inner in stmt.body if isinstance(stmt, ast.Block) else [stmt]:
        if isinstance(inner, ast.Block):
            yield from _only_calls(inner, where, what)
        elif not isinstance(inner, ast.CallStmt | ast.Empty):
            yield inner, f"p4c for BMv2: {where} can only {what}", ""
