"""Lower register actions: programs of a stateful ALU, which read a register's cell, change it and
write it back in one access.

    sum = add.execute(i)   ->   cell = register.read(i)
                                value = cell
                                rv = 0
                                ... the abstract method `apply` on value and rv ...
                                register.write(i, value)
                                sum = rv

`sweep` does so with every cell, in a loop. The method is inlined, since it may use the variables of
the block around it. Helpers that only a method may call (predicate, min8, ...) become expressions.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.expression_builder import comparisons
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import BOOL, Bits, Type, Void, bit_width
from gradplane.switch.ir.walk import nested, outside_helpers, rewrite, variables
from gradplane.switch.lower import register_cells
from gradplane.switch.lower.expressions import ArgumentLowering
from gradplane.switch.lower.register_cells import FIRST, NUMBER, OWN_INDEX, OwnIndex
from gradplane.switch.lower.shared_state import AbstractMethod, Binding
from gradplane.switch.lower.type_erasure import erase
from gradplane.switch.syntax import ast

PREDICATE = "predicate"
"""A helper: a number with a bit for each condition of a register action's body."""

PREDICATE_NUMBER = Bits(16)  # four conditions make sixteen combinations
_ADDRESS = "address"
_PARTS = {"min8": 8, "max8": 8, "min16": 16, "max16": 16}  # helpers, and the bits of their parts


