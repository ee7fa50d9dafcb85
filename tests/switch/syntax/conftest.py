"""Helpers of the syntax tests: trees as short text, errors as the user sees them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from gradplane.switch.source import CompileError
from gradplane.switch.syntax import ast, parse_text

_HIDDEN = {"span", "name_span", "transition_span"}


def show(value: object) -> str:
    """Return a tree as text: types and code as P4 with all brackets, the rest as Node(...)."""
    short = _SHORT.get(type(value))
    if short is not None:
        return short(value)
    if isinstance(value, ast.Node):
        return f"{type(value).__name__}({_fields(value)})"
    if isinstance(value, list):
        return "[" + ", ".join(show(item) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(show(item) for item in value if not _is_span(item)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {show(v)}" for k, v in value.items()) + "}"
    return str(value)


def _is_span(value: object) -> bool:
    return type(value).__name__ == "Span"


def _fields(node: ast.Node) -> str:
    """Return the fields that hold something: not None, False or empty.

    Annotations come behind the name of a declaration, or behind what every node of a kind has."""
    shown = [f for f in dataclasses.fields(node) if f.init and f.name not in _HIDDEN]
    fields = [f.name for f in shown if f.name != "annotations"]
    if isinstance(node, ast.Annotated):
        needed = [f for f in shown if f.default is f.default_factory is dataclasses.MISSING]
        fields.insert(1 if isinstance(node, ast.Decl) else len(needed), "annotations")
    values = {name: getattr(node, name) for name in fields}
    said = {k: v for k, v in values.items() if not (v is None or v is False or v in ("", []))}
    return ", ".join(f"{name}={show(value)}" for name, value in said.items())


def _int(e: ast.IntLit) -> str:
    prefix = "" if e.width is None else f"{e.width}{'s' if e.signed else 'w'}"
    return f"{prefix}{e.value}"


def _slice(e: ast.Slice) -> str:
    inside = f"{show(e.hi)}:{show(e.lo)}"
    if e.width is not None:
        assert e.hi is None
        inside = f"{show(e.lo)} +: {show(e.width)}"
    return f"{show(e.base)}[{inside}]"


def _struct(e: ast.StructExpr) -> str:
    fields = [f"{name} = {show(value)}" for name, value in e.fields]
    return "{" + ", ".join(fields + ["..."] * e.dots) + "}"


def _angle(args: list[ast.TypeRef]) -> str:
    return "<" + ", ".join(show(a) for a in args) + ">" if args else ""


def _call(e: ast.Call) -> str:
    args = ", ".join(show(a) for a in e.args)
    return f"{show(e.callee)}{_angle(e.type_args)}({args})"


def _argument(e: ast.Argument) -> str:
    value = "_" if e.expr is None else show(e.expr)
    return value if e.name is None else f"{e.name} = {value}"


def _notes(node: ast.Block | ast.Decl | ast.For | ast.ForIn) -> str:
    return "".join(f"@{a.name}({a.body}) " if a.body else f"@{a.name} " for a in node.annotations)


def _variable(d: ast.VarDecl | ast.ConstDecl) -> str:
    value = d.value if isinstance(d, ast.ConstDecl) else d.init
    const = "const " * isinstance(d, ast.ConstDecl)
    given = "" if value is None else f" = {show(value)}"
    return f"{_notes(d)}{const}{show(d.ref)} {d.name}{given}"


def _instance(d: ast.Instantiation) -> str:
    body = "" if d.body is None else f" = {show(d.body)}"
    return f"{_notes(d)}{show(d.ref)}({', '.join(show(a) for a in d.args)}) {d.name}{body}"


def _block(b: ast.Block) -> str:
    return _notes(b) + "{ " + "".join(show(s) + " " for s in b.body) + "}"


def _if(s: ast.If) -> str:
    other = "" if s.other is None else f" else {show(s.other)}"
    return f"if ({show(s.cond)}) {show(s.then)}{other}"


def _switch(s: ast.SwitchStmt) -> str:
    cases = [f"{show(c.label)}: " + (show(c.body) + " " if c.body else "") for c in s.cases]
    return f"switch ({show(s.subject)}) {{ {''.join(cases)}}}"


def _for(s: ast.For) -> str:
    init, update = (", ".join(show(p).rstrip(";") for p in ps) for ps in (s.init, s.update))
    return f"{_notes(s)}for ({init}; {show(s.cond)}; {update}) {show(s.body)}"


def _for_in(s: ast.ForIn) -> str:
    return f"{_notes(s)}for ({show(s.var)} in {show(s.collection)}) {show(s.body)}"


_SHORT: dict[type, Callable] = {
    ast.IntLit: _int,
    ast.BoolLit: lambda e: str(e.value).lower(),
    ast.StringLit: lambda e: repr(e.value),
    ast.Name: lambda e: "." * e.dot + e.name,
    ast.TypeExpr: lambda e: f"type {show(e.ref)}",
    ast.Member: lambda e: f"{show(e.base)}.{e.name}",
    ast.Index: lambda e: f"{show(e.base)}[{show(e.index)}]",
    ast.Slice: _slice,
    ast.Unary: lambda e: f"({e.op}{show(e.operand)})",
    ast.Binary: lambda e: f"({show(e.left)} {e.op} {show(e.right)})",
    ast.Ternary: lambda e: f"({show(e.cond)} ? {show(e.then)} : {show(e.other)})",
    ast.Cast: lambda e: f"(({show(e.ref)}) {show(e.operand)})",
    ast.Argument: _argument,
    ast.Call: _call,
    ast.ListExpr: lambda e: "{" + ", ".join(show(x) for x in e.elements) + "}",
    ast.StructExpr: _struct,
    ast.InvalidHeader: lambda e: "{#}",
    ast.Dots: lambda e: "...",
    ast.Range: lambda e: f"({show(e.low)} .. {show(e.high)})",
    ast.Mask: lambda e: f"({show(e.value)} &&& {show(e.mask)})",
    ast.DefaultKey: lambda e: "default",
    ast.TupleKey: lambda e: "tuple(" + ", ".join(show(x) for x in e.elements) + ")",
    ast.BaseTypeRef: lambda t: t.name + (f"<{show(t.width)}>" if t.width is not None else ""),
    ast.NamedTypeRef: lambda t: "." * t.dot + t.name + _angle(t.args),
    ast.ArrayTypeRef: lambda t: f"{show(t.element)}[{show(t.size)}]",
    ast.TupleTypeRef: lambda t: "tuple<" + ", ".join(show(a) for a in t.args) + ">",
    ast.ListTypeRef: lambda t: f"list<{show(t.element)}>",
    ast.DontCareTypeRef: lambda t: "_",
    ast.VarDecl: _variable,
    ast.ConstDecl: _variable,
    ast.Instantiation: _instance,
    ast.DeclStmt: lambda s: show(s.decl) + ";",
    ast.Assign: lambda s: f"{show(s.target)} {s.op} {show(s.value)};",
    ast.CallStmt: lambda s: f"{show(s.call)};",
    ast.Block: _block,
    ast.If: _if,
    ast.SwitchStmt: _switch,
    ast.For: _for,
    ast.ForIn: _for_in,
    ast.Return: lambda s: "return;" if s.value is None else f"return {show(s.value)};",
    ast.Exit: lambda s: "exit;",
    ast.Break: lambda s: "break;",
    ast.Continue: lambda s: "continue;",
    ast.Empty: lambda s: ";",
}


def _declarations(text: str) -> list[ast.Decl]:
    return parse_text(text, "t.p4")[0].declarations


@pytest.fixture
def shown() -> Callable[[object], str]:
    return show


@pytest.fixture
def tree() -> Callable[[str], str]:
    """Return the last declaration of a program, as text."""
    return lambda text: show(_declarations(text)[-1])


@pytest.fixture
def declarations() -> Callable[[str], list[ast.Decl]]:
    return _declarations


@pytest.fixture
def expr() -> Callable[..., str]:
    """Return an expression as text, parsed after the declarations in `before`."""

    def read(text: str, before: str = "") -> str:
        constant = _declarations(f"{before} const int x = {text};")[-1]
        assert isinstance(constant, ast.ConstDecl)
        return show(constant.value)

    return read


@pytest.fixture
def statements() -> Callable[..., list[str]]:
    """Return the statements of a control's body as text, one each."""

    def read(text: str, before: str = "") -> list[str]:
        control = _declarations(f"{before} control C() {{ apply {{ {text} }} }}")[-1]
        assert isinstance(control, ast.ControlDecl)
        return [show(statement) for statement in control.body.body]

    return read


@pytest.fixture
def errors() -> Callable[..., str]:
    """Return the messages for a wrong program called t.p4."""

    def read(text: str, **options: object) -> str:
        with pytest.raises(CompileError) as caught:
            parse_text(text, "t.p4", **options)
        return str(caught.value)

    return read
