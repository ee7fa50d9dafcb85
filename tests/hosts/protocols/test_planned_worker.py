"""Workers that run a plan: every option's result, any order of arrival, and what is refused."""

import json
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_network import ring_job

from gradplane.hosts.config import ConfigError
from gradplane.hosts.protocols.actions import Deliver, Record, Send, SendMessage, SetTimer
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.messages import Kind, Message, MessageError
from gradplane.hosts.protocols.planned_server import PlannedServer
from gradplane.hosts.protocols.planned_sums import switch_jobs
from gradplane.hosts.protocols.planned_worker import PlannedWorker, check_plan
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.run_plan import run_plan
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.planner.costs import RESOURCES, CostModel
from gradplane.planner.inputs import Compression, Gradient, Model, System, load
from gradplane.planner.options import tree
from gradplane.planner.planning import plan

OPTIONS = list(tree())
SERVED = [o for o in tree(["server"]) if any(task.choice == "server" for task in o)]
SWITCHED = [o for o in tree(["switch-int32", "switch-codes"]) if "switch" in str(o)]
PLAIN = [option for option in [*OPTIONS, *SERVED] if not option.compressions]


def content(options, sizes, machines, gpus, codec="efsignsgd", parameters=None):
    """Return a plan in which tensor k takes options[k]; each resource serves tensor by tensor."""
    system = load(System, "pcie-25g").model_copy(update={"machines": machines, "gpus": gpus})
    costs = CostModel(load(Compression, codec), system)
    tensors, order = [], {name: [] for name in RESOURCES}
    for number, (option, size) in enumerate(zip(options, sizes, strict=True)):
        steps = costs.steps(option, size)
        order["gpu"].append([number, -1, 0.0, 0.0])
        for at, (resource, _) in enumerate(steps):
            order[RESOURCES[resource]].append([number, at, 0.0, 0.0])
        steps = [
            {
                "resource": RESOURCES[resource],
                "tasks": [{**task._asdict(), "seconds": s} for task, s in tasks],
            }
            for resource, tasks in steps
        ]
        times = {"compute_seconds": 1e-4, "option": str(option), "steps": steps}
        tensors.append({"name": f"t{number}", "values": size} | times)
    return {
        "codec": codec,
        "codec_parameters": parameters or {},
        "machines": machines,
        "gpus": gpus,
        "servers": 2,
        "links_gbit": {"intra": 1.0, "inter": 1.0},
        "iteration_seconds": 1.0,
        "forward_seconds": 1e-3,
        "tensors": tensors,
        "order": order,
    }


def planned_job(made, **keys):
    codec = made["codec"], made["codec_parameters"]
    workers = made["machines"] * made["gpus"]
    given = {"workers": workers, "plan": made, "codec": codec, "error_feedback": False}
    given["servers"] = tuple((f"10.0.9.{n}", 21000) for n in range(run_plan(made).servers))
    return ring_job(**given | keys)


class SummingSwitch:
    """Sums for one job as `thc.p4` does: norms by maximum, codes by what the table has for them."""

    def __init__(self, job):
        self.job, self.table = job, np.array(summed_codec(job).table)
        self.slots = {}

    def answer(self, payload):
        """Return the result that all workers get, None while it is not complete."""
        header, body = aggregation.parse(payload)
        place = header.type, header.slot, header.round
        parts = self.slots.setdefault(place, {})
        parts[header.worker] = header.norm, body
        if len(parts) < self.job.workers:
            return None
        norm = max(norm for norm, _ in self.slots.pop(place).values())
        kind, sums = Type.NORM_RESULT, b""
        if header.type is Type.INDICES:
            values = [self.table[aggregation.unpack_indices(body, 4)] for _, body in parts.values()]
            kind, sums = Type.SUMS, aggregation.pack_sums(sum(values), self.job.transport.sum_bits)
        bitmap = (1 << self.job.workers) - 1
        fields = header.slot, header.round, self.job.transport.sum_bits, norm, bitmap
        return Header(kind, self.job.number, 0, *fields, count=self.job.workers).pack() + sums


