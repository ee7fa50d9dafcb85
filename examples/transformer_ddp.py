"""A small transformer that continues text, letter by letter, trained on Python's own help topics.

    gradplane torchrun --set topology.workers=2 thc-star examples/transformer_ddp.py --steps 150
    torchrun --nproc-per-node 2 examples/transformer_ddp.py --steps 150

The text is what `help("topics")` shows, 700 kB that every Python has; its last tenth is the test.
Gradients are accumulated over two batches (no_sync), in two groups of parameters: one decays.
"""

import argparse
import contextlib
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import gradplane.torch

CONTEXT, WIDTH, LAYERS = 64, 96, 2


class Transformer(nn.Module):
    """Predicts each letter's successor from the letters so far: int64[n, t] to [n, t, letters]."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits; each place sees those before it."""
        places = torch.arange(x.shape[1])
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        seen = self.layers(self.letters(x) + self.places(places), mask=mask, is_causal=True)
        logits: torch.Tensor = self.head(seen)
        return logits


def encoded_text() -> tuple[torch.Tensor, int]:
    """Return the text as numbers of its letters, int64[n], and how many letters there are."""
    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = sorted(set(text))
    number = {letter: index for index, letter in enumerate(alphabet)}
    return torch.tensor([number[letter] for letter in text]), len(alphabet)


def pieces(text: torch.Tensor, count: int, random: torch.Generator) -> torch.Tensor:
    """Return `count` random pieces of CONTEXT + 1 letters."""
    starts = torch.randint(len(text) - CONTEXT - 1, (count, 1), generator=random)
    return text[starts + torch.arange(CONTEXT + 1)]


def loss_of(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of a letter, in nats."""
    return cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def main() -> None:
    """Train, and print the test loss of a letter every 50 steps."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=150)
    arguments = options.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)  # equal first parameters
    text, letters = encoded_text()
    train, test = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    model = Transformer(letters)
    ddp = DistributedDataParallel(model)
    if gradplane.torch.available():
        ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)

    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    random = torch.Generator().manual_seed(100 + rank)  # each rank reads pieces of its own
    questions = pieces(test, 64, torch.Generator().manual_seed(1))
    gradplane.torch.record(step=0)
    for step in range(1, arguments.steps + 1):
        optimizer.zero_grad()
        for last in (False, True):
            with contextlib.nullcontext() if last else ddp.no_sync():
                (loss_of(ddp, pieces(train, 16, random)) / 2).backward()
        optimizer.step()
        if step % 50 == 0 or step == arguments.steps:
            with torch.no_grad():
                guessed = model(questions[:, :-1])
                loss = cross_entropy(guessed.flatten(0, 1), questions[:, 1:].flatten()).item()
                right = (guessed.argmax(2) == questions[:, 1:]).double().mean().item()
            gradplane.torch.record(step=step, loss=loss, test_accuracy=right)
            if rank == 0:
                print(f"step {step}: test loss {loss:.3f}, letters right {right:.1%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
