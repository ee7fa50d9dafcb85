"""`gradplane plan --profile`: model files from scripts' backward passes."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from gradplane.planner.inputs import Model, load

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)

HEAD = """
import os, sys, time
import torch
from torch import nn

torch.set_num_threads(1)

class Slow(torch.autograd.Function):
    "Takes 20 ms in the backward pass."
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        time.sleep(0.02)
        return gradient

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4, bias=False)
        self.unused = nn.Linear(3, 3)
    def forward(self, x):
        return self.second(Slow.apply(self.first(x)))

def train(net, steps, call=None):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        with torch.no_grad():
            net(torch.ones(2, 8))  # an evaluation is no forward pass
        loss = (call or net)(torch.ones(2, 8)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
PLAIN = "import helper\nprint('said', sys.argv[1:], __name__)\ntrain(Net(), 7)\n"
DDP = """
import torch.distributed as dist
import gradplane.torch

dist.init_process_group("gloo")
net = Net()
ddp = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)
torch.set_num_threads(1)
train(net, 10**9, ddp)
"""
BACK_END = """
import torch.distributed as dist
import gradplane.torch

dist.init_process_group("gradplane")
net = Net()
kept = net.second.weight.register_post_accumulate_grad_hook(
    lambda weight: dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG))
train(net, 30)
"""


def profile(folder, script, *arguments):
    """Profile a script in a folder of its own, from an empty one; return what came of it."""
    for name in ("of script", "current"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "of script" / "helper.py").write_text("")
    (folder / "current" / "helper.py").write_text("raise SystemExit('not this one')")
    file = folder / "of script" / "train.py"
    file.write_text(HEAD + script)
    command = [sys.executable, "-P", "-m", "gradplane", "plan", "--profile", str(file), *arguments]
    return subprocess.run(
        command, cwd=folder / "current", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("script, passes", [(PLAIN, 4), (DDP, 20), (BACK_END, 20)])
def test_the_file_has_the_tensors_in_backward_order_with_their_times(tmp_path, script, passes):
    """And the planner reads it. Endless scripts are ended; they need no network."""
    done = profile(tmp_path, script, "--", "--rate", "3")
    assert done.returncode == 0, done.stderr
    if script is PLAIN:
        assert "said ['--rate', '3'] __main__" in done.stdout
    assert f"medians of {passes} passes" in done.stdout
    assert "next: gradplane plan train.toml --system" in done.stdout
    model = load(Model, tmp_path / "current" / "train.toml")
    second, *first = model.tensors
    assert (model.name, second.name, second.values) == ("train", "second.weight", 64)
    assert {tensor.name: tensor.values for tensor in first} == {
        "first.weight": 128,
        "first.bias": 16,
    }
    assert second.compute < 0.02 <= first[0].compute
    assert 0.02 <= sum(tensor.compute for tensor in model.tensors) < 0.2
    assert 0 < model.forward < 0.2

    again = profile(tmp_path, script)
    assert again.returncode == 2 and "train.toml exists" in again.stderr


RAISES = """
try:
    train(Net(), 2)
    {}["a"]
except KeyError as error:
    raise ValueError("mine") from error
"""
SEVERAL = """
first, second = nn.Linear(8, 8), Net()
train(first, 1)
train(second, 9, lambda x: second(first(x)))
"""
CAUGHT = "train(Net(), 5)\nsys.exit(3)"
IN_BACKWARD = """
class Bad(Slow):
    @staticmethod
    def backward(context, gradient):
        raise ValueError("bad")

Slow = Bad
train(Net(), 5)
"""


@pytest.mark.parametrize(
    "script, said",
    [
        ("", "it ended without a backward pass of a model in its own process"),
        ("train(Net(), 5)", "it ended after 5 backward passes of the model: 3 to get warm and 3"),
        (RAISES, "ValueError: mine\ngradplane: "),
        (IN_BACKWARD, "ValueError: bad\ngradplane: "),
        (CAUGHT, "train.py failed: nothing was measured"),
        (SEVERAL, "come to parameters of several models (Linear, Net): a plan is for one"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "was ended by signal 15"),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path, script, said):
    done = profile(tmp_path, script)
    assert done.returncode == 1
    assert said in done.stderr
    assert "backward_times" not in done.stderr and "runpy" not in done.stderr
    if script in (RAISES, IN_BACKWARD):
        assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert not list((tmp_path / "current").glob("*.toml"))


def test_a_script_that_is_missing_and_options_of_plans(tmp_path):
    from typer.testing import CliRunner

    from gradplane.cli.app import app
    from gradplane.planner.inputs import PlannerError

    def said(*arguments):
        found = CliRunner().invoke(app, ["plan", *map(str, arguments)])
        assert found.exit_code
        return str(found.exception) if isinstance(found.exception, PlannerError) else found.output

    script = tmp_path / "train.py"
    assert "there is no script" in said("--profile", script, "--out", tmp_path / "a.toml")
    script.write_text("")
    assert "did you mean" in said("--profile", tmp_path / "tain.py", "--out", tmp_path / "a.toml")
    assert "not with --profile" in said("--profile", script, "--codec", "thc")
    assert "there is no folder" in said("--profile", script, "--out", tmp_path / "a" / "b.toml")
    assert "one model, not b, too" in said("lstm", "b")
    assert "name a model, or --profile a script" in said()
