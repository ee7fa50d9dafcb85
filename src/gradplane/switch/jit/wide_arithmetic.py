"""Products and quotients of very wide numbers, a bit at a time.

LLVM writes them out in line, code that grows with the square of the width; this does not grow.
"""

from __future__ import annotations

from gradplane.switch.jit.llvm_text import Function, Module, Operand


def bring_wide(module: Module, op: str, width: int) -> str:
    """The name of i<width> op(i<width>, i<width>), op: mul, udiv, urem, sdiv, srem; it is written
    on first use. The divisor is not 0; a signed quotient is not beyond the largest number."""
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
