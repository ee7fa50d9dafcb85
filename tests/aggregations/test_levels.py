"""Sums over levels of switches are the flat ones, whatever happens on the links."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from levels_loop import CompiledNetwork
from levels_network import VALUES, Faults, Network, deployment, play

from gradplane.controller.connection import schema_of
from gradplane.controller.controller_errors import PlanError
from gradplane.controller.installable import lacks
from gradplane.controller.plan import Capacity, check_program
from gradplane.experiment.deploying import baseline
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.experiment.p4_programs import P4Program, find_program
from gradplane.hosts.config import UDP_OVERHEAD
from gradplane.hosts.drivers import background
from gradplane.hosts.wire.aggregation import UPWARDS, Header, Type, parse
from gradplane.pages.report import causes, round_records, run_page
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay

Runs = Callable[..., Summary]
TWO_RACKS = ("topology.kind=leaf-spine", "topology.leaves=2")
SLOW = ("topology.rate=25Mbit", "topology.fabric_rate=25Mbit")  # packets wait for each other
RESTARTS = Faults(0.05, 0.05, 0.05, restarts=3, late=True)
LEVELS = [Faults(), Faults(losses=0.1), Faults(0.1, 0.1, 0.1), Faults(0.2, 0.2, 0.2)]


@pytest.mark.parametrize("spines", [1, 2, 3])
def test_sums_are_those_of_one_switch_under_losses_copies_and_disorder(spines: int) -> None:
    flat, tree = play(deployment(4, 1), 0, Faults()), deployment(4, 2, spines)
    sums = [flat.results[0][ticket].sums for ticket in range(2)]
    for seed in range(4 * spines, 4 * spines + 4):
        network = play(tree, seed, random.Random(seed).choice(LEVELS))
        assert [[found[t].sums for t in range(2)] for found in network.results] == [sums] * 4
        assert network.check() == len(network.arrivals) > 0


@pytest.mark.parametrize(
    ("placement", "roots", "switches"), [("packed", 4, 12), ("packed", 3, 11), ("spread", 4, 20)]
)
def test_sums_over_a_fat_tree_are_those_of_one_switch(
    placement: str, roots: int, switches: int
) -> None:
    flat = play(deployment(8, 1), 0, Faults())
    tree = deployment(8, 0, placement=placement, roots=roots)
    network = play(tree, roots, Faults(0.05, 0.05, 0.05, restarts=1))
    assert len(network.switches) == switches
    for ticket in range(2):
        assert {found[ticket].sums for found in network.results} == {flat.results[0][ticket].sums}
    assert network.check() == len(network.arrivals) > 0


@pytest.mark.parametrize("leaves", [2, 0, 1])  # 0: three levels; 1: a star
def test_sums_are_the_same_though_switches_lose_their_state(leaves: int) -> None:
    flat, tree, restarts = play(deployment(4, 1), 0, Faults()), deployment(4, leaves), 0
    sums = [flat.results[0][ticket].sums for ticket in range(2)]
    for seed, rate in enumerate((0, 0.05, 0.1)):
        network = play(tree, seed, Faults(rate, rate, max(rate, 0.02), restarts=3, late=True))
        assert [[found[t].sums for t in range(2)] for found in network.results] == [sums] * 4
        assert network.check() == len(network.arrivals) > 0
        restarts += network.restarts
    assert restarts > 3


@pytest.mark.parametrize("quorums", [(2, 1), (1, 2), (1, 1)])
def test_where_switches_lose_their_state_a_smaller_quorum_has_misses_and_nobody_is_stuck(
    quorums: tuple[int, int],
) -> None:
    tree = deployment(4, 2, quorums=quorums)
    networks = [play(tree, s, Faults(0.05, 0.05, 0.05, restarts=3, late=True)) for s in range(2)]
    assert sum(network.check() for network in networks) > 0
    assert sum(network.restarts for network in networks) > 2


@pytest.mark.parametrize(
    "faults", [RESTARTS, RESTARTS._replace(passes=True, cuts=0.02), Faults(0.1, 0.1, 0.1)]
)
def test_random_schedules_are_the_same_in_a_kernel(faults: Faults) -> None:
    tree = deployment(4, 2, quorums=(1, 2))
    first, second = (play(tree, 3, faults, kind=kind) for kind in (Network, CompiledNetwork))
    assert first.check() == second.check() > 0
    assert (first.now, first.seen, first.arrivals) == (second.now, second.seen, second.arrivals)


def test_a_worker_whose_last_result_others_lack_sends_its_packets_again() -> None:
    """The root forgets the last sums of the job, when one rack has them and the other has not."""
    network = Network(deployment(4, 2))
    network.reduce(0, 7)
    while not (network.results[0] and network.results[1]):
        network.under_way[:] = [each for each in network.under_way if not _is_last_sums(*each)]
        network.step()
    assert not network.results[2] and not network.results[3]
    network.lose_state("s3")
    network.run(0)
    sums = {found[0].sums for found in network.results}
    assert sums == {play(deployment(4, 1), 0, Faults(), reduces=1).results[0][0].sums}


def _is_last_sums(node: str, port: int, frame: bytes) -> bool:
    """Return whether a frame has the sums of one of the last chunks for a worker of rack 2."""
    header = parse(frame[UDP_OVERHEAD:])[0]
    return node in ("h3", "h4") and header.type is Type.SUMS and header.slot in (2, 3)


@pytest.mark.parametrize(
    ("keys", "faults"),
    [
        ({"leaves": 2}, LEVELS),
        ({"leaves": 2, "spines": 3}, [RESTARTS] * 3),
        ({"leaves": 0}, [*LEVELS, RESTARTS]),
        ({"leaves": 0, "sum_bits": 32}, [LEVELS[2], RESTARTS]),
        ({"leaves": 2, "sum_bits": 16, "quorums": (2, 1)}, [*LEVELS, RESTARTS]),
        ({"leaves": 2, "quorums": (1, 2)}, [*LEVELS, RESTARTS]),
        ({"leaves": 2, "quorums": (1, 1)}, [*LEVELS, RESTARTS]),
        ({"workers": 5, "leaves": 3, "reliability": "lossy"}, [Faults(losses=0.02)] * 2),
        ({"workers": 8, "leaves": 0, "placement": "packed", "roots": 3}, [RESTARTS]),
    ],
)
def test_the_chips_programs_send_what_those_of_v1model_do_whatever_happens(
    keys: dict[str, object], faults: list[Faults]
) -> None:
    both = [deployment(**{"workers": 4, "target": name, **keys}) for name in ("embedded", "tna")]
    for seed, found in enumerate(faults):
        network, on_chips = (play(deployed, seed, found) for deployed in both)
        assert _comparable(network.frames) == _comparable(on_chips.frames)


def _comparable(frames: list[tuple[str, str, bytes]]) -> list[tuple[str, str, bytes]]:
    """Return frames without the count of straggler notices, which nobody reads: of workers with
    thc.p4, of children on a chip."""
    return [(*nodes, _without_notices_count(data)) for *nodes, data in frames]


def _without_notices_count(data: bytes) -> bytes:
    if data[UDP_OVERHEAD] & 15 == Type.STRAGGLER:
        count, checksum = UDP_OVERHEAD + 24, UDP_OVERHEAD + 28
        data = (
            data[:count] + bytes(2) + data[count + 2 : checksum] + bytes(2) + data[checksum + 2 :]
        )
    return data


@pytest.mark.parametrize("keys", [{"leaves": 2}, {"leaves": 0}, {"leaves": 2, "quorums": (2, 1)}])
def test_the_chips_programs_answer_forged_packets_as_thc_p4_does(keys: dict[str, object]) -> None:
    """But for what this switch's children never send, which thc.p4 answers in another epoch."""
    targets, draw = ("embedded", "tna"), random.Random(5)
    both = [play(deployment(4, target=name, **keys), 1, LEVELS[2], 1) for name in targets]
    norms = [parse(frame[UDP_OVERHEAD:])[0].norm for *_, frame in both[0].frames]
    for _ in range(600):
        name, place = draw.choice(list(both[0].switches)), draw.random()
        header, body = _forged(draw, draw.choice(norms))
        others = (Type.INDICES, Type.STATUS), (Type.PARTIAL, Type.QUESTION)
        if header.type in others[not both[0].adds(name)]:
            header = replace(header, epoch=1)
        frames = [network.frame(0, header.pack() + bytes(body)) for network in both]
        sent = [n.sent_for(name, place, frame) for n, frame in zip(both, frames, strict=True)]
        assert _comparable(sent[0]) == _comparable(sent[1]), (name, header, body)


