"""Lower calls: functions, actions and sub-controls are inlined, tables applied.

Arguments are bound by reference where that cannot be observed, and otherwise copied in and out in
order (specification, section 6.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, INTEGER, STRING, Type, Void
from gradplane.switch.ir.walk import in_header, independent, overlap, path
from gradplane.switch.lower.expressions import leaves
from gradplane.switch.lower.externs import ExternLowering
from gradplane.switch.lower.register_cells import assignments, packed_type
from gradplane.switch.lower.shared_state import (
    ActionInstance,
    Binding,
    BlockInstance,
    Env,
    control_plane_name,
)
from gradplane.switch.lower.type_erasure import erase, type_name
from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

NEVER_STORED = (INTEGER, STRING)  # types without run-time values: such a parameter is its constant
STARTED_ANEW = ("Checksum", "InternetChecksum")  # PSA: their state lasts for one run of their block


class CallLowering(ExternLowering):
    # -- calls ---------------------------------------------------------------------------------

    def call(self, e: ast.Call, wanted: bool) -> ir.Expr | None:
        """Lower a call; return its value if it has one."""
        info: CallInfo = e.info
        if e.const is not None:
            return self.expr(e)
        match info.kind:
            case "function" | "action":
                return self._inline_callable(e, info)
            case "builtin":
                return self._builtin(info)
            case "table":
                self.apply_table(e)
                return None
            case "block":
                self.apply_block(info)
                return None
        return self._extern(e, info, wanted)

    def _builtin(self, info: CallInfo) -> ir.Expr | None:
        assert info.base is not None
        if info.name == "isValid":
            return expression_builder.valid(self.expr(info.base))
        target = self.lvalue(info.base)
        if info.name in ("setValid", "setInvalid"):
            self.emit(ir.SetValid(target, info.name == "setValid"))
            return None
        count = info.args[0]
        assert count is not None
        kind = ir.Push if info.name == "push_front" else ir.Pop
        self.emit(kind(target, count.const))
        return None

    def apply_table(
        self, e: ast.Call, hit: ir.Var | None = None, action_run: ir.Var | None = None
    ) -> ir.Table:
        base = e.info.base
        assert isinstance(base, ast.Name)
        table = self.env.find(base.decl)
        assert isinstance(table, ir.Table), base.name
        self.emit(ir.ApplyTable(table, hit, action_run))
        if any(a.action.body is b for a in table.actions for b in self._exit_bodies):
            assert self._exiting is not None
            with self.into([]) as leaving:
                self.exit()
            self.emit(ir.If(self._exiting, leaving, []))
        return table

    def exit(self) -> None:
        """Copy out the results of all enclosing calls, then leave the top-level control.

        An action of a sub-control's table sets a flag instead, which is tested after the table is
        applied: only there is it known which calls enclose the sub-control.
        """
        for copies in reversed(self._copy_outs):
            self.out += copies
        if self._exit is None:
            self.emit(ir.Exit())
            return
        self._exiting = self._exiting or self.variable("exiting", BOOL)
        self.emit(ir.Assign(self._exiting, expression_builder.TRUE))
        self.emit(ir.Leave(self._exit))

    # -- inlining ------------------------------------------------------------------------------

    def _inline_callable(self, e: ast.Call, info: CallInfo) -> ir.Expr | None:
        """Inline a P4 function, or an action that is called directly."""
        self.p.count_inlined(e.span)
        decl = info.decl
        assert isinstance(decl, ast.FunctionDecl | ast.ActionDecl) and decl.body is not None
        result = None
        if not isinstance(info.signature.result, Void):
            result = self.variable("result", self._erased(info.signature.result))
        outer = self.env
        home = self.p.top
        if isinstance(decl, ast.ActionDecl):
            self.p.called_actions.update(dict.fromkeys(_statements(decl.body), decl.span))
            found = outer.find(decl)
            if isinstance(found, ActionInstance):
                home = found.env
                if not self._acting:
                    self.p.note_direct_action(found)
        variables = decl.signature.type_params
        types = {v: outer.resolved(t) for v, t in zip(variables, info.type_args, strict=False)}
        inner = home.inner({**home.types, **types})
        copies = self._bind_arguments(
            info, decl.params, inner, by_reference=isinstance(decl, ast.FunctionDecl)
        )
        self._copy_outs.append(copies)
        with self.scope(inner), self.returns(result), self.acting():
            self.stmts(decl.body.body)
        self._copy_outs.pop()
        self.out += copies
        return result

    def apply_block(self, info: CallInfo) -> None:
        """Inline the body of a sub-control."""
        self.p.count_inlined(self._span)
        instance = self.block_instance(info)
        again = instance.elaborated is not None
        env, copies = self.enter_block(info, instance)
        decl = instance.decl
        assert isinstance(decl, ast.ControlDecl)
        self._copy_outs.append(copies)
        often, self._often = self._often, self._often or instance.sites > 1
        with self.scope(env), self.returns(None):
            self.initialise(decl.locals, again)
            with self.scope():
                self.stmts(decl.body.body)
        self._often = often
        self._copy_outs.pop()
        self.out += copies

    def block_instance(self, info: CallInfo) -> BlockInstance:
        if info.constructed is not None:  # C.apply(): an anonymous instance, named C
            return self.p.direct_instance(info, self.env)
        assert isinstance(info.base, ast.Name)
        found = self.env.find(info.base.decl)
        assert isinstance(found, BlockInstance), info.base.name
        return found

    def enter_block(self, info: CallInfo, instance: BlockInstance) -> tuple[Env, list[ir.Stmt]]:
        """Bind the arguments and, the first time, make the block's own objects."""
        decl = instance.decl
        if instance.elaborated is None:
            env = instance.env.inner()
            env.path = instance.name
            by_reference = instance.sites == 1 and not self.repeats and not self._often
            copies = self._bind_arguments(info, decl.params, env, by_reference)
            with self.nesting():
                self.p.elaborate(decl, env, self)
            instance.elaborated = env
            return env, copies
        env = instance.elaborated
        return env, self._rebind_arguments(info, decl, env)

    def enter_parser(self, info: CallInfo, instance: BlockInstance) -> tuple[Env, list[ir.Stmt]]:
        """Enter a sub-parser, as enter_block does, but by reference.

        Each call has its own states, so its parameters can be its arguments. `reject` leaves the
        states from anywhere without copying out, and what was extracted stays.
        """
        decl = instance.decl
        if instance.elaborated is None:
            instance.elaborated = instance.env.inner()
            instance.elaborated.path = instance.name
            with self.nesting():
                self.p.elaborate(decl, instance.elaborated, self)
        env = instance.elaborated.inner()
        return env, self._bind_arguments(info, decl.params, env, by_reference=True)

    def initialise(self, members: Sequence[ast.Decl], again: bool = False) -> None:
        """Initialise a block's variables; `again`: the block may have run before."""
        for member in members:
            if isinstance(member, ast.VarDecl):
                var = self.env.find(member)
                assert isinstance(var, ir.Var)
                if member.init is not None:
                    self.emit(ir.Assign(var, self.expr(member.init)), member.span)
                elif again or self.repeats:
                    self.emit(ir.Assign(var, ir.Zero(var.type)), member.span)
            elif isinstance(member, ast.Instantiation) and (again or self.repeats):
                instance = self.env.find(member)
                if (
                    isinstance(instance, ir.ExternInstance)
                    and instance.user_extern is None
                    and instance.type in STARTED_ANEW
                ):
                    self.emit(ir.CallExtern(instance, "clear", [], []), member.span)

    def _bind_arguments(
        self, info: CallInfo, params: Sequence[ast.Param], env: Env, by_reference: bool
    ) -> list[ir.Stmt]:
        """Bind each parameter; return the statements that copy results out afterwards."""
        values, saved = self.argument_values(info)
        copies: list[ir.Stmt] = []
        for i, (param, value) in enumerate(zip(params, values, strict=True)):
            formal = info.signature.params[i]
            t_checked = self.env.resolved(formal.type)
            if value is None or not isinstance(value, ir.Expr):
                self._bind_object(param, value, t_checked, env)
                continue
            if isinstance(value, ir.Const) and value.type in NEVER_STORED:
                env.bind(param, value)
                continue
            if i in saved:
                env.bind(param, saved[i])
                copies.append(self.copy_out(value, saved[i]))
                continue
            others = [v for j, v in enumerate(values) if j != i and isinstance(v, ir.Expr)]
            if by_reference and self._shareable(param.direction, value, others):
                if param.direction == "out":
                    assert isinstance(value, ir.LValue)
                    self.emit(ir.Assign(value, ir.Zero(value.type)))
                env.bind(param, value)
                continue
            var = self.variable(param.name, erase(t_checked))
            env.bind(param, var)
            self._copy(param.direction, var, value, copies)
        return copies

    def _bind_object(self, param: ast.Param, value: Binding | None, t: Type, env: Env) -> None:
        """Bind packet_in, an extern instance, or an argument left out: `_` or @optional."""
        if value is None:
            env.bind(param, self.spill(ir.Zero(erase(t)), param.name))
        else:
            env.bind(param, value)

    def _rebind_arguments(
        self, info: CallInfo, decl: ast.ParserDecl | ast.ControlDecl, env: Env
    ) -> list[ir.Stmt]:
        """Assign the arguments of a further apply to the instance's existing parameters."""
        copies: list[ir.Stmt] = []
        values, saved = self.argument_values(info)
        for i, (param, value) in enumerate(zip(decl.params, values, strict=True)):
            bound = env.find(param)
            if not isinstance(bound, ir.LValue):
                if value is not None and value != bound:
                    self._check_same_object(param, decl)
                    env.bind(param, value)
                continue
            if not isinstance(value, ir.Expr):  # `_`: the result is discarded
                self.emit(ir.Assign(bound, ir.Zero(bound.type)))
            elif i in saved:
                self.emit(ir.Assign(bound, saved[i]))
                copies.append(self.copy_out(value, bound))
            elif path(bound) is None or path(bound) != path(value):
                self._copy(param.direction, bound, value, copies)
            elif param.direction == "out":
                self.emit(ir.Assign(bound, ir.Zero(bound.type)))
        return copies

    def _check_same_object(self, param: ast.Param, decl: ast.ParserDecl | ast.ControlDecl) -> None:
        """Report a parameter bound to another object or number than at an earlier apply.

        A table exists once per instance, so its keys and actions cannot depend on such a parameter.
        """
        has_tables = any(isinstance(m, ast.TableDecl) for m in decl.locals)
        if has_tables and any(
            isinstance(n, ast.Name) and n.decl is param for n in walk(decl.locals)
        ):
            self.p.reporter.error(
                self._span,
                f"{decl.name} is applied with different {param.name}, which its tables use",
                "make an instance for each",
            )

    def _copy(self, direction: str, var: ir.LValue, value: ir.Expr, copies: list[ir.Stmt]) -> None:
        if direction == "out":
            self.emit(ir.Assign(var, ir.Zero(var.type)))
        else:
            self.emit(ir.Assign(var, value))
        if direction in ("out", "inout"):
            copies.append(self.copy_out(value, var))

    def _shareable(self, direction: str, value: ir.Expr, others: Sequence[ir.Expr]) -> bool:
        """Return whether a parameter may be an alias of its argument.

        It may not if it is written and part of a header: an invalid header ignores writes.
        """
        if isinstance(value, ir.Const):
            return direction in ("", "in")
        if not independent(value) or (direction in ("out", "inout") and in_header(value)):
            return False
        return not any(overlap(value, o) for o in others)

    # -- table actions -------------------------------------------------------------------------

    def action_body(
        self, action: ActionInstance, bound: Sequence[ast.Expr], data: list[ir.Var]
    ) -> list[ir.Stmt]:
        """Return the IR body of an action used by a table.

        Its directionless parameters are appended to `data`; `bound` are the table's arguments for
        the others.
        """
        with self.into([]) as out, self.repeating(), self.acting():
            inner = action.env.inner()
            copies: list[ir.Stmt] = []
            arguments = iter(bound)
            for param in action.decl.params:
                assert param.type is not None
                t = erase(param.type)
                annotations = param.notes
                var = self.p.variable(param.name, t)
                if not param.direction:
                    given = self._given(var)
                    given.name = control_plane_name("", param.name, annotations)
                    given.annotations, given.type_name = annotations, type_name(param.type)
                    data.append(given)
                else:
                    self.locals.append(var)
                    arg = next(arguments)
                    if param.direction == "in":
                        self.emit(ir.Assign(var, self.expr(arg)))
                    else:
                        self._copy(param.direction, var, self.lvalue(arg), copies)
                inner.bind(param, var)
            with self._own_exit([copies]), self.scope(inner), self.returns(None):
                self.stmts(action.decl.body.body)
            self.out += copies
        return out

    def _given(self, var: ir.Var) -> ir.Var:
        """Return a parameter as entries give it: a struct or array as one number, the first part
        on top."""
        packed = packed_type(var.type)
        if packed == var.type:
            return var
        given = self.p.variable(var.name, packed)
        self.locals.append(var)
        for assignment in assignments(var, given):
            self.emit(assignment)
        return given

    @contextmanager
    def _own_exit(self, copy_outs: list[list[ir.Stmt]]) -> Iterator[None]:
        """Lower, in this context, a table's action, whose exit must not copy out here.

        The calls around the action now are not those around the table's apply.
        """
        saved, self._copy_outs = self._copy_outs, copy_outs
        block = ir.Block([], "exit")
        out = self.out
        self._exit = block if self._nested else None
        with self.into(block.body):
            yield
        self._exit, self._copy_outs = None, saved
        if leaves(block.body, block):
            self.emit(block)
            self._exit_bodies.append(out)
        else:
            self.out += block.body


def _statements(body: ast.Block) -> Iterator[Span]:
    """Yield the places of the statements of a body, also of those in blocks, and of their calls."""
    return (node.span for node in walk(body) if isinstance(node, ast.Stmt | ast.Call))
