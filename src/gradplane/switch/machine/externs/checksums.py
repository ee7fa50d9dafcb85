"""Checksums: one over the fields of a call, and those that take data piece by piece.

The state of the latter is a variable of the block, which `keep_state` makes the first argument of
each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.ir.walk import blocks, statements
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import ones_sum, step_function, words_sum
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.hashes import HASHES, STEPS, add16, checksum_of, subtract16
from gradplane.switch.source import Diagnostic

# -- of one call's fields -----------------------------------------------------------------------


def _checksum16(call: Call) -> Run:
    store, data, compute = call.out(None), call.data(0), HASHES["csum16"]
    return lambda env: store(env, compute(data(env)))


def _checksum16_native(call: NativeCall) -> None:
    call.give(hashed(call.code, "csum16", FieldList(call.code, [call.args[0]])), 64)


CHECKSUM16 = Extern(_checksum16, _checksum16_native)
"""Return the internet checksum of argument 0."""


# -- with a state -------------------------------------------------------------------------------


def keep_state(program: ir.Program, states: Mapping[str, Type]) -> Iterable[Diagnostic]:
    """Give the instances of these types their state, which lasts one run of a block:

        ck.add(in h.x)   ->   ck.add(inout state, in h.x)

    Return what is wrong with their use.
    """
    known: dict[ir.ExternInstance, ir.Var] = {}
    for _, block in blocks(program.package):
        calls = list(_stateless_calls(block, states))
        for instance in dict.fromkeys(call.instance for call in calls):
            assert instance is not None
            if instance in known:
                what = f"{instance.type} {instance.name} is used in more than one block"
                hint = "instantiate one in each of them"
                yield Diagnostic(instance.span, what, hint=hint)
                continue
            state = ir.Var(states[instance.type], f"{instance.name}.state", -1 - len(known))
            known[instance] = state
            block.locals.append(state)
        for call in calls:
            assert call.instance is not None
            call.args.insert(0, known[call.instance])
            call.directions.insert(0, "inout")


def _stateless_calls(
    block: ir.Parser | ir.Control, states: Mapping[str, Type]
) -> Iterable[ir.CallExtern]:
    """Return the calls that have no state yet; only a state is given as inout."""
    for stmt in statements(block):
        if (
            isinstance(stmt, ir.CallExtern)
            and stmt.instance is not None
            and stmt.instance.type in states
            and "inout" not in stmt.directions
        ):
            yield stmt


def _clear(call: Call) -> Run:
    store = call.out(0)
    return lambda env: store(env, 0)


def _clear_native(call: NativeCall) -> None:
    call.give("0", 64, 0)


def _update(call: Call) -> Run:
    return _step(call, STEPS[call.instance.word("algorithm")])


def _add(call: Call) -> Run:
    return _step(call, add16)


def _subtract(call: Call) -> Run:
    return _step(call, subtract16)


def _step(call: Call, step: Callable[[bytes, int], int]) -> Run:
    state, store, data = call.arg(0), call.out(0), call.data(1)
    return lambda env: store(env, step(data(env), state(env)))


def _update_native(call: NativeCall) -> None:
    name = call.instance.word("algorithm")
    if name == "ones_complement16":
        _add_native(call)
        return
    f, state = call.f, call.number(0)
    address, size = FieldList(call.code, [call.args[1]]).written()
    step = step_function(call.code.unit, name)
    args = (("ptr", address), ("i64", size), ("i64", state))
    call.give(f.call("i64", step, *args), 64, 0)


def _add_native(call: NativeCall) -> None:
    _take(call, _words(call)[0])


def _subtract_native(call: NativeCall) -> None:
    """Add the sum of the words' complements."""
    total, words = _words(call)
    ones = call.f.binary("mul", "i64", words, 0xFFFF)
    _take(call, call.f.binary("sub", "i64", ones, total))


def _take(call: NativeCall, total: Operand) -> None:
    """Add a number to the sum that is the state."""
    whole = call.f.binary("add", "i64", call.number(0), total)
    call.give(ones_sum(call.f, whole), 64, 0)


def _words(call: NativeCall) -> tuple[Operand, Operand]:
    """Return the exact sum of the data's 16-bit words, and how many they are (i64)."""
    f, fields = call.f, FieldList(call.code, [call.args[1]])
    if fields.fixed:
        count: Operand = "0"
        for group in fields.groups:
            count = f.select(group.valid, "i64", -(-group.bits // 16), 0)
        return fields.sum16(exact=True), count
    address, size = fields.written()
    total = f.call("i64", words_sum(call.code.unit, exact=True), ("ptr", address), ("i64", size))
    return total, f.binary("lshr", "i64", f.binary("add", "i64", size, 1), 1)


def _get_checksum(call: Call) -> Run:
    name, state, store = call.instance.word("algorithm"), call.arg(0), call.out(None)
    return lambda env: store(env, checksum_of(name, state(env)))


def _get_checksum_native(call: NativeCall) -> None:
    if call.instance.word("algorithm") == "ones_complement16":
        _get_native(call)
    else:
        call.give(call.number(0), 64)


def _get(call: Call) -> Run:
    state, store = call.arg(0), call.out(None)
    return lambda env: store(env, state(env) ^ 0xFFFF)


def _get_native(call: NativeCall) -> None:
    call.give(call.f.binary("xor", "i64", call.number(0), 0xFFFF), 64)


def _get_state(call: Call) -> Run:
    state, store = call.arg(0), call.out(None)
    return lambda env: store(env, state(env))


def _get_state_native(call: NativeCall) -> None:
    call.give(call.number(0), 64)


def _set_state(call: Call) -> Run:
    store, value = call.out(0), call.arg(1)
    return lambda env: store(env, value(env))


def _set_state_native(call: NativeCall) -> None:
    call.give(call.number(1), 64, 0)


CLEAR = Extern(_clear, _clear_native)
# Checksum(algorithm): update(in data), get().
UPDATE = Extern(_update, _update_native)
GET_CHECKSUM = Extern(_get_checksum, _get_checksum_native)
# InternetChecksum: the ones' complement sum of 16-bit words, to which data are added and from which
# they are subtracted.
ADD = Extern(_add, _add_native)
SUBTRACT = Extern(_subtract, _subtract_native)
GET = Extern(_get, _get_native)
GET_STATE = Extern(_get_state, _get_state_native)
SET_STATE = Extern(_set_state, _set_state_native)
