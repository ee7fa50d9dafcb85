"""Match the arguments of a call to parameters, infer type arguments, convert implicitly.

Type inference: bind type variables so that a formal type becomes the actual one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import (
    ANY,
    AnyType,
    BlockType,
    DefaultLiteral,
    ExternType,
    ListLiteral,
    ParamType,
    Signature,
    StructLiteral,
    Substitution,
    TypeName,
    TypeVar,
    compile_time_only,
    free_variables,
    innermost,
    substitute,
    substitute_params,
)
from gradplane.switch.check.context import Context, require_lvalue
from gradplane.switch.check.conversions import settle
from gradplane.switch.check.expression_text import literal
from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir.types import (
    INTEGER,
    MATCH_KIND,
    STRING,
    Array,
    Fields,
    Integer,
    List,
    Tuple,
    Type,
    Void,
)
from gradplane.switch.syntax import ast


class Inference:
    """Bindings for a set of type variables, extended by `unify`."""

    def __init__(self, variables: Iterable[TypeVar]) -> None:
        self.variables = set(variables)
        self.bound: dict[TypeVar, Type] = {}

    @property
    def widths_known(self) -> Substitution:
        """The final bindings: a variable bound to int may still get a width."""
        return {v: t for v, t in self.bound.items() if not isinstance(t, Integer)}

    def unify(self, formal: Type, actual: Type) -> bool:
        """Return whether `actual` matches `formal`; bind variables in doing so.

        Implicit conversions (an int constant, a list for a struct) are left to the caller and match
        here.
        """
        formal = substitute(formal, self.widths_known)
        if any(isinstance(t, TypeVar) and t.name == "_" for t in (formal, actual)):
            return True  # `_` matches every type
        if isinstance(formal, TypeVar) and formal in self.variables:
            return self._bind(formal, actual)
        if isinstance(actual, TypeVar) and actual in self.variables:
            return self._bind(actual, formal)
        if isinstance(actual, ListLiteral | StructLiteral):
            return self._literal(formal, actual)
        if isinstance(actual, AnyType | Integer | DefaultLiteral):
            return True
        match formal, actual:
            case Array(element=f, size=n), Array(element=a, size=m):
                return n == m and self.unify(f, a)
            case Tuple(elements=fs), Tuple(elements=as_):
                return len(fs) == len(as_) and all(map(self.unify, fs, as_))
            case List(element=f), List(element=a):
                return self.unify(f, a)
            case ExternType(args=fs), ExternType(args=as_):
                return formal.decl is actual.decl and all(map(self.unify, fs, as_))
            case Fields(args=fs), Fields(args=as_) if fs or as_:
                return formal.name == actual.name and all(map(self.unify, fs, as_))
            case BlockType(), BlockType():
                return formal.kind == actual.kind and self._params(formal.params, actual.params)
        return formal == actual or isinstance(formal, AnyType)

    def _literal(self, formal: Type, actual: ListLiteral | StructLiteral) -> bool:
        """Match the members that both have; what is left over the caller reports."""
        members: Iterable[Type] = ()
        if isinstance(formal, Fields):
            members = (f.type for f in formal.fields)
        elif isinstance(formal, Tuple):
            members = formal.elements
        elif isinstance(formal, Array):
            members = [formal.element] * formal.size
        if isinstance(actual, ListLiteral):
            pairs = list(zip(members, actual.elements, strict=False))
        else:
            given = dict(actual.fields)
            fields = formal.fields if isinstance(formal, Fields) else ()
            pairs = [(f.type, given[f.name]) for f in fields if f.name in given]
        return all(self.unify(f, a) for f, a in pairs)

    def same(self, formal: Signature, actual: Signature) -> bool:
        """Return whether a function has the required parameters and result."""
        return self._params(formal.params, actual.params) and self.unify(
            formal.result, actual.result
        )

    def _params(self, formal: tuple[ParamType, ...], actual: tuple[ParamType, ...]) -> bool:
        """Match parameters; the architecture may omit optional ones and defaults at the end."""
        return (
            len(formal) >= len(actual)
            and all(f.optional or f.default is not None for f in formal[len(actual) :])
            and all(
                f.direction == a.direction and self.unify(f.type, a.type)
                for f, a in zip(formal, actual, strict=False)
            )
        )

    def _bind(self, var: TypeVar, actual: Type) -> bool:
        if actual == var or isinstance(actual, DefaultLiteral | StructLiteral):
            return True
        known = self.bound.get(var)
        if known is None or isinstance(known, Integer):
            self.bound[var] = settled(actual)
            return True
        return isinstance(actual, Integer | ListLiteral | StructLiteral) or known == actual


def settled(t: Type) -> Type:
    """Return the type of a literal that nothing else determines: a list is a tuple."""
    if isinstance(t, ListLiteral):
        return Tuple(tuple(settled(e) for e in t.elements))
    return t


_UNTYPED = (ListLiteral, StructLiteral, DefaultLiteral)


class ArgumentChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def _fail(self, e: ast.Call, message: str, hint: str = "") -> Type:
        self.c.error(e, message, hint)
        return self._unchecked(e)

    def _unchecked(self, e: ast.Call) -> Type:
        """Check the arguments of an erroneous call, so that their own errors are reported."""
        for a in e.args:
            if a.expr is not None and a.expr.type is None:
                self.c.exprs.check(a.expr)
        return ANY

    def _apply(self, e: ast.Call, info: CallInfo) -> Type:
        """Match arguments to parameters, infer type arguments and convert; fill e.info."""
        signature = info.signature
        self._deprecated(e, info)
        args = self._match(e, signature)
        if args is None:
            return self._unchecked(e)
        inference = Inference(signature.type_params)
        if not self._explicit(e, signature, inference, info.kind == "constructor"):
            return ANY
        self._infer(args, signature, inference, info)
        if info.kind == "function" and INTEGER in inference.bound.values():
            return self._fail(e, "an argument needs a width here", "write 8w1 instead of 1")
        if info.kind != "constructor" and not self._all_bound(e, signature, inference, args):
            return ANY
        for bound in inference.bound.values():
            if isinstance(bound, BlockType):
                return self._fail(e, f"{bound} cannot be a type argument of {signature.name}")
        info.signature = replace(
            signature,
            params=substitute_params(signature.params, inference.bound),
            result=substitute(signature.result, inference.bound),
        )
        info.type_args = [substitute(v, inference.bound) for v in signature.type_params]
        info.args, info.order = args, _order(e, signature)
        differs = False  # a mismatched block makes others mismatch that would match by themselves
        for arg, param, free in zip(args, info.signature.params, signature.params, strict=True):
            if arg is None or differs and _fits_alone(free.type, arg):
                continue
            self._convert(arg, param, info)
            differs |= isinstance(param.type, BlockType) and arg.type == ANY
        e.info = info
        return info.signature.result

    def _deprecated(self, e: ast.Call, info: CallInfo) -> None:
        for a in info.decl.annotations if info.decl is not None else ():
            text = literal(a.exprs[0]) if a.name == "deprecated" and a.exprs else None
            if isinstance(text, str):
                self.c.warn(e, "deprecated", f"{info.name} is deprecated", text)

    def _match(self, e: ast.Call, signature: Signature) -> list[ast.Expr | None] | None:
        """Return the argument for each parameter, by position or by name."""
        return match_arguments(self.c, e, e.args, signature)

    def _explicit(
        self, e: ast.Call, signature: Signature, inference: Inference, constructor: bool
    ) -> bool:
        """Bind explicit type arguments; those of a constructor have been applied before."""
        applied = constructor and not signature.type_params
        if not e.type_args or applied:
            return True
        given = [self.c.types.resolve(a) for a in e.type_args]
        if len(given) != len(signature.type_params):
            self._fail(
                e,
                f"{signature.name} has {len(signature.type_params) or 'no'} type parameters, "
                f"{len(given)} given",
            )
            return False
        for var, t in zip(signature.type_params, given, strict=True):
            if isinstance(innermost(t), Void | BlockType | ExternType):
                self._fail(e, f"{t} cannot be a type argument of {signature.name}")
                return False
            if t == INTEGER and not constructor:
                self._fail(e, f"type {var} of {signature.name} needs a width", "as in bit<32>")
                return False
            if not (isinstance(t, TypeVar) and t.name == "_"):
                inference.bound[var] = t
        return True

    def _all_bound(
        self,
        e: ast.Call,
        signature: Signature,
        inference: Inference,
        args: Sequence[ast.Expr | None],
    ) -> bool:
        unknown = [v.name for v in signature.type_params if v not in inference.bound]
        if not unknown:
            return True
        before = len(self.c.reporter.errors)
        for a in args:
            if a is not None and isinstance(a.type, _UNTYPED):
                settle(self.c, a)
        if len(self.c.reporter.errors) == before:
            self.c.error(
                e,
                f"type {unknown[0]} of {signature.name} cannot be inferred",
                f"write {signature.name}<...>(...)",
            )
        return False

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
            formal = substitute(param.type, inference.widths_known)
            if free_variables(formal) & inference.variables:
                if isinstance(actual, ListLiteral) and not free_variables(formal) - {formal}:
                    actual = settle(self.c, arg)
                if not inference.unify(formal, actual):
                    what = f"argument {param.name} of {info.name} must be {formal}, not {actual}"
                    self.c.error(arg, what, _differs(param, arg))
                    arg.type = ANY

    def _convert(self, arg: ast.Expr, param: ParamType, info: CallInfo) -> None:
        what = f"argument {param.name} of {info.name}"
        if arg.type == ANY:
            return
        if param.direction in ("out", "inout"):
            if arg.type != param.type and param.type != ANY and not free_variables(param.type):
                self.c.error(arg, f"{what} must be of type {param.type}, not {arg.type}")
            require_lvalue(self.c, arg, what)
            return
        objects = (BlockType, ExternType)
        if isinstance(innermost(param.type), objects) or isinstance(
            innermost(arg.type or ANY), objects
        ):
            self._convert_object(arg, param, what)
            return
        self.c.exprs.require_value(arg)
        if arg.type == ANY:
            return
        if arg.type == STRING and param.direction:
            self.c.error(arg, f"{what} cannot be a string: its parameter has a direction")
            return
        if compile_time_only(arg.type) and not _takes_constants(info, arg):
            self.c.error(arg, f"{what} cannot be {arg.type}: only constructors take one")
            return
        if free_variables(param.type):
            if isinstance(arg.type, _UNTYPED):
                settle(self.c, arg)
            return
        if isinstance(param.type, Integer) and arg.type == INTEGER and arg.const is not None:
            return
        fits = self.c.exprs.coerce(arg, param.type, what)
        known = param.direction or info.kind == "action" or _given(arg) or self.c.compile_time(arg)
        if fits and arg.type != ANY and not known:
            self.c.error(arg, f"{what} must be known at compile time: it has no direction")

    def _convert_object(self, arg: ast.Expr, param: ParamType, what: str) -> None:
        assert arg.type is not None
        inference = Inference(free_variables(param.type))
        if param.direction:
            self.c.error(arg, f"{what} must be a value, not {arg.type}")
        elif not _object_fits(param.type, arg.type) or not inference.unify(param.type, arg.type):
            self.c.error(arg, f"{what} must be {param.type}, not {arg.type}", _differs(param, arg))
            arg.type = ANY


def _order(e: ast.Call, signature: Signature) -> list[int]:
    """Return the parameters in the order of their arguments as written, defaults last."""
    names = [p.name for p in signature.params]
    given = [i if a.name is None else names.index(a.name) for i, a in enumerate(e.args)]
    return given + [i for i in range(len(names)) if i not in given]


def _given(arg: ast.Expr) -> bool:
    """Return whether an argument is itself a parameter without a direction, as an action's data."""
    return isinstance(arg, ast.Name) and isinstance(arg.decl, ast.Param) and not arg.decl.direction


