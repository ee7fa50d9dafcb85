"""Externs of TNA that other statements express, replaced when a program is loaded.

    counter.set(4)                ->   counter = 4
    x = min(a, b)                 ->   x = a < b ? a : b
    tm.ucast_egress_port = p      ->   tm.ucast_egress_port = p; tm.ucast_egress_port_is_set = 1
    mirror.emit(session, h)       ->   if (metadata.mirror_type == 2) mirror.emit(session, h)

What remains is in `externs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from gradplane.switch.arch.load_checks import full_name
from gradplane.switch.arch.tna import math_unit
from gradplane.switch.arch.tna.chips import Chip, chip_of
from gradplane.switch.arch.tna.key_masks import mask_keys
from gradplane.switch.arch.tna.parser_counters import COUNTER, ParserCounter, field_value
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Fields, Header, Struct, bit_width
from gradplane.switch.ir.walk import (
    Block,
    actions,
    blocks,
    bodies,
    nested,
    operands,
    rewrite,
    statements,
    with_operands,
)
from gradplane.switch.machine.externs import checksums
from gradplane.switch.source import Diagnostic

PREPARED = "tna"
_CONDITIONS = {"Mirror": "mirror_type", "Resubmit": "resubmit_type", "Digest": "digest_type"}
_FLAGGED = ("ucast_egress_port", "mcast_grp_a", "mcast_grp_b", *_CONDITIONS.values())
"""0 is a destination and a type, too: each has a flag beside it, whether the program has set it.
The chip's parser sets the type of mirror copies at ingress to 0, so that one has none."""
_VALID_SUM = 0xFFFF
PREFIX_BITS = 128
GENERATOR_REQUEST = Struct(
    "packet_generator_request",
    (Field("prefix", Bits(PREFIX_BITS)), Field("address", Bits(14)), Field("length", Bits(10))),
)
"""The request that Pktgen.emit sends: the program's header fills the upper bits of the prefix."""


def desugar(program: ir.Program) -> Iterable[Diagnostic]:
    """Replace the externs of a program in place, once; return what is wrong with their use."""
    if PREPARED in program.prepared:
        return []
    found = list(checksums.keep_state(program, {"Checksum": Bits(16)}))
    counters: dict[ir.ExternInstance, ParserCounter] = {}
    done: set[ir.Action] = set()
    for _, block in blocks(program.package):
        work = _Desugaring(block, chip_of(program), program.errors, counters, found)
        for body in bodies(block):
            rewrite(body, work.replaced)
        for action in actions(block):
            if action not in done:
                done.add(action)
                rewrite(action.body, work.replaced)
        work.deposit()
        if isinstance(block, ir.Control):
            mask_keys(program, block)
    if not found:
        program.prepared.add(PREPARED)
    return found


