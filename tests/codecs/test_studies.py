"""The papers' tables and figures from codecs alone, and that their modules are no codecs."""

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError
from gradplane.codecs.policies.awp import AWP
from gradplane.studies import gradients
from gradplane.studies.papers import awp_precision, inceptionn_table3, threelc_table2
from gradplane.studies.papers.inceptionn_fig4 import truncated


@pytest.fixture(scope="module")
def steps() -> list[gradients.Step]:
    return list(gradients.training(40, hidden=(32,)))


def test_folders_of_codecs_hold_none() -> None:
    assert not {"policies", "studies"} & set(codecs.names())


def test_training_learns_and_repeats(steps: list[gradients.Step]) -> None:
    assert np.mean([s.loss for s in steps[-5:]]) < 0.5 * steps[0].loss
    assert [g.shape for g in steps[0].gradients] == [(65, 32), (33, 10)]
    again = next(gradients.training(40, hidden=(32,)))
    assert np.array_equal(gradients.flat(again.weights), gradients.flat(steps[0].weights))
    assert gradients.flat(again.gradients).dtype == np.float32


def test_training_follows_the_gradient() -> None:
    """The loss falls by the rate times the squared norm, to first order."""
    rate = 1e-3
    first, second = gradients.training(2, hidden=(8,), batch=1797, lr=rate)
    drop = rate * float(np.sum(gradients.flat(first.gradients).astype(float) ** 2))
    assert first.loss - second.loss == pytest.approx(drop, rel=0.05)


def test_what_arrives_and_what_is_kept_may_be_changed() -> None:
    """Gradients that arrive as zeros leave the weights as they are, and weights that are kept with
    fewer bits have them in every step."""
    still = list(gradients.training(3, hidden=(8,), answer=lambda g: [0 * x for x in g]))
    assert np.array_equal(gradients.flat(still[0].weights), gradients.flat(still[2].weights))
    for step in gradients.training(3, hidden=(8,), keep=lambda w: [truncated(x, 16) for x in w]):
        assert not np.any(gradients.flat(step.weights).view(np.uint32) & 0xFFFF)


@pytest.mark.parametrize("drop", [8, 16, 24])
def test_truncated_values_are_the_codecs(drop: int) -> None:
    x = gradients.drawn("normal", 1000)
    codec = codecs.get("truncation", drop=drop)
    data, _ = codec.encode(x)
    assert np.array_equal(truncated(x, drop), codec.decode(data, x.size))


def test_distributions() -> None:
    x = gradients.drawn("lognormal", 100_000)
    assert x.dtype == np.float32 and np.log(x).std() == pytest.approx(1, abs=0.02)
    with pytest.raises(CodecError) as caught:
        gradients.drawn("cauchy", 3)
    assert str(caught.value) == 'no distribution "cauchy"; there are laplace, lognormal, normal'


def test_table_2_of_3lc_falls_with_s(steps: list[gradients.Step]) -> None:
    rows = threelc_table2.table2([s.gradients for s in steps])
    assert [row.s for row in rows] == [None, 1.0, 1.5, 1.75, 1.9]
    assert [row.paper_bits for row in rows] == [1.6, 0.812, 0.451, 0.298, 0.2]
    bits = [row.bits for row in rows]
    assert bits == sorted(bits, reverse=True) and 1.6 <= bits[0] < 1.65
    assert rows[1].ratio == 32 / bits[1] and round(rows[1].paper_ratio or 0, 1) == 39.4
    assert all(len(row.steps) == 40 for row in rows)


def test_table_2_counts_the_bytes_of_each_tensor() -> None:
    tensors = [np.ones(10, np.float32), np.zeros((5, 4), np.float32)]
    (row,) = threelc_table2.table2([tensors], s=())
    assert row.steps == (8 * (4 + 2 + 4 + 4) / 30,)


