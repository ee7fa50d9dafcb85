"""p4/thc.p4 and p4/thc_tna.p4 against the rules as plain Python (switch_model.py) and against
codec arithmetic."""

import functools
import itertools
import struct
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switch_model import Flight, Member, SwitchModel
from thc_switch import (
    CODEC,
    JOB,
    NORMS,
    OVERHEAD,
    PROGRAMS,
    SLOTS,
    TABLE,
    ThcSwitch,
    codes,
    frame,
    fresh_switch,
    indices,
    packed,
    short,
)

from gradplane.codecs import CODE_WIDTHS, SUM_WIDTHS
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Type

WORKERS = 4
ROUNDS = itertools.count(1)  # of switches that several tests use
both = pytest.mark.parametrize("path", PROGRAMS)


def model(quorum: int, sum_bits: int = 8, next_only: bool = False) -> SwitchModel:
    members = [Member(w, w + 1) for w in range(WORKERS)]
    return SwitchModel(JOB, members, quorum, SLOTS, CODEC.table, sum_bits, next_only=next_only)


# -- one packet after the other -----------------------------------------------------------------

kinds = st.sampled_from([Type.INDICES, Type.INDICES, Type.INDICES, Type.NORM, Type.STATUS])
packets = st.tuples(
    kinds,
    st.integers(0, WORKERS - 1),
    st.integers(0, 1),  # slot
    st.integers(0, 4),  # round, after the first one
    st.sampled_from([NORMS[0], NORMS[0], NORMS[0], NORMS[1]]),
    st.sampled_from([None, None, None, 1, 4, 7]),  # the pass it is lost before
    st.sampled_from([1] * 9 + [2]),  # epoch
)


def lossy_send(switch: ThcSwitch, port: int, payload: bytes, lost: int | None) -> list:
    """Send a payload that does not come back for pass `lost`."""
    if lost is None:
        return switch.send(port, payload)
    arrival: object = frame(port - 1, payload)
    for _ in range(lost):
        out, again = switch.step(port, arrival)  # type: ignore[arg-type]
        if not again:
            return out
        arrival = again[0]
    return []


@both
@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, WORKERS),
    st.booleans(),
    st.sampled_from([1, 2**31 - 2, 2**32 - 2]),
    st.lists(packets, min_size=5, max_size=40),
    st.sampled_from([0, 1, WORKERS, aggregation.NOBODY]),
)
def test_every_answer_is_the_models(
    path: str, quorum: int, next_only: bool, first: int, sequence: list, owner: int
) -> None:
    """thc_tna.p4 gives all workers the sums that one of them needs."""
    whole = path == "p4/thc_tna.p4"
    switch = fresh_switch(path, WORKERS, quorum, next_only)
    reference = model(quorum, next_only=next_only)
    for kind, worker, slot, later, norm, lost, epoch in sequence:
        round = (first + later) % aggregation.ROUNDS
        if kind is Type.INDICES:
            whose = owner if round % 2 else 0
            payload = indices(worker, slot, round, norm, epoch=epoch, owner=whose)
            told = indices(worker, slot, round, norm, epoch=epoch) if whole else payload
        else:
            flags = aggregation.STATUS_NORM if kind is Type.STATUS and norm == NORMS[1] else 0
            own = norm if kind is Type.NORM else 0
            told = payload = short(kind, worker, slot, round, own, flags, epoch)
        reference.lose_pass = lambda w, h, number, lost=lost: number == lost
        expected = sorted(reference.receive(worker + 1, told))
        assert lossy_send(switch, worker + 1, payload, lost) == expected


@both
@pytest.mark.parametrize("sum_bits", [8, 16, 32])
def test_a_round_of_all_workers(path: str, sum_bits: int) -> None:
    switch = ThcSwitch(path, WORKERS, WORKERS, sum_bits)
    outs = [switch.send(w + 1, indices(w, 0, 1, sum_bits=sum_bits)) for w in range(WORKERS)]
    assert outs[:-1] == [[], [], []]
    bodies = {payload for _, payload in outs[-1]}
    assert [w for w, _ in outs[-1]] == list(range(WORKERS)) and len(bodies) == 1
    header, body = aggregation.parse(bodies.pop())
    assert (header.type, header.count, header.bitmap) == (Type.SUMS, WORKERS, 0b1111)
    sent = [codes(w, 0, 1, aggregation.LANES[sum_bits]) for w in range(WORKERS)]
    expected = TABLE[np.stack(sent)].sum(axis=0)
    assert (aggregation.unpack_sums(body, sum_bits) == expected).all()


