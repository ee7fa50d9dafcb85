"""Texts of words of many topics, and a model that adds up the words' vectors: sparse gradients.

A batch has few of the vocabulary's words, so most rows of the table of vectors have a gradient of
zero, as those of a recommender or a language model have. "gradplane.studies.word_topics:texts" are
made up, and "gradplane.studies.word_topics:bag" is a job's model of them.
"""

import numpy as np

from gradplane.codecs import Floats, key
from gradplane.hosts.philox import uniforms
from gradplane.hosts.training.datasets import Dataset
from gradplane.hosts.training.models import Labels, Tensor


def texts(
    seed: int, rows: int = 1600, test: int = 400, words: int = 8, vocabulary: int = 4096,
    topics: int = 8,
) -> Dataset:  # fmt: skip
    """Return texts as numbers of words, float32[rows, words], and their topics.

    Word r comes with a probability proportional to 1 / (r + 1), as in languages (Zipf), and every
    word but one of four is of a text's topic where its number is."""
    y = _draws(seed, "topics", rows + test, topics).astype(np.int64)
    shares = np.cumsum(1 / np.arange(1, vocabulary // topics + 1))
    ranks = uniforms(key(seed, "ranks"), len(y) * words) * shares[-1]
    rank = np.searchsorted(shares, ranks).reshape(len(y), words)
    noise = uniforms(key(seed, "noise"), rank.size).reshape(rank.shape) < 0.25
    other = _draws(seed, "others", rank.size, topics).reshape(rank.shape)
    x = (rank * topics + np.where(noise, other, y[:, None])).astype(np.float32)
    return Dataset(x[:rows], y[:rows], x[rows:], y[rows:])


def _draws(seed: int, purpose: str, n: int, below: int) -> Floats:
    return (uniforms(key(seed, purpose), n) * below).astype(np.float32)


class Bag:
    """Scores of classes, a linear map of the mean of a text's word vectors."""

    def __init__(self, classes: int, vocabulary: int, width: int) -> None:
        self.tensors = (
            Tensor("words.weight", (vocabulary, width), 0),
            Tensor("head.weight", (width, classes), vocabulary * width),
            Tensor("head.bias", (classes,), (vocabulary + classes) * width),
        )

    def parameters(self, seed: int) -> Floats:
        """Draw weights uniform within 0.5; biases are 0."""
        vector = np.zeros(sum(tensor.size for tensor in self.tensors), np.float32)
        for tensor in self.tensors[:2]:
            draws = uniforms(key(seed, "model", tensor.name), tensor.size)
            tensor.view(vector)[:] = (draws - 0.5).reshape(tensor.shape)
        return vector

    def loss_and_gradient(self, params: Floats, x: Floats, y: Labels) -> tuple[float, Floats]:
        """Return the mean cross entropy of float32[n, words], and its gradient."""
        gradient = np.zeros_like(params)
        table, head, bias = (tensor.view(gradient) for tensor in self.tensors)
        bags, scores = self._forward(params, x)
        scores = np.exp(scores - scores.max(1, keepdims=True))
        chances, rows = scores / scores.sum(1, keepdims=True), np.arange(len(y))
        loss = -float(np.log(chances[rows, y] + np.float32(1e-30)).mean())
        chances[rows, y] -= 1
        slope = (chances / np.float32(len(y))).astype(np.float32)
        head[:], bias[:] = bags.T @ slope, slope.sum(0)
        back = slope @ self.tensors[1].view(params).T / np.float32(x.shape[1])
        np.add.at(table, x.astype(np.int64).ravel(), np.repeat(back, x.shape[1], axis=0))
        return loss, gradient

    def predict(self, params: Floats, x: Floats) -> Labels:
        """Return the likeliest topic of each row."""
        found: Labels = self._forward(params, x)[1].argmax(1)
        return found

    def _forward(self, params: Floats, x: Floats) -> tuple[Floats, Floats]:
        table, head, bias = (tensor.view(params) for tensor in self.tensors)
        bags = table[x.astype(np.int64)].mean(1)
        return bags, bags @ head + bias


def bag(features: int, classes: int, vocabulary: int = 4096, width: int = 16) -> Bag:
    """Return the model for texts of `features` words."""
    return Bag(classes, vocabulary, width)
