"""Buckets that are encoded where they are, with interpreted kernels: the bytes are the CPU's."""

import json
from dataclasses import replace
from importlib.util import find_spec
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from bounded_network import Together
from loopback_job import loopback_job, running
from memory_network import HOP, MemoryNetwork, make_job
from ranks import run_ranks
from wired import Wired

from gradplane import codecs
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.device_vector import DeviceVector
from gradplane.hosts.protocols.job_codec import parts, push_codec
from gradplane.hosts.protocols.results import SCATTERED, ReduceError, Summed
from gradplane.hosts.protocols.server_tree import server
from gradplane.hosts.protocols.several_rounds import ring_worker, served_worker
from gradplane.hosts.reducer import Reducer, ReducerError
from gradplane.hosts.saved_state import pack, unpack
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("triton") is None,
    reason="needs PyTorch and Triton: pip install gradplane[gpu]",
)

# Buckets of several partitions; what is said differs where any bit of a parameter or a state does.
TRAIN = """
import hashlib
from gradplane.torch import device_vectors, kernels
if "ENCODES" in os.environ:
    kernels.DEVICES.add("cpu")
    made, make = [], device_vectors.Vector.coder
    def coder(self, *arguments):
        made.append(self.size)
        return make(self, *arguments)
    device_vectors.Vector.coder = coder
kind = {"bfloat16": torch.bfloat16}.get(os.environ.get("KIND"), torch.float32)
state = gradplane.torch.join()
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(20, 60), torch.nn.Linear(60, 50)).to(kind)
ddp = DistributedDataParallel(net, bucket_cap_mb=0.008)
ddp.register_comm_hook(state, gradplane.torch.hook)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
random = torch.Generator().manual_seed(rank)
for step in range(3):
    loss = (ddp(torch.randn(8, 20, generator=random).to(kind)).float() ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
flat = torch.cat([p.detach().float().reshape(-1) for p in net.parameters()])
saved = state.state_dict()
say(parameters=hashlib.sha256(flat.numpy().tobytes()).hexdigest(),
    state={key: hashlib.sha256(bytes(value)).hexdigest() if isinstance(value, bytes) else value
           for key, value in saved.items()})
if "ENCODES" in os.environ:
    assert sum(made) == 3 * 4310, made
"""


def trained(folder, changes, **environment):
    """Return what the ranks say, and the digests of the codes and sums that they exchanged."""
    folder.mkdir()
    job = loopback_job(**{"aggregation": "switch", "workers": 2} | changes)
    said = run_ranks(job, TRAIN, folder, **environment)
    ring = job.aggregation == "ring"  # whose sums are values, which have no digest on a device
    digests = [
        [(line["codes"], ring or line["sums"]) for line in records if "sums" in line]
        for records in (
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in sorted(folder.glob("*.jsonl"))
        )
    ]
    return said, digests


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"error_feedback": False},
        {"codec": ("uniform_thc", {"bits": 3})},
        {"kind": "bfloat16"},
        {"codec": ("switchml", {})},
        {"aggregation": "ps", "codec": ("threelc", {}), "pull_codec": ("float16", {})},
        {"aggregation": "ring", "codec": ("mxfp", {})},
    ],
    ids=[
        "thc",
        "without error feedback",
        "uniform",
        "bfloat16",
        "switchml",
        "3LC by a server",
        "MXFP8 round a ring",
    ],
)
def test_a_training_sends_the_same_bytes(tmp_path, changes):
    own = {"KIND": changes["kind"]} if "kind" in changes else {}
    changes = {key: value for key, value in changes.items() if key != "kind"}
    plain = trained(tmp_path / "plain", changes, **own)
    assert trained(tmp_path / "device", changes, **own, ENCODES="1") == plain
    assert all(len(rank) >= 3 for rank in plain[1])


ALONE = """
from gradplane.torch import kernels
if "ENCODES" in os.environ:
    kernels.DEVICES.add("cpu")
for kind in (torch.float32, torch.bfloat16):
    x = torch.randn(3, 1100, generator=torch.Generator().manual_seed(rank)).to(kind)[:, ::2]
    dist.all_reduce(x, dist.ReduceOp.AVG)
    whole, own = torch.arange(2000.0) * (rank + 1), torch.empty(1000)
    dist.reduce_scatter_tensor(own, whole)
    say(mean=x.tolist(), part=own.tolist())
"""


