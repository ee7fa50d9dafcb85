"""Make instances of externs, parsers, controls, tables and actions, and their names."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker import Checked
from gradplane.switch.check.checker_types import BlockType, ExternType, substitute
from gradplane.switch.check.expressions import EnumValue
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotations, Enum, Error, Fields, Header, Type, Void
from gradplane.switch.ir.verify import CORE_ERRORS
from gradplane.switch.lower.block_uses import apply_sites, functions_beside_package
from gradplane.switch.lower.calls import CallLowering
from gradplane.switch.lower.instance_scope import (
    AbstractMethod,
    ActionInstance,
    BlockInstance,
    Env,
    PackageInstance,
    control_plane_name,
)
from gradplane.switch.lower.register_cells import packed_constant, packed_type
from gradplane.switch.lower.statements import Body
from gradplane.switch.lower.table_lowering import DEFAULT_SIZE, TableLowering, value_set
from gradplane.switch.lower.type_erasure import erase, erase_keeping_names, extern_type
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast

MAX_INLINED = 20_000  # calls; functions that call others twice grow exponentially
Natives = Mapping[tuple[str, str], ir.InstanceKind | None]
"""The externs that an architecture has: ("", function), (type, method), and (type, "") with the
kind of its instances."""

REGISTERS = ("register", "direct_register")
MANY = 2  # a number of apply sites that makes an instance copy its arguments


class Instances:
    """The shared state of the lowering of a program: the top environment and the IR's lists."""

    def __init__(
        self,
        checked: Checked,
        reporter: Reporter,
        natives: Natives | None = None,
        table_size: int = DEFAULT_SIZE,
    ) -> None:
        self.checker = checked.checker
        self.errors = _in_order(checked.errors)
        self.program = checked.program
        self.reporter = reporter
        self.natives = natives
        self.table_size = table_size
        self.top = Env(None)
        self.tables: list[ir.Table] = []
        self.actions: list[ir.Action] = []
        self.externs: list[ir.ExternInstance] = []
        self.value_sets: list[ir.ValueSet] = []
        self.user_extern_calls: list[ir.CallUserExtern] = []
        self.called_actions: dict[Span, Span] = {}
        self.in_hash: dict[Span, Span] = {}
        self.direct_actions: dict[str, ir.Action] = {}  # by name
        self.direct_of: dict[ir.ExternInstance, str] = {}  # direct counter or meter: its table
        self.methods: dict[tuple[ir.ExternInstance, str], AbstractMethod] = {}  # to be inlined
        self.accessed: dict[ir.ExternInstance, list[ir.Expr]] = {}  # a register action's cell
        self.accessing = False  # whether inside the body of a register action
        self._ids = itertools.count()
        self._sites = apply_sites(checked.checker.all_nodes())
        self._direct: dict[tuple[Env, CallInfo], BlockInstance] = {}
        self._codes: dict[ir.Table, dict[str, int]] = {}
        self._names: dict[tuple[str, str], Span] = {}
        self._inlined = 0
        self._architecture = functions_beside_package(checked.program)

    @abstractmethod
    def package(self, info: CallInfo, env: Env, annotations: Annotations, name: str) -> ir.Package:
        """Return the package that a constructor call makes; `name`: of the instance."""

    # -- shared services -----------------------------------------------------------------------

    def variable(self, name: str, t: Type) -> ir.Var:
        return ir.Var(t, name, next(self._ids))

    def hidden_register(self, name: str, t: Type) -> ir.ExternInstance:
        """Return the register of one cell with a name, made on first use; it is in no P4Info."""
        for instance in self.externs:
            if instance.name == name:
                return instance
        made = ir.ExternInstance(
            ir.HIDDEN_REGISTER, name, [t], [1], kind="register", roles=("size",)
        )
        self.externs.append(made)
        return made

    def unsupported(self, span: Span, message: str, hint: str = "") -> None:
        """Report what our architectures do not support; another architecture may."""
        if self.natives is not None:
            self.reporter.error(span, message, hint)

    def is_user_defined(self, info: CallInfo) -> bool:
        """Return whether an extern function is user-defined.

        That is, the architecture has none of its name, or declares another form of it beside its
        package.
        """
        if self.natives is None or ("", info.name) not in self.natives:
            return True
        assert isinstance(info.decl, ast.FunctionDecl)
        return info.name in self._architecture and info.decl not in self._architecture[info.name]

    def count_inlined(self, span: Span) -> None:
        """Count a call that is replaced by the body of its callee."""
        self._inlined += 1
        if self._inlined > MAX_INLINED:
            self.reporter.error(
                span, f"the program is too large: more than {MAX_INLINED} calls to inline"
            )
            self.reporter.stop_on_errors()

    def member_code(self, value: EnumValue) -> int:
        match value.type:
            case Enum(members=members):
                return members.index(value.name)
            case Error():
                return self.errors.index(value.name)
        return self.checker.match_kinds.index(value.name)

    def error_code(self, name: str) -> int:
        """Return the code of a core.p4 error; 0 without core.p4, as in the engines."""
        return self.errors.index(name) if name in self.errors else 0

    def note_table(self, table: ir.Table, codes: dict[str, int]) -> None:
        self._take_name("table", table.name, table.span)
        self.tables.append(table)
        self._codes[table] = codes

    def note_action(self, action: ir.Action) -> None:
        """Add an action; it is listed once, even if several tables bind its arguments.

        Two actions of one name are one to the control plane if their parameters are the same, as
        those of `@name(".nop")` in several controls; each table has its own action's body.
        """
        known = next((a for a in self.actions if a.name == action.name), None)
        if known is None:
            self.actions.append(action)
        elif known.span != action.span and not _same_parameters(known, action):
            self._same_name("action", action.name, action.span, known.span)

    def note_direct_action(self, action: ActionInstance) -> None:
        """Add an action that a control calls, unless it has been added before."""
        decl, name = action.decl, action.name
        annotations = self.checker.annotations(decl.annotations)
        self.direct_actions.setdefault(name, ir.Action(name, [], [], annotations, decl.span))

    def action_codes(self, table: ir.Table) -> dict[str, int]:
        """Return the map from an action's name in the source to its position in table.actions."""
        return self._codes[table]

    def _take_name(self, kind: str, name: str, span: Span) -> None:
        """Reserve a control-plane name for one object (17.3.1)."""
        if (kind, name) in self._names:
            self._same_name(kind, name, span, self._names[kind, name])
        self._names[kind, name] = span

    def _same_name(self, kind: str, name: str, span: Span, other: Span) -> None:
        hint = f"the first is at {other}: give one of them a @name"
        if other == span:
            hint = "its block is instantiated more than once under one name"
        self.reporter.error(span, f"a second {kind} has the control-plane name {name}", hint)

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
        """Make the object that an instantiation declares, and bind it."""
        annotations = self.checker.annotations(decl.annotations)
        name = control_plane_name(env.path, decl.name, annotations)
        match decl.type:
            case ExternType():
                made = self.extern_instance(decl.info, name, annotations, env, decl.span)
                env.bind(decl, made)
                self._initializer(decl, made, env)
            case BlockType(decl=ast.ParserDecl() | ast.ControlDecl()):
                env.bind(decl, self.block_instance(decl.info, name, env, self._sites[decl]))
            case BlockType(kind="package"):
                env.bind(decl, PackageInstance(self.package(decl.info, env, annotations, name)))

    def _initializer(self, decl: ast.Instantiation, made: ir.ExternInstance, env: Env) -> None:
        """Make the objects and abstract methods that an instantiation gives."""
        inner = env.inner()
        inner.path = made.name
        if decl.this is not None:
            inner.bind(decl.this, made)
        for member in decl.body or []:
            if isinstance(member, ast.Instantiation):
                self.instantiate(member, inner)
        for member in decl.body or []:
            if isinstance(member, ast.FunctionDecl) and made.user_extern is not None:
                made.user_extern.methods.append(_method(self, member, inner))
            elif isinstance(member, ast.FunctionDecl):
                self.methods[made, member.name] = AbstractMethod(member, inner)

    def block_instance(self, info: CallInfo, name: str, env: Env, sites: int) -> BlockInstance:
        """Return the parser or control that a constructor call makes."""
        decl = info.decl
        assert isinstance(decl, ast.ParserDecl | ast.ControlDecl), decl
        inner = self.top.inner()
        for param, arg in zip(decl.ctor_params, info.args, strict=True):
            if arg is not None:
                inner.bind(param, self.constructor_binding(arg, f"{name}.{param.name}", env))
        return BlockInstance(decl, name, inner, sites)

    def direct_instance(self, info: CallInfo, env: Env) -> BlockInstance:
        """Return the instance for `C.apply()`: one in each instance of the enclosing block."""
        assert isinstance(info.decl, ast.ParserDecl | ast.ControlDecl)
        name = control_plane_name(env.path, info.decl.name, ())
        return self._direct.setdefault(
            (env.block(), info), BlockInstance(info.decl, name, self.top.inner())
        )

    def extern_instance(
        self, info: CallInfo, name: str, annotations: Annotations, env: Env, span: Span
    ) -> ir.ExternInstance:
        t = info.signature.result
        assert isinstance(t, ExternType)
        params = info.signature.params
        args = [
            None if a is None else self.constructor_value(a, f"{name}.{p.name}", env)
            for a, p in zip(info.args, params, strict=True)
        ]
        type_args = [erase(a) for a in t.args]
        instance = ir.ExternInstance(t.name, name, type_args, args, annotations, span)
        instance.declared_type_args = [erase_keeping_names(a) for a in t.args]
        kind = None if self.natives is None else self.natives.get((t.name, ""))
        if kind is not None:
            instance.kind, instance.roles = kind.kind, kind.roles_of([p.name for p in params])
        if instance.kind in REGISTERS and (cell := packed_type(type_args[0])) != type_args[0]:
            instance.args = [packed_constant(type_args[0], a) for a in args]
            instance.cell = type_args[0]
            instance.type_args[0] = cell
        if kind is None:
            instance.user_extern = ir.UserExtern(
                [extern_type(substitute(p.type, env.types)) for p in params]
            )
        self._take_name("extern", name, span)
        self.externs.append(instance)
        return instance

    def constructor_binding(
        self, arg: ast.Expr, name: str, env: Env
    ) -> ir.Expr | ir.ExternInstance | BlockInstance:
        """Return a constructor's argument; an object made in place is called `name`."""
        if isinstance(arg, ast.Name) and arg.const is None:
            found = env.find(arg.decl)
            if isinstance(found, BlockInstance):
                found.sites = MANY
            if isinstance(found, ir.ExternInstance | BlockInstance):
                return found
        if isinstance(arg, ast.Call) and arg.info.kind == "constructor":
            if isinstance(arg.info.signature.result, ExternType):
                return self.extern_instance(arg.info, name, (), env, arg.span)
            return self.block_instance(arg.info, name, env, MANY)
        body = Body(self)
        with body.scope(env):
            return body.expr(arg)

    def constructor_value(self, arg: ast.Expr, name: str, env: Env) -> ir.Argument:
        """Return an argument as an extern or the package takes it."""
        if isinstance(arg.const, EnumValue):
            return arg.const.name
        value = self.constructor_binding(arg, name, env)
        if isinstance(value, ir.ExternInstance):
            return value
        if isinstance(value, ir.Const):
            enum = arg.type
            return enum.members[int(value.value)] if isinstance(enum, Enum) else value.value
        if isinstance(value, ir.Make | ir.Zero):
            return _parts(value)
        self.reporter.error(arg.span, "a constructor's argument must be known at compile time")
        return 0

    def elaborate(
        self, decl: ast.ParserDecl | ast.ControlDecl, env: Env, body: CallLowering
    ) -> None:
        """Make the objects that a block declares, once per instance."""
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
                    self._take_name("value set", made.name, member.span)
                    self.value_sets.append(made)
                    env.bind(member, made)


