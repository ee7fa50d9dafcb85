"""Lower a checked program to its IR: instantiate the package `main` and its arguments.

Lower parsers to graphs of states; a sub-parser's states are added to its caller's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from gradplane.switch.check.checker_types import ExternType
from gradplane.switch.check.records import CallInfo, Checked
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Annotation,
    Annotations,
    Bits,
    Enum,
    Header,
    NewType,
    SerEnum,
    Struct,
    bit_width,
)
from gradplane.switch.ir.walk import blocks
from gradplane.switch.lower.instances import Instances
from gradplane.switch.lower.shared_state import (
    DEFAULT_SIZE,
    PACKET,
    ActionInstance,
    BlockInstance,
    Env,
    Natives,
    PackageInstance,
    control_plane_name,
    used_blocks,
)
from gradplane.switch.lower.statements import Body
from gradplane.switch.lower.table_lowering import match_of
from gradplane.switch.lower.type_erasure import (
    erase,
    erase_keeping_names,
    several_varbits,
    type_name,
)
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk


class ParserLowering:
    """Collects the states of one top-level parser."""

    def __init__(self, lowering: Instances, body: Body) -> None:
        self.p = lowering
        self.body = body
        self.states: dict[str, ir.State] = {}
        self._pieces: Counter[str] = Counter()  # how often a state was split at a sub-parser
        self._copy_outs: list[list[ir.Stmt]] = []  # of the enclosing sub-parsers, for reject

    def run(self, decl: ast.ParserDecl, env: Env) -> dict[str, ir.State]:
        with self.body.repeating():
            self._graph(decl, env, prefix="", accept="accept")
        return self.states

    def _graph(self, decl: ast.ParserDecl, env: Env, prefix: str, accept: str) -> None:
        """Add a parser's states under a prefix; `accept` is the target of its accept."""
        for s in decl.states:
            with self.body.scope(env.inner()):
                self._state(s, prefix, accept)

    def _state(self, s: ast.ParserState, prefix: str, accept: str) -> None:
        current = self._new(prefix + s.name, s)
        with self.body.scope():
            current = self._statements(s.body, current, prefix)
            self._transition(s, current, prefix, accept)

    def _new(self, name: str, s: ast.Node) -> ir.State:
        state = ir.State(name, [], [], [], s.span)
        for copies in reversed(self._copy_outs):
            state.on_reject += copies
        self.states[name] = state
        return state

    def _fresh_name(self, name: str) -> str:
        self._pieces[name] += 1
        return f"{name}~{self._pieces[name]}"

    def _statements(
        self, statements: Sequence[ast.Stmt], current: ir.State, prefix: str
    ) -> ir.State:
        """Lower statements into `current`; a call of a sub-parser ends it and starts another."""
        for s in statements:
            match s:
                case ast.CallStmt(call=ast.Call(info=info)) if info.kind == "block":
                    current = self._sub_parser(s, current)
                case ast.Block(body=body) if _applies_parser(body):
                    with self.body.scope():
                        current = self._statements(body, current, prefix)
                case ast.If() if _applies_parser([s]):
                    current = self._branches(s, current, prefix)
                case _:
                    with self.body.into(current.body):
                        self.body.stmt(s)
        return current

    def _branches(self, s: ast.If, current: ir.State, prefix: str) -> ir.State:
        """Lower an if that contains a sub-parser: a state for each branch, and one to join them."""
        with self.body.into(current.body):
            current.select = [self.body.expr(s.cond)]
        after = self._new(self._fresh_name(current.name), s)
        for match, branch in (
            (ir.MatchValue(expression_builder.TRUE), s.then),
            (ir.MatchAny(), s.other),
        ):
            first = last = self._new(self._fresh_name(current.name), s)
            current.cases.append(ir.SelectCase([match], first.name, s.span))
            if branch is not None:
                with self.body.scope():
                    last = self._statements([branch], first, prefix)
            last.cases = [ir.SelectCase([ir.MatchAny()], after.name, s.span)]
        return after

    def _sub_parser(self, s: ast.CallStmt, current: ir.State) -> ir.State:
        info = s.call.info
        self.p.count_inlined(s.span)
        instance = self.body.block_instance(info)
        decl = instance.decl
        assert isinstance(decl, ast.ParserDecl)
        with self.body.into(current.body):
            env, copies = self.body.enter_parser(info, instance)
            with self.body.scope(env):
                self.body.initialise(decl.locals, again=True)
        after = self._new(self._fresh_name(current.name), s)
        entry = f"{after.name}.{decl.name}."
        current.cases = [ir.SelectCase([ir.MatchAny()], f"{entry}start", s.span)]
        self._copy_outs.append(copies)
        self._graph(decl, env, entry, after.name)
        self._copy_outs.pop()
        after.body += copies
        return after

    def _transition(self, s: ast.ParserState, current: ir.State, prefix: str, accept: str) -> None:
        def target(name: str) -> str:
            return accept if name == "accept" else name if name == "reject" else prefix + name

        if not isinstance(s.transition, ast.Select):
            span = s.transition_span or s.span
            name = s.transition if s.transition is not None else "reject"
            current.cases = [ir.SelectCase([ir.MatchAny()], target(name), span)]
            return
        with self.body.into(current.body):
            current.select = self._selected(s.transition.exprs)
            current.cases = [
                ir.SelectCase(self._matches(c.keyset), target(c.state), c.span)
                for c in s.transition.cases
            ]

    def _selected(self, exprs: Sequence[ast.Expr]) -> list[ir.Expr]:
        """Return the values that are matched; structs and tuples are matched part by part."""
        return [part for value in self.body.exprs(*exprs) for part in self._parts(value)]

    def _parts(self, value: ir.Expr) -> list[ir.Expr]:
        if not isinstance(value.type, Struct):
            return [value]
        whole = value if isinstance(value, ir.Make | ir.LValue) else self.body.spill(value)
        fields = [expression_builder.field(whole, i) for i in range(len(value.type.fields))]
        return [part for field in fields for part in self._parts(field)]

    def _matches(self, keyset: ast.Expr) -> list[ir.Match]:
        if isinstance(keyset, ast.TupleKey | ast.ListExpr):
            return [self._match(e) for e in keyset.elements]
        return [self._match(keyset)]

    def _match(self, keyset: ast.Expr) -> ir.Match:
        if isinstance(keyset, ast.Name) and isinstance(keyset.decl, ast.ValueSetDecl):
            found = self.body.env.find(keyset.decl)
            assert isinstance(found, ir.ValueSet)
            return ir.MatchSet(found)
        return match_of(self.body, keyset)


