"""Optimal lookup tables T_{b,g,p} (THC, section 5.2 and appendix B), exact for any b, g and p.

A table is 0 = T[0] < T[1] < ... < T[2^b - 1] = g: the points kept of g + 1 evenly spaced ones
over [-t_p, t_p]. A value a between two kept neighbours i < j is rounded to one of them without
bias; the expected squared error, in grid steps, is (a - i)(j - a). So a table's cost is the sum
over neighbours of

    w(i, j) = integral over [i, j] of (s - i)(j - s) phi(s) ds.

Claim: best[k][i] = min over j of w(i, j) + best[k-1][j], with best[0][g] = 0 and infinity
elsewhere, makes best[2^b - 1][0] the least cost of any table. Proof: rounding to the two nearest
points is the best unbiased choice, as (a - i)(j - a) shrinks when either end moves towards a. With
it, tables are the paths of 2^b - 1 edges from 0 to g in the graph that has an edge from each i to
each j > i, and a path's cost is the sum of its edges' weights, each a function of the edge alone.
What follows the first edge (i, j) of a cheapest path of k edges is a cheapest path of k - 1 edges
from j, or replacing it would make the whole cheaper; induction on k. Symmetry is not assumed, as
the best table can be lopsided: T_{2,4,1/32} = 0 1 2 4, and for odd g too, T_{2,7,1/2} = 0 2 4 7.

Of tables whose costs agree to 12 digits (a lopsided one and its mirror image do) the
lexicographically smallest is taken, so rounding errors cannot choose.
"""

import functools
import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from gradplane._user_folders import cache_folder
from gradplane.codecs._base import CodecError, Table, check_int

_Matrix = npt.NDArray[np.float64]
_TIE = 1 + 1e-12


def threshold(p: float) -> float:
    """Return t_p: a standard normal value lies outside [-t_p, t_p] with probability p."""
    return -NormalDist().inv_cdf(p / 2)


@functools.lru_cache(maxsize=65536)
def optimal_table(bits: int, granularity: int, p: float) -> Table:
    """Return T_{b,g,p}, for 1 <= bits <= 8, granularity >= 2^bits - 1, 0 < p < 1; else CodecError.

    Kept on disk below $XDG_CACHE_HOME (or ~/.cache); a damaged or unwritable cache is no error.
    """
    check_int("bits", bits, 1, 8)
    check_int("granularity", granularity, 2**bits - 1)
    check_fraction(p)
    path = cache_folder("tables-1") / f"{bits}-{granularity}-{float(p).hex()}"
    table = _read(path, bits, granularity)
    if table is None:
        table = solve(bits, granularity, p)
        _write(path, table)
    return table


def check_fraction(p: float) -> float:
    """Return p if it is a number between 0 and 1, both excluded; else CodecError."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p < 1:
        raise CodecError(f"p must be a number above 0 and below 1, got {p!r}")
    return p


def solve(bits: int, granularity: int, p: float) -> Table:
    """Compute T_{b,g,p} by dynamic programming, in O(2^b g^2)."""
    weights = edge_weights(granularity, p)
    best = [np.full(granularity + 1, np.inf)]
    best[0][granularity] = 0
    for _ in range(2**bits - 1):
        best.append(np.min(weights + best[-1], axis=1))
    table = [0]
    for ahead in reversed(best[:-1]):
        through = weights[table[-1]] + ahead
        table.append(int(np.argmax(through <= through.min() * _TIE)))
    return tuple(table)


def edge_weights(granularity: int, p: float) -> _Matrix:
    """Return w(i, j), infinity below the diagonal: float64[g + 1, g + 1], in squared grid steps.

    Built cell by cell from integrals of positive functions: nothing cancels, even in the tails.
    """
    g = granularity
    mass, rising, falling, hump = _cell_moments(g, p)
    weights = np.full((g + 1, g + 1), np.inf)
    weight, slope = np.zeros(g), np.zeros(g)  # of [i, j]: w(i, j), and the integral of s - i
    for j in range(g):
        i = np.arange(j + 1)
        weight[i] += slope[i] + (j - i) * falling[j] + hump[j]
        slope[i] += (j - i) * mass[j] + rising[j]
        weights[i, j + 1] = weight[i]
    return weights


def _cell_moments(g: int, p: float) -> tuple[_Matrix, _Matrix, _Matrix, _Matrix]:
    """Integrate phi, r phi, (1-r) phi and r (1-r) phi over each grid cell, r from 0 to 1 in it."""
    nodes, factors = np.polynomial.legendre.leggauss(32)
    r = (nodes + 1) / 2
    a = threshold(p) * (2 * (np.arange(g)[:, None] + r) / g - 1)
    density = np.exp(-a * a / 2) * factors
    return density.sum(1), density @ r, density @ (1 - r), density @ (r * (1 - r))


def _read(path: Path, bits: int, granularity: int) -> Table | None:
    """Return the table in the file; None if there is none or it is damaged."""
    with suppress(OSError, ValueError):
        text, _, check = path.read_text("ascii").partition("\n")
        table = tuple(map(int, text.split()))
        rising = all(x < y for x, y in zip(table, table[1:], strict=False))
        ends = (table[0], table[-1], len(table)) == (0, granularity, 2**bits) if table else False
        if rising and ends and int(check) == zlib.crc32(text.encode()):
            return table
    return None


def _write(path: Path, table: Table) -> None:
    """Write a temporary file and rename it, so that a reader sees all or nothing."""
    text = " ".join(map(str, table))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(f"{text}\n{zlib.crc32(text.encode())}")
        os.replace(temporary, path)
