"""A classifier of scikit-learn's digits, trained by PyTorch on several hosts.

    gradplane torchrun thc-star examples/digits_ddp.py --epochs 5
    torchrun --nproc-per-node 4 examples/digits_ddp.py --epochs 5

The first reduces the gradients in the experiment's P4 switch, the second as ever, by gloo.
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

import gradplane.torch


def main() -> None:
    """Train, and print the accuracy after each epoch."""
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=5)
    epochs = options.parse_args().epochs

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)  # equal first parameters, and an equal split of the rows
    model = torch.nn.Sequential(torch.nn.Linear(64, 54), torch.nn.ReLU(), torch.nn.Linear(54, 10))
    ddp = DistributedDataParallel(model)
    if gradplane.torch.available():
        ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)

    pixels, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
    order = torch.randperm(len(x))
    train, test = order[:1437], order[1437:]
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    steps = -(-(len(train) // size) // 32)
    gradplane.torch.record(step=0)
    for epoch in range(epochs):
        own = train[torch.randperm(len(train))][rank::size]
        for rows in own[: len(train) // size].split(32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            correct = (model(x[test]).argmax(1) == y[test]).double().mean().item()
        gradplane.torch.record(step=(epoch + 1) * steps, test_accuracy=correct)
        if rank == 0:
            print(f"epoch {epoch + 1}: test accuracy {correct:.2%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
