"""`clear` of direct registers: the cells of all entries of their table, in both engines."""

from __future__ import annotations

import random

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.source import CompileError

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
WIPE = 255  # the x of packets that clear

COUNTED = """
    DirectRegister<bit<16>>(3) seen;
    DirectRegisterAction<bit<16>, bit<16>>(seen) more = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    action count() { h.a.z = (bit<8>)more.execute(); }
    action wipe() { seen.clear((bit<16>)h.a.y); }
    table flows {
        key = { h.a.x : KIND; }
        actions = { count; wipe; }
        const default_action = count();
        registers = seen;
        size = 300;
    }"""


def counted(engine: str, kind: str = "exact", **replaced: str) -> Switch:
    text = COUNTED.replace("KIND", kind)
    for old, new in replaced.items():
        text = text.replace(old, new)
    return switch(
        engine, include="t2na.p4", ingress_locals=text,
        ingress="tm.ucast_egress_port = 1; flows.apply();",
    )  # fmt: skip


def count(made: Switch, x: int, pipe: int = 0) -> int:
    ((_, data),) = made.process(pipe << 7, packet(0, x))
    return data[3]


def clear(made: Switch, value: int, pipe: int = 0) -> None:
    made.process(pipe << 7, packet(0, WIPE, value))


@ENGINES
def test_clear_reaches_the_cells_that_there_are(engine: str) -> None:
    made, rng = counted(engine), random.Random(3)
    table = made.table("flows")
    table.add({"h.a.x": WIPE}, "wipe")
    cells: dict[int, int] = {}
    missed = 3
    for _ in range(600):
        x = rng.randrange(60)
        what = rng.choice(["add", "remove", "count", "count", "clear"])
        if what == "add" and x not in cells:
            table.add({"h.a.x": x}, "count")
            cells[x] = 3
        elif what == "remove" and x in cells:
            table.remove({"h.a.x": x})
            del cells[x]
        elif what == "clear" and rng.random() < 0.2:
            clear(made, x)
            cells, missed = dict.fromkeys(cells, x), x
        elif x in cells:
            cells[x] = cells[x] % 0xFFFF + 1
            assert count(made, x) == cells[x] % 256
        else:
            missed += 1
            assert count(made, x) == missed % 256


@ENGINES
@pytest.mark.parametrize("kind", ["ternary", "lpm", "range"])
def test_clear_works_in_tables_of_all_kinds(engine: str, kind: str) -> None:
    made = counted(engine, kind)
    table = made.table("flows")
    one, all_ones = {
        "ternary": ((7, 0xFF), (WIPE, 0xFF)),
        "lpm": ((7, 8), (WIPE, 8)),
        "range": ((7, 8), (WIPE, WIPE)),
    }[kind]
    priority = None if kind == "lpm" else 1
    table.add({"h.a.x": one}, "count", priority=priority)
    table.add({"h.a.x": all_ones}, "wipe", priority=priority)
    assert [count(made, 7), count(made, 7), count(made, 9)] == [4, 5, 4]
    clear(made, 40)
    assert [count(made, 7), count(made, 9)] == [41, 41]


@ENGINES
def test_clear_is_of_the_pipe_whose_entries_are_its_own(engine: str) -> None:
    made = counted(engine)
    made.set_scope("flows")
    for pipe in (0, 1):
        made.table("flows", pipe).add({"h.a.x": WIPE}, "wipe")
        made.table("flows", pipe).add({"h.a.x": 7}, "count")
    clear(made, 90, pipe=1)
    assert [count(made, 7, pipe) for pipe in (0, 1, 0, 1)] == [4, 91, 5, 92]


@ENGINES
def test_clear_works_in_tables_with_an_action_profile(engine: str) -> None:
    made = counted(
        engine, **{"DirectRegister<": "ActionProfile(4) members; DirectRegister<",
                   "const default_action = count();": "implementation = members;"},
    )  # fmt: skip
    made.profile("members").add_member(1, "count")
    made.profile("members").add_member(2, "wipe")
    made.table("flows").add({"h.a.x": 7}, member=1)
    made.table("flows").add({"h.a.x": WIPE}, member=2)
    clear(made, 20)
    assert [count(made, 7), count(made, 7)] == [21, 22]


