"""The compiled event loop against the event queue in Python, which says what a simulation is.

Every record, with all virtual times, verdicts and digests, and every counter must be equal.
"""

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
from gradplane.topologies.sim import frame_kernels, frames, loop
from gradplane.topologies.sim.compiled_events import CompiledEvents
from gradplane.topologies.sim.compiled_fabric import CompiledStack, ip_number, mac_number
from gradplane.topologies.sim.events import EventQueue
from gradplane.topologies.sim.loop_memory import LoopMemory
from gradplane.topologies.sim.sim_network import SIMULATORS, SimNetwork

def both(simulate):
    """Return what the two simulators give, after checking that it is equal."""
    compiled, reference = (simulate(simulator) for simulator in SIMULATORS)
    for ours, theirs in zip(compiled, reference, strict=True):
        assert ours == theirs
    return compiled


def star(*jobs, program=P4 / "thc.p4", config=None, **options):
    """Return the records, the links' and the switch's counters of jobs on a star."""

    def simulate(simulator):
        topology = build("star", **({"workers": max(each.workers for each in jobs)} | options))
        with SimNetwork(topology, config or switch_config(), simulator) as net:
            set_up(net, *jobs, program=program)
            records = run(net, *jobs)
            return records, net.link_counters(), read_counters(net.switch_addresses["s1"])

    return both(simulate)


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
                configure(address, deployment.pipeline, setup, deployment.target.name)
            records = []
            net.run(deployment.hosts, records.append)
            return records, net.link_counters()

    return both(simulate)


THC = 'push = { name = "thc", bits = 4, granularity = 30, p = 0.03125 }'
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
STRAGGLER = """
[[impairment]]
model = "straggler"
count = 1
leave_out = true
"""
ONE_LINK = """
[[impairment]]
model = "duplication"
rate = 0.3
delay_ms = 0.01
link = "h1"
[[impairment]]
model = "jitter"
delay_ms = 0.02
jitter_ms = 0.02
link = "h2"
"""
BACKGROUND = """
[[traffic]]
from = "h1"
to = "h2"
rate = "200Mbit"
size = 1000
"""
RETRANSMIT = f'{THC}\nreliability = "retransmit"\n'
LOSSY = f'{THC}\nreliability = "lossy"\nquorum = 3\ntimeout_ms = 20\n'


def demo(topology, job, more="", values=20_000, rows=12, switch=""):
    parts = {"topology": topology, "job": job, "more": more, "switch": switch}
    return DEMO.format(**parts, values=values, rows=rows)


EXPERIMENTS = {
    "at once": demo("workers = 4", RETRANSMIT),
    "rates and delays": demo('workers = 4\nrate = "1Gbit"\ndelay = "5us"', RETRANSMIT),
    "full queues": demo('workers = 4\nrate = "100Mbit"\nqueue = 4', f"{RETRANSMIT}slots = 32"),
    "losses": demo('workers = 4\nrate = "1Gbit"', RETRANSMIT, LOSS),
    "a quorum": demo("workers = 4", f"{RETRANSMIT}quorum = 2\ncompute_ms = [1.0, 1.01, 1.5, 3.0]"),
    "left out": demo('workers = 4\nrate = "1Gbit"', f"{LOSSY}sync = true", LOSS + STRAGGLER),
    "lossy without losses": demo('workers = 4\nrate = "1Gbit"', LOSSY),
    "one link": demo("workers = 4", LOSSY, ONE_LINK),
    "wide sums": demo("workers = 8", f"{RETRANSMIT}sum_bits = 16\nslots = 16"),
    "two partitions": demo("workers = 2", f"{RETRANSMIT}slots = 64", values=1_060_000, rows=2),
    "no norm": demo("workers = 4", 'push = "signsgd"\nreliability = "retransmit"'),
    "server": demo(
        'kind = "leaf-spine"\nworkers = 3\nrate = "1Gbit"\nhosts_per_leaf = 2',
        'push = "float32"\naggregation = "ps"\nreliability = "retransmit"', LOSS,
    ),
    "ring": demo(
        'kind = "ring"\nworkers = 3\nrate = "1Gbit"\nfabric_rate = "1Gbit"',
        'push = "float32"\naggregation = "ring"\nreliability = "retransmit"\nmarked = true\n'
        "bound = 10", LOSS, switch='[switch]\nprogram = "tos_compress.p4"',
    ),
    "background": demo('workers = 3\nrate = "1Gbit"', RETRANSMIT, BACKGROUND),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_the_same_run(name, tmp_path):
    records, _ = experiment(EXPERIMENTS[name], tmp_path)
    assert any(record["kind"] == "done" for record in records)


def test_recirculation_has_a_rate_and_the_switch_a_latency():
    config = switch_config(recirculation_rate=50_000_000, latency=3_000)
    star(job(), config=config, rate="1Gbit")


def test_two_jobs_share_hosts():
    star(job(0), job(1, reliability="retransmit"), delay="2us")


def test_frames_that_wait_in_queues_before_egress(tmp_path):
    """The program's copy looks at a queue's length, so that its frames wait in the switch."""
    text = (P4 / "thc.p4").read_text()
    looks = "if (standard_metadata.deq_qdepth == 0x7ffff) { mark_to_drop(standard_metadata); }"
    start, egress, rest = text.partition("control ThcEgress(")
    copy = tmp_path / "thc.p4"
    copy.write_text(start + egress + rest.replace("apply {", f"apply {{ {looks}", 1))
    hasty = job(quorum=1, timeout_ns=20 * 10**6)
    _, links, _ = star(hasty, program=copy, rate=["10Mbit", "1Mbit"], delay="20us", queue=2)
    assert links[1].down_dropped > 0


def test_ordinary_results_need_no_python(monkeypatch):
    """Of a round's results only the common norm and the last sums come to a worker in Python."""
    received = Counter()
    receive = CompiledStack.receive

    def count(self, frame):
        received["packets"] += 1
        receive(self, frame)

    monkeypatch.setattr(CompiledStack, "receive", count)
    wide = job(workers=2, model_args={"hidden": [100]}, reliability="retransmit")
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, wide)
        rounds = [r for r in run(net, wide) if r["kind"] == "round"]
    assert sum(r["packets_down"] for r in rounds) > 4 * len(rounds)
    assert received["packets"] == 2 * len(rounds)


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
    frame_kernels.build(frame, len(payload), *numbers, tos)
    assert frame.tobytes() == frames.build(source, to, payload, tos)
    size = frame_kernels.payload_size(frame, len(frame), mac_number(to.mac))
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
    assert frame_kernels.payload_size(row, len(frame), mac_number(to.mac)) == expected


def test_an_unknown_simulator():
    with pytest.raises(NetworkError) as error:
        SimNetwork(build("star", workers=1), switch_config(), "fast")
    assert str(error.value) == 'simulator must be "compiled" or "reference", got "fast"'
