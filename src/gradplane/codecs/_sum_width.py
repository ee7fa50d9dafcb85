"""The width of sums of codes: the one place of THC's rule (section 4.3).

A code stands for 0 to g, the granularity, so a sum over w workers is at most g w.
"""


def sum_bits(granularity: int, workers: int) -> int:
    """Return ceil(log2(g w + 1)), the bits that a sum over `workers` workers needs."""
    return (granularity * workers).bit_length()


def sum_overflow(granularity: int, quorum: int, width: int) -> str | None:
    """Return None if sums fit `width` (8 or 16) bits, else a message with the numbers and remedies.

    A slot closes at the quorum, so no sum has more summands.
    """
    if sum_bits(granularity, quorum) <= width:
        return None
    largest, limit = granularity * quorum, 2**width - 1
    remedies = ["sum_bits = 16"] if width < 16 and sum_bits(granularity, quorum) <= 16 else []
    if quorum <= limit:
        remedies.append(f"granularity ≤ {limit // quorum}")
    return (
        f"granularity {granularity} × {quorum} workers = {largest} does not fit {width}-bit sums: "
        f"use {' or '.join(remedies)}"
    )
