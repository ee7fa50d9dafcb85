"""Check declarations: constants, variables, functions, actions, parsers, controls; and instances,
where they are allowed and the abstract methods they implement (11.3).
"""

from __future__ import annotations

from gradplane.switch.check.arguments import Inference
from gradplane.switch.check.checker_types import (
    ANY,
    AnyType,
    BlockType,
    ExternType,
    Signature,
    TypeVar,
    innermost,
    substitute,
    with_innermost,
)
from gradplane.switch.check.context import Context, Scope
from gradplane.switch.check.expression_text import article
from gradplane.switch.check.records import MAX_SIZE
from gradplane.switch.check.statements import always_returns, storable
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    INTEGER,
    MATCH_KIND,
    STRING,
    VOID,
    Bits,
    Enum,
    List,
    NewType,
    SerEnum,
    Struct,
    Tuple,
    Type,
    parts,
)
from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk


class InstanceChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def check(self, decl: ast.Instantiation) -> None:
        whole = self.c.types.resolve(decl.ref)
        t = innermost(whole)
        call = ast.Call(ast.TypeExpr(decl.ref, span=decl.ref.span), [], decl.args, span=decl.span)
        context, self.c.context = self.c.context, "package"
        self._allowed_here(decl, t, context)
        made = self.c.calls.construct(call, t)
        decl.type = with_innermost(whole, made)
        self.c.context = context
        decl.info = call.info
        if isinstance(made, ExternType):
            self._type_arguments(decl, made)
        if decl.body is not None and not isinstance(made, ExternType | AnyType):
            self.c.error(decl, f"{decl.name} takes no body: only an extern has abstract methods")
        elif decl.body is not None:
            self._object_body(decl, made)
        if isinstance(made, ExternType):
            self._all_implemented(decl, made)

    def _type_arguments(self, decl: ast.Instantiation, t: ExternType) -> None:
        if INTEGER in t.args:
            what = f"{t}: an int without a width exists at compile time only"
            self.c.error(decl.ref, what, "give it one, as in bit<32>")
        if any(isinstance(a, TypeVar) and a.name != "_" for a in t.args):
            self.c.error(
                decl.ref,
                f"the type arguments of {t.name} cannot be inferred",
                f"write {t.name}<...>(...) {decl.name};",
            )

    def _allowed_here(self, decl: ast.Instantiation, t: Type, context: str) -> None:
        if not isinstance(t, BlockType | ExternType | AnyType):
            self.c.error(decl.ref, f"{t} cannot be instantiated")
            return
        kind = t.kind if isinstance(t, BlockType) else "extern"
        if isinstance(t, ExternType) and t.name in ("packet_in", "packet_out"):
            self.c.error(decl, f"a {t} is made by the architecture, not by the program")
        if kind == "package" and context != "package":
            where = article(context)
            self.c.error(decl, f"a package can only be instantiated at the top, not in {where}")
        if kind in ("parser", "control") and context != kind:
            where = "at the top" if context == "package" else f"in {article(context)}"
            self.c.error(decl, f"a {kind} cannot be instantiated {where}")
        if context in ("function", "action"):
            self.c.error(decl, f"nothing can be instantiated in {article(context)}")

    def _object_body(self, decl: ast.Instantiation, made: Type) -> None:
        assert decl.body is not None
        this = decl.this = ast.Param("this", decl.ref, span=decl.span)
        this.type = made
        # Methods do not see local variables (11.3.1), but for those that only run within a call of
        # another method, where the variables are the caller's.
        within = None if _runs_in_calls(made) else self.c.scopes.top
        with self.c.scopes.nested(within=within):
            self.c.scopes.declare(this)
            for member in decl.body:
                if isinstance(member, ast.FunctionDecl):
                    self.c.decls.function(member)
                    self.c.scopes.declare(member)
                else:
                    self.c.decls.local(member)

    def _all_implemented(self, decl: ast.Instantiation, t: ExternType) -> None:
        """Check that an instance implements all abstract methods of its extern."""
        given = {m.name: m for m in decl.body or [] if isinstance(m, ast.FunctionDecl)}
        abstract = {m.name: m for m in t.decl.methods if m.abstract}
        for name, method in abstract.items():
            if name not in given:
                if _annotated(method, "optional"):
                    continue
                self.c.error(
                    decl, f"{decl.name} does not implement {t.name}'s abstract method {name}"
                )
                continue
            variables = self.c.types.variables(t.decl)
            declared, found = self.c.calls.signature(method), self.c.calls.signature(given[name])
            wanted = substitute(declared, dict(zip(variables, t.args, strict=False)))
            assert isinstance(wanted, Signature)
            if not Inference(wanted.type_params).same(wanted, found):
                self.c.error(given[name], f"{name} must be {wanted}, as {t.name} declares it")
        for name, m in given.items():
            if name not in abstract:
                self.c.error(m, f"extern {t.name} has no abstract method {name}")
        self._no_recursion(given)

    def _no_recursion(self, methods: dict[str, ast.FunctionDecl]) -> None:
        """Report methods of one instance that call each other recursively through `this`."""
        calls = {name: _through_this(m) & methods.keys() for name, m in methods.items()}
        for name, m in methods.items():
            reached: set[str] = set()
            todo = set(calls[name])
            while todo:
                one = todo.pop()
                reached.add(one)
                todo |= calls[one] - reached
            if name in reached:
                self.c.error(m, f"method {name} calls itself")
                return