@functools.cache
def of_width(path: str, engine: str, sum_bits: int, code_bits: int) -> tuple[ThcSwitch, np.ndarray]:
    """Return a switch that adds codes of a width, and its table, which has a value for each."""
    most = (2**sum_bits - 1) // WORKERS
    table = np.linspace(0, most, 2**code_bits).astype(int)
    widths = {"table": tuple(table.tolist()), "code_bits": code_bits}
    return ThcSwitch(path, WORKERS, WORKERS, sum_bits, engine, **widths), table


INTERPRETED = ((8, 1), (8, 2), (16, 8))
WIDTHS = [
    (path, engine, *widths)
    for engine, pairs in (("jit", [*itertools.product(SUM_WIDTHS, CODE_WIDTHS)]),
                          ("interpreter", INTERPRETED))
    for path, widths in itertools.product(PROGRAMS, pairs)
]  # fmt: skip


@pytest.mark.parametrize(("path", "engine", "sum_bits", "code_bits"), WIDTHS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sums_of_codes_of_every_width(
    path: str, engine: str, sum_bits: int, code_bits: int, seed: int
) -> None:
    switch, table = of_width(path, engine, sum_bits, code_bits)
    rng, lanes = np.random.default_rng(seed), aggregation.LANES[sum_bits]
    sent = rng.integers(0, 2**code_bits, (WORKERS, lanes), np.uint8)
    slot, round = seed % SLOTS, next(ROUNDS)
    for w in range(WORKERS):
        body = packed(sent[w], w, slot, round, sum_bits=sum_bits, code_bits=code_bits)
        assert len(body) == HEADER_SIZE + lanes * code_bits // 8
        out = switch.send(w + 1, body)
    assert [w for w, _ in out] == list(range(WORKERS))
    for _, payload in out:
        header, body = aggregation.parse(payload)
        assert (header.count, header.code_bits) == (WORKERS, code_bits)
        assert (aggregation.unpack_sums(body, sum_bits) == table[sent].sum(axis=0)).all()


# -- packets between the passes of others -------------------------------------------------------


class Interleaved:
    """Flights through switch and model in lock-step, one pass at a time, in any order."""

    def __init__(self, path: str, quorum: int) -> None:
        self.switch, self.reference = fresh_switch(path, WORKERS, quorum), model(quorum)
        self.flights: list[tuple[int, Flight, object]] = []
        self.results: dict[tuple[int, int], set[bytes]] = defaultdict(set)
        self.truth: dict[tuple[int, int, int], tuple[int, list[int]]] = {}

    def start(self, worker: int, slot: int, round: int) -> None:
        payload = indices(worker, slot, round)
        flight = self.reference.begin(worker + 1, payload)
        assert isinstance(flight, Flight)
        self.flights.append((worker + 1, flight, frame(worker, payload)))

    def advance(self, at: int, lost: bool) -> None:
        port, flight, arrival = self.flights.pop(at % len(self.flights))
        if lost and flight.number:
            return
        self._collect(self.switch.step(port, arrival), port, flight)  # type: ignore[arg-type]
        moved = self.reference.step(flight)
        stage = self.reference.sums[flight.header.slot][flight.number]
        if stage.closed and stage.round == flight.header.round:
            key = (flight.header.slot, flight.header.round, flight.number)
            self.truth.setdefault(key, (stage.bitmap, list(stage.sums)))
        if isinstance(moved, Flight) and self._again:
            self.flights.append((port, moved, self._again[0]))

    def _collect(self, step: tuple, port: int, flight: Flight) -> None:
        out, self._again = step
        if flight.number == self.reference.passes - 1:
            while self._again:  # reads the passes again that were open when it came by
                more, self._again = self.switch.step(port, self._again[0])
                out += more
        for _, payload in out:
            header, _ = aggregation.parse(payload)
            if header.type is Type.SUMS:
                self.results[header.slot, header.round].add(payload)

    def check(self) -> None:
        """Check that all copies of a result are equal, and the sums those of the workers
        counted."""
        for (slot, round), copies in self.results.items():
            assert len(copies) == 1
            header, body = aggregation.parse(copies.pop())
            passes = [self.truth[slot, round, p] for p in range(self.reference.passes)]
            assert header.bitmap == passes[-1][0]
            assert header.count == header.bitmap.bit_count()
            sums = [value for _, values in passes for value in values]
            assert aggregation.unpack_sums(body, 8).tolist() == sums
            for p, (bitmap, values) in enumerate(passes):
                sent = [codes(w, slot, round) for w in range(WORKERS) if bitmap >> w & 1]
                lanes = np.stack(sent)[:, 128 * p : 128 * (p + 1)]
                assert values == TABLE[lanes].sum(axis=0).tolist()


moves = st.one_of(
    st.tuples(st.just("start"), st.integers(0, WORKERS - 1), st.integers(0, 1), st.integers(1, 2)),
    st.tuples(st.just("step"), st.integers(0, 30), st.sampled_from([False] * 15 + [True])),
    st.tuples(st.just("step"), st.integers(0, 30), st.just(False)),
    st.tuples(st.just("step"), st.integers(0, 30), st.just(False)),
)


@both
@settings(max_examples=25, deadline=None)
@given(st.integers(1, WORKERS), st.lists(moves, min_size=20, max_size=160))
def test_packets_between_passes(path: str, quorum: int, sequence: list) -> None:
    run = Interleaved(path, quorum)
    for move, *args in sequence:
        if move == "start":
            run.start(*args)
        elif run.flights:
            run.advance(*args)
    while run.flights:
        run.advance(0, False)
    run.check()


@both
def test_whoever_closes_the_last_pass_has_the_whole_result(path: str) -> None:
    """Worker 1 overtakes worker 0 after the first pass; worker 0 closes the last one."""
    switch = ThcSwitch(path, 2, 2)
    slow = [frame(0, indices(0, 0, 1))]
    _, again = switch.step(1, slow[0])
    fast: object = frame(1, indices(1, 0, 1))
    for _ in range(7):
        _, on = switch.step(2, fast)  # type: ignore[arg-type]
        fast = on[0]
    out, passes = [], 0
    pending = {1: again[0], 2: fast}
    for port in [1] * 7 + [2]:
        more, on = switch.step(port, pending[port])  # type: ignore[arg-type]
        out += more
        pending[port] = on[0] if on else None
    while pending[2] is not None:
        more, on = switch.step(2, pending[2])  # type: ignore[arg-type]
        out, passes = out + more, passes + 1
        pending[2] = on[0] if on else None
    expected = TABLE[np.stack([codes(0, 0, 1), codes(1, 0, 1)])].sum(axis=0)
    assert [w for w, _ in out] == [0, 1]
    assert all((aggregation.unpack_sums(p[HEADER_SIZE:], 8) == expected).all() for _, p in out)
    assert passes == (7 if "tna" in path else 8)  # that pass has its sums on Tofino


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_workers_on_all_pipes_of_a_tofino(engine: str) -> None:
    """Each pipe has registers of its own: packets go to those of one pipe first."""
    ports = [pipe << 7 | 8 + pipe for pipe in range(4)]
    switch = ThcSwitch("p4/thc_tna.p4", 4, 4, engine=engine, ports=ports)
    process = switch.switch.process
    for worker in (0, 1, 2):
        assert process(ports[worker], frame(worker, indices(worker, 0, 1))) == []
    out = process(ports[3], frame(3, indices(3, 0, 1)))
    assert sorted(port for port, _ in out) == ports
    expected = TABLE[np.stack([codes(w, 0, 1) for w in range(4)])].sum(axis=0)
    for _, packet in out:
        assert (aggregation.unpack_sums(packet[OVERHEAD + HEADER_SIZE :], 8) == expected).all()
    [(port, status)] = process(ports[2], frame(2, short(Type.STATUS, 2, 0, 1)))
    assert port == ports[2]
    assert aggregation.parse(status[OVERHEAD:])[0].bitmap == 0b1111
    assert switch.events() == {0: 4, 3: 1, 11: 1}


# -- packets that must not do anything ----------------------------------------------------------

good = indices(0, 0, 1)


def altered(offset: int, value: int, payload: bytes = good) -> bytes:
    """Return a packet with another byte, its checksum right."""
    changed = bytearray(payload)
    changed[offset] = value
    changed[28:30] = bytes(2)
    changed[28:30] = aggregation.checksum(bytes(changed)).to_bytes(2, "big")
    return bytes(changed)


@both
@pytest.mark.parametrize(
    ("payload", "event"),
    [
        (altered(6, 3), 10),  # a pass that was not recirculated
        (altered(5, SLOTS), 8),
        (altered(7, 16), 9),  # sum_bits
        (altered(27, 2), 9),  # code_bits
        (altered(27, 0), 9),
        (altered(1, 1), 9),  # flags
        (good[:-1], 9),
        (good + b"\0", 9),
        (good[:HEADER_SIZE], 9),
        (short(Type.SUMS, 0, 0, 1), 12),  # only a switch sends those
        (altered(0, 0x2F)[:HEADER_SIZE], 12),
        (short(Type.NORM, 0, 0, 1, 0x80000000), 7),
        (short(Type.NORM, 0, 0, 1, 0x7F800000), 7),
        (short(Type.NORM, 0, 0, 1, 0x7FC00001), 7),
    ],
)
def test_refused_and_counted(path: str, payload: bytes, event: int) -> None:
    switch = ThcSwitch(path, 1, 1)
    assert switch.send(1, payload) == []
    assert switch.events() == {event: 1}
    assert [w for w, _ in switch.send(1, good)] == [0]


@both
def test_a_norm_unlike_the_slots_is_refused(path: str) -> None:
    switch = ThcSwitch(path, 2, 2)
    switch.send(1, indices(0, 0, 1, NORMS[0]))
    assert switch.send(2, indices(1, 0, 1, NORMS[1])) == []
    assert switch.events() == {0: 1, 6: 1}


@both
def test_only_members_on_their_own_port_are_let_in(path: str) -> None:
    switch = ThcSwitch(path, 2, 1)
    assert switch.send(2, good) == []  # worker 0's packet on worker 1's port
    other_job = altered(2, JOB + 1)
    assert switch.send(1, other_job) == []
    assert switch.switch.counter("unknown_member").read(0)[0] == 2
    assert switch.events() == {}


@both
@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=120), st.integers(0, 80), st.integers(1, 6))
def test_noise_never_completes_a_slot(path: str, noise: bytes, at: int, port: int) -> None:
    switch = noise_switch(path)
    whole = frame(0, good)
    packet = whole[:at] + noise + (whole[at + len(noise) :] if len(noise) % 2 else b"")
    if packet[: len(whole)] == whole[: len(packet)] and port == 1:
        return
    for _, out in switch.switch.process(port, packet):
        assert len(out) < OVERHEAD + HEADER_SIZE + 1024 or out[42] != 0x24


