"""v1model's externs as native code: one row each, as in gradplane.switch.arch.v1externs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.arch.calls import refuse
from gradplane.switch.arch.v1packet import DROP_PORT
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.jit import chance, vectors
from gradplane.switch.jit.expressions import Unit, is_scalar, is_signed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hashes import folded, hash_function, words_sum
from gradplane.switch.jit.layout import container, scalar_width
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.tables import Tables
from gradplane.switch.jit.text import Function, Operand
from gradplane.switch.runtime.profiles import ActionProfile


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program that tells something: kind "fault", "digest" or "log"."""

    kind: str
    text: str
    type: Type | None = None
    call: ir.CallExtern | None = None


class Externs:
    """Implements statements.Calls. `sites`: what the messages of native code are about."""

    def __init__(self, unit: Unit, program: ir.Program, profiles: dict[str, ActionProfile]) -> None:
        self.unit = unit
        self.program = program
        self.profiles = profiles
        self.tables = Tables(unit, program, self._selection)
        self.sites: list[Site] = [Site("none", "")]
        self._faults: dict[str, int] = {}

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        self.tables.apply(s, code)

    def call(self, s: ir.CallExtern, code: Statements) -> None:
        owner = s.instance.type if s.instance else ""
        _EXTERNS[owner, s.name](Call(s, code, self))

    def fault(self, reason: str) -> int:
        if reason not in self._faults:
            self._faults[reason] = self.site(Site("fault", reason))
        return self._faults[reason]

    def site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def _selection(self, table: ir.Table, code: Statements) -> Operand:
        """As gradplane.switch.arch.direct.selection."""
        assert table.implementation is not None, table.name
        profile = self.profiles[table.implementation.name]
        keys = [k.expr for k in table.keys if k.match_kind == "selector"]
        if not profile.algorithm or not keys:
            return "0"
        if profile.algorithm == "random":
            return chance.draw(code.f)
        hashed = _hashed(code, profile.algorithm, FieldList(code, keys))
        width = profile.output_width
        return hashed if width >= 64 else code.f.binary("and", "i64", hashed, (1 << width) - 1)


class Call:
    """A call being compiled."""

    def __init__(self, stmt: ir.CallExtern, code: Statements, externs: Externs) -> None:
        self.stmt = stmt
        self.code = code
        self.f = code.f
        self.externs = externs
        self.args = stmt.args

    @property
    def instance(self) -> ir.ExternInstance:
        assert self.stmt.instance is not None, self.stmt.name
        return self.stmt.instance

    def target(self, position: int) -> ir.LValue:
        arg = self.args[position]
        assert isinstance(arg, ir.LValue), arg
        return arg

    def number(self, position: int) -> Operand:
        """An argument as i64."""
        return self.code.number(self.args[position], 64)

    def name(self, position: int) -> str:
        arg = self.args[position]
        assert isinstance(arg, ir.Const) and isinstance(arg.value, str), arg
        return arg.value

    def index(self, position: int, size: int) -> tuple[Operand, Operand]:
        """Whether an index is below `size` (i1), and the index or else 0 (i64)."""
        e, f = self.args[position], self.f
        width = max(scalar_width(e.type), 64)
        number = self.code.number(e, width)
        inside = f.compare("ult", f"i{width}", number, size)
        return inside, f.select(inside, "i64", f.resize(number, width, 64), 0)

    def give(self, value: Operand, width: int) -> None:
        """Assigns the return value."""
        if self.stmt.result is not None:
            self.code.store_number(self.stmt.result, value, width)


# -- arrays -------------------------------------------------------------------------------------


def register_word(name: str) -> str:
    return f"register {name}"


def counter_word(name: str, part: str) -> str:
    """`part`: "packets" or "bytes"."""
    return f"counter {name}: {part}"


def meter_word(name: str) -> str:
    return f"meter {name}"


def _size(instance: ir.ExternInstance) -> int:
    return int(instance.args[0])  # type: ignore[arg-type]


