"""Warnings about variables that are read before they can have been given a value, about
declarations that are never used and `out` parameters that are never set, and about headers whose
fields are used although they are never made valid.

The analysis of variables is simple and conservative: anything an earlier statement may have
written, on any path, counts as written, and so does, within a loop, anything the loop writes later.
A variable of a whole parser or control is only reported if nothing in it ever writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gradplane.switch.check.checker_types import BlockType, TypeName
from gradplane.switch.check.context import Context, root
from gradplane.switch.check.type_resolution import leaves
from gradplane.switch.ir.types import Array, Fields, Header, Struct, Type, Union, parts
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

_SETTERS = {"setValid", "setInvalid", "push_front", "pop_front"}


def warn_unset(c: Context, program: ast.Program) -> None:
    """Check every body of a checked program."""
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            _warn_in(c, decl)


def _warn_in(c: Context, decl: ast.Decl) -> None:
    match decl:
        case ast.FunctionDecl(body=ast.Block(body=body)) | ast.ActionDecl(body=body):
            _Body(c, ()).statements([body] if isinstance(body, ast.Block) else body)
        case ast.ControlDecl(locals=members):
            bodies: list[Sequence[ast.Stmt]] = [[decl.body]]
            bodies += [[m.body] for m in members if isinstance(m, ast.ActionDecl)]
            _block(c, members, bodies)
        case ast.ParserDecl(locals=members, states=states):
            _block(c, members, [s.body for s in states], [s.transition for s in states])


def _block(
    c: Context,
    members: Sequence[ast.Decl],
    bodies: Sequence[Sequence[ast.Stmt]],
    others: Sequence[object] = (),
) -> None:
    unset = {m for m in members if isinstance(m, ast.VarDecl) and _starts_unset(m)}
    if unset:
        unset -= {name.decl for name in writes([*members, *bodies])}
    for body in bodies:
        _Body(c, unset).statements(body)
    tables = [m for m in members if isinstance(m, ast.TableDecl)]
    _Body(c, unset).reads([*tables, *others])


def _starts_unset(decl: ast.VarDecl) -> bool:
    """Return whether variables of this type start undefined; headers start invalid."""
    return decl.init is None and decl.type is not None and not holds_header(decl.type)


def holds_header(t: Type) -> bool:
    if isinstance(t, Struct | Array):
        return any(map(holds_header, parts(t)))
    return isinstance(t, Header | Union)


class _Body:
    """Follows statements in order; `unset` holds the variables that nothing has written yet."""

    def __init__(self, c: Context, unset: Iterable[ast.VarDecl]) -> None:
        self.c = c
        self.unset: set[ast.Decl] = set(unset)

    def statements(self, statements: Sequence[ast.Stmt | None]) -> None:
        for s in statements:
            self._statement(s)

    def _statement(self, s: ast.Stmt | None) -> None:
        match s:
            case ast.Block(body=body):
                self.statements(body)
            case ast.If(cond=cond, then=then, other=other):
                self.reads(cond)
                self.statements([then, other])
            case ast.SwitchStmt(subject=subject, cases=cases):
                self.reads(subject)
                self.statements([case.body for case in cases])
            case ast.For() | ast.ForIn():
                self._wrote(writes(s))
                self.reads(s)
            case ast.DeclStmt(decl=ast.VarDecl() as decl) if _starts_unset(decl):
                self.unset.add(decl)
            case None:
                return
            case _:
                self.reads(s)
                if self.unset:
                    self._wrote(writes(s))

    def reads(self, tree: object) -> None:
        """Warn of unset variables read in a part of the tree, once for each variable."""
        if not self.unset:
            return
        targets = {id(name) for name in _targets(tree)}
        for node in walk(tree):
            if not isinstance(node, ast.Name) or id(node) in targets:
                continue
            if isinstance(node.decl, ast.VarDecl) and node.decl in self.unset:
                what = f"{node.name} is read before it is given a value"
                self.c.warn(node, "uninitialized_use", what)
                self.unset.discard(node.decl)

    def _wrote(self, names: Iterable[ast.Name]) -> None:
        self.unset -= {name.decl for name in names}


def writes(tree: object) -> Iterator[ast.Name]:
    """Return the names that are assigned, passed as out or inout, or set valid."""
    for place in written(walk(tree)):
        yield from _root_name(place)


def written(nodes: Iterable[ast.Node]) -> Iterator[ast.Expr]:
    """Return what the nodes themselves assign, pass as out or inout, or set valid."""
    for node in nodes:
        match node:
            case ast.Assign(target=target):
                yield target
            case ast.Call(info=info) if info is not None:
                for arg, param in zip(info.args, info.signature.params, strict=False):
                    if arg is not None and param.direction in ("out", "inout"):
                        yield arg
                if info.kind == "builtin" and info.name in _SETTERS:
                    yield info.base
            case ast.ActionRef(info=info) if info is not None:
                yield from info.bound


def _targets(tree: object) -> Iterator[ast.Name]:
    """Yield the names that are not read: those written or asked for a size.

    The target of a compound assignment is read.
    """
    compound = [n for n in walk(tree) if isinstance(n, ast.Assign) and n.op != "="]
    read = {id(name) for n in compound for name in _root_name(n.target)}
    yield from (name for name in writes(tree) if id(name) not in read)
    for node in walk(tree):
        if isinstance(node, ast.Call) and node.const is not None and node.info is not None:
            yield from _root_name(node.callee)


def _root_name(e: ast.Expr) -> Iterator[ast.Name]:
    found = root(e)
    if isinstance(found, ast.Name):
        yield found


# -- declarations that nothing uses -----------------------------------------------------------


_BLOCKS = (ast.ParserDecl, ast.ControlDecl)
_CODE = (ast.FunctionDecl, ast.ActionDecl, *_BLOCKS)


def warn_unused(c: Context, program: ast.Program) -> None:
    """Check the main file only: declarations in included files may be used by others."""
    used = _used(chain.from_iterable(c.nodes.values()))
    complete = any(d.name == "main" for d in program.declarations)
    for decl in program.declarations:
        if decl.span.file != program.span.file or not isinstance(decl, _CODE):
            continue
        with c.quiet(decl.annotations):
            if complete and decl not in used:
                _say(c, decl)
            _unset_outs(c, decl)
            for member in _locals(c, decl):
                if member not in used:
                    with c.quiet(member.annotations):
                        _say(c, member)
            if isinstance(decl, ast.ControlDecl):
                for action in decl.locals:
                    if isinstance(action, ast.ActionDecl):
                        _unset_outs(c, action)


def _say(c: Context, decl: ast.Decl) -> None:
    place, what = decl.name_span or decl.span, f"{_NAMES[type(decl)]} {decl.name}"
    done = "applied" if isinstance(decl, ast.TableDecl) else "used"
    c.warn_at(place, "unused", f"{what} is never {done}")


_NAMES: dict[type[ast.Decl], str] = {
    ast.ActionDecl: "action",
    ast.ControlDecl: "control",
    ast.FunctionDecl: "function",
    ast.Instantiation: "instance",
    ast.ParserDecl: "parser",
    ast.TableDecl: "table",
    ast.ValueSetDecl: "value set",
    ast.VarDecl: "variable",
}


def _locals(c: Context, decl: ast.Decl) -> Sequence[ast.Decl]:
    """Return its declarations of the kinds in _NAMES, at any depth."""
    nodes = [n for n in c.nodes[decl] if isinstance(n, ast.ForIn) or type(n) in _NAMES]
    found = [n for n in nodes if isinstance(n, ast.Decl)]
    loops = {id(n.var) for n in nodes if isinstance(n, ast.ForIn)}
    return [n for n in found if n is not decl and id(n) not in loops and not _method(n)]


def _method(decl: ast.Decl) -> bool:
    """Return whether it implements an abstract method, which the architecture may call."""
    return isinstance(decl, ast.FunctionDecl)


def _used(nodes: Iterable[ast.Node]) -> set[ast.Decl]:
    used: set[ast.Decl] = set()
    for node in nodes:
        if type(node) is ast.ActionRef:  # first, since large tables have many
            if node.info is not None:
                used.add(node.info.decl)
            continue
        match node:
            case ast.Name(decl=ast.Decl() as decl):
                used.add(decl)
            case ast.TypeExpr() | ast.Instantiation():
                denoted = node.type.denoted if isinstance(node.type, TypeName) else node.type
                if isinstance(denoted, BlockType) and denoted.decl is not None:
                    used.add(denoted.decl)
        if isinstance(node, ast.Call) and node.info is not None and node.info.decl is not None:
            used.add(node.info.decl)
    return used


def _unset_outs(c: Context, decl: ast.Decl) -> None:
    params: list[ast.Param] = getattr(decl, "params", [])
    outs = [p for p in params if p.direction == "out" and p.type is not None]
    if not outs or getattr(decl, "body", True) is None:
        return
    written = {name.decl for name in writes(decl)}
    for p in outs:
        assert p.type is not None
        if p not in written and not holds_header(p.type) and leaves(p.type):
            with c.quiet([*decl.annotations, *p.annotations]):
                what = f"{p.name} is an out parameter and is never given a value"
                c.warn(p, "uninitialized_out_param", what)


# -- headers that are never valid -------------------------------------------------------------


Member = tuple[str, str]  # (struct or union, field): where a header is, in any such struct


def warn_never_valid(c: Context, program: ast.Program) -> None:
    """Warn of headers that are used and never made valid.

    A header is made valid by extract, setValid, an assignment or as an out or inout argument, by
    itself or as part of a larger value.
    """
    made = {m for e in _makers(c) for m in _made(e)}
    warned: set[Member] = set()
    for decl in program.declarations:
        with c.quiet(decl.annotations):
            _warn_of_headers(c, decl, made, warned)


def _warn_of_headers(c: Context, decl: ast.Decl, made: set[Member], warned: set[Member]) -> None:
    for node in c.nodes[decl]:
        if isinstance(node, ast.Member) and isinstance(node.base.type, Header):
            for place in _places(node.base):
                if place not in made | warned and not _is_method(node):
                    warned.add(place)
                    c.warn(
                        node,
                        "invalid_header",
                        f"header {place[1]} is used but never made valid",
                        "it is never extracted, assigned or setValid()",
                    )


def _is_method(e: ast.Member) -> bool:
    return not isinstance(e.base.type, Fields) or e.base.type.index(e.name) is None


def _makers(c: Context) -> Iterator[ast.Expr]:
    """Yield the l-values that a valid header may be stored in."""
    for node in chain.from_iterable(c.nodes.values()):
        match node:
            case ast.Assign(target=target):
                yield target
            case ast.VarDecl(init=ast.Expr() as init):
                yield init
            case ast.Call(info=info) if info is not None:
                if info.kind == "builtin" and info.name == "setValid":
                    yield info.base
                for arg, param in zip(info.args, info.signature.params, strict=False):
                    own = info.kind in ("function", "action", "block")
                    if arg is None or param.direction not in ("out", "inout"):
                        continue
                    if not (own and isinstance(arg.type, Struct)):  # its body is examined itself
                        yield arg


def _made(e: ast.Expr) -> Iterator[Member]:
    if not (isinstance(e, ast.Member) and isinstance(e.base.type, Header)):
        yield from _places(e)
        yield from _inside(e.type)


def _places(e: ast.Expr) -> Iterator[Member]:
    """Yield the struct or union fields on the path of an expression down to a header."""
    while isinstance(e, ast.Member | ast.Index):
        holds = isinstance(e.type, Header | Array | Union)
        if holds and isinstance(e, ast.Member) and isinstance(e.base.type, Struct | Union):
            yield e.base.type.name, e.name
        e = e.base


def _inside(t: Type | None) -> Iterator[Member]:
    """Yield all headers within a value of this type."""
    match t:
        case Array(element=element):
            yield from _inside(element)
        case Struct(fields=fields) | Union(fields=fields):
            for f in fields:
                yield t.name, f.name
                yield from _inside(f.type)
