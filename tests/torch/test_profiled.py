"""The ranges that PyTorch's profiler shows of a bucket."""

import json
from importlib.util import find_spec

import pytest
from loopback_job import loopback_job
from ranks import run_ranks

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)

STEPS = 3
TRACE = """
from torch.profiler import ProfilerActivity, profile, record_function

def ours(events):
    return [[name, begin, end] for name, begin, end in sorted(events, key=lambda e: e[1])
            if name == "step" or name.startswith("gradplane::")]

def profiled(step, steps):
    "Ranges of steps, from the profile and from its trace; in microseconds."
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for number in range(steps):
            with record_function("step"):
                step(number)
    path = os.path.join(os.environ["GRADPLANE_NETWORK"], f"trace{rank}.json")
    found.export_chrome_trace(path)
    with open(path) as file:
        trace = json.load(file)["traceEvents"]
    return {
        "events": ours((e.name, e.time_range.start, e.time_range.end) for e in found.events()),
        "trace": ours((e["name"], e["ts"], e["ts"] + e["dur"]) for e in trace if e["ph"] == "X"),
    }
"""
DDP = """
from gradplane.hosts.protocols.job_codec import push_codec

def trained(watched):
    torch.manual_seed(1)
    layers = torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 40)
    net = torch.nn.Sequential(*layers)
    ddp = DistributedDataParallel(net, bucket_cap_mb=0.02)
    state = gradplane.torch.join()
    job = state.member.reducer.config.job
    buckets = parts = 0
    def counted(state, bucket):
        nonlocal buckets, parts
        buckets += 1
        if job.aggregation == "switch":
            parts += len(push_codec(job).partitions(bucket.buffer().numel()))
        else:
            parts += len(push_codec(job).carriers) or 1
        return gradplane.torch.hook(state, bucket)
    counted.__annotations__ = gradplane.torch.hook.__annotations__
    ddp.register_comm_hook(state, counted)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    def step(number):
        torch.manual_seed(10 * number + rank)
        optimizer.zero_grad()
        (ddp(torch.randn(32, 20)) ** 2).mean().backward()
        optimizer.step()
    found = watched(step)
    return {"buckets": buckets, "parts": parts, "found": found,
            "weights": sum(each.double().sum().item() for each in net.parameters())}
"""


def lines(job, script, folder, group="gloo"):
    return [[json.loads(line) for line in rank]
            for rank in run_ranks(job, TRACE + script, folder, group)]  # fmt: skip


def check(found, often):
    """Check that each range comes so often, in its order, and within the steps."""
    for ranges in found.values():
        steps = [range for range in ranges if range[0] == "step"]
        ours = [range for range in ranges if range[0] != "step"]
        assert len(steps) == STEPS
        names = [name.removeprefix("gradplane::") for name, *_ in ours]
        assert {name: names.count(name) for name in set(names)} == often
        for _, begin, end in ours:
            assert any(first <= begin <= end <= last for _, first, last in steps)


@pytest.mark.parametrize(
    "scheme, codec", [("switch", "thc"), ("ps", "float32"), ("ps", "powersgd")]
)
def test_buckets_are_named_ranges_within_their_steps(tmp_path, scheme, codec):
    """The training ends as without a profiler.

    THC cuts a bucket into parts for the switch, PowerSGD sends two."""
    script = f"""
say(**trained(lambda step: profiled(step, {STEPS})))
say(**trained(lambda step: [step(number) for number in range({STEPS})]))
"""
    job = loopback_job(scheme, 2, codec=(codec, {}))
    for watched, plain in lines(job, DDP + script, tmp_path):
        assert watched["buckets"] == plain["buckets"] > STEPS
        parts, buckets = watched["parts"], watched["buckets"]
        assert parts > buckets if scheme == "switch" else parts % buckets == 0
        check(watched["found"], {"encode": parts, "network": parts, "decode": buckets})
        if codec == "float32":  # whose values do not depend on how many reduces there were
            assert watched["weights"] == plain["weights"]


def test_the_back_end_and_integers(tmp_path):
    """A ring encodes and decodes block by block; a reduce-scatter ends half way."""
    script = f"""
def step(number):
    x = torch.arange(12.0)
    dist.all_reduce(x)
    counts = torch.arange(12)
    dist.all_reduce(counts)
    part = torch.zeros(6)
    dist.reduce_scatter_tensor(part, torch.ones(12))
    sums.append([x.sum().item(), counts.sum().item(), part.sum().item()])

sums = []
found = profiled(step, {STEPS})
step(0)
say(found=found, sums=sums)
"""
    job = loopback_job("ring", 2, codec=("float32", {}), error_feedback=False)
    for (rank,) in lines(job, script, tmp_path, group="gradplane"):
        assert rank["sums"] == [[132, 132, 12]] * (STEPS + 1)
        whole, parts = 2 * STEPS, STEPS
        sent = 2 * whole + parts
        check(rank["found"], {"encode": sent, "network": sent, "decode": 3 * whole + parts})


def test_a_reduce_that_fails_ends_its_range(tmp_path):
    script = """
state = gradplane.torch.join()
reducer = state.member.reducer
seen = []
answer = reducer.start(torch.full((3,), float("nan")).numpy(), 0, seen.append)
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as found:
    shown = gradplane.torch.profiled.ranges()
    reducer.start(torch.full((3,), float("nan")).numpy(), 0, shown).exception()
    shown.close()
    many = gradplane.torch.profiled.ranges()
    for phase in 70 * ("encode", "network"):
        many(phase)
    many.close()
names = [event.name for event in found.events() if event.name.startswith("gradplane::")]
say(error=str(answer.exception()), seen=seen, names=len(names))
assert gradplane.torch.profiled.ranges() is None
"""
    for (rank,) in lines(loopback_job("ps", 2), script, tmp_path):
        assert "nan at index 0" in rank["error"]
        assert rank["seen"] == []
        assert rank["names"] == 127
