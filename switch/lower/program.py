"""From a checked program to its IR: instantiates the package `main` and all that hangs on it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker import Checked
from gradplane.switch.check.expressions import EnumValue
from gradplane.switch.check.kinds import BlockType, ExternType, TypeVar
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Annotations,
    Enum,
    Error,
    Header,
    NewType,
    Type,
    bit_width,
)
from gradplane.switch.lower.body import Body
from gradplane.switch.lower.calls import CallLowering
from gradplane.switch.lower.env import (
    PACKET,
    ActionInstance,
    BlockInstance,
    Env,
    PackageInstance,
    control_plane_name,
)
from gradplane.switch.lower.erase import erase, type_name
from gradplane.switch.lower.parsers import ParserLowering
from gradplane.switch.lower.sites import apply_sites
from gradplane.switch.lower.tables import TableLowering, value_set
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast

PACKET_TYPES = ("packet_in", "packet_out")


class Lowering:
    """What the lowering of a program shares: the top environment and the lists that grow."""

    def __init__(self, checked: Checked, reporter: Reporter) -> None:
        self.checker = checked.checker
        self.errors = checked.errors
        self.program = checked.program
        self.reporter = reporter
        self.top = Env(None)
        self.tables: list[ir.Table] = []
        self.actions: list[ir.Action] = []
        self.externs: list[ir.ExternInstance] = []
        self.value_sets: list[ir.ValueSet] = []
        self._ids = itertools.count()
        self._sites = apply_sites(checked.program)
        self._codes: dict[ir.Table, dict[str, int]] = {}

    # -- shared services -----------------------------------------------------------------------

    def variable(self, name: str, t: Type) -> ir.Var:
        return ir.Var(t, name, next(self._ids))

    def member_code(self, value: EnumValue) -> int:
        match value.type:
            case Enum(members=members):
                return members.index(value.name)
            case Error():
                return self.errors.index(value.name)
        raise AssertionError(value)

    def note_table(self, table: ir.Table, codes: dict[str, int]) -> None:
        self.tables.append(table)
        self._codes[table] = codes

    def note_action(self, action: ir.Action) -> None:
        if all(a.name != action.name for a in self.actions):
            self.actions.append(action)

    def action_codes(self, table: ir.Table) -> dict[str, int]:
        """Action name as in the source -> its position in table.actions."""
        return self._codes[table]

    def no_action(self) -> ActionInstance:
        for decl, bound in self.top.bindings.items():
            if decl.name == "NoAction" and isinstance(bound, ActionInstance):
                return bound
        decl = ast.ActionDecl(
            "NoAction", [], ast.Block([], span=self.program.span), span=self.program.span
        )
        instance = ActionInstance(decl, "NoAction", self.top)
        self.top.bind(decl, instance)
        return instance

    # -- instances -----------------------------------------------------------------------------

    def instantiate(self, decl: ast.Instantiation, env: Env) -> None:
        """Makes what an instantiation declares, and binds it."""
        annotations = self.checker.annotations(decl.annotations)
        name = control_plane_name(env.path, decl.name, annotations)
        match decl.type:
            case ExternType():
                env.bind(decl, self.extern_instance(decl.info, name, annotations, env, decl.span))
            case BlockType(decl=ast.ParserDecl() | ast.ControlDecl() as block):
                inner = self._constructor_env(block, decl.info, env)
                env.bind(decl, BlockInstance(block, name, inner, self._sites[decl]))
            case BlockType(kind="package"):
                env.bind(decl, PackageInstance(self._package(decl.info, env, annotations)))

    def direct_instance(self, info: CallInfo, env: Env) -> BlockInstance:
        """The instance that `C.apply()` stands for."""
        assert isinstance(info.decl, ast.ParserDecl | ast.ControlDecl)
        name = control_plane_name(env.path, info.decl.name, ())
        return BlockInstance(info.decl, name, self.top.inner())

    def extern_instance(
        self, info: CallInfo, name: str, annotations: Annotations, env: Env, span: Span
    ) -> ir.ExternInstance:
        t = info.signature.result
        assert isinstance(t, ExternType)
        args = [self._constructor_value(a, env) for a in info.args if a is not None]
        type_args = [erase(a) for a in t.args]
        instance = ir.ExternInstance(t.name, name, type_args, args, annotations, span)
        self.externs.append(instance)
        return instance

    def _constructor_env(
        self, decl: ast.ParserDecl | ast.ControlDecl, info: CallInfo, env: Env
    ) -> Env:
        inner = self.top.inner()
        for param, arg in zip(decl.ctor_params, info.args, strict=True):
            if arg is not None:
                inner.bind(param, self._constructor_binding(arg, env))
        return inner

    def _constructor_binding(self, arg: ast.Expr, env: Env) -> ir.Expr | ir.ExternInstance:
        if isinstance(arg, ast.Name) and arg.const is None:
            found = env.find(arg.decl)
            if isinstance(found, ir.ExternInstance):
                return found
        body = Body(self)
        with body.scope(env):
            return body.expr(arg)

    def _constructor_value(self, arg: ast.Expr, env: Env) -> int | bool | str | ir.ExternInstance:
        if isinstance(arg.const, EnumValue):
            return arg.const.name
        if isinstance(arg, ast.Call) and arg.info.kind == "constructor":
            return self.extern_instance(arg.info, f"{env.path}.{arg.info.name}", (), env, arg.span)
        value = self._constructor_binding(arg, env)
        if isinstance(value, ir.ExternInstance):
            return value
        if isinstance(value, ir.Const):
            return value.value
        self.reporter.error(arg.span, "a constructor's argument must be a number or an instance")
        return 0

    def elaborate(
        self, decl: ast.ParserDecl | ast.ControlDecl, env: Env, body: CallLowering
    ) -> None:
        """Makes the objects a block declares, once per instance."""
        for member in decl.locals:
            match member:
                case ast.VarDecl():
                    assert member.type is not None
                    env.bind(member, body.variable(member.name, erase(member.type)))
                case ast.Instantiation():
                    self.instantiate(member, env)
                case ast.ActionDecl():
                    annotations = self.checker.annotations(member.annotations)
                    name = control_plane_name(env.path, member.name, annotations)
                    env.bind(member, ActionInstance(member, name, env))
                case ast.TableDecl():
                    env.bind(member, TableLowering(self, member, env, body).make())
                case ast.ValueSetDecl():
                    made = value_set(self, member, env)
                    self.value_sets.append(made)
                    env.bind(member, made)

    # -- the package ---------------------------------------------------------------------------

    def run(self) -> ir.Program | None:
        """Lowers the program; None (and an error) if it has no main."""
        main: ir.Package | None = None
        for decl in self.program.declarations:
            match decl:
                case ast.ActionDecl():
                    self.top.bind(decl, ActionInstance(decl, decl.name, self.top))
                case ast.Instantiation():
                    self.instantiate(decl, self.top)
                    bound = self.top.find(decl)
                    if decl.name == "main" and isinstance(bound, PackageInstance):
                        main = bound.package
        if main is None:
            last = self.program.declarations[-1] if self.program.declarations else self.program
            self.reporter.error(
                last.span,
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
            self._controller_headers(),
            main.annotations,
        )

    def _package(self, info: CallInfo, env: Env, annotations: Annotations) -> ir.Package:
        args = {
            p.name: self._package_argument(a, env)
            for p, a in zip(info.signature.params, info.args, strict=True)
            if a is not None
        }
        return ir.Package(info.name, args, annotations)

    def _package_argument(
        self, arg: ast.Expr, env: Env
    ) -> ir.Parser | ir.Control | ir.Package | ir.ExternInstance | int | bool | str:
        if isinstance(arg, ast.Name) and arg.const is None:
            bound = env.find(arg.decl)
            if isinstance(bound, BlockInstance):
                return self._block(bound)
            if isinstance(bound, PackageInstance):
                return bound.package
        if isinstance(arg, ast.Call) and arg.info.kind == "constructor":
            decl = arg.info.decl
            if isinstance(decl, ast.ParserDecl | ast.ControlDecl):
                inner = self._constructor_env(decl, arg.info, env)
                return self._block(BlockInstance(decl, decl.name, inner))
            if isinstance(decl, ast.PackageTypeDecl):
                return self._package(arg.info, env, ())
        return self._constructor_value(arg, env)

    def _block(self, instance: BlockInstance) -> ir.Parser | ir.Control:
        """A top-level parser or control."""
        decl = instance.decl
        body = Body(self)
        env = instance.env.inner()
        env.path = instance.name
        params = self._params(decl.params, env)
        annotations = self.checker.annotations(decl.annotations)
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
            if isinstance(t, ExternType | TypeVar):
                self.reporter.error(p.span, f"a top-level block's parameter cannot be a {t}")
                continue
            var = self.variable(p.name, erase(t))
            var.type_name = type_name(t)
            env.bind(p, var)
            out.append(ir.Param(p.name, p.direction, var))
        return out

    # -- what P4Info wants to know -------------------------------------------------------------

    def _new_types(self) -> dict[str, ir.TypeInfo]:
        found = {}
        for decl in self.program.declarations:
            if isinstance(decl, ast.TypedefDecl) and decl.new:
                t = self.checker.types.declared(decl)
                if isinstance(t, NewType):
                    found[t.name] = _type_info(t)
        return found

    def _controller_headers(self) -> list[Header]:
        found = []
        for decl in self.program.declarations:
            if any(a.name == "controller_header" for a in decl.annotations):
                t = self.checker.types.declared(decl)
                if t is not None and isinstance(erased := erase(t), Header):
                    found.append(erased)
        return found


def _type_info(t: NewType) -> ir.TypeInfo:
    width = bit_width(t) or 0
    for a in t.annotations:
        if a.name == "p4runtime_translation" and a.values:
            sdn = a.values[1] if len(a.values) > 1 else None
            return ir.TypeInfo(
                t.name, width, str(a.values[0]), sdn if isinstance(sdn, int) else None
            )
    return ir.TypeInfo(t.name, width)


def lower(checked: Checked, reporter: Reporter) -> ir.Program:
    """Lowers a checked program; raises CompileError for what only now turns out to be wrong."""
    program = Lowering(checked, reporter).run()
    reporter.stop_on_errors()
    assert program is not None
    return program
