"""Compare the kernels for PyTorch with the codecs on this machine, bit for bit.

    python -m gradplane.torch.selfcheck

On a CUDA device, up to some million values, and then the speeds beside `copy_` of the same tensor.
Elsewhere Triton's kernels are interpreted, on some thousand values. Exit status 1 on a difference.
Minutes at most: on a GPU most of them are for the compilation of kernels.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from gradplane import codecs
from gradplane._version import __version__
from gradplane.codecs._grid import GridCodec
from gradplane.torch import kernels

SMALL = (1, 777, 1025, 5 * 1024 + 3)
LARGE = (10**6, 2**20 + 1, 9 * 2**20 + 12345)
WORKERS = (1, 2, 3, 5, 6, 7)
SPEED = 10**8  # values that are timed

Found = tuple[str, torch.Tensor, Any]
"""A kernel's name, its result and the codec's."""


class _Case(NamedTuple):
    """A vector and what its codec makes of it on the CPU."""

    codec: GridCodec
    x: Any
    shared: Any
    codes: Any
    seed: int


def main() -> int:
    """Print a line for each kernel; return 1 if one differs from the codec, else 0."""
    cuda = torch.cuda.is_available()
    if not cuda:  # Triton asks when its kernels are defined
        os.environ["TRITON_INTERPRET"] = "1"
    faster = _triton()
    device = torch.device("cuda" if cuda else "cpu")
    print(f"gradplane {__version__}, PyTorch {torch.__version__}, {_where(cuda, faster)}")
    equal: dict[str, list[bool]] = {}
    for case in _cases(SMALL + LARGE if cuda else SMALL):
        for name, found, expected in _compared(case, device, faster):
            equal.setdefault(name, []).append(_same(found, expected))
    speeds = _speeds(device, faster) if cuda else {}
    for name, cases in equal.items():
        good = sum(cases)
        verdict = "equal" if good == len(cases) else "DIFFERENT"
        print(f"{name:32} {verdict}: {good} of {len(cases)} cases{speeds.get(name, '')}")
    return 0 if all(map(all, equal.values())) else 1


def _triton() -> Any:
    """Return the module of Triton's kernels; None where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    from gradplane.torch import triton_kernels

    return triton_kernels


def _where(cuda: bool, faster: Any) -> str:
    device = torch.cuda.get_device_name() if cuda else "no GPU"
    if faster is None:
        return f"{device}, no Triton: its kernels are not checked (pip install gradplane[gpu])"
    how = "" if cuda else ", interpreted"
    return f"{device}, Triton {importlib.import_module('triton').__version__}{how}"


def _cases(sizes: tuple[int, ...]) -> Iterator[_Case]:
    """Yield vectors of some sizes for codecs of 1 to 8 bits; both are drawn from fixed seeds."""
    for n in sizes:
        for bits in (1, 3, 4, 8) if n > 1 else (4,):
            codec = codecs.get("thc", bits=bits, granularity=2**bits + 14)
            assert isinstance(codec, GridCodec)
            random = np.random.default_rng((n, bits))
            x = (10.0 ** random.integers(-9, 9) * random.standard_normal(n)).astype(np.float32)
            shared = codec.local(x)
            yield _Case(codec, x, shared, codec.codes(x, shared, bits)[0], bits)


def _compared(case: _Case, device: torch.device, faster: Any) -> Iterator[Found]:
    """Yield the results of all kernels."""
    codec, x, shared, codes, seed = case
    view = torch.from_numpy(np.concatenate([x[:1], x])).to(device)[1:]  # not aligned
    norm = torch.from_numpy(shared)
    yield "codes, torch's operations", kernels.plain_codes(codec, view, norm, seed), codes
    if faster is not None:
        yield "norms", faster.norms(codec, view), shared
        yield "codes", faster.codes(codec, view, norm, seed), codes
        packed = kernels.pack(torch.from_numpy(codes), codec._field_bits)
        yield "packed codes", faster.codes(codec, view, norm, seed, packed=True), packed
    for name, sums, count in _sums(case):
        expected = codec.decode_sum(sums, x.size, count, shared, seed)
        each = torch.from_numpy(count).to(device) if isinstance(count, np.ndarray) else count
        given = codec, torch.from_numpy(sums).to(device), x.size, each, norm, seed
        if isinstance(count, int):
            yield f"{name}, torch's operations", kernels.plain_mean(*given), expected  # type: ignore[arg-type]
        if faster is not None:
            yield name, faster.mean(*given), expected


def _sums(case: _Case) -> Iterator[tuple[str, Any, Any]]:
    """Yield sums of several numbers of workers, and sums of which lanes miss workers."""
    codec, lanes = case.codec, case.codes.size
    random = np.random.default_rng(lanes)
    counts = WORKERS if lanes < 10**6 else (3, 7)
    for count in (*counts, random.integers(0, 8, lanes)):
        sums = random.integers(0, codec.granularity * count + 1, lanes)
        name = "means" if isinstance(count, int) else "means, workers missing"
        yield name, sums.astype(np.int32), count


def _same(found: torch.Tensor, expected: Any) -> bool:
    """Compare bytes: -0 is not 0."""
    return found.cpu().numpy().tobytes() == np.asarray(expected).tobytes()


def _speeds(device: torch.device, faster: Any) -> dict[str, str]:
    """Return, for each kernel, its time and how many times that of `copy_` it is."""
    n = min(SPEED, torch.cuda.mem_get_info()[0] // 64)
    codec = codecs.get("thc")
    assert isinstance(codec, GridCodec)
    x = torch.randn(n, device=device)
    target, lanes = torch.empty_like(x), codec.lanes(n)
    shared = torch.ones(len(codec.partitions(n)))
    sums = torch.randint(0, 91, (lanes,), device=device, dtype=torch.int32)
    copy, _ = _timed(lambda: target.copy_(x))
    print(f"copy_ of {n:,} values takes {copy:.2f} ms")
    calls: dict[str, Callable[[], Any]] = {
        "codes, torch's operations": lambda: kernels.plain_codes(codec, x, shared),
        "means, torch's operations": lambda: kernels.plain_mean(codec, sums, n, 3, shared),
    }
    if faster is not None:
        calls |= {
            "norms": lambda: faster.norm_sums(codec, x),
            "codes": lambda: faster.codes(codec, x, shared),
            "packed codes": lambda: faster.codes(codec, x, shared, packed=True),
            "means": lambda: faster.mean(codec, sums, n, 3, shared),
        }
    shown = {}
    for name, call in calls.items():
        taken, memory = _timed(call)
        much = f"{taken:.2f} ms, {taken / copy:.1f} times copy_, {memory / n:.2f} bytes a value"
        shown[name] = f"; {much} with its result"
    return shown


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
