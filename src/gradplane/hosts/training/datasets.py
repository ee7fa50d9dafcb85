"""Data sets, their split into training and test rows, and each worker's batches.

Split and order come from a counter-based generator: equal seeds give equal batches, whatever else
was drawn.
"""

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._plugins import LoadError, call, is_reference, load, own
from gradplane._suggestions import did_you_mean, quoted
from gradplane.codecs import key
from gradplane.hosts.philox import permutation

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Rows to train on and to test on: x float32[n, features], y int64[n] from 0 to classes - 1."""

    train_x: Floats
    train_y: Labels
    test_x: Floats
    test_y: Labels

    @property
    def features(self) -> int:
        """The number of values in a row."""
        return int(self.train_x.shape[1])

    @property
    def classes(self) -> int:
        """The number of classes: the largest label and one."""
        return 1 + int(max(self.train_y.max(), self.test_y.max()))


@dataclass(frozen=True)
class Bundled:
    """A file of scikit-learn: its header lines, its values' divisor (None: standardise), and what
    is in it."""

    file: str
    header: int
    scale: float | None
    rows: int
    features: int
    classes: int


BUNDLED = {
    "digits": Bundled("digits.csv.gz", 0, 16.0, rows=1797, features=64, classes=10),
    "breast_cancer": Bundled("breast_cancer.csv", 1, None, rows=569, features=30, classes=2),
    "wine": Bundled("wine_data.csv", 1, None, rows=178, features=13, classes=3),
}


def build(name: str, args: dict[str, Any], seed: int, read: bool = True) -> Dataset:
    """Return the data set `name`, split by `seed`.

    scikit-learn's bundled "digits", "breast_cancer" and "wine" take test, the share of rows kept
    for testing (default 0.2). "blank" has nothing to learn: it takes rows, the number of training
    rows (default 256), so an epoch has rows / workers / batch rounds. "module:object" is called as
    object(seed=, **args) and returns a Dataset. LoadError for an unknown or unusable data set.
    read: False for the sizes alone: rows of scikit-learn's files are zeros then.
    """
    if is_reference(name):
        maker = load("data", name, takes=("seed",))
        return checked(name, call("data", name, maker, seed=seed, **args))
    if name == "blank":
        blank: Dataset = call("data", name, _blank, **args)
        return blank
    if name not in BUNDLED:
        known = sorted([*BUNDLED, "blank"])
        near = did_you_mean(name, known, quoted)
        listed = f"{near} use" if near else "use"
        raise LoadError(f'no data "{name}": {listed} one of {", ".join(known)}, {own(name)}')

    def bundled(seed: int, test: float = 0.2) -> Dataset:
        return _bundled(BUNDLED[name], seed, test) if read else _unread(BUNDLED[name], test)

    data: Dataset = call("data", name, bundled, seed=seed, **args)
    return data


def rounds(rows: int, workers: int, batch: int) -> int:
    """Return the full batches that each worker has in an epoch."""
    return rows // workers // batch


def batches(rows: int, workers: int, worker: int, batch: int, seed: int, epoch: int) -> Labels:
    """Return the training rows that `worker` takes in an epoch: int64[rounds, batch].

    The rows are permuted in each epoch and dealt in equal shares, so every worker has the same
    number of full batches and no row is taken twice; rows that do not fill a batch are left out of
    this epoch. LoadError if a share is smaller than a batch.
    """
    share = rows // workers
    if share < batch:
        raise LoadError(
            f"{rows} training rows over {workers} workers are {share} each, less than a batch of"
            f" {batch}: use batch ≤ {share} or fewer workers"
        )
    order = permutation(key(seed, epoch, "order"), rows)
    mine = order[worker * share : (worker + 1) * share]
    count = rounds(rows, workers, batch)
    return mine[: count * batch].reshape(count, batch)


def checked(name: str, data: object) -> Dataset:
    """Return the data set if it is a Dataset with usable arrays; else LoadError."""
    if not isinstance(data, Dataset):
        raise LoadError(
            f"data {name}: expected a gradplane.hosts.training.datasets.Dataset"
            f"(train_x, train_y, test_x, test_y), got {type(data).__name__}"
        )
    for part in ("train", "test"):
        _check_part(f"data {name}: {part}", getattr(data, f"{part}_x"), getattr(data, f"{part}_y"))
    train, test = data.train_x.shape[1], data.test_x.shape[1]
    if train != test:
        raise LoadError(f"data {name}: train_x has {train} features, test_x {test}")
    return data


def _check_part(where: str, x: object, y: object) -> None:
    if not _is_array(x, np.float32, 2):
        raise LoadError(f"{where}_x must be float32[n, features], got {_describe(x)}")
    if not _is_array(y, np.int64, 1):
        raise LoadError(f"{where}_y must be int64[n], got {_describe(y)}")
    assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    if len(x) != len(y) or len(x) == 0:
        raise LoadError(f"{where}_x has {len(x)} rows, its labels {len(y)}, not as many or none")
    if not np.isfinite(x).all():
        raise LoadError(f"{where}_x has a NaN or infinity")
    if y.min() < 0:
        raise LoadError(f"{where}_y must count classes from 0, got {y.min()}")


def _is_array(value: object, dtype: type[np.generic], dimensions: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == dimensions


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return type(value).__name__


def _bundled(source: Bundled, seed: int, test: float) -> Dataset:
    table = read(source)
    x, y = table[:, :-1], table[:, -1].astype(np.int64)
    order = permutation(key(seed, "split"), len(y))
    held, kept = np.split(order, [_held(source, test)])
    if source.scale is None:
        x = (x - x[kept].mean(axis=0)) / x[kept].std(axis=0)
    else:
        x = x / source.scale
    values: Floats = x.astype(np.float32)
    return Dataset(values[kept], y[kept], values[held], y[held])


def _held(source: Bundled, test: float) -> int:
    """Return how many rows are kept for testing."""
    held = round(test * source.rows)
    if not 1 <= held < source.rows:
        raise LoadError(f"test must be a share of rows between 0 and 1, got {test}")
    return held


def _unread(source: Bundled, test: float) -> Dataset:
    """Return as many rows as the file has, all alike."""
    _path(source)
    held = _held(source, test)
    x = np.broadcast_to(np.float32(0), (source.rows, source.features))
    y = np.broadcast_to(np.int64(source.classes - 1), source.rows)
    return Dataset(x[held:], y[held:], x[:held], y[:held])


def _blank(rows: int = 256) -> Dataset:
    """Return rows that differ, all of class 0, and one test row."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise LoadError(f"data blank: rows must be a positive integer, got {rows!r}")
    x = np.arange(rows, dtype=np.float32)[:, None]
    y = np.zeros(rows, np.int64)
    return Dataset(x, y, x[:1], y[:1])


def _path(source: Bundled) -> Path:
    """Return where the file is, without importing scikit-learn, which takes each process a second.

    LoadError where it is not installed."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise LoadError("the bundled data sets are scikit-learn's: install scikit-learn")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "data" / source.file


@cache
def read(source: Bundled) -> npt.NDArray[np.float64]:
    """Return the file's table, float64[rows, features + 1]: a row's values, then its label.

    All hosts of a simulated network get the same array, which nobody writes to.
    """
    table = np.loadtxt(_path(source), delimiter=",", skiprows=source.header)
    table.setflags(write=False)
    return table
