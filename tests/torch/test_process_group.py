"""The back end `gradplane` over loopback, in code without DDP."""

import json
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from loopback_job import loopback_job
from ranks import run_ranks

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)


def found(job, script, folder):
    return [[json.loads(line) for line in rank]
            for rank in run_ranks(job, script, folder, group="gradplane")]  # fmt: skip


def test_sums_and_means_go_through_the_network_and_the_rest_through_gloo(tmp_path):
    """With float32 in a ring they are exact; two models reduce through one worker."""
    script = """
begun = 0
def reduces():  # since the last call; acknowledgements make packets depend on time
    global begun
    before, begun = begun, gradplane.torch.membership.member().reducer._tickets
    return begun - before

results = {}
for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
    x = torch.full((2, 500), rank + 1.0, dtype=torch.bfloat16)
    dist.all_reduce(x, op)
    results[str(op)] = [x.dtype == torch.bfloat16, x.min().item(), x.max().item()]
works = [dist.all_reduce(torch.full((7,), float(rank * k)), async_op=True) for k in range(5)]
for work in works:
    work.wait()
flying = [work.get_future().value()[0][0].item() for work in works]
say(**results, flying=flying, sent=reduces() > 0)

peak, gathered = torch.tensor([float(rank)]), [torch.zeros(1) for _ in range(size)]
dist.all_reduce(peak, dist.ReduceOp.MAX)
dist.all_gather(gathered, torch.ones(1) * rank)
first, least = torch.tensor([rank + 5.0]), torch.tensor([rank + 5.0])
dist.broadcast(first, 0)
dist.reduce(least, 0, dist.ReduceOp.MIN)
pieces = [torch.full((1,), 7.0 * k) for k in range(size)]
piece, got = torch.empty(1), [torch.empty(1) for _ in range(size)]
dist.scatter(piece, pieces if rank == 0 else None, 0)
dist.gather(piece, got if rank == 0 else None, 0)
part = dist.new_group([0, 1])
number, share = torch.tensor(rank), torch.tensor([rank * 3.0])
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    if rank < 2:
        dist.all_reduce(number, group=part)
        dist.all_reduce(share, dist.ReduceOp.AVG, group=part)
    doubles = torch.full((3,), 0.5 + rank, dtype=torch.float64)
    dist.all_reduce(doubles, dist.ReduceOp.AVG)
    dist.all_reduce(doubles)
dist.barrier()
say(least=least.item(), piece=piece.item(), got=torch.cat(got).tolist())
say(peak=peak.item(), gathered=torch.cat(gathered).tolist(), first=first.item(), part=number.item(),
    doubles=doubles.tolist(), sent=reduces(),
    share=share.item(), warned=[str(each.message).partition(" go")[0] for each in given
                                if each.category is gradplane.torch.FallbackWarning])

counted = torch.full((3,), 2**40 + rank)
dist.all_reduce(counted, dist.ReduceOp.AVG)
dist.all_reduce(counted)
small = torch.tensor([rank, 120], dtype=torch.uint8)
dist.all_reduce(small)
say(counted=counted.tolist(), small=small.tolist(), sent=reduces() > 0)

grids = [torch.arange(6, dtype=kind).view(2, 3) for kind in (torch.float32, torch.float64)]
for grid in grids:
    dist.all_reduce(grid[:, 0])
say(grids=[grid.tolist() for grid in grids])

nets = [torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)]
hooked, plain = [DistributedDataParallel(net) for net in nets]
hooked.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)
for net in (hooked, plain):
    net(torch.ones(1, 4) * rank).sum().backward()
say(hooked=nets[0].weight.grad.tolist(), plain=nets[1].weight.grad.tolist(), sent=reduces() > 0)
"""
    job = loopback_job("ring", 3, codec=("float32", {}), error_feedback=False)
    for rank, lines in enumerate(found(job, script, tmp_path)):
        reduced, rooted, rest, integers, views, models = lines
        ways = (value for key, value in reduced.items() if key not in ("flying", "sent"))
        assert list(ways) == [[True, 6, 6], [True, 2, 2]]
        assert reduced["flying"] == [0, 3, 6, 9, 12]
        assert (rest["peak"], rest["gathered"], rest["first"]) == (2, [0, 1, 2], 5)
        assert rest["part"] == (1 if rank < 2 else 2)
        assert rooted["piece"] == 7 * rank
        assert rank or (rooted["least"], rooted["got"]) == (5, [0, 7, 14])
        assert rest["doubles"] == [4.5] * 3
        assert (rest["share"], rest["sent"]) == (1.5 if rank < 2 else 6, 0)
        part = ["all_reduce in a group of 2 ranks"] if rank < 2 else []
        assert rest["warned"] == [*part, "tensors of torch.float64"]
        counted = [3 * (2**40 + 1)] * 3
        assert integers == {"counted": counted, "small": [3, 360 % 256], "sent": True}
        assert views["grids"] == [[[0, 1, 2], [9, 4, 5]]] * 2  # only the column is summed
        assert models["hooked"] == models["plain"] == [[1.0] * 4]
        assert reduced["sent"] and models["sent"]


