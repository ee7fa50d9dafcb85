"""Which codecs have kernels in Triton, for their bytes, and for codes that are summed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradplane.codecs import Codec, CodecError
from gradplane.codecs._grid import GridCodec
from gradplane.codecs.bfloat16 import BFloat16
from gradplane.codecs.float16 import Float16
from gradplane.codecs.inceptionn import Inceptionn
from gradplane.codecs.int8 import Int8
from gradplane.codecs.mxfp import MXFP
from gradplane.codecs.sdp4bit import SDP4Bit
from gradplane.codecs.switchml import SwitchML
from gradplane.codecs.threelc import ThreeLC
from gradplane.codecs.topk import TopK
from gradplane.codecs.zeropp import ZeroPP
from gradplane.torch import triton_formats as formats
from gradplane.torch import triton_streams as streams
from gradplane.torch import triton_thc as thc
from gradplane.torch.triton_launch import ready

_ENCODERS: dict[type[Codec], Callable[..., Any]] = {
    Float16: formats.encode_halves,
    BFloat16: formats.encode_halves,
    Int8: formats.encode_int8,
    MXFP: formats.encode_mx,
    Inceptionn: streams.encode_inceptionn,
    TopK: streams.encode_topk,
}
_DECODERS: dict[type[Codec], Callable[..., Any]] = {
    Float16: formats.decode_halves,
    BFloat16: formats.decode_halves,
    Int8: formats.decode_int8,
    MXFP: formats.decode_mx,
    ZeroPP: formats.decode_blocks,
    SDP4Bit: formats.decode_blocks,
    SwitchML: formats.decode_switchml,
    Inceptionn: streams.decode_inceptionn,
    ThreeLC: streams.decode_threelc,
    TopK: streams.decode_topk,
}


def has(codec: Codec) -> bool:
    """Return whether the codec's bytes have kernels."""
    return type(codec) in _DECODERS or summed(codec)


def encode(
    codec: Codec, x: torch.Tensor, shared: Any, seed: int, state: Any, worker: int
) -> tuple[torch.Tensor, Any] | None:
    """Return the codec's bytes, uint8 on the device of x, and the state after them (3LC's error,
    float32[n]); None where the codec refuses the values."""
    x = ready(x)
    if isinstance(codec, SwitchML):
        if shared is None:
            shared = formats.switchml_statistic(codec, x)
        if not bool(torch.isfinite(shared).all()):
            return None
        data, wrong = formats.encode_switchml(codec, x, shared)
    elif isinstance(codec, ThreeLC):
        data, wrong, state = streams.encode_threelc(codec, x, state)
    elif isinstance(codec, ZeroPP | SDP4Bit):
        data, wrong = formats.encode_blocks(codec, x, seed, worker)
    elif isinstance(codec, GridCodec):
        made = thc.encode(codec, x, shared, seed, worker)
        if made is None:
            return None
        data, wrong = made
    else:
        data, wrong = _ENCODERS[type(codec)](codec, x)
    return None if bool(wrong) else (data, state)


def decode(codec: Codec, data: torch.Tensor, n: int) -> torch.Tensor | None:
    """Return the values of bytes, float32[n]; None where the codec refuses the bytes."""
    if data.dtype != torch.uint8 or data.dim() != 1:
        raise CodecError(f"expected uint8 of one dimension, got {data.dtype} of {data.dim()}")
    if not _fits(codec, data.numel(), n):
        return None
    if data.storage_offset() % 4 or data.stride() != (1,):
        data = data.clone(memory_format=torch.contiguous_format)  # as words, they must be aligned
    found, wrong = _DECODERS.get(type(codec), thc.decode)(codec, data, n)
    values: torch.Tensor = found
    return None if bool(wrong) else values


def _fits(codec: Codec, size: int, n: int) -> bool:
    """Return whether n values may have so many bytes."""
    if isinstance(codec, Inceptionn | ThreeLC):
        return 4 * isinstance(codec, ThreeLC) <= size
    return size == codec.max_size(n)


# Codes that are summed


def summed(codec: Codec) -> bool:
    """Return whether the codec's statistics, codes and means of sums have kernels."""
    return isinstance(codec, SwitchML) or (isinstance(codec, GridCodec) and codec.rotate)


def statistics(codec: GridCodec, x: torch.Tensor) -> torch.Tensor:
    """Return what finished_statistics() makes the statistics of float32[n] of, on its device."""
    if isinstance(codec, SwitchML):
        return formats.switchml_largest(codec, x)
    return thc.norm_sums(codec, x)


def finished_statistics(codec: GridCodec, n: int, found: Any) -> Any:
    """Return codec.local of n values, float32[partitions], from statistics() in the CPU's memory.

    Infinity where the codec refuses the values, or a CodecError."""
    if isinstance(codec, SwitchML):
        return formats.finished_switchml(found)
    return thc.finished_norms(codec, n, found)


def packed_codes(
    codec: GridCodec, x: torch.Tensor, shared: torch.Tensor, seed: int, worker: int
) -> torch.Tensor:
    """Return codec.codes of float32[n], packed as kernels.pack does."""
    if isinstance(codec, SwitchML):
        return formats.switchml_codes(codec, x, shared)
    return thc.codes(codec, x, shared, seed, worker, packed=True)


def values(
    codec: GridCodec, packed: torch.Tensor, n: int, shared: torch.Tensor, seed: int
) -> torch.Tensor:
    """Return the values, float32[n], of one worker's packed codes."""
    if isinstance(codec, SwitchML):
        return formats.switchml_values(codec, packed, n, shared)
    return thc.values(codec, packed, n, shared, seed)


def mean(
    codec: GridCodec,
    sums: torch.Tensor,
    n: int,
    count: int | torch.Tensor,
    shared: torch.Tensor,
    seed: int,
) -> torch.Tensor:
    """Return codec.decode_sum, float32[n]; count: as triton_thc.mean has it."""
    if isinstance(codec, SwitchML):
        return formats.switchml_mean(codec, sums, n, count, shared)
    return thc.mean(codec, sums, n, count, shared, seed)
