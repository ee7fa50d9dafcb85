"""THC's figures 2b and 15: order and direction, not the paper's digits."""

import numpy as np
import pytest

from gradplane import codecs
from gradplane.studies import nmse


def test_figure_2b_has_the_papers_order() -> None:
    rows = nmse.figure_2b(n=2**16, repetitions=2)
    error = {row.label: row.nmse for row in rows}
    assert list(error) == ["TernGrad", "TopK 10%", "DGC 10%", "THC", "bf16"]
    assert error["TernGrad"] > 10 * error["TopK 10%"]
    assert error["DGC 10%"] == error["TopK 10%"]
    assert error["THC"] < error["TopK 10%"] / 10
    assert error["bf16"] < error["THC"] / 100  # in four times the bits
    assert [row.paper for row in rows] == [6.95, 0.46, None, None, None]
    names = [codecs.get(**row.config).name for row in rows]
    assert names == ["terngrad", "topk", "dgc", "thc", "bfloat16"]
    for name in ("digits-cnn", "letters-transformer"):
        found = {row.label: row.recorded[name] for row in rows}
        assert found["TernGrad"] > 10 * found["TopK 10%"] > 50 * found["THC"]


def test_figure_15_falls_with_every_bit_and_little_with_granularity() -> None:
    points = nmse.figure_15(granularities=(3, 7, 15, 45), n=2**12, repetitions=3)
    kinds = ["lognormal", "digits-cnn", "letters-transformer"]
    assert [row.gradients for row in points[:3]] == kinds
    for kind in kinds:
        _check_figure_15([row for row in points if row.gradients == kind])


def _check_figure_15(rows: list[nmse.GranularityRow]) -> None:
    assert [(row.bits, row.granularity) for row in rows] == [
        *((2, g) for g in (3, 7, 15, 45)),
        *((3, g) for g in (7, 15, 45)),
        *((4, g) for g in (15, 45)),
    ]
    error = {(row.bits, row.granularity): row.nmse for row in rows}
    for bits in (2, 3):
        assert 3 < error[bits, 45] / error[bits + 1, 45] < 10
    for bits, least in ((2, 3), (3, 7), (4, 15)):
        assert 0.5 * error[bits, least] < error[bits, 45] < error[bits, least]


def test_rows_repeat_and_differ_with_the_seed() -> None:
    one, same, other = (
        nmse.figure_15(bits=(4,), granularities=(30,), n=2**10, repetitions=1, seed=s)
        for s in (1, 1, 2)
    )
    assert one == same and one != other


def test_unbiased_copies_average_out_and_sparse_ones_do_not() -> None:
    for name, low, high in (("terngrad", 12, 20), ("topk", 1, 1)):
        params = {"clip": None} if name == "terngrad" else {}
        codec = codecs.get(name, **params)
        few, many = (nmse.nmse_of_copies(codec, w, 2**12) for w in (1, 16))
        assert low <= few / many <= high


@pytest.mark.parametrize(
    "x, y, expected", [([3, 4], [3, 4], 0), ([3, 4], [0, 0], 1), ([0, 0], [0, 0], 0)]
)
def test_nmse(x: list[float], y: list[float], expected: float) -> None:
    assert nmse.nmse(np.array(x, np.float32), np.array(y, np.float32)) == expected


def test_gradients_are_lognormal() -> None:
    logs = np.log(nmse.lognormal(10_000, 5))
    assert abs(logs.mean()) < 0.04 and abs(logs.std() - 1) < 0.03
    assert not np.array_equal(nmse.lognormal(10, 5, 0), nmse.lognormal(10, 5, 1))
