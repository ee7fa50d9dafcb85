"""`gradplane plan --profile`: model files from scripts' backward passes."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
import ranks

from gradplane.planner import measured
from gradplane.planner.inputs import Model, PlannerError, load

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


def written(folder, script):
    """Write a script into a folder of its own, and a helper beside it."""
    (folder / "of script").mkdir()
    (folder / "of script" / "helper.py").write_text("")
    file = folder / "of script" / "train.py"
    file.write_text(HEAD + script)
    return file


@pytest.fixture()
def measure(tmp_path, monkeypatch):
    """Return `measure`, whose process is forked from one that has imported PyTorch."""

    def run(command, env, check):
        _, _, _, module, *arguments = command
        source = f"import sys; sys.argv[1:] = {arguments}; from {module} import main; main()"
        process = ranks.forked(source, env, tmp_path / "said")
        process.start()
        process.join()
        return subprocess.CompletedProcess(command, process.exitcode)

    monkeypatch.setattr(measured.subprocess, "run", run)
    return measured.measure


def test_the_command_writes_a_file_that_the_planner_reads(tmp_path):
    """Modules beside the script are found, those of the current folder are not."""
    script = written(
        tmp_path, "import helper\nprint('said', sys.argv[1:], __name__)\ntrain(Net(), 7)\n"
    )
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "helper.py").write_text("raise SystemExit('not this one')")
    command = [sys.executable, "-P", "-m", "gradplane", "plan", "--profile", str(script)]

    def profile(*arguments):
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path / "current",
            capture_output=True,
            text=True,
            check=False,
        )

    done = profile("--", "--rate", "3")
    assert done.returncode == 0, done.stderr
    assert "said ['--rate', '3'] __main__" in done.stdout
    assert "medians of 4 passes" in done.stdout
    assert "next: gradplane plan train.toml --system" in done.stdout
    check_model(load(Model, tmp_path / "current" / "train.toml"))

    again = profile()
    assert again.returncode == 2 and "train.toml exists" in again.stderr


@pytest.mark.parametrize("script", [DDP, BACK_END])
def test_the_tensors_are_in_backward_order_with_their_times(tmp_path, measure, script):
    """Endless scripts are ended; they need no network."""
    found = measure(written(tmp_path, script))
    assert found.passes == 20
    check_model(found.model)


def check_model(model):
    second, *first = model.tensors
    assert (model.name, second.name, second.values) == ("train", "second.weight", 64)
    assert {tensor.name: tensor.values for tensor in first} == {
        "first.weight": 128,
        "first.bias": 16,
    }
    assert second.compute < 0.02 <= first[0].compute
    assert 0.02 <= sum(tensor.compute for tensor in model.tensors) < 0.2
    assert 0 < model.forward < 0.2


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
        (RAISES, "train.py failed: nothing was measured"),
        (IN_BACKWARD, "train.py failed: nothing was measured"),
        (CAUGHT, "train.py failed: nothing was measured"),
        (SEVERAL, "come to parameters of several models (Linear, Net): a plan is for one"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "was ended by signal 15"),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path, measure, script, said):
    with pytest.raises(PlannerError, match=re.escape(said)):
        measure(written(tmp_path, script))
    _, errors = ranks.printed(tmp_path / "said")
    assert "backward_times" not in errors and "runpy" not in errors
    if script in (RAISES, IN_BACKWARD):
        assert errors.startswith("Traceback (most recent call last):\n")
        assert errors.endswith(f"ValueError: {'mine' if script is RAISES else 'bad'}\n")


def test_a_script_that_is_missing_and_options_of_plans(tmp_path):
    from typer.testing import CliRunner

    from gradplane.cli.app import app

    def said(*arguments):
        found = CliRunner().invoke(app, ["plan", *map(str, arguments)])
        assert found.exit_code
        if isinstance(found.exception, PlannerError):
            return str(found.exception)
        return " ".join(found.output.replace("│", " ").split())  # without the box's line breaks

    script = tmp_path / "train.py"
    assert "there is no script" in said("--profile", script, "--out", tmp_path / "a.toml")
    script.write_text("")
    assert "did you mean" in said("--profile", tmp_path / "tain.py", "--out", tmp_path / "a.toml")
    assert "not with --profile" in said("--profile", script, "--codec", "thc")
    assert "there is no folder" in said("--profile", script, "--out", tmp_path / "a" / "b.toml")
    assert "one model, not b, too" in said("lstm", "b")
    assert "name a model, or --profile a script" in said()