def test_the_back_end_encodes_where_a_tensor_is(tmp_path):
    said = []
    for environment in ({}, {"ENCODES": "1"}):
        folder = tmp_path / str(len(said))
        folder.mkdir()
        job = loopback_job("switch", 2, error_feedback=False)
        said.append(run_ranks(job, ALONE, folder, group="gradplane", **environment))
    assert said[0] == said[1]


@pytest.fixture
def device_vectors():
    """Import what may not be installed."""
    from gradplane.torch import device_vectors

    return device_vectors


def test_error_feedback_moves_between_the_cpu_and_a_device(device_vectors):
    """Reduces in turn on the CPU, on a device, silent there, read back from a saved state."""
    import torch

    codec, n = codecs.ErrorFeedback(codecs.get("thc")), 3000
    cuts = [slice(part.start, part.stop) for part in codec.partitions(n)]
    ours = theirs = [codec.start(cut.stop - cut.start) for cut in cuts]
    for step, where in enumerate(("cpu", "device", "silent", "device", "saved", "device", "cpu")):
        x = np.random.default_rng(step).standard_normal(n).astype(np.float32)
        vector = device_vectors.Vector(torch.from_numpy(x))
        pieces, coder = [x[cut] for cut in cuts], codec
        if where in ("device", "silent"):
            pieces, coder = [vector[cut] for cut in cuts], vector.coder(codec, ours)
        if where == "saved":
            ours = unpack(pack(ours, [codec.codec]), [codec.codec])
        for k, cut in enumerate(cuts):
            if where == "silent":
                ours[k], theirs[k] = coder.skip(pieces[k], ours[k]), codec.skip(x[cut], theirs[k])
                continue
            norm = coder.local(pieces[k], ours[k])
            assert norm == codec.local(x[cut], theirs[k])
            ours, theirs = list(ours), list(theirs)
            mine, ours[k] = coder.codes(pieces[k], norm, 9, ours[k], 1)
            expected, theirs[k] = codec.codes(x[cut], norm, 9, theirs[k], 1)
            assert np.array_equal(mine, expected)
        assert all(
            a.error.tobytes() == b.error.tobytes() for a, b in zip(ours, theirs, strict=True)
        )


# A job's workers in memory, with vectors of the CPU and of a device that stands in

SERVER = ("10.0.0.9", 21003)
ROUNDS = 2


@pytest.fixture
def placed(device_vectors, monkeypatch):
    """Give the CPU's tensors kernels; return what makes an array a device's vector."""
    import torch

    from gradplane.torch import kernels

    monkeypatch.setattr(kernels, "DEVICES", {"cpu"})
    return lambda x: device_vectors.Vector(torch.from_numpy(x))


def as_array(x):
    return x


def drawn(workers, n):
    """Return vectors by round and worker."""
    random = np.random.default_rng(n)
    return random.standard_normal((ROUNDS, workers, n), np.float32) * np.float32(0.01)


def told(job, workers, delivered):
    """Return what workers got and keep, as a run on the CPU and one on a device must agree."""
    of_job = list(parts(push_codec(job)))
    states = [pack(worker.save(), of_job) for worker in workers]
    results = [(r.counts.tolist(), r.missed, r.codes, sums_of(r)) for r in delivered]
    return results, [array(r.mean).tobytes() for r in delivered], states


def array(vector):
    return np.asarray(getattr(vector, "tensor", vector))


def sums_of(result):
    """Return the digest of a result's sums; those of a ring are values, which have none there."""
    return digest(array(result.total)) if isinstance(result, Summed) else result.sums


def switched(job, vectors, made):
    """Reduce with losses, the last worker late, where a norm may never come; return all packets,
    and what told() does."""
    random, packets, late = Random(5), [], job.workers - 1
    lossy = job.transport.reliability == "lossy"

    def fate(direction, worker, payload):
        packets.append((direction, worker, payload))
        kind = aggregation.parse(payload)[0].type
        never = lossy and worker == 0 and network.now < 10**9 and kind is Type.NORM_RESULT
        return [] if never or random.random() < 0.1 else [HOP]

    network = MemoryNetwork(job, fate)
    for ticket, xs in enumerate(vectors):
        network.reduce(ticket, [made(x) for x in xs[:late]], at := ticket * 10**9)
        network.call_at(at + 5 * HOP, network._starter(late, ticket, made(xs[late]), 0))
    network.run()
    delivered = [network.delivered[w][t] for w in range(job.workers) for t in range(ROUNDS)]
    return packets, told(job, network.workers, delivered)


