"""ResNet-20 (He et al., CVPR 2016, section 4.2) on scikit-learn's digits, scaled up to 24 x 24.

    gradplane torchrun --set topology.workers=2 thc-star examples/resnet_ddp.py --epochs 5
    torchrun --nproc-per-node 2 examples/resnet_ddp.py --epochs 5

269,722 parameters: a bucket of the first is 264 packets of THC's codes up and as many down.
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, interpolate, relu
from torch.nn.parallel import DistributedDataParallel

import gradplane.torch


class Block(nn.Module):
    """Two convolutions beside a shortcut; where the image shrinks, the shortcut skips pixels."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.stride, self.more = outside // inside, outside - inside
        self.first = nn.Conv2d(inside, outside, 3, self.stride, padding=1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.GroupNorm(4, outside) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return images [n, outside, height / stride, width / stride]."""
        y = self.norms[1](self.second(relu(self.norms[0](self.first(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        return relu(y + nn.functional.pad(shortcut, (0, 0, 0, 0, 0, self.more)))


def resnet20() -> nn.Module:
    """Return three stages of three blocks, with 16, 32 and 64 channels, for images [n, 1, h, w].

    Groups are normalised instead of batches: ranks then share no state but the gradients.
    """
    channels = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b) for a, b in zip(channels, channels[1:], strict=False)]
    stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.GroupNorm(4, 16), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return nn.Sequential(stem, *blocks, head)


def main() -> None:
    """Train, and print the accuracy after each epoch."""
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--pixels", type=int, default=24, help="height and width of an image")
    arguments = options.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)  # equal first parameters, and an equal split of the rows
    model = resnet20()
    ddp = DistributedDataParallel(model)
    if gradplane.torch.available():
        ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)

    pixels, digits = load_digits(return_X_y=True)
    small = torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    x, y = interpolate(small, (arguments.pixels,) * 2, mode="bilinear"), torch.tensor(digits)
    order = torch.randperm(len(x))
    train, test = order[:1437], order[1437:]
    steps = len(train) // size // 32
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=arguments.epochs * steps + 1
    )
    gradplane.torch.record(step=0)
    for epoch in range(arguments.epochs):
        own = train[torch.randperm(len(train))][rank::size]
        for rows in own[: steps * 32].split(32):
            optimizer.zero_grad()
            cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            correct = (model(x[test]).argmax(1) == y[test]).double().mean().item()
        gradplane.torch.record(step=(epoch + 1) * steps, test_accuracy=correct)
        if rank == 0:
            print(f"epoch {epoch + 1}: test accuracy {correct:.2%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