def _forged(draw: random.Random, norm: int) -> tuple[Header, int]:
    """Return a header in which anything may be wrong, and how many bytes follow it."""
    kind = draw.choice(list(Type))
    bodies = {Type.INDICES: 512, Type.PARTIAL: 1024, Type.SUMS: 1024}
    header = Header(
        kind,
        job=draw.choice([0] * 9 + [1]),
        worker=draw.randrange(3),
        slot=draw.randrange(5),
        round=draw.randrange(5),
        sum_bits=draw.choice([8] * 9 + [16]),
        norm=draw.choice([norm] * 3 + [0xFF800000, 0x3F800000]),
        flags=draw.choice([0, 8, 8, 8, 4, 12, 24, 16]),
        passed=draw.choice([0] * 9 + [1]),
        count=0 if kind is Type.INDICES else 2,  # of the workers below any switch, where it matters
        epoch=draw.choice([1] * 5 + [2]),
        code_bits=draw.choice([4] * 9 + [2]),
    )
    path = draw.choice([0, 0, 1, 2, 5, 0x0201])
    follows = header.flags & 8 and kind not in UPWARDS
    header = replace(header, **{"path" if follows else "bitmap": path})
    return header, draw.choice([bodies.get(kind, 0)] * 15 + [0, 8, 512])


