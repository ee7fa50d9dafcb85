"""A program of the intermediate representation as text, one line a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class

Lines = Iterator[str]


def program_text(program: ir.Program, spaced: bool = False) -> str:
    """Return the whole program: externs, value sets, actions, tables, parsers and controls.

    spaced: with an empty line before each declaration that has lines of its own, and after it.
    """
    lines = list(_program(program))
    return "\n".join(_spaced(lines) if spaced else lines) + "\n"


def _spaced(lines: list[str]) -> Lines:
    """Separate indented lines, with the line above them, by blank lines from the others."""
    inside = [line.startswith(" ") for line in lines]
    for i, line in enumerate(lines):
        opens = inside[i + 1 : i + 2] == [True]
        if i and not inside[i] and (opens or inside[i - 1]):
            yield ""
        yield line


def statement_text(stmt: ir.Stmt) -> str:
    """Return a statement with what it contains, indented."""
    return "\n".join(_statement(stmt))


def expression_text(expr: ir.Expr) -> str:
    """Return an expression, fully parenthesised."""
    return _EXPRESSIONS[type(expr)](expr)


def plain_text(expr: ir.Expr) -> str:
    """Return an expression without the types of numbers."""
    return NUMBER.sub(r"\1", expression_text(expr))


# -- expressions --------------------------------------------------------------------------------

NUMBER = re.compile(r"\b(\d+):(?:bit|int)<\d+>")
_text = expression_text


def _const(e: ir.Const) -> str:
    if isinstance(e.value, str):
        return f'"{e.value}"'
    return str(e.value).lower() if isinstance(e.value, bool) else f"{e.value}:{e.type}"


_EXPRESSIONS: dict[type[ir.Expr], Callable[..., str]] = by_class(
    ir.Expr,
    {
        ir.Const: _const,
        ir.Zero: lambda e: f"zero:{e.type}",
        ir.Var: lambda e: e.name,
        ir.FieldOf: lambda e: f"{_text(e.base)}.{e.name}",
        ir.ElementOf: lambda e: f"{_text(e.base)}[{_text(e.index)}]",
        ir.NextOf: lambda e: f"{_text(e.base)}.next",
        ir.LastOf: lambda e: f"{_text(e.base)}.last",
        ir.SliceOf: lambda e: f"{_text(e.base)}[{e.hi}:{e.lo}]",
        ir.LastIndex: lambda e: f"{_text(e.base)}.lastIndex",
        ir.IsValid: lambda e: f"{_text(e.base)}.isValid()",
        ir.Unary: lambda e: f"{e.op}{_text(e.operand)}",
        ir.Binary: lambda e: f"({_text(e.left)} {e.op} {_text(e.right)})",
        ir.Mux: lambda e: f"({_text(e.cond)} ? {_text(e.then)} : {_text(e.other)})",
        ir.Cast: lambda e: f"({e.type}){_text(e.operand)}",
        ir.Make: lambda e: f"{e.type}{{{', '.join(map(_text, e.fields))}}}",
    },
)


def match_text(match: ir.Match) -> str:
    """Return a component of a keyset, as P4 writes it."""
    return _MATCHES[type(match)](match)


_MATCHES: dict[type[ir.Match], Callable[..., str]] = by_class(
    ir.Match,
    {
        ir.MatchAny: lambda m: "_",
        ir.MatchValue: lambda m: _text(m.value),
        ir.MatchMask: lambda m: f"{_text(m.value)} &&& {_text(m.mask)}",
        ir.MatchRange: lambda m: f"{_text(m.low)} .. {_text(m.high)}",
        ir.MatchSet: lambda m: m.set.name,
    },
)


# -- statements ---------------------------------------------------------------------------------


def _statement(stmt: ir.Stmt) -> Lines:
    line_or_lines = _STATEMENTS[type(stmt)](stmt)
    return iter((line_or_lines,)) if isinstance(line_or_lines, str) else line_or_lines


def _if(s: ir.If) -> Lines:
    yield f"if {_text(s.cond)}"
    yield from _body(s.then)
    if s.other:
        yield "else"
        yield from _body(s.other)


def _switch(s: ir.SwitchStmt) -> Lines:
    yield f"switch {_text(s.subject)}"
    for values, body in s.cases:
        yield f"  case {', '.join(map(str, values))}"
        yield from _indented(_body(body))
    yield "  default"
    yield from _indented(_body(s.default))


def _block(s: ir.Block) -> Lines:
    yield f"block {_block_name(s)}"
    yield from _body(s.body)


def _loop(s: ir.Loop) -> Lines:
    yield "loop"
    yield from _body(s.body)


def _block_name(block: ir.Block) -> str:
    return block.name or "unnamed"


def _extract(s: ir.Extract) -> str:
    return f"extract {_text(s.target)}" + (f", {_text(s.size)} bits" if s.size else "")


def _apply(s: ir.ApplyTable) -> str:
    hit = f", hit -> {_text(s.hit)}" if s.hit else ""
    run = f", action_run -> {_text(s.action_run)}" if s.action_run else ""
    return f"apply {s.table.name}{hit}{run}"


def _call(s: ir.CallExtern) -> str:
    name = f"{s.instance.name}.{s.name}" if s.instance else s.name
    result = f"{_text(s.result)} = " if s.result else ""
    pairs = zip(s.directions, s.args, strict=True)
    return f"{result}{name}({', '.join(f'{d} {_text(a)}'.strip() for d, a in pairs)})"


def _call_user_extern(s: ir.CallUserExtern) -> str:
    name = f"{s.instance.name}.{s.name}" if s.instance else s.name
    result = f"{_text(s.result)} = " if s.result else ""
    return f"{result}{name}({', '.join(map(_user_extern_argument, s.args))})"


def _user_extern_argument(a: ir.UserExternArgument) -> str:
    value = a.value.name if isinstance(a.value, ir.ExternInstance) else "_"
    return f"{a.direction} {_text(a.value) if isinstance(a.value, ir.Expr) else value}".strip()


_STATEMENTS: dict[type[ir.Stmt], Callable[..., str | Lines]] = by_class(
    ir.Stmt,
    {
        ir.If: _if,
        ir.SwitchStmt: _switch,
        ir.Block: _block,
        ir.Loop: _loop,
        ir.Assign: lambda s: f"{_text(s.target)} = {_text(s.value)}",
        ir.SetValid: lambda s: f"{_text(s.target)}.set{'Valid' if s.valid else 'Invalid'}()",
        ir.Push: lambda s: f"{_text(s.target)}.push_front({s.count})",
        ir.Pop: lambda s: f"{_text(s.target)}.pop_front({s.count})",
        ir.Leave: lambda s: f"leave {_block_name(s.block)}",
        ir.Exit: lambda s: "exit",
        ir.ApplyTable: _apply,
        ir.CallExtern: _call,
        ir.CallUserExtern: _call_user_extern,
        ir.Extract: _extract,
        ir.Lookahead: lambda s: f"{_text(s.target)} = lookahead {s.target.type}",
        ir.Advance: lambda s: f"advance {_text(s.bits)}",
        ir.PacketLength: lambda s: f"{_text(s.target)} = packet length",
        ir.Verify: lambda s: f"verify {_text(s.cond)}, error {_text(s.error)}",
        ir.Emit: lambda s: f"emit {_text(s.value)}",
    },
)


def _body(body: list[ir.Stmt]) -> Lines:
    for stmt in body:
        yield from _indented(_statement(stmt))


def _indented(lines: Lines) -> Lines:
    return (f"  {line}" for line in lines)


# -- declarations -------------------------------------------------------------------------------


def _program(program: ir.Program) -> Lines:
    yield f"errors {', '.join(program.errors)}"
    for instance in program.externs:
        yield _extern(instance)
    for value_set in program.value_sets:
        yield f"value_set {value_set.name}({value_set.size}): {_keys(value_set.fields)}"
    for action in program.actions:
        yield f"action {action.name}({_vars(action.params)})"
        yield from _body(action.body)
    for table in program.tables:
        yield from _table(table)
    yield from _package(program.package)


def _package(package: ir.Package) -> Lines:
    for arg in package.args.values():
        match arg:
            case ir.Parser():
                yield from _parser(arg)
            case ir.Control():
                yield f"control {arg.name}({_params(arg.params)})"
                yield from _locals(arg.locals)
                yield from _body(arg.body)
            case ir.Package():
                yield from _package(arg)
    yield f"package {package.type}({', '.join(package.args)})"


def _extern(instance: ir.ExternInstance) -> str:
    types = f"<{', '.join(map(str, instance.type_args))}>" if instance.type_args else ""
    args = (a.name if isinstance(a, ir.ExternInstance) else str(a) for a in instance.args)
    return f"extern {instance.type}{types}({', '.join(args)}) {instance.name}"


def _table(table: ir.Table) -> Lines:
    yield f"table {table.name}, size {table.size}"
    yield from _body(table.key_setup)
    yield f"  key {_keys(table.keys)}"
    yield f"  actions {', '.join(a.action.name for a in table.actions)}"
    for entry in table.entries:
        matches = ", ".join(map(match_text, entry.matches))
        yield f"  entry ({matches}) -> {_action_call(table, entry.action)}"
    const = "const " if table.const_default else ""
    yield f"  {const}default {_action_call(table, table.default)}"
    if table.empty_group is not None:
        yield f"  empty group {_action_call(table, table.empty_group)}"


def _action_call(table: ir.Table, call: ir.ActionCall) -> str:
    return f"{table.actions[call.index].action.name}({', '.join(map(str, call.args))})"


def _keys(keys: list[ir.Key]) -> str:
    return ", ".join(f"{k.name} {_text(k.expr)} {k.match_kind}" for k in keys)


def _parser(parser: ir.Parser) -> Lines:
    yield f"parser {parser.name}({_params(parser.params)})"
    yield from _locals(parser.locals)
    yield from _body(parser.setup)
    for state in parser.states.values():
        yield f"  state {state.name}"
        yield from _indented(_body(state.body))
        for case in state.cases:
            yield f"    {_case(state, case)}"
        if state.on_reject:
            yield "    on reject"
            yield from _indented(_indented(_body(state.on_reject)))


def _case(state: ir.State, case: ir.SelectCase) -> str:
    if not state.select:
        return f"goto {case.next}"
    keys = ", ".join(map(_text, state.select))
    return f"when ({keys}) is ({', '.join(map(match_text, case.matches))}) goto {case.next}"


def _params(params: list[ir.Param]) -> str:
    return ", ".join(f"{p.direction} {p.var.type} {p.name}".strip() for p in params)


def _vars(variables: list[ir.Var]) -> str:
    return ", ".join(f"{v.type} {v.name}" for v in variables)


def _locals(variables: list[ir.Var]) -> Lines:
    for var in variables:
        yield f"  var {var.type} {var.name}"