@pytest.mark.parametrize(
    "changes",
    [{"reliability": "lossy", "quorum": 3}, {"reliability": "lossy"}, {"sum_bits": 16}],
    ids=["late", "lossy", "exact"],
)
@pytest.mark.parametrize(
    ("codec", "feedback", "n"),
    [
        ("switchml", False, 700),
        ("switchml", True, 700),
        ("thc", True, 2100),
    ],
    ids=["SwitchML", "SwitchML, error feedback", "THC"],
)
def test_the_switch_gets_the_same_packets(placed, codec, feedback, n, changes):
    job = make_job(codec=(codec, {}), error_feedback=feedback, **changes)
    vectors = drawn(job.workers, n)
    expected = switched(job, vectors, as_array)
    assert switched(job, vectors, placed) == expected
    missed = sum(missed for _, missed, *_ in expected[1][0])
    assert (missed > 0) == ("reliability" in changes)


def served(job, vectors, made):
    """Reduce by a server, the last worker late; return all messages, and what told() does."""
    workers = [served_worker(job, w) for w in range(job.workers)]
    wired = Wired(job, workers, {SERVER: server(job, SERVER)}, seed=None)
    for ticket, xs in enumerate(vectors):
        for w, x in enumerate(xs):
            if w == job.quorum:
                wired.run()
            wired.perform(w, workers[w].reduce(ticket, made(x), 0))
        wired.run()
    return wired.sent, told(job, workers, wired.delivered.values())


def by_server(name, pull="float32", feedback=False, **parameters):
    """Return changes of a job by a server."""
    return pytest.param(
        {"codec": (name, parameters), "pull_codec": (pull, {}), "error_feedback": feedback},
        id=f"{name} {parameters} {pull}{feedback * ' feedback'}",
    )


@pytest.mark.parametrize(
    "changes",
    [
        by_server("thc", feedback=True),
        by_server("thc", "sums", feedback=True, bits=3, granularity=20),
        by_server("thc", "thc", version=1),
        by_server("thc", "thc", feedback=True, bits=3),
        by_server("uniform_thc", "sums"),
        by_server("switchml", feedback=True),
        by_server("float16", "float16"),
        by_server("bfloat16", "qsgd", feedback=True),
        by_server("int8", "int8", feedback=True),
        by_server("mxfp", "mxfp", feedback=True, element="e2m1"),
        by_server("zeropp", "zeropp"),
        by_server("sdp4bit", "sdp4bit", feedback=True),
        by_server("inceptionn", "inceptionn", feedback=True),
        by_server("threelc", "threelc"),
        by_server("topk", "topk", feedback=True),
    ],
)
def test_a_server_gets_the_same_bytes(placed, changes):
    job = make_job(aggregation="ps", server_address=SERVER, workers=3, quorum=2, **changes)
    vectors = drawn(3, 2100 if "thc" in job.coding.codec[0] else 300)  # several partitions
    expected = served(job, vectors, as_array)
    assert served(job, vectors, placed) == expected
    assert len(expected[1][1]) == 3 * ROUNDS


def of_ring(name, feedback=False, groups=(), **parameters):
    """Return changes of a job of a ring."""
    changes = {"codec": (name, parameters), "error_feedback": feedback, "groups": groups}
    return pytest.param(changes, id=f"{name} {parameters} {groups}{feedback * ' feedback'}")


def round_rings(job, vectors, made, tensor=0):
    """Reduce round a ring, or rings; return all messages, and what told() does."""
    ring = job.aggregation == "ring"
    workers = [(ring_worker if ring else served_worker)(job, w) for w in range(job.workers)]
    servers = {} if ring else {SERVER: server(job, SERVER)}
    wired = Wired(job, workers, servers, seed=None)
    for ticket, xs in enumerate(vectors):
        wired.reduce(ticket, [made(x) for x in xs], tensor)
    return wired.sent, told(job, workers, wired.delivered.values())


