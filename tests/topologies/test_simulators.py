"""The compiled event loop against the event queue in Python, which says what a simulation is.

Every record, with all virtual times, verdicts and digests, and every counter are equal.
"""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_cases import P4, hosts, job, run, set_up, switch_config

from gradplane.controller import read_counters
from gradplane.controller.blocking import configure
from gradplane.experiment.loading import load, load_deployment
from gradplane.topologies import NetworkError, build
from gradplane.topologies.sim import frames, loop
from gradplane.topologies.sim.compiled_events import CompiledEvents, LoopMemory
from gradplane.topologies.sim.compiled_fabric import CompiledStack, ip_number, mac_number
from gradplane.topologies.sim.events import EventQueue
from gradplane.topologies.sim.sim_network import SIMULATORS, SimNetwork


def both(simulate):
    """Return what the two simulators give, after checking that it is equal."""
    compiled, reference = (simulate(simulator) for simulator in SIMULATORS)
    for ours, theirs in zip(compiled, reference, strict=True):
        assert ours == theirs
    return compiled


def star(*jobs, program=P4 / "thc.p4", config=None, impairments=None, **options):
    """Return the records of jobs, run one after the other on a star, its links' and its switch's
    counters. impairments: by (job, worker)."""

    def simulate(simulator):
        with SimNetwork(build("star", **options), config or switch_config(), simulator) as net:
            set_up(net, *jobs, program=program)
            records = []
            for each in jobs:
                configs = [
                    dataclasses.replace(host, impairments=(impairments or {}).get(key, ()))
                    for host in hosts(each)
                    for key in [(each.name, host.worker)]
                ]
                net.run(configs, records.append, 300.0)
            return records, net.link_counters(), read_counters(net.switch_addresses["s1"])

    return both(simulate)


def exchange(number, name, workers=4, values=9000, **fields):
    """Return a job of three reduces without training."""
    rows = {"rows": 3 * workers}
    synthetic = {"model": "synthetic", "model_args": {"values": values}, "batch": 1}
    synthetic |= {"data": "blank", "data_args": rows, "timeout_ns": 20 * 10**6}
    return job(number, workers, **(synthetic | {"name": name, "sync": True} | fields))


def spec(model, **keys):
    """Return a complete table of an impairment."""
    common = {"link": "*", "direction": "both", "flow": "all", "seed": 3}
    return {"model": model} | common | keys


RETRANSMIT = {"reliability": "retransmit"}
SLOW_ONE = [1_000_000, 1_010_000, 1_500_000, 3_000_000]
JOBS = [
    exchange(0, "retransmits", **RETRANSMIT),
    exchange(1, "lossy"),
    exchange(2, "quorum", quorum=2, compute_ns=SLOW_ONE, **RETRANSMIT),
    exchange(3, "lossy quorum", quorum=3, compute_ns=SLOW_ONE),
    exchange(4, "losses", quorum=3),
    exchange(5, "one link", **RETRANSMIT),
]
IMPAIRMENTS = {
    ("losses", worker): (
        spec("bernoulli", rate=0.05),
        spec("straggler", count=1, leave_out=True),
    )
    for worker in range(4)
} | {
    ("one link", 1): (spec("duplication", rate=0.3, delay_ms=0.01),),
    ("one link", 2): (spec("bernoulli", rate=0.1),),
}
STARS = {
    "at once": (JOBS, {}),
    "paced": (JOBS[2:5], {"rate": "1Gbit", "delay": "5us"}),
    "full queues": (JOBS[:2], {"rate": "100Mbit", "queue": 3}),
}


@pytest.mark.parametrize("name", STARS)
def test_jobs_on_a_star_are_the_same_runs(name):
    paced = switch_config(recirculation_rate=2_000_000_000, latency=3_000)
    config = paced if name == "paced" else None
    jobs, links = STARS[name]
    star(*jobs, config=config, impairments=IMPAIRMENTS, workers=4, **links)


def test_two_partitions():
    star(exchange(0, "large", 2, 1_060_000, data_args={"rows": 2}, **RETRANSMIT), workers=2)


