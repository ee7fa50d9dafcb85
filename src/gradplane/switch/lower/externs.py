"""Lower arguments of calls, and calls that remain in the IR: externs and packet methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker_types import substitute
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    STRING,
    Bits,
    Enum,
    Header,
    Integer,
    Stack,
    Struct,
    Type,
    Void,
)
from gradplane.switch.lower import register_cells
from gradplane.switch.lower.expressions import ExpressionLowering, has_call
from gradplane.switch.lower.instance_scope import PACKET, Binding
from gradplane.switch.lower.register_actions import RegisterActionCall
from gradplane.switch.lower.type_erasure import CODE, erase, erase_keeping_names, without_headers
from gradplane.switch.lower.user_externs import UserExternCall
from gradplane.switch.syntax import ast


class ExternLowering(ExpressionLowering):
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
            elif (found := self._object(arg)) is not None:
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

    def _object(self, arg: ast.Expr) -> Binding | None:
        if isinstance(arg, ast.Name) and arg.decl is not None and arg.const is None:
            found = self.env.find(arg.decl)
            if found is not None and not isinstance(found, ir.Expr):
                return found
        return None

    # -- calls ---------------------------------------------------------------------------------

    def _extern(self, e: ast.Call, info: CallInfo, wanted: bool) -> ir.Expr | None:
        if info.kind == "method":
            assert info.base is not None
            instance = self._object(info.base)
            if instance is PACKET:
                return self._packet(e, info)
        else:
            instance = None
            if info.name == "verify" and _takes(info, BOOL, ERROR):
                cond, error = self.exprs(*(a for a in info.args if a is not None))
                self.emit(ir.Verify(cond, error))
                return None
            if info.name == "static_assert":
                return self._static_assert(e, info)
        assert instance is None or isinstance(instance, ir.ExternInstance), instance
        if (
            instance.user_extern is not None
            if instance is not None
            else self.p.is_user_defined(info)
        ):
            return UserExternCall(self, e, info).lower(instance)
        if instance is not None and instance.kind == ir.REGISTER_ACTION:
            return RegisterActionCall(self, e, info, instance).lower()
        args, directions, copies = self._extern_arguments(info)
        result: ir.Var | None = None
        if not isinstance(info.signature.result, Void):
            result = self.variable(info.name, self.type_of(e))
        whole: ir.Var | None = result
        if instance is not None and instance.kind in ("register", "direct_register"):
            result, copies = self._pack_cell(instance, args, directions, result, copies)
        self.emit(
            ir.CallExtern(
                instance,
                info.name,
                args,
                directions,
                result,
                [self._erased(t) for t in info.type_args],
                [erase_keeping_names(substitute(t, self.env.types)) for t in info.type_args],
            )
        )
        self.out += copies
        return whole

    def _pack_cell(
        self,
        register: ir.ExternInstance,
        args: list[ir.Expr],
        directions: Sequence[str],
        result: ir.Var | None,
        copies: list[ir.Stmt],
    ) -> tuple[ir.Var | None, list[ir.Stmt]]:
        """Pack the struct that a register's cell gets, and unpack the one it gives, if it is one.

        Returns the variable for the call's result, and what is to be copied after the call.
        """
        unpacked: list[ir.Stmt] = []

        def cell(target: ir.Expr) -> ir.Var:
            bits = self.variable("cell", register.type_args[0])
            unpacked.append(self.copy_out(target, register_cells.unpacked(target.type, bits)))
            return bits

        for i, (arg, direction) in enumerate(zip(args, directions, strict=True)):
            if isinstance(arg.type, Struct):
                args[i] = cell(arg) if direction == "out" else register_cells.packed(arg)
        if result is not None and isinstance(result.type, Struct):
            result = cell(result)
        return result, unpacked + copies

    def _extern_arguments(self, info: CallInfo) -> tuple[list[ir.Expr], list[str], list[ir.Stmt]]:
        """Return arguments, their directions, and the statements that copy results out."""
        args: list[ir.Expr] = []
        directions: list[str] = []
        copies: list[ir.Stmt] = []
        values, saved = self.argument_values(info)
        for i, (arg, param) in enumerate(zip(info.args, info.signature.params, strict=True)):
            value = values[i]
            if arg is None and param.direction == "out":  # `_`
                value = self.variable(param.name, self._erased(param.type))
            elif isinstance(value, ir.Const) and (enum := _enum(info, i)) is not None:
                value = ir.Const(STRING, enum.members[int(value.value)])
            elif i in saved and isinstance(value, ir.Expr):
                copies.append(self.copy_out(value, saved[i]))
                value = saved[i]
            if isinstance(value, ir.Expr):
                args.append(expression_builder.sized(value))
                directions.append(param.direction)
        return args, directions, copies

    def _erased(self, t: Type) -> Type:
        return erase(substitute(t, self.env.types))

    def _static_assert(self, e: ast.Call, info: CallInfo) -> ir.Expr:
        cond = info.args[0]
        assert cond is not None
        value = self.expr(cond)
        if isinstance(value, ir.Const) and not value.value:
            message = info.args[1].const if len(info.args) > 1 and info.args[1] else ""
            self.p.reporter.error(e.span, f"static_assert failed: {message}".rstrip(": "))
        return expression_builder.TRUE

    def _packet(self, e: ast.Call, info: CallInfo) -> ir.Expr | None:
        """Lower methods of packet_in and packet_out."""
        match info.name:
            case "extract":
                self._extract(info)
                return None
            case "emit":
                assert info.args[0] is not None
                self.emit(ir.Emit(self.expr(info.args[0])))
                return None
            case "advance":
                assert info.args[0] is not None
                self.emit(ir.Advance(self.expr(info.args[0])))
                return None
            case "lookahead":
                target = self.variable(info.name, self.type_of(e))
                self._lookahead(target)
                return target
            case "length":
                target = self.variable(info.name, self.type_of(e))
                self.emit(ir.PacketLength(target))
                return target
        self.p.unsupported(e.span, f"the architecture's packets have no method {info.name}")
        return UserExternCall(self, e, info).lower(None)

    def _lookahead(self, target: ir.Var) -> None:
        """Lower a lookahead.

        Engines support numbers, headers and structs of numbers. For types with headers in them, a
        struct of the same bits is read and then assigned to the headers.
        """
        flat = target.type if isinstance(target.type, Header) else without_headers(target.type)
        if flat == target.type:
            self.emit(ir.Lookahead(target))
            return
        bits = self.variable("bits", flat)
        self.emit(ir.Lookahead(bits))
        for statement in expression_builder.spread(target, bits):
            self.emit(statement)

    def _extract(self, info: CallInfo) -> None:
        target, *size = info.args
        if target is None:  # extract<T>(_): skips a T
            t = self._erased(info.type_args[0])
            self.emit(ir.Extract(self.variable("skipped", t)))
            return
        place = self.lvalue(target)
        bits = self.expr(size[0]) if size and size[0] is not None else None
        self.emit(ir.Extract(place, bits))


def _takes(info: CallInfo, *types: Type) -> bool:
    """Return whether a function's parameters have these types."""
    return tuple(p.type for p in info.signature.params) == types


def _enum(info: CallInfo, at: int) -> Enum | None:
    """Return the enum type of a parameter, if it has one: its constants are passed by name."""
    assert isinstance(info.decl, ast.FunctionDecl)
    declared = info.decl.params[at].type
    return declared if isinstance(declared, Enum) else None


def _typed(value: ir.Expr) -> ir.Expr:
    """Give an index without a type, which an extern made with the type `_` takes, 32 bits."""
    whole = isinstance(value.type, Integer)
    return expression_builder.cast(Bits(32), value) if whole else value
