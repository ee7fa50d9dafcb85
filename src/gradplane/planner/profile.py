"""The compression file of a codec on this machine, from measured times."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from gradplane import codecs
from gradplane._toml_documents import inline

SIZES = tuple(1 << k for k in (10, 13, 16, 19, 22))
REPEATS = 5


def profile(codec: codecs.Codec) -> str:
    """Measure a codec on normal values and return its compression file.

    Each time is the least of a few runs. The package's codecs run on the CPU, so the file gives the
    same times for "gpu"; replace them if you have others.
    """
    rng = np.random.default_rng(1)
    compress, decompress, ratio = [], [], 1.0
    for size in SIZES:
        values = rng.standard_normal(size).astype(np.float32)
        state = codec.start(size)
        shared = codec.local(values, state)
        data, _ = codec.encode(values, shared=shared, seed=1, state=state)

        def encode(x: object = values, s: object = shared, n: int = size) -> object:
            return codec.encode(x, shared=s, seed=1, state=codec.start(n))  # type: ignore[arg-type]

        def decode(d: bytes = data, n: int = size) -> object:
            return codec.decode(d, n)

        compress.append(_least(encode))
        decompress.append(_least(decode))
        ratio = min(len(data) / (4 * size), 1.0)
    name, defaults = codec.name, codecs.get(codec.name).config
    parameters = {key: value for key, value in codec.config.items() if value != defaults[key]}
    lines = [
        f"# Measured on this machine: {REPEATS} runs each, the quickest counts. The codecs run on",
        "# the CPU: [gpu] repeats [cpu] until you enter other times.",
        f"codec = {inline(name)}",
        *([f"parameters = {inline(parameters)}"] if parameters else []),
        f"ratio = {ratio:.6f}",
        *(["padded = true"] if codec.max_size(1025) == codec.max_size(2048) else []),
        *(["sums = true"] if codec.summable else []),
    ]
    for device in ("gpu", "cpu"):
        lines += ["", f"[{device}]", f"values = {[float(size) for size in SIZES]}"]
        lines += [f"compress = {_listed(compress)}", f"decompress = {_listed(decompress)}"]
    return "\n".join(lines) + "\n"


def _least(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def _listed(times: list[float]) -> str:
    return "[" + ", ".join(f"{seconds:.4e}" for seconds in times) + "]"