class _Desugaring:
    """The replacement in one block. `counters`: the parser counters.

    `deposits`: what must be computed anew after each header that is extracted."""

    def __init__(
        self,
        block: Block,
        chip: Chip,
        errors: list[str],
        counters: dict[ir.ExternInstance, ParserCounter],
        found: list[Diagnostic],
    ) -> None:
        self.block = block
        self.chip = chip
        self.errors = errors
        self.counters = counters
        self.found = found
        self.deposits: list[tuple[ir.Var, ir.CallExtern]] = []

    def replaced(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """Return the statements in the place of one, whose bodies have been rewritten."""
        new = self._replaced(stmt)
        for s in new:
            s.span = stmt.span
        return new

    def _replaced(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        if isinstance(stmt, ir.If) and any(map(_is_conditional, nested(stmt.then))):
            stmt.cond = _only_set(stmt.cond)
        if isinstance(stmt, ir.Assign):
            flag = _set_flag(stmt.target)
            return [stmt] if flag is None else [stmt, ir.Assign(flag, _bit(1))]
        if not isinstance(stmt, ir.CallExtern):
            return [stmt]
        replace = _REPLACEMENTS.get(full_name(stmt))
        if replace is not None:
            return replace(self, stmt)
        if stmt.instance is not None and _is_conditional(stmt):
            return self._conditional(stmt, stmt.instance)
        return [stmt]

    def _local(self, name: str, t: Bits) -> ir.Var:
        var = ir.Var(t, name, -1000 - len(self.block.locals))
        self.block.locals.append(var)
        return var

    # -- where packets go -----------------------------------------------------------------------

    def invalidate(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Take back a destination; nothing else that a program gives the chip can be missing."""
        flag, target = _set_flag(call.args[0]), call.args[0]
        if flag is None or not isinstance(target, ir.LValue):
            return []
        return [ir.Assign(flag, _bit(0)), ir.Assign(target, ir.Zero(target.type))]

    def is_validated(self, call: ir.CallExtern) -> list[ir.Stmt]:
        arg, flag = call.args[0], _set_flag(call.args[0])
        value: ir.Expr = build.TRUE
        if flag is not None:
            value = build.binary("==", flag, _bit(1))
        elif isinstance(arg, ir.FieldOf) and isinstance(arg.base.type, Header):
            value = build.valid(arg.base)
        return _result(call, value)

    # -- deparsers ------------------------------------------------------------------------------

    def _conditional(self, call: ir.CallExtern, instance: ir.ExternInstance) -> list[ir.Stmt]:
        """Call only if the deparser's metadata have the number that the instance was made with."""
        number = instance.number("condition", -1)
        field = self._deparser_field(_CONDITIONS[instance.type])
        if number < 0 or field is None:
            return [call]
        same = build.binary("==", field, build.number(field.type, number))
        return [ir.If(_only_set(same), [call], [])]

    def _deparser_field(self, name: str) -> ir.Expr | None:
        """Return a field of the metadata for the deparser; None if the block does not take it."""
        for param in self.block.params:
            t = param.var.type
            if isinstance(t, Fields) and t.name.endswith("for_deparser_t"):
                index = t.index(name)
                return None if index is None else build.field(param.var, index)
        return None

    def generate(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Ask the packet generator for packets, if the metadata do so."""
        leaves = list(_leaves(call.args[0]))
        size = sum(bit_width(leaf.type) or 0 for leaf in leaves)
        if not 0 < size <= PREFIX_BITS:
            self._refuse(call, f"the header has {size} bits, the chip keeps up to {PREFIX_BITS}")
            return []
        prefix = leaves[0]
        for leaf in leaves[1:]:
            prefix = build.binary("++", prefix, leaf)
        left = build.cast(Bits(PREFIX_BITS), prefix)
        prefix = build.binary("<<", left, build.number(Bits(PREFIX_BITS), PREFIX_BITS - size))
        given = (self._deparser_field(f"pktgen_{name}") for name in ("address", "length"))
        widths = (f.type for f in GENERATOR_REQUEST.fields[1:])
        numbers = [e or build.number(t, 0) for e, t in zip(given, widths, strict=True)]
        call.args[:] = [ir.Make(GENERATOR_REQUEST, [prefix, *numbers])]
        flag = self._deparser_field("pktgen")
        return [call] if flag is None else [ir.If(build.binary("==", flag, _bit(1)), [call], [])]

    # -- parsers --------------------------------------------------------------------------------

    def port_metadata(self, call: ir.CallExtern) -> list[ir.Stmt]:
        skip: ir.Stmt = ir.Advance(build.number(Bits(32), 8 * self.chip.port_metadata))
        return [skip] if call.result is None else [ir.Lookahead(call.result), skip]

    def _counter(self, call: ir.CallExtern) -> ParserCounter:
        instance = call.instance
        assert instance is not None
        if instance not in self.counters:
            made = self.counters[instance] = ParserCounter(instance.name, self._local)
            if any(_pushes(stmt, instance) for stmt in statements(self.block)):
                made.use_stack()
        return self.counters[instance]

    def load_counter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Set the counter to a number or a field's value, or push it."""
        counter, args, value = self._counter(call), list(call.args), call.args[0]
        follows = False
        if call.name == "push" and len(args) in (2, 6):
            last = args.pop()
            follows = isinstance(last, ir.Const) and bool(last.value)
        check: list[ir.Stmt] = []
        if len(args) > 1:
            error, literal = self.errors.index("CounterRange"), self.chip.masks_parser_counters
            try:
                check, value = field_value(args, error, literal)
            except ValueError as refusal:
                self._refuse(call, str(refusal))
                return []
        value = build.cast(Bits(8), value)
        loaded = counter.push(value, follows) if call.name == "push" else counter.set(value)
        return [*check, *loaded]

    def pop_counter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        counter = self._counter(call)
        if len(counter.numbers) == 1:
            self._refuse(call, "nothing is pushed")
            return []
        return counter.pop()

    def step_counter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        return self._counter(call).step("+" if call.name == "increment" else "-", call.args[0])

    def test_counter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        op = "==" if call.name == "is_zero" else "<"
        return _result(call, build.binary(op, self._counter(call).top, build.number(COUNTER, 0)))

    def _refuse(self, call: ir.CallExtern, what: str) -> None:
        self.found.append(Diagnostic(call.span, f"{full_name(call)}: {what}"))

    # -- checksums in parsers: argument 0 is the state ------------------------------------------

    def verify_checksum(self, call: ir.CallExtern) -> list[ir.Stmt]:
        return _result(call, build.binary("!=", call.args[0], build.number(Bits(16), _VALID_SUM)))

    def get_checksum(self, call: ir.CallExtern) -> list[ir.Stmt]:
        return _result(call, call.args[0])

    def start_deposit(self, call: ir.CallExtern) -> list[ir.Stmt]:
        state, residual = call.args
        assert isinstance(residual, ir.LValue), residual
        flag = self._local(f"{full_name(call)}.called", Bits(1))
        self.deposits.append((flag, call))
        return [ir.Assign(flag, _bit(1)), ir.Assign(residual, build.cast(residual.type, state))]

    def deposit(self) -> None:
        """Subtract the headers that are extracted after a call of subtract_all_and_deposit."""
        for flag, call in self.deposits:
            for body in bodies(self.block):
                rewrite(body, partial(_subtracted, flag, call))

    # -- optional arguments ---------------------------------------------------------------------

    def parameter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Read the one cell of a register parameter."""
        if not call.args:
            _append(call, build.number(Bits(32), 0))
        return [call]

    def count(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Give a count its adjustment: 0 bytes."""
        if len(call.args) < (2 if call.instance and call.instance.type == "Counter" else 1):
            _append(call, build.number(Bits(32), 0))
        return [call]

    def execute_meter(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Give a meter's execution the colour before (green) and its adjustment, which differ by
        their widths."""
        at = 1 if call.instance and call.instance.type == "Meter" else 0
        if len(call.args) <= at or bit_width(call.args[at].type) != 8:
            call.args.insert(at, build.number(Bits(8), 0))
            call.directions.insert(at, "in")
        if len(call.args) < at + 2:
            _append(call, build.number(Bits(32), 0))
        return [call]

    # -- hashes ---------------------------------------------------------------------------------

    def hash(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Replace the identity of fields by their lowest bits; other hashes stay."""
        assert call.instance is not None
        if call.instance.word("algorithm") != "identity":
            return [call]
        leaves = list(_leaves(call.args[0]))
        if not leaves:
            self._refuse(call, f"the identity of {call.args[0].type} is not defined")
            return []
        whole = leaves[0]
        for leaf in leaves[1:]:
            whole = build.binary("++", whole, leaf)
        return _result(call, whole)

    # -- the math unit --------------------------------------------------------------------------

    def math_unit(self, call: ir.CallExtern) -> list[ir.Stmt]:
        """Compute the function of a number, in a block that the rules of ALUs pass over."""
        assert call.instance is not None
        if call.result is None:
            return []
        try:
            unit = math_unit.math_unit(call.instance)
        except ValueError as error:
            self._refuse(call, str(error))
            return []
        return [ir.Block(math_unit.statements(unit, call.args[0], call.result), ir.HELPER)]

    # -- functions ------------------------------------------------------------------------------

    def extreme(self, call: ir.CallExtern) -> list[ir.Stmt]:
        a, b = call.args
        less = build.binary("<" if call.name == "min" else ">", a, b)
        return _result(call, build.mux(less, a, b))

    def funnel_shift(self, call: ir.CallExtern) -> list[ir.Stmt]:
        target, high, low, amount = call.args
        width = bit_width(target.type)
        if not isinstance(target, ir.LValue) or not isinstance(amount, ir.Const) or not width:
            self._refuse(call, "the amount must be a constant")
            return []
        both = build.binary("++", build.cast(Bits(width), high), build.cast(Bits(width), low))
        shifted = build.binary(">>", both, amount)
        return [ir.Assign(target, build.cast(target.type, build.cast(Bits(width), shifted)))]

    def size(self, call: ir.CallExtern) -> list[ir.Stmt]:
        width = bit_width(call.args[0].type)
        if width is None:
            self._refuse(call, f"{call.args[0].type} has no fixed size")
            return []
        number = width if call.name == "sizeInBits" else -(-width // 8)
        return _result(call, build.number(Bits(32), number))

    def nothing(self, call: ir.CallExtern) -> list[ir.Stmt]:
        return []


_REPLACEMENTS: Mapping[str, Callable[[_Desugaring, ir.CallExtern], list[ir.Stmt]]] = {
    "invalidate": _Desugaring.invalidate,
    "is_validated": _Desugaring.is_validated,
    "port_metadata_unpack": _Desugaring.port_metadata,
    "ParserCounter.set": _Desugaring.load_counter,
    "ParserCounter.push": _Desugaring.load_counter,
    "ParserCounter.pop": _Desugaring.pop_counter,
    "ParserCounter.increment": _Desugaring.step_counter,
    "ParserCounter.decrement": _Desugaring.step_counter,
    "ParserCounter.is_zero": _Desugaring.test_counter,
    "ParserCounter.is_negative": _Desugaring.test_counter,
    "ParserPriority.set": _Desugaring.nothing,
    "Checksum.verify": _Desugaring.verify_checksum,
    "Checksum.get": _Desugaring.get_checksum,
    "Checksum.subtract_all_and_deposit": _Desugaring.start_deposit,
    "Pktgen.emit": _Desugaring.generate,
    "RegisterParam.read": _Desugaring.parameter,
    "Counter.count": _Desugaring.count,
    "DirectCounter.count": _Desugaring.count,
    "Meter.execute": _Desugaring.execute_meter,
    "DirectMeter.execute": _Desugaring.execute_meter,
    "Hash.get": _Desugaring.hash,
    "MathUnit.execute": _Desugaring.math_unit,
    "min": _Desugaring.extreme,
    "max": _Desugaring.extreme,
    "funnel_shift_right": _Desugaring.funnel_shift,
    "sizeInBits": _Desugaring.size,
    "sizeInBytes": _Desugaring.size,
}
REPLACED = tuple((owner, method) for owner, _, method in (n.rpartition(".") for n in _REPLACEMENTS))
"""The externs replaced, by the type of the instance and the name; some only change."""


def _pushes(stmt: ir.Stmt, counter: ir.ExternInstance) -> bool:
    return isinstance(stmt, ir.CallExtern) and stmt.instance is counter and stmt.name == "push"


def _is_conditional(stmt: ir.Stmt) -> bool:
    """Return whether a statement is a call that the deparser's metadata decide about."""
    if not isinstance(stmt, ir.CallExtern) or stmt.instance is None:
        return False
    return stmt.instance.type in _CONDITIONS


def _only_set(condition: ir.Expr) -> ir.Expr:
    """Return a condition in which a type is 0 only if the program has set it."""
    if not isinstance(condition, ir.Binary):
        return condition
    if condition.op in ("&&", "||"):
        return with_operands(condition, [_only_set(e) for e in operands(condition)])
    flag = _set_flag(condition.left)
    zero = isinstance(condition.right, ir.Const) and not condition.right.value
    if flag is None or condition.op != "==" or not zero:
        return condition
    return build.binary("&&", condition, build.binary("==", flag, _bit(1)))


def _set_flag(e: ir.Expr) -> ir.LValue | None:
    """Return the flag of a destination or a type, if an expression is one or a part of it."""
    while isinstance(e, ir.SliceOf):
        e = e.base
    if not isinstance(e, ir.FieldOf) or e.name not in _FLAGGED:
        return None
    if not isinstance(e.base.type, Fields) or "_intrinsic_metadata_for_" not in e.base.type.name:
        return None
    index = e.base.type.index(f"{e.name}_is_set")
    return None if index is None else ir.FieldOf(Bits(1), e.base, index, f"{e.name}_is_set")


def _bit(value: int) -> ir.Const:
    return build.number(Bits(1), value)


def _leaves(e: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the numbers in a value, as bits; none of a varbit."""
    if isinstance(e.type, Fields):
        for i in range(len(e.type.fields)):
            yield from _leaves(build.field(e, i))
    elif bit_width(e.type):
        yield build.cast(Bits(bit_width(e.type) or 0), e)


def _append(call: ir.CallExtern, value: ir.Expr) -> None:
    call.args.append(value)
    call.directions.append("in")


def _result(call: ir.CallExtern, value: ir.Expr) -> list[ir.Stmt]:
    if call.result is None:
        return []
    return [ir.Assign(call.result, build.cast(call.result.type, value))]


def _subtracted(flag: ir.Var, call: ir.CallExtern, stmt: ir.Stmt) -> list[ir.Stmt]:
    """Subtract each header from a checksum once it is extracted, if the flag is set."""
    if not isinstance(stmt, ir.Extract):
        return [stmt]
    state, residual = call.args
    assert isinstance(residual, ir.LValue), residual
    args = [state, _extracted(stmt.target)]
    subtract = ir.CallExtern(call.instance, "subtract", args, ["inout", "in"], span=stmt.span)
    again = ir.Assign(residual, build.cast(residual.type, state), span=stmt.span)
    called = build.binary("==", flag, _bit(1))
    return [stmt, ir.If(called, [subtract, again], [], span=stmt.span)]


def _extracted(target: ir.LValue) -> ir.LValue:
    """Return the header that an extract has filled in: `next` has moved on."""
    if isinstance(target, ir.NextOf):
        return ir.LastOf(target.type, target.base)
    return target