@pytest.mark.parametrize("scheme", ["switch", "ps"])
def test_nothing_is_kept_from_a_reduce_for_another(tmp_path, scheme):
    """Tensors of several sizes, one after another, and the same one again."""
    script = """
x = torch.randn(3000, generator=torch.Generator().manual_seed(rank))
for n in (3000, 10, 3000):
    mean, all_x = x[:n].clone(), [torch.zeros(n) for _ in range(size)]
    dist.all_gather(all_x, mean)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    exact = torch.stack(all_x).mean(0)
    say(error=((mean - exact).norm() / exact.norm()).item())
"""
    for rank in found(loopback_job(scheme, 2), script, tmp_path):
        assert all(line["error"] < 0.6 for line in rank)


def test_gathers_and_broadcasts_are_exact_and_in_the_records(tmp_path):
    """Tensors may have any type and shape; collectives of some of the ranks go to gloo."""
    script = """
found = {}
for kind in ("float32", "bfloat16", "float64", "int64", "bool", "complex64"):
    parts = [(torch.arange(6).view(2, 3) * 3**r % 5).to(getattr(torch, kind)) for r in range(size)]
    part, listed = parts[rank], [torch.empty_like(each) for each in parts]
    whole, columns = torch.empty(2 * size, 3, dtype=part.dtype), torch.zeros(3, 4, dtype=part.dtype)
    dist.all_gather_into_tensor(whole, part)
    dist.all_gather(listed, part)
    columns[:, 1] = part[1]
    dist.broadcast(columns[:, 1], 2)
    found[kind] = [torch.equal(whole, torch.cat(parts)), torch.equal(columns[:, 1], parts[2][1]),
                   torch.equal(torch.stack(listed), torch.stack(parts)),
                   not columns[:, ::2].any().item()]
large = torch.full((70_000,), float(rank))
work = dist.broadcast(large, 1, async_op=True)
work.wait()
scalar, none = torch.tensor(rank + 0.5), torch.empty(0)
dist.broadcast(scalar, 0)
dist.all_gather_into_tensor(torch.empty(0), none)
group = dist.new_group([0, 1])
some = torch.tensor([float(rank)])
if rank < 2:
    dist.broadcast(some, 1, group)
dist.barrier()
say(found=found, large=large.unique().tolist(), scalar=scalar.item(), some=some.item())
"""
    for rank, (line,) in enumerate(found(loopback_job("switch", 3), script, tmp_path)):
        assert all(all(each) for each in line["found"].values()), line
        assert (line["large"], line["scalar"]) == ([1], 0.5)
        assert line["some"] == (1 if rank < 2 else 2)
        log = [json.loads(each) for each in (tmp_path / f"h{rank + 1}.jsonl").open()]
        gathers = [each for each in log if each["kind"] == "gather"]
        assert len(gathers) == 6 * 3 + 2
        assert {each["source"] for each in gathers} == {None, 0, 1, 2}
        (large,) = [each for each in gathers if each["bytes"] == 280_000]
        assert (large["needed_up"] > 0) == (rank == 1)


def test_gathers_may_stay_with_gloo(tmp_path):
    script = """
parts = [torch.empty(1) for _ in range(size)]
dist.all_gather(parts, torch.ones(1) * rank)
reducer = gradplane.torch.membership.member().reducer
say(parts=torch.cat(parts).tolist(), gathers=reducer._gathers_begun)
os.environ["GRADPLANE_GATHER"] = "nccl"
try:
    dist.new_group(backend="gradplane")
except RuntimeError as error:
    say(error=str(error))
"""
    job = loopback_job("ring", 2, codec=("float32", {}))
    for first, second in run_ranks(job, script, tmp_path, "gradplane", GRADPLANE_GATHER="gloo"):
        assert json.loads(first) == {"parts": [0, 1], "gathers": 0}
        error = 'GRADPLANE_GATHER = "nccl": it can be "gloo", or is not set'
        assert json.loads(second) == {"error": error}


