"""Parsers as functions: i32 parser(ptr context). The result is the parser's error code, or a
negative number for a fault.

A parser value set is an array of members, which are compared one by one. A member has for each
field three numbers of whole 8-byte words: value (or low), mask, high. A match is (key & mask) ==
value, or for range fields low <= key <= high.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.interp.blocks import STATE_LIMIT
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header, Type, bit_width
from gradplane.switch.jit.blocks import bind, block_function
from gradplane.switch.jit.expressions import Unit, is_scalar, is_signed
from gradplane.switch.jit.externs import PARSER, value_set_word
from gradplane.switch.jit.headers import HeaderCodecs, NativeHeaderCodec, aligned, copy_bits, wire
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.statements import Calls, Statements
from gradplane.switch.jit.value_layout import Context, leaves, scalar_width
from gradplane.switch.runtime.match_fields import KeyField
from gradplane.switch.runtime.valuesets import ParserValueSet


def parser_function(
    unit: Unit, name: str, parser: ir.Parser, context: Context, calls: Calls, values: Sequence[str]
) -> None:
    """Compile a parser; `values`: its parameters' values."""
    f = block_function(unit, name, context)
    code = ParserCode(unit, f, context, calls, parser)
    bind(code, parser.params, values)
    for var in parser.locals:
        code.local(var)
    code.body(parser.setup)
    code.states()