@pytest.mark.parametrize("leaves", [2, 0])
@pytest.mark.parametrize("target", ["embedded", "tna"])
def test_sums_are_right_where_frames_meet_between_passes(target: str, leaves: int) -> None:
    flat = play(deployment(4, 1), 0, Faults())
    networks = []
    for seed, faults in enumerate([LEVELS[2], LEVELS[3], RESTARTS]):
        deployed = deployment(4, leaves, target=target)
        networks.append(play(deployed, seed, faults._replace(passes=True)))
        assert networks[-1].check() == len(networks[-1].arrivals) > 0
    for ticket in range(2):
        sums = {found[ticket].sums for network in networks for found in network.results}
        assert sums == {flat.results[0][ticket].sums}


@pytest.mark.parametrize("target", ["embedded", "tna"])
def test_a_sum_is_of_the_same_workers_in_all_passes_when_switches_restart(target: str) -> None:
    deployed = deployment(8, 4, sum_bits=16, quorums=(1, 1), target=target)
    for seed in range(25):
        play(deployed, seed, Faults(losses=0.2, copies=0.2, restarts=3, passes=True)).check()


def test_a_sum_is_of_the_same_workers_in_all_passes_when_a_frame_is_lost_between_two() -> None:
    deployed = deployment(4, 2, sum_bits=16, quorums=(1, 1))
    for seed in range(10):
        play(deployed, seed, Faults(copies=0.2, timers=0.02, passes=True, cuts=0.05)).check()


def test_a_packet_that_is_left_out_of_an_open_cell_asks_for_the_result() -> None:
    """The one that is in the first pass is lost behind it, and its worker, which may have another
    rack's result, may never send it again."""
    network = Network(deployment(4, 2, quorums=(1, 1)))
    lost, left_out = (
        network.frame(worker, Header(Type.INDICES, 0, worker, 0, 1, 8).pack() + bytes(512))
        for worker in (0, 1)
    )
    leaf = network.switches["s1"]
    sent, between = leaf.run_once(1, lost)
    assert (len(sent), len(between)) == (0, 1)
    ((_, question),) = leaf.process(2, left_out)
    header = parse(question[UDP_OVERHEAD:])[0]
    assert (header.type, header.bitmap) == (Type.QUESTION, 2)