def _same_parameters(a: ir.Action, b: ir.Action) -> bool:
    return [(p.name, p.type) for p in a.params] == [(p.name, p.type) for p in b.params]


def _method(p: Instances, decl: ast.FunctionDecl, outer: Env) -> ir.Method:
    """Return the IR of an abstract method's body; `outer` is the instance's environment."""
    assert decl.body is not None, decl.name
    signature = p.checker.calls.signature(decl)
    if signature.type_params:
        what = f"abstract method {decl.name} cannot have type parameters"
        p.unsupported(decl.span, what, "declare them on the extern")
    env = outer.inner()
    body = Body(p)
    params = []
    for param, formal in zip(decl.params, signature.params, strict=True):
        var = p.variable(param.name, erase(substitute(formal.type, env.types)))
        env.bind(param, var)
        params.append(ir.Param(param.name, param.direction, var))
    result = None
    if not isinstance(signature.result, Void):
        result = p.variable("result", erase(substitute(signature.result, env.types)))
    with body.scope(env), body.returns(result), body.repeating():
        body.stmts(decl.body.body)
    return ir.Method(
        decl.name,
        params,
        [extern_type(substitute(formal.type, env.types)) for formal in signature.params],
        result,
        extern_type(substitute(signature.result, env.types)),
        body.locals,
        body.out,
        decl.span,
    )


def _parts(value: ir.Make | ir.Zero) -> ir.Argument:
    """Return the constants in a list, tuple or struct; None for an invalid header."""
    if isinstance(value, ir.Make):
        parts = value.fields
    elif isinstance(value.type, Fields) and not isinstance(value.type, Header):
        parts = [expression_builder.zero(f.type) for f in value.type.fields]
    else:
        return None
    return tuple(map(_part, parts))


def _part(value: ir.Expr) -> ir.Argument:
    if isinstance(value, ir.Const):
        return value.value
    assert isinstance(value, ir.Make | ir.Zero), value
    return _parts(value)


def _in_order(errors: list[str]) -> list[str]:
    """Return core.p4's errors first: NoError is 0 even if a program declares errors earlier."""
    core = [name for name in CORE_ERRORS if name in errors]
    return core + [name for name in errors if name not in core]
