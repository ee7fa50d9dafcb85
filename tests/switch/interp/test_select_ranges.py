"""Selects over ranges hold the numbers of the key's own sign, both ends included."""

import pytest
from v1programs import source

from gradplane.switch import Switch

RANGES = [(-3, 3), (-128, -1), (-128, 127), (0, 127), (5, 5), (-5, -5), (-128, -127)]
UNSIGNED = [(0, 255), (127, 128), (0, 0), (255, 255), (3, 253)]
CASES = "".join(f"({n}, {low} .. {high}, _): yes;" for n, (low, high) in enumerate(RANGES))
CASES += "".join(f"({n + 100}, _, {low} .. {high}): yes;" for n, (low, high) in enumerate(UNSIGNED))
PARSER = f"""
    pkt.extract(h.a);
    transition select(h.a.kind, (int<8>) h.a.x, h.a.x) {{ {CASES} _: accept; }}
"""


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_every_number_is_in_the_ranges_that_hold_it(engine: str) -> None:
    text = source(
        parser=PARSER,
        states="state yes { m.unused = 1; transition accept; }",
        ingress="s.egress_spec = 1; h.a.y = m.unused;",
    )
    sw = Switch("ranges.p4", text=text, engine=engine)
    kinds = [(n, low, high, 128) for n, (low, high) in enumerate(RANGES)]
    kinds += [(n + 100, low, high, 0) for n, (low, high) in enumerate(UNSIGNED)]
    for kind, low, high, sign in kinds:
        packets = [bytes([kind, x, 0, 0]) for x in range(256)]
        found = sw.process_batch([0] * 256, packets)
        taken = [x for x, (_, _, data) in enumerate(found) if data[2]]
        numbers = [x - 256 if x & sign else x for x in range(256)]
        assert taken == [x for x in range(256) if low <= numbers[x] <= high], (kind, low, high)