def test_a_notice_in_the_place_of_a_result_that_was_being_collected_has_its_path() -> None:
    network = Network(deployment(4, 2, target="tna"))
    root = network.switches["s3"]

    def partial(child: int, round: int, path: int = 0) -> bytes:
        header = Header(Type.PARTIAL, 0, child, 0, round, 8, bitmap=path, count=2, flags=8)
        return network.frame(0, header.pack() + bytes(1024))

    for child in (0, 1):
        sent = root.process(8 + child, partial(child, 1))
    assert len(sent) == 2
    late = partial(0, 1, path=2)
    for _ in range(10):  # eight passes, and two that collect
        _, (late,) = root.run_once(8, late)
    assert root.process(9, partial(1, 2)) == []
    sent, again = [], [late]
    while again:
        sent, again = root.run_once(8, again[0])
    ((port, notice),) = sent
    header = parse(notice[UDP_OVERHEAD:])[0]
    assert (port, header.type, header.path, header.round) == (8, Type.STRAGGLER, 2, 2)


def test_both_engines_send_the_same_over_levels_of_chips() -> None:
    deployed = deployment(4, 2, target="tna", quorums=(1, 2), batch=1)
    runs = [play(deployed, 1, RESTARTS, 1, engine=engine) for engine in ("jit", "interpreter")]
    assert runs[0].frames == runs[1].frames


@pytest.mark.parametrize("quorums", [(2, 1), (1, 2), (1, 1)])
def test_with_a_smaller_quorum_results_are_of_those_they_name_and_nobody_is_stuck(
    quorums: tuple[int, int],
) -> None:
    tree, checked = deployment(4, 2, quorums=quorums), 0
    for seed in range(4):
        network = play(tree, seed, LEVELS[seed])
        checked += network.check()
        assert {line["count"] for line in network.arrivals} == {quorums[0] * quorums[1]}
    assert checked > 0


def test_racks_of_several_sizes_are_summed_and_may_lose_results() -> None:
    for seed in range(4):
        network = play(deployment(5, 3, reliability="lossy"), seed, Faults(losses=0.02))
        network.check()


@pytest.mark.parametrize(("sum_bits", "seeds"), [(16, (1, 2)), (32, (1,))])
def test_integers_are_summed_over_three_levels_in_wide_sums_whatever_happens(
    sum_bits: int, seeds: tuple[int, ...]
) -> None:
    tree = deployment(4, 0, sum_bits=sum_bits)
    assert [setup.jobs[0].quorum for setup in tree.setups.values()] == [2, 2, 1, 2, 1, 1]
    for seed in seeds:
        network = Network(tree, seed, LEVELS[seed])
        total = network.reduce_integers(0, 7)
        network.run(0)
        network.reduce(1, 7)
        network.run(1)
        for found in network.results:
            assert (found[0].total == total).all()
            assert found[1].sums == network.results[0][1].sums
        assert network.check() == len(network.arrivals) > 0


def test_128_workers_in_4_racks_are_summed_and_a_result_names_them_all() -> None:
    network = play(deployment(128, 4, sum_bits=16, batch=8), 0, Faults(), reduces=1)
    assert network.check() == len(network.arrivals) == 128 * 8
    for line in network.arrivals:
        assert (line["count"], int(line["bitmap"], 16)) == (128, (1 << 128) - 1)
    mean = network.results[0][0].mean
    vectors = [np.random.default_rng([7, 0, w]).normal(size=VALUES) for w in range(128)]
    assert np.abs(mean - np.mean(vectors, axis=0)).max() < 0.3
    assert all(found[0].sums == network.results[0][0].sums for found in network.results)


TARGETS = pytest.mark.parametrize(("target", "first"), [("embedded", 1), ("tna", 8)])
"""Targets, and the number of a switch's first port."""


