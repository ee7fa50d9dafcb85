"""Tables with @dynamic_table_key_masks: the control plane masks their exact keys while they run.

    key = { h.a.x : exact; }   ->   mask = parameter.read(0)
                                    key = { h.a.x & mask : exact; }

The parameter is one of its own for each key, all ones at first, which P4Info does not list.
"""

from __future__ import annotations

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import statements

MASKED = "dynamic_table_key_masks"


def mask_keys(program: ir.Program, control: ir.Control) -> None:
    """Mask the keys of a control's tables that ask for it, in place."""
    for stmt in statements(control):
        if isinstance(stmt, ir.ApplyTable):
            table = stmt.table
            if any(a.name == MASKED and a.values != (0,) for a in table.annotations):
                for key in table.keys:
                    _mask(program, control, table, key)


def _mask(program: ir.Program, control: ir.Control, table: ir.Table, key: ir.Key) -> None:
    t = key.expr.type
    if key.mask is not None or key.match_kind != "exact" or not isinstance(t, Bits) or t.signed:
        return
    key.mask = ir.ExternInstance(
        "RegisterParam", f"{table.name}.{key.name}.$mask", [t], [(1 << t.width) - 1],
        span=table.span, kind="register", roles=("initial",),
    )  # fmt: skip
    program.externs.append(key.mask)
    mask = ir.Var(t, f"{key.name}.mask", -2000 - len(control.locals))
    control.locals.append(mask)
    first = build.number(Bits(32), 0)
    table.key_setup.append(ir.CallExtern(key.mask, "read", [first], ["in"], mask, span=table.span))
    key.expr = build.binary("&", key.expr, mask)
