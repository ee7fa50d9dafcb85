"""Measure the speed of the codecs on one core, beside a copy and a plain NumPy implementation.

    python benchmarks/codecs.py [NAME ...] [--values N] [--repeats K]

Speeds are in GB of float32 input per second of processor time, the best of K repeats. A copy is
timed before and after each codec, in the same run, because other work on the machine slows both.
`x copy` is the codec's speed divided by the copy's. The input is normal with standard deviation
0.01, as gradients are small: every INCEPTIONN tag but 3 occurs. `bitpack` and `bitunpack` are ADT's
loops alone, between existing arrays; encode() and decode() also allocate their results. `goal` is
the speed required, in GB/s, where there is one.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy_codecs import FORMS
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gradplane import codecs
from gradplane.codecs import _hadamard
from gradplane.codecs.adt import bitpack, bitunpack

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "adt": [{"keep": keep} for keep in (1, 2, 3, 4)],
    "truncation": [{"drop": 16}],
    "inceptionn": [{"bound": bound} for bound in (10, 8, 6)],
    "threelc": [
        {"s": 1.0},
        {"s": 1.0, "accumulate": False},
        {"s": 1.9, "accumulate": False},
        {"zero_runs": False, "accumulate": False},
    ],
}
COLUMNS = (
    "codec",
    *("encode\nGB/s", "\ngoal", "x\ncopy", "x\nNumPy"),
    *("decode\nGB/s", "\ngoal", "x\ncopy", "x\nNumPy"),
    "bits",
)
GOALS = {  # encode and decode; of THC and uniform THC with the rotation
    "bitpack, bitunpack": (5.0, 5.0),
    "inceptionn": (1.5, 1.5),
    "threelc": (1.5, 1.5),
    "thc": (0.5, 1.0),
    "uniform_thc": (0.5, 1.0),
    "topk": (1.0, 1.0),
}
HADAMARD_GOAL = 3.0  # copies a pass
PARTITION = 2**20  # values


def best(call: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of the fastest call, after one that warms up."""
    call()
    return min(_timed(call) for _ in range(repeats))


def _timed(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(name: str, params: dict[str, Any], x: np.ndarray, repeats: int) -> dict[str, Any]:
    """Time encode, decode, a copy, and the two of the NumPy implementation if there is one."""
    codec, form = codecs.get(name, **params), FORMS.get(name)
    shared, state = codec.local(x, codec.start(x.size)), codec.start(x.size)
    data, _ = codec.encode(x, shared, state=state)
    before = best(lambda: x.copy(), repeats)
    seconds = {
        "encode": best(lambda: codec.encode(x, shared, state=state), repeats),
        "decode": best(lambda: codec.decode(data, x.size), repeats),
        "copy": min(before, best(lambda: x.copy(), repeats)),
    }
    if form:
        assert form.encode(x, params) == data, f"the NumPy form of {name} makes other bytes"
        seconds["numpy encode"] = best(lambda: form.encode(x, params), 1)
        if decode := form.decode:
            assert np.array_equal(decode(data, x.size, params), codec.decode(data, x.size))
            seconds["numpy decode"] = best(lambda: decode(data, x.size, params), 1)
    return {"name": name, "params": params, "bits": 8 * len(data) / x.size, "seconds": seconds}


def measure_packing(keep: int, x: np.ndarray, repeats: int) -> dict[str, Any]:
    """Time ADT's loops alone."""
    packed, out = bitpack(x, keep), np.zeros_like(x)
    seconds = {
        "encode": best(lambda: bitpack(x, keep, packed), repeats),
        "decode": best(lambda: bitunpack(packed, keep, out), repeats),
        "copy": best(lambda: np.copyto(out, x), repeats),
    }
    return {
        "name": "bitpack, bitunpack",
        "params": {"keep": keep},
        "bits": 8 * keep,
        "seconds": seconds,
    }


def measure_hadamard(x: np.ndarray, repeats: int) -> dict[str, Any]:
    """Time the fast Hadamard transform on partitions.

    One pass over the memory does the stages within the first cache, another those across it.
    """
    x = x[: x.size - x.size % PARTITION]
    work = x.copy()
    parts = work.reshape(-1, PARTITION)

    def transform() -> None:
        for part in parts:
            _hadamard.fwht(part)

    copy = best(lambda: np.copyto(work, x), repeats)
    seconds = []
    for _ in range(repeats):  # from the same values each time: they grow
        np.copyto(work, x)
        seconds.append(_timed(transform))
    copy = min(copy, best(lambda: np.copyto(work, x), repeats))
    times = {"transform": min(seconds), "copy": copy}
    return {"name": "hadamard", "bytes": work.nbytes, "seconds": times, "passes": 2}


def hadamard_line(result: dict[str, Any]) -> str:
    """Format the result of measure_hadamard() as a sentence."""
    seconds, passes = result["seconds"], result["passes"]
    a_pass, speed = seconds["transform"] / passes, result["bytes"] / seconds["transform"]
    return (
        f"fast Hadamard transform, partitions of 2^20: {speed / 1e9:.2f} GB/s"
        f" in {passes} passes,\neach {a_pass / seconds['copy']:.2f} times a copy"
        f" (goal: at most {HADAMARD_GOAL:g})"
    )


def row(result: dict[str, Any], size: int) -> list[str]:
    """Return the cells of a row."""
    seconds = result["seconds"]
    cells = ["\n  ".join([result["name"], *(f"{k}={v}" for k, v in result["params"].items())])]
    goals = GOALS.get(result["name"], (None, None))
    for way, goal in zip(("encode", "decode"), goals, strict=True):
        plain = seconds.get(f"numpy {way}")
        cells += [
            f"{size / seconds[way] / 1e9:.2f}",
            f"{goal:g}" if goal else "-",
            f"{seconds['copy'] / seconds[way]:.2f}",
            f"{plain / seconds[way]:.1f}" if plain else "-",
        ]
    return [*cells, f"{result['bits']:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="codecs; all that there are if none is given")
    parser.add_argument("--values", type=int, default=2**24)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print a line of JSON a codec instead")
    args = parser.parse_args()
    x = np.random.default_rng(0).normal(0, 0.01, args.values).astype(np.float32)
    table = Table(*COLUMNS, title=f"{args.values} values, one core", box=SIMPLE_HEAD, padding=0)
    for name in args.names or codecs.names():
        results = [measure_packing(k, x, args.repeats) for k in (1, 2, 3, 4)] * (name == "adt")
        for params in VARIANTS.get(name, [{}]):
            results.append(measure(name, params, x, args.repeats))
        for result in results:
            if args.json:
                print(json.dumps(result), flush=True)
            table.add_row(*row(result, x.nbytes))
    if not args.json:
        Console(width=80).print(table)
    rotates = not args.names or not {"thc", "uniform_thc"}.isdisjoint(args.names)
    if rotates and args.values >= PARTITION:
        found = measure_hadamard(x, args.repeats)
        print(json.dumps(found) if args.json else hadamard_line(found))


if __name__ == "__main__":
    main()
