"""The state of the lowering of one top-level parser or control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Type
from gradplane.switch.ir.walk import nested
from gradplane.switch.lower.shared_state import Env, Shared
from gradplane.switch.lower.type_erasure import erase
from gradplane.switch.source import NOWHERE, Span
from gradplane.switch.syntax import ast


class Frame:
    """A block being lowered: `out` receives its statements, `locals` every variable made."""

    def __init__(self, lowering: Shared) -> None:
        self.p = lowering
        self.out: list[ir.Stmt] = []
        self.locals: list[ir.Var] = []
        self.env = Env(lowering.top)
        self.repeats = False  # whether this place may run more than once a packet
        self._return: tuple[ir.Block, ir.Var | None] | None = None
        self._loops: list[tuple[ir.Block, ir.Block]] = []  # for break, for continue
        self._copy_outs: list[list[ir.Stmt]] = []  # of the enclosing calls, for exit
        self._nested = False  # whether inside a sub-control
        self._often = False  # whether inside a sub-control that is applied in several places
        self._exit: ir.Block | None = None  # what exit leaves in a nested table's action
        self._exiting: ir.Var | None = None
        self._exit_bodies: list[list[ir.Stmt]] = []  # bodies of the actions that may set `_exiting`
        self._acting = False  # whether inside an action
        self._table_digest: ir.Var | None = None
        self._span = NOWHERE

    # -- helpers -------------------------------------------------------------------------------

    def emit(self, s: ir.Stmt, span: Span | None = None) -> None:
        s.span = span or self._span
        self.out.append(s)

    @contextmanager
    def into(self, out: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
        saved, self.out = self.out, out
        try:
            yield out
        finally:
            self.out = saved

    @contextmanager
    def scope(self, env: Env | None = None) -> Iterator[Env]:
        saved, self.env = self.env, env or self.env.inner()
        try:
            yield self.env
        finally:
            self.env = saved

    @contextmanager
    def repeating(self) -> Iterator[None]:
        saved, self.repeats = self.repeats, True
        try:
            yield
        finally:
            self.repeats = saved

    @contextmanager
    def nesting(self) -> Iterator[None]:
        saved, self._nested = self._nested, True
        try:
            yield
        finally:
            self._nested = saved

    @contextmanager
    def acting(self) -> Iterator[None]:
        saved, self._acting = self._acting, True
        try:
            yield
        finally:
            self._acting = saved

    def variable(self, name: str, t: Type) -> ir.Var:
        var = self.p.variable(name, t)
        self.locals.append(var)
        return var

    def spill(self, e: ir.Expr, name: str = "tmp") -> ir.Var:
        """Return a new variable that holds the current value of `e`."""
        var = self.variable(name, e.type)
        self.emit(ir.Assign(var, e))
        return var

    def table_digest(self) -> ir.Var:
        """Return the variable with the digest of the table applied last (table_lowering.py)."""
        if self._table_digest is None:
            self._table_digest = self.variable("digest", Bits(64))
        return self._table_digest

    def type_of(self, e: ast.Expr) -> Type:
        assert e.type is not None, e
        return erase(self.env.resolved(e.type))

    @contextmanager
    def returns(self, result: ir.Var | None) -> Iterator[None]:
        """Emit, in this context, a body whose `return` leaves the body only."""
        saved, loops = self._return, self._loops
        block = ir.Block([], "return")
        self._return, self._loops = (block, result), []
        with self.into(block.body):
            yield
        self._return, self._loops = saved, loops
        if leaves(block.body, block):
            self.emit(block)
        else:
            self.out += block.body


def leaves(statements: Sequence[ir.Stmt], block: ir.Block) -> bool:
    """Return whether the statements contain a Leave of this block."""
    return any(isinstance(s, ir.Leave) and s.block is block for s in nested(statements))