class RegisterActionCall:
    """A call of a register action's method."""

    def __init__(
        self, body: ArgumentLowering, e: ast.Call, info: CallInfo, instance: ir.ExternInstance
    ) -> None:
        self.body = body
        self.e = e
        self.info = info
        self.instance = instance

    def lower(self) -> ir.Expr | None:
        """Emit the call; return its value if it has one."""
        name = self.info.name
        if self.body.p.accessing and name in ("execute", ir.SWEEP, *OWN_INDEX):
            what = f"{self.instance.type}.{name} in the body of a register action"
            self.body.p.unsupported(self.e.span, what, "an access is one register's only")
            return self._nothing()
        if name == "execute" or name in OWN_INDEX:
            return self._execute()
        if name == ir.SWEEP:
            self._sweep()
            return None
        if name == PREDICATE:
            return self._predicate()
        if name == _ADDRESS:
            return self._address()
        if name in _PARTS:
            return self._extreme()
        what = f"{self.instance.type}.{name} is not implemented"
        known = "implemented: execute, execute_log, push, pop, enqueue, dequeue, sweep, ..."
        self.body.p.unsupported(self.e.span, what, known)
        return self._nothing()

    def _result(self) -> Type:
        return self.body.type_of(self.e)

    def _nothing(self) -> ir.Expr | None:
        """Return a value for a call that was refused."""
        t = self._result()
        return None if isinstance(t, Void) else build.zero(t)

    # -- the access -----------------------------------------------------------------------------

    def _execute(self) -> ir.Expr | None:
        body, info = self.body, self.info
        register = self.instance.accessed
        method = body.p.methods.get((self.instance, "apply"))
        if register is None:
            body.p.unsupported(self.e.span, f"{self.instance.name}: its selector has no register")
        if register is None or method is None:
            return self._nothing()  # an error was reported
        values, _ = body.argument_values(info)
        given = dict(zip((p.name for p in info.signature.params), values, strict=True))
        index = given.pop("index", None)
        if info.name in OWN_INDEX:
            results = self._at_own_index(register, method)
            return self._given_out(results, list(given.values()))
        if register.kind == "register" and not isinstance(index, ir.Expr):
            what = f"{self.instance.name}.execute needs the index of a cell"
            body.p.unsupported(self.e.span, what)
            return self._nothing()
        place: list[ir.Expr] = []  # the arguments that say which cell it is
        if isinstance(index, ir.Expr) and register.kind == "register":
            place = [index if isinstance(index, ir.Const) else body.spill(index, "index")]
        block = ir.Block([], "access", self.instance)
        with body.into(block.body):
            results = self._access(register, place, method)
        body.emit(block, self.e.span)
        return self._given_out(results, list(given.values()))

    def _given_out(self, results: list[ir.Var], targets: list[Binding | None]) -> ir.Var | None:
        """Return the first result as the call's value; assign the others to its out arguments."""
        body = self.body
        if isinstance(self._result(), Void):
            return None
        result = body.variable(self.info.name, self._result())
        if results:
            body.emit(ir.Assign(result, build.cast(result.type, results[0])), self.e.span)
        self._copy_out(targets, results[1:])
        return result

    def _at_own_index(self, register: ir.ExternInstance, method: AbstractMethod) -> list[ir.Var]:
        """Emit an access to the cell that the register's own numbers choose.

        Return the variables with its results. A full or empty register runs `overflow` or
        `underflow`, without a cell, if the program has it.
        """
        body, name = self.body, self.info.name
        plan = OwnIndex(register.number("size"), name)
        held = {part: body.variable(part, NUMBER) for part in plan.parts}
        for part, var in held.items():
            owner = body.p.hidden_register(f"{register.name}.${part}", NUMBER)
            body.emit(ir.CallExtern(owner, "read", [FIRST], ["in"], var), self.e.span)
        formals = self._formals(method)[1:]
        merged = [body.spill(ir.Zero(erase(method.env.resolved(t)))) for t in formals]
        index = body.spill(plan.index(held), "index")
        branches: list[list[ir.Stmt]] = [[], []]
        block = ir.Block([], "access", self.instance)
        with body.into(branches[0]):
            with body.into(block.body):
                results = self._access(register, [index], method)
            body.emit(block, self.e.span)
            self._merge(merged, results)
            for part, value in plan.after(held).items():
                owner = body.p.hidden_register(f"{register.name}.${part}", NUMBER)
                args = [FIRST, build.cast(NUMBER, value)]
                body.emit(ir.CallExtern(owner, "write", args, ["in", "in"]), self.e.span)
        other = body.p.methods.get((self.instance, plan.otherwise))
        if other is not None:
            with body.into(branches[1]):
                variables = self._run(other, None)
                outs = zip(other.decl.params, variables, strict=True)
                self._merge(merged, [v for p, v in outs if p.direction == "out"])
        body.emit(ir.If(plan.possible(held), *branches), self.e.span)
        return merged

    def _sweep(self) -> None:
        """Emit an access to each of the register's cells, from the first on."""
        body = self.body
        register = self.instance.accessed
        method = body.p.methods.get((self.instance, "apply"))
        if register is None or method is None:
            return  # an error was reported
        body.argument_values(self.info)  # the value for packets that find the register busy
        size = register.number("size")
        if size > ir.LOOP_LIMIT:
            what = f"{self.instance.name}.sweep: {register.name} has {size} cells"
            body.p.unsupported(self.e.span, what, f"at most {ir.LOOP_LIMIT} can be swept")
            return
        index = body.spill(FIRST, "index")
        access, done = ir.Block([], "access", self.instance), ir.Block([], ir.SWEEP)
        round_: list[ir.Stmt] = []
        with body.into(access.body):
            self._access(register, [index], method)
        with body.into(round_):
            body.emit(access, self.e.span)
            following = build.binary("+", index, build.number(NUMBER, 1))
            body.emit(ir.Assign(index, following), self.e.span)
            last = build.binary(">=", index, build.number(NUMBER, size))
            body.emit(ir.If(last, [ir.Leave(done)], []), self.e.span)
        done.body = [ir.Loop(round_)]
        body.emit(done, self.e.span)

    def _merge(self, targets: list[ir.Var], results: list[ir.Var]) -> None:
        for target, result in zip(targets, results, strict=False):
            self.body.emit(ir.Assign(target, build.cast(target.type, result)), self.e.span)

    def _access(
        self, register: ir.ExternInstance, place: list[ir.Expr], method: AbstractMethod
    ) -> list[ir.Var]:
        """Emit the read, the method and the write; return the variables with its results."""
        body, cell_type = self.body, register.type_args[0]
        cell = body.variable("cell", cell_type)
        body.emit(ir.CallExtern(register, "read", [*place], ["in"] * len(place), cell), self.e.span)
        body.p.accessed[self.instance] = place
        value, *others = self._run(method, cell)
        results = [
            v for p, v in zip(method.decl.params[1:], others, strict=True) if p.direction == "out"
        ]
        whole = register_cells.packed(value)
        if bit_width(value.type) != bit_width(cell_type):
            whole = build.cast(Bits(bit_width(cell_type) or 1), whole)
        written = build.cast(cell_type, whole)
        directions = ["in"] * (len(place) + 1)
        body.emit(ir.CallExtern(register, "write", [*place, written], directions), self.e.span)
        return results

    def _run(self, method: AbstractMethod, cell: ir.Var | None) -> list[ir.Var]:
        """Emit a method; return the variables of its parameters. The first one begins with the
        cell's value, those that it reads with the digest and true, the others with 0."""
        body = self.body
        env = method.env.inner()
        variables: list[ir.Var] = []
        for param, formal in zip(method.decl.params, self._formals(method), strict=True):
            var = body.variable(param.name, erase(env.resolved(formal)))
            env.bind(param, var)
            variables.append(var)
        given = self._inputs(method, variables)
        if cell is not None:
            given[0] = register_cells.unpacked(variables[0].type, self._sized(cell, variables[0]))
        for at, var in enumerate(variables):
            body.emit(ir.Assign(var, given.get(at, ir.Zero(var.type))))
        assert method.decl.body is not None
        lowered: list[ir.Stmt] = []
        body.p.accessing = True
        with body.scope(env), body.into(lowered), body.returns(None):
            body.stmts(method.decl.body.body)
        body.p.accessing = False
        self._fill_in_predicates(lowered, variables[0])
        body.out += lowered
        return variables

    def _inputs(self, method: AbstractMethod, variables: list[ir.Var]) -> dict[int, ir.Expr]:
        """Return what a learn action gets, by the parameter's position: the digest, and whether it
        may learn, which the only way of a register always may."""
        at = [i for i, param in enumerate(method.decl.params) if param.direction == "in"]
        if len(at) != 2 or not self.instance.type.startswith(ir.LEARN_ACTIONS):
            return {}
        digest, learn = at
        wanted = variables[digest].type
        if not isinstance(wanted, Bits) or wanted.signed:
            what = f"{self.instance.name}: a digest is bit<W>, not {wanted}"
            self.body.p.unsupported(method.decl.span, what)
            return {}
        return {digest: build.cast(wanted, self.body.table_digest()), learn: ir.Const(BOOL, True)}

    def _fill_in_predicates(self, lowered: list[ir.Stmt], value: ir.Var) -> None:
        """Compute before a body what its calls of `predicate` without conditions give: an ALU
        compares once, the cell as it was."""
        calls = _predicate_calls(lowered, self.instance)
        if not calls:
            return
        conditions = _own_conditions(lowered)
        changed = _assigned(lowered) - {value}
        for condition in conditions:
            if not changed.isdisjoint(variables(condition)):
                what = f"predicate(): {expression_text(condition)} reads what the body computes"
                self.body.p.unsupported(
                    calls[0].span, what, "write the conditions as its arguments"
                )
                return
        body = self.body
        number = body.variable(PREDICATE, PREDICATE_NUMBER)
        body.emit(ir.Assign(number, _one_hot(conditions)), calls[0].span)
        _replace(lowered, calls, number)

    def _formals(self, method: AbstractMethod) -> list[Type]:
        signature = method.decl.signature
        return [param.type for param in signature.params]

    def _sized(self, cell: ir.Var, value: ir.Var) -> ir.Expr:
        """Return the cell's bits, as many as the value has."""
        return build.cast(Bits(bit_width(value.type) or 1), cell)

    def _copy_out(self, targets: list[Binding | None], results: list[ir.Var]) -> None:
        """Assign the second result and those after it to the call's out arguments."""
        body = self.body
        for i, target in enumerate(targets):
            if isinstance(target, ir.LValue):
                value = results[i] if i < len(results) else build.zero(target.type)
                body.out.append(body.copy_out(target, build.cast(target.type, value)))

    # -- helpers --------------------------------------------------------------------------------

    def _given(self, name: str) -> ir.Expr | None:
        for param, arg in zip(self.info.signature.params, self.info.args, strict=True):
            if param.name == name and arg is not None:
                return self.body.expr(arg)
        return None

    def _predicate(self) -> ir.Expr:
        """Return the number of the conditions. Without any, they are the comparisons of the whole
        body, which `_fill_in_predicates` knows."""
        conditions = [self.body.expr(a) for a in self.info.args if a is not None]
        if conditions:
            return build.cast(self._result(), _one_hot(conditions))
        found = self.body.variable(PREDICATE, self._result())
        call = ir.CallExtern(self.instance, PREDICATE, [], [], found)
        self.body.emit(call, self.e.span)
        return found

    def _address(self) -> ir.Expr:
        """Return the index of the cell; with a subword, twice the index and the subword."""
        place = self.body.p.accessed.get(self.instance)
        if not place:
            what = f"{self.instance.name}.address: the cell has no index"
            self.body.p.unsupported(self.e.span, what, "call it in `apply`, of a Register")
            return build.zero(self._result())
        subword = self._given("subword")
        index = build.cast(NUMBER, place[0])
        if subword is not None:
            two = build.binary("*", index, build.number(NUMBER, 2))
            index = build.binary("|", two, build.cast(NUMBER, subword))
        block = ir.Block([], ir.HELPER)
        self.body.emit(block, self.e.span)
        with self.body.into(block.body):
            return self.body.spill(build.cast(self._result(), index), _ADDRESS)

    def _extreme(self) -> ir.Expr:
        """Return the least or greatest of a cell's parts that the mask chooses, and where it is.

        Part 0 is the lowest; of equal parts the first is chosen. No part: 0."""
        body, name = self.body, self.info.name
        value, mask = self._given("val"), self._given("mask")
        assert value is not None and mask is not None, name
        width = _PARTS[name]
        block = ir.Block([], ir.HELPER)
        body.emit(block, self.e.span)
        with body.into(block.body):
            found = self._search(value, mask)
        more = self._given("postmod")
        if more is None:
            return found
        added = build.cast(Bits(width), build.cast(Bits(width, True), more))
        return build.binary("+", found, added)

    def _search(self, value: ir.Expr, mask: ir.Expr) -> ir.Var:
        """Emit the search for the part; return the variable that holds it."""
        body, name = self.body, self.info.name
        width, total = _PARTS[name], bit_width(value.type) or 0
        cell = body.spill(register_cells.packed(value), "parts")
        found = body.spill(build.number(Bits(width), 0), name)
        at = body.spill(build.number(Bits(8), 0), "at")
        any_found = body.spill(ir.Const(BOOL, False), "found")
        chosen = body.spill(mask, "mask")
        for i in range(min(total // width, bit_width(mask.type) or 0)):
            part = build.slice_of(cell, width * i + width - 1, width * i)
            better = build.binary("<" if name.startswith("min") else ">", part, found)
            wanted = build.binary("==", build.slice_of(chosen, i, i), build.number(Bits(1), 1))
            first = build.unary("!", any_found)
            take = build.binary("&&", wanted, build.binary("||", first, better))
            body.emit(
                ir.If(
                    take,
                    [
                        ir.Assign(found, part),
                        ir.Assign(at, build.number(Bits(8), i)),
                        ir.Assign(any_found, ir.Const(BOOL, True)),
                    ],
                    [],
                ),
                self.e.span,
            )
        for param, arg in zip(self.info.signature.params, self.info.args, strict=True):
            if param.name == "index" and arg is not None:
                target = body.lvalue(arg)
                body.emit(ir.Assign(target, build.cast(target.type, at)), self.e.span)
        return found


# -- predicates --------------------------------------------------------------------------------
#
#     rv = this.predicate(value > x)   ->   rv = value > x ? 2 : 1
#     if (value > x) { value = x; }    ->   predicate = value > x ? 2 : 1
#     rv = this.predicate()                 if (value > x) { value = x; }
#                                           rv = predicate


def _one_hot(conditions: list[ir.Expr], position: int = 0) -> ir.Expr:
    """Return a number in which one bit is set: the one whose position the conditions are, the first
    in the lowest bit."""
    if not conditions:
        return build.number(PREDICATE_NUMBER, 1 << position)
    *rest, last = conditions
    then, other = (_one_hot(rest, 2 * position + bit) for bit in (1, 0))
    return build.mux(last, then, other)


def _predicate_calls(stmts: Iterable[ir.Stmt], action: ir.ExternInstance) -> list[ir.CallExtern]:
    """Return the calls of an action's `predicate` without conditions."""
    return [
        stmt for stmt in nested(stmts, outside_helpers)
        if isinstance(stmt, ir.CallExtern) and stmt.instance is action and stmt.name == PREDICATE
    ]  # fmt: skip


def _own_conditions(stmts: list[ir.Stmt]) -> list[ir.Expr]:
    """Return the different comparisons of a body in the order of its text, which is that of the
    ALU's comparators."""
    found: dict[tuple[str, str, str], ir.Expr] = {}
    for stmt in nested(stmts, outside_helpers):
        match stmt:
            case ir.Assign(value=e) | ir.If(cond=e):
                for key, comparison in comparisons(e):
                    found.setdefault(key, comparison)
    return list(found.values())


def _assigned(stmts: list[ir.Stmt]) -> set[ir.Expr]:
    """Return the variables that a body sets as a whole."""
    targets = [s.target for s in nested(stmts, outside_helpers) if isinstance(s, ir.Assign)]
    return {target for target in targets if isinstance(target, ir.Var)}


def _replace(stmts: list[ir.Stmt], calls: list[ir.CallExtern], value: ir.Expr) -> None:
    """Replace calls by assignments of a value."""

    def assigned_instead(stmt: ir.Stmt) -> list[ir.Stmt]:
        if not isinstance(stmt, ir.CallExtern) or stmt not in calls:
            return [stmt]
        assert stmt.result is not None
        return [ir.Assign(stmt.result, build.cast(stmt.result.type, value), span=stmt.span)]

    rewrite(stmts, assigned_instead)
