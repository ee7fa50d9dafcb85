"""TNA's MathUnit: functions of a number to four bits of precision, in both engines."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import tnaprograms
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.arch.tna.math_unit import MathUnit, math_unit
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import CompileError

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "MUL": lambda x: 3 * x,
    "SQR": lambda x: 3 * x * x,
    "SQRT": lambda x: 3 * math.sqrt(x),
    "DIV": lambda x: 3 / x,
    "RSQR": lambda x: 3 / (x * x),
    "RSQRT": lambda x: 3 / math.sqrt(x),
}

ACTION = """
    Register<bit<32>, bit<8>>(8) cells;
    MathUnit<bit<32>>({arguments}) unit;
    RegisterAction<bit<32>, bit<8>, bit<32>>(cells) act = {{
        void apply(inout bit<32> value, out bit<32> result) {{
            value = unit.execute((bit<32>) (h.a.x ++ h.a.y));
            result = value;
        }}
    }};
"""
APPLY = "bit<32> q = act.execute(0); h.a.y = q[15:8]; h.a.z = q[7:0]; tm.ucast_egress_port = 1;"


def results(engine: str, arguments: str, numbers: list[int]) -> list[int]:
    made = tnaprograms.switch(
        engine, ingress_locals=ACTION.format(arguments=arguments), ingress=APPLY
    )
    found = []
    for x in numbers:
        ((_, packet),) = made.process(2, tnaprograms.packet(0, x >> 8, x & 255))
        found.append(int.from_bytes(packet[2:4], "big"))
    return found


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_square_root(engine: str) -> None:
    numbers = [0, 1, 2, 4, 7, 16, 25, 63, 100, 255, 256, 1024, 40000, 65535]
    found = results(engine, "MathOp_t.SQRT, 1", numbers)
    for x, root in zip(numbers, found, strict=True):
        kept = 3 if x.bit_length() % 2 == 0 else 4  # bits: the exponent must be even
        cut = x >> max(x.bit_length() - kept, 0) << max(x.bit_length() - kept, 0)
        assert root == pytest.approx(math.sqrt(cut), rel=0.01, abs=1)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_quotient_and_a_table_of_ones_own(engine: str) -> None:
    assert results(engine, "MathOp_t.DIV, 1000", [0, 1, 2, 4, 9, 16]) == [
        0,
        1000,
        500,
        250,
        111,
        62,
    ]
    # Listed from entry 15 to entry 0: the number itself, to four bits.
    table = ", ".join(str(i) for i in range(15, -1, -1))
    numbers = [0, 1, 8, 9, 31, 255]
    assert results(engine, f"false, 0, -3, {{ {table} }}", numbers) == [0, 1, 8, 9, 30, 240]


def test_a_wrong_factor_is_refused() -> None:
    with pytest.raises(CompileError, match="MathUnit.execute: the factor must be above 0"):
        results("interpreter", "MathOp_t.MUL, 0", [1])


@given(x=st.integers(1, (1 << 31) - 1), name=st.sampled_from(sorted(FUNCTIONS)))
def test_the_error_is_that_of_four_bits(x: int, name: str) -> None:
    unit: MathUnit = math_unit(ir.ExternInstance("MathUnit", "unit", [], [name, 3]))
    first = x.bit_length() - 1
    exponent = unit.exponent(first)
    index = x >> exponent - 3 if exponent >= 3 else x << 3 - exponent
    exact = FUNCTIONS[name](x)
    found = unit.value(exponent, index, 64)
    # The number loses less than 1/8 of itself, its square twice as much; the table has 7 bits.
    assert abs(found - exact) <= 0.33 * exact + 1
