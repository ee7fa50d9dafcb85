"""Make instances of externs, parsers, controls, tables and actions, and their names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property

from gradplane.switch.check.checker_types import BlockType, ExternType
from gradplane.switch.check.records import CallInfo, EnumValue
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotations, Array, Enum, Fields, Header, Type, Void
from gradplane.switch.lower.calls import CallLowering
from gradplane.switch.lower.copy_names import copy_names
from gradplane.switch.lower.register_cells import packed_constant, packed_type, shown_cell
from gradplane.switch.lower.shared_state import (
    AbstractMethod,
    ActionInstance,
    BlockInstance,
    Env,
    InstanceArray,
    PackageInstance,
    Shared,
    control_plane_name,
)
from gradplane.switch.lower.statements import Body
from gradplane.switch.lower.table_lowering import TableLowering, value_set
from gradplane.switch.lower.type_erasure import erase, erase_keeping_names, extern_type
from gradplane.switch.source import Span
from gradplane.switch.syntax import ast

REGISTERS = ("register", "direct_register")
MANY = 2  # a number of apply sites that makes an instance copy its arguments


class Instances(Shared):
    """Makes the instances of a program's declarations."""

    @abstractmethod
    def package(self, info: CallInfo, env: Env, annotations: Annotations, name: str) -> ir.Package:
        """Return the package that a constructor call makes; `name`: of the instance."""

    @cached_property
    def copy_names(self) -> Mapping[ast.Node, str]:
        return copy_names(self.program.declarations, self.checked.all_nodes())

    # -- instances -----------------------------------------------------------------------------

    def instantiate(self, decl: ast.Instantiation, env: Env) -> None:
        """Make the object that an instantiation declares, and bind it."""
        annotations = decl.notes
        name = control_plane_name(env.path, decl.name, annotations)
        match decl.type:
            case ExternType() | Array():
                env.bind(decl, self._extern_or_array(decl, decl.type, name, env))
            case BlockType(decl=ast.ParserDecl() | ast.ControlDecl()):
                env.bind(decl, self.block_instance(decl.info, name, env, self.sites[decl]))
            case BlockType(kind="package"):
                env.bind(decl, PackageInstance(self.package(decl.info, env, annotations, name)))

    def _extern_or_array(
        self, decl: ast.Instantiation, t: Type, name: str, env: Env
    ) -> ir.ExternInstance | InstanceArray:
        """Make an extern instance, or those of an array, `name[0]` and so on."""
        if isinstance(t, Array):
            names = [f"{name}[{i}]" for i in range(t.size)]
            return InstanceArray([self._extern_or_array(decl, t.element, n, env) for n in names])
        made = self.extern_instance(decl.info, name, decl.notes, env, decl.span)
        env.bind(decl, made)
        self._initializer(decl, made, env)
        return made

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
                own = self.copy_names.get(arg, param.name)
                inner.bind(param, self.constructor_binding(arg, f"{name}.{own}", env))
        return BlockInstance(decl, name, inner, sites)

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
            instance.cell = shown_cell(type_args[0])
            instance.type_args[0] = cell
        if kind is None:
            instance.user_extern = ir.UserExtern(
                [extern_type(env.resolved(p.type)) for p in params]
            )
        self.take_name("extern", name, span)
        self.externs.append(instance)
        return instance

    def constructor_binding(
        self, arg: ast.Expr, name: str, env: Env
    ) -> ir.Expr | ir.ExternInstance | InstanceArray | BlockInstance:
        """Return a constructor's argument; an object made in place is called `name`."""
        body = Body(self)
        with body.scope(env):
            found = body.object_of(arg)
        if isinstance(found, BlockInstance):
            found.sites = MANY
        if isinstance(found, ir.ExternInstance | InstanceArray | BlockInstance):
            return found
        if isinstance(arg, ast.Call) and arg.info.kind == "constructor":
            if isinstance(arg.info.signature.result, ExternType):
                return self.extern_instance(arg.info, name, (), env, arg.span)
            return self.block_instance(arg.info, name, env, MANY)
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
                    annotations = member.notes
                    name = control_plane_name(env.path, member.name, annotations)
                    env.bind(member, ActionInstance(member, name, env))
                case ast.TableDecl():
                    env.bind(member, TableLowering(self, member, env, body).make())
                case ast.ValueSetDecl():
                    made = value_set(self, member, env)
                    self.take_name("value set", made.name, member.span)
                    self.value_sets.append(made)
                    env.bind(member, made)


def _method(p: Instances, decl: ast.FunctionDecl, outer: Env) -> ir.Method:
    """Return the IR of an abstract method's body; `outer` is the instance's environment."""
    assert decl.body is not None, decl.name
    signature = decl.signature
    if signature.type_params:
        what = f"abstract method {decl.name} cannot have type parameters"
        p.unsupported(decl.span, what, "declare them on the extern")
    env = outer.inner()
    body = Body(p)
    params = []
    for param, formal in zip(decl.params, signature.params, strict=True):
        var = p.variable(param.name, erase(env.resolved(formal.type)))
        env.bind(param, var)
        params.append(ir.Param(param.name, param.direction, var))
    result = None
    if not isinstance(signature.result, Void):
        result = p.variable("result", erase(env.resolved(signature.result)))
    with body.scope(env), body.returns(result), body.repeating():
        body.stmts(decl.body.body)
    return ir.Method(
        decl.name,
        params,
        [extern_type(env.resolved(formal.type)) for formal in signature.params],
        result,
        extern_type(env.resolved(signature.result)),
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
