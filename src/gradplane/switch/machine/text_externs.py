"""Externs whose bodies are P4 text: a control of an architecture's path.p4, with the extern's
parameters and perhaps `result` and `notes` behind them. A call becomes the body's statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.interp.statements import OnlyCalls, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.path_texts import path_text
from gradplane.switch.machine.primitives import IN_BODIES
from gradplane.switch.machine.weaving import instantiate
from gradplane.switch.source import refuse


class TextBody(NamedTuple):
    """A body in the text of the architecture in `folder`."""

    folder: Path
    name: str

    def extern(self) -> Extern:
        """Return the row of the extern that the body is of."""
        return Extern(
            lambda call: self.closure(call, call.stmt.args),
            lambda call: self.write(call, call.args),
            bodies=(self.name,),
        )

    def closure(self, call: Call, args: Sequence[ir.Expr] = ()) -> Run:
        """Return the closure that runs the body with these arguments; no trace shows it."""
        return _closure(call, self._instance(call.stmt, args)[1])

    def write(self, call: NativeCall, args: Sequence[ir.Expr] = ()) -> None:
        """Write the body with these arguments."""
        variables, body = self._instance(call.stmt, args)
        for var in variables:
            call.code.local(var)
        call.code.body(body)

    def _instance(
        self, stmt: ir.CallExtern, args: Sequence[ir.Expr]
    ) -> tuple[list[ir.Var], list[ir.Stmt]]:
        text = path_text(self.folder)
        try:
            return instantiate(text.body(self.name), args, stmt.result, text.notes)
        except LookupError as error:
            raise refuse(stmt.span, str(error)) from error


def made_of(body: Callable[[ir.CallExtern], list[ir.Stmt]]) -> Extern:
    """Return the row of an extern; body: returns the statements that a call stands for."""
    return Extern(
        lambda call: _closure(call, body(call.stmt)), lambda call: call.code.body(body(call.stmt))
    )


def _closure(call: Call, body: Sequence[ir.Stmt]) -> Run:
    return call.statements.beside(_Primitives()).body(body).run


class _Primitives(OnlyCalls):
    """Compiles the calls in a body (interp.statements.Externs)."""

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        return IN_BODIES[call.name].interpret(Call(call, statements))
