"""A small GPT of words, sharded over the ranks (FSDP2) in bfloat16, on Python's own help topics.

    gradplane torchrun --set topology.workers=2 thc-star examples/gpt_fsdp.py --steps 60
    torchrun --nproc-per-node 2 examples/gpt_fsdp.py --steps 60

Each rank keeps its part of the parameters and of the optimizer's state. A layer's parameters are
gathered in bfloat16 while it computes, and its gradients are summed and scattered by
reduce_scatter_tensor: on a network, by the experiment's aggregation. The loss is float32.
"""

import argparse
import re
from collections import Counter
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

import gradplane.torch

CONTEXT, WIDTH, HEADS, LAYERS, WORDS = 48, 64, 4, 2, 1024


class Block(nn.Module):
    """Attention to the words before, and two layers of each word by itself: [n, t, WIDTH]."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.asked, self.said = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the words with what was added to them."""
        heads = self.asked(self.before(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        found = scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.said(found)
        return x + self.narrow(gelu(self.wide(self.behind(x))))


class Gpt(nn.Module):
    """Predicts each word's successor from the words so far: int64[n, t] to [n, t, WORDS]."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the next words."""
        found = self.words(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            found = block(found)
        scores: Tensor = self.head(self.norm(found))
        return scores


def numbered_words() -> Tensor:
    """Return the text as numbers of its words, int64[n]; 0 is every rare one."""
    words = re.findall(r"\w+|[^\w\s]", " ".join(topics[name] for name in sorted(topics)))
    common = Counter(words).most_common(WORDS - 1)
    number = {word: place for place, (word, _) in enumerate(common, start=1)}
    return torch.tensor([number.get(word, 0) for word in words])


def sharded(model: Gpt, ranks: int) -> Gpt:
    """Spread a model over the ranks, block by block; all ranks make it with the same numbers."""
    mesh = init_device_mesh("cpu", (ranks,))
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=mesh, mp_policy=half)
    return model


def main() -> None:
    """Train, and print the test loss of a word every 20 steps."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=60)
    steps = options.parse_args().steps

    torch.set_num_threads(1)
    dist.init_process_group("gradplane" if gradplane.torch.available() else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    text = numbered_words()
    train, test = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    model = sharded(Gpt(), ranks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss_of(part: Tensor, random: torch.Generator) -> Tensor:
        starts = torch.randint(len(part) - CONTEXT - 1, (16, 1), generator=random)
        pieces = part[starts + torch.arange(CONTEXT + 1)]
        return cross_entropy(model(pieces[:, :-1]).flatten(0, 1).float(), pieces[:, 1:].flatten())

    random = torch.Generator().manual_seed(100 + rank)  # each rank reads pieces of its own
    gradplane.torch.record(step=0)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss_of(train, random).backward()
        optimizer.step()
        if step % 20 == 0 or step == steps:
            with torch.no_grad():
                loss = loss_of(test, torch.Generator().manual_seed(1)).item()
            gradplane.torch.record(step=step, loss=loss)
            if rank == 0:
                print(f"step {step}: test loss of a word {loss:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
