"""The transform against the matrix it stands for."""

import numpy as np
import pytest

from gradplane.codecs import _hadamard, _random


def normal(d: int) -> np.ndarray:
    return np.random.default_rng(d).standard_normal(d).astype(np.float32)


def sylvester(d: int) -> np.ndarray:
    h = np.ones((1, 1))
    while len(h) < d:
        h = np.block([[h, h], [h, -h]])
    return h


def plain(a: np.ndarray) -> np.ndarray:
    """Transform one stage after the other, without blocks."""
    h = 1
    while h < a.size:
        pairs = a.reshape(-1, 2, h)
        a = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        h *= 2
    return a


@pytest.mark.parametrize("d", [1, 2, 4, 8, 16, 64, 512])
def test_is_the_sylvester_matrix(d: int) -> None:
    a = normal(d)
    expected = sylvester(d) @ a
    _hadamard.fwht(a)
    np.testing.assert_allclose(a, expected, atol=1e-5 * d)


@pytest.mark.parametrize("exponent", range(21))
def test_blocks_change_no_bit(exponent: int) -> None:
    a = normal(2**exponent)
    expected = plain(a)
    _hadamard.fwht(a)
    assert np.array_equal(a, expected)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        _hadamard.fwht(normal(12))


@pytest.mark.parametrize("n, lanes", [(1, 1), (3, 4), (64, 64), (65, 128), (20000, 32768)])
def test_rotation_keeps_the_norm_and_can_be_undone(n: int, lanes: int) -> None:
    x = normal(n)
    y = _hadamard.rotate(x, lanes, 7, 1 / np.sqrt(lanes))
    assert np.linalg.norm(y) == pytest.approx(np.linalg.norm(x), rel=1e-5)
    back = np.empty(n, np.float32)
    _hadamard.unrotate(y, back, 7, 1 / np.sqrt(lanes))
    np.testing.assert_allclose(back, x, atol=1e-5)


def test_signs_are_those_of_the_key() -> None:
    padded = np.concatenate([normal(100), np.zeros(28, np.float32)])
    expected = plain(padded * _random.signs(9, 0, 128))
    assert np.array_equal(_hadamard.rotate(normal(100), 128, 9, 1.0), expected)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000])
def test_norm(n: int) -> None:
    x = normal(n)
    assert _hadamard.norm(x) == pytest.approx(np.linalg.norm(x.astype(np.float64)), rel=1e-14)
    assert _hadamard.norm(np.float32(3e38) * np.ones(n, np.float32)) == pytest.approx(
        3e38 * n**0.5, rel=1e-6
    )