def _cell(call: Call, index: Operand) -> Operand:
    bits = container(scalar_width(call.instance.type_args[0]))
    base = call.f.word(register_word(call.instance.name))
    return call.f.add(base, call.f.binary("mul", "i64", index, bits // 8))


def _register_read(call: Call) -> None:
    t, f, target = call.instance.type_args[0], call.f, call.target(0)
    inside, index = call.index(1, _size(call.instance))
    width = scalar_width(t)
    if not _size(call.instance):
        call.code.store_number(target, "0", width)
        return
    value = call.code.load(t, _cell(call, index))
    call.code.store_number(target, f.select(inside, f"i{width}", value, 0), width)


def _register_write(call: Call) -> None:
    t, code = call.instance.type_args[0], call.code
    inside, index = call.index(0, _size(call.instance))
    value, width = call.code.value(call.args[1]), scalar_width(t)
    with call.f.when(inside):
        cell = _cell(call, index)
        if is_signed(t) and width <= 64:  # NumPy's cells are sign-extended
            bits = container(width)
            call.f.store(f"i{bits}", call.f.resize(value, width, bits, True), cell, bits // 8)
        else:
            code.put(t, value, cell)


def _count(call: Call) -> None:
    f, name = call.f, call.instance.name
    inside, index = call.index(0, _size(call.instance))
    with f.when(inside):
        for part, amount in (("packets", "1"), ("bytes", _length(call))):
            cell = f.item(f.word(counter_word(name, part)), "i64", index)
            f.store("i64", f.binary("add", "i64", f.load("i64", cell, 8), amount), cell, 8)


def _length(call: Call) -> Operand:
    """Of the packet, in bytes."""
    bits = call.code.context.get(call.f, "%c", "bits")
    return call.f.binary("lshr", "i64", bits, 3)


def _execute_meter(call: Call) -> None:
    f, target = call.f, call.target(1)
    inside, index = call.index(0, _size(call.instance))
    colour = f.variable("i32", 0)
    with f.when(inside):
        cells = f.word(meter_word(call.instance.name))
        cell = f.load("ptr", f.item(cells, "i64", index), 8)
        with f.when(f.compare("ne", "ptr", cell, "null")):
            amount = "1" if call.instance.args[1] == "packets" else _length(call)
            colour.set(execute_meter(call.code.unit, f, cell, amount))
    call.code.store_number(target, colour.get(), 32)


def _read_direct_meter(call: Call) -> None:
    offset = call.code.context.colours[call.instance.name]
    colour = call.f.load("i32", call.f.add("%c", offset), 4)
    call.code.store_number(call.target(0), colour, 32)


def _nothing(call: Call) -> None:
    """direct_counter.count: the table counts each hit, called or not."""


# -- numbers ------------------------------------------------------------------------------------


def _random(call: Call) -> None:
    low, high = call.args[1], call.args[2]
    width = scalar_width(low.type)
    between = chance.between(call.code, width, is_signed(low.type))
    kind = f"i{width}"
    args = ((kind, call.code.value(low)), (kind, call.code.value(high)))
    call.code.store_number(call.target(0), call.f.call(kind, between, *args), width)


def _hash(call: Call) -> None:
    """base + hash % max, computed with room for all three."""
    f, base, most = call.f, call.args[2], call.args[4]
    if is_signed(most.type) or is_signed(base.type):
        raise refuse(call.stmt.span, "the JIT engine cannot hash to signed bounds",
                     "use bit<W> for base and max")  # fmt: skip
    target = call.target(0)
    widths = [scalar_width(base.type), scalar_width(most.type), scalar_width(target.type), 64]
    width = max(widths) + 1 if max(widths) > 64 or scalar_width(base.type) > 63 else 64
    name = call.name(1)
    if name == "random":
        hashed = chance.draw(f)
    else:
        hashed = _hashed(call.code, name, FieldList(call.code, [call.args[3]]))
    modulus = call.code.number(most, width)
    rest = call.code.divide("%", f.resize(hashed, 64, width), modulus, width, False)
    call.code.store_number(target, f.binary("add", f"i{width}", call.code.number(base, width),
                                            rest), width)  # fmt: skip


def _hashed(
    code: Statements, name: str, fields: FieldList, payload: tuple[Operand, Operand] | None = None
) -> Operand:
    """A hash of fields (and of the bytes behind them), as i64."""
    f = code.f
    even = all(not g.bits % 16 for g in fields.groups) or payload is None
    if name == "csum16" and fields.fixed and even:
        total = fields.sum16()
        if payload is not None:
            rest = f.call("i64", words_sum(code.unit), ("ptr", payload[0]), ("i64", payload[1]))
            total = f.binary("add", "i64", total, rest)
        return folded(f, total)
    address, length = fields.written(payload)
    return f.call("i64", hash_function(code.unit, name), ("ptr", address), ("i64", length))


def _verify_checksum(call: Call) -> None:
    _verify(call, False)


def _verify_with_payload(call: Call) -> None:
    _verify(call, True)


def _verify(call: Call, with_payload: bool) -> None:
    f, code = call.f, call.code
    with f.when(code.value(call.args[0])):
        computed = _checksum(call, with_payload)
        expected, width = code.value(call.args[2]), scalar_width(call.args[2].type)
        fitted = f.resize(computed, 64, width)
        with f.when(f.compare("ne", f"i{width}", fitted, expected)):
            code.note("checksum_error", 1)


def _update_checksum(call: Call) -> None:
    _update(call, False)


def _update_with_payload(call: Call) -> None:
    _update(call, True)


def _update(call: Call, with_payload: bool) -> None:
    with call.f.when(call.code.value(call.args[0])):
        call.code.store_number(call.target(2), _checksum(call, with_payload), 64)


def _checksum(call: Call, with_payload: bool) -> Operand:
    payload = payload_of(call.code) if with_payload else None
    fields = FieldList(call.code, [call.args[1]])
    return _hashed(call.code, call.name(3), fields, payload)


def payload_of(code: Statements) -> tuple[Operand, Operand]:
    """Address and length of the bytes that the parser left; a begun byte counts as parsed."""
    f, context = code.f, code.context
    at = f.binary("add", "i64", context.get(f, "%c", "position"), 7)
    start = f.binary("lshr", "i64", at, 3)
    size = f.binary("lshr", "i64", context.get(f, "%c", "bits"), 3)
    return f.add(context.get(f, "%c", "data"), start), f.binary("sub", "i64", size, start)


def _checksum16(call: Call) -> None:
    call.give(_hashed(call.code, "csum16", FieldList(call.code, [call.args[0]])), 64)


# -- the packet's way ---------------------------------------------------------------------------


def _mark_to_drop(call: Call) -> None:
    t, code = call.args[0].type, call.code
    assert isinstance(t, Fields), t
    metadata, offsets = code.place(call.target(0)), code.layouts.of(t).offsets
    for name, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
        index = t.index(name)
        assert index is not None, name
        code.put(t.fields[index].type, str(value), code.f.add(metadata, offsets[index]))


def _clone(call: Call) -> None:
    call.code.note("clone", call.number(1))
    call.code.note("clone_list", 0)


def _clone_preserving(call: Call) -> None:
    call.code.note("clone", call.number(1))
    call.code.note("clone_list", call.number(2))


def _noted(name: str, position: int | None) -> Callable[[Call], None]:
    def note(call: Call) -> None:
        call.code.note(name, "0" if position is None else call.number(position))

    return note


# -- messages -----------------------------------------------------------------------------------


def tell(f: Function, vector: str, site: int, data: Operand, size: int) -> None:
    """Appends a message to a vector: site, cause, size in memory, bytes."""
    record = vectors.reserve(f, vector, 24 + size)
    for i, value in enumerate((str(site), f.word("cause", "i64", fixed=False), str(size))):
        f.store("i64", value, f.add(record, 8 * i), 1)
    if size:
        f.copy(f.add(record, 24), data, size)
    vectors.extend(f, vector, 24 + size)


def _tell_value(call: Call, vector: str, kind: str, text: str, position: int | None) -> None:
    e = None if position is None else call.args[position]
    site = call.externs.site(Site(kind, text, e.type if e else None, call.stmt))
    if e is None:
        tell(call.f, vector, site, "null", 0)
        return
    size = call.code.layouts.of(e.type).size
    if is_scalar(e.type):
        data = call.f.alloca(size)
        call.code.write(e, data)
    else:
        data = call.code.address(e)
    tell(call.f, vector, site, data, size)


def _digest(call: Call) -> None:
    """Told when ingress is over."""
    _tell_value(call, "digests", "digest", str(call.args[1].type), 1)


def _log_msg(call: Call) -> None:
    f = call.f
    logging = f.word("logging", "i64")
    with f.when(f.compare("ne", "i64", logging, 0)):
        position = 1 if len(call.args) > 1 else None
        _tell_value(call, "messages", "log", call.name(0), position)


def _assert(call: Call) -> None:
    with call.f.unless(call.code.value(call.args[0])):
        call.code.give_up(f"{call.stmt.span}: {call.stmt.name} failed")


_EXTERNS: dict[tuple[str, str], Callable[[Call], None]] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _count,
    ("direct_counter", "count"): _nothing,
    ("meter", "execute_meter"): _execute_meter,
    ("direct_meter", "read"): _read_direct_meter,
    ("Checksum16", "get"): _checksum16,
    ("", "random"): _random,
    ("", "hash"): _hash,
    ("", "verify_checksum"): _verify_checksum,
    ("", "verify_checksum_with_payload"): _verify_with_payload,
    ("", "update_checksum"): _update_checksum,
    ("", "update_checksum_with_payload"): _update_with_payload,
    ("", "mark_to_drop"): _mark_to_drop,
    ("", "clone"): _clone,
    ("", "clone_preserving_field_list"): _clone_preserving,
    ("", "clone3"): _clone,
    ("", "resubmit"): _noted("resubmit", None),
    ("", "resubmit_preserving_field_list"): _noted("resubmit", 0),
    ("", "recirculate"): _noted("recirculate", None),
    ("", "recirculate_preserving_field_list"): _noted("recirculate", 0),
    ("", "truncate"): _noted("truncate", 0),
    ("", "digest"): _digest,
    ("", "assert"): _assert,
    ("", "assume"): _assert,
    ("", "log_msg"): _log_msg,
}
