"""The logical tables of a control, in the order of the source.

Statements outside tables become actions of tables without a key. As many consecutive ones as are
independent, and use one extern, share an action: those that the chip can do at once.

The chip's compiler makes tables for conditions on a deparser's checksums, too. A deparser updates a
checksum where a bit of the packet header vector says so. Unless that is the validity of the
checksum's own header, a table sets the bit from the condition's fields, after all others of the
control; and a table before it copies the fields that the checksum takes twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gradplane.fit.alu_rules import compared
from gradplane.fit.logical_tables import (
    ACTION,
    GATEWAY,
    MATCH,
    Arm,
    LogicalTable,
    Partitions,
    TableAction,
    finder,
    index_variable,
    line_name,
    partitions_of,
)
from gradplane.fit.operations import Run
from gradplane.fit.places import VALID, Place, across_actions, count_reads, indices, leaves, reads
from gradplane.fit.simplifications import copies_in, named_conditions
from gradplane.fit.values import Known, KnownValues, Operation, Use, Value, forget, in_all
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.ir.walk import bodies, nested
from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class _Way:
    """A way through the control: its branches, and the tables that decide about them."""

    arms: tuple[Arm, ...] = ()
    deciders: tuple[LogicalTable, ...] = ()

    def into(self, arm: Arm, decider: LogicalTable | None) -> _Way:
        """Return the way into a branch."""
        more = () if decider is None else (decider,)
        return _Way((*self.arms, arm), (*self.deciders, *more))


def logical_tables(
    control: ir.Control, gress: str, program: ir.Program, file: str, without: Collection[int] = ()
) -> list[LogicalTable]:
    """Return the logical tables of a program's control in the order of the source.

    file: the program's own. without: the identities of statements that the chip's compiler drops.
    """
    walk = _Walk(control, gress, program, file, without)
    walk.body(control.body, _Way())
    return walk.tables


class _Walk:
    def __init__(
        self,
        control: ir.Control,
        gress: str,
        program: ir.Program,
        file: str,
        without: Collection[int],
    ) -> None:
        self.gress = gress
        self.program = program
        self.file = file
        self.without = without
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
        self.known: Known = {}  # what fields were set to, which the compiler puts in

    def body(self, stmts: Sequence[ir.Stmt], way: _Way) -> None:
        """Read a body. Statements behind a way that leaves are on the other way."""
        run: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.If | ir.SwitchStmt | ir.ApplyTable) or _has_flow(stmt):
                self._plain(run, way)
                run = []
                way = self._flow(stmt, way)
            elif isinstance(stmt, ir.Assign) and stmt.target in self.named:
                self._plain(run, way)
                run = []
                self.asked[stmt.target] = stmt.value, len(self.tables)
            elif not isinstance(stmt, ir.Leave | ir.Exit) and id(stmt) not in self.without:
                run.append(stmt)
        self._plain(run, way)

    def _flow(self, stmt: ir.Stmt, way: _Way) -> _Way:
        """Read a statement that others are inside of; return the way of those behind it."""
        if isinstance(stmt, ir.ApplyTable):
            self._apply(stmt, way)
            return way
        inside = bodies(stmt)
        if isinstance(stmt, ir.If | ir.SwitchStmt):
            decider = self._condition(walk.reads(stmt), stmt.span, way, len(inside) - 1)
            return self._branch(inside, decider, way)
        for body in inside:
            self.body(body, way)
            self.known = {}
        return way

    def _branch(
        self, bodies: Sequence[Sequence[ir.Stmt]], decider: LogicalTable | None, way: _Way
    ) -> _Way:
        """Read the bodies of a statement that chooses one."""
        self._branches += 1
        ways = [way.into((self._branches, n), decider) for n in range(len(bodies))]
        at = len(self.tables)
        before, asked, ends = self.known, self.asked, []
        for body, inside in zip(bodies, ways, strict=True):
            self.known, self.asked = dict(before), dict(asked)
            self.body(body, inside)
            ends += [] if _leaves(body) else [self.known]
        self.known, self.asked = in_all(ends), asked
        if decider is not None and decider.kind == GATEWAY:
            first = self.tables[at : at + 1]
            decider.shares = bool(first) and first[0].kind != GATEWAY
            if decider.shares and first[0].kind == ACTION:
                first[0].decided = True
        staying = [inside for body, inside in zip(bodies, ways, strict=True) if not _leaves(body)]
        return staying[0] if len(staying) == 1 else way

    def _condition(
        self, exprs: Sequence[ir.Expr], span: Span, way: _Way, rows: int
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
        gateway = LogicalTable(
            GATEWAY, f"condition in {line_name(span, self.file)}", span, self.gress,
            len(self.tables), key=key, ranges=tuple(asked.ordered), rows=rows, arms=way.arms,
            deciders=way.deciders, problem=asked.problem or problem,
        )  # fmt: skip
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

    def _apply(self, stmt: ir.ApplyTable, way: _Way) -> None:
        table = stmt.table
        self._plain(table.key_setup, way)
        read = [self.resolve(place) for k in table.keys for place in reads(k.expr)]
        key = tuple(dict.fromkeys(p for place in read for p in self._copied(place)))
        actions = [self._action(a.action) for a in table.actions]
        partitions = partitions_of(table)
        if partitions is not None and partitions.finding:
            key = (self._finder(table, partitions, key, way), *key)
        made = LogicalTable(
            MATCH if table.keys else ACTION, table.name, table.span, self.gress, len(self.tables),
            table, key, actions=actions, arms=way.arms, deciders=way.deciders,
            partitions=partitions,
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
        self, table: ir.Table, partitions: Partitions, key: tuple[Place, ...], way: _Way
    ) -> Place:
        """Add the table that finds a partition; return where it puts the number."""
        number, param = index_variable(table, partitions), index_variable(table, partitions)
        (index,) = leaves(number)
        operation = Operation([index], Value(tuple(leaves(param)), sources=1), table.span)
        action = TableAction("find", ((param, partitions.index_bits),), [operation], table.span)
        finding = finder(table, partitions)
        self.tables.append(
            LogicalTable(
                MATCH, finding.name, table.span, self.gress, len(self.tables), finding, key,
                actions=[action], arms=way.arms, deciders=way.deciders,
            )
        )  # fmt: skip
        return index

    def _action(self, action: ir.Action) -> TableAction:
        run = Run(
            self.everywhere,
            count_reads(action.body),
            frozenset(action.params),
            self.resolve,
            KnownValues(in_action=True),
            in_hash=self.program.in_hash,
        )
        run.take(action.body)
        params = tuple((p, bit_width(p.type) or 0) for p in action.params)
        return TableAction(action.name, params, run.operations, action.span)

    def _plain(self, stmts: Sequence[ir.Stmt], way: _Way) -> None:
        """Make tables without a key of statements: a new one where a statement depends on one
        before it, or where both use an extern."""
        if not stmts:
            return
        run = Run(
            self.everywhere,
            count_reads(stmts),
            frozenset(),
            self.resolve,
            KnownValues(in_action=False, copies=self.known),
            self.program.called_actions,
            self.program.in_hash,
            across=across_actions(stmts, self.program.called_actions),
            indices=indices(stmts),
        )
        group: list[Operation] = []
        for stmt in stmts:
            at = len(run.operations)
            known = dict(self.known)
            run.take([stmt])
            if group and any(in_another_action(o, group) for o in run.operations[at:]):
                self._keyless(group, way)
                group = []
                if run.known.hashes:  # no longer in the same action: read where they were put
                    run.again_from(at, known)
                    run.take([stmt])
            for operation in run.operations[at:]:
                if group and in_another_action(operation, group):
                    self._keyless(group, way)
                    group = []
                group.append(operation)
        if group:
            self._keyless(group, way)

    def _keyless(self, group: list[Operation], way: _Way) -> None:
        span = group[0].span
        name = f"{purpose(group)} ({line_name(span, self.file)})"
        action = TableAction(name, (), group, span)
        self.tables.append(
            LogicalTable(
                ACTION, name, span, self.gress, len(self.tables), actions=[action],
                arms=way.arms, deciders=way.deciders,
            )
        )  # fmt: skip


def _has_flow(stmt: ir.Stmt) -> bool:
    """Return whether a statement contains others, other than the access to a register."""
    if isinstance(stmt, ir.Block):
        return stmt.access is None and stmt.name != ir.SWEEP
    return isinstance(stmt, ir.Loop)


def _leaves(body: Sequence[ir.Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ir.Leave | ir.Exit)


# -- statements that share an action ----------------------------------------------------------


def in_another_action(operation: Operation, group: Sequence[Operation]) -> bool:
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


def purpose(group: Sequence[Operation]) -> str:
    """Return what statements are for, in short: the register they use, or what they set."""
    names = [use.instance.name.rpartition(".")[2] for use in _externs(group)]
    names += [place.name for op in group for place in op.writes]
    return names[0] if names else "statement"


# -- conditions on a deparser's checksums -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Update:
    """A checksum that is updated on a condition: what this reads, and the fields added up twice."""

    span: Span
    condition: list[Place]
    twice: list[Place]


def checksum_tables(
    control: ir.Control, deparser: ir.Control, gress: str, after: int, file: str
) -> list[LogicalTable]:
    """Return the tables for the conditional checksums of a deparser; after: how many tables the
    control has; file: the program's."""
    own = {str(p.var.type): p.var for p in control.params}
    updates = list(_updates(deparser.body, ()))
    copies = [u for u in updates if u.twice]
    tables = []
    for n, update in enumerate([*copies, *updates]):
        copied = n < len(copies)
        what = "copies for" if copied else "condition of"
        name = f"{what} checksum ({line_name(update.span, file)})"
        read = [_in_control(p, own) for p in (update.twice if copied else update.condition)]
        (bit,) = leaves(ir.Var(Bits(1, False), name, -1))
        value = Value(tuple(read) if copied else (), sources=1)
        action = TableAction(name, (), [Operation([bit], value, update.span)], update.span)
        tables.append(
            LogicalTable(
                ACTION, name, update.span, gress, after + n, key=() if copied else tuple(read),
                actions=[action], at_end=not copied,
            )
        )  # fmt: skip
    return tables


def _updates(body: Sequence[ir.Stmt], conditions: tuple[ir.Expr, ...]) -> Iterator[_Update]:
    sums: dict[ir.Var, ir.CallExtern] = {}
    for stmt in body:
        match stmt:
            case ir.If(cond=cond, then=then, other=other):
                for way in (then, other):
                    yield from _updates(way, (*conditions, cond))
            case ir.CallExtern(
                instance=ir.ExternInstance(kind="checksum"), result=ir.Var() as sum_
            ):
                sums[sum_] = stmt
            case ir.Assign(target=target, value=ir.Var() as sum_) if sum_ in sums:
                condition = list(dict.fromkeys(p for cond in conditions for p in reads(cond)))
                header = {(p.var, (*p.path[:-1], VALID)) for p in leaves(target)}
                if {p.field for p in condition} - header:
                    taken = Counter(p for e in sums[sum_].args for p in reads(e))
                    yield _Update(stmt.span, condition, [p for p, n in taken.items() if n > 1])


def _in_control(place: Place, own: Mapping[str, ir.Var]) -> Place:
    """Return a deparser's place as the control's: the parameter of the same type."""
    return replace(place, var=own.get(str(place.var.type), place.var))
