"""Keys of match kind dleft_hash: no entry has them. A hash of them, the table's digest, goes to the
learn actions that the table's actions call.

    key = { h.ip.src : dleft_hash; h.ip.dst : dleft_hash; m.mode : exact; }

    ->   digest = $digest({h.ip.src, h.ip.dst})
         ... m.mode is looked up ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Struct, bit_width

if TYPE_CHECKING:
    from gradplane.switch.lower.calls import CallLowering
    from gradplane.switch.source import Span

MATCH_KIND = "dleft_hash"


def emit_digest(body: CallLowering, keys: list[ir.Expr], span: Span) -> None:
    """Emit the digest of a table's keys, into the variable that learn actions read."""
    leaves = [build.cast(Bits(bit_width(key.type) or 1), key) for key in keys]
    fields = Struct("digest", tuple(Field(f"f{i}", e.type) for i, e in enumerate(leaves)))
    data = ir.Make(fields, leaves)
    body.emit(ir.CallExtern(None, ir.TABLE_DIGEST, [data], ["in"], body.table_digest()), span)
