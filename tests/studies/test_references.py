"""The formulas that codecs are held against, and the networks in NumPy that they train."""

from typing import Any

import numpy as np
import pytest

from gradplane import codecs
from gradplane.studies import references
from gradplane.studies.digits_cnn import cnn
from gradplane.studies.letters_transformer import ALPHABET, sentences, transformer
from gradplane.studies.papers.codec_references import REFERENCES
from gradplane.studies.recorded import load

EXACT = (
    "float32", "bfloat16", "adt", "truncation", "inceptionn", "int8", "threelc", "signsgd",
    "efsignsgd", "onebit", "topk", "dgc", "mxfp", "zeropp",
)  # fmt: skip
AT_RANDOM = (
    "ternary",
    "terngrad",
    "qsgd",
    "natural",
    "thc",
    "uniform_thc",
    "randomk",
    "sparse",
    "sdp4bit",
    "dynamiq",
)
WORKERS = 3


def gradients(rounds: int, n: int = 2048) -> np.ndarray:
    rng = np.random.default_rng(n)
    return (0.02 * rng.standard_t(4, (rounds, WORKERS, n))).astype(np.float32)


def by_codec(name: str, given: np.ndarray) -> np.ndarray:
    reference = REFERENCES[name]
    codec = codecs.get(name, **reference.parameters).for_workers(WORKERS)
    if codec.carriers:
        return np.stack([in_rounds(codec, vectors, step) for step, vectors in enumerate(given)])
    if reference.feedback:
        codec = codecs.ErrorFeedback(codec)
    states: list[Any] = [codec.start(given.shape[2]) for _ in range(WORKERS)]
    means = []
    for step, vectors in enumerate(given):
        stats = [codec.local(x, s) for x, s in zip(vectors, states, strict=True)]
        known = [stat for stat in stats if stat is not None]
        shared = codec.combine(known) if known else None
        pairs = enumerate(zip(vectors, states, strict=True))
        sent = [codec.encode(x, shared, step, state, w) for w, (x, state) in pairs]
        states = [state for _, state in sent]
        means.append(codec.merge([codec.decode(data, given.shape[2]) for data, _ in sent]))
    return np.stack(means)


def in_rounds(codec: codecs.Codec, vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return the mean that a server finds with a codec of several rounds without a memory."""
    rounds = [codec.reduce(x, seed, None, w) for w, x in enumerate(vectors)]
    parts = [next(steps) for steps in rounds]
    for carrier in codec.carriers:
        sent = [carrier.encode(x, seed=seed, worker=w)[0] for w, x in enumerate(parts)]
        mean, parts = carrier.merge([carrier.decode(d, parts[0].size) for d in sent]), []
        for steps in rounds:
            try:
                parts.append(steps.send(mean))
            except StopIteration as end:
                found, _ = end.value
    return found


def by_formula(name: str, given: np.ndarray) -> np.ndarray:
    memory: references.Memory = {}
    chance = np.random.default_rng(5)
    return np.stack([REFERENCES[name].formula(x, memory, chance) for x in given])


def test_every_codec_has_a_reference() -> None:
    assert sorted(REFERENCES) == sorted(codecs.names())


@pytest.mark.parametrize("name", EXACT)
def test_codecs_without_chance_give_what_their_formula_gives(name: str) -> None:
    given = gradients(4)
    tolerance = 2**-8 if name == "bfloat16" else 1e-6  # the hook adds in 16 bits, too
    np.testing.assert_allclose(
        by_codec(name, given), by_formula(name, given), rtol=0, atol=tolerance * np.abs(given).max()
    )


@pytest.mark.parametrize("name", AT_RANDOM)
def test_codecs_with_chance_err_as_much_as_their_formula(name: str) -> None:
    given = gradients(6)
    exact = given.mean(axis=1)
    own, other = (
        float(((found - exact) ** 2).sum() / (exact**2).sum())
        for found in (by_codec(name, given), by_formula(name, given))
    )
    assert own == pytest.approx(other, rel=0.15), name


def test_the_networks_gradient_is_that_of_differences() -> None:
    model, rng = cnn(16, 3, (2, 3)), np.random.default_rng(0)
    params = model.parameters(1) + rng.normal(0, 0.1, model.size).astype(np.float32)
    x, y = rng.normal(size=(5, 16)).astype(np.float32), np.array([0, 1, 2, 1, 0])
    _, gradient = model.loss_and_gradient(params, x, y)
    for place in rng.permutation(model.size)[:60]:
        step = np.zeros(model.size)
        step[place] = 1e-5
        ends = [model.loss_and_gradient(params + s, x, y)[0] for s in (step, -step)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-4)


def test_the_network_is_that_of_the_recorded_gradients() -> None:
    sizes = [tensor.shape for tensor in cnn(64, 10).tensors]
    assert sizes == list(load("digits-cnn").shapes)


def test_the_network_takes_square_images_of_an_even_side() -> None:
    with pytest.raises(ValueError, match="cnn: 25 features are no square image of an even side"):
        cnn(25, 10)


def test_the_transformers_gradient_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    import record_gradients  # in scripts/: the model whose gradients were recorded

    data, letters = sentences(1, context=record_gradients.CONTEXT), len(ALPHABET)
    x, y = data.train_x[:3], data.train_y[:3]
    own = transformer(record_gradients.CONTEXT, letters)
    params = own.parameters(1)
    model = record_gradients.Transformer(letters)
    for tensor, parameter in zip(own.tensors, model.parameters(), strict=True):
        parameter.data[...] = torch.from_numpy(tensor.view(params).copy())
    pieces = torch.from_numpy(np.column_stack([x, y]).astype(np.int64))
    found = torch.nn.functional.cross_entropy(
        model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten()
    )
    found.backward()
    loss, gradient = own.loss_and_gradient(params, x, y)
    theirs = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).numpy()
    assert loss == pytest.approx(found.item(), rel=1e-5)
    np.testing.assert_allclose(gradient, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_the_transformer_has_the_layers_of_the_recorded_gradients() -> None:
    recorded = load("letters-transformer")
    (letters, _), (context, _), *_ = recorded.shapes
    tensors = transformer(context, letters).tensors
    assert [tensor.name for tensor in tensors] == list(recorded.layers)
    assert [tensor.shape for tensor in tensors] == list(recorded.shapes)


def test_the_transformer_takes_a_width_of_whole_heads() -> None:
    with pytest.raises(ValueError, match="width must be a multiple of 4 heads, got 6"):
        transformer(8, 29, width=6)


def test_sentences_differ_by_seed_and_end_with_what_is_to_be_said() -> None:
    data = sentences(1, rows=50, test=20)
    assert data.train_x.shape == (50, 8) and data.test_x.shape == (20, 8)
    assert data.classes == len(ALPHABET), "each letter may be one to say"
    again, other = sentences(1, rows=50, test=20), sentences(2, rows=50, test=20)
    assert np.array_equal(data.test_x, again.test_x)
    assert not np.array_equal(data.test_x, other.test_x)
