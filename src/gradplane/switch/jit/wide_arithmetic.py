"""Products and quotients of wide numbers that LLVM does not compute well.

Division of 128-bit numbers: LLVM calls functions of the compiler's runtime library, which need not
be loaded in this process; so the module defines them, under the names that LLVM expects. (LLVM
divides somewhat wider numbers in line, and narrower ones by an instruction.)

Very wide numbers: LLVM expands the operations in line, with code that grows with the square of the
width; here they are computed a bit at a time, with code that does not grow.
"""

from __future__ import annotations

from gradplane.switch.jit.llvm_text import Function, Module, Operand


def bring_wide(module: Module, op: str, width: int) -> str:
    """Return the name of i<width> op(i<width>, i<width>), op: mul, udiv, urem, sdiv, srem; it is
    written on first use. The divisor is not 0; a signed quotient does not overflow."""
    kind, name = f"i{width}", f"wide.{op}.{width}"
    if module.has(name):
        return name
    f = module.function(name, kind, [(kind, "%a"), (kind, "%b")], attributes="noinline ")
    if op == "mul":
        f.ret(_product(f, kind, width))
    elif op[0] == "u":
        quotient, rest = _long_division(f, kind, width)
        f.ret(quotient if op == "udiv" else rest)
    else:
        unsigned = bring_wide(module, f"u{op[1:]}", width)
        a, b = (_absolute(f, kind, x) for x in ("%a", "%b"))
        result = f.call(kind, unsigned, (kind, a), (kind, b))
        sign = "%a" if op == "srem" else f.binary("xor", kind, "%a", "%b")
        f.ret(_negated_if(f, kind, f.compare("slt", kind, sign, 0), result))
    return name


def _product(f: Function, kind: str, width: int) -> Operand:
    total, factor, addend = (f.variable(kind, x) for x in ("0", "%a", "%b"))
    with f.count(width):
        taken = f.select(f.op(f"trunc {kind} {factor.get()} to i1"), kind, addend.get(), 0)
        total.set(f.binary("add", kind, total.get(), taken))
        factor.set(f.binary("lshr", kind, factor.get(), 1))
        addend.set(f.binary("shl", kind, addend.get(), 1))
    return total.get()


def _long_division(f: Function, kind: str, width: int) -> tuple[Operand, Operand]:
    quotient, rest, dividend = (f.variable(kind, x) for x in ("0", "0", "%a"))
    with f.count(width):
        carry = f.compare("slt", kind, rest.get(), 0)
        top = f.binary("lshr", kind, dividend.get(), width - 1)
        dividend.set(f.binary("shl", kind, dividend.get(), 1))
        new = f.binary("or", kind, f.binary("shl", kind, rest.get(), 1), top)
        fits = f.binary("or", "i1", carry, f.compare("uge", kind, new, "%b"))
        rest.set(f.select(fits, kind, f.binary("sub", kind, new, "%b"), new))
        shifted = f.binary("shl", kind, quotient.get(), 1)
        quotient.set(f.binary("or", kind, shifted, f.op(f"zext i1 {fits} to {kind}")))
    return quotient.get(), rest.get()


def _absolute(f: Function, kind: str, number: Operand) -> Operand:
    return _negated_if(f, kind, f.compare("slt", kind, number, 0), number)


def _negated_if(f: Function, kind: str, cond: Operand, number: Operand) -> Operand:
    return f.select(cond, kind, f.op(f"sub {kind} 0, {number}"), number)


# -- division of 128-bit numbers ----------------------------------------------------------------

_PARAMS = [("i128", "%a"), ("i128", "%b")]


def bring_division(module: Module) -> None:
    """Add the library's functions, once."""
    if module.has("divide128"):
        return
    _write_divide128(module)
    for name, rest in (("__udivti3", "false"), ("__umodti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        f.ret(_divide(f, "%a", "%b", rest))
    for name, rest in (("__divti3", "false"), ("__modti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        result = _divide(f, _absolute128(f, "%a"), _absolute128(f, "%b"), rest)
        sign = "%a" if rest == "true" else f.binary("xor", "i128", "%a", "%b")
        negative = f.compare("slt", "i128", sign, 0)
        f.ret(f.select(negative, "i128", f.op(f"sub i128 0, {result}"), result))


def _divide(f: Function, a: Operand, b: Operand, rest: Operand) -> Operand:
    return f.call("i128", "divide128", ("i128", a), ("i128", b), ("i1", rest))


def _absolute128(f: Function, number: Operand) -> Operand:
    return f.intrinsic("llvm.abs.i128", "i128", ("i128", number), ("i1", "false"))


def _write_divide128(module: Module) -> None:
    """Write i128 divide128(i128 a, i128 b, i1 rest): quotient or remainder."""
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
