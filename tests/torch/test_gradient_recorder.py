"""Gradients that a PyTorch script records: each rank's own, of the steps asked for."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from loopback_job import loopback_job
from ranks import run_ranks

from gradplane.codecs import CodecError, RecordedGradients

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)


def test_each_rank_records_its_own_gradient_before_the_mean(tmp_path):
    """Of two backward passes a step, the sum; of a frozen parameter nothing."""
    script = f"""
net = torch.nn.Linear(3, 1)
torch.nn.init.zeros_(net.weight)
net.bias.requires_grad = False
ddp = DistributedDataParallel(net)
gradplane.torch.record_gradients({str(tmp_path / "g.npz")!r}, ddp, steps=[2])
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.0)
for step in (1, 2, 3):
    optimizer.zero_grad()
    with ddp.no_sync():
        ddp(torch.full((1, 3), float(rank + step))).sum().backward()
    ddp(torch.ones(1, 3)).sum().backward()
    optimizer.step()
say(mean=net.weight.grad.tolist())
"""
    first, second = run_ranks(loopback_job("ring", 2), script, tmp_path)
    assert first == second
    found = RecordedGradients.read(tmp_path / "g.npz")
    assert (found.layers, found.steps, found.workers) == (("weight",), (2,), (0, 1))
    assert found.values[0].tolist() == [[[[3.0] * 3], [[4.0] * 3]]]


def test_close_writes_what_there_is_and_no_hook_stays(tmp_path):
    import torch

    import gradplane.torch

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    other = torch.nn.Linear(2, 1)
    recorder = gradplane.torch.record_gradients(tmp_path / "g.npz", model, steps=5, origin="ours")
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, other)]
    seen = []
    for _ in range(2):
        optimizers[0].zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        seen.append(model[0].weight.grad.numpy().copy())
        optimizers[1].step()  # of another model: no step of this one
        optimizers[0].step()
    recorder.close()
    recorder.close()
    found = RecordedGradients.read(tmp_path / "g.npz")
    assert found.steps == (1, 2) and found.workers == (0,) and found.origin == "ours"
    assert found.layers == ("0.weight", "0.bias", "1.weight", "1.bias")
    assert np.array_equal(found.values[0][:, 0], seen)
    assert not any(p._backward_hooks for p in model.parameters())


def test_what_cannot_be_recorded_is_refused(tmp_path):
    import torch

    import gradplane.torch

    with pytest.raises(CodecError) as error:
        gradplane.torch.record_gradients(tmp_path / "g.npz", torch.nn.Linear(1, 1), steps=[0, 1])
    assert str(error.value) == "steps = [0, 1]: a number of steps, or some, counted from 1"
    with pytest.raises(CodecError) as error:
        gradplane.torch.record_gradients(tmp_path / "g.npz", torch.nn.ReLU())
    assert str(error.value) == "the model has no parameters that are trained"


def test_a_training_that_ends_before_says_so(tmp_path):
    script = """
import torch, gradplane.torch
model = torch.nn.Linear(1, 1)
gradplane.torch.record_gradients("g.npz", model, steps=3)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "g.npz is not written: the training ended after step 0, before step 3" in done.stderr
    assert not (tmp_path / "g.npz").exists()
