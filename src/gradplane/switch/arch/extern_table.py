"""What the architectures' tables of externs are made of.

A builder takes a call and gives the closure that executes it. Where the architectures differ in the
order of arguments only, a builder here takes them besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.arch.direct_resources import Step, observer, selection
from gradplane.switch.arch.extern_call import Builder, Call, refuse
from gradplane.switch.arch.user_externs import OwnExterns, inputs
from gradplane.switch.interp.expressions import Store
from gradplane.switch.interp.frame_layout import Env, Load, Run
from gradplane.switch.interp.statements import Abort, Observer, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.hashes import HASHES
from gradplane.switch.runtime.match_table import MatchTable


@dataclass(frozen=True, slots=True)
class Extern:
    """`places`: the blocks that may call it, by their package parameters; None: all."""

    build: Builder
    places: frozenset[str] | None = None


Externs = dict[tuple[str, str], Extern]
"""By the type of the instance ("" for a function) and the name."""


@dataclass(frozen=True, slots=True)
class ExternCompiler:
    """What the statements' compiler asks of an architecture (interp.statements.Externs).

    `instances`: the types that can be instantiated. `counter`, `meter`: what a table's direct
    counter and meter do on each lookup. `own`: of a loaded program that has externs of its own.
    """

    externs: Externs
    instances: frozenset[str]
    counter: Step
    meter: Step
    own: OwnExterns | None = None

    @property
    def natives(self) -> frozenset[tuple[str, str]]:
        """What there is: ("", function), (type, method) and (type, "")."""
        return frozenset(self.externs) | {(t, "") for t in self.instances}

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        owner = call.instance.type if call.instance else ""
        return self.externs[owner, call.name].build(Call(call, statements))

    def call_own(self, call: ir.CallOwn, statements: Statements) -> Run:
        assert self.own is not None, call.name
        invoke = self.own.invoke(call)
        loads = [statements.load(value) for value, _ in inputs(call)]
        stores = [statements.store(var) for var, _ in call.places]

        def run(env: Env) -> None:
            results = invoke([load(env) for load in loads])
            for store, value in zip(stores, results, strict=True):
                store(env, value)

        return run

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        return observer(table, statements, self.counter, self.meter)

    def selection(self, table: ir.Table, statements: Statements) -> Load:
        return selection(table, statements)


# -- arrays -------------------------------------------------------------------------------------


def register_read(call: Call, store: Store, index: Load) -> Run:
    register = call.state.registers[call.instance.name]
    cells, size = register.cells, register.size

    def run(env: Env) -> None:
        at = index(env)
        store(env, cells[at] if 0 <= at < size else 0)

    return run


def register_write(call: Call) -> Run:
    register = call.state.registers[call.instance.name]
    cells, size, index, value = register.cells, register.size, call.arg(0), call.arg(1)

    def run(env: Env) -> None:
        at = index(env)
        if 0 <= at < size:
            cells[at] = value(env)

    return run


def count(call: Call) -> Run:
    counter, index = call.state.counters[call.instance.name], call.arg(0)
    return lambda env: counter.add(index(env), env[0].length)


# -- numbers ------------------------------------------------------------------------------------


def scaled(store: Store, compute: Load, base: Load, limit: Load) -> Run:
    """base + hash % limit; base where the limit is 0."""

    def run(env: Env) -> None:
        most = limit(env)
        store(env, base(env) + (compute(env) % most if most else 0))

    return run


def algorithm(call: Call, name: str) -> Callable[[bytes], int]:
    """A hash algorithm by its name; refuses the call if there is none."""
    if name not in HASHES:
        raise refuse(
            call.stmt.span,
            f"{call.stmt.name}: algorithm {name} is not implemented",
            f"implemented: {', '.join(sorted(HASHES))}",
        )
    return HASHES[name]


# -- checks -------------------------------------------------------------------------------------


def check_that(call: Call) -> Run:
    """assert and assume."""
    check, what = call.arg(0), f"{call.stmt.span}: {call.stmt.name} failed"

    def run(env: Env) -> None:
        if not check(env):
            raise Abort(what)

    return run


def nothing(call: Call) -> Run:
    return lambda env: None