def experiment(text, tmp_path):
    """Return the records and the links' counters of an experiment file."""
    path = tmp_path / "experiment.toml"
    path.write_text(text)

    def simulate(simulator):
        deployment = load_deployment(load(path, []))
        config = deployment.switch_config()
        with SimNetwork(deployment.topology, config, simulator) as net:
            for switch, setup in deployment.setups.items():
                address = net.switch_addresses[switch]
                configure(address, deployment.pipelines[switch], setup, deployment.target.name)
            records = []
            net.run(deployment.hosts, records.append)
            return records, net.link_counters()

    return both(simulate)


THC = (
    'push = { name = "thc", bits = 4, granularity = 30, p = 0.03125 }\nreliability = "retransmit"\n'
)
DEMO = """
[topology]
{topology}
{switch}
[[job]]
model = {{ name = "synthetic", values = {values} }}
data = {{ name = "blank", rows = {rows} }}
batch = 1
epochs = 1
{job}
{more}
[output]
baseline = false
"""
LOSS = """
[[impairment]]
model = "bernoulli"
rate = 0.05
"""
BACKGROUND = """
[[traffic]]
source = "h1"
destination = "h2"
rate = "200Mbit"
packet = 1000
"""


def demo(topology, job, more="", values=20_000, rows=12, switch=""):
    parts = {"topology": topology, "job": job, "more": more, "switch": switch}
    return DEMO.format(**parts, values=values, rows=rows)


EXPERIMENTS = {
    "wide sums": demo("workers = 8", f"{THC}sum_bits = 16\nslots = 16"),
    "no norm": demo("workers = 4", 'push = "signsgd"\nreliability = "retransmit"'),
    "server": demo(
        'kind = "leaf-spine"\nworkers = 3\nrate = "1Gbit"\nhosts_per_leaf = 2',
        'push = "float32"\naggregation = "ps"\nreliability = "retransmit"', LOSS,
        values=2000, rows=6,
    ),
    "ring": demo(
        'kind = "ring"\nworkers = 3\nrate = "1Gbit"\nfabric_rate = "1Gbit"',
        'push = "float32"\naggregation = "ring"\nreliability = "retransmit"\nmarked = true\n'
        "bound = 10", LOSS, switch='[switch]\nprogram = "tos_compress.p4"',
        values=2000, rows=6,
    ),
    "background": demo('workers = 3\nrate = "1Gbit"', THC, BACKGROUND),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_the_same_run(name, tmp_path):
    records, _ = experiment(EXPERIMENTS[name], tmp_path)
    assert any(record["kind"] == "done" for record in records)


def test_two_jobs_at_once_on_the_same_hosts():
    jobs = exchange(0, "first", 2), exchange(1, "second", 2, **RETRANSMIT)

    def simulate(simulator):
        with SimNetwork(build("star", workers=2, delay="2us"), switch_config(), simulator) as net:
            set_up(net, *jobs)
            return run(net, *jobs), net.link_counters()

    both(simulate)


def test_frames_that_wait_in_queues_before_egress(tmp_path):
    """The program's copy looks at a queue's length, so that its frames wait in the switch."""
    text = (P4 / "thc.p4").read_text()
    looks = "if (standard_metadata.deq_qdepth == 0x7ffff) { mark_to_drop(standard_metadata); }"
    start, egress, rest = text.partition("control ThcEgress(")
    copy = tmp_path / "thc.p4"
    copy.write_text(start + egress + rest.replace("apply {", f"apply {{ {looks}", 1))
    hasty = exchange(0, "hasty", 2, quorum=1)
    limits = {"rate": ["10Mbit", "1Mbit"], "delay": "20us", "queue": 2}
    _, links, _ = star(hasty, program=copy, workers=2, **limits)
    assert links[1].down_dropped > 0


def test_ordinary_results_need_no_python(monkeypatch):
    """Only a round's norm and last sums do, and sums that bring a worker's timer forward."""
    received = Counter()
    receive = CompiledStack.receive

    def count(self, frame):
        received["packets"] += 1
        receive(self, frame)

    monkeypatch.setattr(CompiledStack, "receive", count)
    wide = exchange(0, "wide", 2, sync=False, **RETRANSMIT)
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, wide)
        rounds = [r for r in run(net, wide) if r["kind"] == "round"]
    assert sum(r["packets_down"] for r in rounds) > 4 * len(rounds)
    assert received["packets"] <= 2 * len(rounds) + 2 * wide.workers


