"""p4/shared.p4 and shared_tna.p4 against their rules as plain Python (shared_switch.py), and codec
arithmetic."""

import functools
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_switch import (
    EPOCH,
    JOBS,
    NORMS,
    PATIENCE,
    PROGRAMS,
    TABLE,
    WORKERS,
    Oracle,
    SharedSwitch,
    TofinoOracle,
    codes,
    frame,
    indices,
    opened,
    port_of,
    slot_of,
    values,
)
from thc_switch import OVERHEAD

from gradplane.codecs import CODE_WIDTHS, SUM_WIDTHS
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import DIRECT, HEADER_SIZE, Header, Type

A, B = JOBS
EVERYONE = (1 << WORKERS) - 1
V1MODEL, TOFINO = PROGRAMS
both = pytest.mark.parametrize("path", PROGRAMS)


@functools.cache
def made(path: str, engine: str) -> SharedSwitch:
    return SharedSwitch(engine, path=path)


def fresh(path: str = V1MODEL, engine: str = "jit") -> SharedSwitch:
    """Return a switch that has seen no packet."""
    switch = made(path, engine)
    switch.clear()
    return switch


# -- packets of two jobs, and their passes, in any order -------------------------------------------

starts = st.tuples(
    st.just("start"),
    st.sampled_from(JOBS),
    st.integers(0, WORKERS - 1),
    st.integers(0, 1),  # slot of the chunk
    st.integers(1, 2),  # round
    st.sampled_from([False, False, True]),  # direct
    st.sampled_from([NORMS[0]] * 9 + [NORMS[1]]),
    st.sampled_from([EPOCH] * 9 + [EPOCH - 1]),
)
whole = st.tuples(st.just("whole"), st.integers(0, 30))  # all passes that a packet has left
steps = st.tuples(st.just("step"), st.integers(0, 30), st.sampled_from([False] * 15 + [True]))


def check_partial(payload: bytes) -> None:
    """Check that a partial has the sums of the workers that it names."""
    header, body = aggregation.parse(payload)
    if header.type is Type.PARTIAL:
        named = [w for w in range(WORKERS) if header.bitmap >> w & 1]
        assert named
        sent = [codes(header.job, w, header.slot, header.round, 1024, 4) for w in named]
        right = np.array(TABLE)[np.stack(sent)].sum(axis=0)
        assert (aggregation.unpack_sums(body, 8) == right).all()


def play(switch: SharedSwitch, moves: list) -> None:
    """Let packets and their passes happen, to the switch and to the rules."""
    oracle, flights = Oracle(), []

    def follow(job: int, happened: tuple, expected: tuple) -> bool:
        (outputs, again), (out, flight) = happened, expected
        assert opened(job, outputs) == sorted(out)
        assert len(again) == (flight is not None)
        for _, payload in out:
            check_partial(payload)
        if flight is not None:
            flights.append((job, again[0], flight))
        return flight is not None

    for move, *args in moves:
        if move == "start":
            job, worker, slot, round, direct, norm, epoch = args
            payload = indices(job, worker, slot, round, direct, norm, epoch)
            port = port_of(job, worker)
            happened = switch.switch.run_once(port, frame(port, job, payload))
            follow(job, happened, oracle.begin(payload))
        elif flights:
            job, packet, flight = flights.pop(args[0] % len(flights))
            if move == "step" and args[1]:
                continue  # lost
            while follow(job, switch.switch.run_once(0, packet), oracle.step(flight)):
                if move == "step":
                    break
                job, packet, flight = flights.pop()
    for job in JOBS:
        own = {name: n for (number, name), n in oracle.events.items() if number == job}
        assert switch.events(job) == own


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(starts, whole, whole, steps), min_size=20, max_size=120))
def test_every_pass_is_the_rules(moves: list) -> None:
    play(fresh(), moves)


@settings(max_examples=3, deadline=None)
@given(st.lists(st.one_of(starts, whole, whole), min_size=20, max_size=40))
def test_the_interpreter_does_the_same(moves: list) -> None:
    play(fresh(engine="interpreter"), moves)


def check_wholes(switch: SharedSwitch, sent: list) -> None:
    """Compare a Tofino's packets, one after the other, with the rules."""
    oracle = TofinoOracle()
    for job, worker, slot, round, direct, epoch in sent:
        payload = indices(job, worker, slot, round, direct, epoch=epoch)
        found = switch.send(port_of(job, worker), job, payload)
        assert found == oracle.whole(payload)
        for _, partial in found:
            check_partial(partial)
    for job in JOBS:
        own = {name: n for (number, name), n in oracle.events.items() if number == job}
        assert switch.events(job) == own


sent_whole = starts.map(lambda start: (*start[1:6], start[7]))


@settings(max_examples=15, deadline=None)
@given(st.lists(sent_whole, min_size=20, max_size=80))
def test_every_packet_of_a_tofino_is_the_rules(sent: list) -> None:
    check_wholes(fresh(TOFINO), sent)


