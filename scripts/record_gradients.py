"""Record the gradients that come with gradplane: two small models, four workers, by PyTorch's DDP.

    python scripts/record_gradients.py FOLDER

writes digits-cnn.npz, a convolutional network on scikit-learn's digits, and
letters-transformer.npz, a transformer of two layers that continues Python's help topics letter by
letter.

    python scripts/record_gradients.py --train 'inceptionn bound=6' 'qsgd feedback' ...

trains both models under codecs, all workers in one process, and prints the test accuracy of each:
what the warnings of gradplane run are held against (tests/runs/test_codec_warnings.py).

The shipped files, src/gradplane/studies/recorded/, were made with PyTorch 2.13.0 for the
CPU; another version or machine has other last digits.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu
from torch.nn.parallel import DistributedDataParallel

import gradplane.torch
from gradplane import codecs

WORKERS = 4
CONTEXT, WIDTH = 32, 24
Losses = Callable[[nn.Module, int], Callable[[], Tensor]]
"""Given the model and a rank, a function that returns the loss of the rank's next batch."""


class Cnn(nn.Module):
    """Two convolutions and a layer of ten classes: images [n, 1, 8, 8] to [n, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.pool, self.classes = nn.MaxPool2d(2), nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the classes' scores."""
        found: Tensor = self.classes(self.pool(relu(self.conv2(relu(self.conv1(x))))).flatten(1))
        return found


class Transformer(nn.Module):
    """Predicts each letter's successor from the letters so far: int64[n, t] to [n, t, letters]."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, letters)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores; each place sees those before it."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        known = self.letters(x) + self.places(torch.arange(x.shape[1]))
        found: Tensor = self.head(self.layers(known, mask=mask, is_causal=True))
        return found


def digit_losses(model: nn.Module, rank: int) -> Callable[[], Tensor]:
    """Return a function for batches of 32 digits."""
    pixels, digits = load_digits(return_X_y=True)
    x = torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    y, random = torch.tensor(digits), torch.Generator().manual_seed(100 + rank)

    def loss() -> Tensor:
        rows = torch.randint(1437, (32,), generator=random)
        return cross_entropy(model(x[rows]), y[rows])

    return loss


def letter_losses(model: nn.Module, rank: int) -> Callable[[], Tensor]:
    """Return a function for batches of 16 pieces of text."""
    text, random = encoded_text(), torch.Generator().manual_seed(100 + rank)

    def loss() -> Tensor:
        starts = torch.randint(len(text) - CONTEXT - 1, (16, 1), generator=random)
        batch = text[starts + torch.arange(CONTEXT + 1)]
        return cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return loss


def encoded_text() -> Tensor:
    """Return the help topics as numbers of their letters, int64[n]."""
    text = "\n".join(topics[name] for name in sorted(topics))
    number = {letter: index for index, letter in enumerate(sorted(set(text)))}
    return torch.tensor([number[letter] for letter in text])


def digits_cnn() -> tuple[nn.Module, torch.optim.Optimizer, Losses]:
    """Return the model on digits with its optimizer and losses."""
    model = Cnn()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), digit_losses


def letters_transformer() -> tuple[nn.Module, torch.optim.Optimizer, Losses]:
    """Return the model of letters with its optimizer and losses."""
    model = Transformer(int(encoded_text().max()) + 1)
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3), letter_losses


SETS = {
    "digits-cnn": (digits_cnn, (1, 20, 100), "scikit-learn's digits (UCI, CC BY 4.0)"),
    "letters-transformer": (letters_transformer, (1, 100), "Python's help topics (PSF)"),
}


def record(rank: int, name: str, folder: str) -> None:
    """Train as one of the workers until the gradients are recorded."""
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", f"file://{folder}/{name}.store", rank=rank, world_size=WORKERS)
    torch.manual_seed(1)
    make, steps, data = SETS[name]
    model, optimizer, losses = make()
    ddp = DistributedDataParallel(model)
    origin = (
        f"{name}: scripts/record_gradients.py of gradplane, PyTorch {torch.__version__},"
        f" {WORKERS} workers; data: {data}"
    )
    gradplane.torch.record_gradients(
        f"{folder}/{name}.npz", ddp, steps, origin=origin, licence="as gradplane"
    )
    loss = losses(ddp, rank)
    for _ in range(steps[-1]):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    dist.destroy_process_group()


def accuracy(name: str, model: nn.Module) -> float:
    """Return the share of the last images, or of letters of the text's last part, guessed right."""
    with torch.no_grad():
        if name == "digits-cnn":
            pixels, digits = load_digits(return_X_y=True)
            x = torch.tensor(pixels[1437:] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
            right = model(x).argmax(1) == torch.tensor(digits[1437:])
        else:
            batch = encoded_text()[-(CONTEXT + 1) * 64 :].reshape(64, -1)
            right = model(batch[:, :-1]).argmax(2) == batch[:, 1:]
    return float(right.double().mean())


def train(name: str, named: str, steps: int) -> float:
    """Train with a codec between the workers and the mean; return the test accuracy."""
    kind, *words = named.split()
    options = {
        key: float(v) if "." in v else int(v)
        for key, v in (w.split("=") for w in words[:1] if "=" in w)
    }
    codec = codecs.get(kind, **options)
    codec = codecs.ErrorFeedback(codec) if "feedback" in words else codec
    torch.manual_seed(1)
    model, optimizer, losses = SETS[name][0]()
    each = [losses(model, rank) for rank in range(WORKERS)]
    n = sum(p.numel() for p in model.parameters())
    states = [codec.start(n) for _ in each]
    for step in range(steps):
        vectors = []
        for loss in each:
            optimizer.zero_grad()
            loss().backward()
            vectors.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]).numpy())
        pairs = list(zip(vectors, states, strict=True))
        known = [s for x, state in pairs if (s := codec.local(x, state)) is not None]
        shared, seed = codec.combine(known) if known else None, codecs.key(1, step)
        sent = [codec.encode(x, shared, seed, state, w) for w, (x, state) in enumerate(pairs)]
        states = [state for _, state in sent]
        mean = torch.from_numpy(codec.merge([codec.decode(data, n) for data, _ in sent]))
        for p, part in zip(
            model.parameters(), mean.split([p.numel() for p in model.parameters()]), strict=True
        ):
            p.grad = part.reshape(p.shape)
        optimizer.step()
    return accuracy(name, model)


if __name__ == "__main__" and sys.argv[1:2] == ["--train"]:
    torch.set_num_threads(1)
    for each in SETS:
        for asked in sys.argv[2:]:
            print(f"{each}, {asked}: {train(each, asked, 200):.3f}", flush=True)
elif __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    for each in SETS:
        torch.multiprocessing.start_processes(
            record, (each, str(target)), nprocs=WORKERS, start_method="fork"
        )
        (target / f"{each}.store").unlink(missing_ok=True)
