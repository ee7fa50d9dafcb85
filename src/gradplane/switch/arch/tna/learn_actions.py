"""Learn actions of Tofino 2: the hash of the keys that they get (lower/table_lowering.py), and
where they may be called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import crc_function
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.source import Diagnostic

HASH = Crc(64, 0x42F0E1EBA9EA3693)
"""CRC-64 of ECMA-182. The chip's compiler makes up a hash for each table."""
_MASK, _LOWEST, _FREE = (1 << 52) - 1, 1, 8
"""The bits of a hash that a stateful ALU takes; the one that is set, so that no digest is 0; and
how many bits below are left to the state of an entry."""


def digest_of(data: bytes) -> int:
    """Return the digest of keys' bits."""
    return (HASH(data) & _MASK | _LOWEST) << _FREE


def _digest(call: Call) -> Run:
    store, data = call.out(None), call.data(0)
    return lambda env: store(env, digest_of(data(env)))


def _digest_native(call: NativeCall) -> None:
    f = call.f
    data, size = FieldList(call.code, [call.args[0]]).written(None)
    found = f.call("i64", crc_function(call.code.unit, HASH), ("ptr", data), ("i64", size))
    never_0 = f.binary("or", "i64", f.binary("and", "i64", found, _MASK), _LOWEST)
    call.give(f.binary("shl", "i64", never_0, _FREE), 64)


TABLE_DIGEST = Extern(_digest, _digest_native, needs_packet=False)
"""The digest of a table's dleft_hash keys (lower/table_lowering.py)."""


def learn_actions(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse learn actions that no table with dleft_hash keys runs."""
    for _, block in blocks(program.package):
        if isinstance(block, ir.Control):
            yield from _learning(block.body, "no table")
        for stmt in statements(block):
            if isinstance(stmt, ir.ApplyTable) and not _has_digest(stmt.table):
                for choice in stmt.table.actions:
                    yield from _learning(choice.action.body, f"table {stmt.table.name}")


def _learning(body: Sequence[ir.Stmt], runner: str) -> Iterator[Diagnostic]:
    for stmt in nested(body):
        if isinstance(stmt, ir.Block) and stmt.access is not None:
            action = stmt.access
            if action.type.startswith(ir.LEARN_ACTIONS):
                what = f"{action.type} {action.name} has no digest: {runner} runs it here"
                hint = "execute it in an action of a table with keys of match kind dleft_hash"
                yield Diagnostic(stmt.span, what, hint=hint)


def _has_digest(table: ir.Table) -> bool:
    return any(
        isinstance(stmt, ir.CallExtern) and stmt.instance is None and stmt.name == ir.TABLE_DIGEST
        for stmt in table.key_setup
    )
