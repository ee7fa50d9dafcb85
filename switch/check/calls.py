"""Calls: which declaration is meant, which argument goes to which parameter, type inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gradplane.switch.check.convert import settle
from gradplane.switch.check.expressions import describe
from gradplane.switch.check.kinds import (
    ANY,
    ApplyResult,
    BlockType,
    DefaultLiteral,
    ExternType,
    ListLiteral,
    ParamType,
    Signature,
    StructLiteral,
    TableType,
    TypeName,
    TypeVar,
    free_variables,
    substitute,
    substitute_params,
)
from gradplane.switch.check.scope import TypeParam, did_you_mean
from gradplane.switch.check.unify import Inference
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    VOID,
    Bits,
    Fields,
    Header,
    Integer,
    Stack,
    Type,
    Union,
    Varbit,
    bit_width,
)
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker


@dataclass(slots=True)
class CallInfo:
    """What a call means.

    kind: "function" (a P4 function with a body), "extern" (an extern function), "method" (of an
    extern instance), "action", "table" (apply), "block" (apply of a parser or control), "builtin"
    (isValid, push_front, ...) or "constructor". `args` has an expression per parameter of
    `signature`, None where the argument was left out or is `_`.
    """

    kind: str
    name: str
    signature: Signature
    args: list[ast.Expr | None]
    decl: ast.Decl | None = None
    base: ast.Expr | None = None  # the object a method belongs to
    type_args: list[Type] = field(default_factory=list)
    constructed: Type | None = None  # of a constructor, or the type applied directly


_SIZES = {"minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"}


class CallChecker:
    def __init__(self, checker: Checker) -> None:
        self.c = checker
        self._signatures: dict[ast.Decl, Signature] = {}

    # -- signatures ----------------------------------------------------------------------------

    def signature(self, decl: ast.FunctionDecl | ast.ActionDecl) -> Signature:
        """Of a function, method or action; made once, type parameters as variables."""
        if decl not in self._signatures:
            self._signatures[decl] = self._make_signature(decl)
        return self._signatures[decl]

    def _make_signature(self, decl: ast.FunctionDecl | ast.ActionDecl) -> Signature:
        variables = self.c.types.variables(decl)
        params = self.c.types.params(decl)
        result: Type = VOID
        if isinstance(decl, ast.FunctionDecl) and decl.result is not None:
            with self.c.scopes.nested():
                self.c.types.declare_variables(decl)
                result = self.c.types.resolve(decl.result)
        return Signature(decl.name, variables, params, result)

    # -- entry ---------------------------------------------------------------------------------

    def check(self, e: ast.Call) -> Type:
        match e.callee:
            case ast.Name():
                return self._named(e, e.callee)
            case ast.Member():
                return self._member(e, e.callee)
            case ast.TypeExpr(ref=ref):
                return self._constructor(e, self.c.types.resolve(ref))
        self.c.exprs.check(e.callee)
        return self._fail(e, f"{describe(e.callee)} cannot be called")

    def _fail(self, e: ast.Call, message: str, hint: str = "") -> Type:
        self.c.error(e, message, hint)
        for a in e.args:
            if a.expr is not None and a.expr.type is None:
                self.c.exprs.check(a.expr)
        return ANY

    def _named(self, e: ast.Call, callee: ast.Name) -> Type:
        found = self.c.scopes.find(callee.name, callee.dot)
        if not found:
            hint = self.c.scopes.nearest(callee.name)
            return self._fail(e, f"{callee.name} is not declared", hint)
        callee.decl = found[0]
        if isinstance(found[0], ast.FunctionDecl):
            return self._function(e, [d for d in found if isinstance(d, ast.FunctionDecl)])
        if isinstance(found[0], ast.ActionDecl):
            return self._action(e, found[0])
        declared = None
        if not isinstance(found[0], TypeParam):
            declared = self.c.types.declared(found[0])
        if declared is None:
            return self._fail(e, f"{callee.name} cannot be called")
        if e.type_args:
            declared = self._specialised(e, found[0], declared)
        return self._constructor(e, declared)

    def _specialised(self, e: ast.Call, decl: ast.Decl, declared: Type) -> Type:
        variables = self.c.types.variables(decl)
        args = [self.c.types.resolve(a) for a in e.type_args]
        if len(args) != len(variables):
            self.c.error(e, f"{decl.name} has {len(variables)} type parameters, {len(args)} given")
            return ANY
        return substitute(declared, dict(zip(variables, args, strict=True)))

    # -- functions and actions -----------------------------------------------------------------

    def _function(self, e: ast.Call, overloads: Sequence[ast.FunctionDecl]) -> Type:
        decl = self._choose(e, overloads)
        if decl is None:
            return ANY
        kind = "extern" if decl.body is None else "function"
        if kind == "function" and self.c.context == "package":
            return self._fail(e, f"{decl.name} cannot be called here")
        return self._apply(e, CallInfo(kind, decl.name, self.signature(decl), [], decl))

    def _choose(
        self, e: ast.Call, overloads: Sequence[ast.FunctionDecl]
    ) -> ast.FunctionDecl | None:
        """The overload whose parameters take these arguments by number and name."""
        fitting = [d for d in overloads if _takes(self.signature(d).params, e.args)]
        exact = [d for d in fitting if len(d.params) == len(e.args)]
        if exact or fitting:
            return (exact or fitting)[0]
        if len(overloads) == 1:
            return overloads[0]  # the arguments' errors are reported one by one
        forms = "; ".join(str(self.signature(d)) for d in overloads)
        self._fail(e, f"no form of {overloads[0].name} takes these arguments", f"it has: {forms}")
        return None

    def _action(self, e: ast.Call, decl: ast.ActionDecl) -> Type:
        if self.c.context not in ("control", "action"):
            return self._fail(e, f"action {decl.name} cannot be called in a {self.c.context}")
        return self._apply(e, CallInfo("action", decl.name, self.signature(decl), [], decl))

    # -- members -------------------------------------------------------------------------------

    def _member(self, e: ast.Call, callee: ast.Member) -> Type:
        base = self.c.exprs.check(callee.base)
        name = callee.name
        match base:
            case ExternType():
                return self._method(e, callee.base, base, name)
            case TableType(decl=decl) if name == "apply":
                return self._table_apply(e, callee.base, decl)
            case BlockType() if name == "apply":
                return self._block_apply(e, callee.base, base, direct=False)
            case TypeName(denoted=BlockType() as block) if name == "apply":
                return self._block_apply(e, callee.base, block, direct=True)
            case TypeName(denoted=denoted) if name in _SIZES:
                return self._size(e, denoted, name)
            case Fields() | Stack() | Bits():
                return self._builtin(e, callee.base, base, name)
        if base == ANY:
            return self._discard(e)
        if name in _SIZES:
            return self._size(e, base, name)
        return self._fail(e, f"{describe(callee.base)} has no method {name}")

    def _discard(self, e: ast.Call) -> Type:
        for a in e.args:
            if a.expr is not None:
                self.c.exprs.check(a.expr)
        return ANY

    def _method(self, e: ast.Call, base: ast.Expr, t: ExternType, name: str) -> Type:
        methods = [m for m in t.decl.methods if m.name == name and m.result is not None]
        if not methods:
            known = sorted({m.name for m in t.decl.methods if m.result is not None})
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            return self._fail(e, f"extern {t.name} has no method {name}", hint)
        decl = self._choose(e, methods)
        if decl is None:
            return ANY
        outer = dict(zip(self.c.types.variables(t.decl), t.args, strict=False))
        signature = self.method_signature(t, decl)
        assert isinstance(signature, Signature)
        signature = replace(
            signature,
            params=substitute_params(signature.params, outer),
            result=substitute(signature.result, outer),
        )
        return self._apply(e, CallInfo("method", name, signature, [], decl, base))

    def method_signature(self, t: ExternType, decl: ast.FunctionDecl) -> Signature:
        """Of an extern's method, the extern's own type parameters in scope."""
        with self.c.scopes.nested():
            self.c.types.declare_variables(t.decl)
            return self.signature(decl)

    def _table_apply(self, e: ast.Call, base: ast.Expr, decl: ast.TableDecl) -> Type:
        if self.c.context != "control":
            where = f"in {_article(self.c.context)}"
            return self._fail(e, f"table {decl.name} cannot be applied {where}")
        if e.args:
            return self._fail(e, "apply() of a table takes no arguments")
        signature = Signature("apply", (), (), ApplyResult(decl))
        e.info = CallInfo("table", decl.name, signature, [], decl, base)
        return signature.result

    def _block_apply(self, e: ast.Call, base: ast.Expr, block: BlockType, direct: bool) -> Type:
        if self.c.context != block.kind:
            where = f"in {_article(self.c.context)}"
            return self._fail(e, f"{block} cannot be applied {where}")
        decl = block.decl
        if not isinstance(decl, ast.ParserDecl | ast.ControlDecl):
            return self._fail(e, f"{block} has no body to apply")
        if direct and decl.ctor_params:
            return self._fail(e, f"{block.name} has constructor parameters: instantiate it first")
        signature = Signature(f"{block.name}.apply", (), block.params, VOID)
        info = CallInfo("block", block.name, signature, [], decl, base)
        info.constructed = block if direct else None
        return self._apply(e, info)

    def _builtin(self, e: ast.Call, base: ast.Expr, t: Type, name: str) -> Type:
        if name in _SIZES:
            return self._size(e, t, name)
        params: tuple[ParamType, ...] = ()
        match t, name:
            case ((Header() | Union()), "isValid"):
                result: Type = BOOL
            case Header(), ("setValid" | "setInvalid"):
                result = VOID
                self.c.exprs.require_lvalue(base, "the header")
            case Stack(), ("push_front" | "pop_front"):
                result, params = VOID, (ParamType("count", "", INTEGER),)
                self.c.exprs.require_lvalue(base, "the stack")
            case _:
                return self._fail(e, f"{t} has no method {name}")
        info = CallInfo("builtin", name, Signature(name, (), params, result), [], None, base)
        checked = self._apply(e, info)
        if params and info.args and info.args[0] is not None:
            count = info.args[0].const
            if not isinstance(count, int) or count < 0:
                self.c.error(e, f"{name} takes a constant count, zero or more")
        return checked

    def _size(self, e: ast.Call, t: Type, name: str) -> Type:
        if e.args:
            return self._fail(e, f"{name} takes no arguments")
        bits = size_bits(t, name.startswith("max"))
        if bits is None:
            return self._fail(e, f"{t} has no {name}")
        e.const = (bits + 7) // 8 if name.endswith("Bytes") else bits
        return INTEGER

    # -- constructors --------------------------------------------------------------------------

    def _constructor(self, e: ast.Call, t: Type) -> Type:
        if self.c.context != "package":
            return self._fail(e, f"{t} can only be constructed in a declaration: {t}(...) name;")
        return self.construct(e, t)

    def construct(self, e: ast.Call, t: Type) -> Type:
        """A constructor call of extern, parser, control or package type t."""
        match t:
            case ExternType():
                return self._construct_extern(e, t)
            case BlockType(kind="package"):
                return self._construct_package(e, t)
            case BlockType(decl=ast.ParserDecl() | ast.ControlDecl() as decl):
                params = tuple(self.c.types.param(p) for p in decl.ctor_params)
                signature = Signature(t.name, (), params, t)
                return self._apply(e, CallInfo("constructor", t.name, signature, [], decl))
        if t == ANY:
            return self._discard(e)
        return self._fail(e, f"{t} has no constructor")

    def _construct_extern(self, e: ast.Call, t: ExternType) -> Type:
        constructors = [m for m in t.decl.methods if m.result is None]
        if not constructors:
            if e.args:
                return self._fail(e, f"extern {t.name} has no constructor with arguments")
            constructors = [ast.FunctionDecl(t.name, None, [], [], span=t.decl.span)]
        decl = self._choose(e, constructors)
        if decl is None:
            return ANY
        own = self.method_signature(t, decl)
        variables = self.c.types.variables(t.decl)
        given = dict(zip(variables, t.args, strict=True))
        signature = Signature(
            t.name,
            tuple(v for v in variables if given[v] == v),
            substitute_params(own.params, given),
            t,
        )
        return self._apply(e, CallInfo("constructor", t.name, signature, [], t.decl))

    def _construct_package(self, e: ast.Call, t: BlockType) -> Type:
        assert t.decl is not None
        variables = tuple(v for v in self.c.types.variables(t.decl) if v in free_variables(t))
        signature = Signature(t.name, variables, t.params, t)
        return self._apply(e, CallInfo("constructor", t.name, signature, [], t.decl))

    # -- arguments -----------------------------------------------------------------------------

    def _apply(self, e: ast.Call, info: CallInfo) -> Type:
        """Matches arguments to parameters, infers type arguments, converts; fills e.info."""
        signature = info.signature
        args = self._match(e, signature)
        if args is None:
            return self._fail_quietly(e)
        inference = Inference(signature.type_params)
        if not self._explicit(e, signature, inference):
            return ANY
        self._infer(args, signature, inference, info)
        info.signature = replace(
            signature,
            params=substitute_params(signature.params, inference.bound),
            result=substitute(signature.result, inference.bound),
        )
        info.type_args = [substitute(v, inference.bound) for v in signature.type_params]
        info.args = args
        for arg, param in zip(args, info.signature.params, strict=True):
            if arg is not None:
                self._convert(arg, param, info)
        e.info = info
        return info.signature.result

    def _fail_quietly(self, e: ast.Call) -> Type:
        for a in e.args:
            if a.expr is not None and a.expr.type is None:
                self.c.exprs.check(a.expr)
        return ANY

    def _match(self, e: ast.Call, signature: Signature) -> list[ast.Expr | None] | None:
        """The argument for each parameter, by position or by name."""
        return match_arguments(self.c, e, e.args, signature)

    def _explicit(self, e: ast.Call, signature: Signature, inference: Inference) -> bool:
        """Binds explicit type arguments; on a constructor they were applied before."""
        if not e.type_args or not signature.type_params:
            return True
        given = [self.c.types.resolve(a) for a in e.type_args]
        if len(given) != len(signature.type_params):
            self._fail(
                e,
                f"{signature.name} has {len(signature.type_params)} type parameters, "
                f"{len(given)} given",
            )
            return False
        for var, t in zip(signature.type_params, given, strict=True):
            if not (isinstance(t, TypeVar) and t.name == "_"):
                inference.bound[var] = t
        return True

    def _infer(
        self,
        args: Sequence[ast.Expr | None],
        signature: Signature,
        inference: Inference,
        info: CallInfo,
    ) -> None:
        for arg, param in zip(args, signature.params, strict=True):
            if arg is None:
                continue
            actual = self.c.exprs.check(arg)
            formal = substitute(param.type, inference.bound)
            if free_variables(formal) & inference.variables:
                if isinstance(actual, ListLiteral) and not free_variables(formal) - {formal}:
                    actual = settle(self.c, arg)
                if not inference.unify(formal, actual):
                    self.c.error(
                        arg, f"argument {param.name} of {info.name} must be {formal}, not {actual}"
                    )
                    arg.type = ANY

    def _convert(self, arg: ast.Expr, param: ParamType, info: CallInfo) -> None:
        what = f"argument {param.name} of {info.name}"
        if arg.type == ANY:
            return
        if param.direction in ("out", "inout"):
            if arg.type != param.type and param.type != ANY and not free_variables(param.type):
                self.c.error(arg, f"{what} must be of type {param.type}, not {arg.type}")
            self.c.exprs.require_lvalue(arg, what)
            return
        if isinstance(arg.type, TypeName):
            self.c.error(arg, f"{what} must be a value, not a {arg.type}")
            return
        if isinstance(param.type, BlockType | ExternType) or isinstance(
            arg.type, BlockType | ExternType
        ):
            self._convert_object(arg, param, what)
            return
        if free_variables(param.type):
            if isinstance(arg.type, ListLiteral | StructLiteral | DefaultLiteral):
                settle(self.c, arg)
            return
        if isinstance(param.type, Integer) and arg.const is not None:
            return
        self.c.exprs.coerce(arg, param.type, what)
        if info.kind == "constructor" and not self.c.compile_time(arg):
            self.c.error(arg, f"{what} must be known at compile time")

    def _convert_object(self, arg: ast.Expr, param: ParamType, what: str) -> None:
        assert arg.type is not None
        inference = Inference(free_variables(param.type))
        if not inference.unify(param.type, arg.type):
            self.c.error(arg, f"{what} must be {param.type}, not {arg.type}", _differs(param, arg))


def _differs(param: ParamType, arg: ast.Expr) -> str:
    """Where two blocks' parameters disagree."""
    if not (isinstance(param.type, BlockType) and isinstance(arg.type, BlockType)):
        return ""
    wanted, given = param.type.params, arg.type.params
    if len(wanted) != len(given):
        return f"it has {len(given)} parameters, {len(wanted)} are needed"
    for w, g in zip(wanted, given, strict=True):
        if w.direction != g.direction or not Inference(free_variables(w.type)).unify(
            w.type, g.type
        ):
            return f"parameter {g.name} is {g.direction} {g.type}, needed is {w.direction} {w.type}"
    return "its parameters' types do not fit the other arguments'"