@settings(max_examples=2, deadline=None)
@given(st.lists(sent_whole, min_size=10, max_size=20))
def test_the_interpreter_has_the_same_of_a_tofino(sent: list) -> None:
    check_wholes(fresh(TOFINO, "interpreter"), sent)


# -- one packet after the other -------------------------------------------------------------------


@both
def test_a_chunk_of_all_workers_goes_to_the_server_once(path: str) -> None:
    switch = fresh(path)
    outs = [switch.send(port_of(A, w), A, indices(A, w, 0, 1)) for w in range(WORKERS)]
    assert outs[:-1] == [[], []]
    [(port, payload)] = outs[-1]
    header, _ = aggregation.parse(payload)
    assert port == port_of(A, WORKERS)
    assert (header.type, header.bitmap, header.flags) == (Type.PARTIAL, EVERYONE, 0)
    check_partial(payload)
    assert switch.events(A) == {"accepted": 2, "completed sums": 1}


def same_slot(switch: SharedSwitch) -> tuple[bytes, ...]:
    """Return packets of all workers of job B whose chunk has the slot that A's chunk is in."""
    for slot, round in product(range(4), range(1, 9)):
        payloads = tuple(indices(B, w, slot, round) for w in range(WORKERS))
        taken = switch.events(B).get("slot taken", 0)
        switch.send(port_of(B, 0), B, payloads[0])
        if switch.events(B).get("slot taken", 0) > taken:
            return payloads
    raise AssertionError("no chunk of B has A's slot")


def test_a_dead_jobs_slot_is_free_for_others_after_a_while() -> None:
    """Job A sends one packet and no more. B's go on to its server, until they have the slot."""
    switch = fresh()
    assert switch.send(port_of(A, 0), A, indices(A, 0, 0, 1)) == []
    first, *others = same_slot(switch)
    passed = 1
    while not switch.events(B).get("evicted another"):
        out = switch.send(port_of(B, 1), B, others[0])
        passed += 1
    assert passed == PATIENCE
    [(port, payload)] = out
    assert port == port_of(A, WORKERS)
    header, _ = aggregation.parse(payload)
    assert (header.job, header.bitmap, header.worker) == (A, 0b001, 1)
    check_partial(payload)
    assert switch.send(port_of(B, 0), B, first) == []
    [(port, payload)] = switch.send(port_of(B, 2), B, others[1])
    assert port == port_of(B, WORKERS)
    check_partial(payload)


@both
def test_what_a_removed_job_left_goes_nowhere(path: str) -> None:
    switch = SharedSwitch(path=path)
    switch.send(port_of(A, 0), A, indices(A, 0, 0, 1))
    switch.switch.table("servers").remove({"job": A})
    payloads = same_slot(switch)
    for _ in range(PATIENCE - 1):
        out = switch.send(port_of(B, 1), B, payloads[1])
    assert switch.events(B)["evicted another"] == 1
    assert A not in [aggregation.parse(payload)[0].job for _, payload in out]


@both
def test_a_packet_sent_again_brings_its_slots_content(path: str) -> None:
    switch = fresh(path)
    for w in (0, 1):
        switch.send(port_of(A, w), A, indices(A, w, 0, 1))
    [(_, payload)] = switch.send(port_of(A, 1), A, indices(A, 1, 0, 1, direct=True))
    header, _ = aggregation.parse(payload)
    assert (header.type, header.bitmap) == (Type.PARTIAL, 0b011)
    assert (header.flags, header.worker) == (DIRECT, 1)  # who waits for an answer
    check_partial(payload)
    again = indices(A, 0, 0, 1, direct=True)
    assert switch.send(port_of(A, 0), A, again) == [(port_of(A, WORKERS), again)]


def test_a_job_of_one_worker_needs_no_slot() -> None:
    switch = SharedSwitch()
    members = switch.switch.table("members")
    match = {"job": A, "worker": 0, "port": port_of(A, 0)}
    params = {"everyone": 1, "worker_bit": 1, "slots": 4, "epoch": EPOCH, "patience": 4, "group": 4}
    members.modify(match, "admit_shared", params)
    payload = indices(A, 0, 0, 1)
    assert switch.send(port_of(A, 0), A, payload) == [(port_of(A, WORKERS), payload)]


@both
def test_a_job_that_is_shut_out_between_passes_adds_nothing_more(path: str) -> None:
    switch = SharedSwitch(path=path)
    port, payload = port_of(A, 0), indices(A, 0, 0, 1)
    _, [packet] = switch.switch.run_once(port, frame(port, A, payload))
    switch.switch.table("members").remove({"job": A, "worker": 0, "port": port})
    assert switch.switch.run_once(0, packet) == ([], [])


WIDTHS = [
    *((V1MODEL, *widths) for widths in product(SUM_WIDTHS, CODE_WIDTHS)),
    *((TOFINO, *widths) for widths in ((8, 2), (16, 4), (32, 1))),
]


