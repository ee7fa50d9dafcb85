"""Lower calls of user-defined externs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker_types import substitute
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type, Void
from gradplane.switch.lower.instance_scope import Binding
from gradplane.switch.lower.type_erasure import erase, extern_type
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.lower.externs import ExternLowering


class UserExternCall:
    """A call being lowered. Results go to variables, which are copied out afterwards."""

    def __init__(self, body: ExternLowering, e: ast.Call, info: CallInfo) -> None:
        self.body = body
        self.e = e
        self.info = info
        self.copies: list[ir.Stmt] = []

    def lower(self, instance: ir.ExternInstance | None) -> ir.Expr | None:
        """Emit the call; return the variable with its result, if it has one."""
        body, info = self.body, self.info
        values, saved = body.argument_values(info)
        args = []
        for i, (param, value) in enumerate(zip(info.signature.params, values, strict=True)):
            if param.direction in ("out", "inout"):
                value = self._place(i, value, saved)
            kind = self._extern_type(param.type)
            args.append(
                ir.UserExternArgument(param.name, param.direction, kind, self._given(value))
            )
        result = None
        if not isinstance(info.signature.result, Void):
            result = body.variable(info.name, body.type_of(self.e))
        kind = self._extern_type(info.signature.result)
        call = ir.CallUserExtern(instance, info.name, args, result, kind)
        body.p.user_extern_calls.append(call)
        body.emit(call, self.e.span)
        body.out += self.copies
        return result

    def _place(self, i: int, value: Binding | None, saved: dict[int, ir.Var]) -> ir.Var | None:
        """Return the variable for an out or inout argument; None for an optional one left out."""
        param, body = self.info.signature.params[i], self.body
        if value is None and param.direction == "inout":
            return None
        if value is None:  # `_`
            return body.variable(param.name, self._erased(param.type))
        assert isinstance(value, ir.Expr), value
        var = saved.get(i) or body.variable(param.name, value.type)
        if param.direction == "inout" and i not in saved:
            body.emit(ir.Assign(var, value))
        self.copies.append(body.copy_out(value, var))
        return var

    def _given(self, value: Binding | None) -> ir.Expr | ir.ExternInstance | None:
        if value is None or isinstance(value, ir.Expr | ir.ExternInstance):
            return value
        what = "a user-defined extern can only take values and extern objects"
        self.body.p.unsupported(self.e.span, what)
        return None

    def _extern_type(self, t: Type) -> Type:
        return extern_type(substitute(t, self.body.env.types))

    def _erased(self, t: Type) -> Type:
        return erase(substitute(t, self.body.env.types))
