"""The DDP hook over loopback: ranks are processes, the switch is the tests' model of it."""

import json
from importlib.util import find_spec

import pytest
from loopback_job import loopback_job
from ranks import run_ranks

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)

# A model in several buckets; a digest of its parameters, and how far they are from a training
# without the hook, relative to how far that training went.
TRAIN = """
def model():
    torch.manual_seed(1)
    layers = (torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 40))
    return torch.nn.Sequential(*layers, torch.nn.Linear(40, 3)).to(kind)

def parameters(net):
    return torch.cat([each.detach().float().reshape(-1) for each in net.parameters()])

def train(net, steps=12):
    ddp = DistributedDataParallel(net, bucket_cap_mb=0.02)
    if state is not None:
        ddp.register_comm_hook(state, gradplane.torch.hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(rank)
    for step in range(steps):
        x = torch.randn(32, 20, generator=random).to(kind)
        loss = ((ddp(x).float() - x[:, :3].float()) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return parameters(net)

start = parameters(model())
state = None
kind = torch.float32
plain = train(model())
state = gradplane.torch.join()
"""

SCHEMES = ["switch", "ps", "ring"]


def lines(job, script, folder, **environment):
    return [[json.loads(line) for line in rank] for rank in run_ranks(
        job, script, folder, **environment)]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_buckets_of_every_type_through_every_scheme(tmp_path, scheme):
    script = (
        TRAIN
        + """
for kind in (torch.float32, torch.float16, torch.bfloat16):
    found = train(model())
    gap = ((found - plain).norm() / (plain - start).norm()).item()
    digest, tensors = found.double().sum().item(), len(state.member._tensors)
    say(kind=str(kind), gap=gap, digest=digest, tensors=tensors)
"""
    )
    ranks = lines(loopback_job(scheme, 2), "kind = torch.float32\n" + script, tmp_path)
    assert ranks[0] == ranks[1]
    exact, half, brain = ranks[0]
    assert exact["tensors"] > 2  # several buckets
    assert exact["gap"] < (0.5 if scheme == "switch" else 1e-5)
    assert half["gap"] < 0.5 and brain["gap"] < 0.5


def test_compiled_models_inside_ddp_and_around_it(tmp_path):
    """Equal to the model as it is, but that what autograd traced may add in another order."""
    script = """
def train(inside, around):
    torch.manual_seed(1)
    layers = (torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 3))
    net = torch.nn.Sequential(*layers)
    ddp = DistributedDataParallel(inside(net))
    ddp.register_comm_hook(state, gradplane.torch.hook)
    run = around(ddp)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(rank)
    for step in range(3):
        optimizer.zero_grad()
        (run(torch.randn(8, 20, generator=random)) ** 2).mean().backward()
        optimizer.step()
    return torch.cat([each.detach().reshape(-1) for each in net.parameters()])

state, plain = gradplane.torch.join(), lambda net: net
compiled = {name: torch.compile(backend=name) for name in ("eager", "aot_eager")}
before = train(plain, plain)
sent = state.member.reducer._tickets
for inside, around in (("eager", None), (None, "aot_eager")):
    found = train(compiled.get(inside, plain), compiled.get(around, plain))
    say(gap=(found - before).abs().max().item(), equal=bool((found == before).all()))
say(sent=sent, after=state.member.reducer._tickets)
"""
    first, second = lines(loopback_job("ring", 2), script, tmp_path)
    assert first == second
    inside, around, reduces = first
    assert inside["equal"] and around["gap"] < 1e-6
    assert reduces["after"] == 3 * reduces["sent"] > 0  # no bucket of theirs went by gloo


