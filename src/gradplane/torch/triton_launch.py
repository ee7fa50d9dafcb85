"""How all kernels in Triton are launched, and how they report values that a codec refuses.

This and the modules that define kernels import triton: `kernels` takes them for CUDA tensors only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from gradplane import _splitmix64
from gradplane.codecs import CodecError
from gradplane.codecs._magnitudes import INFINITE

EXACT = {"enable_fp_fusion": False}
"""The option of every launch: no multiplication is fused with an addition."""

Watcher = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]
"""Takes a kernel, its arguments and options; returns whether it shall run."""

_watchers: list[Watcher] = []

GOLDEN = tl.constexpr(_splitmix64.GOLDEN)
_S1, _S2 = (tl.constexpr(shift) for shift, _ in _splitmix64.STEPS)
_M1, _M2 = (tl.constexpr(factor) for _, factor in _splitmix64.STEPS)
_S3 = tl.constexpr(_splitmix64.LAST_SHIFT)
INFINITY = tl.constexpr(INFINITE)


def launch(kernel: Any, programs: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Run a kernel on the device of its first argument, a tensor.

    A kernel reads or writes all of each tensor once, so that their bytes are what it moves."""
    if not all(watcher(kernel, arguments, options) for watcher in _watchers) or 0 in programs:
        return
    with torch.cuda.device_of(arguments[0]):
        kernel[programs](*arguments, **options, **EXACT)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of all launches meanwhile."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def ready(x: torch.Tensor) -> torch.Tensor:
    """Return float32[n] one behind the other in memory; CodecError for another type."""
    if x.dtype != torch.float32:
        raise CodecError(f"expected float32, got {x.dtype}: use x.float()")
    return x.detach().reshape(-1).contiguous()


def on(values: Any, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def blank(x: torch.Tensor, size: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """Return a tensor of so many elements, to be written, on the device of x."""
    return torch.empty(size, dtype=dtype, device=x.device)


def flag(x: torch.Tensor, count: int = 1) -> torch.Tensor:
    """Return int32[count] of zeros, which kernels raise."""
    return torch.zeros(count, dtype=torch.int32, device=x.device)


def signed(word: int) -> int:
    """Return a uint64 as the int64 of the same bits."""
    return word - 2**64 if word >> 63 else word


@triton.jit
def mix(z):
    """Return SplitMix64's words of uint64 arguments."""
    z = (z ^ (z >> _S1)) * _M1
    z = (z ^ (z >> _S2)) * _M2
    return z ^ (z >> _S3)


@triton.jit
def raised(wrong, bad):
    """Raise a flag where one of the values, int1 or int32 from 0 on, is not 0."""
    most = tl.max(bad.to(tl.int32))
    tl.atomic_max(wrong, most, mask=most > 0)


@triton.jit
def magnitude(value):
    """Return the bits of float32 values without their signs, int32."""
    return value.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def rounded(value):
    """Round float64 values below 2^51 to the nearest integers, ties to even."""
    return (value + 6755399441055744.0) - 6755399441055744.0  # 1.5 * 2^52: no fraction is left


@triton.jit
def places(BLOCK: tl.constexpr):
    """Return the places of a program's values, int64[BLOCK]."""
    return tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