def test_integers_of_a_job_that_leaves_something_out_go_through_gloo(tmp_path):
    script = """
number = torch.tensor([rank + 1])
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    dist.all_reduce(number)
    dist.all_reduce(number)
own = [str(each.message) for each in given
       if each.category is gradplane.torch.FallbackWarning]
say(number=number.item(), own=own)
"""
    for (rank,) in found(loopback_job("switch", 2, reliability="lossy"), script, tmp_path):
        assert rank["number"] == 6
        assert rank["own"] == [
            "tensors of torch.int64 go through the process group, uncompressed: integers are summed"
            ' where nothing is left out: with reliability = "retransmit" and the quorum of all'
            " workers"
        ]


@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_an_error_of_any_kind_in_the_reducer_ends_the_wait(kind):
    import torch

    from gradplane.torch.exchange import Exchange

    answer = Future()
    reducer = SimpleNamespace(start=lambda *_: answer, workers=2)
    exchange = Exchange(reducer, lambda flag: torch.futures.Future())
    found = exchange.reduce(torch.ones(3, dtype=getattr(torch, kind)), None, mean=True)
    answer.set_exception(OSError("no buffer space"))
    assert found.done()
    with pytest.raises(OSError, match="^no buffer space$"):
        found.wait()


def test_gloos_thread_may_want_pythons_lock_while_a_collective_begins(tmp_path):
    """Gloo's thread frees tensors of Python while it holds its queue: ranks stood still, by the
    twelfth time."""
    script = """
from torch.distributed._functional_collectives import all_gather_tensor, reduce_scatter_tensor

for _ in range(40):
    works = [dist.all_reduce(torch.full((7,), float(rank)), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    for _ in range(5):
        dist.broadcast(torch.tensor([rank + 5.0]), 0)
for _ in range(40):
    works = [dist.all_reduce(torch.full((7,), float(rank)), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    for _ in range(5):
        gathered = all_gather_tensor(torch.tensor([rank + 5.0]), 0, dist.group.WORLD).tolist()
scattered = reduce_scatter_tensor(torch.arange(6.0) + rank, "sum", 0, dist.group.WORLD).tolist()
say(gathered=gathered, scattered=scattered)
"""
    job = loopback_job("ring", 3, codec=("float32", {}), error_feedback=False)
    first, second, third = found(job, script, tmp_path)
    assert [each[0]["gathered"] for each in (first, second, third)] == [[5, 6, 7]] * 3
    assert [each[0]["scattered"] for each in (first, second, third)] == [[3, 6], [9, 12], [15, 18]]


def test_ranks_that_stand_still_say_who_waits_for_what(tmp_path):
    script = """
import time
from datetime import timedelta
gradplane.torch.process_group._PATIENCE = 1.0
group = dist.new_group(backend="gradplane", timeout=timedelta(seconds=1))
if rank == 1:
    time.sleep(4)
try:
    dist.all_gather_into_tensor(torch.empty(3), torch.ones(1), group)
except RuntimeError as error:
    say(error=str(error))
os._exit(0)
"""
    job = loopback_job("ring", 3, codec=("float32", {}), error_feedback=False)
    first, _, third = found(job, script, tmp_path)
    for own, other, (said,) in ((0, 2, first), (2, 0, third)):
        where = "waits in all_gather_into_tensor, its collective 1"
        start = f"rank {own} {where}; rank {other} {where}; nothing was heard of rank 1: not come"
        assert said["error"].startswith(start)
        assert "not done after 1 s; it waits for the parts of worker 1:" in said["error"]


SHARDED = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

warnings.simplefilter("ignore", FutureWarning)
reducer = gradplane.torch.membership.member().reducer
whole, parts = torch.arange(4.0 * size) + rank, []
for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
    parts.append(torch.empty(4))
    dist.reduce_scatter_tensor(parts[-1], whole, op)
say(parts=torch.stack(parts).tolist(), reduces=reducer._tickets, kept=whole.tolist())

