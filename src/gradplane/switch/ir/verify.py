"""The verifier: checks that a program of the intermediate representation is legal by nodes.py.

For the compiler's tests: a problem found here is a bug of the stage that made the program. A table
has the rule for each kind of expression, given its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import BINARY, limits, result_type
from gradplane.switch.ir.printer import expression_text, match_text
from gradplane.switch.ir.types import (
    BOOL,
    Array,
    Bits,
    Bool,
    Fields,
    Header,
    Stack,
    String,
    Struct,
    Type,
    Union,
    Varbit,
    bit_width,
    parts,
)
from gradplane.switch.ir.walk import blocks, bodies, declares, operands

Problem = str | None


def problem_of(e: ir.Expr) -> Problem:
    """Return what is wrong with an expression's node, without its operands; None if nothing is."""
    return _EXPRESSIONS[type(e)](e)


def _const(e: ir.Const) -> Problem:
    match e.type:
        case Bits():
            low, high = limits(e.type)
            fits = isinstance(e.value, int) and not isinstance(e.value, bool)
            return None if fits and low <= int(e.value) <= high else f"is no {e.type}"
        case Bool():
            return None if isinstance(e.value, bool) else "is no bool"
        case String():
            return None if isinstance(e.value, str) else "is no string"
    return f"a constant of type {e.type}"


def _field(e: ir.FieldOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Fields):
        return f"its base is {t}"
    if not 0 <= e.index < len(t.fields):
        return f"{t} has no field {e.index}"
    field = t.fields[e.index]
    if field.name != e.name:
        return f"field {e.index} of {t} is {field.name}"
    return None if field.type == e.type else f"is {field.type}, not {e.type}"


def _element(e: ir.ElementOf | ir.NextOf | ir.LastOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Array if isinstance(e, ir.ElementOf) else Stack):
        return f"its base is {t}, not a stack"
    if isinstance(e, ir.ElementOf) and not isinstance(e.index.type, Bits):
        return f"its index is {e.index.type}"
    return None if t.element == e.type else f"is {t.element}, not {e.type}"


def _slice(e: ir.SliceOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Bits) or not 0 <= e.lo <= e.hi < t.width:
        return f"no such bits in {t}"
    wanted = Bits(e.hi - e.lo + 1)
    return None if e.type == wanted else f"is {wanted}, not {e.type}"


def _last_index(e: ir.LastIndex) -> Problem:
    return None if isinstance(e.base.type, Stack) and e.type == Bits(32) else f"of {e.base.type}"


def _is_valid(e: ir.IsValid) -> Problem:
    ok = isinstance(e.base.type, Header | Union) and e.type == BOOL
    return None if ok else f"of {e.base.type}"


def _unary(e: ir.Unary) -> Problem:
    wanted = Bool if e.op == "!" else Bits
    ok = isinstance(e.operand.type, wanted) and e.type == e.operand.type
    return None if ok else f"{e.op} of {e.operand.type} is {e.type}"


def _binary(e: ir.Binary) -> Problem:
    if e.op not in BINARY:
        return f"there is no operator {e.op}"
    left, right = e.left.type, e.right.type
    if not _operands_fit(e.op, left, right):
        return f"{left} {e.op} {right}"
    wanted = result_type(e.op, left, right)
    return None if e.type == wanted else f"is {wanted}, not {e.type}"


def _operands_fit(op: str, left: Type, right: Type) -> bool:
    if op in ("&&", "||"):
        return left == right == BOOL
    if op in ("==", "!="):
        return left == right and isinstance(left, Bits | Bool | Varbit)
    both = isinstance(left, Bits) and isinstance(right, Bits)
    return both and (op in ("<<", ">>", "++") or left == right)


def _mux(e: ir.Mux) -> Problem:
    ok = e.cond.type == BOOL and e.then.type == e.other.type == e.type
    return None if ok else f"{e.cond.type} ? {e.then.type} : {e.other.type} is {e.type}"


def _cast(e: ir.Cast) -> Problem:
    source, target = e.operand.type, e.type
    bit = Bits(1)
    ok = isinstance(source, Bits) and isinstance(target, Bits)
    ok = ok or (source, target) in ((bit, BOOL), (BOOL, bit), (BOOL, BOOL))
    return None if ok else f"cast of {source} to {target}"


