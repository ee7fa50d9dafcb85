"""Lower calls that remain in the IR: externs, user-defined ones too, and packet methods."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.check.records import CallInfo
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    STRING,
    Array,
    Bits,
    Enum,
    Header,
    Struct,
    Type,
    Void,
)
from gradplane.switch.lower import register_cells
from gradplane.switch.lower.expressions import ArgumentLowering
from gradplane.switch.lower.register_actions import RegisterActionCall
from gradplane.switch.lower.shared_state import PACKET, Binding
from gradplane.switch.lower.type_erasure import (
    erase,
    erase_keeping_names,
    extern_type,
    without_headers,
)
from gradplane.switch.syntax import ast


class UserExternCall:
    """A call being lowered. Results go to variables, which are copied out afterwards."""

    def __init__(self, body: ArgumentLowering, e: ast.Call, info: CallInfo) -> None:
        self.body = body
        self.e = e
        self.info = info
        self.copies: list[ir.Stmt] = []

    def lower(self, instance: ir.ExternInstance | None) -> ir.Expr | None:
        """Emit the call; return the variable with its result, if it has one."""
        body, info = self.body, self.info
        values, saved = body.argument_values(info)
        args = []
        for i, (param, value) in enumerate(zip(info.signature.params, values, strict=True)):
            if param.direction in ("out", "inout"):
                value = self._place(i, value, saved)
            kind = self._extern_type(param.type)
            args.append(
                ir.UserExternArgument(param.name, param.direction, kind, self._given(value))
            )
        result = None
        if not isinstance(info.signature.result, Void):
            result = body.variable(info.name, body.type_of(self.e))
        kind = self._extern_type(info.signature.result)
        call = ir.CallUserExtern(instance, info.name, args, result, kind)
        body.p.user_extern_calls.append(call)
        body.emit(call, self.e.span)
        body.out += self.copies
        return result

    def _place(self, i: int, value: Binding | None, saved: dict[int, ir.Var]) -> ir.Var | None:
        """Return the variable for an out or inout argument; None for an optional one left out."""
        param, body = self.info.signature.params[i], self.body
        if value is None and param.direction == "inout":
            return None
        if value is None:  # `_`
            return body.variable(param.name, self._erased(param.type))
        assert isinstance(value, ir.Expr), value
        var = saved.get(i) or body.variable(param.name, value.type)
        if param.direction == "inout" and i not in saved:
            body.emit(ir.Assign(var, value))
        self.copies.append(body.copy_out(value, var))
        return var

    def _given(self, value: Binding | None) -> ir.Expr | ir.ExternInstance | None:
        if value is None or isinstance(value, ir.Expr | ir.ExternInstance):
            return value
        what = "a user-defined extern can only take values and extern objects"
        self.body.p.unsupported(self.e.span, what)
        return None

    def _extern_type(self, t: Type) -> Type:
        return extern_type(self.body.env.resolved(t))

    def _erased(self, t: Type) -> Type:
        return erase(self.body.env.resolved(t))


class ExternLowering(ArgumentLowering):
    # -- calls ---------------------------------------------------------------------------------

    def _extern(self, e: ast.Call, info: CallInfo, wanted: bool) -> ir.Expr | None:
        if info.kind == "method":
            assert info.base is not None
            if (index := self._run_time_index(info.base)) is not None:
                return self._extern_by_index(e, info, wanted, index)
            instance = self.object_of(info.base)
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
                [erase_keeping_names(self.env.resolved(t)) for t in info.type_args],
            )
        )
        self.out += copies
        return whole

    def _run_time_index(self, base: ast.Expr) -> ast.Index | None:
        """Return the first index of an array of extern instances that depends on the packet."""
        found = None
        while isinstance(base, ast.Index):
            if base.index.const is None and base not in self.chosen:
                found = base
            base = base.base
        return found

    def _extern_by_index(
        self, e: ast.Call, info: CallInfo, wanted: bool, index: ast.Index
    ) -> ir.Expr | None:
        """Lower a method's call as a switch on an index: outside the array nothing is called, and
        the result is zero."""
        value, array = self.expr(index.index), index.base.type
        assert isinstance(array, Array), index
        subject = self.spill(value)
        assert isinstance(subject.type, Bits), index
        result = None
        if not isinstance(info.signature.result, Void):
            result = self.variable(info.name, self.type_of(e))
        cases: list[tuple[list[int], list[ir.Stmt]]] = []
        for at in range(min(array.size, limits(subject.type)[1] + 1)):
            self.chosen[index] = at
            with self.into([]) as body:
                found = self._extern(e, info, wanted)
                if result is not None and found is not None:
                    self.emit(ir.Assign(result, found))
            cases.append(([at], body))
        del self.chosen[index]
        self.emit(ir.SwitchStmt(subject, cases, []))
        return result

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
            if isinstance(arg.type, Struct | Array):
                args[i] = cell(arg) if direction == "out" else register_cells.packed(arg)
        if result is not None and isinstance(result.type, Struct | Array):
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
        return erase(self.env.resolved(t))

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