@TARGETS
def test_a_partial_of_another_norm_than_its_slots_is_refused(target: str, first: int) -> None:
    network = Network(deployment(4, 2, target=target))
    root = network.switches["s3"]

    def partial(child: int, norm: float) -> list:
        bits = int(np.float32(norm).view(np.uint32))
        header = Header(Type.PARTIAL, 0, child, 0, 1, 8, bits, count=2, flags=8)
        return root.process(first + child, network.frame(0, header.pack() + bytes(1024)))

    assert partial(0, 1.0) == partial(1, 2.0) == []
    assert network.events("s3") == {"accepted": 1, "norm mismatch": 1}
    assert len(partial(1, 1.0)) == 2


def test_a_retransmission_is_one_packet_on_each_link_of_its_path() -> None:
    network = play(deployment(4, 2), 0, Faults(), reduces=1)
    network.settle()
    for worker, leaf in ((0, "s1"), (3, "s2")):
        network.frames.clear()
        network.again(worker)
        network.settle()
        assert [node for node, *_ in network.frames] == [f"h{worker + 1}", leaf, "s4", leaf]
    # Of four slots each root has two; the norm is slot 0's.
    assert network.events("s3") == {"accepted": 6, "completed sums": 2, "completed norms": 1}
    assert network.events("s4") == {"accepted": 4, "late": 2, "completed sums": 2}


@TARGETS
def test_only_children_send_partials_and_only_parents_results(target: str, first: int) -> None:
    network = play(deployment(4, 2, target=target), 0, Faults(), reduces=1)
    leaf, root, before = network.switches["s1"], network.switches["s3"], network.arrivals.copy()
    sums = Header(Type.SUMS, 0, 0, 0, 2, 8, count=4, flags=8).pack() + bytes(1024)
    partial = Header(Type.PARTIAL, 0, 0, 0, 2, 8, count=2, flags=8).pack() + bytes(1024)
    for payload, switch, port in (
        *((packet, leaf, port) for packet in (sums, partial) for port in (1, 2)),
        *((packet, root, 2) for packet in (sums, partial)),  # s1 is the root's child on port 1
        (sums, root, 1),
        (sums, leaf, 4),  # slot 0 is s3's, by port 3
    ):
        assert switch.process(first + port - 1, network.frame(0, payload)) == []
    refused = {}
    for name, switch in (("s1", leaf), ("s3", root)):
        events, strangers = network.events(name), switch.counter("unknown_member").read(0)[0]
        refused[name] = strangers + sum(events.get(of, 0) for of in ("bad length", "bad slot"))
    assert refused == {"s1": 5, "s3": 3}
    assert network.arrivals == before


@pytest.mark.parametrize(
    "kind",
    [
        TWO_RACKS,
        (*TWO_RACKS, "job.roots=1", "topology.placement=spread"),
        (*TWO_RACKS, "switch.target=tna"),
        ("topology.kind=fat-tree", "topology.placement=[1, 1, 2, 3, 3, 5, 5, 8]"),
    ],
)
def test_a_run_over_racks_is_the_stars_and_replays_equal(
    small_run: Runs, kind: tuple[str, ...]
) -> None:
    star, tree = (
        RunData.read(small_run("topology.workers=8", "job.epochs=1", *more).folder)
        for more in ((), (*kind, *SLOW))
    )
    assert sums(tree) == sums(star)
    assert tree.stored["jobs"][0]["sent_again"] == 0
    assert tree.stored["jobs"][0]["weights"] == star.stored["jobs"][0]["weights"]
    assert set(tree.stored["switches"]["s1"]["events"]["0"]) == {
        *("accepted", "completed sums", "completed norms", "passed down")
    }
    replays_equal(tree)