class Network:
    """Workers in memory: parts of one sender stay in order, anything else comes in any order."""

    def __init__(self, job, seed=0):
        self.peers = [job.addresses.stream(w) for w in range(job.workers)] + list(
            job.addresses.servers
        )
        self.notices = [job.addresses.notice(w) for w in range(job.workers)]
        self.workers = [PlannedWorker(job, w) for w in range(job.workers)]
        self.workers += [PlannedServer(job) for _ in job.addresses.servers]
        switched = switch_jobs(job, run_plan(job.coding.plan)).values()
        self.switches = {each.number: SummingSwitch(each) for each in switched}
        self.random, self.now = random.Random(seed), 0
        self.queues = {}
        self.delivered, self.records = {}, []

    def perform(self, worker, actions):
        for action in actions:
            if isinstance(action, SendMessage):
                peers = self.peers if action.port is None else self.notices
                to = peers.index(action.peer)
                stream = worker, to, action.port is None
                self.queues.setdefault(stream, []).append((peers[worker], action.data))
            elif isinstance(action, Send):
                for payload in action.payloads:
                    self.sum(worker, action, payload)
            elif isinstance(action, SetTimer) and not isinstance(action.key, tuple):
                self.queues.setdefault((worker, action.key, True), []).append(action)
            elif isinstance(action, Deliver):
                self.delivered[worker, action.ticket] = action.result
            elif isinstance(action, Record):
                self.records.append((action.kind, action.fields))

    def sum(self, worker, send, payload):
        """Queue the switch's answer, if this packet completes it; its timers never run out."""
        switch = self.switches[payload[2]]
        if (answer := switch.answer(payload)) is None:
            return
        for ip, port in switch.job.addresses.worker_addresses:
            to = [peer[0] for peer in self.peers].index(ip)
            arguments = port, send.ip, send.port, Payloads.of([answer])
            self.queues.setdefault(("switch", to, True), []).append(arguments)

    def reduce(self, ticket, vectors):
        for worker, vector in enumerate(vectors):
            self.perform(worker, self.workers[worker].reduce(ticket, vector, self.now))

    def run(self):
        while waiting := [key for key, queue in self.queues.items() if queue]:
            key = first, second, _ = self.random.choice(waiting)
            event = self.queues[key].pop(0)
            self.now += 1
            if isinstance(event, SetTimer):
                self.perform(first, self.workers[first].timer(event.key, self.now))
            elif first == "switch":
                self.perform(second, self.workers[second].receive_sums(*event, self.now))
            else:
                arrived = self.workers[second].receive(*event, self.now)
                self.perform(second, arrived)


def vectors(workers, size, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-8, 9, size).astype(np.float32) for _ in range(workers)]


def reduced(made, seed=0, tickets=1):
    job = planned_job(made)
    network, xs = (
        Network(job, seed),
        vectors(job.workers, sum(t["values"] for t in made["tensors"])),
    )
    for ticket in range(tickets):
        network.reduce(ticket, xs)
        network.run()
    return xs, [network.delivered[w, tickets - 1] for w in range(job.workers)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PLAIN), st.integers(1, 40)), min_size=1, max_size=3),
    st.sampled_from([(1, 1), (1, 3), (2, 2), (3, 2)]),
    st.integers(0, 2**32),
)
def test_without_compression_every_worker_has_the_exact_sum(chosen, size, seed):
    options, sizes = zip(*chosen, strict=True)
    xs, results = reduced(content(options, sizes, *size), seed)
    for result in results:
        assert np.array_equal(result.total, np.sum(xs, axis=0))
        assert result.counts.tolist() == [len(xs)] and result.missed == 0


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(OPTIONS) | st.sampled_from(SERVED),
    st.integers(1, 60),
    st.sampled_from([(2, 2), (3, 2), (2, 3)]),
    st.integers(0, 2**32),
)
def test_every_option_gives_all_workers_the_same(option, values, size, seed):
    """A codec that keeps all values is exact, so the result is the sum whatever the option."""
    made = content([option], [values], *size, "dgc", {"fraction": 1.0, "momentum": 0.0})
    xs, results = reduced(made, seed)
    for result in results:
        assert np.array_equal(result.total, np.sum(xs, axis=0)), str(option)
    made = content([option], [values], *size)
    xs, (first, *others) = reduced(made, seed, tickets=2)
    assert all(np.array_equal(first.total, other.total) for other in others)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(SWITCHED), st.integers(1, 300)), min_size=1, max_size=3),
    st.sampled_from([(2, 1), (2, 2), (3, 2)]),
    st.integers(0, 2**32),
)
def test_the_switch_sums_what_the_plan_gives_it(chosen, size, seed):
    """All workers get the same, which is the sum but for rounding and THC's error."""
    options, sizes = zip(*chosen, strict=True)
    made = content(options, sizes, *size, "thc")
    xs, (first, *others) = reduced(made, seed, tickets=2)
    assert all(np.array_equal(first.total, other.total) for other in others)
    exact, at = np.sum(xs, axis=0, dtype=np.float64), sum(sizes)
    for option, values in chosen:
        at -= values
        error = first.total[at : at + values] - exact[at : at + values]
        if option.compressions:
            assert np.abs(error).max() <= 8 * len(xs) + 0.25 * np.sum(exact**2) ** 0.5
        else:
            assert np.abs(error).max() < 1e-5 * len(xs)