GROUPS = ((0, 1), (2, 3))


@pytest.mark.parametrize(
    "changes",
    [
        of_ring("float16"),
        of_ring("bfloat16", feedback=True),
        of_ring("int8", feedback=True, groups=GROUPS),
        of_ring("mxfp", feedback=True, element="e2m3"),
        of_ring("zeropp", feedback=True),
        of_ring("sdp4bit", groups=GROUPS),
        of_ring("inceptionn", feedback=True),
        of_ring("bfloat16", groups=GROUPS),
        of_ring("threelc", parts=2),
        of_ring("zeropp", groups=GROUPS, bits=8),
        of_ring("topk", feedback=True),
    ],
)
def test_a_ring_gets_the_same_bytes(placed, changes):
    """Also where there are fewer values than workers."""
    slow = changes["codec"][0] in ("inceptionn", "threelc")
    workers = 4 if changes["groups"] else 2 if slow else 3
    job = make_job(aggregation="ring", workers=workers, **changes)
    vectors = drawn(job.workers, 2 if changes["codec"][0] in ("int8", "bfloat16") else 302)
    expected = round_rings(job, vectors, as_array)
    assert round_rings(job, vectors, placed) == expected
    assert len(expected[1][1]) == job.workers * ROUNDS


def test_parts_of_a_ring_and_of_a_server(placed):
    changes = {"codec": ("bfloat16", {}), "pull_codec": ("float16", {}), "error_feedback": False}
    for place in ({"aggregation": "ring"}, {"aggregation": "ps", "server_address": SERVER}):
        job = make_job(workers=3, **changes, **place)
        vectors = drawn(3, 300)
        expected = round_rings(job, vectors, as_array, SCATTERED)
        assert round_rings(job, vectors, placed, SCATTERED) == expected
        means = [np.frombuffer(mean, np.float32).reshape(3, 100) for mean in expected[1][1]]
        assert sorted(tuple(mean.any(1)) for mean in means) == [
            *[(False, False, True)] * 2,
            *[(False, True, False)] * 2,
            *[(True, False, False)] * 2,
        ]


@pytest.mark.parametrize("between", [None, ("mxfp", {"element": "e2m1"}), ("onebit", {})])
def test_a_server_over_rings_gets_the_same_bytes(placed, between):
    changes = {"codec": ("bfloat16", {}), "between": between, "pull_codec": ("float16", {})}
    leaders = tuple((f"10.0.0.{1 + ring[0]}", 21003) for ring in GROUPS)
    place = {"server_address": SERVER, "servers": leaders, "groups": GROUPS, "rings": True}
    job = make_job(aggregation="ps", error_feedback=True, **changes, **place)
    vectors = drawn(job.workers, 301)
    expected = round_rings(job, vectors, as_array)
    assert round_rings(job, vectors, placed) == expected
    assert len(expected[1][1]) == job.workers * ROUNDS


@pytest.mark.parametrize("codec", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [5, 3000])
def test_optireduce_sends_the_same_bytes(placed, codec, n):
    """By streams first, then by packets, of which some are lost."""
    told = []
    for made in (as_array, placed):
        chance = Random(1)
        network = Together(
            3, lost=lambda h, chance=chance: chance.random() < 0.2, codec=(codec, {}), observed=1
        )
        for ticket in range(4):
            drawn = np.random.default_rng(ticket).standard_normal((3, n), np.float32)
            network.reduce(ticket, [made(x) for x in drawn])
            network.run()
        results = [each[t] for each in network.results for t in range(4)]
        lines = [{**line, "digest": None} for line in network.records]
        means = [array(r.mean).tobytes() for r in results]
        told.append((network.sent, lines, means, [(r.codes, r.missed) for r in results]))
    assert told[0] == told[1]
    assert n < 3000 or any(missed for _, missed in told[0][3])


def test_a_sum_beyond_float32_is_the_rings_error(placed):
    job = make_job(aggregation="ring", workers=2, codec=("bfloat16", {}), error_feedback=False)
    vectors = np.full((1, 2, 10), 3e38, np.float32)
    for made in (as_array, placed):
        with pytest.raises(ReduceError, match="^worker 1, ticket 0, block 0: the sum: inf"):
            round_rings(job, vectors, made)