def _runs_in_calls(t: Type | None) -> bool:
    """Return whether all abstract methods of an extern are @synchronous."""
    methods = [m for m in t.decl.methods if m.abstract] if isinstance(t, ExternType) else []
    return bool(methods) and all(_annotated(m, "synchronous") for m in methods)


def _annotated(method: ast.FunctionDecl, name: str) -> bool:
    return any(a.name == name for a in method.annotations)


def _through_this(method: ast.FunctionDecl) -> set[str]:
    """Return the names of the methods that a method calls on its own instance."""
    return {
        n.name
        for n in walk(method)
        if isinstance(n, ast.Member) and isinstance(n.base, ast.Name) and n.base.name == "this"
    }


_CODE = ("action", "function")


class DeclarationChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def top(self, decl: ast.Decl) -> None:
        """Check a declaration at the top of the program, then put its name in scope."""
        with self.c.quiet(decl.annotations):
            self._top(decl)

    def _top(self, decl: ast.Decl) -> None:
        self.c.annotations(decl)
        match decl:
            case ast.ErrorDecl():
                self._members(decl.members, self.c.errors, "error")
                return
            case ast.MatchKindDecl():
                self._members(decl.members, self.c.match_kinds, "match_kind")
                return
            case ast.FunctionDecl():
                self.function(decl)
            case ast.ExternDecl():
                self._extern(decl)
            case ast.ActionDecl():
                self.action(decl)
            case ast.ParserDecl():
                self.c.parsers.check(decl)
            case ast.ControlDecl():
                self._control(decl)
            case ast.ConstDecl() | ast.VarDecl() | ast.Instantiation():
                self.local(decl)
                return
            case _:
                self.c.types.declared(decl)
                if isinstance(decl, ast.PackageTypeDecl):
                    self._no_directions(decl.params, "package parameter")
        self.c.scopes.declare(decl)

    def _no_directions(self, params: list[ast.Param], what: str) -> None:
        for p in params:
            if p.direction:
                why = "it is known at compile time"
                self.c.error(p, f"{what} {p.name} cannot have a direction: {why}")

    def _members(self, members: list[tuple[str, Span]], into: list[str], what: str) -> None:
        for name, span in members:
            if name in into:
                self.c.reporter.error(span, f"{what} {name} is declared twice")
            else:
                into.append(name)

    # -- anywhere ------------------------------------------------------------------------------

    def local(self, decl: ast.Decl) -> None:
        """Check a constant, variable, instance or value set at any level."""
        self.c.annotations(decl)
        with self.c.quiet(decl.annotations):
            self._local(decl)
        self.c.scopes.declare(decl)

    def _local(self, decl: ast.Decl) -> None:
        match decl:
            case ast.ConstDecl():
                self._constant(decl)
            case ast.VarDecl():
                self._variable(decl)
            case ast.Instantiation():
                self.c.instances.check(decl)
            case ast.ValueSetDecl():
                self._value_set(decl)
            case ast.ActionDecl():
                self.action(decl)
            case ast.TableDecl():
                self.c.tables.check(decl)

    def _value_set(self, decl: ast.ValueSetDecl) -> None:
        t = self.c.types.resolve(decl.ref)
        if not _selectable(t):
            self.c.error(
                decl.ref,
                f"a value set cannot hold {t}",
                "it holds bit, int, bool or enum values, or structs and tuples of those",
            )
        self.c.exprs.check(decl.size)
        size = self.c.constant_int(decl.size, "a value set's size", checked=True)
        if size is not None and not 0 <= size <= MAX_SIZE:
            what = f"a value set's size must be 0 to {MAX_SIZE}, not {size}"
            self.c.error(decl.size, what)

    def _constant(self, decl: ast.ConstDecl) -> None:
        decl.type = self.c.types.value_type(decl.ref)
        self.c.exprs.value(decl.value)
        if not self.c.exprs.coerce(decl.value, decl.type, f"the value of {decl.name}"):
            return
        if decl.value.type != ANY and not self.c.compile_time(decl.value):
            self.c.error(decl.value, f"the value of {decl.name} must be known at compile time")

    def _variable(self, decl: ast.VarDecl) -> None:
        decl.type = self.c.types.value_type(decl.ref)
        why_not = storable(decl.type)
        if why_not:
            self.c.error(decl.ref, f"{decl.name} cannot be of type {decl.type}", why_not)
            decl.type = ANY
        if self.c.context == "package":
            self.c.error(decl, f"a variable cannot be declared at the top: {decl.name}")
        if decl.init is not None:
            self.c.exprs.value(decl.init)
            self.c.exprs.coerce(decl.init, decl.type, f"the value of {decl.name}")

    # -- callables -----------------------------------------------------------------------------

    def function(self, decl: ast.FunctionDecl) -> None:
        signature = self.c.calls.signature(decl)
        for p in decl.params:
            self._default_value(p)
        if decl.body is None:
            return
        self._parameter_types(decl.params, "function")
        known = signature.result in (INTEGER, STRING, MATCH_KIND)
        if decl.result is not None and (known or isinstance(signature.result, List)):
            what = f"a function cannot return {signature.result}: it is known at compile time only"
            self.c.error(decl.result, what)
        with self.c.inside("function"), self.c.scopes.nested():
            self.c.types.declare_variables(decl)
            self._declare_params(decl.params)
            self._body(decl.body, signature.result)
        if signature.result not in (VOID, ANY) and not always_returns(decl.body):
            self.c.error(decl, f"function {decl.name} does not return a value on every path")

    def _default_value(self, p: ast.Param) -> None:
        if p.default is None:
            return
        if p.direction in ("out", "inout"):
            self.c.error(
                p, f"parameter {p.name} of direction {p.direction} cannot have a default value"
            )
        self.c.exprs.value(p.default)
        if p.type is None or not self.c.exprs.coerce(
            p.default, p.type, f"the default value of {p.name}"
        ):
            return
        if p.default.type != ANY and not self.c.compile_time(p.default):
            self.c.error(p.default, f"the default value of {p.name} must be known at compile time")

    def _declare_params(self, params: list[ast.Param]) -> None:
        for p in params:
            self.c.scopes.declare(p)
            if not p.direction and self.c.context != "action":
                self.c.known_params.add(p)

    def _parameter_types(self, params: list[ast.Param], what: str) -> None:
        """Check the types of parameters.

        Objects are passed to blocks and functions, as in p4c; action data is never int or string.
        """
        for p in params:
            if what in _CODE and any(a.name == "optional" for a in p.annotations):
                self.c.error(p, f"a parameter of {article(what)} with a body cannot be @optional")
            if p.type and isinstance(innermost(p.type), ExternType) and what == "action":
                self.c.error(p, f"{p.type} cannot be a parameter of an action")
            elif p.type in (INTEGER, STRING) and what == "action":
                self.c.error(
                    p,
                    f"parameter {p.name} of type {p.type} must be known at compile time",
                    "give it a width" if p.type == INTEGER else "",
                )

    def action(self, decl: ast.ActionDecl) -> None:
        self.c.calls.signature(decl)
        for p in decl.params:
            self._default_value(p)
        self._parameter_types(decl.params, "action")
        self._data_last(decl)
        with self.c.inside("action"), self.c.scopes.nested():
            self._declare_params(decl.params)
            self._body(decl.body, VOID)

    def _body(self, body: ast.Block, result: Type, params: Scope | None = None) -> None:
        """Check the statements of a function, action or control.

        Its top level cannot redeclare the parameters (6.8).
        """
        self.c.annotations(body)
        beside = params or self.c.scopes.current
        with self.c.stmts.returning(result), self.c.scopes.nested(beside):
            self.c.stmts.body(body.body)

    def _data_last(self, decl: ast.ActionDecl) -> None:
        seen_data = False
        for p in decl.params:
            if seen_data and p.direction:
                self.c.error(
                    p,
                    f"parameter {p.name} has direction {p.direction} and follows action data",
                    "parameters without direction come last",
                )
            seen_data = seen_data or not p.direction

    def _extern(self, decl: ast.ExternDecl) -> None:
        with self.c.scopes.nested():
            self.c.types.declare_variables(decl)
            self._distinct(decl)
            for method in decl.methods:
                self.c.annotations(method)
                if method.result is None and method.name != decl.name:
                    self.c.error(method, f"a constructor of {decl.name} must be named {decl.name}")
                if method.result is not None and method.name == decl.name:
                    what = (
                        f"{decl.name} is the constructor's name: a constructor has no result type"
                    )
                    self.c.error(method, what)
                if method.result is None and method.abstract:
                    self.c.error(method, "a constructor cannot be abstract")
                if method.result is None and method.type_params:
                    self.c.error(method, "a constructor cannot be generic, only its extern can")
                self.c.calls.signature(method)
                if method.result is None:
                    self._no_directions(method.params, "constructor parameter")

    def _distinct(self, decl: ast.ExternDecl) -> None:
        """Check that methods, or constructors, of one name differ in their parameters' names."""
        seen: dict[tuple[str, ...], ast.FunctionDecl] = {}
        abstract: set[str] = set()
        for method in decl.methods:
            before = seen.setdefault((method.name, *(p.name for p in method.params)), method)
            if method.name in abstract:
                self.c.error(method, f"abstract method {method.name} cannot be overloaded")
            elif method.abstract:
                abstract.add(method.name)
            if before is not method and not method.abstract:
                what = f"{method.name} is declared twice in extern {decl.name}"
                self.c.error(method, what, f"with the same parameters at {before.span}")

    # -- controls ------------------------------------------------------------------------------

    def block_params(self, decl: ast.ParserDecl | ast.ControlDecl) -> None:
        """Declare the parameters of a parser or control, and those of its constructor."""
        if decl.type_params:
            self.c.error(decl, f"{decl.name} cannot be generic: it has a body")
        self.c.types.declared(decl)
        self._no_directions(decl.ctor_params, "constructor parameter")
        for p in decl.ctor_params:
            self.c.types.param(p)
            self.c.known_params.add(p)
            self._default_value(p)
        for p in decl.params:
            self._default_value(p)
        self._parameter_types(decl.params, self.c.context)
        self._declare_params(decl.params)
        self._declare_params(decl.ctor_params)

    def locals(self, members: list[ast.Decl], params: Scope) -> None:
        """Check the declarations in a parser or control; one of them may hide a parameter."""
        for member in members:
            self.local(member)
            if member.name in params.names:
                what = f"{member.name} hides the parameter {member.name}"
                where = params.names[member.name][0]
                place = member.name_span or member.span
                self.c.warn_at(place, "shadow", what, f"which is declared at {where.span}")

    def _control(self, decl: ast.ControlDecl) -> None:
        with self.c.inside("control"), self.c.scopes.nested():
            self.c.types.declare_variables(decl)
            self.block_params(decl)
            params = self.c.scopes.current
            with self.c.scopes.nested():
                self.locals(decl.locals, params)
                self._body(decl.body, VOID, params)


def _selectable(t: Type) -> bool:
    """Return whether a select can compare values of this type, or their components."""
    if isinstance(t, Struct | Tuple):
        return all(map(_selectable, parts(t)))
    return isinstance(t, Bits | Enum | SerEnum | NewType) or t in (BOOL, ERROR, ANY)
