"""Check calls: overloads, methods, table and block application, constructors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.arguments import ArgumentChecker, Inference, takes
from gradplane.switch.check.checker_types import (
    ANY,
    ApplyResult,
    BlockType,
    ExternType,
    ParamType,
    Signature,
    TableType,
    TypeName,
    TypeVar,
    emittable,
    free_variables,
    size_bits,
    substitute,
    substitute_params,
    varbits,
)
from gradplane.switch.check.context import TypeParam, require_lvalue
from gradplane.switch.check.expression_text import article, describe
from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    VOID,
    Array,
    Bits,
    Fields,
    Header,
    Integer,
    Stack,
    Type,
    Union,
    bit_width,
)
from gradplane.switch.syntax import ast

_SIZES = {"minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"}


_PARSING = ("parser", "function")  # a function gets the packet from a parser


class CallChecker(ArgumentChecker):
    # -- signatures ----------------------------------------------------------------------------

    def signature(self, decl: ast.FunctionDecl | ast.ActionDecl) -> Signature:
        """Return the signature of a function, method or action, type parameters as variables."""
        if decl.signature is None:
            decl.signature = self._make_signature(decl)
        found: Signature = decl.signature
        return found

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
        if kind == "extern" and decl.name == "verify" and self.c.context != "parser":
            return self._fail(e, f"verify cannot be used in {article(self.c.context)}")
        if kind == "function" and self.c.context == "package":
            return self._fail(e, f"{decl.name} cannot be called here")
        result = self._apply(e, CallInfo(kind, decl.name, self.signature(decl), [], decl))
        if kind == "extern" and decl.name == "static_assert" and e.info is not None:
            self._static_assert(e)
        return result

    def _static_assert(self, e: ast.Call) -> None:
        """Evaluate a constant assertion; lowering does so for constructor parameters."""
        condition, *message = e.info.args
        if condition.const is None:
            return
        e.const = True
        if not condition.const:
            text = message[0].const if message and message[0] is not None else ""
            self.c.error(e, f"static_assert failed: {text}".rstrip(": "))

    def _choose(
        self, e: ast.Call, overloads: Sequence[ast.FunctionDecl]
    ) -> ast.FunctionDecl | None:
        """Return the overload whose parameters match the arguments by number and name and, where
        optional parameters leave several, by type."""
        fitting = [d for d in overloads if takes(self.signature(d).params, e.args)]
        if len(fitting) > 1 and any(p.optional for d in fitting for p in self.signature(d).params):
            fitting = [d for d in fitting if self._typed_alike(e, d)] or fitting
        exact = [d for d in fitting if len(d.params) == len(e.args)]
        best = exact or fitting
        if len(best) == 1:
            return best[0]
        if len(overloads) == 1:
            return overloads[0]  # the errors of its arguments are reported one by one
        forms = "; ".join(str(self.signature(d)) for d in best or overloads)
        if best:
            what = f"this call of {best[0].name} is ambiguous"
            self._fail(e, what, f"name the arguments: {forms}")
            return None
        self._fail(e, f"no form of {overloads[0].name} takes these arguments", f"it has: {forms}")
        return None

    def _typed_alike(self, e: ast.Call, decl: ast.FunctionDecl) -> bool:
        """Return whether no argument has a type that its parameter cannot have."""
        params = self.signature(decl).params
        places = {p.name: p for p in params}
        for at, a in enumerate(e.args):
            param = params[at] if a.name is None else places[a.name]
            if a.expr is None or free_variables(param.type):
                continue
            if not Inference(()).unify(param.type, self.c.exprs.check(a.expr)):
                return False
        return True

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
            case Fields() | Array() | Bits():
                return self._builtin(e, callee.base, base, name)
        if base == ANY:
            return self._unchecked(e)
        if name in _SIZES:
            return self._size(e, base, name)
        return self._fail(e, f"{describe(callee.base)} has no method {name}")

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
        info = CallInfo("method", name, signature, [], decl, base)
        result = self._apply(e, info)
        if t.name == "packet_in":
            self._reads_packet(e, name)
        if t.name in ("packet_in", "packet_out") and info.type_args:
            self._packet_type(e, name, info.type_args[0])
        return result

    def _reads_packet(self, e: ast.Call, name: str) -> None:
        """Report methods outside a parser that can end one (13.8)."""
        if name in ("extract", "lookahead", "advance") and self.c.context not in _PARSING:
            self.c.error(e, f"{name} cannot be used in {article(self.c.context)}")

    def _packet_type(self, e: ast.Call, name: str, t: Type) -> None:
        """Check the type that is extracted, looked ahead at or emitted."""
        if t == ANY or isinstance(t, TypeVar):
            return
        if name == "extract":
            self._extracted(e, t)
        elif name == "lookahead" and bit_width(t) is None:
            self.c.error(e, f"lookahead needs a type of fixed width, not {t}")
        elif name == "emit" and not emittable(t):
            self.c.error(e, f"{t} cannot be emitted: it is not made of headers")

    def _extracted(self, e: ast.Call, t: Type) -> None:
        sized = len(e.args) == 2
        if not isinstance(t, Header):
            self.c.error(e, f"only headers can be extracted, not {t}")
        elif sized and varbits(t) != 1:
            self.c.error(
                e, f"extract with a size needs a header with one varbit field, {t} has {varbits(t)}"
            )
        elif not sized and varbits(t):
            self.c.error(
                e,
                f"{t} has a varbit field: its size is needed",
                "extract(header, size in bits of the varbit field)",
            )

    def method_signature(self, t: ExternType, decl: ast.FunctionDecl) -> Signature:
        """Return the signature of an extern's method, the extern's type parameters in scope."""
        with self.c.scopes.nested():
            self.c.types.declare_variables(t.decl)
            return self.signature(decl)

    def _table_apply(self, e: ast.Call, base: ast.Expr, decl: ast.TableDecl) -> Type:
        if self.c.context not in ("control", "key"):
            where = f"in {article(self.c.context)}"
            return self._fail(e, f"table {decl.name} cannot be applied {where}")
        if e.args:
            return self._fail(e, "apply() of a table takes no arguments")
        signature = Signature("apply", (), (), ApplyResult(decl))
        e.info = CallInfo("table", decl.name, signature, [], decl, base)
        return signature.result

    def _block_apply(self, e: ast.Call, base: ast.Expr, block: BlockType, direct: bool) -> Type:
        if self.c.context != block.kind:
            where = f"in {article(self.c.context)}"
            return self._fail(e, f"{block} cannot be applied {where}")
        decl = block.decl
        has_body = isinstance(decl, ast.ParserDecl | ast.ControlDecl)
        if direct and not has_body:
            return self._fail(e, f"{block} has no body to apply")
        if direct and getattr(decl, "ctor_params", []):
            return self._fail(e, f"{block.name} has constructor parameters: instantiate it first")
        signature = Signature(f"{block.name}.apply", (), block.params, VOID)
        info = CallInfo("block", block.name, signature, [], decl, base)
        info.constructed = block if direct else None
        return self._apply(e, info)

    def _builtin(self, e: ast.Call, base: ast.Expr, t: Type, name: str) -> Type:
        if name in _SIZES:
            return self._size(e, t, name)
        match t, name:
            case ((Header() | Union()), "isValid"):
                result: Type = BOOL
            case Header(), ("setValid" | "setInvalid"):
                result = VOID
                require_lvalue(self.c, base, "the header")
            case Stack(), ("push_front" | "pop_front"):
                return self._push_or_pop(e, base, name)
            case _:
                return self._fail(e, f"{t} has no method {name}")
        info = CallInfo("builtin", name, Signature(name, (), (), result), [], None, base)
        return self._apply(e, info)

    def _push_or_pop(self, e: ast.Call, base: ast.Expr, name: str) -> Type:
        require_lvalue(self.c, base, "the stack")
        signature = Signature(name, (), (ParamType("count", "", INTEGER),), VOID)
        args = self._match(e, signature)
        if args is None or args[0] is None:
            return self._unchecked(e)
        t, count = self.c.exprs.value(args[0]), args[0].const
        number = isinstance(t, Integer | Bits) and isinstance(count, int)
        if t != ANY and (not number or count < 0):
            self.c.error(args[0], f"{name} takes a constant count, zero or more")
        e.info = CallInfo("builtin", name, signature, args, None, base)
        return VOID

    def _size(self, e: ast.Call, t: Type, name: str) -> Type:
        if e.args:
            return self._fail(e, f"{name} takes no arguments")
        bits = size_bits(t, name.startswith("max"))
        if bits is None:
            return self._fail(e, f"{t} has no {name}")
        e.const = (bits + 7) // 8 if name.endswith("Bytes") else bits
        e.info = CallInfo("builtin", name, Signature(name, (), (), INTEGER), [])
        return INTEGER

    # -- constructors --------------------------------------------------------------------------

    def _constructor(self, e: ast.Call, t: Type) -> Type:
        if self.c.context != "package":
            return self._fail(e, f"{t} can only be constructed in a declaration: {t}(...) name;")
        return self.construct(e, t)

    def construct(self, e: ast.Call, t: Type) -> Type:
        """Check a constructor call of extern, parser, control or package type t."""
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
            return self._unchecked(e)
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
