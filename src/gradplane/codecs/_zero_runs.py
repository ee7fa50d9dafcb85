"""Zero-run encoding (3LC, section 3.3): runs of the byte 121, five zeros, become one byte each.

k consecutive bytes 121, 2 <= k <= 14, become 241 + k. Longer runs are cut into 14s from the front;
a rest of one stays 121. The parallel form encodes parts by themselves and then joins two bytes at
a border where one byte can stand for both; it decodes to the same groups.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes

_T = TypeVar("_T")
_R = TypeVar("_R")
_ZEROS, _LONGEST = 121, 14
_RUN = 241  # and the run's length make its byte


@njit(cache=True, nogil=True)
def _encode(groups, out):  # type: ignore[no-untyped-def]
    at = run = 0
    for i in range(groups.size):
        if groups[i] == _ZEROS:
            run += 1
            if run == 1:
                out[at] = _ZEROS
                at += 1
            else:
                out[at - 1] = _RUN + run
                run = 0 if run == _LONGEST else run
        else:
            run = 0
            out[at] = groups[i]
            at += 1
    return at


@njit(cache=True, nogil=True)
def _length(coded):  # type: ignore[no-untyped-def]
    """Return the number of groups that the bytes stand for."""
    total = 0
    for i in range(coded.size):
        total += max(1, int(coded[i]) - _RUN)
    return total


@njit(cache=True, nogil=True)
def _decode(coded, out):  # type: ignore[no-untyped-def]
    """Fill `out`; return the number of bytes read, and of the groups they stand for."""
    at, i = 0, 0
    while at < out.size and i < coded.size:
        run = int(coded[i]) - _RUN
        if run > 1:
            for j in range(at, min(at + run, out.size)):
                out[j] = _ZEROS
            at += run
        else:
            out[at] = coded[i]
            at += 1
        i += 1
    return i, at


def encode(groups: Codes, parts: int = 1) -> Codes:
    """Encode uint8 groups 0 to 242, in up to `parts` parts at the same time."""
    return join(_each(_encode_part, np.array_split(groups, parts)))


def _encode_part(groups: Codes) -> Codes:
    out = np.empty(groups.size, np.uint8)
    return out[: _encode(groups, out)]


def join(parts: list[Codes]) -> Codes:
    """Join encoded parts; the parts are overwritten."""
    for i in range(1, len(parts)):
        left, right = parts[i - 1], parts[i]
        if left.size and right.size and (run := joined(left[-1], right[0])):
            parts[i - 1] = left[:-1]
            right[0] = _RUN + run
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def joined(left: int, right: int) -> int:
    """Return the length of the run that two bytes make together; 0 if they make none."""
    lengths = [1 if b == _ZEROS else int(b) - _RUN if b > _RUN + 1 else 0 for b in (left, right)]
    return sum(lengths) if all(lengths) and sum(lengths) <= _LONGEST else 0


def decode(coded: Codes, size: int, parts: int = 1) -> tuple[Codes, int]:
    """Return uint8[size] groups, and the number of bytes used; CodecError if there are too few."""
    if size > _LONGEST * coded.size:  # checked before that much is allocated
        most = _LONGEST * coded.size
        raise CodecError(f"truncated: {coded.size} bytes hold at most {most} of {size} groups")
    out = np.empty(size, np.uint8)
    if parts > 1 and _decode_parts(coded, out, parts):
        return out, coded.size
    used, made = _decode(coded, out)
    if made < size:
        raise CodecError(f"truncated: {coded.size} bytes hold {made} of {size} groups")
    if made > size:
        raise CodecError(f"corrupted: a run of zeros ends at group {made} of {size}")
    return out, used


def _decode_parts(coded: Codes, out: Codes, parts: int) -> bool:
    """Fill `out` if the bytes stand for exactly as many groups; return False if not."""
    cuts = np.array_split(coded, parts)
    ends = list(itertools.accumulate(_each(_length, cuts)))
    if ends[-1] != out.size:
        return False
    _each(lambda pair: _decode(*pair), list(zip(cuts, np.split(out, ends[:-1]), strict=True)))
    return True


def _each(function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Map function over items, in threads if there are several: kernels release Python's lock."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))
