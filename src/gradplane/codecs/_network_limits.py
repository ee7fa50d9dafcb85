"""Limits of the P4 programs: codes that thc.p4 sums, error bounds that tos_compress.p4 knows.

THC (section 4.3): a code stands for 0 to g, the granularity, so a sum over w workers is at most
g w.
"""

from typing import Literal, get_args

SumWidth = Literal[8, 16, 32]
"""The bits of a sum that the P4 program can be compiled for."""
SUM_WIDTHS: tuple[SumWidth, ...] = get_args(SumWidth)
"""All widths of sums."""
CodeWidth = Literal[1, 2, 4, 8]
"""The bits of a code in a packet that the P4 program can be compiled for."""
CODE_WIDTHS: tuple[CodeWidth, ...] = get_args(CodeWidth)
"""All widths of codes."""
_WIDE = 16
"""Bits of a sum from which on more workers than one switch has are summed."""
ErrorBound = Literal[6, 8, 10]
"""k of an error bound 2^-k of compressed values (INCEPTIONN)."""
ERROR_BOUNDS: tuple[ErrorBound, ...] = get_args(ErrorBound)
"""All error bounds."""


def code_bits(codes: int) -> CodeWidth:
    """Return the width of fields for so many different codes, the widest for more than it holds."""
    return next((width for width in CODE_WIDTHS if codes <= 1 << width), CODE_WIDTHS[-1])


def code_overflow(codes: int, width: int) -> str | None:
    """Return None if a packet's fields of `width` bits hold so many different codes, else a
    message with the remedy."""
    if codes <= 1 << width:
        return None
    needed = code_bits(codes)
    remedy = f"code_bits = {needed}" if needed > width else "a codec of 8 bits or fewer"
    return f"{codes} codes do not fit the packets' {width}-bit fields: use {remedy}"


def sum_bits(granularity: int, workers: int) -> int:
    """Return ceil(log2(g w + 1)), the bits that a sum over `workers` workers needs."""
    return (granularity * workers).bit_length()


def sum_overflow(granularity: int, quorum: int, width: int) -> str | None:
    """Return None if sums fit `width` bits, else a message with the numbers and remedies.

    A slot closes at the quorum, so no sum has more summands.
    """
    if sum_bits(granularity, quorum) <= width:
        return None
    largest, limit = granularity * quorum, 2**width - 1
    needed = sum_bits(granularity, quorum)
    remedies = [f"sum_bits = {wider}" for wider in SUM_WIDTHS if wider >= needed][:1]
    if quorum <= limit:
        remedies.append(f"granularity ≤ {limit // quorum}")
    if needed > _WIDE:
        remedies.append(f"{limit // granularity} workers or fewer")
    return (
        f"granularity {granularity} × {quorum} workers = {largest} does not fit {width}-bit sums: "
        f"use {' or '.join(remedies)}"
    )
