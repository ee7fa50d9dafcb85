"""Accesses to registers: what they read, and what the chip's compiler refuses of them."""

import pytest
from fragments import report, table

COUNT = """Register<bit<32>, bit<8>>(256) r;
    RegisterAction<{types}>(r) count = {{ void apply({args}) {{ {body} }} }};"""
ARGS = "inout bit<32> value, out bit<32> now"


def declared(body: str, types: str = "bit<32>, bit<8>, bit<32>", args: str = ARGS) -> str:
    return COUNT.format(types=types, args=args, body=body)


def test_an_access_counts_where_nothing_reads_what_it_gives() -> None:
    access = declared("value = value + 1; now = value;")
    access += "action act() { count.execute(hdr.ip.tos); }" + table("one", "hdr.ip.dst", "act")
    found = report(access, "one.apply();").pipelines[0]
    assert [u.instance.name for t in found.tables for u in t.uses] == ["Ingress.r"]


def test_an_access_takes_what_a_field_was_set_to_in_its_action() -> None:
    access = declared("value = md.s; now = value;")
    access += "action act() { md.s = hdr.ip.src; hdr.ip.dst = count.execute(hdr.ip.tos); }"
    found = report(access + table("one", "hdr.ip.dst", "act"), "one.apply(); hdr.words.w0 = md.s;")
    assert found.fits, found.pipelines[0].overruns


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ("if (hdr.ip.ttl == 1) { value = 0; } value = value + 1;", False),
        ("value = 1; if (hdr.ip.ttl == 1) { value = value + 1; }", False),
        ("if (hdr.ip.ttl == 1) { value = 1; } if (hdr.ip.ttl == 1) { value = 2; }", False),
        ("if (hdr.ip.ttl == 1) { value = 1; } else { value = value + 1; }", True),
        (
            "if (hdr.ip.ttl == 1) { if (hdr.ip.tos == 1) { value = 1; } else { value = 2; } }"
            " else { if (hdr.ip.tos == 1) { value = 3; } }",
            True,
        ),
        ("value = 0; if (hdr.ip.ttl == 1) { value = 1; }", True),
        ("value = value + 1; now = value;", True),
    ],
)
def test_an_access_sets_a_number_once(body: str, fits: bool) -> None:
    found = report(declared(body), "hdr.ip.src = count.execute(hdr.ip.tos);").pipelines[0]
    assert found.fits == fits
    for overrun in found.overruns:
        assert overrun.what.startswith("Ingress.count may set value twice in one access, again in")
        assert "if, else" in overrun.way_out


@pytest.mark.parametrize(
    ("index", "cells", "fits"), [(8, 32, True), (8, 16, False), (9, 16, True), (9, 32, True)]
)
def test_an_action_has_the_cells_of_its_register(index: int, cells: int, fits: bool) -> None:
    """Or parts of them, which more bits of the index choose among."""
    access = declared(
        "now = value;",
        f"bit<{cells}>, bit<{index}>, bit<{cells}>",
        f"inout bit<{cells}> value, out bit<{cells}> now",
    )
    body = f"hdr.words.w0[{cells - 1}:0] = count.execute(hdr.ip.id[{index - 1}:0]);"
    found = report(access, body).pipelines[0]
    assert found.fits == fits
    for overrun in found.overruns:
        assert overrun.what == (
            "Ingress.count has cells of bit<16>, its register Ingress.r of bit<32>"
        )
        assert overrun.way_out == "give both the same type"
