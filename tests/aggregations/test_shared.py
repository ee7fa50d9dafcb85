"""Sums in slots that jobs share are those of slots of their own, whatever happens on the way."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from shared_network import Faults, Life, deployment, play

from gradplane.controller.controller_errors import PlanError
from gradplane.controller.plan import Capacity, check_program
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import DIRECT, Header, Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay

Runs = Callable[..., Summary]
SHARED = ("switch.program=shared.p4", "job.aggregation=shared", "job.reliability=retransmit")


def faults(seed: int) -> Faults:
    """Return what may happen under a seed: from nothing to much of everything."""
    draw = random.Random(seed).choice
    rate = draw([0, 0.02, 0.1, 0.2])
    often = (rate, draw([0, rate]), draw([0, 0.02, 0.1]), draw([False, True]))
    return Faults(*often, restarts=draw([0, 2]), lives=draw([0, 1, 2]), deaths=draw([0, 0, 1]))


@pytest.mark.parametrize(
    ("target", "jobs", "workers", "slots", "seeds"),
    [
        ("embedded", 2, 3, 2, range(4)),
        ("embedded", 3, 2, 4, range(4)),
        ("tna", 2, 3, 2, (1, 3, 6, 11)),
        ("tna", 3, 2, 4, (2, 3, 7, 11)),
    ],
)
def test_results_have_the_sums_of_all_workers_whatever_happens(
    target: str, jobs: int, workers: int, slots: int, seeds: Iterable[int]
) -> None:
    deployed, met = deployment(jobs, workers, slots, target), Counter[str]()
    for seed in seeds:
        network = play(deployed, seed, faults(seed))
        assert network.checked > 0
        met.update(network.events())
    ways = "accepted", "completed sums", "slot taken", "evicted another", "sent again"
    assert set(ways) <= set(met)


@pytest.mark.parametrize("target", ["embedded", "tna"])
def test_integers_are_summed_in_shared_slots(target: str) -> None:
    network = play(deployment(2, 3, 2, target), 1, Faults(losses=0.05), tickets=1, integers=True)
    for job, life in enumerate(network.jobs):
        total = sum(network.vector(job, worker, 0) for worker in range(3))
        assert all((found[0].total == total).all() for found in life.results)


# -- one worker, one server ------------------------------------------------------------------------


def life(**keys: object) -> Life:
    return Life.of(deployment(1, 2, 2, **keys).jobs[0].config)


def received(found: Life, kind: Type, worker: int, round: int = 1, flags: int = 0, **own) -> list:
    """Return what a server answers to a packet about slot 0: headers."""
    config, codes = found.config, bytes(512) if kind is Type.INDICES else b""
    fields = {"epoch": config.transport.epoch} | own
    header = Header(kind, config.number, worker, 0, round, 8, flags=flags, **fields)
    body = bytes(1024) if kind is Type.PARTIAL else codes
    payloads = Payloads.of([header.pack() + body])
    actions = found.server.receive(*config.addresses.aggregator, payloads, 0)
    sent = [payload for action in actions for payload in getattr(action, "payloads", ())]
    return [aggregation.parse(payload)[0] for payload in sent]


def test_a_server_merges_what_has_none_of_the_workers_that_it_has() -> None:
    found = life()
    assert received(found, Type.INDICES, 0) == []
    assert received(found, Type.INDICES, 0, flags=DIRECT) == []
    (asked,) = received(found, Type.PARTIAL, 1, bitmap=0b11)
    assert (asked.type, asked.bitmap, asked.worker) == (Type.STRAGGLER, 0b10, 0)
    (result,) = received(found, Type.INDICES, 1, flags=DIRECT)
    assert (result.type, result.bitmap, result.count, result.worker) == (Type.SUMS, 3, 2, 0)


def test_a_server_answers_who_still_waits_and_nobody_else() -> None:
    found = life()
    assert [each.type for each in received(found, Type.PARTIAL, 0, bitmap=3)] == [Type.SUMS]
    assert received(found, Type.INDICES, 0) == received(found, Type.PARTIAL, 0, bitmap=1) == []
    for kind, own in ((Type.INDICES, {}), (Type.PARTIAL, {"bitmap": 2})):
        (result,) = received(found, kind, 1, flags=DIRECT, **own)
        assert (result.type, result.worker) == (Type.SUMS, 2)  # worker 1 alone
    assert received(found, Type.PARTIAL, 0, round=2, bitmap=1) == []
    assert received(found, Type.INDICES, 1, flags=DIRECT) == []
    assert received(found, Type.INDICES, 1, round=3) == []
    assert found.server.refused == {"earlier round": 1, "round ahead": 1}


def test_a_server_asks_for_what_is_missing_and_less_and_less_often() -> None:
    found, times = life(), []
    received(found, Type.INDICES, 0)
    for _ in range(3):
        times.append(found.server.alarm)
        sent, *_ = found.server.timer("ask", found.server.alarm)
        header, _ = aggregation.parse(sent.payload)
        assert (header.type, header.bitmap) == (Type.STRAGGLER, 0b10)
    first = times[0]
    assert times == [first, 2 * first, 4 * first]


def test_a_worker_of_another_life_is_told_so_and_others_are_not() -> None:
    found = life()
    (notice,) = received(found, Type.INDICES, 1, epoch=33)
    assert (notice.type, notice.worker, notice.count) == (Type.EPOCH, 2, 33)
    worker, own = found.workers[1], found.config.transport.epoch
    place = found.config.addresses.aggregator
    other = Header(Type.EPOCH, 0, 0, 0, 1, 8, count=33, epoch=49)
    assert worker.receive(*place, Payloads.of([other.pack()]), 0) == []
    late = Header(Type.EPOCH, 0, 0, 0, 1, 8, count=own, epoch=49)
    with pytest.raises(ReduceError, match="left of an earlier life"):
        worker.receive(*place, Payloads.of([late.pack()]), 0)


@pytest.mark.parametrize(
    ("kind", "own", "reason"),
    [
        (Type.NORM, {"norm": 0xFF800000}, "no norm"),
        (Type.PARTIAL, {"bitmap": 4}, "unknown workers"),
        (Type.PARTIAL, {"bitmap": 0}, "unknown workers"),
        (Type.SUMS, {}, "malformed"),
        (Type.NORM_RESULT, {}, "not for servers"),
    ],
)
def test_a_server_counts_what_it_refuses(kind: Type, own: dict, reason: str) -> None:
    found = life()
    assert received(found, kind, 0, **own) == []
    assert found.server.refused == {reason: 1}
    payloads = Payloads.of([b""])
    assert found.server.receive("10.0.0.1", 20000, payloads, 0) == []
    assert found.server.refused["stranger"] == 1


# -- runs -----------------------------------------------------------------------------------------


def weights(run: RunData) -> list[dict[str, str]]:
    return [job["weights"] for job in run.stored["jobs"]]


def replays_equal(run: RunData) -> None:
    result = replay(run.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


def test_a_run_in_shared_slots_is_the_switches_and_replays_equal(small_run: Runs) -> None:
    own, shared = (
        RunData.read(small_run(*keys).folder) for keys in (("job.reliability=retransmit",), SHARED)
    )
    assert weights(shared) == weights(own)
    events = shared.stored["switches"]["s1"]["events"]["0"]
    assert set(events) == {"accepted", "completed sums", "norm", "passed down"}
    assert shared.stored["jobs"][0]["sent_again"] == 0
    replays_equal(shared)


@pytest.mark.parametrize(("target", "slots"), [("embedded", 1), ("tna", 2)])
def test_losses_and_a_restart_in_few_shared_slots_change_no_weight(
    small_run: Runs, target: str, slots: int
) -> None:
    few = (*SHARED, f"switch.target={target}", f'switch.defines={{SLOTS="{slots}"}}')
    harm = 'impairment=[{model="bernoulli", rate=0.1}, {model="restart", switch="s1", time_ms=2}]'
    before, after = (RunData.read(small_run(*keys).folder) for keys in (SHARED, (*few, harm)))
    assert weights(after) == weights(before)
    assert after.stored["jobs"][0]["sent_again"] > 0
    assert not [line for line in after.arrivals if line["kind"] == "redo"]
    replays_equal(after)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("", 'program = "thc.p4", .* use program = "shared.p4"'),
        ('reliability = "lossy"', 'use reliability = "retransmit"'),
        ("quorum = 3", "use quorum = 4, or aggregation"),
        ('push = "topk"', 'or aggregation = "ps"'),
        ('pull = "float32"', "workers get the sums as they are"),
    ],
)
def test_what_shared_slots_cannot_do_is_refused(tmp_path: Path, job: str, message: str) -> None:
    path, program = tmp_path / "e.toml", 'program = "shared.p4"' if job else ""
    keys = 'aggregation = "shared"\n' + ("" if "reliab" in job else 'reliability = "retransmit"\n')
    path.write_text(f"[topology]\nworkers = 4\n[switch]\n{program}\n[[job]]\n{keys}{job}\n")
    with pytest.raises(ExperimentError, match=message):
        load_deployment(path)


@pytest.mark.parametrize("workers", [4, 2])  # of the job: on both leaves; on one, but its server
def test_slots_are_shared_on_one_switch(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "e.toml"
    network = 'kind = "leaf-spine"\nleaves = 2\nworkers = 4'
    job = f'workers = {workers}\naggregation = "shared"\nreliability = "retransmit"'
    path.write_text(f'[topology]\n{network}\n[switch]\nprogram = "shared.p4"\n[[job]]\n{job}\n')
    with pytest.raises(ExperimentError, match="slots are shared in one: place them on one switch"):
        load_deployment(path)


def test_a_job_and_a_program_agree_about_who_owns_slots() -> None:
    (setup,) = deployment(1, 2, 2).setups.values()
    with pytest.raises(PlanError, match="use shared.p4"):
        check_program(setup.jobs[0], Capacity(16, 8, 64))
    assert not setup.jobs[0].claim.slots
