"""Registers whose cells are structs: packed into one number, in both engines."""

import pytest
from psaprograms import source as psa_source
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.source import CompileError

TYPES = """
    struct inner_t { int<8> n; bool f; }
    struct cell_t { bit<8> a; inner_t i; tuple<bit<15>> t; }
"""
INGRESS = """
    cell_t c;
    cells.read(c, 1);
    c.a = c.a + h.a.x;
    c.i.n = c.i.n - 1;
    c.i.f = !c.i.f;
    cells.write(1, c);
    cells.write(2, { 7, { -2, true }, { 5 } });
    h.a.y = (bit<8>) c.i.n;
    h.a.z = c.i.f ? c.a : 0;
    s.egress_spec = 1;
"""


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_v1model(engine: str) -> None:
    text = source(types=TYPES, ingress_locals="register<cell_t>(4) cells;", ingress=INGRESS)
    sw = Switch("cells.p4", text=text, engine=engine)
    assert sw.process(1, bytes([0, 3, 0, 0])) == [(1, bytes([0, 3, 255, 3]))]
    assert sw.process(1, bytes([0, 4, 0, 0])) == [(1, bytes([0, 4, 254, 0]))]
    cells = sw.register("cells")
    assert cells.width == 32
    assert cells.read(1) == 7 << 24 | 254 << 16
    assert cells.read(2) == 7 << 24 | 254 << 16 | 1 << 15 | 5
    cells.write(1, 9 << 24 | 1 << 16 | 1 << 15)
    assert sw.process(1, bytes([0, 1, 0, 0])) == [(1, bytes([0, 1, 0, 0]))]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_psa(engine: str) -> None:
    text = psa_source(
        types="struct cell_t { bit<8> a; bit<16> b; }",
        ingress_locals="Register<cell_t, bit<32>>(4, { 1, 2 }) cells;",
        ingress="""
            cell_t c = cells.read(3);
            cells.write(3, { c.a + 1, c.b + 1 });
            h.a.y = c.a; h.a.z = c.b[7:0];
            send_to_port(o, (PortId_t) 1);
        """,
    )
    sw = Switch("cells.p4", text=text, engine=engine)
    assert [p[2:4] for _, p in sw.process(1, bytes(4))] == [bytes([1, 2])]
    assert [p[2:4] for _, p in sw.process(1, bytes(4))] == [bytes([2, 3])]
    assert sw.register("cells").read(3) == 3 << 16 | 4


def test_headers_are_refused() -> None:
    text = source(ingress_locals="register<a_t>(4) cells;", ingress="cells.read(h.a, 0);")
    """v1model.p4, `register.read`: "only types T that are bit<W>"; nothing says what an invalid
    header is there."""
    with pytest.raises(CompileError) as refused:
        Switch("cells.p4", text=text)
    assert "register of a_t: a cell must be bit<W>, int<W> or bool" in str(refused.value)
    assert "or a struct of those; a header's validity has no place in a cell" in str(refused.value)
