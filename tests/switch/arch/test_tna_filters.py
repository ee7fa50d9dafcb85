"""Lpf and Wred: what they compute, and that both engines compute the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import tnaprograms
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch import CompileError, Switch
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


DIRECT = {
    "ingress_locals": """
        DirectLpf<bit<16>>() smooth;
        DirectWred<bit<16>>(7, 3) early;
        bit<16> found = 0;
        action average() { found = smooth.execute(h.a.y ++ h.a.z); }
        action drop_early() { found = (bit<16>) early.execute(h.a.y ++ h.a.z); }
        table averages {
            key = { h.a.x : exact; } actions = { average; NoAction; }
            default_action = average; filters = smooth;
        }
        table early_drops {
            key = { h.a.x : ternary; } actions = { drop_early; NoAction; }
            default_action = drop_early; filters = early;
        }
    """,
    "ingress": """
        if (h.a.kind == 1) { early_drops.apply(); } else { averages.apply(); }
        h.a.y = found[15:8];
        h.a.z = found[7:0];
        tm.ucast_egress_port = 1;
    """,
}


@pytest.mark.parametrize(("kind", "arguments"), [("Lpf", "4"), ("Wred", "4, 7, 3")])
def test_a_table_may_name_the_array_of_filters_that_its_actions_use(
    kind: str, arguments: str
) -> None:
    """As an example of the chip's vendor does; bf-p4c attaches direct ones only."""
    table = f"""
        {kind}<bit<16>, bit<8>>({arguments}) smooth;
        action average() {{ h.a.y = (bit<8>) smooth.execute(16w4, h.a.x); }}
        table averages {{
            key = {{ h.a.kind : exact; }} actions = {{ average; }} default_action = average;
            filters = smooth;
        }}
    """
    sw = tnaprograms.switch(ingress_locals=table, ingress="averages.apply();")
    assert next(t for t in sw.program.tables if t.name == "ingress.averages").filter is None
    assert sw.program.externs[0].kind == kind.lower()


class Time:
    now = 0

    def __call__(self) -> int:
        return self.now


def in_each_engine(program: dict[str, str]) -> list[tuple[Switch, Time]]:
    times = Time(), Time()
    return [
        (tnaprograms.switch(engine, clock=time, **program), time)
        for engine, time in zip(("interpreter", "jit"), times, strict=True)
    ]


@pytest.fixture(scope="module")
def both() -> list[tuple[Switch, Time]]:
    """Provide the program in each engine, with a clock."""
    return in_each_engine(PROGRAM)


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


@pytest.fixture(scope="module")
def both_direct() -> list[tuple[Switch, Time]]:
    """Provide the program with filters of its tables' entries in each engine, with a clock."""
    return in_each_engine(DIRECT)


def fill_and_configure(switch: Switch, config: FilterConfig) -> None:
    """Give both tables entries for 1 and 2, and configure the filters of 1 and of the misses."""
    for name, action in (("averages", "average"), ("early_drops", "drop_early")):
        for value in (1, 2):
            key = {"h.a.x": value if name == "averages" else (value, 255)}
            switch.table(f"ingress.{name}").add(
                key, f"ingress.{action}", {}, priority=0 if name == "averages" else 1
            )
        table = switch.state.tables[f"ingress.{name}"]
        first = next(iter(table.entries()))
        for filter in (first.filter, table.default_filter):
            assert filter is not None
            filter.write(0, config)


@settings(max_examples=20)
@given(config=CONFIGS, steps=STEPS)
def test_both_engines_filter_by_entry(
    both_direct: list[tuple[Switch, Time]],
    config: FilterConfig,
    steps: list[tuple[int, int, int, int]],
) -> None:
    found = []
    for switch, time in both_direct:
        time.now = 0
        switch.reset()
        switch.state.rng.state[:] = 1
        fill_and_configure(switch, config)
        out = []
        for kind, index, value, later in steps:
            time.now += later
            packet = tnaprograms.packet(kind, index, value >> 8, value & 255)
            out += [data[2:4] for _, data in switch.process(1, packet)]
        found.append(out)
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_each_entry_has_a_filter_of_its_own(engine: str) -> None:
    time = Time()
    switch = tnaprograms.switch(engine, clock=time, **DIRECT)
    fill_and_configure(switch, FilterConfig(gain=1000, decay=1000))
    time.now = 1000
    reached = int(40000 * (1 - math.exp(-1))).to_bytes(2, "big")
    given = (40000).to_bytes(2, "big")
    for index, expected in ((1, reached), (2, given), (3, reached)):
        [(_, data)] = switch.process(1, tnaprograms.packet(0, index, given[0], given[1]))
        assert data[2:4] == expected, index
    switch.reset()
    [(_, data)] = switch.process(1, tnaprograms.packet(0, 3, given[0], given[1]))
    assert data[2:4] == given


def test_a_direct_filter_is_its_tables() -> None:
    wrong = {**DIRECT, "ingress": "found = smooth.execute(1); tm.ucast_egress_port = 1;"}
    with pytest.raises(CompileError, match="the table has the property filters = ingress.smooth"):
        tnaprograms.switch(**wrong)


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
