"""The blocks of a pipeline as machine code: gradplane.switch.arch.blocks, compiled."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.arch.blocks import Layout
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.guarded_headers import guarded_headers
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.jit.value_layout import Context, make_context, scalar_width

HEADERS = "hdr"  # the value, which only the program's blocks read and write

_DIRECT = (
    "direct_counter", "direct_meter", "direct_register", "direct_lpf", "direct_wred",
)  # fmt: skip


class NativeBlocks:
    """A pipeline's blocks, and the packet's memory that they share (`context`).

    package: whose arguments the blocks are. notes: what the calls of externs leave on the packet.
    prefix: of the functions' names, where a program has several pipelines of one kind.
    """

    def __init__(
        self,
        traffic: Traffic,
        package: ir.Package,
        layout: Layout,
        notes: Sequence[str] = (),
        prefix: str = "",
    ) -> None:
        self._prefix = prefix
        self._traffic = traffic
        self._package = package
        self._layout = layout
        direct = [i.name for i in traffic.program.externs if i.kind in _DIRECT]
        types = layout.types(package)
        self.context = make_context(traffic.unit.layouts, types, notes, direct)
        self.context.unread = self._unread(types.get(HEADERS))
        self._fields = {
            name: _StructFields(traffic.unit, self.context, name)
            for name, t in types.items()
            if isinstance(t, Fields)
        }
        self._most = 0  # bytes that the deparser can emit

    def _unread(self, headers: Type | None) -> list[tuple[int, int]]:
        """Return the spans of the packet's memory that no block reads before it is written."""
        if headers is None:
            return []
        blocks = []
        for name, values in self._layout.all.items():
            block = self._package.args[name]
            assert isinstance(block, ir.Parser | ir.Control), block
            if HEADERS in values:
                blocks.append((block, block.params[values.index(HEADERS)].var))
        start = self.context.values[HEADERS]
        spans = guarded_headers(self._traffic.unit.layouts, headers, blocks)
        return [(start + first, start + end) for first, end in spans]

    def write(self) -> None:
        """Write each block's function, which has its name, and that of deparser and payload."""
        traffic, layout = self._traffic, self._layout
        unit, calls, values = traffic.unit, traffic.externs, layout.all
        for name in layout.parsers:
            code = self._package.parser(name)
            parser_function(unit, self._prefix + name, code, self.context, calls, values[name])
        for name in layout.controls:
            body = self._package.control(name)
            function = self._prefix + name
            control_function(unit, function, body, self.context, calls, values[name])
        name = layout.deparser
        body, function = self._package.control(name), self._prefix + name
        self._most = deparser_function(unit, function, body, self.context, calls, values[name])
        traffic.write_deparse(self._deparse, function, self.context)

    @property
    def _deparse(self) -> str:
        return f"{self._prefix}deparse.{self._layout.deparser}"

    def run(self, f: Function, name: str, c: Operand, after: str) -> Operand:
        """Call a block on the packet at `c`; on a fault, report it and go to `after`. Return a
        parser's error (i64)."""
        return f.resize(self._traffic.run(f, self._prefix + name, c, after), 32, 64)

    def room(self, f: Function, c: Operand) -> Operand:
        """Return the most bytes that deparsing the packet can give."""
        return self._traffic.room(f, self.context, c, self._most)

    def deparse(self, f: Function, c: Operand, target: Operand, after: str) -> Operand:
        """Write the headers and the payload to `target`, which has `room`; return their bytes. On a
        fault, report it and go to `after`."""
        return self._traffic.deparsed(f, self._deparse, c, target, after)

    def put(self, f: Function, c: Operand, struct: str, **fields: Operand | int) -> None:
        """Set fields of a struct from i64; those that it lacks are skipped."""
        for name, value in fields.items() if struct in self._fields else ():
            self._fields[struct].put(f, c, name, value)

    def get(self, f: Function, c: Operand, struct: str, name: str) -> Operand:
        """Return a field of a struct as i64; 0 if it lacks it or no block takes it."""
        return self._fields[struct].get(f, c, name) if struct in self._fields else "0"


class _StructFields:
    """One struct. A program's declaration may lack fields: `put` skips these, `get` gives 0."""

    def __init__(self, unit: Unit, context: Context, name: str) -> None:
        self.unit = unit
        t = context.types[name]
        assert isinstance(t, Fields), t
        offsets = unit.layouts.of(t).offsets
        self._fields: dict[str, tuple[Type, int]] = {
            f.name: (f.type, context.values[name] + offset)
            for f, offset in zip(t.fields, offsets, strict=True)
        }

    def put(self, f: Function, context: Operand, name: str, value: Operand | int) -> None:
        """Set a field from an i64."""
        if name in self._fields:
            t, offset = self._fields[name]
            number = str(value)
            if isinstance(value, str):
                number = f.resize(value, 64, scalar_width(t))
            Expressions(self.unit, f, {}).put(t, number, f.add(context, offset))

    def get(self, f: Function, context: Operand, name: str) -> Operand:
        """Return a field as i64."""
        if name not in self._fields:
            return "0"
        t, offset = self._fields[name]
        value = Expressions(self.unit, f, {}).load(t, f.add(context, offset))
        return f.resize(value, scalar_width(t), 64)
