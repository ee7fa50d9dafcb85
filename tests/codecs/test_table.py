"""The solver against every table there is, with weights from another formula."""

import itertools
import math
from pathlib import Path

import pytest

from gradplane import _user_folders
from gradplane.codecs import CodecError, _table, optimal_table


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    optimal_table.cache_clear()
    return tmp_path / "gradplane" / "tables-1"


def weight(x: float, y: float) -> float:
    """Integrate (a - x)(y - a) phi(a) from x to y by antiderivatives."""

    def antiderivative(a: float) -> float:
        phi = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        return -(1 + x * y) * math.erf(a / math.sqrt(2)) / 2 + (a - x - y) * phi

    return antiderivative(y) - antiderivative(x)


def cost(table: tuple[int, ...], p: float) -> float:
    t, g = _table.threshold(p), table[-1]
    grid = [t * (2 * v / g - 1) for v in table]
    return sum(weight(x, y) for x, y in itertools.pairwise(grid))


def best(bits: int, g: int, p: float) -> tuple[int, ...]:
    inner = itertools.combinations(range(1, g), 2**bits - 2)
    tables = [(0, *middle, g) for middle in inner]
    costs = [cost(table, p) for table in tables]
    least = min(costs)
    return next(t for t, c in zip(tables, costs, strict=True) if c <= least * (1 + 1e-10))


@pytest.mark.parametrize("p", [0.9, 1 / 2, 1 / 32, 1 / 1024])
@pytest.mark.parametrize(
    "bits, g", [(1, 1), (1, 6), *((2, g) for g in range(3, 24)), *((3, g) for g in range(7, 15))]
)
def test_no_table_is_better(bits: int, g: int, p: float) -> None:
    assert optimal_table(bits, g, p) == best(bits, g, p)


@pytest.mark.parametrize("g", range(15, 21))
def test_no_table_is_better_for_four_bits(g: int) -> None:
    assert optimal_table(4, g, 1 / 32) == best(4, g, 1 / 32)


@pytest.mark.parametrize("g, p, table", [(4, 1 / 32, (0, 1, 2, 4)), (7, 1 / 2, (0, 2, 4, 7))])
def test_symmetric_tables_can_be_worse(g: int, p: float, table: tuple[int, ...]) -> None:
    """The paper assumes symmetry for odd g."""
    symmetric = min(cost((0, k, g - k, g), p) for k in range(1, (g + 1) // 2))
    assert optimal_table(2, g, p) == table
    assert cost(table, p) < 0.99 * symmetric


def test_even_granularity_can_make_the_best_table_lopsided() -> None:
    table = optimal_table(4, 30, 1 / 32)
    assert table == (0, 3, 5, 7, 9, 11, 13, 14, 15, 17, 19, 21, 23, 25, 27, 30)
    mirrored = tuple(30 - v for v in reversed(table))
    assert mirrored > table
    assert cost(mirrored, 1 / 32) == pytest.approx(cost(table, 1 / 32), rel=1e-12)


@pytest.mark.parametrize("p", [1e-300, 1e-12, 1 - 1e-16])
@pytest.mark.parametrize("bits, g", [(1, 1), (4, 51), (8, 255), (8, 1000)])
def test_any_parameters_give_a_rising_table(bits: int, g: int, p: float) -> None:
    table = optimal_table(bits, g, p)
    assert (table[0], table[-1], len(set(table))) == (0, g, 2**bits)
    assert list(table) == sorted(table)


@pytest.mark.parametrize(
    "args, text",
    [
        ((9, 600, 0.1), "bits must be from 1 to 8, got 9"),
        ((4, 14, 0.1), "granularity must be at least 15, got 14"),
        ((4, 15, 1.5), "p must be a number above 0 and below 1, got 1.5"),
    ],
)
def test_wrong_parameters(args: tuple[int, int, float], text: str) -> None:
    with pytest.raises(CodecError) as caught:
        optimal_table(*args)
    assert str(caught.value) == text


def test_a_table_is_solved_once_and_then_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = optimal_table(4, 30, 1 / 32)
    assert [f.name for f in cache.iterdir()] == ["4-30-0x1.0000000000000p-5"]
    optimal_table.cache_clear()
    monkeypatch.setattr(_table, "solve", None)
    assert optimal_table(4, 30, 1 / 32) == table


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"0 4\n", b"0 3 5\n17", b"0 1 2 4\n1", b"\n0", b"x y\n3"]
)
def test_a_damaged_file_is_solved_again_and_replaced(cache: Path, content: bytes) -> None:
    table = optimal_table(2, 4, 1 / 32)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(content)
    optimal_table.cache_clear()
    assert optimal_table(2, 4, 1 / 32) == table
    assert file.read_bytes() == whole


def test_a_changed_digit_is_noticed(cache: Path) -> None:
    table = optimal_table(4, 30, 1 / 32)
    (file,) = cache.iterdir()
    file.write_text(file.read_text().replace(" 11 ", " 12 "))
    optimal_table.cache_clear()
    assert optimal_table(4, 30, 1 / 32) == table


def test_no_cache_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(_user_folders, "TEMPORARY", tmp_path / "file")
    assert optimal_table(2, 3, 1 / 2) == (0, 1, 2, 3)