@functools.cache
def noise_switch(path: str) -> ThcSwitch:
    return ThcSwitch(path, 2, 2)


# -- everything else is forwarded ---------------------------------------------------------------


@both
def test_ordinary_traffic_is_routed(path: str) -> None:
    switch = ThcSwitch(path, 2, 2).switch
    packet = frame(0, b"hello", to="10.0.0.2", port=53)
    [(port, out)] = switch.process(1, packet)
    assert port == 2
    assert out[:6] == bytes.fromhex("000000000002") and out[22] == 63
    assert out[34:] == packet[34:]
    assert switch.process(1, frame(0, b"hello", to="10.0.0.9", port=53)) == []


@both
def test_aggregation_packets_for_others_are_routed(path: str) -> None:
    """A parameter server may use the same port: only the switch's own address is aggregated."""
    switch = ThcSwitch(path, 2, 2).switch
    for payload in (good, good[:30], b"x"):
        [(port, out)] = switch.process(1, frame(0, payload, to="10.0.0.2"))
        assert port == 2 and out[OVERHEAD:] == payload


@both
def test_a_broken_checksum_is_dropped(path: str) -> None:
    switch = ThcSwitch(path, 1, 1).switch
    packet = bytearray(frame(0, good))
    packet[24] ^= 0x55
    assert switch.process(1, bytes(packet)) == []
    assert struct.unpack(">H", packet[24:26])[0]
