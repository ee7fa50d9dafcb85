"""Registers, counters, meters, value sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Type
from gradplane.switch.runtime.arrays import Counter, Register, make_registers
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.meters import GREEN, RED, SECOND, YELLOW, Meter, MeterConfig
from gradplane.switch.runtime.valuesets import ParserValueSet


def refused(code: str, message: str, function: Any, *args: Any) -> None:
    with pytest.raises(TableError) as caught:
        function(*args)
    assert (caught.value.code, str(caught.value)) == (code, message)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 512])
@pytest.mark.parametrize("signed", [False, True])
def test_a_register_holds_every_value_of_its_type(width: int, signed: bool) -> None:
    register = Register("I.r", 3, Bits(width, signed))
    low = -(1 << width >> 1) if signed else 0
    high = low + (1 << width) - 1
    assert [register.read(i) for i in range(3)] == [0, 0, 0]
    register.write(0, low)
    register.write(2, high)
    assert [register.read(i) for i in range(3)] == [low, 0, high]
    refused("INVALID_ARGUMENT", f"register I.r: value {high + 1} does not fit "
            f"{'int' if signed else 'bit'}<{width}>", register.write, 1, high + 1)  # fmt: skip
    register.clear()
    assert [register.read(i) for i in range(3)] == [0, 0, 0]


def test_a_register_is_one_flat_array() -> None:
    register = Register("I.r", 4, Bits(12))
    assert isinstance(register.values, np.ndarray) and register.values.dtype == np.uint16
    register.values[1] = 77
    assert register.read(1) == register.cells[1] == 77
    assert Register("I.b", 1, BOOL).is_bool
    refused("OUT_OF_RANGE", "register I.r: index 4 is not within 0 to 3", register.read, 4)


def test_equal_registers_of_several_controls_share_rows_of_memory() -> None:
    def instance(name: str, width: int, size: int) -> ir.ExternInstance:
        args: list[ir.Argument] = [size]
        types: list[Type] = [Bits(width)]
        return ir.ExternInstance("register", name, types, args, kind="register", roles=("size",))

    names = ["I.a.sums", "I.b.sums", "I.c.sums"]
    others = [instance("I.sums", 32, 5), instance("I.a.wide", 65, 4), instance("I.b.wide", 65, 4)]
    found = make_registers([instance(name, 32, 4) for name in names] + others).by_name
    first, second = (found[name].values.__array_interface__["data"][0] for name in names[:2])
    assert second - first == 4 and found["I.a.sums"].values.strides == (12,)
    for number, register in enumerate(found.values()):
        for cell in range(register.size):
            register.write(cell, 100 * number + cell)
    for number, register in enumerate(found.values()):
        assert list(register.values) == [100 * number + cell for cell in range(register.size)]
    found["I.b.sums"].clear()
    assert [found[name].read(1) for name in names] == [1, 0, 201]


def test_counters_count_packets_and_bytes_modulo_two_to_the_64() -> None:
    counter = Counter("I.c", 2, "bytes")
    counter.add(1, 100)
    counter.add(1, 50)
    counter.add(2, 50)
    assert [counter.read(0), counter.read(1)] == [(0, 0), (2, 150)]
    counter.write(0, (1 << 64) - 1, (1 << 64) - 1)
    counter.add(0, 3)
    assert counter.read(0) == (0, 2)
    refused("OUT_OF_RANGE", "counter I.c: index 2 is not within 0 to 1", counter.read, 2)


# -- meters: RFC 2698 and RFC 2697 --------------------------------------------------------------


def test_two_rates() -> None:
    meter = Meter("I.m", 2, "bytes")
    meter.write(0, MeterConfig(cir=1000, cburst=200, pir=2000, pburst=400), now=0)
    assert [meter.execute(0, 0, 100) for _ in range(5)] == [GREEN, GREEN, YELLOW, YELLOW, RED]
    # A tenth of a second later: 100 committed tokens and 200 peak ones.
    assert [meter.execute(0, SECOND // 10, 100) for _ in range(3)] == [GREEN, YELLOW, RED]
    assert meter.execute(1, 0, 10**9) == meter.execute(9, 0, 1) == GREEN


def test_a_red_packet_takes_no_tokens() -> None:
    meter = Meter("I.m", 1, "bytes")
    meter.write(0, MeterConfig(1000, 200, 1000, 200))
    assert [meter.execute(0, 0, n) for n in (201, 200, 1)] == [RED, GREEN, RED]


def test_single_rate_overflow_goes_to_the_excess_bucket() -> None:
    meter = Meter("I.m", 1, "packets")
    meter.write(0, MeterConfig(cir=10, cburst=2, eburst=1))
    assert [meter.execute(0, 0, 1500) for _ in range(4)] == [GREEN, GREEN, YELLOW, RED]
    assert [meter.execute(0, SECOND, 1500) for _ in range(4)] == [GREEN, GREEN, YELLOW, RED]


def test_slow_rates_lose_nothing_to_rounding() -> None:
    meter = Meter("I.m", 1, "packets")
    meter.write(0, MeterConfig(3, 1, 3, 1))
    colours = [meter.execute(0, t * SECOND // 1000, 1) for t in range(0, 3000)]
    assert colours.count(GREEN) == 9 and YELLOW not in colours


def test_rates_may_be_below_one_a_second() -> None:
    meter = Meter("I.m", 1, "packets")
    meter.write(0, MeterConfig(1, 1, 2, 1, period=10))
    colours = [meter.execute(0, t * SECOND, 1) for t in range(0, 21)]
    assert [t for t, colour in enumerate(colours) if colour == GREEN] == [0, 10, 20]
    assert [t for t, colour in enumerate(colours) if colour == YELLOW] == [5, 15]
    assert meter.read(0) == MeterConfig(1, 1, 2, 1, period=10)


def test_meter_refusals() -> None:
    meter = Meter("I.m", 1, "packets")
    refused("OUT_OF_RANGE", "meter I.m: index 1 is not within 0 to 0", meter.read, 1)
    refused("INVALID_ARGUMENT", "meter: peak rate 1 is below committed rate 2",
            MeterConfig, 2, 1, 1, 1)  # fmt: skip
    refused("INVALID_ARGUMENT", "meter: cburst is -1, not within 0 to 2^63 - 1",
            MeterConfig, 2, -1, 3, 1)  # fmt: skip
    refused("INVALID_ARGUMENT", "meter: period is 0, not within 1 to 2^31 - 1",
            MeterConfig, 1, 1, 1, 1, 0, 0)  # fmt: skip
    meter.write(0, MeterConfig(1, 1, 1, 1))
    meter.write(0, None)
    assert meter.read(0) is None and meter.execute(0, 0, 1) == GREEN


# -- value sets ---------------------------------------------------------------------------------


def test_value_sets() -> None:
    keys = [
        ir.Key("type", ir.Var(Bits(16), "type", 1), "exact"),
        ir.Key("port", ir.Var(Bits(16), "port", 2), "range"),
    ]
    values = ParserValueSet(ir.ValueSet("P.vs", keys, 2))
    assert not values.contains((1, 2))
    values.replace([((0x800,), (10, 20)), ((0x86DD,), None)])
    assert [values.contains(k) for k in ((0x800, 20), (0x800, 21), (0x86DD, 0))] == [
        True,
        False,
        True,
    ]
    refused("RESOURCE_EXHAUSTED", "value set P.vs: 3 members for its size of 2",
            values.replace, [((1,), None)] * 3)  # fmt: skip
    refused("INVALID_ARGUMENT", "value set P.vs: 1 matches given for 2 fields",
            values.replace, [((1,),)])  # fmt: skip
    refused("INVALID_ARGUMENT", "value set P.vs: field port: range 2..1 is empty: low is above "
            "high", values.replace, [((1,), (2, 1))])  # fmt: skip
    assert len(values.members) == 2
