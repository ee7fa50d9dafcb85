"""LearnAction and its relatives, and keys of match kind dleft_hash, in both engines."""

from __future__ import annotations

import random

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.arch.tna.learn_actions import digest_of
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.source import CompileError

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
ROWS = 4

CACHE = """
    Register<pair_t, bit<8>>(4) cache;
    LearnAction{number}<pair_t, bit<8>, bit<64>, {types}>(cache) learn = {{
        void apply(inout pair_t value, in bit<64> digest, in bool learn, {results}) {{
            {body}
        }}
    }};
    action find() {{ {call} }}
    table flows {{
        key = {{ {keys} }}
        actions = {{ find; NoAction; }}
        {entries}
        size = 4;
    }}"""

FIND = """
    if (value.first == digest) { rv1 = 1; }
    else if (value.second == digest) { rv1 = 2; }
    else if (learn) { value.second = value.first; value.first = digest; rv1 = 3; }"""

PARTS = {
    "number": "",
    "types": "bit<8>",
    "results": "out bit<8> rv1",
    "body": FIND,
    "call": "h.a.z = learn.execute(h.a.y);",
    "keys": "h.a.x : dleft_hash; h.a.kind : exact;",
    "entries": "const entries = { (_, 1) : find(); }",
}


def cache(engine: str = "jit", ingress: str = "flows.apply();", **parts: str) -> Switch:
    return switch(
        engine,
        include="t2na.p4",
        types="struct pair_t { bit<64> first; bit<64> second; }",
        ingress_locals=CACHE.format(**{**PARTS, **parts}),
        ingress=f"tm.ucast_egress_port = 1; {ingress}",
    )


def refused(**parts: str) -> str:
    with pytest.raises(CompileError) as error:
        cache(**parts)
    return str(error.value)


def found(made: Switch, x: int, row: int = 0, kind: int = 1) -> int:
    ((_, data),) = made.process(0, packet(kind, x, row))
    return data[3]


class Model:
    """A cache of rows with the last two digests that were not in them."""

    def __init__(self) -> None:
        self.rows = [[0, 0] for _ in range(ROWS)]

    def find(self, x: int, row: int) -> int:
        digest, pair = digest_of(bytes([x])), self.rows[row]
        if digest in pair:
            return 1 + pair.index(digest)
        self.rows[row] = [digest, pair[0]]
        return 3


@ENGINES
def test_a_cache_finds_what_it_learned(engine: str) -> None:
    made, model, rng = cache(engine), Model(), random.Random(5)
    results = set()
    for _ in range(80):
        x, row = rng.randrange(12), rng.randrange(ROWS)
        assert found(made, x, row) == model.find(x, row)
        results.add(found(made, x, row))
        model.find(x, row)
    assert results == {1, 2}
    cells = [made.register("cache").read(row) for row in range(ROWS)]
    assert cells == [first << 64 | second for first, second in model.rows]


@ENGINES
def test_entries_are_looked_up_without_the_hashed_keys(engine: str) -> None:
    made = cache(engine, entries="")
    assert found(made, 7) == 0  # NoAction
    made.table("flows").add({"h.a.kind": 1}, "find")
    assert [found(made, 7), found(made, 7), found(made, 7, kind=2)] == [3, 1, 0]


@ENGINES
def test_a_table_may_have_hashed_keys_only(engine: str) -> None:
    made = cache(engine, keys="h.a.x : dleft_hash;", entries="const default_action = find();")
    assert [found(made, 7), found(made, 8), found(made, 7)] == [3, 3, 2]


@ENGINES
def test_a_digest_depends_on_all_keys_of_its_table(engine: str) -> None:
    keys = "h.a.x : dleft_hash; h.a.kind : dleft_hash; h.a.isValid() : dleft_hash;"
    made = cache(engine, keys=keys, entries="const default_action = find();")
    assert [found(made, 7, kind=kind) for kind in (1, 2, 2, 1)] == [3, 3, 1, 2]
    digests = [digest_of(bytes([7, kind, 0x80])) for kind in (2, 1)]
    cell = made.register("cache").read(0)
    assert [cell >> 64, cell & (1 << 64) - 1] == digests


