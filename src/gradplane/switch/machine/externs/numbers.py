"""Random numbers and hashes."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.expressions import is_signed
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import crc_word, custom_crc
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.hashes import HASHES
from gradplane.switch.source import refuse

# -- random numbers -----------------------------------------------------------------------------


def _between(call: Call) -> Run:
    store, low, high = call.out(0), call.arg(1), call.arg(2)
    between = call.state.rng.between
    return lambda env: store(env, between(low(env), high(env)))


def _between_native(call: NativeCall) -> None:
    low, high = call.args[1], call.args[2]
    width = scalar_width(low.type)
    between = native_rng.between(call.code, width, is_signed(low.type))
    kind = f"i{width}"
    args = ((kind, call.code.value(low)), (kind, call.code.value(high)))
    call.give(call.f.call(kind, between, *args), width, 0)


RANDOM_FUNCTION = Extern(_between, _between_native, numbers=(0, 1, 2), needs_packet=False)
"""random(out result, in low, in high): a number from low to high, both included."""


def _bounds(instance: ir.ExternInstance) -> tuple[int, int]:
    return instance.number("low"), instance.number("high")


def _read(call: Call) -> Run:
    low, high = _bounds(call.instance)
    between, store = call.state.rng.between, call.out(None)
    return lambda env: store(env, between(low, high))


def _read_native(call: NativeCall) -> None:
    t = call.instance.type_args[0]
    width, (low, high) = scalar_width(t), _bounds(call.instance)
    kind, between = f"i{width}", native_rng.between(call.code, width, is_signed(t))
    call.give(call.f.call(kind, between, (kind, str(low)), (kind, str(high))), width)


RANDOM_READ = Extern(_read, _read_native, needs_packet=False)
"""Random<T>(low, high).read(): the same, returned."""


# -- hashes -------------------------------------------------------------------------------------


def algorithm(call: Call, name: str) -> Callable[[bytes], int]:
    """Return a hash algorithm by its name; raise CompileError at the call if there is none."""
    if name not in HASHES:
        raise refuse(
            call.stmt.span,
            f"{call.stmt.name}: algorithm {name} is not implemented",
            f"implemented: {', '.join(sorted(HASHES))}",
        )
    return HASHES[name]


def _hash(call: Call) -> Run:
    return _scaled(call, 0, _hasher(call), call.arg(2), call.bits(4))


def _hasher(call: Call) -> Load:
    chosen, fields = call.name(1), call.data(3)
    if chosen == "random":
        draw = call.state.rng.draw
        return lambda env: draw()
    compute = call.state.crcs.get(call.stmt) or algorithm(call, chosen)
    return lambda env: compute(fields(env))


def _hash_native(call: NativeCall) -> None:
    name = call.name(1)
    if name == "random":
        found = native_rng.draw(call.f)
    else:
        fields = FieldList(call.code, [call.args[3]])
        crc = call.externs.crcs.get(call.stmt)
        found = hashed(call.code, name, fields) if crc is None else _custom(call, crc, fields)
    _scaled_native(call, 0, found, call.args[2], call.args[4])


def _custom(call: NativeCall, name: str, fields: FieldList) -> Operand:
    """Return a CRC whose parameters the control plane may change, as i64."""
    f = call.f
    address, size = fields.written(None)
    args = (("ptr", address), ("i64", size), ("ptr", f.word(crc_word(name))))
    return f.call("i64", custom_crc(call.code.unit), *args)


HASH_FUNCTION = Extern(_hash, _hash_native, numbers=(0, 2, 4), needs_packet=False)
"""hash(out result, algorithm, in base, in data, in max): base + hash % max."""


def _get_hash(call: Call) -> Run:
    with_bounds = len(call.stmt.args) > 1
    compute, data = algorithm(call, call.instance.word("algorithm")), call.data(int(with_bounds))
    if with_bounds:
        return _scaled(call, None, lambda env: compute(data(env)), call.arg(0), call.arg(2))
    store = call.out(None)
    return lambda env: store(env, compute(data(env)))


def _get_hash_native(call: NativeCall) -> None:
    with_bounds = len(call.args) > 1
    fields = FieldList(call.code, [call.args[int(with_bounds)]])
    found = hashed(call.code, call.instance.word("algorithm"), fields)
    if with_bounds:
        _scaled_native(call, None, found, call.args[0], call.args[2])
    else:
        call.give(found, 64)


GET_HASH = Extern(_get_hash, _get_hash_native, needs_packet=False)
"""Hash<T>(algorithm).get(in data), or get(in base, in data, in max): base + hash % max."""


def _scaled(call: Call, result: int | None, compute: Load, base: Load, limit: Load) -> Run:
    """Assign base + hash % limit, or base where the limit is 0."""
    store = call.out(result)

    def run(env: Env) -> None:
        most = limit(env)
        store(env, base(env) + (compute(env) % most if most else 0))

    return run


def _scaled_native(
    call: NativeCall, result: int | None, found: Operand, base: ir.Expr, most: ir.Expr
) -> None:
    """Assign the same in native code, wide enough for all three; the hash is an i64."""
    f = call.f
    widths = [scalar_width(base.type), scalar_width(most.type), 64]
    width = max(widths) + 1 if max(widths) > 64 or scalar_width(base.type) > 63 else 64
    modulus = f.resize(call.code.value(most), scalar_width(most.type), width)
    rest = call.code.divide("%", f.resize(found, 64, width), modulus, width, False)
    total = f.binary("add", f"i{width}", call.code.number(base, width), rest)
    call.give(total, width, result)
