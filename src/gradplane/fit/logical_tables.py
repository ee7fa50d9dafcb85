"""The logical tables of a control: match tables, actions without a table, and conditions.

Statements outside tables become actions of tables without a key. As many consecutive ones as are
independent, and use one extern, share an action.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from gradplane.fit.conditions import compared
from gradplane.fit.copies import copies_in
from gradplane.fit.line_names import line_name
from gradplane.fit.named_conditions import named_conditions
from gradplane.fit.operations import Run
from gradplane.fit.partitions import Partitions, finder, index_variable, partitions_of
from gradplane.fit.places import Place, leaves, reads
from gradplane.fit.values import Operation, Use, Value, forget
from gradplane.fit.variable_reads import across_actions, count_reads, indices
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import nested
from gradplane.switch.ir.types import bit_width
from gradplane.switch.source import Span

MATCH, ACTION, GATEWAY = "match", "action", "gateway"

Arm = tuple[int, int]
"""A branch in the control flow, and which way from it."""


@dataclass(slots=True)
class TableAction:
    """An action: its parameters with their bits, and what it does."""

    name: str
    params: tuple[tuple[ir.Var, int], ...]
    operations: list[Operation]
    span: Span

    @property
    def data(self) -> list[int]:
        """The bits of each parameter that an operation reads."""
        used = {place.var for op in self.operations for place in op.reads}
        return [width for var, width in self.params if var in used]


@dataclass(slots=True, eq=False)
class LogicalTable:
    """A table of the chip: it matches, and its action acts; or it only acts, or only decides.

    arms: the branches that it is in. deciders: tables whose outcome decides whether it runs.
    shares: a gateway that needs no logical table of its own, since a table that it decides about
    has one. decided: it only acts, and a gateway of its own runs it. problem: why the chip cannot
    decide so. partitions: how a ternary table in SRAM is divided. at_end: it comes after all others
    of its control that are in no branch.
    """

    kind: str
    name: str
    span: Span
    gress: str
    order: int
    table: ir.Table | None = None
    key: tuple[Place, ...] = ()
    ranges: tuple[Place, ...] = ()
    rows: int = 1
    actions: list[TableAction] = field(default_factory=list)
    arms: tuple[Arm, ...] = ()
    deciders: tuple[LogicalTable, ...] = ()
    shares: bool = False
    decided: bool = False
    problem: str = ""
    partitions: Partitions | None = None
    at_end: bool = False

    @property
    def operations(self) -> list[Operation]:
        return [operation for action in self.actions for operation in action.operations]

    @property
    def uses(self) -> list[Use]:
        """The uses of externs by its actions."""
        return list(dict.fromkeys(use for op in self.operations for use in op.value.uses))

    @property
    def writes(self) -> list[Place]:
        return [place for op in self.operations for place in op.writes]

    @property
    def reads(self) -> list[Place]:
        """The places that its actions read."""
        return [place for op in self.operations for place in op.reads]

    def excludes(self, other: LogicalTable) -> bool:
        """Return whether no packet comes through both."""
        other_arms = dict(other.arms)
        return any(other_arms.get(branch, arm) != arm for branch, arm in self.arms)


def logical_tables(
    control: ir.Control, gress: str, program: ir.Program, without: Collection[int] = ()
) -> list[LogicalTable]:
    """Return the logical tables of a program's control in the order of the source.

    without: the identities of statements that the chip's compiler drops."""
    walk = _Walk(control, gress, program, without)
    walk.body(control.body, (), ())
    return walk.tables


