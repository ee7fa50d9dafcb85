"""Abstract methods of the program's own externs, as their Python objects call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradplane.switch.interp.packet import Packet
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.user_extern_values import labelled, to_python
from gradplane.switch.ir import nodes as ir


class PythonMethod:
    """A method that the program gives: run by the interpreter, on the state of the switch, with
    variables of its own in each call.

    Takes the in and inout arguments in order, and gives what a function that implements an extern
    would. Raises TypeError for their number, ValueError for what does not fit them.
    """

    def __init__(self, method: ir.Method, compiler: Statements, errors: Sequence[str]) -> None:
        self.name = method.name
        self._frame = frame = compiler.frame
        params = [(p, t) for p, t in zip(method.params, method.types, strict=True)]
        outs = [(p.var, t) for p, t in params if p.direction in ("out", "inout")]
        if method.result is not None:
            outs.insert(0, (method.result, method.type))
        variables = {**dict.fromkeys(p.var for p in method.params), **dict.fromkeys(method.locals)}
        if method.result is not None:
            variables[method.result] = None
        self._zero = frame.zeroing([*variables])
        self._takes = [
            (frame.slot(p.var), labelled(f"argument {p.name} of {method.name}", t, errors))
            for p, t in params
            if p.direction != "out"
        ]
        self._gives = [(frame.slot(var), to_python(t, errors)) for var, t in outs]
        self._run = compiler.body(method.body).run

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self._takes):
            raise TypeError(f"{self.name}() takes {len(self._takes)} arguments, not {len(args)}")
        env = self._frame.new()
        env[0] = Packet(b"")
        self._zero(env)
        for (slot, convert), arg in zip(self._takes, args, strict=True):
            env[slot] = convert(arg, None)
        self._run(env)
        given = [convert(env[slot]) for slot, convert in self._gives]
        return tuple(given) if len(given) > 1 else given[0] if given else None
