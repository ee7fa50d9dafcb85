"""gradplane.switch.runtime.state.Rng as native code, on the same state."""

from __future__ import annotations

from gradplane._splitmix64 import GOLDEN, LAST_SHIFT, STEPS
from gradplane.switch.jit.expressions import Expressions
from gradplane.switch.jit.llvm_text import Function, Module, Operand

RNG = "rng"  # the state word: address of (seed, draws so far)


def draw(f: Function) -> Operand:
    """Return the next number, as i64."""
    if not f.module.has("draw"):
        _draw(f.module)
    return f.call("i64", "draw")


def between(code: Expressions, width: int, signed: bool) -> str:
    """Return the name of i<width> between(i<width> low, i<width> high)."""
    name = f"between.{'s' if signed else 'u'}{width}"
    module = code.f.module
    if not module.has(name):
        params = [(f"i{width}", "%low"), (f"i{width}", "%high")]
        f = module.function(name, f"i{width}", params)
        _between(Expressions(code.unit, f, {}), width, signed)
    return name


def _between(code: Expressions, width: int, signed: bool) -> None:
    """Write low + number % (high - low + 1), with a number one word longer than the span needs."""
    f, most = code.f, width // 64 + 1
    total = 64 if width < 63 else 64 * most + 64
    kind = f"i{total}"
    low, high = (f.resize(x, width, total, signed) for x in ("%low", "%high"))
    last = f.binary("sub", kind, high, low)
    with f.when(f.compare("sle", kind, last, 0)):
        f.ret("%low")
    span = f.binary("add", kind, last, 1)
    value = f.variable(kind, f.resize(draw(f), 64, total))
    for i in range(1, most):
        with f.when(f.compare("uge", kind, last, 1 << (64 * i - 1))):
            shifted = f.binary("shl", kind, value.get(), 64)
            value.set(f.binary("or", kind, shifted, f.resize(draw(f), 64, total)))
    rest = code.divide("%", value.get(), span, total, False)
    f.ret(f.resize(f.binary("add", kind, low, rest), total, width))


def _draw(module: Module) -> None:
    f = module.function("draw", "i64", [], attributes="noinline ")
    state = f.word(RNG)
    count = f.load("i64", f.add(state, 8), 8)
    f.store("i64", f.binary("add", "i64", count, 1), f.add(state, 8), 8)
    f.ret(_mix(f, f.binary("xor", "i64", f.load("i64", state, 8), _mix(f, count))))


def _mix(f: Function, value: Operand) -> Operand:
    """Return SplitMix64's output function of a value."""
    value = f.binary("add", "i64", value, GOLDEN - (1 << 64))
    for shift, factor in STEPS:
        value = f.binary("xor", "i64", value, f.binary("lshr", "i64", value, shift))
        value = f.binary("mul", "i64", value, factor - (1 << 64))
    return f.binary("xor", "i64", value, f.binary("lshr", "i64", value, LAST_SHIFT))
