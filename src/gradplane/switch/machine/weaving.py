"""Weave the text of a packet path around a program: the path's entry points over its values.

In the text the types of the program's values are empty structs or, for an architecture's metadata,
structs with the fields that the path uses. The calls of `run` and `deparse` say which parameters of
the program's blocks they stand for:

    run("p", p.hdr, p.meta, p.standard)   ->   types of hdr, meta, standard: those of V1Switch's p

A packet's memory is taken apart, so that each of its values is a variable. Fields that the
program's own declaration lacks are zero, and not written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Fields, Struct, Type
from gradplane.switch.ir.walk import nested, operands, with_operands
from gradplane.switch.machine.path_texts import PathText
from gradplane.switch.runtime.valuesets import parser_of

Expansions = Mapping[str, Callable[[ir.CallExtern], list[ir.Stmt]]]
"""The functions that return the statements a call stands for, which depend on the program, by the
name of what is called."""

BLOCK_CALLS = {"run": 1, "run_one": 2, "deparse": 2}
"""The primitives that run a block, and the position of the first value that they pass to it."""

MOST_BLOCKS = 18  # that have a common name

QUEUE_CHANGED = "queue_changed"
"""The entry point that runs when a queue's length changes, in each pipe; in the interpreter only,
since Python fills and empties the queues."""

DEFLECT = "deflect"
"""The parameter of egress that is 1 for a packet that goes to another queue if its own is full, and
DEFLECTED (runtime/port_queues.py) for one that has. "port" and "queue" then change, too."""

_PACKET = "packet_t"  # how the names of packets' types end


class Primitive(NamedTuple):
    """A row of the primitives.

    interpret: returns the closure that executes a call (interpreted_paths.PathCall). compile:
    writes its machine code (native_paths.NativePathCall).
    """

    interpret: Callable[[Any], Run]
    compile: Callable[[Any], None]


class Packet(NamedTuple):
    """A packet's memory in a path. `kind`: its type's name; `parts`: its values, by their names."""

    kind: str
    parts: dict[str, ir.Var]


class Entry(NamedTuple):
    """An entry point. `locals` are zero at its start, packets are not."""

    name: str
    params: list[ir.Var]
    locals: list[ir.Var]
    body: list[ir.Stmt]
    packets: dict[ir.Var, Packet]

    def packet_of(self, part: ir.Expr) -> ir.Var:
        """Return the packet that a value belongs to."""
        return next(p for p, memory in self.packets.items() if part in memory.parts.values())

    def part_name(self, part: ir.Expr) -> str:
        """Return the name of a packet's value."""
        parts = self.packets[self.packet_of(part)].parts
        return next(name for name, var in parts.items() if var is part)


class WovenPipeline(NamedTuple):
    """A path woven around the blocks of one pipeline: all of a program's, or those of a package in
    it.

    entries: by name; those that native code runs are `native`. blocks: those that the entries run,
    by their package parameters, each with the kind of its packet and the names of its values.
    parser: that of packets that arrive. slots: names of numbers that packets of a kind keep beside
    their values, for primitives of the architecture's own.
    """

    name: str
    entries: dict[str, Entry]
    blocks: dict[str, tuple[ir.Parser | ir.Control, str, tuple[str, ...]]]
    deparsers: set[str]
    parser: str
    slots: Mapping[str, Sequence[str]]

    @property
    def ingress(self) -> Entry:
        return self.entries["ingress"]

    @property
    def egress(self) -> Entry | None:
        return self.entries.get("egress")

    @property
    def native(self) -> list[Entry]:
        return [entry for name, entry in self.entries.items() if name != QUEUE_CHANGED]


class Path(NamedTuple):
    """A path woven around a program. pipes: the number of the pipeline that each pipe of a chip
    runs; a port's number is its pipe's above `pipe_bits` bits. port_metadata: the bytes that the
    control plane keeps for each port. texts: the controls of its text. rows: the primitives that it
    uses."""

    pipelines: Sequence[WovenPipeline]
    texts: Mapping[str, ir.Control]
    notes: ir.Var | None
    rows: Mapping[str, Primitive]
    pipes: Sequence[int] = (0,)
    pipe_bits: int = 0
    port_metadata: int = 0

    @property
    def ports(self) -> int:
        """The ports of a chip's pipes."""
        return len(self.pipes) << self.pipe_bits

    def pipe_of(self, port: int) -> int:
        """Return the pipe that a port belongs to."""
        return (port >> self.pipe_bits) % len(self.pipes)

    def parser_of(self, port: int) -> int:
        """Return the number of a port's parser in its pipe."""
        return parser_of(port & (1 << self.pipe_bits) - 1)

    @property
    def departure(self) -> list[str]:
        """The names of the parameters of egress, which are the same in each pipeline."""
        egress = self.pipelines[0].egress
        return [] if egress is None else [param.name for param in egress.params]