def match_arguments(
    c: Checker, place: ast.Node, given: Sequence[ast.Argument], signature: Signature
) -> list[ast.Expr | None] | None:
    """The argument for each parameter, by position or by name; None after an error."""
    params = signature.params
    out: list[ast.Expr | None] = [None] * len(params)
    filled = [False] * len(params)
    index = {p.name: i for i, p in enumerate(params)}
    if any(a.name for a in given) and not all(a.name for a in given):
        c.error(place, "either all arguments are named or none")
        return None
    if len(given) > len(params):
        c.error(place, f"{signature.name} takes {len(params)} arguments, {len(given)} given")
        return None
    for i, a in enumerate(given):
        at = i if a.name is None else index.get(a.name)
        if at is None:
            hint = did_you_mean(a.name or "", index)
            c.error(a, f"{signature.name} has no parameter {a.name}", hint)
            return None
        if filled[at]:
            c.error(a, f"argument {params[at].name} is given twice")
            return None
        if a.expr is None and params[at].direction != "out" and not params[at].optional:
            c.error(a, f"_ can only stand for an out parameter, {params[at].name} is not")
            return None
        filled[at] = True
        out[at] = a.expr if not isinstance(a.expr, ast.Dots) else params[at].default
    for i, p in enumerate(params):
        if not filled[i]:
            if p.default is None and not p.optional:
                c.error(place, f"{signature.name} needs an argument for {p.name}", f"{signature}")
                return None
            out[i] = p.default
    return out


def _takes(params: Sequence[ParamType], args: Sequence[ast.Argument]) -> bool:
    names = {p.name for p in params}
    if len(args) > len(params) or any(a.name is not None and a.name not in names for a in args):
        return False
    given = {a.name or params[i].name for i, a in enumerate(args)}
    return all(p.name in given or p.default is not None or p.optional for p in params)


def _article(context: str) -> str:
    return f"an {context}" if context[0] in "aeiou" else f"a {context}"


def size_bits(t: Type, largest: bool) -> int | None:
    """minSizeInBits or maxSizeInBits of a type: a varbit counts nothing, or its maximum."""
    match t:
        case Varbit(width=width):
            return width if largest else 0
        case Union(fields=fields):
            sizes = [size_bits(f.type, largest) for f in fields]
            known = [s for s in sizes if s is not None]
            if len(known) != len(sizes):
                return None
            return max(known, default=0) if largest else min(known, default=0)
        case Stack(element=element, size=size):
            one = size_bits(element, largest)
            return None if one is None else one * size
        case Fields(fields=fields):
            sizes = [size_bits(f.type, largest) for f in fields]
            return None if None in sizes else sum(s for s in sizes if s is not None)
    return bit_width(t)
