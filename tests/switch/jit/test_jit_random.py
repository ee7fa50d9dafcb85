"""Random programs on the JIT engine and the interpreter."""

import random
from collections.abc import Callable

import pytest
from jit_pair import Pair, random_packet
from jit_random_programs import random_program
from source_psa import psa_program
from source_tna import tna_program
from source_v1model import v1model_program

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir.verify import verify

LENGTHS = (20, 40, 70, 110, 150, 250)


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_agree(seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(random_program(rng), seed)
    pair.check([random_packet(rng, rng.choice([40, 70, 110, 150, 250])) for _ in range(1000)])


@pytest.mark.parametrize("seed", range(4))
def test_code_that_is_made_quickly_agrees(seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(random_program(rng), seed, quick=True)
    pair.check([random_packet(rng, rng.choice([40, 70, 110, 150, 250])) for _ in range(300)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [v1model_program, psa_program, tna_program])
def test_random_sources_agree(make: Callable[[random.Random], str], seed: int) -> None:
    """Random sources compile to legal IR and run alike in either spelling."""
    rng = random.Random(seed)
    text = make(rng)
    program = compile_program("random.p4", text=text)
    spelled_out = compile_program("random.p4", defines=["SPELLED_OUT"], text=text)
    verify(program)
    verify(spelled_out)
    pair = Pair(program, seed, cpu_port=3, other=spelled_out)
    for _ in range(2):
        pair.populate()
        pair.check([random_packet(rng, rng.choice(LENGTHS)) for _ in range(100)])
        pair.disturb()