def _applies_parser(statements: Sequence[ast.Stmt]) -> bool:
    return any(
        isinstance(n, ast.Call) and n.info is not None and n.info.kind == "block"
        for n in walk(statements)
    )


PACKET_TYPES = ("packet_in", "packet_out")

_NUMBER = r"(0[xX][0-9a-fA-F_]+|0[bB][01_]+|[1-9][0-9_]*)"
_TRANSLATION = re.compile(rf'"((?:[^"\\]|\\.)*)" , (?:string|bit < {_NUMBER} >|{_NUMBER})')


class Lowering(Instances):
    """Lowers a program: the package `main`, and everything it is made of."""

    def run(self, library: bool) -> ir.Program | None:
        """Lower the program; None (and an error) if it has no main and is not a library."""
        main: ir.Package | None = None
        for decl in self.program.declarations:
            match decl:
                case ast.ActionDecl():
                    annotations = decl.notes
                    name = control_plane_name("", decl.name, annotations)
                    self.top.bind(decl, ActionInstance(decl, name, self.top))
                case ast.Instantiation():
                    self.instantiate(decl, self.top)
                    bound = self.top.find(decl)
                    if decl.name == "main" and isinstance(bound, PackageInstance):
                        main = bound.package
                        main.span = decl.span
        if main is not None:
            self.settle_tables(0, [block for _, block in blocks(main)])
        if main is None and library:
            main = ir.Package("", dict(self._unused_blocks()), span=self.program.span)
        if main is None:
            file = self.program.span.file
            own = [d.span for d in self.program.declarations if d.span.file == file]
            self.reporter.error(
                own[-1] if own else self.program.span,
                "the program has no package `main`",
                "end it with an instantiation such as V1Switch(...) main;",
            )
            return None
        return ir.Program(
            main,
            self.errors,
            self.tables,
            self.actions,
            self.externs,
            self.value_sets,
            self._new_types(),
            self._enums(),
            self._controller_headers(),
            main.annotations,
            self.user_extern_calls,
            called_actions=self.called_actions,
            in_hash=self.in_hash,
            direct_actions=list(self.direct_actions.values()),
        )

    def package(self, info: CallInfo, env: Env, annotations: Annotations, name: str) -> ir.Package:
        assert isinstance(info.decl, ast.PackageTypeDecl), info.decl
        inner = env.inner()
        if self._package_counts[info.decl] > 1:
            inner.path = name
        args = {
            p.name: self._package_argument(a, p.name, inner)
            for p, a in zip(info.signature.params, info.args, strict=True)
            if a is not None
        }
        declared = info.decl.notes
        parameters = tuple(p.name for p in info.signature.params)
        return ir.Package(
            info.name, args, annotations, declared_annotations=declared, name=name,
            parameters=parameters,
        )  # fmt: skip

    @cached_property
    def _package_counts(self) -> Counter[ast.Decl]:
        """How many packages of each type the program makes.

        The names of a package's objects begin with the package's if there are several of its type.
        """
        return Counter(
            node.info.decl
            for node in self.checked.all_nodes()
            if isinstance(node, ast.Instantiation | ast.Call)
            and isinstance(getattr(node.info, "decl", None), ast.PackageTypeDecl)
        )

    def _unused_blocks(self) -> Iterator[tuple[str, ir.Parser | ir.Control]]:
        """Yield the top-level parsers and controls that nothing in the program uses.

        Those with constructor parameters are left out: there are no arguments for them.
        """
        used = used_blocks(self.checked.all_nodes())
        for decl in self.program.declarations:
            if not isinstance(decl, ast.ParserDecl | ast.ControlDecl) or decl in used:
                continue
            if not decl.ctor_params:
                self._names.clear()  # lowered separately: they do not share names
                instance = BlockInstance(decl, decl.name, self.top.inner())
                first = len(self.tables)
                block = self._block(instance)
                self.settle_tables(first, [block])
                yield decl.name, block

    def _package_argument(
        self, arg: ast.Expr, name: str, env: Env
    ) -> ir.Parser | ir.Control | ir.Package | ir.Argument:
        if isinstance(arg, ast.Name) and arg.const is None:
            bound = env.find(arg.decl)
            if isinstance(bound, BlockInstance):
                return self._block(bound)
            if isinstance(bound, PackageInstance):
                return bound.package
        if isinstance(arg, ast.Call) and arg.info.kind == "constructor":
            decl = arg.info.decl
            if isinstance(decl, ast.ParserDecl | ast.ControlDecl):
                own = self.copy_names.get(arg, decl.name)
                block = control_plane_name(env.path, own, ())
                return self._block(self.block_instance(arg.info, block, env, 1))
            if isinstance(decl, ast.PackageTypeDecl):
                return self.package(arg.info, env, (), name)
        return self.constructor_value(arg, name, env)

    def _block(self, instance: BlockInstance) -> ir.Parser | ir.Control:
        """Return a top-level parser or control."""
        block = self._lowered(instance, Body(self))
        found = {several_varbits(v.type) for v in (*block.locals, *(p.var for p in block.params))}
        for name in sorted(filter(None, found)):
            what = f"{instance.decl.name} uses header {name}, which has several varbit fields"
            self.unsupported(instance.decl.span, what, "at most one is supported")
        return block

    def _lowered(self, instance: BlockInstance, body: Body) -> ir.Parser | ir.Control:
        decl = instance.decl
        env = instance.env.inner()
        env.path = instance.name
        params = self._params(decl.params, env)
        annotations = decl.notes
        with body.scope(env):
            self.elaborate(decl, env, body)
            if isinstance(decl, ast.ParserDecl):
                setup: list[ir.Stmt] = []
                with body.into(setup):
                    body.initialise(decl.locals)
                states = ParserLowering(self, body).run(decl, env)
                return ir.Parser(
                    decl.name, params, body.locals, setup, states, decl.span, annotations
                )
            with body.returns(None):
                body.initialise(decl.locals)
                with body.scope():
                    body.stmts(decl.body.body)
        return ir.Control(decl.name, params, body.locals, body.out, decl.span, annotations)

    def _params(self, params: Sequence[ast.Param], env: Env) -> list[ir.Param]:
        out = []
        for p in params:
            t = p.type
            assert t is not None
            if isinstance(t, ExternType) and t.name in PACKET_TYPES:
                env.bind(p, PACKET)
                continue
            if isinstance(t, ExternType):  # of an architecture that this package does not implement
                env.bind(
                    p,
                    ir.ExternInstance(
                        t.name, p.name, [], [], span=p.span, user_extern=ir.UserExtern()
                    ),
                )
                continue
            var = self.variable(p.name, erase(t))
            var.type_name = type_name(t)
            env.bind(p, var)
            out.append(ir.Param(p.name, p.direction, var))
        return out

    # -- information for P4Info ----------------------------------------------------------------

    def _new_types(self) -> dict[str, ir.TypeInfo]:
        found = {}
        for decl in self.program.declarations:
            if isinstance(decl, ast.TypedefDecl) and decl.new:
                t = decl.denoted
                if isinstance(t, NewType):
                    found[t.name] = self._type_info(t, decl)
        return found

    def _enums(self) -> dict[str, SerEnum | Enum]:
        decls = [d for d in self.program.declarations if isinstance(d, ast.EnumDecl)]
        types = [decl.denoted for decl in decls]
        return {t.name: t for t in types if isinstance(t, SerEnum | Enum)}

    def _type_info(self, t: NewType, decl: ast.TypedefDecl) -> ir.TypeInfo:
        width = bit_width(t) or 0
        for a in t.annotations:
            if a.name == "p4runtime_translation":
                if not isinstance(base := erase(t), Bits) or base.signed:
                    said = f"@p4runtime_translation: {t.name} is a {base}, not a bit<W>"
                    self.reporter.error(decl.span, said)
                translation = _translation(a)
                if translation is not None:
                    return ir.TypeInfo(t.name, width, *translation, t.annotations)
                self.reporter.error(
                    decl.span,
                    f"@p4runtime_translation({a.body}) is malformed",
                    'write ("uri", 32), ("uri", bit<32>) or ("uri", string)',
                )
        return ir.TypeInfo(t.name, width, annotations=t.annotations)

    def _controller_headers(self) -> list[Header]:
        found = []
        for decl in self.program.declarations:
            if any(a.name == "controller_header" for a in decl.annotations):
                t = decl.denoted
                if t is not None and isinstance(erased := erase_keeping_names(t), Header):
                    found.append(erased)
        return found


