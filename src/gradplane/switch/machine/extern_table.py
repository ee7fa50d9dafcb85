"""The table of an architecture's externs, and how the interpreter compiles calls by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gradplane.switch.interp.extern_call import Call, Parts, collector
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.interp.statements import Observer, Statements
from gradplane.switch.interp.user_externs import UserExterns, inputs
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.machine.externs.direct_resources import DirectResources
from gradplane.switch.runtime.dynamic_hashes import filled, selector_hash
from gradplane.switch.runtime.hashes import HASHES, pack_bits
from gradplane.switch.runtime.match_table import MatchTable


class Extern(NamedTuple):
    """An extern function or method, implemented for both engines.

    interpret: returns the closure that executes a call. compile: writes a call's machine code.
    numbers: the positions of arguments that must be numbers, though the checker takes any type
    there; they are checked where the call has them. needs_packet: False if it may be called where
    there is no packet, in abstract methods of user-defined externs. places: the blocks that may
    call it, by package parameter; None: all. bodies: the texts that a call may stand for, which set
    all that it sets (text_externs.py).
    """

    interpret: Callable[[Call], Run]
    compile: Callable[[NativeCall], None]
    numbers: tuple[int, ...] = ()
    needs_packet: bool = True
    places: frozenset[str] | None = None
    bodies: tuple[str, ...] = ()

    def within(self, *places: str) -> Extern:
        """Return the row restricted to calls in these blocks."""
        return self._replace(places=frozenset(places))


Externs = Mapping[tuple[str, str], Extern]
"""Externs by the type of their instance ("" for a function) and name."""


class ExternCompiler(NamedTuple):
    """Compiles calls of externs for the interpreter (interp.statements.Externs).

    user_externs: those of a loaded program that has any.
    """

    externs: Externs
    direct: DirectResources
    user_externs: UserExterns | None = None

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        owner = call.instance.type if call.instance else ""
        return self.externs[owner, call.name].interpret(Call(call, statements))

    def call_user_extern(self, call: ir.CallUserExtern, statements: Statements) -> Run:
        assert self.user_externs is not None, call.name
        invoke = self.user_externs.invoke(call)
        loads = [statements.load(value) for value, _ in inputs(call)]
        stores = [statements.store(var) for var, _ in call.places]

        def run(env: Env) -> None:
            results = invoke([load(env) for load in loads])
            for store, value in zip(stores, results, strict=True):
                store(env, value)

        return run

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        return self.direct.observer(table, statements)

    def selection(self, table: ir.Table, statements: Statements) -> Load:
        """Return the action selector's hash over the table's selector keys, cut to its width."""
        profile = statements.state.tables[table.name].profile
        assert profile is not None, table.name
        keys = [k.expr for k in table.keys if k.match_kind == "selector"]
        if not profile.algorithm or not keys:
            return lambda env: 0
        if profile.algorithm == "random":
            draw = statements.state.rng.draw
            return lambda env: draw()
        compute, mask = HASHES.get(profile.algorithm), (1 << profile.output_width) - 1
        assert table.implementation is not None, table.name
        made = selector_hash(table.implementation)
        if made is not None:
            compute, keys = statements.state.hashes[made.name].compute, filled(made, keys)
        assert compute is not None, profile.algorithm
        collectors = [collector(key, statements) for key in keys]

        def select(env: Env) -> int:
            parts: Parts = []
            for collect in collectors:
                collect(env, parts)
            return compute(pack_bits(parts)) & mask

        return select