def test_accumulation_and_unused_parameters(tmp_path):
    """Under no_sync nothing is sent; the gradient of what was not used is 0, not left out."""
    script = """
state = gradplane.torch.join()
torch.manual_seed(1)

class Half(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    def forward(self, x, both):
        return self.b(self.a(x)) if both else self.a(x)

net = Half()
ddp = DistributedDataParallel(net, find_unused_parameters=True)
ddp.register_comm_hook(state, gradplane.torch.hook)
x = torch.ones(2, 4) * (rank + 1)
with ddp.no_sync():
    ddp(x, True).sum().backward()
quiet = state.member.reducer.take_traffic().packets_up
dist.barrier()  # before the other rank's next bucket is acknowledged
own = [p.grad.clone() for p in net.parameters()]
ddp(x, rank == 0).sum().backward()
for p, before in zip(net.parameters(), own):
    dist.all_reduce(before)
    say(mean=p.grad.sum().item(), mine=before.sum().item() / size)
say(quiet=quiet, loud=state.member.reducer.take_traffic().packets_up)
"""
    first, second = lines(loopback_job("ring", 2), script, tmp_path)
    assert first[:-1] == second[:-1]
    assert all(rank[-1]["quiet"] == 0 < rank[-1]["loud"] for rank in (first, second))
    assert all(each["mean"] != each["mine"] for each in first[:-1])


def test_what_the_network_cannot_take_goes_through_the_process_group(tmp_path):
    """With one warning, and exact."""
    script = """
state = gradplane.torch.join()
net = torch.nn.Linear(4, 1, dtype=torch.float64)
ddp = DistributedDataParallel(net)
ddp.register_comm_hook(state, gradplane.torch.hook)
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    for _ in range(2):
        net.zero_grad()
        ddp(torch.full((1, 4), rank + 1.0, dtype=torch.float64)).sum().backward()
own = [str(each.message) for each in given
       if each.category is gradplane.torch.FallbackWarning]
say(grad=net.weight.grad.tolist(), own=own)
"""
    for (found,) in lines(loopback_job("switch", 2), script, tmp_path):
        assert found["grad"] == [[1.5] * 4]
        assert found["own"] == [
            "tensors of torch.float64 go through the process group, uncompressed: the network"
            " takes float32, float16, bfloat16 and integers on cpu and cuda"
        ]


def test_a_rank_that_overflows_makes_every_rank_skip_the_step(tmp_path):
    script = """
state = gradplane.torch.join()
net = torch.nn.Linear(4, 1)
ddp = DistributedDataParallel(net)
ddp.register_comm_hook(state, gradplane.torch.hook)
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    for step in range(3):
        net.zero_grad()
        x = torch.ones(1, 4)
        if rank == 1 and step == 1:
            x[0, 2] = float("inf")
        ddp(x).sum().backward()
        say(finite=bool(torch.isfinite(net.weight.grad).all()))
say(warned=sum(each.category is gradplane.torch.NonFiniteWarning for each in given))
"""
    for *steps, warned in lines(loopback_job("switch", 2), script, tmp_path):
        assert [step["finite"] for step in steps] == [True, False, True]
        assert warned == {"warned": 1}


def test_a_network_that_is_gone_is_an_error(tmp_path):
    """The ranks learn it from backward(), at the timeout; nothing falls back in silence."""
    script = """
import time
state = gradplane.torch.join(timeout=1.0)
net = torch.nn.Linear(4, 1)
ddp = DistributedDataParallel(net)
ddp.register_comm_hook(state, gradplane.torch.hook)
done = os.path.join(os.environ["GRADPLANE_NETWORK"], "done")
if rank == 0:
    try:
        ddp(torch.ones(1, 4)).sum().backward()
    except Exception as error:
        say(error=str(error))
    open(done, "w").close()
while not os.path.exists(done):  # the other rank is there and reduces nothing
    time.sleep(0.1)
os._exit(0)
"""
    (first,), _ = lines(loopback_job("switch", 2), script, tmp_path)
    assert "not done after 1 s; it waits for the norm of slot 0, use 1, of 127." in first["error"]


