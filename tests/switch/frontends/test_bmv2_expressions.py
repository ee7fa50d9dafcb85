"""Expressions of BMv2, with integers of any size, mean the same with the widths they are given."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from bmv2_documents import Json, assign, document, field, hexstr, op, read
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch.ir.verify import verify
from gradplane.switch.switch import Switch

FIELDS = [["a", 8, False], ["b", 16, False], ["s", 8, True], ["t", 16, True]]
BYTES = {"a": 1, "b": 2, "s": 1, "t": 2}
RESULT, COUNT = 40, 6  # bits of a result, results a program

Values = dict[str, int]


def two_comp(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def divided(a: int, b: int) -> int:
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def meaning(e: Json, values: Values) -> Any:
    """The value of an expression, as simple_switch computes it."""
    if e["type"] == "field":
        return values[e["value"][1]]
    if e["type"] == "hexstr":
        return int(e["value"], 16)
    if e["type"] == "bool":
        return e["value"]
    v = e["value"]
    if v["op"] == "?":
        return meaning(v["left"] if meaning(v["cond"], values) else v["right"], values)
    right = meaning(v["right"], values)
    left = None if v["left"] is None else meaning(v["left"], values)
    if left is None:
        return {"~": lambda x: ~x, "-": lambda x: -x, "not": operator.not_,
                "d2b": bool, "b2d": int}[v["op"]](right)  # fmt: skip
    return BINARY[v["op"]](left, right)


BINARY: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "/": divided, "%": lambda a, b: a - b * divided(a, b) if b else 0,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "two_comp_mod": two_comp,
    "usat_cast": lambda a, w: max(0, min(a, (1 << w) - 1)),
    "sat_cast": lambda a, w: max(-(1 << (w - 1)), min(a, (1 << (w - 1)) - 1)),
}  # fmt: skip

leaves = st.one_of(
    st.sampled_from([field("h", name) for name, *_ in FIELDS]),
    st.integers(-300, 70000).map(hexstr),
    st.sampled_from([0, 1, 0xFF, 0xFFFF, 0xF0]).map(hexstr),
)


def deeper(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    width = st.integers(1, 24).map(hexstr)
    amount = st.one_of(st.integers(0, 20).map(hexstr), st.just(field("h", "a")).map(
        lambda a: op("&", a, hexstr(15))))  # fmt: skip
    truth = st.builds(op, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner)
    return st.one_of(
        st.builds(op, st.sampled_from(["+", "-", "*", "&", "|", "^", "/", "%"]), inner, inner),
        st.builds(op, st.sampled_from(["<<", ">>"]), inner, amount),
        st.builds(op, st.sampled_from(["~", "-"]), st.none(), inner),
        st.builds(op, st.sampled_from(["two_comp_mod", "usat_cast", "sat_cast"]), inner, width),
        st.builds(op, st.just("&"), inner, st.integers(1, 24).map(lambda n: hexstr(2**n - 1))),
        st.builds(lambda c, a, b: op("?", a, b, cond=c), truth, inner, inner),
        st.builds(lambda c: op("b2d", None, c), truth),
        st.builds(lambda a, b, n: op("b2d", None, op(n, a, op("not", None, b))), truth, truth,
                  st.sampled_from(["and", "or"])),
    )  # fmt: skip


expressions = st.recursive(leaves, deeper, max_leaves=8)


@settings(max_examples=25)
@given(
    st.lists(expressions, min_size=COUNT, max_size=COUNT),
    st.lists(st.binary(min_size=6, max_size=6), min_size=1, max_size=3),
)
def test_numbers_have_room(found: list[Json], packets: list[bytes]) -> None:
    results = [[f"r{i}", RESULT, False] for i in range(COUNT)]
    code = [assign(field("h", f"r{i}"), e) for i, e in enumerate(found)]
    program = read(document([*FIELDS, *results], code))
    verify(program)
    switch = Switch(program, engine="interpreter")
    for packet in packets:
        values, rest = {}, packet
        for name, width, signed in FIELDS:
            number = int.from_bytes(rest[: BYTES[name]], "big")
            values[name] = two_comp(number, width) if signed else number
            rest = rest[BYTES[name] :]
        size = RESULT // 8
        ((_, out),) = switch.process(2, packet + bytes(COUNT * size))
        for i, e in enumerate(found):
            at = len(packet) + i * size
            expected = int(meaning(e, values)) & ((1 << RESULT) - 1)
            assert int.from_bytes(out[at : at + size], "big") == expected, e


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_what_is_cut_is_computed_with_that_many_bits(engine: str) -> None:
    fields = [["a", 8, False], ["b", 8, False], ["sum", 8, False], ["more", 8, False]]
    cut = op("&", op("+", field("h", "a"), field("h", "b")), hexstr(0xFF))
    exact = op("b2d", None, op(">", op("+", field("h", "a"), field("h", "b")), hexstr(0xFF)))
    code = [assign(field("h", "sum"), cut), assign(field("h", "more"), exact)]
    switch = Switch(read(document(fields, code)), engine=engine)
    assert switch.process(0, bytes([200, 100, 0, 0])) == [(1, bytes([200, 100, 44, 1]))]
    assert switch.process(0, bytes([20, 100, 0, 0])) == [(1, bytes([20, 100, 120, 0]))]
