"""Lower the arguments of calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Integer, Stack
from gradplane.switch.lower.expressions import ExpressionLowering, has_call
from gradplane.switch.lower.shared_state import Binding
from gradplane.switch.lower.type_erasure import CODE
from gradplane.switch.syntax import ast


class ArgumentLowering(ExpressionLowering):
    @abstractmethod
    def stmts(self, statements: Sequence[ast.Stmt]) -> None:
        """Lower statements."""

    # -- arguments -----------------------------------------------------------------------------

    def argument_values(self, info: CallInfo) -> tuple[list[Binding | None], dict[int, ir.Var]]:
        """Evaluate arguments in order: l-values for out and inout, else values or objects.

        A value that evaluating a later argument may change is saved before; for an inout argument
        the second result has the variable it was saved in.
        """
        values: list[Binding | None] = [None] * len(info.args)
        saved: dict[int, ir.Var] = {}
        order = [(i, arg) for i in info.order if (arg := info.args[i]) is not None]
        for n, (i, arg) in enumerate(order):
            direction = info.signature.params[i].direction
            changes = any(has_call(later) for _, later in order[n + 1 :])
            if direction in ("out", "inout"):
                place = values[i] = self._settled(self.lvalue(arg))
                if direction == "inout" and changes:
                    saved[i] = self.spill(place)
            elif (found := self.object_of(arg)) is not None:
                values[i] = found
            else:
                value = self.expr(arg)
                if not isinstance(info.signature.params[i].type, Integer):
                    value = _typed(value)
                keep = isinstance(value, ir.Const) or not changes
                values[i] = value if keep else self.spill(value)
        return values, saved

    def _settled(self, place: ir.Expr) -> ir.LValue:
        """Return the storage that an argument names now, whatever `next` and `last` are later."""
        match place:
            case ir.FieldOf(base=base, index=index):
                place = expression_builder.field(self._settled(base), index)
            case ir.ElementOf(base=base, index=index):
                place = expression_builder.element(self._settled(base), index)
            case ir.SliceOf(base=base, hi=hi, lo=lo):
                place = ir.SliceOf(place.type, self._settled(base), hi, lo)
            case ir.NextOf(base=base) | ir.LastOf(base=base):
                place = self._stack_end(self._settled(base), following=isinstance(place, ir.NextOf))
        assert isinstance(place, ir.LValue), place
        return place

    def _stack_end(self, stack: ir.LValue, following: bool) -> ir.Expr:
        """Return the next or last element of a stack as an element with an index."""
        assert isinstance(stack.type, Stack), stack.type
        last = ir.LastIndex(Bits(32), stack)
        index = (
            expression_builder.binary("+", last, expression_builder.number(last.type, 1))
            if following
            else last
        )
        at = self.spill(index, "index")
        inside = expression_builder.binary(
            "<", at, expression_builder.number(at.type, stack.type.size)
        )
        outside = self.p.error_code("StackOutOfBounds")
        self.emit(ir.Verify(inside, ir.Const(CODE, outside)))
        return expression_builder.element(stack, at)

    def copy_out(self, target: ir.Expr, value: ir.Expr) -> ir.Stmt:
        assert isinstance(target, ir.LValue), target
        return ir.Assign(target, value, span=self._span)

    def object_of(self, arg: ast.Expr) -> Binding | None:
        if isinstance(arg, ast.Name) and arg.decl is not None and arg.const is None:
            found = self.env.find(arg.decl)
            if found is not None and not isinstance(found, ir.Expr):
                return found
        return None


def _typed(value: ir.Expr) -> ir.Expr:
    """Give an index without a type, which an extern made with the type `_` takes, 32 bits."""
    whole = isinstance(value.type, Integer)
    return expression_builder.cast(Bits(32), value) if whole else value