class Surroundings(NamedTuple):
    """The things that a text is woven around: a package with the program's blocks. types: by the
    names that the text has for them, besides those of the blocks' parameters."""

    package: ir.Package
    expansions: Expansions
    types: Mapping[str, Type] = MappingProxyType({})
    slots: Mapping[str, Sequence[str]] = MappingProxyType({})
    name: str = ""


def weave(text: PathText, around: Surroundings) -> WovenPipeline:
    """Weave a path around blocks."""
    controls = _entry_controls(text, around.package)
    types, offered = dict(around.types), set()
    for call in _block_calls([stmt for control in controls for stmt in control.body]):
        offered |= {value.type.name for value in _values(call) if isinstance(value.type, Fields)}
        for name in _names(around.package, call):
            for value, param in _passed(_values(call), block_of(around.package, name).params):
                if isinstance(value.type, Fields):
                    types[value.type.name] = param.var.type
    absent = offered - set(types)
    entries = {c.name: _entry(c, types, around.expansions, absent) for c in controls}
    blocks, deparsers = {}, set()
    for entry in entries.values():
        for call in _block_calls(entry.body):
            for name in _names(around.package, call):
                block = block_of(around.package, name)
                parts = [value for value, _ in _passed(_values(call), block.params)]
                kind = entry.packets[entry.packet_of(_values(call)[0])].kind
                blocks[name] = (block, kind, tuple(map(entry.part_name, parts)))
            if call.name == "deparse":
                deparsers.add(_name(call))
    parser = next(name for name, (block, *_) in blocks.items() if isinstance(block, ir.Parser))
    return WovenPipeline(around.name, entries, blocks, deparsers, parser, around.slots)


def _entry_controls(text: PathText, package: ir.Package) -> list[ir.Control]:
    """Return the controls that are entry points. One whose block the program lacks is left out if
    it can be."""
    names = called({name: control.body for name, control in text.controls.items()})
    return [text.controls[name] for name in names if name != QUEUE_CHANGED or _has_blocks(
        text.controls[name], package)]  # fmt: skip


def called(bodies: Mapping[str, Sequence[ir.Stmt]]) -> list[str]:
    """Return the entry points that the switch calls, and those that these call."""
    names = [name for name in ("ingress", "egress", QUEUE_CHANGED) if name in bodies]
    for name in names:
        for stmt in nested(bodies[name]):
            if isinstance(stmt, ir.CallExtern) and stmt.name == "call" and _name(stmt) not in names:
                names.append(_name(stmt))
    return names


def _has_blocks(control: ir.Control, package: ir.Package) -> bool:
    return all(_name(call) in package.args for call in _block_calls(control.body))


def _passed(
    values: Sequence[ir.Expr], params: Sequence[ir.Param]
) -> Iterator[tuple[ir.Expr, ir.Param]]:
    """Yield the values that a block takes, with its parameters. A block may leave some out: then
    the names of the types say which."""
    if len(values) == len(params):
        yield from zip(values, params, strict=True)
        return
    left = list(values)
    for param in params:
        known = [i for i, value in enumerate(left) if _same_name(value.type, param.var.type)]
        yield left[known[0] if known else 0], param
        del left[: (known[0] if known else 0) + 1]


def _same_name(a: Type, b: Type) -> bool:
    return isinstance(a, Fields) and isinstance(b, Fields) and a.name == b.name


def block_of(package: ir.Package, name: str) -> ir.Parser | ir.Control:
    """Return a block by its package parameter; "ingress.ip" is in the package `ingress`."""
    *outer, last = name.split(".")
    for part in outer:
        inner = package.args[part]
        assert isinstance(inner, ir.Package), inner
        package = inner
    block = package.args[last]
    assert isinstance(block, ir.Parser | ir.Control), block
    return block