class ParserCode(Statements):
    """The parser's position is kept in a register and written back at the end."""

    def __init__(
        self, unit: Unit, f: Function, context: Context, calls: Calls, parser: ir.Parser
    ) -> None:
        super().__init__(unit, f, context, calls)
        self.parser = parser
        self.codecs = HeaderCodecs(unit)
        self.data, self.bits = self.noted("data"), self.noted("bits")
        self.position = f.variable("i64", 0)
        self.status = f.variable("i32", 0)
        self.visits = f.variable("i32", 0)
        self.aligned = aligned(unit, parser)
        self.cyclic = _cyclic(parser)
        self.labels = {name: f.label() for name in parser.states}
        self.labels |= {"accept": self.exit, "reject": self.exit}

    def states(self) -> None:
        """Write all states, and the end."""
        self.f.go(self.labels["start"])
        for state in self.parser.states.values():
            self.zeros.clear()
            self.f.at(self.labels[state.name])
            self._count_visit()
            if state.on_reject:
                self.labels["reject"] = self.f.label()
            self.body(state.body)
            self._select(state)
            if state.on_reject:
                self._on_reject(state)
        self.f.at(self.exit)
        self.note("position", self.position.get())
        self.f.ret(self.status.get())

    def reject(self, code: Operand | int) -> None:
        self.status.set(code)
        self.f.go(self.labels["reject"])

    def _on_reject(self, state: ir.State) -> None:
        """Return the label to which rejects in this state lead."""
        self.f.at(self.labels["reject"])
        self.labels["reject"] = self.exit
        self.zeros.clear()
        self.body(state.on_reject)
        self.f.go(self.exit)

    def error(self, name: str) -> int:
        return self.unit.errors.get(name, 0)

    def _count_visit(self) -> None:
        if self.cyclic:
            visits = self.visits.get()
            with self.f.when(self.f.compare("uge", "i32", visits, STATE_LIMIT)):
                self.reject(self.error("ParserTimeout"))
            self.visits.set(self.f.binary("add", "i32", visits, 1))

    # -- transitions ----------------------------------------------------------------------------

    def _select(self, state: ir.State) -> None:
        if not state.select:
            self.f.go(self.labels[state.cases[0].next])
            return
        keys = [self.value(e) for e in state.select]
        if len(keys) == 1 and self._switch_on(state, keys[0]):
            return
        for case in state.cases:
            if _any(case.matches):
                self.f.go(self.labels[case.next])
                return
            other = self.f.label()
            self.f.branch(self._holds(case, state, keys), self.labels[case.next], other)
            self.f.at(other)
        self.reject(self.error("NoMatch"))

    def _switch_on(self, state: ir.State, key: Operand) -> bool:
        """Write LLVM's switch for one key with constants only; return False for other selects."""
        rows: dict[int, str] = {}
        default = self.f.label()
        label = default
        width = scalar_width(state.select[0].type)
        for case in state.cases:
            if _any(case.matches):
                label = self.labels[case.next]
                break
            match = case.matches[0]
            if not isinstance(match, ir.MatchValue) or not isinstance(match.value, ir.Const):
                return False
            rows.setdefault(int(match.value.value) % (1 << width), self.labels[case.next])
        self.f.choose(f"i{width}", key, label, list(rows.items()))
        self.f.at(default)
        self.reject(self.error("NoMatch"))
        return True

    def _holds(self, case: ir.SelectCase, state: ir.State, keys: Sequence[Operand]) -> Operand:
        if len(case.matches) == 1 and isinstance(case.matches[0], ir.MatchSet):
            return self._in_set(case.matches[0].set, state.select, keys)
        found: Operand = "true"
        for match, e, key in zip(case.matches, state.select, keys, strict=True):
            if not isinstance(match, ir.MatchAny):
                found = self.f.binary("and", "i1", found, self._matches(match, e, key))
        return found

    def _in_set(
        self, value_set: ir.ValueSet, exprs: Sequence[ir.Expr], keys: Sequence[Operand]
    ) -> Operand:
        return contains(self.unit, self.f, value_set, [e.type for e in exprs], keys)

    def _matches(self, match: ir.Match, e: ir.Expr, key: Operand) -> Operand:
        kind = f"i{scalar_width(e.type)}"
        match match:
            case ir.MatchValue(value=value):
                return self.f.compare("eq", kind, key, self.value(value))
            case ir.MatchMask(value=value, mask=mask):
                bits = self.value(mask)
                expected = self.f.binary("and", kind, self.value(value), bits)
                return self.f.compare("eq", kind, self.f.binary("and", kind, key, bits), expected)
            case ir.MatchRange(low=low, high=high):
                how = "s" if is_signed(low.type) else "u"
                least = self.f.compare(how + "le", kind, self.value(low), key)
                most = self.f.compare(how + "le", kind, key, self.value(high))
                return self.f.binary("and", "i1", least, most)
            case ir.MatchSet(set=value_set):
                return self._in_set(value_set, [e], [key])
        raise AssertionError(match)

    # -- the packet -----------------------------------------------------------------------------

    def extract(self, s: ir.Extract) -> None:
        t = s.target.type
        assert isinstance(t, Header), t
        form, target = wire(self.unit, t), self.place(s.target)
        varying: Operand = "0"
        if s.size is not None:
            varying = self._whole_bytes(s.size)
        count = self.f.binary("add", "i64", varying, form.fixed)
        start = self.position.get()
        end = self._need(start, count)
        if s.size is not None:
            with self.f.when(self.f.compare("ugt", "i64", varying, form.limit)):
                self.reject(self.error("HeaderTooShort"))
        if t.fields:
            source = self._source(start, count, form.most)
            self.codecs.decode(self.f, t, source, target, varying)
        self.f.store("i8", 1, self.f.add(target, self.layouts.of(t).valid))
        self.position.set(end)
        self.keep_only(s.target)
        self._advance_next(s.target)

    def lookahead(self, s: ir.Lookahead) -> None:
        t, width = s.target.type, bit_width(s.target.type)
        assert width is not None, t
        start = self.position.get()
        self._need(start, str(width))
        source = self._source(start, str(width), width)
        value = self.f.alloca(self.layouts.of(t).size)
        if isinstance(t, Header):
            self.codecs.decode(self.f, t, source, value, 0)
            self.f.store("i8", 1, self.f.add(value, self.layouts.of(t).valid))
        elif width == 0:
            self.zero(value, t)
        else:
            parts = leaves(self.layouts, [t], [0])
            NativeHeaderCodec(self.unit, self.f).decode(parts, source, value)
        if is_scalar(t):
            self.store(s.target, self.load(t, value))
            return
        target = self.place(s.target)
        self.f.copy(target, value, self.layouts.of(t).size)
        if isinstance(t, Header):
            self.keep_only(s.target)

    def advance(self, s: ir.Advance) -> None:
        count = self._whole_bytes(s.bits)
        self.position.set(self._need(self.position.get(), count))

    def _need(self, start: Operand, count: Operand) -> Operand:
        """Reject if there are not so many bits; return the position after them."""
        end = self.f.binary("add", "i64", start, count)
        with self.f.when(self.f.compare("ugt", "i64", end, self.bits)):
            self.reject(self.error("PacketTooShort"))
        return end

    def _source(self, start: Operand, count: Operand, most: int) -> Operand:
        """Return the address of the next bits, aligned to a byte by a copy if need be."""
        address = self.f.add(self.data, self.f.binary("lshr", "i64", start, 3))
        if self.aligned:
            return address
        odd = self.f.compare("ne", "i64", self.f.binary("and", "i64", start, 7), 0)
        result, scratch = self.f.variable("ptr", address), self.f.alloca(most // 8 + 2)
        with self.f.when(odd):
            copy_bits(self.f, scratch, 0, self.data, start, count)
            result.set(scratch)
        return result.get()

    def _whole_bytes(self, size: ir.Expr) -> Operand:
        """Return a number of bits, which must be whole bytes, as in BMv2."""
        bits = self.number(size, 64)
        odd = self.f.binary("and", "i64", bits, 7)
        with self.f.when(self.f.compare("ne", "i64", odd, 0)):
            self.reject(self.error("ParserInvalidArgument"))
        return bits

    def _advance_next(self, target: ir.LValue) -> None:
        """Advance stack.next after an extract to it, or to a member of a union there."""
        base = target.base if isinstance(target, ir.FieldOf) else target
        if isinstance(base, ir.NextOf):
            stack = self.place(base.base)
            index = self.f.binary("add", "i32", self.f.load("i32", stack), 1)
            self.f.store("i32", index, stack)


def _any(matches: Sequence[ir.Match]) -> bool:
    return all(isinstance(m, ir.MatchAny) for m in matches)


def _cyclic(parser: ir.Parser) -> bool:
    """Return whether a state can recur. Not recursive: parsers may have thousands of states."""
    done: set[str] = set()
    path: dict[str, Iterator[str]] = {}  # states, with the successors still to visit

    def enter(name: str) -> None:
        if name in parser.states:
            path[name] = iter({case.next: None for case in parser.states[name].cases})

    enter("start")
    while path:
        name, following = next(reversed(path.items()))
        for state in following:
            if state in path:
                return True
            if state not in done:
                enter(state)
                break
        else:
            del path[name]
            done.add(name)
    return False


def contains(
    unit: Unit, f: Function, value_set: ir.ValueSet, types: Sequence[Type],
    keys: Sequence[Operand],
) -> Operand:  # fmt: skip
    """Return whether one of the members matches, as i1."""
    name = f"member.{value_set.name}"
    widths = [scalar_width(t) for t in types]
    fields = ParserValueSet(value_set).fields
    if not unit.module.has(name):
        _write(unit, name, value_set, fields, widths)
    return f.call("i1", name, *((f"i{w}", key) for w, key in zip(widths, keys, strict=True)))


def _write(
    unit: Unit, name: str, value_set: ir.ValueSet, fields: Sequence[KeyField],
    widths: Sequence[int],
) -> None:  # fmt: skip
    params = [(f"i{w}", f"%k{i}") for i, w in enumerate(widths)]
    f = unit.module.function(f"{name}", "i1", params)
    for part, head in (("", 0), ("own ", 8)):
        members = f.word(value_set_word(value_set.name, f"{part}members"))
        count = f.word(value_set_word(value_set.name, f"{part}count"), "i64")
        with f.count(count) as i:
            member = f.add(members, f.binary("mul", "i64", i, head + member_size(fields)))
            found: Operand = "true"
            if head:
                parser = f.load("i64", member, 8)
                found = f.compare("eq", "i64", parser, f.word(PARSER, "i64", fixed=False))
            at = head
            for k, (field, width) in enumerate(zip(fields, widths, strict=True)):
                size, kind = 8 * field_words(field), f"i{width}"
                row = [
                    f.resize(f.load(f"i{8 * size}", f.add(member, at + j * size), 8), 8 * size,
                             width)
                    for j in range(3)
                ]  # fmt: skip
                found = f.binary("and", "i1", found, _matches(f, field, kind, f"%k{k}", row))
                at += 3 * size
            with f.when(found):
                f.ret("true")
    f.ret("false")


def _matches(
    f: Function, field: KeyField, kind: str, key: Operand, row: Sequence[Operand]
) -> Operand:
    value, mask, high = row
    if field.kind == "range":
        how = "sle" if field.signed else "ule"
        least = f.compare(how, kind, value, key)
        return f.binary("and", "i1", least, f.compare(how, kind, key, high))
    return f.compare("eq", kind, f.binary("and", kind, key, mask), value)


def field_words(field: KeyField) -> int:
    return max(1, -(-field.width // 64))


def member_size(fields: Sequence[KeyField]) -> int:
    """Return the size of a member in bytes."""
    return sum(24 * field_words(f) for f in fields)


def member_bytes(value_set: ParserValueSet, own: bool = False) -> bytes:
    """Return the members as the native code reads them: those that all parsers have, or the others
    behind their parser's number."""
    out = bytearray()
    parsers = value_set.own if own else (None,)
    for parser, member in ((p, member) for p in parsers for member in value_set.of(p)):
        if parser is not None:
            out += parser.to_bytes(8, "little")
        for field, match in zip(value_set.fields, member, strict=True):
            for number in _row(field, match):
                out += number.to_bytes(8 * field_words(field), "little")
    return bytes(out)


def _row(field: KeyField, match: tuple[int, ...] | None) -> tuple[int, int, int]:
    if field.kind == "range":
        half = 1 << field.width >> 1 if field.signed else 0
        low, high = match if match is not None else (half, half ^ field.full)
        return low, 0, high
    if match is None:
        return 0, 0, 0
    if field.kind == "lpm":
        return match[0], field.mask(match[1]), 0
    return match[0], match[1] if field.kind == "ternary" else field.full, 0