@ENGINES
@pytest.mark.parametrize("cell", ["bit<128>", "int<8>", "pair_t"])
def test_cells_may_be_of_any_type(engine: str, cell: str) -> None:
    made = switch(
        engine, include="t2na.p4",
        types="struct pair_t { bit<32> first; bit<32> second; }",
        ingress_locals=f"""
            DirectRegister<{cell}>() kept;
            action show() {{ {cell} c = kept.read(); h.a.z = {{}}; }}
            action wipe() {{ kept.clear({{}}); }}
            table t {{ key = {{ h.a.x : exact; }} actions = {{ show; wipe; }}
                      const default_action = show(); registers = kept; }}""".replace(
            "h.a.z = {}", "h.a.z = " + ("c.second[7:0]" if cell == "pair_t" else "(bit<8>)c[7:0]")
        ).replace(
            "clear({})",
            {"bit<128>": "clear((bit<128>)h.a.y << 64 | 0x55)", "int<8>": "clear((int<8>)h.a.y)",
             "pair_t": "clear({ 1, (bit<32>)h.a.y })"}[cell],
        ),
        ingress="tm.ucast_egress_port = 1; t.apply();",
    )  # fmt: skip
    for x, action in ((7, "show"), (WIPE, "wipe")):
        made.table("t").add({"h.a.x": x}, action)
    assert [count(made, 7), count(made, 8)] == [0, 0]
    clear(made, 0xFD)
    expected = 0x55 if cell == "bit<128>" else 0xFD
    assert [count(made, 7), count(made, 8)] == [expected] * 2
    if cell == "bit<128>":
        entry = next(made.state.tables["ingress.t"].entries())
        assert entry.register is not None and entry.register.read(0) == 0xFD << 64 | 0x55


@ENGINES
def test_clear_of_a_direct_register_without_a_table(engine: str) -> None:
    made = switch(
        engine, include="t2na.p4", ingress_locals="DirectRegister<bit<16>>(3) kept;",
        ingress="""tm.ucast_egress_port = 1;
            if (h.a.x == 255) { kept.clear((bit<16>)h.a.y, 1); }
            else { h.a.z = (bit<8>)kept.read(); }""",
    )  # fmt: skip
    assert count(made, 0) == 3
    clear(made, 9)
    assert count(made, 0) == 9


def test_clear_is_an_access() -> None:
    with pytest.raises(CompileError, match="a second time"):
        counted("jit", **{"seen.clear(": "more.execute(); seen.clear("})


def test_clear_is_called_in_an_action_of_the_registers_table() -> None:
    with pytest.raises(CompileError, match="DirectRegister.clear may be called in an action of"):
        switch(
            include="t2na.p4", ingress_locals=COUNTED.replace("KIND", "exact"),
            ingress="flows.apply(); seen.clear(0);",
        )  # fmt: skip


@ENGINES
@pytest.mark.parametrize("cell", ["bit<16>", "bit<128>", "int<8>"])
def test_pipes_that_share_entries_have_cells_of_their_own(engine: str, cell: str) -> None:
    made = counted(
        engine,
        **{"Register<bit<16>>": f"Register<{cell}>", "Action<bit<16>,": f"Action<{cell},",
           "inout bit<16>": f"inout {cell}", "rv = value;": "rv = (bit<16>)value[7:0];",
           "clear((bit<16>)h.a.y)": f"clear(({cell})h.a.y)"},
    )  # fmt: skip
    made.table("flows").add({"h.a.x": 7}, "count")
    made.table("flows").add({"h.a.x": WIPE}, "wipe")
    assert [count(made, 7, pipe) for pipe in (0, 1, 3, 1, 1, 0)] == [4, 4, 4, 5, 6, 5]
    assert [count(made, 9, pipe) for pipe in (2, 3, 2)] == [4, 4, 5]  # misses
    clear(made, 40, pipe=1)
    assert [count(made, 7, pipe) for pipe in (0, 1, 2, 3)] == [6, 41, 4, 5]
    assert [count(made, 9, pipe) for pipe in (1, 2)] == [41, 6]