@ENGINES
def test_two_tables_share_a_learn_action(engine: str) -> None:
    made = cache(
        engine,
        call="""h.a.z = learn.execute(h.a.y); }
            table others {
                key = { h.a.kind : dleft_hash; }
                actions = { find; }
                const default_action = find();""",
        ingress="if (h.a.kind == 1) { flows.apply(); } else { others.apply(); }",
    )
    assert [found(made, 9), found(made, 200, kind=9), found(made, 9)] == [3, 1, 1]


@ENGINES
def test_a_digest_is_never_0_and_leaves_room_below(engine: str) -> None:
    made = cache(engine, body="value.first = digest; rv1 = digest[7:0];")
    for x in (0, 1, 255):
        assert found(made, x) == 0
        digest = made.register("cache").read(0) >> 64
        assert digest == digest_of(bytes([x])) and digest & 0x1FF == 0x100 and digest < 1 << 60


@ENGINES
@pytest.mark.parametrize("number", [2, 3, 4])
def test_learn_actions_have_up_to_four_results(engine: str, number: int) -> None:
    rest = range(2, number + 1)
    made = cache(
        engine,
        number=str(number),
        types=", ".join(["bit<8>", "bit<8>", "bit<16>", "bit<16>"][:number]),
        results=", ".join(
            f"out {t} rv{i}" for i, t in enumerate(["bit<8>", "bit<8>", "bit<16>", "bit<16>"], 1)
            if i <= number
        ),
        body=FIND + "rv2 = this.address<bit<8>>();"
        + ("rv3 = this.predicate<bit<16>>();" if number > 2 else "")
        + ("rv4 = digest[23:8];" if number > 3 else ""),
        call=f"""
            bit<8> r2; bit<16> r3; bit<16> r4;
            h.a.z = learn.execute(h.a.y, {", ".join(f"r{i}" for i in rest)});
            h.a.y = r2; h.a.kind = r3[7:0]; h.a.x = r4[7:0];""",
    )  # fmt: skip
    ((_, data),) = made.process(0, packet(1, 7, 3))
    predicate = 1 if number > 2 else 0  # none of the two comparisons holds: bit 0
    low = digest_of(bytes([7])) >> 8 & 0xFF if number > 3 else 0
    assert data == packet(predicate, low, 3, 3)


def test_control_protocols_do_not_see_hashed_keys() -> None:
    (table,) = build_p4info(cache().program).tables
    assert [field.name for field in table.match_fields] == ["h.a.kind"]


def test_a_learn_action_needs_hashed_keys() -> None:
    message = refused(keys="h.a.x : exact; h.a.kind : exact;", entries="")
    assert "ingress.learn has no digest: table ingress.flows runs it" in message
    assert "keys of match kind dleft_hash" in message
    assert "no table runs it here" in refused(ingress="find();")


def test_entries_need_a_key_that_is_looked_up() -> None:
    message = refused(keys="h.a.x : dleft_hash;", entries="const entries = { 1 : find(); }")
    assert "table ingress.flows has entries, and no key but of match kind dleft_hash" in message


@pytest.mark.parametrize("kind", ["bool", "int<64>", "pair_t"])
def test_a_digest_is_a_number_of_bits(kind: str) -> None:
    with pytest.raises(CompileError, match="ingress.learn: a digest is bit<W>, not"):
        switch(
            include="t2na.p4",
            types="struct pair_t { bit<64> first; bit<64> second; }",
            ingress_locals=CACHE.format(**{**PARTS, "body": "rv1 = 1;"}).replace("bit<64>", kind),
            ingress="flows.apply();",
        )


def test_an_access_is_one_for_a_packet() -> None:
    assert "a second time" in refused(call="h.a.z = learn.execute(0) + learn.execute(1);")


def test_tofino_1_has_no_learn_actions() -> None:
    with pytest.raises(CompileError, match="LearnAction"):
        switch(ingress_locals=CACHE.format(**PARTS), ingress="flows.apply();",
               types="struct pair_t { bit<64> first; bit<64> second; }")  # fmt: skip