def test_a_report_has_a_row_for_each_rack(small_run: Runs) -> None:
    lost = f'[{{model="drop list", packets=[{LOST.replace("_round=2", "_round=0")}]}}]'
    settings = ("topology.workers=4", "job.reliability=retransmit", f"impairment={lost}")
    run = RunData.read(small_run(*TWO_RACKS, *settings).folder)
    rows = run_page.contents(run)["racks"]["rows"]
    assert [row[1:3] + row[5:6] for row in rows] == [["s1", "2", "0"], ["s2", "2", "0"]]
    again = [0, 0]
    for line in run.arrivals:
        if line["kind"] == "timeout":
            again[line["worker"] // 2] += len(line["slots"])
    assert [row[6] for row in rows] == [str(count) for count in again] != ["0", "0"]
    assert all(float(row[3]) <= float(row[4]) for row in rows)


def test_a_slow_round_names_rack_slot_root_and_link(small_run: Runs) -> None:
    """Background traffic fills one spine's links, in the round of 6 ms."""
    flow = 'traffic=[{source="h1", destination="h3", rate="80Mbit", start_ms=6, stop_ms=9}]'
    rates = ("topology.rate=100Mbit", "topology.fabric_rate=25Mbit")
    job = ("topology.workers=4", "job.reliability=retransmit", "job.slots=4")
    run = RunData.read(small_run(*TWO_RACKS, *rates, *job, flow).folder)
    hops = run.deployment.topology.path("h1", "h3", background.PORT)
    spine = hops[2][0]
    slow = causes.slowest(run, round_records.read(run))[0]
    assert re.match(r"Worker \d of rack s[12] waited .* for the exchange", slow.cause)
    assert f"The link from s1 to {spine} sent for" in slow.cause
    (shown,) = run_page.contents(run)["details"]["jobs"]
    assert (shown["racks"], shown["roots"]) == (["s1", "s1", "s2", "s2"], ["s3", "s4"])


def test_a_run_over_racks_with_losses_and_a_late_worker_replays_equal(small_run: Runs) -> None:
    impairments = '[{model="bernoulli", rate=0.1}, {model="late join", worker=1, round=1}]'
    settings = ("topology.workers=4", "job.sync=true", f"impairment={impairments}")
    replays_equal(RunData.read(small_run(*TWO_RACKS, *settings).folder))


@pytest.mark.parametrize("switch", ["s1", "s3"])
def test_a_run_goes_on_where_a_leaf_or_the_root_loses_its_state(
    small_run: Runs, switch: str
) -> None:
    settings = ("topology.workers=4", "job.reliability=retransmit", *TWO_RACKS, *SLOW)
    restart = f'impairment=[{{model="restart", switch="{switch}", time_ms=2.5, down_ms=3}}]'
    runs = [RunData.read(small_run(*settings, *more).folder) for more in ((), (restart,))]
    before, after = (run.stored["jobs"][0]["weights"] for run in runs)
    assert after == before
    assert sums(runs[1]) == sums(runs[0])
    again = [line for line in runs[1].arrivals if line["kind"] == "redo"]
    assert sorted((line["worker"], line["epoch"]) for line in again) == [(w, 2) for w in range(4)]
    replays_equal(runs[1])


def test_a_replay_finds_who_is_in_a_result_that_nobody_of_their_rack_got(small_run: Runs) -> None:
    lost = ",".join(
        f'{{link="{link}", direction="down", type="{type}", training_round={round}}}'
        for link in ("h3", "h4")
        for type, round in (("sums", 1), ("norm result", 2))
    )
    impairments = f'[{{model="drop list", packets=[{lost}]}}]'
    settings = ("topology.workers=4", "job.quorums=[1, 2]", f"impairment={impairments}")
    run = RunData.read(small_run(*TWO_RACKS, *settings).folder)
    misses = [line for line in run.arrivals if line.get("result") == "lost"]
    assert {line["worker"] for line in misses if line["ticket"] == 1} == {2, 3}
    replays_equal(run)


STOPPED = ",".join(f'{{model="crash", worker={w}, round=1, back=4}}' for w in (4, 5))
LOST = '{link="h1", direction="up", type="indices", training_round=2, attempt=0}'


def test_a_stopped_rack_lengthens_the_others_rounds_by_no_more_than_a_retransmission(
    small_run: Runs,
) -> None:
    three_racks = ("topology.kind=leaf-spine", "topology.leaves=3", "topology.workers=6", *SLOW)
    job = ("job.quorums=[2, 2]", "job.reliability=retransmit", "job.epochs=5")
    lost = f'{{model="drop list", packets=[{LOST}]}}'
    before, stopped, lossy = (
        RunData.read(small_run(*three_racks, *job, f"impairment=[{found}]").folder)
        for found in ("", STOPPED, f"{STOPPED}, {lost}")
    )
    usual = durations(before)
    assert durations(stopped, range(1, 4)) == durations(before, range(1, 4))
    # Now the root needs the rack that has lost a packet.
    assert [line["missed"] for line in lossy.metrics] == [0] * 5
    timers = [line for line in lossy.arrivals if line["kind"] == "timeout"]
    assert {(line["worker"], line["ticket"]) for line in timers} == {(w, 2) for w in range(4)}
    (waited,) = {line["at"] - line["since"] for line in timers}
    trip = max(w["finished"] - w["computed"] for w in before.metrics[0]["workers"])
    longest = max(durations(lossy).values())
    assert max(usual.values()) < longest <= max(usual.values()) + waited + trip


def durations(run: RunData, rounds: range = range(5)) -> dict[tuple[int, int], int]:
    """Return the ns that each round takes workers 0 to 3, by worker and round."""
    return {
        (worker["worker"], round): worker["finished"] - worker["started"]
        for round in rounds
        for worker in run.metrics[round]["workers"]
        if worker["worker"] < 4
    }


def sums(run: RunData) -> dict[tuple[int, int, int], tuple[str, int, str]]:
    """Return digest, count and bitmap of each result, by worker, slot and round."""
    return {
        (line["worker"], line["slot"], line["use"]): (line["digest"], line["count"], line["bitmap"])
        for line in run.arrivals
        if line["kind"] == "arrival"
    }


def replays_equal(run: RunData) -> None:
    result = replay(run.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


RESTART = '\n[[impairment]]\nmodel = "restart"\nswitch = "{}"\ntime_ms = 1\n'


@pytest.mark.parametrize(
    ("kind", "job", "message"),
    [
        (
            "leaf-spine",
            "quorum = 3",
            r"use quorums = \[2, 2\], from the leaves to",
        ),
        ("leaf-spine", "quorums = [2]", "there are 2 levels of switches"),
        ("leaf-spine", "quorums = [1, 3]", r"with \[2, 2\] children or more"),
        ("leaf-spine", "quorums = [2, 1]\nquorum = 3", "2 × 1 = 2 workers: use quorum = 2"),
        ("star", "quorums = [2, 1]", "and here they do not: use quorum"),
        ("leaf-spine", "roots = 3", "and 2 above them can share 8 slots: use roots = 2, or leave"),
        ("leaf-spine", "slots = 2\nroots = 3", "and 2 above them can share 2 slots: use roots ="),
        ("star", "roots = 2", "roots are of switches that sum a job in levels, and here they do"),
        ("ring", "", "a switch sums for workers or for switches"),
        ("leaf-spine", RESTART.format("s9"), 'no switch "s9": known: s1, s2, s3'),
        (
            "leaf-spine",
            "quorums = [1, 2]" + RESTART.format("s1"),
            "quorum = 2 of 4 workers: after a restart a chunk may have a second result",
        ),
        ("star", 'aggregation = "ps"' + RESTART.format("s2"), 'no switch "s2"'),
    ],
)
def test_what_several_switches_cannot_do_is_refused(
    tmp_path: Path, kind: str, job: str, message: str
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f'[topology]\nkind = "{kind}"\nworkers = 4\n[[job]]\n{job}\n')
    with pytest.raises(ExperimentError, match=message):
        load_deployment(path)


@pytest.mark.parametrize(
    ("topology", "rest", "message"),
    [
        ("leaves = 1", "", "65 workers in a job that one switch sums: it has 64 at most"),
        (
            "",
            'aggregation = "ring"\nreliability = "retransmit"\npush = "float32"',
            'a job that has aggregation = "ring": it has 64 at most',
        ),
        ("leaves = 2", "[output]\nbaseline = false", r"65 workers = 1950 does not fit 8-bit sums"),
    ],
)
def test_more_than_64_workers_need_racks(
    tmp_path: Path, topology: str, rest: str, message: str
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f'[topology]\nkind = "leaf-spine"\nworkers = 65\n{topology}\n[[job]]\n{rest}\n')
    with pytest.raises(ExperimentError, match=message):
        load_deployment(path)


def test_a_program_that_sums_alone_is_refused() -> None:
    (plan,) = deployment(4, 2).setups["s1"].jobs
    with pytest.raises(PlanError, match="several switches sum it, and this program sums alone"):
        check_program(plan, Capacity(256, 8, 64, levels=False))


@pytest.mark.parametrize(
    ("switch", "role", "message"),
    [
        (
            "s1",
            "node",
            "adds codes of workers, .* with ROLE=node, which adds sums of other switches",
        ),
        ("s3", "leaf", "adds sums of other switches, .* ROLE=leaf, .*: compile it with ROLE=node"),
    ],
)
def test_a_chip_of_the_other_role_is_refused(switch: str, role: str, message: str) -> None:
    setup, program = deployment(4, 2, target="tna").setups[switch], find_program("thc_tna.p4")
    info = P4Program(program, {"ROLE": role}).p4info()
    (problem,) = lacks(schema_of(info), setup)
    assert re.search(message, problem)


TRIANGLE = """
from gradplane.topologies.description import HostNode, Link, SwitchNode, Topology

def triangle(workers, servers=0):
    above = [("s1", "s2", 3, 3), ("s3", "s1", 2, 1), ("s3", "s2", 3, 1)]
    above += [("s4", "s1", 2, 2), ("s4", "s2", 3, 2)]
    hosts = [("h1", "s3", 0, 1), ("h2", "s4", 0, 1), ("h3", "s2", 0, 4), ("h4", "s1", 0, 4)]
    links = tuple(Link(*ends) for ends in above + hosts[: 3 + servers])
    nodes = tuple(HostNode.numbered(n) for n in range(1, 4 + servers))
    return Topology("triangle", nodes, tuple(SwitchNode(f"s{n}") for n in range(1, 5)), links)
"""


def test_a_switch_that_adds_codes_for_one_job_and_sums_for_another_is_no_chip(
    tmp_path: Path,
) -> None:
    (tmp_path / "triangle.py").write_text(TRIANGLE)
    path, text = tmp_path / "e.toml", '[topology]\nkind = "triangle.py:triangle"\nworkers = 3\n'
    path.write_text(text + '[[job]]\nworkers = 2\nname = "a"\n[[job]]\nname = "b"\n')
    load_deployment(path)
    path.write_text(path.read_text() + '[switch]\ntarget = "tna"\n')
    with pytest.raises(ExperimentError, match="switch s2 adds workers' codes for one job and"):
        load_deployment(path)


@pytest.mark.parametrize(
    ("topology", "leaf"),
    [
        ('kind = "leaf-spine"\nworkers = 4\nleaves = 2\nhosts_per_leaf = 2', "s2"),
        ('kind = "fat-tree"\nworkers = 2\nk = 2\nrate = ["1Mbit", "2Mbit"]', "s2"),
        ('kind = "full.py"\nworkers = 4', "s1"),
    ],
)
def test_the_server_of_the_baseline_takes_no_place(
    tmp_path: Path, topology: str, leaf: str
) -> None:
    (tmp_path / "full.py").write_text(
        "from gradplane.topologies import build\n"
        "def full(workers, servers=0):\n"
        '    return build("star", workers=workers)\n'
    )
    (path := tmp_path / "e.toml").write_text(f"[topology]\n{topology}\n[[job]]\n")
    deployed = load_deployment(path)
    workers = deployed.experiment.topology.workers
    assert len(deployed.topology.hosts) == workers
    plain = baseline(deployed)
    assert plain.jobs[0].server.name == f"h{workers + 1}"
    assert plain.topology.attachment(f"h{workers + 1}")[0] == leaf
