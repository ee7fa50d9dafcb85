"""DynamiQ beside what its paper says of bits, levels and errors, and round a ring."""

import numpy as np
import pytest
from baseline_reference import uniform, word
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane import codecs
from gradplane.codecs import Codec, CodecError
from gradplane.codecs._group_levels import GroupLevels, levels
from gradplane.codecs.dynamiq import WIDTHS, DynamiQ

Array = np.ndarray


def heavy(workers: int, n: int, seed: int = 0) -> Array:
    """Return gradients with heavy tails, whose 256 values each share a size, over some decades."""
    chance = np.random.default_rng([workers, n, seed])
    sizes = np.repeat(chance.lognormal(-4, 1.2, -(-n // 256)), 256)[:n]
    common = chance.standard_t(3, n)
    return (sizes * (common + 0.5 * chance.standard_t(3, (workers, n)))).astype(np.float32)


def ring(codec: Codec, xs: Array, seed: int = 1) -> tuple[Array, list[int]]:
    """Return the mean round a ring of one block, encoded at each hop, and each worker's bytes."""
    workers, n = xs.shape
    codec = codec.for_workers(workers)
    running = [codec.reduce(x, seed, None, w) for w, x in enumerate(xs)]
    parts, sizes = [next(steps) for steps in running], [0] * workers
    for number, carrier in enumerate(codec.carriers):
        own, total = codecs.key(seed, number), np.zeros_like(parts[0])
        for w, x in enumerate(parts):
            data, _ = carrier.encode(total + x, seed=own, worker=w)
            total, sizes[w] = carrier.decode(data, x.size), sizes[w] + len(data)
        mean, parts = total / np.float32(workers), []
        for steps in running:
            try:
                parts.append(steps.send(mean))
            except StopIteration as end:
                found, _ = end.value
    return found, sizes


def nmse(found: Array, xs: Array) -> float:
    exact = xs.astype(np.float64).mean(axis=0)
    return float(((found - exact) ** 2).sum() / (exact**2).sum())


@pytest.mark.parametrize("bits, epsilon", [(4, 0.18), (8, 0.1)])
def test_levels_are_the_papers_and_denser_near_0(bits: int, epsilon: float) -> None:
    r = np.arange(2 ** (bits - 1))
    grown = (1 + 2 * epsilon**2) ** r
    np.testing.assert_allclose(levels(bits), (grown - 1) / (grown[-1] - 1), rtol=1e-13)
    assert levels(bits)[-1] == 1 and (np.diff(levels(bits), 2) > 0).all()


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(WIDTHS),
    st.integers(0, 700),
    st.integers(0, 2**32),
    st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_a_value_is_off_by_less_than_its_scales_step_and_its_gap(
    bits: int, n: int, seed: int, size: float
) -> None:
    """The bound of GroupLevels' docstring; zeros stay zeros, and no sign is turned."""
    x = (size * np.random.default_rng(seed).standard_t(2, n)).astype(np.float32)
    x[::7] = 0
    codec = GroupLevels(bits, 3)
    y = codec.decode(codec.encode(x, seed=seed, worker=1)[0], n)
    most, largest = (
        np.repeat([np.abs(x[i : i + each]).max() for i in range(0, n, each)], each)[:n]
        for each in (256, 16)
    )
    step, gap = most.astype(np.float64) * (1 + 2**-7) / 255, np.diff(levels(bits)).max()
    assert (np.abs(y.astype(np.float64) - x) <= 1.0001 * (step + (largest + step) * gap)).all()
    assert not y[::7].any() and (np.sign(y) * np.sign(x) >= 0).all()


def test_the_means_of_many_draws_are_the_values() -> None:
    """Within 4.5 standard errors of a level's and a scale's variance, which are at most these."""
    x, draws = heavy(1, 300)[0], 3000
    largest = np.repeat([np.abs(x[i : i + 16]).max() for i in range(0, 300, 16)], 16)[:300]
    for bits in WIDTHS:
        codec, gap = GroupLevels(bits, 4), np.diff(levels(bits)).max()
        found = [codec.encode(x, seed=s, worker=s % 4)[0] for s in range(draws)]
        mean = np.mean([codec.decode(data, 300).astype(np.float64) for data in found], axis=0)
        step = np.abs(x).max() * (1 + 2**-7) / 255
        variance = gap * (largest + step) * np.minimum(np.abs(x), gap * (largest + step)) + step**2
        assert (np.abs(mean - x) <= 4.5 * np.sqrt(variance / draws) + 1e-8).all()
        balance = np.dot(np.random.default_rng(0).choice([-1, 1], 300), mean - x)
        assert abs(balance) <= 4.5 * np.sqrt(variance.sum() / draws)


def test_each_worker_has_another_part_of_the_unit_interval() -> None:
    """Section 3.3: u_i = (pi_i + gamma_i) / n, of an order that all share and none sends."""
    workers, n = 5, 400
    places, u = np.empty((2, workers, n))
    for w in range(workers):
        order, part = (codecs.key(9, 2, *rest) for rest in (("order",), (w, "part")))
        words = [[word(order, i * workers + k) for k in range(workers)] for i in range(n)]
        places[w] = [sorted(range(workers), key=own.__getitem__).index(w) for own in words]
        u[w] = [(place + float(uniform(part, i))) / workers for i, place in enumerate(places[w])]
    assert np.array_equal(np.sort(places, axis=0), np.tile(np.arange(workers), (n, 1)).T)
    x = np.full(n, 0.37, np.float32)
    x[::16] = 1  # the largest of each 16, which is the scale
    up = [GroupLevels(2, workers).encode(x, seed=9, worker=w)[0] for w in range(workers)]
    rounded = np.stack([GroupLevels(2, workers).decode(data, n) > 0 for data in up])
    assert np.array_equal(rounded, u < x)
    counts = rounded.sum(axis=0)[x < 1]
    assert set(counts) == {1, 2}, "of five workers 0.37 is 1.85: two round up, or one"


@pytest.mark.parametrize("bits", [2.6875, 3, 4, 5, 6.5, 8.6875])
@pytest.mark.parametrize("n", [256, 2560, 25_601, 100_000])
def test_the_budget_is_kept_and_used(bits: float, n: int) -> None:
    codec = codecs.get("dynamiq", bits=bits)
    _, sizes = ring(codec, heavy(4, n))
    spare = 2 * n / 8 / (n // 256) + 16  # a super-group's worth, and what a short one wastes
    most = bits * n / 8
    assert all(size <= most + 16 for size in sizes)
    if n > 25_600:
        assert min(sizes) >= 0.97 * most - spare


@pytest.mark.parametrize(
    "widths", [[8, 4, 4, 2, 2, 2, 2], [8, 4, 4, 4, 2, 2, 2], [8, 8, 4, 4, 4, 2, 2], [2] * 7]
)
def test_louder_values_have_more_bits_by_the_papers_thresholds(widths: list[int]) -> None:
    """T is a norm, or 17/512 of it is; a value of no energy never has more than 2 bits."""
    norms = np.array([1.0, 0.81, 0.25, 0.0325, 0.0289, 1e-6, 0.0], np.float32)
    codec = DynamiQ(bits=np.mean(widths) + 0.6875)
    masks = codec._masks(norms, 7 * 256)
    found = sum(width * mask for width, mask in zip(WIDTHS, masks, strict=True))
    assert found[::256].tolist() == widths


def test_round_a_ring_it_errs_less_than_thc_and_the_block_formats_with_more_bits() -> None:
    """Table 3's order for eight workers, on heavy tails whose size differs over the vector: 5 bits
    against THC's sums of 8 bits, MXFP8's 8.25 and MXFP4's 4.25."""
    xs = heavy(8, 2**16)
    own = nmse(ring(codecs.get("dynamiq"), xs)[0], xs)
    thc = codecs.get("thc", bits=4, granularity=30, p=1 / 32)
    shared, table = thc.combine([thc.local(x) for x in xs]), np.array(thc.table)
    sums = sum(table[thc.codes(x, shared, 3, worker=w)[0]] for w, x in enumerate(xs))
    assert thc.sum_bits(8) == 8
    assert own < nmse(thc.decode_sum(sums, xs.shape[1], 8, shared, 3), xs) / 2
    for element, factor in (("e4m3", 1.5), ("e2m1", 30)):
        mx, total = codecs.get("mxfp", element=element), np.zeros(xs.shape[1], np.float32)
        for x in xs:
            total = mx.decode(mx.encode(total + x)[0], x.size)
        assert own < nmse(total / 8, xs) / factor


def test_correlated_rounding_and_bits_by_norm_help_as_in_the_ablation() -> None:
    """Table 6: without either the error is larger."""
    xs = heavy(8, 2**15)
    both = nmse(ring(codecs.get("dynamiq"), xs)[0], xs)
    apart = nmse(ring(codecs.get("dynamiq", workers=1), xs)[0], xs)
    equal, total = GroupLevels(4, 8), np.zeros(xs.shape[1], np.float32)
    for w, x in enumerate(xs):
        total = equal.decode(equal.encode(total + x, seed=1, worker=w)[0], x.size)
    assert both < 0.9 * apart and both < 0.2 * nmse(total / 8, xs)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 255, 256, 257, 1000])
def test_odd_sizes_and_zeros(n: int) -> None:
    for xs in (heavy(3, n, 5), np.zeros((3, n), np.float32)):
        codec = codecs.get("dynamiq", bits=8.5)
        found, sizes = ring(codec, xs)
        assert found.shape == (n,) and np.isfinite(found).all()
        assert not found.any() if not xs.any() else nmse(found, xs) < 0.1
        assert all(size <= codec.max_size(n) for size in sizes)


def test_the_rounds_refuse_what_encode_refuses() -> None:
    codec = codecs.get("dynamiq")
    for value, text in (
        (np.nan, "NaN at index 3"),
        (np.inf, "infinity at index 3"),
        (2e37, "1.9999999867631625e+37 at index 3 is beyond 1e37: scale the vector down"),
    ):
        x = np.zeros(5, np.float32)
        x[3] = value
        for call in (codec.encode, lambda x: next(codec.reduce(x))):
            with pytest.raises(CodecError) as caught:
                call(x)
            assert str(caught.value) == text