class _Walk:
    def __init__(
        self, control: ir.Control, gress: str, program: ir.Program, without: Collection[int]
    ) -> None:
        self.gress = gress
        self.without = without
        self.program = program
        self.tables: list[LogicalTable] = []
        self.resolve = copies_in(control).resolve
        self.everywhere = count_reads(control.body)
        self._actions = {
            id(a.action): a.action
            for stmt in nested(control.body)
            if isinstance(stmt, ir.ApplyTable)
            for a in stmt.table.actions
        }
        for action in self._actions.values():
            self.everywhere.update(count_reads(action.body))
        self._outcomes: dict[ir.Var, LogicalTable] = {}
        self._branches = 0
        self.named = named_conditions(control, program.called_actions)
        self.asked: dict[ir.Var, tuple[ir.Expr, int]] = {}  # conditions with names, and when set
        self.known: dict[object, Value] = {}  # what fields were set to, which the compiler puts in

    def body(
        self,
        stmts: Sequence[ir.Stmt],
        arms: tuple[Arm, ...],
        deciders: tuple[LogicalTable, ...],
    ) -> None:
        """Read a body. Statements behind a way that leaves are on the other way."""
        run: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.If | ir.SwitchStmt | ir.ApplyTable) or _has_flow(stmt):
                self._plain(run, arms, deciders)
                run = []
                arms, deciders = self._flow(stmt, arms, deciders)
            elif isinstance(stmt, ir.Assign) and stmt.target in self.named:
                self._plain(run, arms, deciders)
                run = []
                self.asked[stmt.target] = stmt.value, len(self.tables)
            elif not isinstance(stmt, ir.Leave | ir.Exit) and id(stmt) not in self.without:
                run.append(stmt)
        self._plain(run, arms, deciders)

    def _flow(
        self, stmt: ir.Stmt, arms: tuple[Arm, ...], deciders: tuple[LogicalTable, ...]
    ) -> tuple[tuple[Arm, ...], tuple[LogicalTable, ...]]:
        match stmt:
            case ir.ApplyTable():
                self._apply(stmt, arms, deciders)
            case ir.If(cond=cond, then=then, other=other):
                decider = self._condition([cond], stmt.span, arms, deciders)
                bodies = [then, other]
            case ir.SwitchStmt(subject=subject, cases=cases, default=default):
                decider = self._condition([subject], stmt.span, arms, deciders, len(cases))
                bodies = [*(body for _, body in cases), default]
            case ir.Block(body=body) | ir.Loop(body=body):
                self.body(body, arms, deciders)
                self.known = {}
        if isinstance(stmt, ir.If | ir.SwitchStmt):
            self._branches += 1
            branch = self._branches
            inside = deciders if decider is None else (*deciders, decider)
            at = len(self.tables)
            before, ends = self.known, []
            asked = self.asked
            for n, body in enumerate(bodies):
                self.known, self.asked = dict(before), dict(asked)
                self.body(body, (*arms, (branch, n)), inside)
                ends += [] if _leaves(body) else [self.known]
            self.known, self.asked = _in_all(ends), asked
            if decider is not None and decider.kind == GATEWAY:
                first = self.tables[at : at + 1]
                decider.shares = bool(first) and first[0].kind != GATEWAY
                if decider.shares and first[0].kind == ACTION:
                    first[0].decided = True
            staying = [n for n, body in enumerate(bodies) if not _leaves(body)]
            if len(staying) == 1:
                return (*arms, (branch, staying[0])), inside
        return arms, deciders

    def _condition(
        self,
        exprs: Sequence[ir.Expr],
        span: Span,
        arms: tuple[Arm, ...],
        deciders: tuple[LogicalTable, ...],
        rows: int = 1,
    ) -> LogicalTable | None:
        """Return the table that decides: the one whose outcome is asked for, or a gateway."""
        exprs, problem = self._with_named(exprs)
        read = [place for e in exprs for place in reads(e) if place.var not in self.named]
        asked_for = [self.resolve(place) for place in read]
        found = [p for place in asked_for for p in self._source(place)]
        outcomes = {p.var for p in found} & self._outcomes.keys()
        key = tuple(dict.fromkeys(p for p in found if p.var not in self._outcomes))
        if outcomes and not key:
            return self._outcomes[next(iter(outcomes))]
        if not key and not problem:
            return None
        asked = compared(exprs, (*self._outcomes, *self.named))
        name = f"condition in {line_name(span, self.program.package.span.file)}"
        gateway = LogicalTable(
            GATEWAY, name, span, self.gress, len(self.tables),
            key=key, ranges=tuple(asked.ordered), rows=rows, arms=arms, deciders=deciders,
        )  # fmt: skip
        gateway.problem = asked.problem or problem
        again = next((p for p in asked_for if self._is_computed(p)), None)
        if again is not None and not gateway.problem:
            gateway.problem = (
                f"the condition asks for {again.name}, computed in a statement before it, which the"
                " chip's compiler computes in the condition"
            )
        self.tables.append(gateway)
        return gateway

    def _with_named(self, exprs: Sequence[ir.Expr]) -> tuple[list[ir.Expr], str]:
        """Return conditions with those that they ask for by a name, and why one cannot be decided
        here."""
        found, problem = list(exprs), ""
        for e in found:
            for var in {place.var for place in reads(e)} & self.named:
                value, at = self.asked.get(var, (None, 0))
                changed = {place.field for table in self.tables[at:] for place in table.writes}
                found += [] if value is None else [value]
                if value is None or not changed.isdisjoint(p.field for p in reads(value)):
                    problem = f"the condition asks for {var.name}, set to what is not the same here"
        return found, problem

    def _apply(
        self, stmt: ir.ApplyTable, arms: tuple[Arm, ...], deciders: tuple[LogicalTable, ...]
    ) -> None:
        table = stmt.table
        self._plain(table.key_setup, arms, deciders)
        read = [self.resolve(place) for k in table.keys for place in reads(k.expr)]
        key = tuple(dict.fromkeys(p for place in read for p in self._copied(place)))
        actions = [self._action(a.action) for a in table.actions]
        partitions = partitions_of(table)
        if partitions is not None and partitions.finding:
            key = (self._finder(table, partitions, key, arms, deciders), *key)
        made = LogicalTable(
            MATCH if table.keys else ACTION, table.name, table.span, self.gress, len(self.tables),
            table, key, (), 1, actions, arms, deciders, partitions=partitions,
        )  # fmt: skip
        self.tables.append(made)
        forget(self.known, made.writes)
        for outcome in (stmt.hit, stmt.action_run):
            if isinstance(outcome, ir.Var):
                self._outcomes[outcome] = made

    def _source(self, place: Place) -> tuple[Place, ...]:
        """Return the places that a condition reads for a place: those that it was set from."""
        value = self.known.get(place.field)
        return (place,) if value is None or self._is_computed(place) else value.places

    def _copied(self, place: Place) -> tuple[Place, ...]:
        """Return the place that a key reads for a place: the one that it is a copy of."""
        value = self.known.get(place.field)
        plain = value is not None and not value.steps and len(value.places) == 1
        return value.places if value is not None and plain else (place,)

    def _is_computed(self, place: Place) -> bool:
        """Return whether a place was set to what no condition computes: more than a mask."""
        value = self.known.get(place.field)
        masked = value is not None and not value.carries and len(set(value.places)) == 1
        return value is not None and bool(value.steps) and not masked

    def _finder(
        self,
        table: ir.Table,
        partitions: Partitions,
        key: tuple[Place, ...],
        arms: tuple[Arm, ...],
        deciders: tuple[LogicalTable, ...],
    ) -> Place:
        """Add the table that finds a partition; return where it puts the number."""
        number, param = index_variable(table, partitions), index_variable(table, partitions)
        (index,) = leaves(number)
        operation = Operation([index], Value(tuple(leaves(param)), sources=1), table.span)
        action = TableAction("find", ((param, partitions.index_bits),), [operation], table.span)
        finding = finder(table, partitions)
        self.tables.append(
            LogicalTable(
                MATCH, finding.name, table.span, self.gress, len(self.tables), finding, key, (), 1,
                [action], arms, deciders,
            )
        )  # fmt: skip
        return index

    def _action(self, action: ir.Action) -> TableAction:
        run = Run(
            self.everywhere,
            count_reads(action.body),
            frozenset(action.params),
            self.resolve,
            in_hash=self.program.in_hash,
        )
        run.take(action.body)
        params = tuple((p, bit_width(p.type) or 0) for p in action.params)
        return TableAction(action.name, params, run.operations, action.span)

    def _plain(
        self,
        stmts: Sequence[ir.Stmt],
        arms: tuple[Arm, ...],
        deciders: tuple[LogicalTable, ...],
    ) -> None:
        """Make tables without a key of statements: a new one where a statement depends on one
        before it, or where both use an extern."""
        if not stmts:
            return
        run = Run(
            self.everywhere,
            count_reads(stmts),
            frozenset(),
            self.resolve,
            False,
            self.program.called_actions,
            self.program.in_hash,
            copies=self.known,
            across=across_actions(stmts, self.program.called_actions),
            indices=indices(stmts),
        )
        group: list[Operation] = []
        for stmt in stmts:
            at = len(run.operations)
            known = dict(self.known)
            run.take([stmt])
            if group and any(_separate(operation, group) for operation in run.operations[at:]):
                self._keyless(group, arms, deciders)
                group = []
                if run.hashes:  # no longer in the same action: read where they were put
                    run.again_from(at, known)
                    run.take([stmt])
            for operation in run.operations[at:]:
                if group and _separate(operation, group):
                    self._keyless(group, arms, deciders)
                    group = []
                group.append(operation)
        if group:
            self._keyless(group, arms, deciders)

    def _keyless(
        self, group: list[Operation], arms: tuple[Arm, ...], deciders: tuple[LogicalTable, ...]
    ) -> None:
        span = group[0].span
        name = f"{_purpose(group)} ({line_name(span, self.program.package.span.file)})"
        action = TableAction(name, (), group, span)
        self.tables.append(
            LogicalTable(
                ACTION, name, span, self.gress, len(self.tables), actions=[action], arms=arms,
                deciders=deciders,
            )
        )  # fmt: skip


