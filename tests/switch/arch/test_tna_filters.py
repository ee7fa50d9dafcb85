"""Lpf and Wred: what they compute, and that both engines compute the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import tnaprograms
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch import Switch
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.filters import Filter, FilterConfig

PROGRAM = {
    "ingress_locals": """
        Lpf<bit<16>, bit<8>>(4) smooth;
        Wred<bit<16>, bit<8>>(4, 7, 3) early;
    """,
    "ingress": """
        bit<16> found = smooth.execute(h.a.y ++ h.a.z, h.a.x);
        if (h.a.kind == 1) { found = (bit<16>) early.execute(h.a.y ++ h.a.z, h.a.x); }
        h.a.y = found[15:8];
        h.a.z = found[7:0];
        tm.ucast_egress_port = 1;
    """,
}


class Time:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture(scope="module")
def both() -> list[tuple[Switch, Time]]:
    """The program in each engine, with a clock."""
    times = Time(), Time()
    return [
        (tnaprograms.switch(engine, clock=time, **PROGRAM), time)
        for engine, time in zip(("interpreter", "jit"), times, strict=True)
    ]


CONFIGS = st.builds(
    FilterConfig,
    gain=st.floats(1, 1e9),
    decay=st.floats(1, 1e9),
    rate=st.booleans(),
    scale=st.integers(0, 4),
    low=st.integers(0, 1000),
    high=st.integers(1000, 60000),
    most=st.floats(0, 1),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 65535), st.integers(0, 10**9)),
    max_size=30,
)


@settings(max_examples=40)
@given(config=CONFIGS, steps=STEPS)
def test_both_engines_compute_the_same(
    both: list[tuple[Switch, Time]], config: FilterConfig, steps: list[tuple[int, int, int, int]]
) -> None:
    found = []
    for switch, time in both:
        time.now = 0
        switch.reset()
        switch.state.rng.state[:] = 1
        for filter in switch.state.filters.values():
            filter.write(1, config)
        out = []
        for kind, index, value, later in steps:
            time.now += later
            packet = tnaprograms.packet(kind, index, value >> 8, value & 255)
            out += [data[2:4] for _, data in switch.process(1, packet)]
        found.append(out)
    assert found[0] == found[1]


def average(config: FilterConfig, values: list[tuple[int, int]]) -> list[int]:
    """Return the results of one filter for values, each with its time."""
    filter = Filter("f", 1)
    filter.write(0, config)
    return [filter.execute(0, value, now) for value, now in values]


def test_an_average_rises_and_falls_by_its_time_constants() -> None:
    config = FilterConfig(gain=1000, decay=10000)
    found = average(config, [(10000, 1000), (0, 2000)])
    first = 10000 * (1 - math.exp(-1))
    assert found == [int(first), int(first * math.exp(-0.1))]


def test_a_rate_sums_what_decays() -> None:
    config = FilterConfig(gain=1, decay=1000, rate=True, scale=1)
    assert average(config, [(100, 0), (100, 0), (0, 1000)]) == [50, 100, int(200 / math.e) >> 1]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: FilterConfig(0, 1), "filter: time constants 0 and 1 ns: both must be above 0"),
        (lambda: FilterConfig(1, 1, scale=32), "filter: scale 32 is not 0 to 31"),
        (lambda: FilterConfig(1, 1, low=2, high=1), "filter: thresholds 2 to 1, probability 0.0"),
        (lambda: Filter("f", 2).write(2, None), "filter f: index 2 is not within 0 to 1"),
    ],
)
def test_what_a_filter_refuses(make: Callable[[], object], text: str) -> None:
    with pytest.raises(TableError) as caught:
        make()
    assert caught.value.message.startswith(text)