def numbered(name: str, number: int) -> str:
    """Return the package parameter of one of several blocks with a common name."""
    return f"{name}{number or ''}"


def numbered_blocks(call: ir.CallExtern, pipeline: WovenPipeline) -> list[str]:
    """Return the blocks of a pipeline that a call of `run_one` chooses among."""
    names = (numbered(_name(call), i) for i in range(MOST_BLOCKS))
    return [name for name in names if name in pipeline.blocks]


def _names(package: ir.Package, call: ir.CallExtern) -> list[str]:
    """Return the blocks that a call may run; none if the package may lack its block and does."""
    name = _name(call)
    if call.name != "run_one":
        return [name] if name.partition(".")[0] in package.args else []
    return [n for n in (numbered(name, i) for i in range(MOST_BLOCKS)) if n in package.args]


def _name(call: ir.CallExtern) -> str:
    name = call.args[0]
    assert isinstance(name, ir.Const) and isinstance(name.value, str), name
    return name.value


def _values(call: ir.CallExtern) -> list[ir.Expr]:
    return call.args[BLOCK_CALLS[call.name] :]


def _block_calls(body: Sequence[ir.Stmt]) -> Iterator[ir.CallExtern]:
    for stmt in nested(body):
        if isinstance(stmt, ir.CallExtern) and stmt.name in BLOCK_CALLS:
            yield stmt


def _entry(
    control: ir.Control, types: Mapping[str, Type], expansions: Expansions, absent: set[str]
) -> Entry:
    weaver = Weaver(types, expansions, absent=absent)
    params = [weaver.variable(param.var) for param in control.params]
    body = weaver.stmts(control.body)
    variables = [weaver.variable(var) for var in control.locals if not weaver.is_packet(var)]
    return Entry(control.name, params, variables, body, weaver.packets)


def instantiate(
    body: ir.Control, args: Sequence[ir.Expr], result: ir.LValue | None, notes: ir.Var | None
) -> tuple[list[ir.Var], list[ir.Stmt]]:
    """Return an extern's body for a call with these arguments: its variables, which are zero at its
    start, and its statements. Raises LookupError for a field that a struct of the program lacks.

    The body's last parameters may be `result` and `notes`."""
    known: dict[ir.Var, ir.Expr] = {}
    types = {}
    given = iter(args)
    own = {"notes": notes, "result": result}
    for param in body.params:
        value = own[param.name] if param.name in own else next(given)
        if value is not None and param.direction == "in" and isinstance(value.type, Bits):
            value = _cast(param.var.type, value)  # a program of BMv2's JSON has widths of its own
        if value is not None:
            known[param.var] = value
            if isinstance(param.var.type, Fields):
                types[param.var.type.name] = value.type
    weaver = Weaver(types, {}, known, strict=True)
    stmts = weaver.stmts(body.body)
    locals = [var for var in body.locals]
    locals += [p.var for p in body.params if p.name == "result" and result is None]
    return [weaver.variable(var) for var in locals], stmts


# -- the rewriting ------------------------------------------------------------------------------

_numbers = count(-1_000_000, -1)


class _Lacks(LookupError):
    """A struct of the program has no such field."""


