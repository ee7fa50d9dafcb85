"""Check instances: where they are allowed, and the abstract methods they implement (11.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.checker_types import (
    AnyType,
    BlockType,
    ExternType,
    Signature,
    TypeVar,
    substitute,
)
from gradplane.switch.check.expression_text import article
from gradplane.switch.check.unify import Inference
from gradplane.switch.ir.types import INTEGER, Type
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker


class InstanceChecker:
    def __init__(self, checker: Checker) -> None:
        self.c = checker

    def check(self, decl: ast.Instantiation) -> None:
        t = self.c.types.resolve(decl.ref)
        call = ast.Call(ast.TypeExpr(decl.ref, span=decl.ref.span), [], decl.args, span=decl.span)
        context, self.c.context = self.c.context, "package"
        self._allowed_here(decl, t, context)
        decl.type = self.c.calls.construct(call, t)
        self.c.context = context
        decl.info = call.info
        if isinstance(decl.type, ExternType):
            self._type_arguments(decl, decl.type)
        if decl.body is not None and not isinstance(decl.type, ExternType | AnyType):
            self.c.error(decl, f"{decl.name} takes no body: only an extern has abstract methods")
        elif decl.body is not None:
            self._object_body(decl)
        if isinstance(decl.type, ExternType):
            self._all_implemented(decl, decl.type)

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

    def _object_body(self, decl: ast.Instantiation) -> None:
        assert decl.body is not None
        this = decl.this = ast.Param("this", decl.ref, span=decl.span)
        this.type = decl.type
        # Methods do not see local variables (11.3.1), but for those that only run within a call of
        # another method, where the variables are the caller's.
        within = None if _runs_in_calls(decl.type) else self.c.scopes.top
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