def test_codes_of_several_gpus_do_not_go_to_the_switch():
    for option in SWITCHED:
        tasks = list(option)
        for before, task in zip(tasks, tasks[1:], strict=False):
            if task.choice == "switch-codes":
                assert before.kind == "comp", str(option)


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.compressions == 1][::29], ids=str)
def test_a_codec_with_a_shared_statistic_uses_each_pieces_own(option):
    """Pieces are decoded one by one: workers whose norms differ get the same mean, near theirs."""
    made = content([option], [4096], 2, 2, "thc")
    rng = np.random.default_rng(1)
    xs = [np.float32(10**w) * rng.standard_normal(4096).astype(np.float32) for w in range(4)]
    network = Network(planned_job(made))
    network.reduce(0, xs)
    network.run()
    totals = [network.delivered[w, 0].total for w in range(4)]
    assert all(np.array_equal(totals[0], other) for other in totals)
    exact = np.sum(xs, axis=0)
    assert np.sum((totals[0] - exact) ** 2) < 0.05 * np.sum(exact**2)


def test_the_order_of_arrival_changes_no_bit():
    chosen = OPTIONS[5::700]
    made = content(chosen, [31] * len(chosen), 2, 2)
    totals = {reduced(made, seed)[1][0].sums for seed in range(5)}
    assert len(totals) == 1


def test_steps_keep_the_plans_order_and_times():
    model = Model(
        name="m",
        forward=0.001,
        tensors=tuple(Gradient(name=f"t{n}", values=999, compute=1e-4) for n in range(3)),
    )
    system = load(System, "pcie-25g").model_copy(update={"machines": 2, "gpus": 2})
    made = json.loads(plan(model, load(Compression, "dgc"), system).to_json())
    network = Network(planned_job(made))
    network.reduce(0, vectors(4, 2997))
    network.run()
    order = run_plan(made).order
    timelines = [fields for kind, fields in network.records if kind == "timeline"]
    assert len(timelines) == 4
    for timeline in timelines:
        for number, name in enumerate(RESOURCES):
            served = [event[1:3] for event in timeline["events"] if event[0] == number]
            assert served == [[step.tensor, step.step] for step in order[name]]
        assert all(ready <= start <= end for *_, ready, start, end in timeline["events"])


def test_what_is_refused():
    made = content([OPTIONS[0]], [8], 2, 1)
    worker = PlannedWorker(planned_job(made), 0)
    with pytest.raises(ReduceError, match="7 values: the plan has 8"):
        worker.reduce(0, np.zeros(7, np.float32), 0)
    worker.reduce(0, np.zeros(8, np.float32), 0)
    with pytest.raises(ReduceError, match="one reduce is in flight at a time"):
        worker.reduce(1, np.zeros(8, np.float32), 0)
    with pytest.raises(MessageError, match="which is no worker"):
        worker.receive(("9.9.9.9", 1), bytes([13]) + bytes(19), 0)
    unknown = content([OPTIONS[0]], [8], 2, 2)
    unknown["tensors"][0]["steps"][0]["tasks"][0]["choice"] = "pigeons"
    with pytest.raises(ConfigError, match="plan again with --constraint without=pigeons"):
        run_plan(unknown)
    with pytest.raises(ConfigError, match="tensors go to a server, and its system has no servers"):
        run_plan(content([SERVED[0]], [8], 2, 2) | {"servers": 0})
    short = content([OPTIONS[0]], [8], 2, 1)
    short["order"]["inter"].clear()
    with pytest.raises(ConfigError, match="does not have each step of each tensor once"):
        run_plan(short)
    with pytest.raises(ConfigError, match="not a plan that can be run"):
        run_plan({"tensors": []})


def test_a_plan_cannot_count_votes():
    job = planned_job(content([SERVED[0]], [8], 2, 1), codec=("signsgd", {"vote": True}))
    message = (
        "codec signsgd: a plan's workers add decoded values part by part, and these are not"
        " averaged (a majority's vote needs all workers' at once): use vote = false, or aggregation"
        ' = "switch" or "ps"'
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        check_plan(job)


def test_a_server_refuses_what_the_plan_does_not_have():
    job = planned_job(content([SERVED[0]], [8], 2, 1))
    server, sender = PlannedServer(job), job.addresses.stream(0)
    (task,) = (
        t.number for t in run_plan(job.coding.plan).tensors[0].steps[0] if t.choice == "server"
    )

    def part(tensor=0, task=task, body=bytes(4)):
        return Message(Kind.PLANNED, 0, 0, tensor, 0, task, body).pack()

    assert server.receive(sender, part(), 0) == []
    for peer, data, message in (
        (sender, part(), "again"),
        (("9.9.9.9", 1), part(), "which is no worker"),
        (sender, part(tensor=1), "is not one of the server"),
        (sender, part(task=9), "is not one of the server"),
        (job.addresses.stream(1), part(body=bytes(3)), "not float32"),
        (job.addresses.stream(1), part(body=bytes(8)), "sizes differ"),
    ):
        with pytest.raises(MessageError, match=message):
            server.receive(peer, data, 0)
