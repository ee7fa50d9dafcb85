"""Writes the vectors of paper_reference's codecs. Run by hand, when a format is meant to change:

python tests/codecs/make_paper_vectors.py
"""

import json
import random
from typing import Any

from make_vectors import FOLDER, floats, vector
from paper_reference import Bytes, Inceptionn, Int8, OneBit, Sparse, Ternary, ThreeLC
from thc_reference import f32

LENGTHS = (0, 1, 7, 8, 37, 300)


def small(n: int) -> list[float]:
    """Return values over many binary orders of magnitude, powers of two and their neighbours."""
    chance = random.Random(n)
    x = [f32(chance.choice((-1, 1)) * 2 ** chance.uniform(-14, 2)) for _ in range(n)]
    for i in range(4, n, 9):
        x[i] = chance.choice((-1, 1)) * 2.0 ** chance.randint(-12, 1)
        x[i - 1] = x[i] * (1 - 2**-24)
        x[i - 2] = x[i] * (1 + 2**-23)
    return x


def mostly_zero(n: int) -> list[float]:
    """Return so few large values that there are runs of more than 14 groups of zeros."""
    chance = random.Random(n)
    return [f32(chance.gauss(0, 1) if chance.random() < 0.006 else 0.0) for _ in range(n)]


def halves(n: int) -> list[float]:
    """Return ties of round(x / m) and their neighbours, m = 1."""
    steps = (1, 0.5, -0.5, 0.5 + 2**-24, 0.5 - 2**-25, -0.5 - 2**-24, -1, 1e-45)
    return [steps[i % len(steps)] for i in range(n)]


def case(reference: Any, params: dict[str, Any], x: list[float], **chance: int) -> dict[str, Any]:
    data = reference.encode(x)
    decoded = floats(reference.decode(data, len(x)))
    return {
        "params": params,
        "n": len(x),
        **chance,
        "x": floats(x),
        "data": data.hex(),
        "decoded": decoded,
    }


def inceptionn() -> list[dict]:
    params = [{"bound": k} for k in (6, 8, 10)]
    made = [case(Inceptionn(**p), p, small(n)) for p in params for n in LENGTHS]
    odd = [float("inf"), f32(0.1), -float("inf"), 0.0, -0.0, float("nan"), 1e-45]
    verbatim = {"nonfinite": True}
    return [*made, case(Inceptionn(), {}, vector(37)), case(Inceptionn(), verbatim, odd)]


def first_bytes(params: dict[int, dict]) -> list[dict]:
    return [case(Bytes(keep), p, vector(n)) for keep, p in params.items() for n in (0, 1, 37)]


def threelc() -> list[dict]:
    inputs = [*map(vector, LENGTHS), mostly_zero(500), halves(41), [0.0] * 72]
    params: list[dict] = [{}, {"s": 1.9}, {"zero_runs": False}, {"s": 1.5, "accumulate": False}]
    return [case(ThreeLC(**p), p, x) for p in params for x in inputs]


def sparse(params: dict, x: list[float], **chance: int) -> dict:
    return case(Sparse(**chance, **params), params, x, **chance)


def main() -> None:
    seeds = {"seed": 2**40 + 1, "worker": 5}
    inputs = [*map(vector, LENGTHS), halves(41), [0.0] * 12, [-3.0] * 12]
    made = {
        "inceptionn": (1e-6, inceptionn()),
        "truncation": (1e-4, first_bytes({4 - d // 8: {"drop": d} for d in (8, 16, 24)})),
        "adt": (1e-4, first_bytes({k: {"keep": k} for k in (1, 2, 3, 4)})),
        "threelc": (1.0, threelc()),
        "int8": (1e-4, [case(Int8(), {}, x) for x in inputs]),
        "ternary": (4.0, [case(Ternary(**seeds), {}, x, **seeds) for x in inputs]),
        "onebit": (0.4, [case(OneBit(), {}, x) for x in inputs]),
        "sparse": (
            0.8,
            [sparse({}, x, **seeds) for x in inputs]
            + [sparse({"fraction": 0.3, "sample": 64}, vector(300), **seeds)],
        ),
    }
    for name, (nmse, cases) in made.items():
        content = {"nmse_of_normal_vector": nmse, "cases": cases}
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
