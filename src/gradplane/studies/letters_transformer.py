"""A transformer of two layers in NumPy, as a job's model, and sentences that it learns to continue.

"gradplane.studies.letters_transformer:transformer" is the model of the recorded gradients
letters-transformer: pre-norm, four heads, a tensor for each of PyTorch's, in its order. Its data,
"gradplane.studies.letters_transformer:sentences", are made up: rows are pieces of a text, the
class of each is the letter that follows.
"""

from collections.abc import Callable
from math import prod, sqrt

import numpy as np

from gradplane.codecs import Floats, key
from gradplane.hosts.philox import permutation, uniforms
from gradplane.hosts.training.datasets import Dataset
from gradplane.hosts.training.models import Labels, Tensor

Back = Callable[[Floats], Floats]
"""Returns the slope of an input, given its output's, and writes the gradients of weights."""
Weights = dict[str, tuple[Floats, Floats]]
"""Each tensor and the place of its gradient."""

HEADS, LAYERS = 4, 2
ALPHABET = "abcdefghijklmnopqrstuvwxyz., "
"""The last one is frequent enough to be in every data set, which so has all these classes."""
PHRASES = (
    ("the", "a"),
    ("late", "small"),
    ("worker", "packet"),
    ("adds", "keeps"),
    ("its", "any"),
    ("sum", "norm"),
    (".", ", and"),
)


def sentences(
    seed: int, rows: int = 1200, test: int = 720, context: int = 8, letters: int = 40000
) -> Dataset:
    """Return pieces of letters by their numbers, float32[rows, context], and what follows them.

    The test rows are of the text's last fifth, the others of the rest."""
    text = _text(seed, letters)
    cut = letters * 4 // 5
    x, y = _pieces(text[:cut], rows, context, key(seed, "training pieces"))
    return Dataset(x, y, *_pieces(text[cut:], test, context, key(seed, "test pieces")))


def _text(seed: int, letters: int) -> Labels:
    draws = iter(uniforms(key(seed, "sentences"), letters))  # a phrase has more than one letter
    text = ""
    while len(text) < letters:
        words = [options[int(next(draws) * len(options))] for options in PHRASES]
        text += " ".join(words[:-1]) + words[-1] + " "
    return np.array([ALPHABET.index(letter) for letter in text[:letters]], np.int64)


def _pieces(text: Labels, count: int, context: int, chance: int) -> tuple[Floats, Labels]:
    starts = permutation(chance, len(text) - context)[:count]
    found = text[starts[:, None] + np.arange(context + 1)]
    return found[:, :-1].astype(np.float32), found[:, -1]


class Transformer:
    """Predicts, of a piece of `context` letters, each place's next letter from those before it."""

    def __init__(self, context: int, letters: int, width: int) -> None:
        shapes: dict[str, tuple[int, ...]] = {
            "letters.weight": (letters, width),
            "places.weight": (context, width),
        }
        for layer in range(LAYERS):
            shapes |= _layer(f"layers.layers.{layer}.", width)
        shapes |= {"head.weight": (letters, width), "head.bias": (letters,)}
        ends = np.cumsum([0, *(prod(shape) for shape in shapes.values())])
        self.tensors = tuple(
            Tensor(name, shape, int(start))
            for (name, shape), start in zip(shapes.items(), ends, strict=False)
        )
        self.size = int(ends[-1])

    def parameters(self, seed: int) -> Floats:
        """Draw weights uniform within sqrt(3 / fan-in), of embeddings within 1.

        Those of norms are 1, biases 0."""
        vector = np.zeros(self.size, np.float32)
        for tensor in self.tensors:
            if len(tensor.shape) == 2:
                embeds = tensor.name in ("letters.weight", "places.weight")
                limit = 1.0 if embeds else sqrt(3 / tensor.shape[1])
                draws = uniforms(key(seed, "model", tensor.name), tensor.size)
                tensor.view(vector)[:] = (limit * (2 * draws - 1)).reshape(tensor.shape)
            elif ".norm" in tensor.name and tensor.name.endswith("weight"):
                tensor.view(vector)[:] = 1
        return vector

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return the mean cross entropy of all places of float32[n, context], and its gradient.

        y: what follows the last place."""
        gradient = np.zeros(self.size, np.float32)
        scores, back = self._forward(params, gradient, x)
        right = np.concatenate([x[:, 1:].astype(np.int64), y[:, None]], axis=1).ravel()
        chances, rows = _softmax(scores), np.arange(len(right))
        loss = -float(np.log(chances[rows, right] + np.float32(1e-30)).mean())
        chances[rows, right] -= 1
        back(chances / np.float32(len(right)))
        return loss, gradient

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return the letter that most likely follows each row, of float32[n, context]."""
        scores, _ = self._forward(params, np.empty(self.size, np.float32), x)
        found: Labels = scores[x.shape[1] - 1 :: x.shape[1]].argmax(1)
        return found

    def _forward(self, params: Floats, gradient: Floats, x: Floats) -> tuple[Floats, Back]:
        """Return the scores, float32[n * context, letters], and the way back."""
        weights = {t.name: (t.view(params), t.view(gradient)) for t in self.tensors}
        letters, to_letters = weights["letters.weight"]
        places, to_places = weights["places.weight"]
        n, numbers = len(x), x.astype(np.int64).ravel()
        hidden, backs = letters[numbers] + np.tile(places, (n, 1)), []
        for layer in range(LAYERS):
            for part in (_attention, _connected):
                change, back_of_part = part(hidden, weights, f"layers.layers.{layer}.", n)
                hidden = hidden + change
                backs.append(back_of_part)
        scores, back_of_head = _linear(hidden, weights, "head.")

        def back(slope: Floats) -> Floats:
            slope = back_of_head(slope)
            for back_of_part in reversed(backs):
                slope = slope + back_of_part(slope)
            np.add.at(to_letters, numbers, slope)
            to_places[:] = slope.reshape(n, *places.shape).sum(0)
            return slope

        return scores, back