@pytest.mark.parametrize("kind", gradients.KINDS)
def test_tag_mix_is_what_the_codec_sends(kind: str) -> None:
    x = gradients.drawn(kind, 8000) * np.float32(0.01)
    for mix in inceptionn_table3.table3(x):
        data, _ = codecs.get("inceptionn", bound=mix.bound).encode(x)
        assert sum(mix.shares) == pytest.approx(1)
        assert mix.bits * 1000 == pytest.approx(len(data))
        assert mix.ratio == pytest.approx(x.nbytes / len(data))


def test_tag_mix_of_known_values() -> None:
    x = np.array([2.0, -1.0, 0.5, 2.0**-7, 2.0**-9, 0.0, 1e-40, -0.9], np.float32)
    mixes = {mix.bound: mix.shares for mix in inceptionn_table3.table3(x)}
    assert mixes[10] == (2 / 8, 2 / 8, 2 / 8, 2 / 8)
    assert mixes[8] == (3 / 8, 1 / 8, 2 / 8, 2 / 8)
    assert mixes[6] == (4 / 8, 0, 2 / 8, 2 / 8)


def test_truncation_stands_beside_inceptionn(steps: list[gradients.Step]) -> None:
    rows = inceptionn_table3.against_truncation(gradients.flat(steps[10].gradients))
    assert [(r.name, r.parameter) for r in rows] == [
        *(("truncation", drop) for drop in (8, 16, 24)),
        ("bfloat16", 16),
        *(("inceptionn", bound) for bound in (10, 8, 6)),
    ]
    assert [r.ratio for r in rows[:4]] == [4 / 3, 2, 4, 2]
    assert all(r.largest < 2.0**-r.parameter for r in rows[4:])
    assert rows[4].ratio > rows[1].ratio and rows[4].nmse < rows[2].nmse
    assert rows[3].nmse < rows[1].nmse  # it rounds, and truncation cuts


def test_training_leaves_images_out_and_shrinks_weights() -> None:
    plain, decayed = (
        list(gradients.training(60, hidden=(16,), test=0.2, decay=decay))[-1].weights
        for decay in (0.0, 0.05)
    )
    assert gradients.accuracy(plain, 0.2) > 0.6
    assert np.linalg.norm(gradients.flat(decayed)) < np.linalg.norm(gradients.flat(plain))


def test_gradients_are_those_of_the_weights_that_arrive() -> None:
    def zeros(weights: list[np.ndarray]) -> list[np.ndarray]:
        return [np.zeros_like(w) for w in weights]

    (step,) = gradients.training(1, hidden=(4,), send=zeros)
    assert step.loss == pytest.approx(np.log(10), rel=1e-5)
    assert not step.gradients[0].any() and gradients.flat(step.weights).any()


def test_awp_raises_the_precision_of_layers_that_shrink() -> None:
    policy = AWP(threshold=-1e-4, interval=5)
    made = awp_precision.train(policy, 40, (16,), decay=0.05, lr=0.1)
    assert made.sizes == (64 * 16, 16 * 10)
    assert made.bits[0] == (8, 8) and made.rates[0] < -1e-4
    risen = made.since(0, 16)
    assert risen is not None and made.bits[risen - 1][0] == 8 and risen >= 5
    layers = [sum(batch[i] for batch in made.bits) for i in (0, 1)]
    assert made.sent == sum(bits * size for bits, size in zip(layers, made.sizes, strict=True)) // 8
    assert made.ratio == 4 * 40 * sum(made.sizes) / made.sent


def test_awp_of_a_block_is_one_precision() -> None:
    made = awp_precision.train(
        AWP(threshold=-1e-4, interval=5), 40, (16, 12), decay=0.05, lr=0.1, block=2
    )
    assert all(first == second for first, second, _ in made.bits)
    assert made.since(0, 16) is not None


def test_a_precision_that_never_rises() -> None:
    made = awp_precision.train(AWP(awp_precision.NEVER, initial=32), 20, (16,), decay=0.05)
    assert set(made.bits) == {(32, 32)} and made.ratio == 1
    plain = list(gradients.training(20, (16,), lr=0.05, decay=0.05, test=awp_precision.TEST))
    assert made.accuracy == gradients.accuracy(plain[-1].weights, awp_precision.TEST)