def test_frames_larger_than_any_buffer_so_far():
    """A switch's output may be of any size: buffers grow while its packets are under way."""
    memory = LoopMemory()
    memory.need_packets(2000, 5000)
    memory.need_meta(300)
    numbers = [int(loop.allocate(memory.words)) for _ in range(1500)]
    assert len(set(numbers)) == 1500
    for number in numbers:
        memory.put_frame(number, bytes([number % 256]) * 4000)
        memory.put_meta(number, bytes([number % 251]) * 300)
    memory.need_packets(4000, 70_000)
    for number in numbers:
        assert memory.frame(number) == bytes([number % 256]) * 4000
    assert {int(loop.allocate(memory.words)) for _ in range(4000)}.isdisjoint(numbers)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
def test_calls_come_in_the_order_of_the_event_queue(calls):
    """Calls at equal times keep their order; cancelled ones do not move the time."""

    def order(events):
        seen = []
        handles = [
            events.at(time, lambda i=i: seen.append((events.now, i)))
            for i, (time, _) in enumerate(calls)
        ]
        for handle, (_, cancelled) in zip(handles, calls, strict=True):
            if cancelled:
                handle.cancel()
        while events.step():
            pass
        return seen, events.now

    assert order(CompiledEvents()) == order(EventQueue())


def test_virtual_time_ends() -> None:
    with pytest.raises(NetworkError, match="virtual time ends after 146 years"):
        CompiledEvents().at(1 << 62, print)


@given(st.binary(max_size=1472), st.integers(0, 65535), st.integers(0, 255))
def test_a_kernel_builds_the_frames_of_the_stack(payload, port, tos):
    source = frames.Address("00:00:00:00:00:01", "10.0.0.1", port)
    to = frames.Address("00:00:00:00:00:fe", "10.0.0.254", 18256)
    frame = np.zeros(frames.HEADERS + len(payload), np.uint8)
    frame[frames.HEADERS :] = np.frombuffer(payload, np.uint8)
    numbers = [
        number
        for end in (source, to)
        for number in (mac_number(end.mac), ip_number(end.ip), end.port)
    ]
    loop.build(frame, len(payload), *numbers, tos)
    assert frame.tobytes() == frames.build(source, to, payload, tos)
    size = loop.payload_size(frame, len(frame), mac_number(to.mac))
    assert size == len(payload)


@given(st.binary(max_size=60), st.data())
def test_a_kernel_refuses_what_the_stack_refuses(payload, data):
    source = frames.Address("00:00:00:00:00:01", "10.0.0.1", 20000)
    to = frames.Address("00:00:00:00:00:02", "10.0.0.2", 18256)
    frame = bytearray(frames.build(source, to, payload))
    for _ in range(data.draw(st.integers(0, 2))):
        bit = data.draw(st.integers(0, len(frame) * 8 - 1))
        frame[bit // 8] ^= 1 << bit % 8
    frame = frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame
    try:
        expected = len(frames.parse(bytes(frame), to.mac).payload)
    except frames.FrameError:
        expected = -1
    row = np.zeros(2048, np.uint8)
    row[: len(frame)] = np.frombuffer(bytes(frame), np.uint8)
    assert loop.payload_size(row, len(frame), mac_number(to.mac)) == expected


def test_an_unknown_simulator():
    with pytest.raises(NetworkError) as error:
        SimNetwork(build("star", workers=1), switch_config(), "fast")
    assert str(error.value) == 'simulator must be "compiled" or "reference", got "fast"'
