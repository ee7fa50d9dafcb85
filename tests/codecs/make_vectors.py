"""Writes vectors/*.json from the slow reference. Run by hand, when the format is meant to change:

python tests/codecs/make_vectors.py
"""

import json
import random
import struct
from pathlib import Path

from thc_reference import Grid, f32

FOLDER = Path(__file__).parent / "vectors"

# optimal tables, by (bits, granularity, p): p as a power of two's exponent
TABLES = {
    (1, 1, -5): [0, 1],
    (2, 4, -5): [0, 1, 2, 4],
    (3, 7, -5): list(range(8)),
    (4, 15, -5): list(range(16)),
    (4, 30, -5): [0, 3, 5, 7, 9, 11, 13, 14, 15, 17, 19, 21, 23, 25, 27, 30],
    (5, 31, -10): list(range(32)),
    (8, 255, -10): list(range(256)),
}


def vector(n: int) -> list[float]:
    """Return normal values, with a zero, a denormal and a large one among them."""
    chance = random.Random(n)
    x = [f32(chance.gauss(0, 1)) for _ in range(n)]
    for i, special in enumerate((0.0, 1e-40, -50.0)):
        if n > 5 * i + 5:
            x[5 * i + 5] = f32(special)
    return x


def grid_case(config: dict, grid: Grid, n: int, seed: int, worker: int, louder: float) -> dict:
    x = vector(n)
    shared = [f32(louder * s) for s in grid.local(x)]
    data = grid.encode(x, shared, seed, worker)
    cut = {"partition": grid.size} | ({} if grid.block is None else {"block": grid.block})
    return {
        "params": config,
        "n": n,
        "seed": seed,
        "worker": worker,
        **cut,
        "x": floats(x),
        "shared": floats(shared),
        "data": data.hex(),
        "decoded": floats(grid.decode(data, n)),
    }


def floats(values: list[float]) -> str:
    return struct.pack(f"<{len(values)}f", *values).hex()


def thc() -> list[dict]:
    cases = []
    for (bits, g, exponent), table in TABLES.items():
        for n, size in ((1, 2**20), (37, 2**20), (37, 16), (64, 16)):
            grid = Grid(bits, table, 2.0**exponent, size)
            config = {"bits": bits, "granularity": g, "p": 2.0**exponent, "version": 1}
            cases.append(grid_case(config, grid, n, seed=n, worker=bits, louder=1 + bits / 8))
    table = TABLES[4, 30, -5]
    cases.append(grid_case({"version": 1}, Grid(4, table, 1 / 32), 300, 2**63, 3, 1.0))
    for n in (5, 37, 64, 101):
        cases.append(grid_case({}, Grid(4, table, 1 / 32, size=32, block=8), n, n, 3, 1.5))
    cases.append(grid_case({}, Grid(4, table, 1 / 32, block=1024), 2049, 7, 3, 1.0))
    for (bits, g, exponent), table in TABLES.items():
        grid = Grid(bits, table, 2.0**exponent, block=1024, narrow=True)
        config = {"bits": bits, "granularity": g, "p": 2.0**exponent}
        cases += [grid_case(config, grid, n, n, bits, 1.5) for n in (1, 37)]
    return cases


def uniform_thc() -> list[dict]:
    cases = []
    for rotate in (False, True):
        for bits in (1, 4, 5):
            for n, size in ((1, 2**20), (37, 2**20), (37, 16)):
                grid = Grid(bits, list(range(2**bits)), 1 / 32 if rotate else None, size)
                config = {"bits": bits, "rotate": rotate, "version": 1}
                cases.append(grid_case(config, grid, n, n, bits, 1.5))
    grid = Grid(4, list(range(16)), 1 / 32, size=32, block=8)
    cases.append(grid_case({}, grid, 37, 37, 1, 1.5))
    for bits in (1, 2, 3):
        grid = Grid(bits, list(range(2**bits)), None, narrow=True)
        cases.append(grid_case({"bits": bits, "rotate": False}, grid, 37, 37, 1, 1.5))
    return cases


def plain(letter: str) -> list[dict]:
    cases = []
    for n in (0, 1, 37):
        x = vector(n)
        data = struct.pack(f"<{n}{letter}", *x)
        decoded = floats(list(struct.unpack(f"<{n}{letter}", data)))
        cases.append({"params": {}, "n": n, "x": floats(x), "data": data.hex(), "decoded": decoded})
    return cases


def main() -> None:
    made = {
        "thc": (0.03, thc()),
        "uniform_thc": (0.04, uniform_thc()),
        "float16": (1e-6, plain("e")),
        "float32": (0.0, plain("f")),
    }
    for name, (nmse, cases) in made.items():
        content = {"nmse_of_normal_vector": nmse, "cases": cases}
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