def _make(e: ir.Make) -> Problem:
    whole = e.type
    if isinstance(whole, Array) and not isinstance(whole, Stack):
        types = [whole.element] * whole.size
    elif isinstance(whole, Struct | Header):
        types = [f.type for f in whole.fields]
    else:
        return f"makes a {whole}"
    given = [f.type for f in e.fields]
    return None if given == types else f"{e.type} made of ({', '.join(map(str, given))})"


_EXPRESSIONS: dict[type[ir.Expr], Callable[..., Problem]] = by_class(
    ir.Expr,
    {
        ir.Const: _const,
        (ir.Zero, ir.Var): lambda e: None,
        ir.FieldOf: _field,
        (ir.ElementOf, ir.NextOf, ir.LastOf): _element,
        ir.SliceOf: _slice,
        ir.LastIndex: _last_index,
        ir.IsValid: _is_valid,
        ir.Unary: _unary,
        ir.Binary: _binary,
        ir.Mux: _mux,
        ir.Cast: _cast,
        ir.Make: _make,
    },
)


CODE = Bits(32)  # of an error, an action's position, a packet's length
CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
MATCH_KINDS = frozenset({"exact", "lpm", "ternary", "range", "optional", "selector"})


class IRError(Exception):
    """An illegal program; `problems` has a line for each, which names block and node."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def verify(program: ir.Program) -> None:
    """Raise IRError with everything that is wrong."""
    checker = _Checker(program)
    checker.program()
    if checker.problems:
        raise IRError(checker.problems)


class _Checker:
    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self.problems: list[str] = []
        self._where = "program"
        self._block: ir.Parser | ir.Control | None = None
        self._visible: set[ir.Var] = set()
        self._inside: list[ir.Block] = []  # the blocks around a statement

    def wrong(self, what: str) -> None:
        self.problems.append(f"{self._where}: {what}")

    def want(self, ok: bool, what: str) -> None:
        if not ok:
            self.wrong(what)

    # -- declarations ---------------------------------------------------------------------------

    def program(self) -> None:
        program = self._program
        for name in CORE_ERRORS:
            self.want(program.errors.count(name) == 1, f"there must be one error {name}")
        for kind, things in self._named():
            names = [t.name for t in things]
            for name in sorted({n for n in names if names.count(n) > 1}):
                self.wrong(f"two {kind} are named {name}")
        for table in program.tables:
            self._where = f"table {table.name}"
            self._table(table)
        for name, block in blocks(program.package):
            self._enter(name, block)

    def _named(self) -> Iterable[tuple[str, Sequence[ir.Table | ir.ExternInstance | ir.ValueSet]]]:
        program = self._program
        return (
            ("tables", program.tables),
            ("extern instances", program.externs),
            ("value sets", program.value_sets),
        )

    def _enter(self, name: str, block: ir.Parser | ir.Control) -> None:
        self._block = block
        self._where = f"{name} {block.name}"
        declared = declares(block)
        self._visible = set(declared)
        once = len(self._visible) == len(declared)
        self.want(once, "a variable is listed twice among parameters and locals")
        if isinstance(block, ir.Parser):
            self._parser(block)
        else:
            self._body(block.body)

    def _parser(self, parser: ir.Parser) -> None:
        where = self._where
        self._body(parser.setup)
        self.want("start" in parser.states, "there is no state start")
        for name, state in parser.states.items():
            self._where = f"{where}, state {name}"
            self.want(name == state.name, f"the state is named {state.name}")
            self._body(state.body)
            self._select(parser, state)
            self._body(state.on_reject)

    def _select(self, parser: ir.Parser, state: ir.State) -> None:
        for expr in state.select:
            self._expr(expr)
        if not state.select:
            self.want(len(state.cases) == 1, f"{len(state.cases)} cases without a select")
        for case in state.cases:
            known = case.next in parser.states or case.next in ("accept", "reject")
            self.want(known, f"there is no state {case.next}")
            if state.select:
                self._keyset(case.matches, [e.type for e in state.select])

    def _keyset(self, matches: list[ir.Match], types: list[Type]) -> None:
        whole = len(matches) == 1 and isinstance(matches[0], ir.MatchAny | ir.MatchSet)
        if whole and len(types) != 1:
            self._value_set(matches[0], types)
            return
        if len(matches) != len(types):
            self.wrong(f"{len(matches)} matches for {len(types)} expressions")
            return
        for match, t in zip(matches, types, strict=True):
            self._match(match, t)

    def _value_set(self, match: ir.Match, types: list[Type]) -> None:
        if isinstance(match, ir.MatchSet):
            fields = [f.expr.type for f in match.set.fields]
            self.want(fields == types, f"value set {match.set.name} does not fit the select")

    def _match(self, match: ir.Match, t: Type, constant: bool = False) -> None:
        self._value_set(match, [t])
        for operand in operands(match):
            self._expr(operand)
            self._same(operand, t, f"match {match_text(match)}")
            if constant:
                text = match_text(match)
                self.want(isinstance(operand, ir.Const), f"match {text} is no constant")

    # -- tables ---------------------------------------------------------------------------------

    def _table(self, table: ir.Table) -> None:
        for key in table.keys:
            self.want(key.match_kind in MATCH_KINDS, f"key {key.name}: kind {key.match_kind}")
            self.want(
                isinstance(key.expr.type, Bits | Bool), f"key {key.name} is a {key.expr.type}"
            )
        self.want(bool(table.actions), "it has no actions")
        self._action_call(table, table.default, "default action")
        if table.empty_group is not None:
            self._action_call(table, table.empty_group, "action for an empty group")
        fields = [k.expr.type for k in table.keys if k.match_kind != "selector"]
        for number, entry in enumerate(table.entries):
            self._action_call(table, entry.action, f"entry {number}")
            if len(entry.matches) == 1 and isinstance(entry.matches[0], ir.MatchAny):
                continue
            if len(entry.matches) != len(fields):
                self.wrong(f"entry {number}: {len(entry.matches)} matches for {len(fields)} keys")
                continue
            for match, t in zip(entry.matches, fields, strict=True):
                self._match(match, t, constant=True)

    def _action_call(self, table: ir.Table, call: ir.ActionCall, what: str) -> None:
        if not 0 <= call.index < len(table.actions):
            self.wrong(f"{what}: there is no action {call.index}")
            return
        action = table.actions[call.index].action
        count = len(action.params)
        self.want(
            len(call.args) == count,
            f"{what}: {len(call.args)} arguments for the {count} of {action.name}",
        )

    # -- statements -----------------------------------------------------------------------------

    def _body(self, body: list[ir.Stmt]) -> None:
        """Check statements that no block encloses."""
        saved, self._inside = self._inside, []
        self._statements(body)
        self._inside = saved

    def _statements(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            _STATEMENTS[type(stmt)](self, stmt)

    def _inner(self, stmt: ir.Stmt) -> None:
        for body in bodies(stmt):
            self._statements(body)

    def _enclosed(self, s: ir.Block) -> None:
        self._inside.append(s)
        self._inner(s)
        self._inside.pop()

    def _leave(self, s: ir.Leave) -> None:
        found = any(block is s.block for block in self._inside)
        self.want(found, f"leave {s.block.name or 'unnamed'}: no block of it encloses this")

    def _apply(self, s: ir.ApplyTable) -> None:
        table = s.table
        self.want(table in self._program.tables, f"table {table.name} is not the program's")
        for target, t in ((s.hit, BOOL), (s.action_run, CODE)):
            if target is not None:
                self._expr(target)
                self._same(target, t, f"apply {table.name}")
        self._body(table.key_setup)
        for key in table.keys:
            self._expr(key.expr)
        for choice in table.actions:
            self._action(choice.action)

    def _action(self, action: ir.Action) -> None:
        where, visible = self._where, self._visible
        self._where = f"{where}, action {action.name}"
        self._visible = visible | set(action.params)
        self._body(action.body)
        self._where, self._visible = where, visible

    def _assign(self, s: ir.Assign) -> None:
        self._place(s.target)
        self._expr(s.value)
        self._same(s.value, s.target.type, f"assignment to {expression_text(s.target)}")

    def _if(self, s: ir.If) -> None:
        self._expr(s.cond)
        self._same(s.cond, BOOL, "if")
        self._inner(s)

    def _switch(self, s: ir.SwitchStmt) -> None:
        self._expr(s.subject)
        self.want(isinstance(s.subject.type, Bits), f"switch on a {s.subject.type}")
        values = [value for case, _ in s.cases for value in case]
        self.want(len(set(values)) == len(values), "switch: a value has two cases")
        self._inner(s)

    def _set_valid(self, s: ir.SetValid) -> None:
        self._place(s.target)
        self._is(s.target, Header)

    def _shift(self, s: ir.Push | ir.Pop) -> None:
        self._place(s.target)
        self._is(s.target, Stack)

    def _extract(self, s: ir.Extract) -> None:
        self._place(s.target)
        self._is(s.target, Header)
        if isinstance(s.target.type, Header):
            varying = sum(isinstance(f.type, Varbit) for f in s.target.type.fields)
            text = expression_text(s.target)
            self.want(varying == (s.size is not None), f"extract {text}: {varying} varbit fields")
        if s.size is not None:
            self._expr(s.size)
            self._same(s.size, CODE, "extract size")

    def _lookahead(self, s: ir.Lookahead) -> None:
        self._place(s.target)
        fixed = bit_width(s.target.type) is not None
        inside = s.target.type.fields if isinstance(s.target.type, Struct) else ()
        plain = not any(isinstance(f.type, Header | Stack) for f in inside)
        self.want(fixed and plain, f"lookahead of a {s.target.type}")

    def _length(self, s: ir.PacketLength) -> None:
        self._place(s.target)
        self._same(s.target, CODE, "packet length")

    def _advance(self, s: ir.Advance) -> None:
        self._expr(s.bits)
        self._same(s.bits, CODE, "advance")

    def _verify(self, s: ir.Verify) -> None:
        self._expr(s.cond)
        self._expr(s.error)
        self._same(s.cond, BOOL, "verify")
        self._same(s.error, CODE, "verify")

    def _emit(self, s: ir.Emit) -> None:
        self._expr(s.value)
        self.want(_emittable(s.value.type), f"emit of a {s.value.type}")

    def _call(self, s: ir.CallExtern) -> None:
        given, listed = len(s.args), len(s.directions)
        self.want(given == listed, f"call of {s.name}: {given} arguments, {listed} directions")
        for arg, direction in zip(s.args, s.directions, strict=False):
            self.want(direction in ("", "in", "out", "inout"), f"call of {s.name}: {direction}")
            (self._place if direction in ("out", "inout") else self._expr)(arg)
        if s.result is not None:
            self._place(s.result)

    def _call_user_extern(self, s: ir.CallUserExtern) -> None:
        for a in s.args:
            if a.direction in ("out", "inout"):
                is_var = isinstance(a.value, ir.Var | None)
                self.want(is_var, f"call of {s.name}: {a.name} is no variable")
            if isinstance(a.value, ir.Expr) and not isinstance(a.value, ir.Const):
                self._expr(a.value)  # a constant may be of a type that only externs take
        if s.result is not None:
            self._expr(s.result)

    # -- expressions ----------------------------------------------------------------------------

    def _place(self, e: ir.Expr) -> None:
        self.want(isinstance(e, ir.LValue), f"{expression_text(e)} is not a place")
        self._expr(e)

    def _expr(self, e: ir.Expr) -> None:
        for operand in operands(e):
            self._expr(operand)
        problem = problem_of(e)
        if problem:
            self.wrong(f"{expression_text(e)}: {problem}")
        if isinstance(e, ir.Var):
            self.want(e in self._visible, f"variable {e.name} is not declared in this block")
        if isinstance(e, ir.NextOf | ir.LastOf):
            text = expression_text(e)
            self.want(isinstance(self._block, ir.Parser), f"{text} outside a parser")

    def _same(self, e: ir.Expr, t: Type, what: str) -> None:
        self.want(e.type == t, f"{what}: {expression_text(e)} is {e.type}, not {t}")

    def _is(self, e: ir.Expr, kind: type[Type]) -> None:
        name = kind.__name__.lower()
        self.want(isinstance(e.type, kind), f"{expression_text(e)} is {e.type}, not a {name}")


_STATEMENTS: dict[type[ir.Stmt], Callable[..., None]] = by_class(
    ir.Stmt,
    {
        ir.Assign: _Checker._assign,
        ir.If: _Checker._if,
        ir.SwitchStmt: _Checker._switch,
        ir.Block: _Checker._enclosed,
        (ir.Loop, ir.Exit): _Checker._inner,
        ir.Leave: _Checker._leave,
        ir.ApplyTable: _Checker._apply,
        ir.SetValid: _Checker._set_valid,
        (ir.Push, ir.Pop): _Checker._shift,
        ir.Extract: _Checker._extract,
        ir.Lookahead: _Checker._lookahead,
        ir.PacketLength: _Checker._length,
        ir.Advance: _Checker._advance,
        ir.Verify: _Checker._verify,
        ir.Emit: _Checker._emit,
        ir.CallExtern: _Checker._call,
        ir.CallUserExtern: _Checker._call_user_extern,
    },
)


def _emittable(t: Type) -> bool:
    if isinstance(t, Array | Struct | Union):
        return all(map(_emittable, parts(t)))
    return isinstance(t, Header)
