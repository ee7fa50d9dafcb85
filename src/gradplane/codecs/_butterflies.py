"""Butterflies of the Hadamard transform on vectors of eight float32, for Numba kernels.

A butterfly of stage h replaces a[i] and a[i + h] by their sum and their difference. Each function
here applies several stages to values that are loaded once. LLVM's own vectorisation of such loops
stops at four arrays that may overlap, and does not combine the stages within a vector.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTH = 8  # float32 values in a vector
_INT = ir.IntType(32)
_INTS = ir.VectorType(_INT, WIDTH)
_FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
_SIGN = 1 << 31


def _butterflies(vectors: int, short: bool) -> Callable[..., None]:
    """Return a function (a: float32[n], i, h) of kernels, on the values a[i + k h : i + k h + 8].

    It applies stages h, 2 h, ..., vectors / 2 * h to them; before these, if `short`, the stages 1,
    2 and 4.
    """

    @intrinsic
    def apply(typing: Any, a: Any, i: Any, h: Any) -> Any:
        return types.void(a, types.int64, types.int64), generate

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, first, step = arguments
        proxy = cgutils.create_struct_proxy(signature.args[0])  # type: ignore[no-untyped-call]
        data = proxy(context, builder, value=array).data
        places = [first]
        for _ in range(vectors - 1):
            places.append(builder.add(places[-1], step))
        pointers = [
            builder.bitcast(builder.gep(data, [place]), _FLOATS.as_pointer()) for place in places
        ]
        values = [builder.load(pointer, align=4) for pointer in pointers]
        if short:
            for stage in (1, 2, 4):
                values = [_within(builder, value, stage) for value in values]
        for value, pointer in zip(_across(builder, values), pointers, strict=True):
            builder.store(value, pointer, align=4)
        return context.get_dummy_value()

    return apply


def _within(builder: ir.IRBuilder, value: Any, stage: int) -> Any:
    """Apply a stage to the values of one vector."""
    order = ir.Constant(_INTS, [k ^ stage for k in range(WIDTH)])
    partner = builder.shuffle_vector(value, value, order)
    # A difference is the sum with the sign changed, to the bit.
    signs = ir.Constant(_INTS, [_SIGN if k & stage else 0 for k in range(WIDTH)])
    flipped = builder.bitcast(builder.xor(builder.bitcast(value, _INTS), signs), _FLOATS)
    return builder.fadd(partner, flipped)


def _across(builder: ir.IRBuilder, values: Sequence[Any]) -> Sequence[Any]:
    """Apply the stages between vectors: of distance 1, 2, 4, ..."""
    distance = 1
    while distance < len(values):
        after = list(values)
        for k in range(len(values)):
            if not k & distance:
                upper, lower = values[k], values[k + distance]
                after[k] = builder.fadd(upper, lower)
                after[k + distance] = builder.fsub(upper, lower)
        values, distance = after, 2 * distance
    return values


first_six = _butterflies(8, True)  # with h = 8: the stages 1 to 32 of 64 values
three = _butterflies(8, False)
two = _butterflies(4, False)
one = _butterflies(2, False)