def _takes_constants(info: CallInfo, arg: ast.Expr) -> bool:
    """Return whether a call can be given a value that exists at compile time only: a constructor,
    and, of a match_kind, what is not an extern's."""
    of_kind = info.kind in ("function", "action", "block") and arg.type == MATCH_KIND
    return info.kind == "constructor" or of_kind


def _object_fits(wanted: Type, given: Type) -> bool:
    """Return whether both are objects, or the wanted type is a type parameter."""
    return isinstance(innermost(given), BlockType | ExternType) or isinstance(wanted, TypeVar)


def _fits_alone(block: Type, arg: ast.Expr) -> bool:
    """Return whether a block has the wanted type, whatever the other arguments' types are."""
    assert arg.type is not None
    return isinstance(block, BlockType) and Inference(free_variables(block)).unify(block, arg.type)


def _differs(param: ParamType, arg: ast.Expr) -> str:
    """Return a hint that says where the parameters of two blocks disagree."""
    if isinstance(arg.type, TypeName) and isinstance(arg.type.denoted, BlockType):
        return f"instantiate it: {arg.type.denoted.name}()"
    if not (isinstance(param.type, BlockType) and isinstance(arg.type, BlockType)):
        return ""
    if param.type.kind != arg.type.kind:
        return ""
    wanted, given = param.type.params, arg.type.params
    if len(wanted) != len(given):
        return f"it has {len(given)} parameters, {len(wanted)} are needed"
    for w, g in zip(wanted, given, strict=True):
        if w.direction != g.direction or not Inference(free_variables(w.type)).unify(
            w.type, g.type
        ):
            own, needed = (f"{p.direction} {p.type}".lstrip() for p in (g, w))
            return f"parameter {g.name} is {own}, not {needed}"
    return "the types of its parameters do not match those of the other arguments"


def match_arguments(
    c: Context, place: ast.Node, given: Sequence[ast.Argument], signature: Signature
) -> list[ast.Expr | None] | None:
    """Return the argument for each parameter, by position or by name; None after an error."""
    params = signature.params
    if len(given) == len(params) and all(a.name is None and a.expr is not None for a in given):
        return [a.expr for a in given]
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
            c.error(a, f"_ is only allowed for an out parameter; {params[at].name} is none")
            return None
        filled[at] = True
        out[at] = a.expr
    for i, p in enumerate(params):
        if not filled[i]:
            if p.default is None and not p.optional:
                c.error(place, f"{signature.name} needs an argument for {p.name}", f"{signature}")
                return None
            out[i] = p.default
    return out


def takes(params: Sequence[ParamType], args: Sequence[ast.Argument]) -> bool:
    """Return whether the arguments match by number and name, which decides between overloads."""
    names = {p.name for p in params}
    if len(args) > len(params) or any(a.name is not None and a.name not in names for a in args):
        return False
    given = {a.name or params[i].name for i, a in enumerate(args)}
    return all(p.name in given or p.default is not None or p.optional for p in params)
