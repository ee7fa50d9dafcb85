"""Direct counters and meters on each lookup, as gradplane.switch.arch.direct_resources has them."""

from __future__ import annotations

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.count_layout import count
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.table_layout import Shape


def count_and_meter(table: ir.Table, shape: Shape, code: Statements, entry: Operand) -> None:
    """v1model: counts, and keeps the colour for the program to read."""
    f, part = code.f, shape.entry
    size = f.binary("lshr", "i64", code.context.get(f, "%c", "bits"), 3)
    if part.counter is not None:
        count(f, f.fixed("ptr", f.add(entry, part.counter), 8), size)
    if part.meter is not None and table.meter is not None:
        cells = f.fixed("ptr", f.add(entry, part.meter), 8)
        by_packets = table.meter.args[0] == "packets"
        colour = execute_meter(code.unit, f, cells, size, by_packets)
        f.store("i32", colour, f.add("%c", code.context.direct[table.meter.name]), 4)


def keep_found(table: ir.Table, shape: Shape, code: Statements, entry: Operand) -> None:
    """PSA: keeps the addresses of the cells, for the action to count and execute."""
    f, part = code.f, shape.entry
    for instance, offset in ((table.counter, part.counter), (table.meter, part.meter)):
        if instance is not None and offset is not None:
            cells = f.fixed("ptr", f.add(entry, offset), 8)
            f.store("ptr", cells, f.add("%c", code.context.direct[instance.name]), 8)