def _translation(a: Annotation) -> tuple[str, int | None] | None:
    """Return the URI and SDN width (None: string) of @p4runtime_translation; None if malformed."""
    found = _TRANSLATION.fullmatch(a.body)
    if found is None:
        return None
    uri, bits, number = found.groups()
    width = bits or number
    return uri, int(width, 0) if width else None


def package_types(program: ast.Program) -> list[ir.PackageType]:
    """Return the type of `main`; without a main, the types of packages declared."""
    for decl in program.declarations:
        if isinstance(decl, ast.Instantiation) and decl.name == "main":
            return [_package_type(decl.info.name, decl.info.decl)]
    packages = [d for d in program.declarations if isinstance(d, ast.PackageTypeDecl)]
    return [_package_type(d.name, d) for d in packages]


def _package_type(name: str, decl: ast.Decl) -> ir.PackageType:
    if not isinstance(decl, ast.PackageTypeDecl):
        return ir.PackageType(name)
    info = tuple(a.body for a in decl.annotations if a.name == "pkginfo")
    return ir.PackageType(name, info, tuple(p.name for p in decl.params))


def lower(
    checked: Checked,
    reporter: Reporter,
    natives: Natives | None,
    library: bool = False,
    table_size: int = DEFAULT_SIZE,
) -> ir.Program:
    """Lower a checked program; raises CompileError for errors that only show here.

    natives: the externs of its architecture; None for an architecture that this package does not
    implement, whose match kinds and table properties are unknown. library: accept a program without
    a main. table_size: of tables whose source gives none.
    """
    program = Lowering(checked, reporter, natives, table_size).run(library)
    if program is not None:
        _check_numbers(program, reporter)
    reporter.stop_on_errors()
    assert program is not None
    return program