def _in_all(known: Sequence[dict[object, Value]]) -> dict[object, Value]:
    """Return what is known in the same way at the ends of all branches."""
    if not known:
        return {}
    return {
        name: value
        for name, value in known[0].items()
        if all(other.get(name) is value for other in known[1:])
    }


def _separate(operation: Operation, group: Sequence[Operation]) -> bool:
    """Return whether an operation is in another action than those before it."""
    if operation.at_once_with or group[-1].at_once_with:
        again = any(o.span == operation.span and o.writes == operation.writes for o in group)
        return again or operation.at_once_with != group[-1].at_once_with
    return _depends(operation, group) or _both_use(operation, group)


def _depends(operation: Operation, group: Sequence[Operation]) -> bool:
    taken = (*operation.reads, *operation.writes)
    return any(w.overlaps(p) for before in group for w in before.writes for p in taken)


def _both_use(operation: Operation, group: Sequence[Operation]) -> bool:
    return bool(_externs([operation])) and bool(_externs(group))


def _externs(group: Sequence[Operation]) -> list[Use]:
    return [use for op in group for use in op.value.uses if use.instance.kind != "hash"]


def _has_flow(stmt: ir.Stmt) -> bool:
    """Return whether a statement contains others, other than the access to a register."""
    if isinstance(stmt, ir.Block):
        return stmt.access is None and stmt.name != ir.SWEEP
    return isinstance(stmt, ir.Loop)


def _leaves(body: Sequence[ir.Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ir.Leave | ir.Exit)


def _purpose(group: Sequence[Operation]) -> str:
    """Return what statements are for, in short: the register they use, or what they set."""
    names = [use.instance.name.rpartition(".")[2] for use in _externs(group)]
    names += [place.name for op in group for place in op.writes]
    return names[0] if names else "statement"