def transformer(features: int, classes: int, width: int = 24) -> Transformer:
    """Return the model for pieces of `features` letters; ValueError for a width without heads."""
    if width % HEADS:
        raise ValueError(f"transformer: width must be a multiple of {HEADS} heads, got {width}")
    return Transformer(features, classes, width)


def _layer(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{name}self_attn.in_proj_weight": (3 * width, width),
        f"{name}self_attn.in_proj_bias": (3 * width,),
        f"{name}self_attn.out_proj.weight": (width, width),
        f"{name}self_attn.out_proj.bias": (width,),
        f"{name}linear1.weight": (4 * width, width),
        f"{name}linear1.bias": (4 * width,),
        f"{name}linear2.weight": (width, 4 * width),
        f"{name}linear2.bias": (width,),
        f"{name}norm1.weight": (width,),
        f"{name}norm1.bias": (width,),
        f"{name}norm2.weight": (width,),
        f"{name}norm2.bias": (width,),
    }


def _attention(x: Floats, weights: Weights, layer: str, n: int) -> tuple[Floats, Back]:
    normal, back_of_norm = _norm(x, weights, f"{layer}norm1.")
    mixed, back_in = _linear(normal, weights, f"{layer}self_attn.in_proj_")
    t, width = len(x) // n, x.shape[1]
    parts = mixed.reshape(n, t, 3, HEADS, width // HEADS).transpose(2, 0, 3, 1, 4)
    q, k, v = np.ascontiguousarray(parts)  # [n, heads, t, width / heads] each
    scale = np.float32(1 / sqrt(width // HEADS))
    later = np.triu(np.full((t, t), -np.inf, x.dtype), 1)
    chances = _softmax(scale * (q @ k.swapaxes(2, 3)) + later)
    joined = (chances @ v).swapaxes(1, 2).reshape(n * t, width)
    found, back_out = _linear(joined, weights, f"{layer}self_attn.out_proj.")

    def back(slope: Floats) -> Floats:
        slope = back_out(slope).reshape(n, t, HEADS, -1).swapaxes(1, 2)
        of_chances = slope @ v.swapaxes(2, 3)
        mean = (of_chances * chances).sum(3, keepdims=True)
        of_scores = scale * chances * (of_chances - mean)
        slopes = (of_scores @ k, of_scores.swapaxes(2, 3) @ q, chances.swapaxes(2, 3) @ slope)
        mixed = np.stack(slopes).transpose(1, 3, 0, 2, 4).reshape(n * t, 3 * width)
        return back_of_norm(back_in(mixed))

    return found, back


def _connected(x: Floats, weights: Weights, layer: str, n: int) -> tuple[Floats, Back]:
    normal, back_of_norm = _norm(x, weights, f"{layer}norm2.")
    wide, back_in = _linear(normal, weights, f"{layer}linear1.")
    found, back_out = _linear(np.maximum(wide, 0), weights, f"{layer}linear2.")
    return found, lambda slope: back_of_norm(back_in(back_out(slope) * (wide > 0)))


def _linear(x: Floats, weights: Weights, name: str) -> tuple[Floats, Back]:
    (w, to_w), (b, to_b) = weights[f"{name}weight"], weights[f"{name}bias"]

    def back(slope: Floats) -> Floats:
        to_w[:], to_b[:] = slope.T @ x, slope.sum(0)
        found: Floats = slope @ w
        return found

    return x @ w.T + b, back


def _norm(x: Floats, weights: Weights, name: str) -> tuple[Floats, Back]:
    (w, to_w), (b, to_b) = weights[f"{name}weight"], weights[f"{name}bias"]
    away = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((away * away).mean(1, keepdims=True) + np.float32(1e-5))
    normal = away * scale

    def back(slope: Floats) -> Floats:
        to_w[:], to_b[:] = (slope * normal).sum(0), slope.sum(0)
        slope = slope * w
        along = normal * (slope * normal).mean(1, keepdims=True)
        found: Floats = scale * (slope - slope.mean(1, keepdims=True) - along)
        return found

    return normal * w + b, back


def _softmax(scores: Floats) -> Floats:
    found = np.exp(scores - scores.max(-1, keepdims=True))
    found /= found.sum(-1, keepdims=True)
    return np.asarray(found, scores.dtype)