def test_joining_without_a_network(monkeypatch):
    import gradplane.torch

    monkeypatch.delenv("GRADPLANE_NETWORK", raising=False)
    assert not gradplane.torch.available()
    with pytest.raises(gradplane.torch.MembershipError, match="^no network: GRADPLANE_NETWORK"):
        gradplane.torch.join()
    monkeypatch.setenv("GRADPLANE_NETWORK", "/nowhere")
    monkeypatch.setenv("GRADPLANE_HOST", "h1")
    with pytest.raises(gradplane.torch.MembershipError, match="^no process group: call torch"):
        gradplane.torch.join()


def test_torch_is_imported_by_nothing_else():
    import subprocess
    import sys

    code = (
        "import sys, gradplane, gradplane.hosts.reducer, gradplane.cli.app;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SAVE = """
import torch.distributed.checkpoint as dcp

torch.manual_seed(1)
ddp = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(20, 60), torch.nn.Linear(60, 3)))
state = gradplane.torch.join()
ddp.register_comm_hook(state, gradplane.torch.hook)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
kept = {"model": ddp.module.state_dict(), "hook": state}
first, last, kind = int(os.environ["FIRST"]), int(os.environ["LAST"]), os.environ["KIND"]
folder = os.environ["FOLDER"]
if first:
    if kind != "at once":  # DDP cuts its buckets anew after a pass
        ddp(torch.zeros(1, 20)).sum().backward()
    whole = torch.load(f"{folder}/{rank}.pt")
    optimizer.load_state_dict(whole["optimizer"])
    if kind == "dcp":
        dcp.load(kept, checkpoint_id=folder)
    else:
        ddp.module.load_state_dict(whole["model"])
        state.load_state_dict(whole["hook"])
with warnings.catch_warnings(record=True) as caught:
    for step in range(first, last):
        torch.manual_seed(10 * step + rank)
        x = torch.randn(32, 20)
        optimizer.zero_grad()
        ((ddp(x) - x[:, :3]) ** 2).mean().backward()
        optimizer.step()
if kind == "at once":
    say(warned=[str(each.message)[:36] for each in caught])
if not first and last == 3:
    dcp.save(kept, checkpoint_id=folder)
    torch.save({**kept, "optimizer": optimizer.state_dict()}, f"{folder}/{rank}.pt")
say(weights=torch.cat([each.detach().reshape(-1) for each in ddp.parameters()]).tolist())
"""


def saving(job, folder):
    """Return what trains from a step to another; it saves before the fourth."""

    def run(first, last, kind=""):
        ends = {"FIRST": str(first), "LAST": str(last), "KIND": kind, "FOLDER": str(folder)}
        return lines(job, SAVE, folder, **ends)

    return run


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    """Six steps equal three, a checkpoint in two forms, and three more from either."""
    run = saving(loopback_job("switch", 2, error_feedback=True), tmp_path)
    whole = run(0, 6)
    run(0, 3)
    assert run(3, 6, "file") == run(3, 6, "dcp") == whole
    for warned, weights in run(3, 6, "at once"):
        assert warned == {"warned": ["DDP has cut other buckets than those"]}
        assert weights != whole[0][0]


@pytest.mark.parametrize(
    ("scheme", "codec", "feedback", "kind"),
    [
        ("ps", ("threelc", {}), False, "file"),
        ("ps", ("dgc", {"fraction": 0.1}), False, "dcp"),
        ("ring", ("powersgd", {"rank": 1}), False, "file"),
        ("ps", ("efsignsgd", {}), False, "dcp"),
        ("ring", ("mxfp", {"element": "e2m1"}), True, "file"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_checkpoint_of_every_codec_with_a_state(tmp_path, scheme, codec, feedback, kind):
    run = saving(loopback_job(scheme, 2, codec=codec, error_feedback=feedback), tmp_path)
    whole = run(0, 6)
    run(0, 3)
    assert run(3, 6, kind) == whole