def test_a_sum_with_what_was_unsent_that_is_not_finite_is_the_codecs_error(placed):
    x = np.full(10, 3e38, np.float32)
    for name, message in (("switchml", "^infinity at index 0"), ("float16", "^infinity at ind")):
        codec = codecs.ErrorFeedback(codecs.get(name))
        state = replace(codec.start(10), unsent=x)
        for vector, coder in ((x, codec), (placed(x), placed(x).coder(codec, [state]))):
            with pytest.raises(codecs.CodecError, match=message):
                coder.encode(vector, coder.local(vector, state), 0, state)


def test_what_is_not_for_a_device(device_vectors, monkeypatch):
    """The CPU's tensors, codecs without kernels, schemes without codes, vectors that are kept."""
    import torch

    from gradplane.torch import kernels

    job = loopback_job("switch", 2)
    reducer = SimpleNamespace(takes_devices=True, config=SimpleNamespace(job=job))
    x = torch.ones(2, 5)
    assert device_vectors.device_vector(x, reducer) is None
    monkeypatch.setattr(kernels, "DEVICES", {"cpu"})
    assert device_vectors.device_vector(x, reducer).size == 10
    reducer.takes_devices = False
    assert device_vectors.device_vector(x, reducer) is None
    reducer.takes_devices = True
    reducer.config.job = loopback_job("switch", 2, codec=("terngrad", {}))
    assert device_vectors.device_vector(x, reducer) is None


def test_a_reducer_takes_device_vectors_where_they_go_whole_and_nothing_is_kept(tmp_path):
    class Zeros(DeviceVector):
        size = 3
        coder = decoder = zeros = joined = divided = rotated = unrotated = None
        __getitem__ = __setitem__ = __add__ = None

    log, rounds = str(tmp_path / "h1.jsonl"), {"codec": ("powersgd", {"rank": 1})}
    for scheme, changes, kept, taken in (
        ("ring", {}, 0, True),
        ("ring", rounds, 0, False),
        ("ps", rounds, 0, False),
        ("ps", {}, 0, True),
        ("optireduce", {"reliability": "lossy", "codec": ("bfloat16", {})}, 0, True),
        ("switch", {}, 99, False),
        ("switch", {}, 0, True),
    ):
        with running(loopback_job(scheme, 2, **changes)) as hosts:
            config = replace(hosts[0], log=log, kept_bytes=kept)
            with Reducer(config) as reducer:
                assert reducer.takes_devices is taken
                if kept:
                    reducer._vectors.append(np.ones(kept, np.float32) / 3)  # too much
                    assert reducer.takes_devices
                    continue
                if not taken:
                    with pytest.raises(ReducerError, match="^this reduce takes no vector of a de"):
                        reducer.start(Zeros())


FAILS = """
from gradplane.torch import kernels
kernels.DEVICES.add("cpu")
state = gradplane.torch.join(timeout=5)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(20, 60), torch.nn.Linear(60, 50))
ddp = DistributedDataParallel(net, bucket_cap_mb=0.008)
ddp.register_comm_hook(state, gradplane.torch.hook)
ddp(torch.ones(1, 20)).sum().backward()
name = os.environ["METHOD"]
method = getattr(kernels, name)
def fails(*arguments):
    size = arguments[1].numel() if name == "encode" else arguments[2]
    if rank == 0 and size == 1260:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return method(*arguments)
setattr(kernels, name, fails)
try:
    ddp(torch.ones(1, 20)).sum().backward()
except RuntimeError as error:
    say(error=str(error))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("method", ["encode", "decode"])
def test_an_error_on_a_device_names_its_bucket(tmp_path, method):
    """The smaller bucket fails, though the other is waited for first. Its number is that of its
    error feedback, as in the records. (Kernels are interpreted: the CPU is the device.)"""
    mxfp = ("mxfp", {"element": "e2m1"})
    changes = {"codec": mxfp, "pull_codec": mxfp, "error_feedback": False}
    job = loopback_job("ps", 2, **changes)
    (said,) = run_ranks(job, FAILS, tmp_path, METHOD=method)[0]
    text = "bucket 2 of 1260 values on cpu: CUDA error: an illegal memory access was encountered"
    assert text in json.loads(said)["error"]