# -- numbers that @id gives ------------------------------------------------------------------------

_Numbered = tuple[str, Annotations, Span]

_PROFILES = ("action_profile", "action_selector")  # one kind in P4Runtime
_LOW_BITS = (1 << 24) - 1  # the upper byte of an object's id encodes its kind


def _check_numbers(program: ir.Program, reporter: Reporter) -> None:
    """Report objects of a kind, keys of a table and parameters of an action with equal numbers."""
    for group in _groups(program):
        seen: dict[int, str] = {}
        for name, notes, span in group:
            number = next((a.values[0] for a in notes if a.name == "id" and a.values), None)
            if not isinstance(number, int):
                continue
            first = seen.setdefault(number & _LOW_BITS, name)
            if first != name:
                reporter.error(span, f"{name} has the same @id as {first}: {number}")


def _groups(program: ir.Program) -> Iterator[Iterable[_Numbered]]:
    for objects in (program.tables, program.actions, program.value_sets):
        yield [(o.name, o.annotations, o.span) for o in objects]
    kinds: dict[str, list[ir.ExternInstance]] = {}
    for x in program.externs:
        kinds.setdefault("profile" if x.kind in _PROFILES else x.kind, []).append(x)
    for of_kind in kinds.values():
        yield [(x.name, x.annotations, x.span) for x in of_kind]
    for table in program.tables:
        yield [(f"key {k.name}", k.annotations, table.span) for k in table.keys]
    for action in program.actions:
        yield [(f"parameter {v.name}", v.annotations, action.span) for v in action.params]
