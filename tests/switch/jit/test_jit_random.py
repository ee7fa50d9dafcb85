"""Random programs on the JIT engine and the interpreter."""

import random

import pytest
from jit_pair import Pair, random_packet
from jit_random_programs import random_program


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_agree(seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(random_program(rng), seed)
    pair.check([random_packet(rng, rng.choice([40, 70, 110, 150, 250])) for _ in range(1000)])
