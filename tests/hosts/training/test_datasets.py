"""Data sets: split, shares, user-defined ones, and a user's mistakes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane._plugins import LoadError
from gradplane.hosts.training import datasets


def test_digits_are_scikit_learns():
    digits = datasets.build("digits", {}, seed=1)
    assert (digits.features, digits.classes) == (64, 10)
    assert (len(digits.train_y), len(digits.test_y)) == (1438, 359)
    assert digits.train_x.dtype == np.float32 and digits.train_y.dtype == np.int64
    both = np.concatenate([digits.train_x, digits.test_x])
    assert (both.min(), both.max(), both.astype(np.float64).sum()) == (0, 1, 561718 / 16)


@pytest.mark.parametrize(
    ("name", "features", "classes"), [("breast_cancer", 30, 2), ("wine", 13, 3)]
)
def test_other_bundled_data_is_standardised_by_its_training_rows(name, features, classes):
    found = datasets.build(name, {"test": 0.3}, seed=1)
    assert (found.features, found.classes) == (features, classes)
    assert np.abs(found.train_x.mean(axis=0)).max() < 1e-5
    assert np.abs(found.train_x.std(axis=0) - 1).max() < 1e-5


@pytest.mark.parametrize("name", datasets.BUNDLED)
def test_what_is_known_of_a_file_without_reading_it(name):
    read, unread = (datasets.build(name, {"test": 0.3}, 1, read=read) for read in (True, False))
    assert (unread.features, unread.classes) == (read.features, read.classes)
    assert (len(unread.train_y), len(unread.test_y)) == (len(read.train_y), len(read.test_y))


def test_the_seed_decides_the_split():
    splits = [datasets.build("digits", {}, seed).test_y for seed in (1, 1, 2)]
    assert (splits[0] == splits[1]).all()
    assert (splits[0] != splits[2]).any()


@given(
    rows=st.integers(1, 300),
    workers=st.integers(1, 9),
    batch=st.integers(1, 20),
    seed=st.integers(0, 2**64),
    epoch=st.integers(0, 5),
)
def test_every_worker_has_as_many_batches_and_no_row_twice(rows, workers, batch, seed, epoch):
    if rows // workers < batch:
        return
    shares = [datasets.batches(rows, workers, w, batch, seed, epoch) for w in range(workers)]
    assert {share.shape for share in shares} == {(rows // workers // batch, batch)}
    taken = np.concatenate(shares).ravel()
    assert len(set(taken.tolist())) == taken.size
    assert taken.min() >= 0 and taken.max() < rows


def test_epochs_differ_and_repeat_with_the_seed():
    first, again, next_epoch, other_seed = (
        datasets.batches(100, 2, 1, 10, seed, epoch)
        for seed, epoch in ((7, 0), (7, 0), (7, 1), (8, 0))
    )
    assert (first == again).all()
    assert (first != next_epoch).any() and (first != other_seed).any()


OWN = """
import numpy as np
from gradplane.hosts.training.datasets import Dataset

def good(seed, rows=6):
    x = np.full((rows, 3), seed, np.float32)
    return Dataset(x, np.arange(rows), x, np.arange(rows))

x, y = np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1])
def none(seed): return None
def wide(seed): return Dataset(x.astype(np.float64), y, x, y)
def labels(seed): return Dataset(x, y.astype(np.int32), x, y)
def listed(seed): return Dataset(x, y, x.tolist(), y)
def uneven(seed): return Dataset(x, y[:3], x, y)
def nan(seed): return Dataset(x + np.float32("nan"), y, x, y)
def negative(seed): return Dataset(x, y - 1, x, y)
def other(seed): return Dataset(x, y, x[:, :2], y)
def takes(seed, *, path): return Dataset(x, y, x, y)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_data_file.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own")
def test_ones_own_data():
    found = datasets.build("own_data_file:good", {"rows": 5}, seed=4)
    assert found.train_x.shape == (5, 3) and (found.train_x == 4).all()
    assert found.classes == 5


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "mnist",
            {},
            'no data "mnist": use one of blank, breast_cancer, digits, wine, '
            'or your own: "module:object", or "file.py" (docs/own-parts.md)',
        ),
        ("blank", {"rows": 0}, "data blank: rows must be a positive integer, got 0"),
        ("digits", {"test": 1.0}, "test must be a share of rows between 0 and 1, got 1.0"),
        (
            "digits",
            {"split": 1},
            "data digits: called with seed, split, but it takes (seed, test=0.2)"
            " (got an unexpected keyword argument 'split')",
        ),
        (
            "digits",
            {"tets": 0.1},
            "data digits: called with seed, tets, but it takes (seed, test=0.2)"
            ' (did you mean "test"?)',
        ),
        (
            "own_data_file:none",
            {},
            "data own_data_file:none: expected a gradplane.hosts.training.datasets.Dataset"
            "(train_x, train_y, test_x, test_y), got NoneType",
        ),
        (
            "own_data_file:wide",
            {},
            "data own_data_file:wide: train_x must be float32[n, features], got float64[4, 3]",
        ),
        (
            "own_data_file:labels",
            {},
            "data own_data_file:labels: train_y must be int64[n], got int32[4]",
        ),
        (
            "own_data_file:listed",
            {},
            "data own_data_file:listed: test_x must be float32[n, features], got list",
        ),
        (
            "own_data_file:uneven",
            {},
            "data own_data_file:uneven: train_x has 4 rows, its labels 3, not as many or none",
        ),
        ("own_data_file:nan", {}, "data own_data_file:nan: train_x has a NaN or infinity"),
        (
            "own_data_file:negative",
            {},
            "data own_data_file:negative: train_y must count classes from 0, got -1",
        ),
        (
            "own_data_file:other",
            {},
            "data own_data_file:other: train_x has 3 features, test_x 2",
        ),
        (
            "own_data_file:takes",
            {},
            "data own_data_file:takes: called with seed, but it takes (seed, *, path)"
            " (missing a required argument: 'path')",
        ),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_cannot_be_used_is_said_in_full(name, args, message):
    with pytest.raises(LoadError) as caught:
        datasets.build(name, args, seed=1)
    assert str(caught.value) == message


def test_shares_below_a_batch_are_refused_with_the_numbers():
    with pytest.raises(LoadError) as caught:
        datasets.batches(30, 4, 0, 8, seed=1, epoch=0)
    assert str(caught.value) == (
        "30 training rows over 4 workers are 7 each, less than a batch of 8:"
        " use batch ≤ 7 or fewer workers"
    )
