"""Division of 128-bit numbers.

LLVM calls functions of the compiler's runtime library for it, which need not be loaded in this
process; so the module defines them, under the names that LLVM expects. (LLVM divides still wider
numbers in line, and narrower ones by an instruction.)
"""

from __future__ import annotations

from gradplane.switch.jit.llvm_text import Function, Module, Operand

_PARAMS = [("i128", "%a"), ("i128", "%b")]


def bring_division(module: Module) -> None:
    """Add the library's functions, once."""
    if module.has("divide128"):
        return
    _long_division(module)
    for name, rest in (("__udivti3", "false"), ("__umodti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        f.ret(_divide(f, "%a", "%b", rest))
    for name, rest in (("__divti3", "false"), ("__modti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        result = _divide(f, _absolute(f, "%a"), _absolute(f, "%b"), rest)
        sign = "%a" if rest == "true" else f.binary("xor", "i128", "%a", "%b")
        negative = f.compare("slt", "i128", sign, 0)
        f.ret(f.select(negative, "i128", f.op(f"sub i128 0, {result}"), result))


def _divide(f: Function, a: Operand, b: Operand, rest: Operand) -> Operand:
    return f.call("i128", "divide128", ("i128", a), ("i128", b), ("i1", rest))


def _absolute(f: Function, number: Operand) -> Operand:
    return f.intrinsic("llvm.abs.i128", "i128", ("i128", number), ("i1", "false"))


def _long_division(module: Module) -> None:
    """i128 divide128(i128 a, i128 b, i1 rest): quotient or remainder, bit by bit if need be."""
    params = [*_PARAMS, ("i1", "%rest")]
    f = module.function("divide128", "i128", params, attributes="noinline ")
    both = f.binary("or", "i128", "%a", "%b")
    with f.when(f.compare("ult", "i128", both, 1 << 64)):
        a, b = f.resize("%a", 128, 64), f.resize("%b", 128, 64)
        quotient, rest = f.binary("udiv", "i64", a, b), f.binary("urem", "i64", a, b)
        f.ret(f.resize(f.select("%rest", "i64", rest, quotient), 64, 128))
    quotient_, rest_ = f.variable("i128", 0), f.variable("i128", 0)
    dividend = f.variable("i128", "%a")
    with f.count(128):
        old = rest_.get()
        carry = f.compare("slt", "i128", old, 0)
        bit = f.binary("lshr", "i128", dividend.get(), 127)
        dividend.set(f.binary("shl", "i128", dividend.get(), 1))
        new = f.binary("or", "i128", f.binary("shl", "i128", old, 1), bit)
        fits = f.binary("or", "i1", carry, f.compare("uge", "i128", new, "%b"))
        rest_.set(f.select(fits, "i128", f.binary("sub", "i128", new, "%b"), new))
        shifted = f.binary("shl", "i128", quotient_.get(), 1)
        quotient_.set(f.binary("or", "i128", shifted, f.op(f"zext i1 {fits} to i128")))
    f.ret(f.select("%rest", "i128", rest_.get(), quotient_.get()))
