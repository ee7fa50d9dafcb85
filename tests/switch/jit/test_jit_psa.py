"""The PSA programs of the packet tests on both engines, with random tables and packets."""

from pathlib import Path

import pytest
from jit_pair import Pair, random_packet

from gradplane.switch.compiler import compile_program
from gradplane.switch.runtime.replicas import CloneSession, Replica

PROGRAMS = Path(__file__).parents[1] / "stf" / "psa"
PORT_RECIRCULATE, PORT_CPU = 0xFFFF_FFFA, 0xFFFF_FFFD


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.p4")), ids=lambda path: path.stem)
def test_psa_programs_agree(program: Path) -> None:
    pair = Pair(compile_program(program), seed=3)
    for _ in range(3):
        pair.populate()
        _groups(pair)
        packets = [_packet(pair) for _ in range(60)]
        pair.check(packets)
        pair.disturb()


def _groups(pair: Pair) -> None:
    """Set sessions and groups that lead back in and to the CPU, of every class of service."""
    rng = pair.rng
    for number in range(8):
        ports = rng.sample([1, 2, 70000, PORT_RECIRCULATE, PORT_CPU], rng.randrange(3))
        replicas = [Replica(port, rng.randrange(1 << 16)) for port in ports]
        session = CloneSession(replicas, rng.choice([0, 0, 1, 6, 9]), rng.randrange(256))
        for switch in pair.both:
            switch.state.clone_sessions[number] = session
            if number == 7 and replicas:
                switch.state.multicast[number] = replicas


def _packet(pair: Pair) -> bytes:
    """Return a header of the programs, with a limited number of rounds; sometimes too short."""
    rng = pair.rng
    header = [rng.choice([0, 1, 2, 3, 4, 5, 9]), *(rng.randrange(8) for _ in range(3))]
    whole = bytes(header) + random_packet(rng, rng.choice([2, 2, 3, 10, 30]))
    return whole if rng.randrange(8) else whole[: rng.randrange(7)]