def train(net, optimizer):
    torch.manual_seed(rank)
    for _ in range(20):
        x = torch.randn(32, 20)
        optimizer.zero_grad()
        loss = ((net(x) - x[:, :3]) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()

def network():
    torch.manual_seed(0)
    layers = torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
    return torch.nn.Sequential(*layers)

net, mesh, before = network(), init_device_mesh("cpu", (size,)), reducer._tickets
for part in (net[0], net[2], net):
    fully_shard(part, mesh=mesh)
loss = train(net, torch.optim.SGD(net.parameters(), lr=0.2))
weights = torch.cat([each.full_tensor().detach().reshape(-1) for each in net.parameters()])
say(loss=loss, weights=weights.tolist(), reduces=reducer._tickets - before)

ddp = DistributedDataParallel(network())
loss = train(ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.2))
say(loss=loss, weights=torch.cat([p.detach().reshape(-1) for p in ddp.parameters()]).tolist())
"""


def test_a_model_compiled_around_ddp_or_fsdp_begins_collectives(tmp_path):
    """DDP broadcasts its new buckets in the second step's forward pass."""
    script = """
from torch.distributed.fsdp import fully_shard

def train(wrapped, whole):
    ways = {"plain": lambda net: net, "compiled": torch.compile(backend="aot_eager")}
    found = {}
    for way, compiled in ways.items():
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 3))
        net = wrapped(net)
        chosen = compiled(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        random = torch.Generator().manual_seed(rank)
        for step in range(3):
            optimizer.zero_grad()
            (chosen(torch.randn(8, 20, generator=random)) ** 2).mean().backward()
            optimizer.step()
        found[way] = torch.cat([whole(each).detach().reshape(-1) for each in net.parameters()])
    return (found["plain"] - found["compiled"]).abs().max().item()

say(ddp=train(DistributedDataParallel, lambda each: each))
say(fsdp=train(fully_shard, lambda each: each.full_tensor()))
"""
    job = loopback_job("ring", 2, codec=("float32", {}), error_feedback=False)
    for ddp, fsdp in found(job, script, tmp_path):
        assert ddp["ddp"] < 1e-6 and fsdp["fsdp"] < 1e-6


def test_sharded_training_reduces_gradients_through_the_switch(tmp_path):
    """FSDP2 and a sharded optimizer, unmodified: all ranks have equal weights, and learn."""
    first, second = found(loopback_job("ring", 2), SHARDED, tmp_path)
    assert first[0]["parts"] == [[1, 3, 5, 7], [0.5, 1.5, 2.5, 3.5], [1, 2, 3, 4]]
    assert second[0]["parts"] == [[9, 11, 13, 15], [4.5, 5.5, 6.5, 7.5], [5, 6, 7, 8]]
    assert (first[0]["reduces"], first[0]["kept"]) == (2, list(range(8)))
    exact = first[1]["loss"]
    first, second = found(loopback_job("switch", 2, error_feedback=False), SHARDED, tmp_path)
    assert first[1]["reduces"] == 40
    for rows in zip(first[1:], second[1:], strict=True):
        assert rows[0]["weights"] == rows[1]["weights"]
        assert rows[0]["loss"] < 2 * exact < 0.6


GPT = """
sys.path.insert(0, os.environ["EXAMPLES"])
from gpt_fsdp import CONTEXT, WORDS, Gpt, sharded

torch.manual_seed(0)
model = sharded(Gpt(), size)
optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
for step in range(6):
    x = torch.arange(CONTEXT).repeat(4, 1) + 9
    optimizer.zero_grad()
    scores = model(x)
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), x.flatten())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
say(kind=str(scores.dtype), losses=losses,
    reduces=gradplane.torch.membership.member().reducer._tickets,
    norm=sum(p.full_tensor().norm().item() for p in model.parameters()))
"""


def test_the_example_of_a_gpt_is_sharded_in_bfloat16_over_the_switch(tmp_path):
    """Its gradients, of two blocks and the rest, are reduced by the network in each step."""
    examples = str(Path(__file__).parents[2] / "examples")
    job = loopback_job("switch", 2, error_feedback=False)
    ranks = run_ranks(job, GPT, tmp_path, group="gradplane", EXAMPLES=examples)
    (first,), (second,) = ([json.loads(line) for line in rank] for rank in ranks)
    assert first == second
    assert (first["kind"], first["reduces"]) == ("torch.bfloat16", 18)
    assert first["losses"][-1] < 0.75 * first["losses"][0]
