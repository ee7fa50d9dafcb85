"""Compare the kernels for PyTorch with the codecs on this machine, bit for bit.

    python -m gradplane.torch.selfcheck

On a CUDA device, up to some million values, and then the speeds beside `copy_` of the same tensor.
Elsewhere Triton's kernels are interpreted, on some hundred values. Exit status 1 on a difference.
Minutes at most: on a GPU most of them are for the compilation of kernels.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from gradplane import codecs
from gradplane._version import __version__
from gradplane.codecs._grid import GridCodec
from gradplane.torch import kernels

SMALL = (1, 777, 1025, 2 * 1024 + 3)
LARGE = (10**6, 2**20 + 1, 9 * 2**20 + 12345)
SPEED = 10**8  # values that are timed


def main() -> int:
    """Print a line for each kernel; return 1 if one differs from the codec, else 0."""
    cuda = torch.cuda.is_available()
    if not cuda:  # Triton asks when its kernels are defined
        os.environ["TRITON_INTERPRET"] = "1"
    rows = _rows()
    device = torch.device("cuda" if cuda else "cpu")
    print(f"gradplane {__version__}, PyTorch {torch.__version__}, {_where(cuda, rows)}")
    speed = _speeds(device) if cuda else None
    sizes, good = SMALL + LARGE if cuda else SMALL, True
    for name, plain in _plain(device, sizes):
        good &= _told(name, plain)
    for row in rows.ROWS if rows else ():
        found = [rows.equal(row, case) for case in row.cases(sizes, device)]
        good &= _told(row.name, found, speed(rows, row) if speed else "")
    return 0 if good else 1


def _told(name: str, found: list[bool], speed: str = "") -> bool:
    verdict = "equal" if all(found) else "DIFFERENT"
    print(f"{name:34} {verdict}: {sum(found)} of {len(found)} cases{speed}", flush=True)
    return all(found)


def _rows() -> Any:
    """Return the module of Triton's kernels; None where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    from gradplane.torch import kernel_rows

    return kernel_rows


def _where(cuda: bool, rows: Any) -> str:
    device = torch.cuda.get_device_name() if cuda else "no GPU"
    if rows is None:
        return f"{device}, no Triton: its kernels are not checked (pip install gradplane[gpu])"
    how = "" if cuda else ", interpreted"
    return f"{device}, Triton {importlib.import_module('triton').__version__}{how}"


def _plain(device: torch.device, sizes: tuple[int, ...]) -> Iterator[tuple[str, list[bool]]]:
    """Yield whether THC's kernels of torch's own operations are equal."""
    codec = codecs.get("thc")
    assert isinstance(codec, GridCodec)
    coded, means = [], []
    for n in sizes:
        random = np.random.default_rng(n)
        x = random.standard_normal(n, np.float32)
        shared = codec.local(x)
        norm = torch.from_numpy(shared)
        found = kernels.plain_codes(codec, torch.from_numpy(x).to(device), norm, n)
        coded.append(_same(found, codec.codes(x, shared, n)[0]))
        for count in (1, 2, 3, 5, 6, 7):
            sums = random.integers(0, 30 * count + 1, codec.lanes(n), dtype=np.int32)
            given = torch.from_numpy(sums).to(device), n, count, norm, n
            expected = codec.decode_sum(sums, n, count, shared, n)
            means.append(_same(kernels.plain_mean(codec, *given), expected))
    yield "THC, codes, torch's operations", coded
    yield "THC, means, torch's operations", means


def _same(found: torch.Tensor, expected: Any) -> bool:
    return bool(found.cpu().numpy().tobytes() == expected.tobytes())


def _speeds(device: torch.device) -> Callable[[Any, Any], str]:
    """Return a function that says how long a row takes, beside `copy_`, and what it moves."""
    n = min(SPEED, torch.cuda.mem_get_info()[0] // 64)
    x = torch.randn(n, device=device)
    target = torch.empty_like(x)
    copy, _ = _timed(lambda: target.copy_(x))
    print(f"copy_ of {n:,} values takes {copy:.2f} ms and moves 8 bytes a value")

    def measured(rows: Any, row: Any) -> str:
        case = next(row.cases((n,), device))
        _, moved = rows.moved(row, case)
        taken, memory = _timed(row.prepare(case))
        return (
            f"; {taken:.2f} ms, {taken / copy:.1f} times copy_, moves {moved:.1f} bytes a value,"
            f" takes {memory / n:.2f} with its result"
        )

    return measured


def _timed(call: Callable[[], Any]) -> tuple[float, int]:
    """Return the median of the milliseconds of nine calls, and the bytes that one allocates."""
    call()
    times = []
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    for _ in range(9):
        start, end = _event(), _event()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times), torch.cuda.max_memory_allocated() - before


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.exit(main())
