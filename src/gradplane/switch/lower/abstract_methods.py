"""Abstract methods of user-defined externs, as an instance's initializer gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.check.checker_types import substitute
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Void
from gradplane.switch.lower.body import Body
from gradplane.switch.lower.instance_scope import Env
from gradplane.switch.lower.type_erasure import erase, told
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.lower.instances import Instances


def method(p: Instances, decl: ast.FunctionDecl, outer: Env) -> ir.Method:
    """The IR of a method; `outer` is the instance's environment."""
    assert decl.body is not None, decl.name
    signature = p.checker.calls.signature(decl)
    if signature.type_params:
        what = f"method {decl.name} has type parameters of its own, which nothing can tell"
        p.no_meaning(decl.span, what, "give them to the extern")
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
        [told(substitute(formal.type, env.types)) for formal in signature.params],
        result,
        told(substitute(signature.result, env.types)),
        body.locals,
        body.out,
        decl.span,
    )