@dataclass
class Weaver:
    """Rewrites statements of a text: other types and variables, packets in parts.

    types: by the names that the text has for them. known: what parameters stand for. strict: raise
    LookupError for a field that a struct of the program lacks. absent: the types of values that no
    block takes: packets have none of them."""

    types: Mapping[str, Type]
    expansions: Expansions
    known: dict[ir.Var, ir.Expr] = field(default_factory=dict)
    packets: dict[ir.Var, Packet] = field(default_factory=dict)
    strict: bool = False
    absent: Collection[str] = ()
    _blocks: dict[ir.Block, ir.Block] = field(default_factory=dict)

    def type(self, t: Type) -> Type:
        return self.types.get(t.name, t) if isinstance(t, Fields) else t

    @staticmethod
    def is_packet(var: ir.Var) -> bool:
        return isinstance(var.type, Struct) and var.type.name.endswith(_PACKET)

    def variable(self, var: ir.Var) -> ir.Var:
        """Return what a variable of the text becomes."""
        made = self.known.get(var)
        if made is None:
            made = self.known[var] = ir.Var(self.type(var.type), var.name, next(_numbers))
            if self.is_packet(var):
                assert isinstance(var.type, Struct)
                parts = {
                    f.name: ir.Var(self.type(f.type), f"{var.name}.{f.name}", next(_numbers))
                    for f in var.type.fields
                    if not (isinstance(f.type, Fields) and f.type.name in self.absent)
                }
                self.packets[made] = Packet(var.type.name, parts)
        assert isinstance(made, ir.Var), made
        return made

    # -- statements -----------------------------------------------------------------------------

    def stmts(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        return [made for stmt in stmts for made in self.stmt(stmt)]

    def stmt(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        match stmt:
            case ir.Assign():
                return self._assign(stmt)
            case ir.CallExtern():
                args = [self.expr(arg) for arg in stmt.args]
                made = dataclasses.replace(stmt, args=args, result=self._result(stmt))
                expand = self.expansions.get(stmt.name)
                return [made] if expand is None else expand(made)
            case ir.If():
                then, other = self.stmts(stmt.then), self.stmts(stmt.other)
                return [ir.If(self.expr(stmt.cond), then, other, span=stmt.span)]
            case ir.Block():
                block = self._blocks[stmt] = ir.Block([], stmt.name, span=stmt.span)
                block.body = self.stmts(stmt.body)
                return [block]
            case ir.Leave():
                return [ir.Leave(self._blocks[stmt.block], span=stmt.span)]
            case ir.Loop():
                return [ir.Loop(self.stmts(stmt.body), span=stmt.span)]
            case ir.Exit():
                return [stmt]
        raise AssertionError(f"{stmt.span}: {type(stmt).__name__} in a path")

    def _result(self, s: ir.CallExtern) -> ir.LValue | None:
        try:
            return None if s.result is None else self._place(s.result)
        except _Lacks:
            if self.strict:
                raise
            return None

    def _assign(self, s: ir.Assign) -> list[ir.Stmt]:
        try:
            target = self._place(s.target)
        except _Lacks:
            if self.strict:
                raise
            return []
        return [ir.Assign(target, _cast(target.type, self.expr(s.value)), span=s.span)]

    # -- expressions ----------------------------------------------------------------------------

    def _place(self, e: ir.LValue) -> ir.LValue:
        """Rewrite storage; raise _Lacks for a field that is not there."""
        match e:
            case ir.Var():
                known = self.known.get(e)
                place = self.variable(e) if known is None else known
            case ir.FieldOf():
                place = self._field(e)
            case _:
                place = self.expr(e)
        assert isinstance(place, ir.LValue), place
        return place

    def _field(self, e: ir.FieldOf) -> ir.Expr:
        if isinstance(e.base, ir.Var) and self.is_packet(e.base):
            parts = self.packets[self.variable(e.base)].parts
            if e.name not in parts:
                raise _Lacks(f"no block takes {e.name}")
            return parts[e.name]
        assert isinstance(e.base, ir.LValue), e
        base = self._place(e.base)
        index = base.type.index(e.name) if isinstance(base.type, Fields) else None
        if index is None:
            raise _Lacks(f"{base.type} has no field {e.name}")
        return expression_builder.field(base, index)

    def expr(self, e: ir.Expr) -> ir.Expr:
        match e:
            case ir.Var():
                known = self.known.get(e)
                return self.variable(e) if known is None else known
            case ir.FieldOf():
                try:
                    found = self._field(e)
                except _Lacks:
                    if self.strict:
                        raise
                    return expression_builder.zero(self.type(e.type))
                return _cast(self.type(e.type), found)
            case ir.Make() if self.type(e.type) is not e.type:  # only {...}: the fields are others
                return ir.Zero(self.type(e.type))
        return with_operands(e, [self.expr(part) for part in operands(e)])


def _cast(t: Type, e: ir.Expr) -> ir.Expr:
    """Return a value with another width, where the program's declaration has one."""
    if t == e.type or not isinstance(t, Bits | Bool):
        return e
    if isinstance(t, Bits) and isinstance(e.type, Bits):
        return expression_builder.cast(t, e)
    wide = e if isinstance(e.type, Bits) else ir.Cast(Bits(1), e)
    if isinstance(t, Bool):
        zero = expression_builder.zero(wide.type)
        return ir.Unary(t, "!", ir.Binary(t, "==", wide, zero))
    return expression_builder.cast(t, wide)