@pytest.mark.parametrize(("path", "sum_bits", "code_bits"), WIDTHS)
def test_the_sums_of_codes_of_every_width(path: str, sum_bits: int, code_bits: int) -> None:
    most = (2**sum_bits - 1) // WORKERS
    table = tuple(np.linspace(0, most, 2**code_bits).astype(int).tolist())
    switch = SharedSwitch(sum_bits=sum_bits, code_bits=code_bits, path=path, table=table)
    widths = {"sum_bits": sum_bits, "code_bits": code_bits}
    sent = [indices(A, w, 1, 5, **widths) for w in range(WORKERS)]
    outs = [switch.send(port_of(A, w), A, sent[w]) for w in range(WORKERS)]
    [(_, payload)] = outs[-1]
    header, body = aggregation.parse(payload)
    assert (header.sum_bits, header.code_bits) == (sum_bits, code_bits)
    right = sum(values(payload, table) for payload in sent)
    assert (aggregation.unpack_sums(body, sum_bits) == right).all()


# -- from servers, and what must not do anything --------------------------------------------------


def answer(kind: Type, hop: int, body: bytes = b"", flags: int = 0) -> bytes:
    place = kind, A, hop, 1, 2, 8, NORMS[0], EVERYONE, flags
    return Header(*place, count=WORKERS, epoch=EPOCH).pack() + body


@both
@pytest.mark.parametrize("kind", [Type.SUMS, Type.NORM_RESULT, Type.STRAGGLER, Type.EPOCH])
def test_a_servers_answers_go_to_all_workers_or_to_one(path: str, kind: Type) -> None:
    switch, body = fresh(path), bytes(range(256)) * 4 if kind is Type.SUMS else b""
    port = port_of(A, WORKERS)
    expected = answer(kind, 0, body)
    everyone = [(port_of(A, w), expected) for w in range(WORKERS)]
    assert switch.send(port, A, expected) == everyone
    assert switch.send(port, A, answer(kind, 2, body)) == everyone[1:2]
    assert switch.events(A) == {"passed down": 2}


@both
def test_only_the_jobs_server_answers_its_workers(path: str) -> None:
    switch = fresh(path)
    for port in (port_of(A, 0), port_of(B, WORKERS)):
        assert switch.send(port, A, answer(Type.NORM_RESULT, 0)) == []
    assert switch.send(port_of(A, WORKERS), A, answer(Type.NORM_RESULT, WORKERS + 1)) == []
    # A worker's packet from its server's port, and one of a worker from another's.
    assert switch.send(port_of(A, WORKERS), A, indices(A, 0, 0, 1)) == []
    assert switch.send(port_of(A, 1), A, indices(A, 0, 0, 1)) == []
    assert switch.switch.counter("unknown_member").read(0)[0] == 3


good = indices(A, 0, 0, 1)


def altered(offset: int, value: int, payload: bytes = good) -> bytes:
    """Return a packet with another byte, its checksum right."""
    changed = bytearray(payload)
    changed[offset] = value
    changed[28:30] = bytes(2)
    changed[28:30] = aggregation.checksum(bytes(changed)).to_bytes(2, "big")
    return bytes(changed)


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        (altered(6, 3), "spoofed pass"),
        (altered(5, 4), "bad slot"),
        (altered(7, 16), "bad length"),  # sum_bits
        (altered(27, 2), "bad length"),  # code_bits
        (altered(1, 1), "bad length"),  # flags
        (good[:-1], "bad length"),
        (good + b"\0", "bad length"),
        (good[:HEADER_SIZE], "bad length"),
        (altered(0, 0x24)[:HEADER_SIZE], "unknown type"),
        (altered(0, 0x26)[:HEADER_SIZE], "unknown type"),
    ],
)
def test_refused_and_counted(payload: bytes, event: str) -> None:
    switch = fresh()
    assert switch.send(port_of(A, 0), A, payload) == []
    assert switch.events(A) == {event: 1}


@both
def test_a_damaged_header_is_dropped(path: str) -> None:
    switch, port = fresh(path), port_of(A, 0)
    for offset in (OVERHEAD + 12, 24):  # the bitmap, and IPv4's checksum
        packet = bytearray(frame(port, A, good))
        packet[offset] ^= 0x55
        assert switch.switch.process(port, bytes(packet)) == []
    assert switch.switch.counter("damaged").read(port)[0] == 1
    assert switch.events(A) == {}


@both
def test_norms_and_questions_about_a_slot_go_to_the_server(path: str) -> None:
    switch = fresh(path)
    for kind, flags in ((Type.NORM, 0), (Type.STATUS, 0), (Type.STATUS, aggregation.STATUS_NORM)):
        place = kind, A, 1, 0, 1, 8, NORMS[1]
        payload = Header(*place, flags=flags, epoch=EPOCH).pack()
        assert switch.send(port_of(A, 1), A, payload) == [(port_of(A, WORKERS), payload)]
    assert switch.events(A) == {"norm": 1, "status request": 2}


def test_chunks_that_are_in_flight_at_once_have_slots_of_their_own() -> None:
    """A job does not get into its own way, as long as there are so many slots."""
    for job, round in product(range(20), range(1, 20)):
        assert len({slot_of(job, slot, round, 8) for slot in range(8)}) == 8
